# SPDX-License-Identifier: GPL-3.0-or-later
"""Soft tissue that hardly changes its volume, at rest under the places where bones hold it.

Finite elements, as static and geometrically nonlinear as those of the hand of Kry, James and Pai 2002, section 3:
cubes that fill a closed skin. Contact is not modeled. Arrays only.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from skinning_tools.core.binding.solid import filled

# Stiffness against change of shape, and of volume: Poisson's ratio 0.475 for small strains.
SHEAR, BULK = 1.0, 20.0

# Newton's method ends with a step below this share of a cell, or fails; a step is halved at most so many times. Once
# steps are below ``NEAR`` of a cell, the energy's own second derivatives do, and the end comes quickly.
SETTLED, STEPS, HALVINGS, NEAR = 1e-4, 100, 12, 0.25

# The corners of a cell.
_CORNERS = np.array(list(product((0, 1), repeat=3)))

_EVEN = np.zeros((3, 3, 3))
for _axes, _sign in (((0, 1, 2), 1), ((1, 2, 0), 1), ((2, 0, 1), 1), ((0, 2, 1), -1), ((2, 1, 0), -1), ((1, 0, 2), -1)):
    _EVEN[_axes] = _sign


@dataclass(frozen=True, eq=False)
class Tissue:
    """nodes (n, 3) at rest; cells (C, 8) the nodes of each cube, in the order of ``_CORNERS``; size: their edge.

    The energy of a cell of relative volume J is ``SHEAR`` (‖F‖²/2 − 3/2 − (J − 1)) + ``BULK`` (J − 1)²/2, where ‖F‖² is
    the mean over it and J its mean determinant (Smith, De Goes and Kim 2018, without the logarithm; the mean keeps
    cubes of fixed volume from being stiff).
    """

    nodes: np.ndarray
    cells: np.ndarray
    size: float

    @classmethod
    def filling(cls, points: np.ndarray, triangles: np.ndarray, size: float) -> "Tissue":
        """Cubes of edge ``size`` inside of closed triangles (T, 3) of ``points``, or through which these pass."""
        corners = points[triangles]
        steps = int(np.ceil(3 * np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max() / size))
        shares = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
        # A layer of air around.
        low = corners.min(axis=(0, 1)) - 1.5 * size
        voxels = np.unique(np.floor(((shares @ corners).reshape(-1, 3) - low) / size).astype(int), axis=0)
        surface = np.zeros(voxels.max(axis=0) + 2, bool)
        surface[tuple(voxels.T)] = True
        return cls._of(np.argwhere(filled(surface)), low, size)

    @classmethod
    def _of(cls, voxels: np.ndarray, low: np.ndarray, size: float) -> "Tissue":
        grid, cells = np.unique((voxels[:, None] + _CORNERS).reshape(-1, 3), axis=0, return_inverse=True)
        return cls(low + size * grid, cells.reshape(-1, 8), size)

    def only(self, kept: np.ndarray) -> tuple["Tissue", np.ndarray]:
        """The ``kept`` (C,) cells alone, and (n,) bool which of its nodes were those of other cells, too."""
        used, cells = np.unique(self.cells[kept], return_inverse=True)
        return Tissue(self.nodes[used], cells.reshape(-1, 8), self.size), np.isin(used, self.cells[~kept])

    @property
    def centers(self) -> np.ndarray:
        """(C, 3)."""
        return self.nodes[self.cells].mean(axis=1)

    def embedding(self, points: np.ndarray) -> csr_array:
        """(N, n) sparse: places of the nodes to places of what is at ``points`` at rest, each in its nearest cell."""
        nearest = cKDTree(self.centers).query(points)[1]
        local = (points - self.nodes[self.cells[nearest, 0]]) / self.size
        shares = np.where(_CORNERS, local[:, None], 1 - local[:, None]).prod(axis=2)
        rows = np.repeat(np.arange(len(points)), 8)
        return csr_array((shares.ravel(), (rows, self.cells[nearest].ravel())), (len(points), len(self.nodes)))

    def volumes(self, places: np.ndarray) -> np.ndarray:
        """(C,) volumes of the cells with the nodes at ``places`` (n, 3), as shares of those at rest."""
        return np.einsum("cai,cai->c", self._volume_slopes(places), places[self.cells]) / 3

    def energy(self, places: np.ndarray) -> float:
        """Relative to rest, for a cell's volume of 1."""
        here, volumes = places[self.cells] / self.size, self.volumes(places)
        shear = 0.5 * np.einsum("cai,ab,cbi->c", here, self._spread, here) - 1.5 - (volumes - 1)
        return float((SHEAR * shear + 0.5 * BULK * (volumes - 1) ** 2).sum())

    def forces(self, places: np.ndarray) -> np.ndarray:
        """(n, 3) the energy's derivatives."""
        here, slopes = places[self.cells] / self.size, self._volume_slopes(places)
        pressure = BULK * (self.volumes(places) - 1) - SHEAR
        found = np.zeros_like(places)
        values = SHEAR * np.einsum("ab,cbi->cai", self._spread, here) / self.size + pressure[:, None, None] * slopes
        np.add.at(found, self.cells, values)
        return found

    def settled(self, held: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(n, 3) the nodes at rest, from ``places`` (n, 3), where ``held`` (n,) nodes stay.

        Raises ArithmeticError if Newton's method does not get there."""
        free = np.flatnonzero(np.repeat(~held, 3))
        places, near = places.copy(), False
        energy, reach = self.energy(places), NEAR
        for _ in range(STEPS):
            slope = self.forces(places).ravel()[free]
            matrix = self._stiffness(places, convex=not near)[free][:, free].tocsc()
            solver = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
            step = np.zeros(places.shape)
            step.reshape(-1)[free] = -solver.solve(slope)
            length = np.abs(step).max() / self.size
            tries = (places + 0.5**halving * step for halving in range(HALVINGS))
            lower = next((tried for tried in tries if self.energy(tried) < energy), None)
            if length < SETTLED:
                return places if lower is None else lower
            if lower is not None:
                places, energy = lower, self.energy(lower)
            elif not near:
                raise ArithmeticError("The tissue does not settle: no step lowers its energy")
            else:
                reach /= 2
            # Beside its minimum the energy is convex as a whole, though not each cell's.
            near = lower is not None and length < reach
        raise ArithmeticError(f"The tissue does not settle in {STEPS} steps")

    def blended(self, shares_held: np.ndarray, held: np.ndarray) -> np.ndarray:
        """(n,) ``shares_held`` at the ``held`` nodes and as smooth as can be between them."""
        rows, columns = np.repeat(self.cells, 8, axis=1).ravel(), np.tile(self.cells, 8).ravel()
        values = np.tile(self._spread.ravel(), len(self.cells))
        matrix = coo_array((values, (rows, columns)), (len(self.nodes), len(self.nodes))).tocsr()
        found = np.where(held, shares_held, 0.0)
        found[~held] = splu(matrix[~held][:, ~held].tocsc()).solve(-(matrix @ found)[~held])
        return found

    def _volume_slopes(self, places: np.ndarray) -> np.ndarray:
        """(C, 8, 3) derivatives of the cells' relative volumes."""
        return np.einsum("cakbi,cbi->cak", self._volume_curves(places), places[self.cells], optimize=True) / 2

    def _volume_curves(self, places: np.ndarray) -> np.ndarray:
        """(C, 8, 3, 8, 3) second derivatives of the cells' relative volumes."""
        twice = np.einsum("abd,cdm->cabm", self._triples, places[self.cells], optimize=True) / self.size**3
        return np.einsum("cabm,ikm->caibk", twice, _EVEN, optimize=True)

    def _stiffness(self, places: np.ndarray, convex: bool) -> csr_array:
        """(3n, 3n) second derivatives of the energy; ``convex``: of each cell without those below zero."""
        slopes = self._volume_slopes(places).reshape(-1, 24)
        pressure = BULK * (self.volumes(places) - 1) - SHEAR
        blocks = pressure[:, None, None] * self._volume_curves(places).reshape(-1, 24, 24)
        blocks += SHEAR * np.kron(self._spread, np.eye(3)) / self.size**2
        if convex:
            values, vectors = np.linalg.eigh(blocks)
            blocks = (vectors * np.maximum(values, 0)[:, None]) @ vectors.swapaxes(1, 2)
        blocks += BULK * slopes[:, :, None] * slopes[:, None]
        unknowns = (3 * self.cells[:, :, None] + np.arange(3)).reshape(-1, 24)
        rows, columns = np.repeat(unknowns, 24, axis=1).ravel(), np.tile(unknowns, 24).ravel()
        return coo_array((blocks.ravel(), (rows, columns)), (3 * len(self.nodes),) * 2).tocsr()

    @cached_property
    def _slopes(self) -> np.ndarray:
        """(8, 8, 3) at Gauss's points of the unit cube: the gradients of the corners' shares."""
        found = np.empty((8, 8, 3))
        for row, point in enumerate(0.5 + (_CORNERS - 0.5) / np.sqrt(3)):
            shares = np.where(_CORNERS, point, 1 - point)
            for axis in range(3):
                found[row, :, axis] = np.where(_CORNERS[:, axis], 1, -1) * np.delete(shares, axis, axis=1).prod(axis=1)
        return found

    @cached_property
    def _spread(self) -> np.ndarray:
        """(8, 8) the form of the corners whose value is the mean of ‖F‖² in a unit cube."""
        return np.einsum("qai,qbi->ab", self._slopes, self._slopes) / 8

    @cached_property
    def _triples(self) -> np.ndarray:
        """(8, 8, 8) so that a sixth of its sum with the determinants of the corners (a, b, d) is the volume of a unit
        cube."""
        each = self._slopes
        return np.einsum("qai,qbj,qdk,ijk->abd", each, each, each, _EVEN, optimize=True) / 8
