# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights that bring vertices to given posed positions (direct manipulation, Mohr, Tokheim & Gleicher 2003).

Each bone predicts a position for a vertex; the weights are the convex combination of these that comes closest to the
artist's position. Where the poses do not determine the weights, the previous weights of the vertex decide.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from ..decomposition.bone_model import BoneModel, homogeneous
from ..decomposition.transforms import to_rows
from ..decomposition.vertex_step import best_single_bones, choose_weights
from ..decomposition.weights import fit_convex_general
from ..errors import BadSettings, BadWeights
from ..progress import Progress, checkpoint, ignore
from .influence_rows import tidy_influences

# Beyond this many bones, a rough choice of bones comes first: the cost of the exact fit grows with their cube.
_MOST_CANDIDATES = 12
_ROUGH_INFLUENCES = 8
_ROUGH_PASSES = 6
# Where the fit uses too many bones, it is tried without each of this many of the strongest; weaker ones are dropped.
_MOST_TRIED = 7
_BLOCK_BYTES = 2**25

# How strongly weights are held to their previous values, as a share of the spread of the predictions: the fit gives up
# at most half of this times the spread, and less with each further round. Predictions nearly in one plane take many
# rounds.
_HOLD = 1e-4
_ROUNDS = 2
_MOST_ROUNDS = 60
# Predictions closer than this share of the mesh and its motion are one: matrices come in single precision.
_NOISE = 1e-6
# A selection of bones that stays closer to the previous weights may lie farther from the target by this share.
_SAME = 1e-5
_LEAST_SHARE = 1e-9  # a weight below this is rounding
# A hull thinner than this share of its extent counts as flat.
_THIN = 1e-6


@dataclass(frozen=True, eq=False)
class WeightFit:
    """bones int32 and weights float64 (N, K), rows that sum to 1; positions (F, N, 3) that they give by linear blend
    skinning; residuals (F, N): distances from the targets."""

    bones: np.ndarray
    weights: np.ndarray
    positions: np.ndarray
    residuals: np.ndarray


