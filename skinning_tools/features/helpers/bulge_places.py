# SPDX-License-Identifier: GPL-3.0-or-later
"""Where bulges are: places on the skin beside a bone, and which way is outward there."""

import math

import numpy as np
from mathutils import Matrix, Vector
from mathutils.bvhtree import BVHTree

from ...blender.bodies import armature_to_mesh
from ...blender.skin_reader import mesh_triangles, rest_positions
from ...blender.vertex_groups import read_weights
from ...core.errors import BadScene
from .bulge_presets import PRESETS
from .settings import BulgeSettings

# A bend that is smaller does not tell where the inside of a joint is.
_STRAIGHT = math.radians(3)


def search_place(context, armature, carrier: str, driver: str, given: BulgeSettings) -> tuple[np.ndarray, np.ndarray]:
    """A point in the armature's space from which the skin is looked for, and the unit vector outward there."""
    preset = PRESETS[given.preset]
    bone = armature.data.bones[carrier]
    if preset.side == "INSIDE":
        outward = _inside(context, armature, bone, driver)
    else:
        outward = _front(armature) * (1 if preset.side == "FRONT" else -1)
        across = perpendicular(bone, outward)
        # A bone that points forward has no front beside it.
        outward = unit(across) if np.linalg.norm(across) > 0.1 else outward
    if given.around:
        turn = Matrix.Rotation(given.around, 3, bone.tail_local - bone.head_local)
        outward = np.array(turn @ Vector(outward), dtype=np.float64)
    if given.center == "CURSOR":
        return _cursor(context, armature, bone), outward
    start = along_bone(bone, preset.place)
    if preset.toward:
        start = start.lerp(armature.data.bones[driver].head_local, preset.toward)
    return np.array(start, dtype=np.float64), outward


def _inside(context, armature, bone, driver: str) -> np.ndarray:
    """Unit vector across a bone to where its driver bone bends: at rest, else as posed now; else the bone's Z."""
    if driver:
        evaluated = armature.evaluated_get(context.evaluated_depsgraph_get())
        carried = evaluated.pose.bones[bone.name].matrix @ bone.matrix_local.inverted_safe()
        other = armature.data.bones[driver]
        posed = carried.inverted_safe() @ evaluated.pose.bones[driver].matrix
        for direction in (other.tail_local - other.head_local, posed.to_3x3() @ Vector((0, 1, 0))):
            if direction.length == 0:
                continue
            across = perpendicular(bone, np.array(direction.normalized(), dtype=np.float64))
            if np.linalg.norm(across) > math.sin(_STRAIGHT):
                return unit(across)
    return np.array(bone.matrix_local.col[2][:3], dtype=np.float64)


def _front(armature) -> np.ndarray:
    """Where a character faces, in the armature's space: −Y where its own Z is up in the scene, else, as in files whose
    Y is up, Z."""
    up = np.array(armature.matrix_world, dtype=np.float64)[2, :3]
    return np.array([0.0, 0.0, 1.0]) if abs(up[1]) > abs(up[2]) else np.array([0.0, -1.0, 0.0])


def _cursor(context, armature, bone) -> np.ndarray:
    """The 3D cursor in the armature's space, taken back to rest with the bone that carries what is there."""
    evaluated = armature.evaluated_get(context.evaluated_depsgraph_get())
    carried = evaluated.pose.bones[bone.name].matrix @ bone.matrix_local.inverted_safe()
    place = (armature.matrix_world @ carried).inverted_safe() @ context.scene.cursor.location
    return np.array(place, dtype=np.float64)


def carried_skin(armature, meshes, carrier: str) -> BVHTree:
    """The faces that the bone moves, at rest in the armature's space, of the mesh that it moves most of.

    Raises BadScene where it moves none.
    """
    weighted = [(read_weights(ob, [carrier])[1].sum(axis=1), ob) for ob in meshes]
    weights, ob = max(weighted, key=lambda pair: pair[0].sum())
    if not weights.any():
        raise BadScene(f'The bone "{carrier}" of "{armature.name}" has no weights on any mesh. Bind one first')
    to_armature = np.linalg.inv(armature_to_mesh(ob, armature))
    points = rest_positions(ob.data) @ to_armature[:3, :3].T + to_armature[:3, 3]
    triangles = mesh_triangles(ob.data)
    triangles = triangles[(weights[triangles] > 0.25 * weights.max()).all(axis=1)]
    if len(triangles):
        return BVHTree.FromPolygons(points.tolist(), triangles.tolist())
    # Loose vertices are faces without area.
    chosen = np.flatnonzero(weights > 0.25 * weights.max())
    return BVHTree.FromPolygons(points.tolist(), np.repeat(chosen[:, None], 3, axis=1).tolist())


def along_bone(bone, place: float) -> Vector:
    """A point between a bone's head, 0, and its tail, 1."""
    return bone.head_local.lerp(bone.tail_local, place)


def on_axis(bone, point: np.ndarray) -> np.ndarray:
    """The bone's point nearest to a point."""
    head, tail = np.array(bone.head_local, dtype=np.float64), np.array(bone.tail_local, dtype=np.float64)
    axis = tail - head
    place = np.clip((point - head) @ axis / max(axis @ axis, 1e-12), 0.0, 1.0)
    return head + place * axis


def perpendicular(bone, vector: np.ndarray) -> np.ndarray:
    axis = np.array(bone.tail_local - bone.head_local, dtype=np.float64)
    return vector - axis * (axis @ vector) / max(axis @ axis, 1e-12)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)
