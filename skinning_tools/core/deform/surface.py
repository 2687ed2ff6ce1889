# SPDX-License-Identifier: GPL-3.0-or-later
"""Normals and tangents of a skinned surface.

Rows are vertices, or face corners if bones, weights and transforms are given per corner (``bones[corner_vertices]``).
No result is ever NaN, and all are of unit length; only a normal or tangent that was zero at rest stays zero.
Source: the smooth skinning chapter, equations 3.6–3.10.
"""

import numpy as np

from ..geometry import unit
from ..strongest import strongest_bones
from .influences import weight_matrix

# A blend of unit vectors that is shorter than this is only rounding.
_VANISHED = 1e-9

# The rounding error of products of numbers up to one.
_ROUNDING = 1e-15


def blended_normals(
    normals: np.ndarray, bones: np.ndarray, weights: np.ndarray, matrices: np.ndarray, equalized: bool = False
) -> np.ndarray:
    """Unit normals (N, 3) by linear blending, chapter equations 3.6–3.8: n' = Σ_i w_i M_i⁻ᵀ n, divided by its length.

    normals (N, 3), bones and weights (N, K), matrices (P, 3, 4). The inverse transposes count with their sizes: a bone
    that shrinks counts for more, and one that flattens, which has no inverse, dominates. Where the bones cancel
    each other, the normal is that of the bone with the largest weight.
    equalized: each bone's normal at unit length before it is blended, which the chapter advises for large scales.
    """
    linear = np.asarray(matrices, dtype=np.float64)[..., :3]
    movers = _normal_matrices(linear) if equalized else _inverse_transposes(linear)
    normals = unit(normals)
    total = np.zeros_like(normals)
    for slot in range(bones.shape[1]):
        moved = np.einsum("nij,nj->ni", movers[bones[:, slot]], normals)
        total += weights[:, slot, None] * (unit(moved) if equalized else moved)
    dominant = transformed_normals(normals, dominant_transforms(bones, weights, matrices))
    kept = _length(total) > _VANISHED if equalized else _blended(total, movers, bones, weights)
    return np.where(kept, unit(total), dominant)


