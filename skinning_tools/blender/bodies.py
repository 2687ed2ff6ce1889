# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh at rest and an armature's deforming bones at rest, in one space: the input of binding."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ..core.geometry import transform_points
from .control_points import lattice_edges, lattice_triangles
from .preconditions import check_deforming, unmet
from .skin_reader import face_corners, mesh_edges, mesh_triangles, rest_positions

if TYPE_CHECKING:
    from ..core.binding.types import Body, Skeleton

# If the ratio of a quad's smaller triangle to its larger one is below this, one corner is straight or concave: the quad
# can be cut one way only.
_CONVEX = 1e-3

# Corners of the largest faces that need no middle: both ways of cutting a quad count.
_QUAD = 4


def deforming_bones(armature: bpy.types.Object) -> tuple[str, ...]:
    """Names of the deforming bones of an armature object, in its order."""
    return tuple(bone.name for bone in armature.data.bones if bone.use_deform)


def stretch_of(mesh_object: bpy.types.Object) -> np.ndarray:
    """(3, 3) from the mesh object's space to the space of binding: the mesh's own axes, the scene's units.

    Distances in it are those that the artist sees, even with unapplied scale, and a mesh that is symmetric in its own
    space stays exactly symmetric if its scale is even. Raises BadScene on a scale of zero.
    """
    linear = np.array(mesh_object.matrix_world, dtype=np.float64)[:3, :3]
    _, sizes, axes = np.linalg.svd(linear)
    if sizes[2] <= 1e-9 * sizes[0] or not np.isfinite(sizes).all():
        raise unmet("NO_SCALE", object=mesh_object)
    if np.ptp(sizes) <= 1e-6 * sizes[0]:
        return np.eye(3) * sizes.mean()
    return axes.T @ np.diag(sizes) @ axes


def to_mesh(mesh_object: bpy.types.Object, other: bpy.types.Object) -> np.ndarray:
    """(4, 4) from another object's space, such as the armature's, to the mesh object's, at their present placement."""
    return np.linalg.solve(
        np.array(mesh_object.matrix_world, dtype=np.float64), np.array(other.matrix_world, dtype=np.float64)
    )


def read_body(
    mesh_object: bpy.types.Object,
    first: bpy.types.Object | None = None,
    standing: np.ndarray | None = None,
    middles: bool = False,
) -> "Body":
    """The mesh before its modifiers, from its first shape key if it has any, in the space of ``stretch_of``: its own,
    or that of the mesh object ``first``. A lattice is the surface of its outside, and its grid.

    standing (N, 3): where the vertices are instead, in the object's space. middles: see ``with_middles``.
    """
    from ..core.binding.types import Body

    mesh = mesh_object.data
    rest, triangles = rest_positions(mesh) if standing is None else standing, mesh_triangles(mesh)
    if first not in (None, mesh_object):
        to_first = to_mesh(first, mesh_object)
        rest = transform_points(rest, to_first)
    rest = rest @ stretch_of(first or mesh_object).T
    if isinstance(mesh, bpy.types.Lattice):
        return Body(rest, triangles, lattice_edges(mesh), lattice_triangles(mesh, other=True))
    body = Body(rest, triangles, mesh_edges(mesh), other_triangles(mesh, triangles, rest))
    return with_middles(mesh, body) if middles else body


def with_middles(mesh: bpy.types.Mesh, body: "Body") -> "Body":
    """``body`` of a mesh with a further vertex, after its own, in the middle of each face of more than four corners.

    Such a face is cut into triangles around its middle: which diagonals Blender chooses differs between the two sides
    of a symmetric mesh. A face whose middle does not see all of its sides stays as it is.
    """
    from ..core.binding.types import Body

    corners, starts = face_corners(mesh)
    sizes = np.empty(len(starts), np.int32)
    mesh.polygons.foreach_get("loop_total", sizes)
    faces = np.flatnonzero(sizes > _QUAD)
    if not len(faces):
        return body
    owner = np.repeat(np.arange(len(faces)), sizes[faces])
    first = np.cumsum(sizes[faces]) - sizes[faces]
    rank = np.arange(len(owner)) - first[owner]
    begin = corners[starts[faces][owner] + rank]
    end = corners[starts[faces][owner] + (rank + 1) % sizes[faces][owner]]
    middle = np.add.reduceat(body.rest[begin], first) / sizes[faces][:, None]
    normals = np.cross(body.rest[begin] - middle[owner], body.rest[end] - middle[owner])
    whole = np.add.reduceat(normals, first)
    least = _CONVEX * np.einsum("ij,ij->i", whole, whole) / sizes[faces]
    behind = np.einsum("ij,ij->i", normals, whole[owner]) < least[owner]
    seen = ~np.logical_or.reduceat(behind & normals.any(axis=1), first) & whole.any(axis=1)
    number = len(body.rest) + np.cumsum(seen) - 1
    fans = np.column_stack([begin, end, number[owner]])[seen[owner]]
    of_face, kept = np.empty(len(body.triangles), np.int32), np.ones(len(sizes), bool)
    mesh.loop_triangles.foreach_get("polygon_index", of_face)
    kept[faces[seen]] = False
    rest, others = kept[of_face], np.concatenate([body.others[kept[of_face]], fans])
    triangles = np.concatenate([body.triangles[rest], fans])
    return Body(np.concatenate([body.rest, middle[seen]]), triangles, body.edges, others)


def other_triangles(mesh: bpy.types.Mesh, triangles: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """(T, 3) for each of the mesh's ``triangles`` its replacement when its quad is cut the other way; see Body.

    The triangle itself if it is not of a quad, or of a quad that cannot be cut this way at the positions ``rest`` (N,
    3).
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
    mesh_object: bpy.types.Object,
    armature: bpy.types.Object,
    names: Sequence[str] | None = None,
    matrices: np.ndarray | None = None,
) -> "Skeleton":
    """The bones ``names`` (the deforming ones) of the armature at rest, in the space of ``stretch_of`` the mesh.

    Ignores the armature's pose, but not its object's placement. A bone's parent is its nearest ancestor in ``names``.
    matrices (P, 3, 4): of ``skin_reader.bone_matrices`` for the mesh; the bones are then where these take them. Raises
    BadScene if no bone deforms.
    """
    from ..core.binding.types import Skeleton

    if names is None:
        check_deforming(armature)
        names = deforming_bones(armature)
    bones = armature.data.bones
    placed = to_mesh(mesh_object, armature)
    if matrices is not None:
        placed = matrices @ placed
    linear, offset = np.split(stretch_of(mesh_object) @ placed[..., :3, :], [3], axis=-1)
    ends = (
        np.array([getattr(bones[name], end) for name in names], dtype=np.float64).reshape(-1, 3, 1)
        for end in ("head_local", "tail_local")
    )
    heads, tails = ((linear @ each + offset)[..., 0] for each in ends)
    axes = linear @ np.array([bones[name].matrix_local.to_3x3() for name in names], dtype=np.float64)
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return Skeleton(heads, tails, named_parents(armature, names), tuple(names), axes)


def named_parents(armature: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(P,) int64: for each bone its nearest ancestor in ``names``, −1 if there is none."""
    bones = armature.data.bones
    order = {name: index for index, name in enumerate(names)}
    parents = [
        next((order[ancestor.name] for ancestor in bones[name].parent_recursive if ancestor.name in order), -1)
        for name in names
    ]
    return np.array(parents, dtype=np.int64)
