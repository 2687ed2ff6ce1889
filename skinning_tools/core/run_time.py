# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a conversion takes: each stage has terms, such as vertices times bones, and each term its seconds.

They are measured by benchmarks/run_time.py. Conversions of this session tell how fast this machine is beside that one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .decomposition import Settings

# Of a machine's pace: one conversion alone may have been slowed down by something else.
_PACE_MEMORY = 0.5
_FASTEST, _SLOWEST = 0.1, 10.0
# The largest rows × rows matrix whose eigenvectors the reduction takes.
_MOST_ROWS = 2400


@dataclass(frozen=True)
class Work:
    """What a conversion has to do. played: how many frames have to be evaluated, 0 where shape keys are read at once.

    simulated: vertices times frames that cloth or a soft body moves. settings: core.decomposition.Settings, or what has
    its attributes.
    """

    frame_count: int
    vertex_count: int
    settings: "Settings"
    played: int
    simulated: int = 0
    key_tolerance: float = 0.0

    def terms(self) -> dict[str, dict[str, float]]:
        """What each stage's seconds grow with."""
        frames, vertices, wanted = self.frame_count, self.vertex_count, self.settings
        bones, sweeps = wanted.bone_count, wanted.iterations
        influences = min(wanted.max_influences, bones)
        positions, rows = frames * vertices, min(3 * frames, _MOST_ROWS)
        stiff = wanted.bone_kind != "AFFINE"
        solve = {
            "start": 1.0,
            "reduction": positions * rows,
            "eigenvectors": rows**3,
            "sweeps over bones": sweeps * vertices * bones,
            "sweeps over influences": sweeps * vertices * influences**2,
            "sweeps over motion": sweeps * bones * frames * stiff,
            "residual shapes": positions * (wanted.residual_shapes > 0),
            "smoothing": vertices * bones * (wanted.smoothness > 0),
        }
        stages = {
            "read": {
                "start": 1.0,
                "frames": self.played,
                "positions": positions,
                "simulated": self.simulated,
            },
            "solve": solve,
            "write": {"start": 1.0, "weights": vertices * influences, "keys": frames * bones},
            "measure": {"start": 1.0, "frames": frames, "positions": positions},
        }
        if self.key_tolerance:
            stages["reduce"] = {"start": 1.0, "keys": frames * bones, "positions": positions}
        return stages


# Seconds of a processor for one of each term.
SECONDS = {
    "read": {"start": 0.018, "frames": 5.3e-5, "positions": 4.1e-8, "simulated": 2.0e-5},
    "solve": {
        "start": 0.065,
        "reduction": 4.3e-10,
        "eigenvectors": 9.3e-11,
        "sweeps over bones": 1.0e-7,
        "sweeps over influences": 9.9e-7,
        "sweeps over motion": 1.7e-5,
        "residual shapes": 5.4e-6,
        "smoothing": 4.6e-6,
    },
    "write": {"start": 0.0056, "weights": 2.9e-6, "keys": 9.9e-6},
    "reduce": {"start": 0.2, "keys": 2.1e-4, "positions": 1.0e-6},
    "measure": {"start": 0.0, "frames": 2.1e-4, "positions": 1.7e-7},
}
# A search for a target error takes several solves.
TARGET_FACTOR = 1.5
_ORDER = ("read", "solve", "write", "reduce", "measure")

# How much longer than the model's seconds each stage takes on this machine, as far as this session knows.
_pace: dict[str, float] = {}


def stage_seconds(work: Work) -> dict[str, float]:
    """Rough seconds of each stage, in their order."""
    terms = work.terms()
    seconds = {
        stage: sum(SECONDS[stage][name] * value for name, value in terms[stage].items())
        for stage in _ORDER
        if stage in terms
    }
    if work.settings.target_error:
        seconds["solve"] *= TARGET_FACTOR
    return {stage: value * _pace.get(stage, 1.0) for stage, value in seconds.items()}


def learn_pace(expected: dict[str, float], taken: dict[str, float]) -> None:
    """Note how long the stages of a conversion took, beside what ``stage_seconds`` had said of it."""
    for stage, seconds in taken.items():
        if expected.get(stage, 0.0) > 0 and seconds > 0:
            before = _pace.get(stage, 1.0)
            factor = before * (seconds / expected[stage]) ** _PACE_MEMORY
            _pace[stage] = min(max(factor, _FASTEST), _SLOWEST)


def forget_pace() -> None:
    _pace.clear()