def blended_tangents(tangents: np.ndarray, bones: np.ndarray, weights: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Unit tangents by linear blending, chapter equations 3.9–3.10: t' = Σ_i w_i M_i t, divided by its length.

    tangents (N, 3) or (N, 4), as for ``transformed_tangents``; else as ``blended_normals``. They are perpendicular
    to normals moved by the blended matrices of the same vertices (``transformed_normals``), and not exactly to
    ``blended_normals``.
    """
    linear = np.asarray(matrices, dtype=np.float64)[..., :3]
    blended = (weight_matrix(bones, weights, len(linear)) @ linear.reshape(-1, 9)).reshape(-1, 3, 3)
    dominant = dominant_transforms(bones, weights, matrices)[..., :3]
    directions = unit(np.asarray(tangents, dtype=np.float64)[:, :3])
    kept = _blended(np.einsum("nij,nj->ni", blended, directions), linear, bones, weights)
    return transformed_tangents(tangents, np.where(kept[..., None], blended, dominant))


def transformed_normals(normals: np.ndarray, transforms: np.ndarray) -> np.ndarray:
    """Unit normals (N, 3) by the inverse transpose of each row's own transform (N, 3, 4) or (N, 3, 3).

    For ``vertex_transforms`` of any method, and for ``dominant_transforms``. Normals of a mirrored
    surface still point outward. A transform that flattens keeps the normals that it cannot determine.
    """
    normals = unit(normals)
    linear = np.asarray(transforms, dtype=np.float64)[..., :3]
    moved = np.einsum("nij,nj->ni", _normal_matrices(linear), normals)
    return np.where(_length(moved) > _VANISHED, unit(moved), normals)


def dominant_transforms(bones: np.ndarray, weights: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """(N, 3, 4) the transform of the bone with each vertex's largest weight, the first of equals."""
    if bones.shape[1] == 0:
        return np.broadcast_to(np.eye(3, 4), (len(bones), 3, 4)).copy()
    transforms = np.asarray(matrices, dtype=np.float64)[strongest_bones(bones, weights)]
    transforms[~weights.any(axis=1)] = np.eye(3, 4)
    return transforms


def vertex_normals(points: np.ndarray, triangles: np.ndarray, by_angle: bool = True) -> np.ndarray:
    """Unit normals (N, 3) of a deformed mesh from its faces, weighted by the angle at the vertex, as Blender does; or,
    not ``by_angle``, the plain mean of Kavan et al. 2010, section 5.

    points (N, 3), triangles (T, 3). Zero at vertices without faces, or whose faces have no area or cancel.
    """
    points = np.asarray(points, dtype=np.float64)
    corners = points[triangles]
    edges = np.roll(corners, -1, axis=1) - corners
    edges = unit(edges)
    faces = unit(np.cross(edges[:, 0], edges[:, 1]))
    cosines = np.clip(-np.einsum("tij,tij->ti", edges, np.roll(edges, 1, axis=1)), -1.0, 1.0)
    angles = np.arccos(cosines) if by_angle else np.ones(cosines.shape)
    contributions = angles[..., None] * faces[:, None]
    indices = np.asarray(triangles).ravel()
    totals = np.stack(
        [np.bincount(indices, contributions[..., axis].ravel(), minlength=len(points)) for axis in range(3)], axis=-1
    )
    return np.where(_length(totals) > _VANISHED, unit(totals), 0.0)


def normal_errors(actual: np.ndarray, expected: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """The angles (n,), in degrees, between the ``vertex_normals`` of two shapes (N, 3) of a mesh, triangles (T, 3).

    Without the vertices that have no normal in one of them, such as those without faces.
    """
    return angles_between(*(vertex_normals(points, triangles) for points in (actual, expected)))


def angles_between(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The angles (n,), in degrees, between unit vectors (N, 3), without those that are 0 in one of the two."""
    cosines = np.einsum("ni,ni->n", first, second)[first.any(axis=1) & second.any(axis=1)]
    return np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))


def transformed_tangents(tangents: np.ndarray, transforms: np.ndarray) -> np.ndarray:
    """Unit tangents by each row's own transform (N, 3, 4) or (N, 3, 3), perpendicular to the ``transformed_normals`` if
    they were perpendicular to the normals.

    tangents (N, 3), or (N, 4) with the sign of the bitangent, which flips where the transform mirrors. A tangent that
    the transform flattens to nothing stays.
    """
    tangents = np.asarray(tangents, dtype=np.float64)
    linear = _scaled_to_one(np.asarray(transforms, dtype=np.float64)[..., :3])
    directions = unit(tangents[:, :3])
    moved = np.einsum("nij,nj->ni", linear, directions)
    result = np.where(_length(moved) > _VANISHED, unit(moved), directions)
    if tangents.shape[1] == 3:
        return result
    signs = np.where(np.linalg.det(linear) < 0, -1.0, 1.0) * tangents[:, 3]
    return np.column_stack([result, signs])


def _normal_matrices(linear: np.ndarray) -> np.ndarray:
    """The matrices (..., 3, 3) that move normals: the inverse transposes of ``linear`` up to their scale.

    The cofactors, which exist for maps that flatten too, with the sign of the determinant; the largest is 1, or all are
    0 where a map flattens to a line or a point.
    """
    linear = _scaled_to_one(linear)
    cofactors = np.cross(np.roll(linear, -1, axis=-2), np.roll(linear, -2, axis=-2))
    # The cofactors of a map onto a line are rounding.
    cofactors = np.where(np.abs(cofactors).max(axis=(-2, -1), keepdims=True) > _ROUNDING, cofactors, 0.0)
    return np.where(np.linalg.det(linear) < 0, -1.0, 1.0)[..., None, None] * _scaled_to_one(cofactors)


def _inverse_transposes(linear: np.ndarray) -> np.ndarray:
    """(P, 3, 3) the inverse transposes of ``linear`` (P, 3, 3) but for one factor common to all, the largest entry 1.

    A map that flattens counts as one with a tiny thickness.
    """
    largest = np.abs(linear).max(axis=(-2, -1))
    scaled = _scaled_to_one(linear)
    cofactors = np.cross(np.roll(scaled, -1, axis=-2), np.roll(scaled, -2, axis=-2))
    cofactors = np.where(np.abs(cofactors).max(axis=(-2, -1), keepdims=True) > _ROUNDING, cofactors, 0.0)
    thickness = np.abs(np.linalg.det(scaled))
    size = np.abs(cofactors).max(axis=(-2, -1))
    # Logarithms: the sizes of several bones may differ by more than the range of numbers.
    usable = size > 0
    sizes = np.log(size[usable]) - np.log(np.maximum(thickness, _ROUNDING)[usable]) - np.log(largest[usable])
    factors = np.zeros(len(linear))
    factors[usable] = np.exp(sizes - sizes.max(initial=-np.inf))
    return _normal_matrices(linear) * factors[:, None, None]


def _blended(total: np.ndarray, parts: np.ndarray, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(N, 1) bool: whether more than rounding is left of sums ``total`` (N, 3) over ``parts`` (P, 3, 3)."""
    sizes = np.abs(parts).max(axis=(-2, -1))
    return _length(total) > _VANISHED * (weights * sizes[bones]).max(axis=1, initial=0.0)[:, None]


def _scaled_to_one(matrices: np.ndarray) -> np.ndarray:
    largest = np.abs(matrices).max(axis=(-2, -1), keepdims=True)
    return np.divide(matrices, largest, out=np.zeros_like(matrices), where=largest > 0)


def _length(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1, keepdims=True)
