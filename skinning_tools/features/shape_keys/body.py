# SPDX-License-Identifier: GPL-3.0-or-later
"""A face on a body: the armature that deforms it already, and the bone that carries the face."""

from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.preconditions import object_label
from ...blender.skin_reader import Skin, armature_of, check_rig, read_arrays
from ...blender.vertex_groups import read_weights
from ...core.errors import BadScene
from .reading import ShapeKeys

# A vertex that follows the head by less would need bones that move much farther than it does.
_LEAST_SHARE = 0.1
# As a share of the largest scale: the scales along the axes may differ by this.
_EVEN = 1e-3


@dataclass(frozen=True)
class Body:
    """skin: how the armature deforms the mesh. head: the bone that the face is on. shares (N,): of each vertex's
    weights, those of the head; given (N,): the weight that its vertex group has. vertices (n,): those that get bones
    of the face in its place."""

    skin: Skin
    head: str
    shares: np.ndarray
    given: np.ndarray
    vertices: np.ndarray

    def face_deltas(self, deltas: np.ndarray) -> np.ndarray:
        """(S, n, 3): what the bones of the face have to add so that, with its share of them, a vertex moves rightly."""
        return deltas[:, self.vertices] / self.shares[self.vertices, None].astype(np.float32)

    def face_triangles(self) -> np.ndarray:
        """Those between the face's vertices, by their places among them."""
        places = np.full(len(self.shares), -1, np.int32)
        places[self.vertices] = np.arange(len(self.vertices))
        triangles = places[self.skin.triangles]
        return triangles[(triangles >= 0).all(axis=1)]


def check_body(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene where bones of a face cannot be put on the mesh, or on the armature that deforms it already."""
    _check_scale(mesh_object)
    armature = armature_of(mesh_object)
    if armature is not None:
        check_rig(mesh_object)
        _check_scale(armature)


def _check_scale(either: bpy.types.Object) -> None:
    """Constraints aim bones in the world, where an uneven scale or a mirror would turn them."""
    linear = np.array(either.matrix_world, dtype=np.float64)[:3, :3]
    sizes = np.linalg.svd(linear, compute_uv=False)
    if sizes[0] - sizes[2] > _EVEN * sizes[0] or np.linalg.det(linear) <= 0:
        raise BadScene(
            f"The {object_label(either)} is scaled unevenly or mirrored, so that bones could not follow the sliders. "
            "Apply its scale, and that of its parents (Object > Apply > Scale)"
        )


def read_body(source: ShapeKeys) -> Body | None:
    """The body that the mesh is on; None where no armature deforms it. Raises BadScene, BadWeights."""
    if armature_of(source.mesh_object) is None:
        return None
    skin = read_arrays(source.mesh_object)
    motion = np.abs(source.deltas).max(axis=(0, 2))
    following = np.zeros(len(skin.bone_names))
    np.add.at(following, skin.bones, skin.weights * motion[:, None])
    if not following.any():
        raise BadScene(
            f'The armature "{skin.armature.name}" moves no vertex of {object_label(source.mesh_object)} that the shape '
            "keys move. Give the face weights of the head's bone"
        )
    head = int(np.argmax(following))
    shares = np.where(skin.bones == head, skin.weights, 0.0).sum(axis=1)
    name = skin.bone_names[head]
    given = read_weights(source.mesh_object, [name])[1].sum(axis=1)
    return Body(skin, name, shares, given, np.flatnonzero(shares >= _LEAST_SHARE))


def copied_armature(armature: bpy.types.Object, name: str, made: list) -> bpy.types.Object:
    """A copy of an armature object with bones of its own; what of it looks at the original looks at the copy."""
    copy = armature.copy()
    made.append(copy)
    copy.data = armature.data.copy()
    made.append(copy.data)
    copy.name = copy.data.name = name
    for block in (copy, copy.data):
        drivers = block.animation_data.drivers if block.animation_data is not None else ()
        for target in (t for curve in drivers for variable in curve.driver.variables for t in variable.targets):
            if target.id in (armature, armature.data):
                target.id = copy if target.id == armature else copy.data
    for constraint in (each for bone in copy.pose.bones for each in bone.constraints):
        if getattr(constraint, "target", None) == armature:
            constraint.target = copy
        for target in getattr(constraint, "targets", ()):
            if target.target == armature:
                target.target = copy
    return copy
