# SPDX-License-Identifier: GPL-3.0-or-later
"""The places of bulges on the skin beside a bone, and the outward direction there."""

import math
from collections.abc import Sequence

import bpy
import numpy as np
from mathutils import Matrix, Vector
from mathutils.bvhtree import BVHTree

from ...blender.animation.omissions import Omissions, texts_of
from ...blender.bodies import to_mesh
from ...blender.preconditions import unmet
from ...blender.skin_reader import mesh_triangles, rest_positions
from ...blender.vertex_groups import read_weights
from ...core.segments import offsets_from_segments
from .bulge_presets import PRESETS
from .settings import BulgeSettings

# A smaller bend does not show the inside of a joint.
_STRAIGHT = math.radians(3)


def search_place(
    context: bpy.types.Context, armature: bpy.types.Object, carrier: str, driver: str, settings: BulgeSettings
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The start point of the search for the skin, in the armature's space, the unit vector outward there, and notes on
    what Blender left out of the pose if that decides."""
    preset = PRESETS[settings.preset]
    bone = armature.data.bones[carrier]
    omitted: tuple[str, ...] = ()
    if preset.side == "INSIDE":
        outward, omitted = _inside(context, armature, bone, driver)
    else:
        outward = _front(armature) * (1 if preset.side == "FRONT" else -1)
        across = perpendicular(bone, outward)
        # A bone that points forward has no front side.
        outward = unit(across) if np.linalg.norm(across) > 0.1 else outward
    if settings.around:
        turn = Matrix.Rotation(settings.around, 3, bone.tail_local - bone.head_local)
        outward = np.array(turn @ Vector(outward), dtype=np.float64)
    if settings.center == "CURSOR":
        place, omitted = _cursor(context, armature, bone)
        return place, outward, omitted
    start = along_bone(bone, preset.place)
    if preset.toward:
        start = start.lerp(armature.data.bones[driver].head_local, preset.toward)
    return np.array(start, dtype=np.float64), outward, omitted


def _inside(
    context: bpy.types.Context, armature: bpy.types.Object, bone: bpy.types.Bone, driver: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Unit vector across a bone toward the bend of its driver bone: at rest, else in the present pose, else the bone's
    Z; and notes on what was left out of the pose."""
    omitted: tuple[str, ...] = ()
    if driver:
        other = armature.data.bones[driver]
        bend = _bend(bone, other.tail_local - other.head_local)
        if bend is None:
            bones, omitted = _present_pose(context, armature)
            posed = _carried(bones, bone).inverted_safe() @ bones[driver].matrix
            bend = _bend(bone, posed.to_3x3() @ Vector((0, 1, 0)))
        if bend is not None:
            return bend, omitted
    return np.array(bone.matrix_local.col[2][:3], dtype=np.float64), omitted


def _bend(bone: bpy.types.Bone, direction: Vector) -> np.ndarray | None:
    """Unit vector across a bone toward ``direction``; None if that is along the bone."""
    across = perpendicular(bone, np.array(direction.normalized(), dtype=np.float64))
    return unit(across) if np.linalg.norm(across) > math.sin(_STRAIGHT) else None


def _present_pose(
    context: bpy.types.Context, armature: bpy.types.Object
) -> tuple[bpy.types.bpy_prop_collection, tuple[str, ...]]:
    """The pose bones in the present pose, and notes on what Blender left out of it."""
    omissions = Omissions(context, [], [context.scene.frame_current], [armature])
    omitted = texts_of(omissions.finish())
    return armature.evaluated_get(context.evaluated_depsgraph_get()).pose.bones, omitted


def _carried(pose_bones: bpy.types.bpy_prop_collection, bone: bpy.types.Bone) -> Matrix:
    """The transform of a bone from rest to the present pose."""
    return pose_bones[bone.name].matrix @ bone.matrix_local.inverted_safe()


def _front(armature: bpy.types.Object) -> np.ndarray:
    """The direction in which a character faces, in the armature's space: −Y if its Z is up in the scene, else Z, as in
    files with Y up."""
    up = np.array(armature.matrix_world, dtype=np.float64)[2, :3]
    return np.array([0.0, 0.0, 1.0]) if abs(up[1]) > abs(up[2]) else np.array([0.0, -1.0, 0.0])


def _cursor(
    context: bpy.types.Context, armature: bpy.types.Object, bone: bpy.types.Bone
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The 3D cursor in the armature's space, moved back to rest with the bone that carries it, and notes on what was
    left out of the pose."""
    bones, omitted = _present_pose(context, armature)
    place = (armature.matrix_world @ _carried(bones, bone)).inverted_safe() @ context.scene.cursor.location
    return np.array(place, dtype=np.float64), omitted


def carried_skin(armature: bpy.types.Object, meshes: Sequence[bpy.types.Object], carrier: str) -> BVHTree:
    """The faces that the bone moves, at rest in the armature's space, of the mesh on which it moves most vertices.

    Raises BadScene if it moves none.
    """
    weighted = [(read_weights(ob, [carrier])[1].sum(axis=1), ob) for ob in meshes]
    weights, ob = max(weighted, key=lambda pair: pair[0].sum())
    if not weights.any():
        raise unmet("BONE_WITHOUT_WEIGHTS", armature=armature, bone=carrier)
    to_armature = np.linalg.inv(to_mesh(ob, armature))
    points = rest_positions(ob.data) @ to_armature[:3, :3].T + to_armature[:3, 3]
    triangles = mesh_triangles(ob.data)
    triangles = triangles[(weights[triangles] > 0.25 * weights.max()).all(axis=1)]
    if len(triangles):
        return BVHTree.FromPolygons(points.tolist(), triangles.tolist())
    # Loose vertices are faces without area.
    chosen = np.flatnonzero(weights > 0.25 * weights.max())
    return BVHTree.FromPolygons(points.tolist(), np.repeat(chosen[:, None], 3, axis=1).tolist())


def along_bone(bone: bpy.types.Bone, place: float) -> Vector:
    """A point between a bone's head, 0, and its tail, 1."""
    return bone.head_local.lerp(bone.tail_local, place)


def on_axis(bone: bpy.types.Bone, point: np.ndarray) -> np.ndarray:
    """The point on the bone nearest to ``point``."""
    head, tail = np.array(bone.head_local, dtype=np.float64), np.array(bone.tail_local, dtype=np.float64)
    return point - offsets_from_segments(point, head, tail - head)


def perpendicular(bone: bpy.types.Bone, vector: np.ndarray) -> np.ndarray:
    axis = np.array(bone.tail_local - bone.head_local, dtype=np.float64)
    return vector - axis * (axis @ vector) / max(axis @ axis, 1e-12)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