def fit_weights(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    matrices: np.ndarray,
    targets: np.ndarray,
    *,
    candidates: np.ndarray | None = None,
    max_influences: int = 4,
    locked: np.ndarray | None = None,
    progress: Progress = ignore,
) -> WeightFit:
    """Convex weights for ``targets`` (F, N, 3), or (N, 3) in one pose, with ``matrices`` (F, P, 3, 4) or (P, 3, 4).

    rest (N, 3) and the present bones and weights (N, K) of the vertices to fit, which all F poses count for alike.
    candidates: indices of the bones that may move the vertices; None leaves each to those it has. Weights of the bones
    ``locked`` (P,) stay; other bones than the candidates lose theirs. Where several weights come equally close, those
    nearest to the present ones are taken. At most ``max_influences`` of a row are above zero.
    Raises BadSettings where no bone is left to fit, BadWeights on targets and matrices that do not fit or are no
    numbers; Cancelled.
    """
    rest = np.asarray(rest, dtype=np.float64)
    matrices, targets = np.asarray(matrices, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    matrices, targets = matrices.reshape(-1, *matrices.shape[-3:]), targets.reshape(-1, *targets.shape[-2:])
    if targets.shape != (len(matrices), len(rest), 3):
        raise BadWeights(f"Targets {targets.shape} do not fit {len(matrices)} poses of {len(rest)} vertices")
    if not (np.isfinite(matrices).all() and np.isfinite(targets).all()):
        raise BadWeights("A bone's matrix or a vertex's target is not a number (NaN or infinite)")
    locked = np.zeros(matrices.shape[1], bool) if locked is None else np.asarray(locked, dtype=bool)
    open_bones = None if candidates is None else np.setdiff1d(candidates, np.flatnonzero(locked))
    if open_bones is not None and len(open_bones) == 0:
        raise BadSettings("No bone is left to fit. Choose at least one whose vertex group is not locked")
    bones, weights = tidy_influences(bones, weights, max(np.shape(bones)[1], 1))
    poses = _Poses(rest, matrices, targets)
    width = len(open_bones) if open_bones is not None else bones.shape[1]
    block = max(_BLOCK_BYTES // (8 * (3 * len(matrices) * (width + 1) + 4 * min(width, _MOST_CANDIDATES) ** 2)), 1)
    done = []
    for start in range(0, max(len(rest), 1), block):
        part = slice(start, start + block)
        done.append(_fit_block(poses.part(part), bones[part], weights[part], open_bones, locked, max_influences))
        checkpoint(progress, min(start + block, len(rest)) / max(len(rest), 1), "Fitting weights")
    bones, weights = (np.concatenate(parts) for parts in zip(*done, strict=True))
    positions = poses.blended(bones, weights)
    return WeightFit(bones, weights, positions, np.linalg.norm(positions - targets, axis=-1))


def reachable_hull(predictions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions that a vertex can reach in a pose: corners (C, 3), and edges (E, 2), pairs of corners, of a convex
    hull.

    predictions (M, 3): where each of its bones alone would put it (``bone_predictions``). Edges run between corners,
    not across flat sides. Predictions in a plane give its outline, in a line one edge, at one place none.
    """
    points = np.asarray(predictions, dtype=np.float64).reshape(-1, 3)
    if len(points) == 0:
        return points, np.zeros((0, 2), np.int64)
    offsets = points - points.mean(axis=0)
    size = np.abs(points).max() + np.abs(offsets).max()
    # Coordinates along the principal axes, each stretched to one: the hull has the same corners and edges.
    values, axes = np.linalg.svd(offsets, full_matrices=False)[1:]
    flat = max(values[0] * _THIN, size * 1e-12)
    dimension = int(np.count_nonzero(values > flat))
    along = offsets @ axes[:dimension].T / values[:dimension]
    if dimension == 0:
        return points[:1], np.zeros((0, 2), np.int64)
    if dimension == 1:
        return points[[np.argmin(along[:, 0]), np.argmax(along[:, 0])]], np.array([[0, 1]])
    hull = ConvexHull(along)
    if dimension == 2:
        pairs = hull.simplices
    else:
        # The edge across from a corner is one of the hull where its two faces are not in one plane.
        bent = np.abs(hull.equations[:, None] - hull.equations[hull.neighbors]).max(axis=-1) > _THIN
        across = ((1, 2), (0, 2), (0, 1))
        pairs = np.concatenate([hull.simplices[bent[:, k]][:, ends] for k, ends in enumerate(across)])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    corners, pairs = np.unique(pairs, return_inverse=True)
    return points[corners], pairs.reshape(-1, 2)


def bone_predictions(rest: np.ndarray, bones: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """(..., M, 3): where each of ``bones`` (..., M) alone would put points ``rest`` (..., 3); matrices (P, 3, 4)."""
    chosen = np.asarray(matrices, dtype=np.float64)[bones]
    return np.einsum("...mij,...j->...mi", chosen[..., :3], np.asarray(rest, dtype=np.float64)) + chosen[..., 3]


class _Poses:
    """Vertices (N, 3) at rest, bones' matrices (F, P, 3, 4) and targets (F, N, 3)."""

    def __init__(self, rest: np.ndarray, matrices: np.ndarray, targets: np.ndarray, noise: float | None = None):
        self.rest, self.matrices, self.targets = rest, matrices, targets
        extent = np.abs(rest).max(initial=0.0) + np.abs(targets).max(initial=0.0)
        self.noise = _NOISE * extent if noise is None else noise

    def part(self, part: slice | np.ndarray) -> "_Poses":
        return _Poses(self.rest[part], self.matrices, self.targets[:, part], self.noise)

    def predictions(self, bones: np.ndarray) -> np.ndarray:
        """(m, 3F, n) where ``bones`` (n, m) alone would put the vertices."""
        rows = [bone_predictions(self.rest, bones, frame) for frame in self.matrices]
        return np.ascontiguousarray(np.concatenate(rows, axis=-1).transpose(1, 2, 0))

    def promising(
        self, goal: np.ndarray, open_bones: np.ndarray, bones: np.ndarray, own: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bones (n, m) worth an exact fit, and which of them are usable (n, m), the others being repetitions: those
        that a rough choice among ``open_bones`` takes for ``goal`` (F, n, 3), then ``bones`` with weights ``own``."""
        model = BoneModel(to_rows(self.matrices[:, open_bones]))
        points, data = homogeneous(self.rest), goal.transpose(1, 0, 2).reshape(len(bones), -1)
        chosen = np.repeat(best_single_bones(model, data, points)[:, None], _ROUGH_INFLUENCES, axis=1)
        weights = np.tile(np.arange(_ROUGH_INFLUENCES) == 0, (len(bones), 1)).astype(np.float64)
        products = model.data_products(data)
        for _ in range(_ROUGH_PASSES):
            chosen, weights, _ = choose_weights(model, products, points, chosen, weights)
        places = np.hstack([open_bones[chosen], bones])
        usable = np.hstack([weights, own]) > 0
        for slot in range(1, places.shape[1]):
            usable[:, slot] &= ~((places[:, :slot] == places[:, slot, None]) & usable[:, :slot]).any(axis=1)
        return places, usable

    def blended(self, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(F, n, 3); slot by slot, so that memory does not grow with the number of influences."""
        result = np.zeros_like(self.targets)
        for slot in range(bones.shape[1]):
            for frame, matrices in zip(result, self.matrices, strict=True):
                frame += weights[:, slot, None] * bone_predictions(self.rest, bones[:, slot, None], matrices)[:, 0]
        return result


def _fit_block(
    poses: _Poses, bones: np.ndarray, weights: np.ndarray, open_bones: np.ndarray | None, locked: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bones and weights (n, at most ``most``) of one block of vertices."""
    fixed = np.where(locked[bones], weights, 0.0)
    free = 1.0 - fixed.sum(axis=1)
    room = most - np.count_nonzero(fixed, axis=1)
    goal = (poses.targets - poses.blended(bones, fixed)) / np.where(free > _LEAST_SHARE, free, 1.0)[:, None]
    own = np.where(locked[bones], 0.0, weights)
    if open_bones is None:
        places, usable = bones, own > 0
    elif len(open_bones) <= _MOST_CANDIDATES:
        places = np.tile(open_bones, (len(bones), 1))
        usable = np.ones(places.shape, bool)
    else:
        places, usable = poses.promising(goal, open_bones, bones, np.where(np.isin(bones, open_bones), own, 0.0))
    present = np.zeros(places.shape)
    for slot in range(bones.shape[1]):
        present += np.where((places == bones[:, slot, None]) & usable, own[:, slot, None], 0.0)
    fitting = (free > _LEAST_SHARE) & (room > 0) & usable.any(axis=1)
    goal = goal.transpose(0, 2, 1).reshape(-1, len(bones))
    new_bones, new_weights = np.hstack([bones, places]), np.hstack([weights, np.zeros(places.shape)])
    new_weights[fitting, : bones.shape[1]] = fixed[fitting]
    for slots in np.unique(room[fitting]):
        rows = np.flatnonzero(fitting & (room == slots))
        problem = _Convex.of(poses.part(rows), places[rows], goal[:, rows], present[rows], usable[rows])
        new_weights[rows, bones.shape[1] :] = (problem.few(int(slots)) * free[rows]).T
    return tidy_influences(new_bones, new_weights, most, locked)


@dataclass(frozen=True, eq=False)
class _Convex:
    """The closest convex combinations, for n vertices with m bones each.

    offsets (m, 3F, n): predictions from their mean, which keeps digits where they lie close together; goal (3F, n) from
    there, too; present (m, n) the weights to stay near to, usable (m, n) the bones that may be taken; size (n,) of the
    predictions' spread, hold (n,) how strongly the weights stay, same (n,): distances that differ by less are the same.
    """

    offsets: np.ndarray
    goal: np.ndarray
    present: np.ndarray
    usable: np.ndarray
    size: np.ndarray
    hold: np.ndarray
    same: np.ndarray

    @classmethod
    def of(
        cls, poses: "_Poses", places: np.ndarray, goal: np.ndarray, present: np.ndarray, usable: np.ndarray
    ) -> "_Convex":
        """goal (3F, n); places, present and usable (n, m)."""
        points, present, usable = poses.predictions(places), present.T, usable.T
        center = (points * usable[:, None]).sum(axis=0) / usable.sum(axis=0)
        offsets = points - center
        squared = np.where(usable, np.einsum("mdn,mdn->mn", offsets, offsets), 0.0)
        size = np.sqrt(squared.max(axis=0)) + poses.noise
        present = present / np.where(present.any(axis=0), present.sum(axis=0), 1.0)
        hold, same = np.maximum((_HOLD * size) ** 2, poses.noise**2), _SAME * size + poses.noise
        return cls(offsets, goal - center, present, usable, size, hold, same)

    def few(self, most: int) -> np.ndarray:
        """Weights (m, n), columns that sum to 1 with at most ``most`` above zero."""
        closest = self._closest()
        near = self._near(closest)
        too_many = np.flatnonzero(np.count_nonzero(near > _LEAST_SHARE, axis=0) > most)
        if len(too_many):
            part = self._columns(too_many)
            # The weights near the present ones, if they come as close to the target with fewer bones.
            choices = [part._reduced(weights[:, too_many], most) for weights in (near, closest)]
            distances = [part._distances(weights) for weights in choices]
            as_close = distances[0] <= distances[1] + _SAME * part.size
            near[:, too_many] = np.where(as_close, *choices)
        return near

    def _reduced(self, weights: np.ndarray, most: int) -> np.ndarray:
        """The same problem with only ``most`` bones (m, n): the bone that is needed least is removed, again and
        again."""
        columns = np.arange(weights.shape[1])
        places = np.argsort(-weights, axis=0, kind="stable")
        used = max(int(np.count_nonzero(weights > _LEAST_SHARE, axis=0).max()), most)
        places = places[: max(min(used, _MOST_TRIED), most)]
        for count in range(len(places), most, -1):
            best = np.full(len(columns), np.inf)
            kept = places[1:].copy()
            for gone in range(count):
                others = np.delete(places, gone, axis=0)
                part = self._slots(others)
                distances = part._distances(part._closest())
                better = distances < best - _SAME * self.size
                best[better], kept[:, better] = distances[better], others[:, better]
            places = kept
        part = self._slots(places)
        result = np.zeros(weights.shape)
        result[places, columns] = part._near(part._closest())
        return result

    def _closest(self) -> np.ndarray:
        """The weights (m, n) that come closest."""
        return fit_convex_general(self._gram(), self._along(self.goal))[0]

    def _near(self, closest: np.ndarray) -> np.ndarray:
        """Among the weights that come as close as ``closest`` (m, n), those nearest to the present ones."""
        gram, along = self._gram(), self._along(np.einsum("mdn,mn->dn", self.offsets, closest))
        diagonal = np.arange(len(gram))
        gram[diagonal, diagonal] += self.hold
        near, rows, least = self.present.copy(), np.arange(len(self.size)), self._distances(closest)
        for number in range(1, _MOST_ROUNDS + 1):
            near[:, rows] = fit_convex_general(gram[..., rows], along[:, rows] + self.hold[rows] * near[:, rows])[0]
            if number >= _ROUNDS:
                part = self._columns(rows)
                rows = rows[part._distances(near[:, rows]) > least[rows] + part.same]
                if not len(rows):
                    break
        return near

    def _gram(self) -> np.ndarray:
        return np.einsum("idn,jdn->ijn", self.offsets, self.offsets)

    def _along(self, goal: np.ndarray) -> np.ndarray:
        """(m, n) products with ``goal`` (3F, n); a slope that no gain outweighs keeps weight off barred bones."""
        slope = 1e3 * self.size * (self.size + np.linalg.norm(goal, axis=0))
        return np.einsum("idn,dn->in", self.offsets, goal) - np.where(self.usable, 0.0, slope)

    def _distances(self, weights: np.ndarray) -> np.ndarray:
        return np.linalg.norm(np.einsum("mdn,mn->dn", self.offsets, weights) - self.goal, axis=0)

    def _columns(self, columns: np.ndarray) -> "_Convex":
        """The same problem for some of the vertices."""
        return _Convex(*(getattr(self, name)[..., columns] for name in self.__dataclass_fields__))

    def _slots(self, places: np.ndarray) -> "_Convex":
        """The same problem with only the bones at ``places`` (k, n)."""
        columns = np.arange(places.shape[1])
        offsets = np.ascontiguousarray(np.moveaxis(self.offsets[places, :, columns], -1, 1))
        present, usable = self.present[places, columns], self.usable[places, columns]
        return _Convex(offsets, self.goal, present, usable, self.size, self.hold, self.same)
