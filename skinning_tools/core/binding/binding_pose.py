# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding in a pose other than the rest pose: the rest shape that the skinning takes to the shape that was bound.

The chapter on smooth skinning stores the inverse of each joint's matrix in the binding pose beside the skin, so that
each skin may have a binding pose of its own. Where all skins share one rest pose, as in Blender and in glTF with one
set of inverse matrices, the same follows from the other side: a vertex at x in the binding pose has the rest position
(Σ_j w_j M_j)⁻¹ x, with M_j from the rest pose to the binding pose (equation 3.3 solved for the untransformed vertex).
"""

from dataclasses import dataclass

import numpy as np

from ..deform import vertex_transforms

# Where a blend keeps less than this of a length that the vertex's strongest bone keeps, its inverse would throw the
# vertex far away, and rounding with it. For two bones half and half that is a bend of 168 degrees.
COLLAPSED = 0.1

# A bone whose shortest scale is less than this share of its longest is flat.
_FLAT = 1e-3

# Of the largest number in a matrix: transforms that differ by less are one, summed in another order.
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class PosedBinding:
    """bones, weights (N, K) as bound; to_rest (N, 3, 4) from where each vertex was before the binding to its place at
    rest; mended (n,): vertices that got their strongest bone alone, as their blend has no use; stuck (m,): vertices
    whose weights may not change, or whose bone has no use by itself."""

    bones: np.ndarray
    weights: np.ndarray
    to_rest: np.ndarray
    mended: np.ndarray
    stuck: np.ndarray


def bind_posed(
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: np.ndarray,
    before: np.ndarray,
    held: np.ndarray,
) -> PosedBinding:
    """The binding by ``bones`` and ``weights`` (N, K), convex, in the pose ``matrices`` (P, 3, 4) from the rest pose.

    before (N, 3, 4): the transforms that show the vertices now, the identity where nothing moves them; they stay where
    that shows them. held (N,) bool: vertices whose weights must not change. A vertex whose transform is the same as
    before keeps its rest position exactly, whatever its blend is. Vertices without weights follow no bone.
    """
    transforms, collapsed = _blended(bones, weights, matrices)
    same = _SAME * np.abs(matrices).max()
    changed = (np.abs(transforms - before) > same).any(axis=(1, 2))
    mended = np.flatnonzero(collapsed & changed & ~held)
    if len(mended):
        bones, weights = bones.copy(), weights.copy()
        strongest = weights[mended].argmax(axis=1)
        bones[mended] = bones[mended, strongest][:, None]
        weights[mended] = 0
        weights[mended, 0] = 1
        transforms[mended], collapsed[mended] = _blended(bones[mended], weights[mended], matrices)
        changed[mended] = (np.abs(transforms[mended] - before[mended]) > same).any(axis=(1, 2))
    stuck = np.flatnonzero(collapsed & changed)
    to_rest = np.tile(np.eye(3, 4), (len(bones), 1, 1))
    solvable = changed & ~collapsed
    linear, offset = transforms[solvable, :, :3], before[solvable].copy()
    offset[..., 3] -= transforms[solvable, :, 3]
    to_rest[solvable] = np.linalg.solve(linear, offset)
    return PosedBinding(bones, weights, to_rest, mended, stuck)


def _blended(bones: np.ndarray, weights: np.ndarray, matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, 3, 4) the blended transforms, and (N,) bool where they have no use: they flatten or turn inside out what the
    strongest bone of the vertex does not, or that bone flattens space itself."""
    transforms = vertex_transforms(np.zeros((len(bones), 3)), bones, weights, matrices)
    strongest = bones[np.arange(len(bones)), weights.argmax(axis=1)]
    sizes = np.linalg.svd(matrices[:, :, :3], compute_uv=False)
    usable = (sizes[:, 2] > _FLAT * sizes[:, 0])[strongest]
    follows = weights.any(axis=1)
    blends = follows & usable
    relative = transforms[blends, :, :3] @ np.linalg.inv(matrices[strongest[blends], :, :3])
    collapsed = follows & ~usable
    least = np.linalg.svd(relative, compute_uv=False)[:, 2]
    collapsed[blends] = (least < COLLAPSED) | (np.linalg.det(relative) <= 0)
    return transforms, collapsed
