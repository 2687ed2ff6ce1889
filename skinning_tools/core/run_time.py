# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a conversion takes, roughly. benchmarks/run_time.py has measured it on one machine; conversions of this
session tell how fast this one is beside it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .solve_effort import SWEEPS_OF_MOVE, effort_of
from .solve_memory import LARGEST_GRAM

if TYPE_CHECKING:
    from .decomposition import Settings

# The share of the earlier pace that is kept: something else may have slowed down a single conversion.
_PACE_MEMORY = 0.5
_FASTEST, _SLOWEST = 0.1, 10.0
# Seconds that any stage takes even without work: a tiny conversion must not distort the pace.
_START = 0.05

# By stage, how many times the model's seconds it takes on this machine, as measured in this session.
_pace: dict[str, float] = {}


@dataclass(frozen=True)
class Work:
    """What a conversion has to do. simulated: vertices times frames that cloth or a soft body moves. settings:
    core.decomposition.Settings, or what has its attributes. jointed: whether the bones are solved again with joints
    that hold them."""

    frame_count: int
    vertex_count: int
    settings: "Settings"
    simulated: int = 0
    key_tolerance: float = 0.0
    jointed: bool = False


def stage_seconds(work: Work) -> dict[str, float]:
    """Rough seconds of each stage, in their order: seconds of a processor times what they grow with."""
    frames, vertices, wanted = work.frame_count, work.vertex_count, work.settings
    bones, positions = wanted.bone_count, frames * vertices
    effort = effort_of(vertices, wanted)
    solve = 5.0e-10 * positions * min(3 * frames, LARGEST_GRAM)
    swept = effort.vertices(vertices) + effort.searched(vertices)
    if wanted.emphasis:
        # Sweeps over all vertices, and measuring between them.
        swept += 40 * vertices
    if wanted.surface:
        swept += 20 * vertices
        # The errors' copies; and the normals, in as many frames of any animation.
        solve += 3.0e-6 * positions + 1.2e-4 * vertices
    solve += swept * (1.3e-6 + 1.7e-7 * bones + 6.5e-8 * min(wanted.max_influences, bones) ** 3)
    if wanted.bone_kind != "AFFINE":
        turns = effort.sweeps + effort.sample_sweeps + effort.moves * SWEEPS_OF_MOVE
        solve += 4.0e-6 * turns * bones * frames
    if wanted.prune:
        # Several rounds on a sample, sweeps over all vertices with fewer bones, and weights for posing.
        solve *= 2.8
    if work.jointed:
        solve *= 1.15
    if wanted.residual_shapes:
        solve += 2.2e-6 * positions
    if wanted.smoothness or wanted.prune:
        # Skeletons are always smoothed.
        solve += 2.7e-6 * vertices * bones
    if wanted.target_error:
        # Several solves, most of them on fewer bones.
        solve *= 1.5
    read = 3.0e-8 * positions + 1.7e-5 * work.simulated
    # The channels of matrices have to be found first.
    write = (3.0e-5 if wanted.bone_kind == "AFFINE" else 5.0e-6) * frames * bones
    seconds = {"read": read, "solve": solve, "write": write}
    if work.key_tolerance:
        seconds["reduce"] = 2.5e-4 * frames * bones + 6.0e-7 * positions
    seconds["measure"] = 2.0e-7 * positions + 1.5e-5 * vertices
    return {stage: (_START + value) * _pace.get(stage, 1.0) for stage, value in seconds.items()}


def learn_pace(expected: dict[str, float], taken: dict[str, float]) -> None:
    """Note how long the stages of a conversion took, beside what ``stage_seconds`` had said of it."""
    for stage, seconds in taken.items():
        if expected.get(stage, 0.0) > 0 and seconds > 0:
            before = _pace.get(stage, 1.0)
            factor = before * (seconds / expected[stage]) ** _PACE_MEMORY
            _pace[stage] = min(max(factor, _FASTEST), _SLOWEST)
