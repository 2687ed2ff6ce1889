# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh at rest and an armature's deforming bones at rest, in one space: what binding works on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ..core.errors import BadScene
from .preconditions import object_label, unmet
from .skin_reader import face_corners, mesh_triangles, rest_positions

if TYPE_CHECKING:
    from ..core.binding.types import Body, Skeleton

# A quad whose smaller part is a smaller share of the larger one, whichever way it points, has a corner that is straight
# or inward: it can be cut one way only.
_CONVEX = 1e-3


def deforming_bones(armature: bpy.types.Object) -> tuple[str, ...]:
    """Names of the bones of an armature object that deform, in its order."""
    return tuple(bone.name for bone in armature.data.bones if bone.use_deform)


def check_deforming(armature: bpy.types.Object) -> None:
    """Raises BadScene where no bone of the armature object deforms."""
    if not any(bone.use_deform for bone in armature.data.bones):
        raise BadScene(
            f'No bone of the armature "{armature.name}" deforms. Enable Deform in the properties of the bones that are '
            "to move the mesh"
        )


def stretch_of(object: bpy.types.Object) -> np.ndarray:
    """(3, 3) from the mesh object's space to the space that binding works in: the mesh's own axes, the scene's units.

    Distances there are those that the artist sees, whatever scale is not applied, and a mesh that is symmetric in its
    own space stays so to the last bit where its scale is even. Raises BadScene on a scale of zero.
    """
    linear = np.array(object.matrix_world, dtype=np.float64)[:3, :3]
    _, sizes, axes = np.linalg.svd(linear)
    if sizes[2] <= 1e-9 * sizes[0] or not np.isfinite(sizes).all():
        raise unmet("NO_SCALE", object=object_label(object))
    if np.ptp(sizes) <= 1e-6 * sizes[0]:
        return np.eye(3) * sizes.mean()
    return axes.T @ np.diag(sizes) @ axes


def armature_to_mesh(object: bpy.types.Object, armature: bpy.types.Object) -> np.ndarray:
    """(4, 4) from the armature object's space to the mesh object's, as the objects are placed now."""
    return np.linalg.solve(
        np.array(object.matrix_world, dtype=np.float64), np.array(armature.matrix_world, dtype=np.float64)
    )


def read_body(object: bpy.types.Object) -> "Body":
    """The mesh before its modifiers, the first shape key where it has any, in the space of ``stretch_of``."""
    from ..core.binding.types import Body

    mesh = object.data
    edges = np.empty((len(mesh.edges), 2), np.int32)
    mesh.edges.foreach_get("vertices", edges.ravel())
    rest, triangles = rest_positions(mesh) @ stretch_of(object).T, mesh_triangles(mesh)
    return Body(rest, triangles, edges, other_triangles(mesh, triangles, rest))


def other_triangles(mesh: bpy.types.Mesh, triangles: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """(T, 3) for each of the mesh's ``triangles`` what it is where its quad is cut the other way; see Body.

    The triangle itself where it is of no quad, or of one that cannot be cut so at the positions ``rest`` (N, 3).
    """
    of_face, sizes = np.empty(len(triangles), np.int32), np.empty(len(mesh.polygons), np.int32)
    mesh.loop_triangles.foreach_get("polygon_index", of_face)
    mesh.polygons.foreach_get("loop_total", sizes)
    pairs = np.flatnonzero(sizes[of_face] == 4).reshape(-1, 2)
    result = triangles.copy()
    if not len(pairs):
        return result
    corners, starts = face_corners(mesh)
    quads = corners[starts[of_face[pairs[:, 0]]][:, None] + np.arange(4)]
    first = (triangles[pairs] == quads[:, :1, None]).any(axis=2).all(axis=1)  # cut at the first and the third corner
    cut = np.where(first[:, None, None], quads[:, [[0, 1, 3], [1, 2, 3]]], quads[:, [[0, 1, 2], [0, 2, 3]]])
    sides = rest[cut[..., 1:]] - rest[cut[..., :1]]
    normals = np.cross(sides[:, :, 0], sides[:, :, 1])
    alike, squares = np.einsum("qi,qi->q", *normals.swapaxes(0, 1)), np.einsum("qti,qti->qt", normals, normals)
    convex = alike > _CONVEX * squares.max(axis=1)
    result[pairs[convex]] = cut[convex]
    return result


def read_skeleton(
    object: bpy.types.Object, armature: bpy.types.Object, names: Sequence[str] | None = None
) -> "Skeleton":
    """The bones ``names`` (the deforming ones) of the armature at rest, in the space of ``stretch_of`` the mesh.

    The armature's pose does not count, where its object stands does. A bone's parent is its nearest ancestor that is
    named, too. Raises BadScene where no bone deforms.
    """
    from ..core.binding.types import Skeleton

    if names is None:
        check_deforming(armature)
        names = deforming_bones(armature)
    bones = armature.data.bones
    to_mesh = armature_to_mesh(object, armature)
    linear, offset = stretch_of(object) @ to_mesh[:3, :3], stretch_of(object) @ to_mesh[:3, 3]
    heads, tails = (
        np.array([getattr(bones[name], end) for name in names], dtype=np.float64).reshape(-1, 3) @ linear.T + offset
        for end in ("head_local", "tail_local")
    )
    return Skeleton(heads, tails, named_parents(armature, names), tuple(names))


def named_parents(armature: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(P,) int64: of each of the bones ``names`` its nearest ancestor that is named, too; −1 where there is none."""
    bones = armature.data.bones
    order = {name: index for index, name in enumerate(names)}
    parents = [
        next((order[ancestor.name] for ancestor in bones[name].parent_recursive if ancestor.name in order), -1)
        for name in names
    ]
    return np.array(parents, dtype=np.int64)


def colors_of_bones(armature: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(P, 3) linear colors of an armature's bones, unlike those of their parents."""
    from ..core.binding.weight_view import bone_colors

    return bone_colors(names, named_parents(armature, names))
