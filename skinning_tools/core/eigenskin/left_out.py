# SPDX-License-Identifier: GPL-3.0-or-later
"""How well examples predict each other, before anything is built, and the pose that is worth adding next."""

from dataclasses import dataclass, replace

import numpy as np

from .. import dense
from ..progress import Progress, ignore
from .checks import check_examples
from .displacements import rest_displacements
from .fewer import fewer_functions
from .interpolation import RADIUS
from .pose_space import REST, PoseSpace, hinge_axis, is_turned
from .types import BadExamples, Examples, Rig

# Rotations of a joint among which the next pose is chosen.
_CANDIDATES = 2000


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What the interpolation from all other examples misses at each example that poses a single joint.

    rows (M,): indices of these examples. missed, displaced (M,): lengths of the missed displacement of the rest pose
    and of the whole one, over all vertices. joint: the one of which most is missed; rotation (4,): the pose of that
    joint, within its examples' range, that they say least about.
    """

    rows: np.ndarray
    missed: np.ndarray
    displaced: np.ndarray
    joint: int
    rotation: np.ndarray

    @property
    def relative(self) -> float:
        """The missed displacement divided by the whole one, over all these examples; 0 if nothing is displaced."""
        displaced = np.linalg.norm(self.displaced)
        return float(np.linalg.norm(self.missed) / displaced) if displaced > 0 else 0.0


def left_out_errors(
    rig: Rig, examples: Examples, radius: float = 0.0, progress: Progress = ignore, *, basis_functions: int = 0
) -> LeftOut:
    """Predict each example from the others of its joint.

    radius: of the radial functions, radians, 0 for the usual one. basis_functions: see ``EigenSkinSettings``; they are
    chosen again for each example, without it. Raises BadExamples, Cancelled.
    """
    check_examples(rig, examples)
    moving = is_turned(examples.rotations)
    rows = np.flatnonzero(moving.sum(axis=1) == 1)
    if not len(rows):
        raise BadExamples(
            "No example poses a single joint, so the error cannot be estimated. Add examples that turn one joint and "
            "leave the others at rest"
        )
    mapped = rest_displacements(
        rig.rest,
        rig.bones,
        rig.weights,
        [examples.matrices[row] for row in rows],
        [examples.shapes[row] for row in rows],
        progress=progress,
    )
    joints = np.argmax(moving[rows], axis=1)
    missed, displaced = np.zeros(len(rows)), np.linalg.norm(mapped.values.reshape(len(rows), -1), axis=1)
    spaces = {}
    for joint in np.unique(joints).tolist():
        own = np.flatnonzero(joints == joint)
        centers = np.concatenate([REST[None], examples.rotations[rows[own], joint]])
        spaces[joint] = PoseSpace(centers, hinge_axis(centers), radius or RADIUS)
        values = mapped.values[own].reshape(len(own), -1).astype(np.float64)
        squares = dense.product(values, values.T)
        for place, row in enumerate(own):
            missed[row] = _missed(spaces[joint], squares, place, basis_functions)
    worst = max(spaces, key=lambda joint: float(np.linalg.norm(missed[joints == joint])))
    return LeftOut(rows, missed, displaced, worst, _least_known(spaces[worst]))


def _missed(space: PoseSpace, gram: np.ndarray, place: int, most: int) -> float:
    """What the function through, or of ``most`` terms near, all other observations misses at the one at ``place``.
    gram (M, M): inner products of all."""
    others = np.delete(np.arange(len(gram)), place)
    if not len(others):
        return float(np.sqrt(gram[place, place]))
    known = replace(space, centers=np.delete(space.centers, place + 1, axis=0))
    fitted = fewer_functions(known, gram[np.ix_(others, others)], most) if most else None
    turned = space.centers[place + 1 : place + 2]
    if fitted is not None:
        shares = fitted.space.features(turned) @ fitted.solver
    else:
        shares = known.features(turned) @ known.weights(np.eye(len(others)))
    signed = np.ones(len(gram))
    signed[others] = -shares[0]
    return float(np.sqrt(max(signed @ gram @ signed, 0.0)))


def _least_known(space: PoseSpace) -> np.ndarray:
    """(4,) the rotation within the range at which the function's variance is the largest."""
    candidates = space.samples(_CANDIDATES)
    return candidates[np.argmax(space.variance(candidates))]
