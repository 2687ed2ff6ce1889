# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone transforms for given weights and rest pose by the normal equations (Kavan et al. 2010, section 4.2)."""

from copy import copy

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.linalg.lapack import dpocon

from ..dense import product, self_product
from ..grouping import members, pieces
from ..solve_memory import BLOCK_VERTICES
from .reduction import Rows

# Above this many columns X is stored sparse: four influences fill sixteen of them.
_WIDEST_DENSE = 640
_LARGEST_PSEUDO_INVERSE = 1200
# As a share of the largest eigenvalue: smaller ones count as zero.
_SINGULAR = 1e-12


def design_matrix(points: np.ndarray, bones: np.ndarray, weights: np.ndarray, bone_count: int) -> np.ndarray:
    """Xᵀ of some vertices, (n, 4P): weight times homogeneous rest position in the columns of each influence.

    points (n, 4), bones and weights (n, K). Dense, or a scipy CSR matrix where there are many bones.
    """
    count, influences = bones.shape
    values = weights[:, :, None] * points[:, None, :]
    if 4 * bone_count > _WIDEST_DENSE:
        columns = (4 * bones[:, :, None] + np.arange(4)).ravel()
        starts = np.arange(0, 4 * influences * count + 1, 4 * influences)
        return scipy.sparse.csr_matrix((values.ravel(), columns, starts), shape=(count, 4 * bone_count))
    matrix = np.zeros((count, bone_count, 4))
    rows = np.arange(count)
    for k in range(influences):
        matrix[rows, bones[:, k]] += values[:, k]
    return matrix.reshape(count, -1)


class NormalEquations:
    """moments S = X Xᵀ (4P, 4P) and products D = X Aᵀ (4P, d), summed over blocks of vertices."""

    def __init__(self, bone_count: int, dimension: int):
        self.bone_count = bone_count
        self.moments = np.zeros((4 * bone_count, 4 * bone_count))
        self.products = np.zeros((4 * bone_count, dimension))

    def __iadd__(self, other: "NormalEquations") -> "NormalEquations":
        self.moments += other.moments
        self.products += other.products
        return self

    def add_of_bones(self, bones: np.ndarray, other: "NormalEquations") -> None:
        """Add the equations of vertices that follow the ``bones`` (p,) only, which are all that ``other`` has."""
        rows = (4 * bones[:, None] + np.arange(4)).ravel()
        self.moments[np.ix_(rows, rows)] += other.moments
        self.products[rows] += other.products

    def divided(self, scale: np.ndarray) -> "NormalEquations":
        """The equations of data whose columns are divided by ``scale`` (d,), such as the importance of frames: a
        rotation is one only without it."""
        divided = NormalEquations(self.bone_count, 0)
        divided.moments, divided.products = self.moments, self.products / scale
        return divided

    @classmethod
    def of_regions(cls, points: np.ndarray, source: Rows, labels: np.ndarray, bone_count: int) -> "NormalEquations":
        """The equations where each vertex has one bone, ``labels`` (N,): one block a bone, no product between bones.

        points (N, 4); source: the data of the vertices.
        """
        equations = cls(bone_count, source.rows(slice(0, 1)).shape[1])
        for bone, vertices in enumerate(members(labels, bone_count)):
            part = slice(4 * bone, 4 * bone + 4)
            for few in pieces(vertices, BLOCK_VERTICES):
                equations.moments[part, part] += self_product(points[few])
                equations.products[part] += product(points[few].T, source.rows(few))
        return equations

    @classmethod
    def of_one_bone(cls, points: np.ndarray, data: np.ndarray) -> "NormalEquations":
        """The equations of a bone that moves vertices alone: points (n, 4), data (n, d)."""
        equations = cls(1, data.shape[1])
        equations.moments, equations.products = self_product(points), product(points.T, data)
        return equations

    def add(
        self, design: np.ndarray | scipy.sparse.csr_matrix, data: np.ndarray, importance: np.ndarray | None = None
    ) -> None:
        """design (n, 4P) from ``design_matrix``, data (n, d). importance (n,): how often each vertex counts."""
        counted = design
        if importance is not None:
            root = scipy.sparse.diags(np.sqrt(importance))
            design = root @ design
            counted = root @ design
        if scipy.sparse.issparse(design):
            self.moments += (design.T @ design).toarray()
            self.products += counted.T @ data
        else:
            self.moments += self_product(design)
            self.products += product(counted.T, data)

    def of(self, products: np.ndarray) -> "NormalEquations":
        """The same moments with other ``products`` (4P, d)."""
        other = copy(self)
        other.products = products
        return other

    @property
    def bone_moments(self) -> np.ndarray:
        """Σ w v vᵀ of each bone alone, (P, 4, 4): as weights sum to one, the sum of a bone's row of blocks of S."""
        blocks = self.moments.reshape(self.bone_count, 4, self.bone_count, 4)
        moments = blocks.sum(axis=2)
        return 0.5 * (moments + moments.transpose(0, 2, 1))

    def squared_error(self, transforms: np.ndarray) -> float:
        """‖TX − A‖² − ‖A‖² for Tᵀ (4P, d)."""
        return float(np.vdot(transforms, product(self.moments, transforms)) - 2.0 * np.vdot(transforms, self.products))

    def solve(self, prior: np.ndarray, hold: float) -> np.ndarray:
        """Tᵀ (4P, d) that minimizes ‖TX − A‖² + hold · (distance from ``prior`` over each bone's own region).

        Cholesky; where the equations are singular all the same, the pseudo-inverse, or with very many bones, for which
        that would take minutes, a firmer hold. Either way the correction of
        ``prior`` is solved for, so that what the data leave open (the third direction of a flat piece of cloth, a bone
        without vertices) stays as it is there.
        """
        system = self.moments.copy()
        blocks = system.reshape(self.bone_count, 4, self.bone_count, 4)
        bones = np.arange(self.bone_count)
        blocks[bones, :, bones, :] += hold * self._regions()
        right = self.products - product(self.moments, prior)
        try:
            factor = scipy.linalg.cho_factor(system, lower=True, check_finite=False)
            if hold == 0 and _is_singular(factor[0], system):
                raise np.linalg.LinAlgError("singular but for rounding")
        except np.linalg.LinAlgError:
            if len(system) > _LARGEST_PSEUDO_INVERSE and hold > 0:
                return self.solve(prior, 100.0 * hold)
            return prior + product(scipy.linalg.pinvh(system, rtol=_SINGULAR), right)
        return prior + scipy.linalg.cho_solve(factor, right, check_finite=False)

    def _regions(self) -> np.ndarray:
        """Moments (P, 4, 4) of a round cloud as heavy, as large and in the same place as each bone's vertices."""
        moments = self.bone_moments
        mass = moments[:, 3, 3]
        typical = max(float(mass.mean()), float(np.finfo(float).tiny))
        center = moments[:, :3, 3] / np.maximum(mass, 1e-12 * typical)[:, None]
        spread = np.einsum("pii->p", moments[:, :3, :3]) - mass * np.einsum("pi,pi->p", center, center)
        # A bone of one vertex still has a size: a thousandth of the mesh.
        spread = np.maximum(spread / 3.0, 1e-6 * mass) + 1e-9 * typical
        mass = mass + 1e-3 * typical
        regions = np.zeros_like(moments)
        regions[:, :3, :3] = spread[:, None, None] * np.eye(3)
        regions[:, :3, :3] += mass[:, None, None] * center[:, :, None] * center[:, None]
        regions[:, :3, 3] = regions[:, 3, :3] = mass[:, None] * center
        regions[:, 3, 3] = mass
        return regions


