# SPDX-License-Identifier: GPL-3.0-or-later
"""Random poses of a rig within its limits, in which the mesh does not penetrate itself too deeply."""

from typing import TYPE_CHECKING

import numpy as np

from ...blender import background
from .posed_rig import PosedRig

if TYPE_CHECKING:
    from ...core.imitation.skeleton import Ranges, Skeleton

# A part may lie so deep inside another, relative to the mesh's diagonal, even if the rig's action does less. If it lies
# deeper, the joints between the two turn less, by this factor and so many times at most.
_DEEP, _MILDER, _MOST_TIMES = 0.03, 0.7, 6
# Frames of the action in which depths are looked at.
_LOOKED_AT = 12


def made_poses(
    rig: PosedRig,
    skeleton: "Skeleton",
    ranges: "Ranges",
    played: np.ndarray,
    count: int,
    seed: int,
    influences: tuple[np.ndarray, np.ndarray],
) -> "background.Steps[tuple[np.ndarray, np.ndarray, np.ndarray, int]]":
    """Generator: the shape (W, 3) at rest, in the armature's space; turns (F, P, 4) and shapes (F, W, 3) of ``count``
    poses; and how many of these were made milder because the mesh penetrated itself.

    ranges, played: see ``joint_ranges``; influences: bones and weights (W, K) of the rig's vertices.
    """
    from ...core.imitation.skeleton import posed, random_turns, scaled
    from ...core.strongest import strongest_bones

    still = rig.shape(np.tile(np.eye(4)[:3], (len(skeleton), 1, 1)))
    at_rest, _ = rig.depths()
    allowed = _DEEP
    for motion in played[:: max(len(played) // _LOOKED_AT, 1)]:
        rig.shape(motion)
        allowed = max(allowed, float((rig.depths()[0] - at_rest).max(initial=0.0)))
        yield 0.0, ""
    rng = np.random.default_rng(seed)
    turns, frames = np.empty((count, len(skeleton), 4)), np.empty((count, *still.shape))
    shrunk = 0
    movable = skeleton.parents >= 0
    moved_by = strongest_bones(*influences)
    for row in range(count):
        drawn = random_turns(ranges, rng)
        drawn[~movable] = [1.0, 0.0, 0.0, 0.0]
        for times in range(_MOST_TIMES + 1):
            frames[row] = rig.shape(posed(skeleton, drawn[None])[0])
            if times == _MOST_TIMES:
                break
            depths, pairs = rig.depths()
            deep = np.unique(moved_by[pairs[depths - at_rest > allowed]], axis=0).tolist()
            joints = sorted({joint for pair in deep for joint in skeleton.joints_between(*pair)})
            if not joints:
                break
            drawn[joints] = scaled(drawn[joints], _MILDER)
        shrunk += times > 0
        turns[row] = drawn
        yield (row + 1) / count, ""
    return still, turns, frames, shrunk
