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
from ...blender.helper_bones.records import bone_record
from ...blender.preconditions import unmet
from ...blender.skin_reader import mesh_triangles, rest_positions
from ...blender.vertex_groups import read_weights
from ...core.errors import BadScene
from ...core.geometry import transform_points, unit
from ...core.segments import offsets_from_segments
from .bulge_presets import PRESETS, GirdlePart
from .joints import end_bone
from .settings import BulgeSettings

# A smaller bend does not show the inside of a joint.
_STRAIGHT = math.radians(3)

# A clavicle's tail is nearer to the arm's joint than this share of its head's distance. In a human, its inner end is so
# far from the middle, as a share of the joint's distance.
_AT_THE_ARM, _INNER_END = 0.5, 0.16
# Bones at a smaller angle are of one straight limb.
_IN_LINE = math.radians(45)
# A bone that is less far to the side, as a share of its distance, is in the middle.
_MIDDLE = 0.05


def search_place(
    context: bpy.types.Context, armature: bpy.types.Object, carrier: str, driver: str, settings: BulgeSettings
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """The start point of the search for the skin, in the armature's space, the unit vector outward there, and notes on
    what Blender left out of the pose if that decides."""
    preset = PRESETS[settings.preset]
    bone = armature.data.bones[carrier]
    omitted: tuple[str, ...] = ()
    if preset.girdle is not None:
        place, outward = girdle_place(armature, carrier, driver, preset.girdle)
        if settings.center == "BONE":
            return place, outward, omitted
    elif preset.side == "INSIDE":
        outward, omitted = inside_of_bend(context, armature, bone, driver)
    else:
        outward = front_and_up(armature)[0] * (1 if preset.side == "FRONT" else -1)
        across = perpendicular(bone, outward)
        # A bone that points forward has no front side.
        outward = unit(across) if np.linalg.norm(across) > 0.1 else outward
    if settings.around and preset.girdle is None:
        turn = Matrix.Rotation(settings.around, 3, bone.tail_local - bone.head_local)
        outward = np.array(turn @ Vector(outward), dtype=np.float64)
    if settings.center == "CURSOR":
        place, omitted = _cursor(context, armature, bone)
        return place, outward, omitted
    start = along_bone(bone, preset.place)
    if preset.beside_driver:
        start = armature.data.bones[driver].head_local + Vector(preset.place * limb(armature, driver))
    if preset.toward:
        start = start.lerp(armature.data.bones[driver].head_local, preset.toward)
    return np.array(start, dtype=np.float64), outward, omitted


def inside_of_bend(
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


def limb(armature: bpy.types.Object, name: str) -> np.ndarray:
    """(3,) from a bone's head to the end of its part of a limb, such as the knee of a thigh that is divided.

    Of a straight limb, which all deforming bones in line make, that is half, or the bone itself if that is longer.
    """
    bones, last = armature.data.bones, name
    own = bones[name].tail_local - bones[name].head_local
    while True:
        child = end_bone(armature, last)
        if not child or (bones[child].tail_local - bones[child].head_local).angle(own, math.pi) > _IN_LINE:
            break
        last = child
    half = 0.5 * (bones[last].tail_local - bones[name].head_local)
    return np.array(max(own, half, key=lambda each: each.length), dtype=np.float64)


def front_and_up(armature: bpy.types.Object) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (3,) to the character's front and upward, in the armature's space: −Y and Z if its Z is up in the
    scene, else Z and Y, as in files with Y up."""
    up = np.array(armature.matrix_world, dtype=np.float64)[2, :3]
    front, upward = ((0, 0, 1), (0, 1, 0)) if abs(up[1]) > abs(up[2]) else ((0, -1, 0), (0, 0, 1))
    return np.array(front, dtype=np.float64), np.array(upward, dtype=np.float64)


def girdle_ends(armature: bpy.types.Object, carrier: str, driver: str) -> tuple[np.ndarray, np.ndarray]:
    """(3,) each: the inner end of the clavicle and the arm's joint, the head of ``driver``.

    The clavicle is the first bone from the carrier to the arm that ends at the arm; without one its inner end is
    beside the carrier, as far out as in a human.
    """
    bones = armature.data.bones
    joint = np.array(bones[driver].head_local, dtype=np.float64)
    for name in (carrier, *between(armature, carrier, driver)):
        head, tail = (np.array(getattr(bones[name], end), dtype=np.float64) for end in ("head_local", "tail_local"))
        if np.linalg.norm(tail - joint) < _AT_THE_ARM * np.linalg.norm(head - joint):
            return head, joint
    middle = on_axis(bones[carrier], joint)
    return middle + _INNER_END * (joint - middle), joint


def girdle_place(
    armature: bpy.types.Object, carrier: str, driver: str, part: GirdlePart
) -> tuple[np.ndarray, np.ndarray]:
    """The start point of the search for the skin over a part of the girdle, and the unit vector outward there."""
    inner, joint = girdle_ends(armature, carrier, driver)
    front, up = front_and_up(armature)
    place = inner + part.place * (joint - inner) + part.lift * np.linalg.norm(joint - inner) * up
    return place, unit(part.up * up + part.front * front)


def sideways(armature: bpy.types.Object, carrier: str, driver: str) -> np.ndarray:
    """Unit vector to the side of the body on which the driver bone is. Raises BadScene if it is in the middle."""
    front, up = front_and_up(armature)
    side = np.cross(up, front)
    bones = armature.data.bones
    offset = bones[driver].head_local - bones[carrier].head_local
    away = float(np.dot(side, offset))
    if abs(away) < _MIDDLE * offset.length or not offset.length:
        raise BadScene(
            f'The bone "{driver}" is in the middle of "{carrier}", so it is no arm. Choose the chest as the bone, '
            "and an upper arm as the driver bone"
        )
    return side * math.copysign(1.0, away)


def between(armature: bpy.types.Object, carrier: str, driver: str) -> list[str]:
    """The deforming bones between a bone and its descendant ``driver``, downward; [] if it is none."""
    above = armature.data.bones[driver].parent_recursive
    names = [bone.name for bone in above]
    if carrier not in names:
        return []
    found = above[: names.index(carrier)]
    return [bone.name for bone in reversed(found) if bone.use_deform and bone_record(bone) is None]


def _cursor(
    context: bpy.types.Context, armature: bpy.types.Object, bone: bpy.types.Bone
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The 3D cursor in the armature's space, moved back to rest with the bone that carries it, and notes on what was
    left out of the pose."""
    bones, omitted = _present_pose(context, armature)
    place = (armature.matrix_world @ _carried(bones, bone)).inverted_safe() @ context.scene.cursor.location
    return np.array(place, dtype=np.float64), omitted


def carried_skin(armature: bpy.types.Object, meshes: Sequence[bpy.types.Object], carriers: Sequence[str]) -> BVHTree:
    """The faces that the bones move, at rest in the armature's space, of the mesh on which they move most vertices.

    Raises BadScene if they move none.
    """
    weighted = [(read_weights(ob, carriers)[1].sum(axis=1), ob) for ob in meshes]
    weights, ob = max(weighted, key=lambda pair: pair[0].sum())
    if not weights.any():
        raise unmet("BONE_WITHOUT_WEIGHTS", armature=armature, bone=carriers[0])
    to_armature = np.linalg.inv(to_mesh(ob, armature))
    points = transform_points(rest_positions(ob.data), to_armature)
    triangles = mesh_triangles(ob.data)
    triangles = triangles[(weights[triangles] > 0.25 * weights.max()).all(axis=1)]
    if len(triangles):
        return BVHTree.FromPolygons(points.tolist(), triangles.tolist())
    # Loose vertices are faces without area.
    chosen = np.flatnonzero(weights > 0.25 * weights.max())
    return BVHTree.FromPolygons(points.tolist(), np.repeat(chosen[:, None], 3, axis=1).tolist())


def met_skin(skin: BVHTree, starts: Sequence[np.ndarray], outward: np.ndarray) -> np.ndarray:
    """(3,) where the skin is met along ``outward`` (3,) from the first of ``starts`` that meets it; if none does, the
    point of the skin nearest to the first."""
    hits = (skin.ray_cast(Vector(start), Vector(outward))[0] for start in starts)
    found = next((hit for hit in hits if hit is not None), None)
    return np.array(found if found is not None else skin.find_nearest(Vector(starts[0]))[0], dtype=np.float64)


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
