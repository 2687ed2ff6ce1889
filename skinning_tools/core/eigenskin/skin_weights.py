# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of the skin that suit its corrections (EigenSkin, section 2.1, which leaves them to future work).

Weights that come closest to the examples alone are no better: what they leave has more components. Here weights and
components take turns: the first components of each joint's displacements, added to the rest pose, are moved by each
bone of a vertex, and the weights are the convex combination that comes closest to the examples. What the new weights
leave has new components.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from .. import dense
from ..decomposition.weights import fit_convex_general
from ..geometry import diagonal
from ..progress import Progress, checkpoint, ignore
from .checks import check_examples
from .displacements import rest_displacements
from .pose_space import is_turned
from .types import BadExamples, Examples, Rig

_ROUNDS = 20

# A round that lowers the error by less than this share is the last.
_LEAST_GAIN = 0.005

# How strongly weights are held to the present ones, as a share of the squared spread of the bones' predictions.
_HOLD = 1e-3

# Of the mesh's extent: vertices that no example moves away from linear blending keep their weights.
_NOTICEABLE = 1e-5


def corrected_weights(
    rig: Rig,
    examples: Examples,
    components: int = 3,
    *,
    locked: np.ndarray | None = None,
    progress: Progress = ignore,
) -> tuple[np.ndarray, np.ndarray]:
    """Convex weights (N, K) on the present ``rig.bones`` that leave the least beside ``components`` of each joint; and
    the errors (R,) of the rounds, the first of the present weights, root mean square over examples and vertices.

    Only examples that pose a single joint count. Weights of bones ``locked`` (P,) stay. Raises BadExamples, Cancelled.
    """
    check_examples(rig, examples)
    moving = is_turned(examples.rotations)
    rows = np.flatnonzero(moving.sum(axis=1) == 1)
    if not len(rows):
        raise BadExamples(
            "No example poses a single joint, so the weights cannot be fitted. Add examples that turn one joint and "
            "leave the others at rest"
        )
    joints = np.argmax(moving[rows], axis=1)
    groups = [np.flatnonzero(joints == joint) for joint in np.unique(joints)]
    problem = _Problem(rig, examples, rows, groups, components, locked)
    weights = best = rig.weights.astype(np.float64)
    errors: list[float] = []
    for done in range(_ROUNDS):
        corrected = problem.corrected(weights)
        errors.append(problem.error(weights, corrected))
        if errors[-1] <= min(errors):
            best = weights
        if len(errors) > 1 and errors[-1] > (1 - _LEAST_GAIN) * errors[-2]:
            break
        weights = problem.fitted(weights, corrected)
        checkpoint(progress, (done + 1) / _ROUNDS, "Fitting Weights")
    return best, np.array(errors)


class _Problem:
    """rows of the examples, in groups of one joint each."""

    def __init__(
        self,
        rig: Rig,
        examples: Examples,
        rows: np.ndarray,
        groups: Sequence[np.ndarray],
        components: int,
        locked: np.ndarray | None,
    ):
        self.rig, self.groups, self.components = rig, groups, components
        # A slot without weight repeats a bone: it stays without.
        self.free = rig.weights > 0
        if locked is not None:
            self.free &= ~np.asarray(locked, bool)[rig.bones]
        self.matrices = [np.asarray(examples.matrices[row], dtype=np.float64) for row in rows]
        self.shapes = [np.asarray(examples.shapes[row], dtype=np.float64) for row in rows]
        found = rest_displacements(rig.rest, rig.bones, rig.weights, self.matrices, self.shapes).values
        size = diagonal(rig.rest)
        self.open = np.flatnonzero(np.linalg.norm(found, axis=2).max(axis=0) > _NOTICEABLE * size)
        # One free weight alone is what the others leave.
        self.fitted_rows = np.flatnonzero(np.count_nonzero(self.free[self.open], axis=1) > 1)

    def corrected(self, weights: np.ndarray) -> np.ndarray:
        """(E, n, 3) the rest pose with the components, in each example."""
        rig = self.rig
        found = rest_displacements(
            rig.rest[self.open],
            rig.bones[self.open],
            weights[self.open],
            self.matrices,
            [shape[self.open] for shape in self.shapes],
        ).values.astype(np.float64)
        for group in self.groups:
            flat = found[group].reshape(len(group), -1)
            _, vectors = np.linalg.eigh(dense.product(flat, flat.T))
            kept = vectors[:, -self.components :]
            found[group] = (kept @ dense.product(kept.T, flat)).reshape(found[group].shape)
        return rig.rest[self.open] + found

    def predictions(self, corrected: np.ndarray) -> Iterator[np.ndarray]:
        """Example by example, where each bone alone puts the vertices: (n, K, 3)."""
        bones = self.rig.bones[self.open]
        for matrices, points in zip(self.matrices, corrected, strict=True):
            moved = matrices[bones]
            yield np.einsum("nkij,nj->nki", moved[..., :3], points) + moved[..., 3]

    def error(self, weights: np.ndarray, corrected: np.ndarray) -> float:
        squares = 0.0
        for predicted, shape in zip(self.predictions(corrected), self.shapes, strict=True):
            left = np.einsum("nk,nki->ni", weights[self.open], predicted) - shape[self.open]
            squares += float(np.vdot(left, left))
        return float(np.sqrt(squares / (len(self.shapes) * len(self.rig.rest))))

    def fitted(self, weights: np.ndarray, corrected: np.ndarray) -> np.ndarray:
        """The weights (N, K) that come closest with these corrections."""
        rows, count = self.fitted_rows, weights.shape[1]
        if not len(rows):
            return weights
        vertices = self.open[rows]
        present = weights[vertices]
        gram, data = np.zeros((len(present), count, count)), np.zeros((len(present), count))
        for predicted, shape in zip(self.predictions(corrected), self.shapes, strict=True):
            offsets = predicted[rows] - shape[vertices, None]
            gram += np.einsum("nki,nli->nkl", offsets, offsets)
        spread = np.einsum("nkk->n", gram) / count
        held = _HOLD * spread
        free = self.free[vertices]
        fixed, share = np.where(free, 0.0, present), np.where(free, present, 0.0).sum(axis=1, keepdims=True)
        data -= np.einsum("nkl,nl->nk", gram, fixed)
        gram += held[:, None, None] * np.eye(count)
        data += held[:, None] * present
        gram += np.where(free, 0.0, 1e3 * spread[:, None])[:, :, None] * np.eye(count)
        result = weights.copy()
        # In units of the share that the fixed weights leave, the free ones are convex.
        found, _ = fit_convex_general(np.moveaxis(gram, 0, -1), (data / share).T)
        found = np.where(free, found.T, 0.0)
        result[vertices] = fixed + share * found / found.sum(axis=1, keepdims=True)
        return result
