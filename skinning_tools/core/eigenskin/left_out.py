# SPDX-License-Identifier: GPL-3.0-or-later
"""How well examples predict each other, before anything is built, and the pose that is worth adding next."""

from dataclasses import dataclass

import numpy as np

from ..progress import Progress, ignore
from .checks import check_examples
from .displacements import rest_displacements
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


def left_out_errors(rig: Rig, examples: Examples, radius: float = 0.0, progress: Progress = ignore) -> LeftOut:
    """Predict each example from the others of its joint.

    radius: of the radial functions, radians, 0 for the usual one. Raises BadExamples, Cancelled.
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
        inverse = np.linalg.inv(spaces[joint].covariance())
        solved = inverse @ mapped.values[own].reshape(len(own), -1)
        # The error at an example of the function through all others.
        missed[own] = np.linalg.norm(solved, axis=1) / np.diag(inverse)
    worst = max(spaces, key=lambda joint: float(np.linalg.norm(missed[joints == joint])))
    return LeftOut(rows, missed, displaced, worst, _least_known(spaces[worst]))


def _least_known(space: PoseSpace) -> np.ndarray:
    """(4,) the rotation within the range at which the function's variance is the largest."""
    candidates = space.samples(_CANDIDATES)
    return candidates[np.argmax(space.variance(candidates))]