def _is_singular(factor: np.ndarray, system: np.ndarray) -> bool:
    """Whether a Cholesky ``factor``, lower, is of a ``system`` that only rounding keeps from being singular."""
    norm = np.abs(system).sum(axis=0).max()
    return dpocon(factor, norm, uplo="L")[0] < _SINGULAR


def to_rows(transforms: np.ndarray) -> np.ndarray:
    """Bone matrices (F, P, 3, 4) as Tᵀ (4P, 3F)."""
    frames, bones = transforms.shape[:2]
    return transforms.transpose(1, 3, 0, 2).reshape(4 * bones, 3 * frames)


def from_rows(rows: np.ndarray) -> np.ndarray:
    """Tᵀ (4P, 3F) as bone matrices (F, P, 3, 4)."""
    bones, frames = len(rows) // 4, rows.shape[1] // 3
    return np.ascontiguousarray(rows.reshape(bones, 4, frames, 3).transpose(2, 0, 3, 1))


def reduced_equations(equations: NormalEquations, start: np.ndarray, free: np.ndarray) -> NormalEquations:
    """The equations of the ``free`` bones alone, the others moving as ``start`` (F, P, 3, 4) has them."""
    chosen = np.repeat(free, 4)
    part = NormalEquations(int(free.sum()), equations.products.shape[1])
    part.moments = np.ascontiguousarray(equations.moments[np.ix_(chosen, chosen)])
    explained = product(np.ascontiguousarray(equations.moments[np.ix_(chosen, ~chosen)]), to_rows(start)[~chosen])
    part.products = equations.products[chosen] - explained
    return part
