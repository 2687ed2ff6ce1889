# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a conversion takes: each stage has terms, such as vertices times bones, and each term its seconds.

They are measured by benchmarks/run_time.py. Conversions of this session tell how fast this machine is beside that one.
"""

from dataclasses import dataclass

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
    settings: object
    played: int
    simulated: int = 0
    key_tolerance: float = 0.0
    joint_hierarchy: bool = False

    def terms(self) -> dict[str, dict[str, float]]:
        """What each stage's seconds grow with."""
        frames, vertices, wanted = self.frame_count, self.vertex_count, self.settings
        bones, sweeps = wanted.bone_count, wanted.iterations
        positions, rows = frames * vertices, min(3 * frames, _MOST_ROWS)
        stiff = wanted.bone_kind != "AFFINE"
        solve = {
            "start": 1.0,
            "reduction": positions * rows,
            "eigenvectors": rows**3,
            "positions": positions,
            "sweeps over vertices": sweeps * vertices,
            "sweeps over bones": sweeps * vertices * bones,
            "sweeps over influences": sweeps * vertices * wanted.max_influences,
            "stiff sweeps over influences": sweeps * vertices * wanted.max_influences * stiff,
            "sweeps over motion": sweeps * bones * frames * stiff,
            "measuring": positions * wanted.max_influences,
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
            "write": {"start": 1.0, "weights": vertices * wanted.max_influences, "keys": frames * bones},
            "measure": {"start": 1.0, "frames": frames, "positions": positions},
        }
        if self.key_tolerance:
            stages["reduce"] = {"start": 1.0, "keys": frames * bones, "positions": positions}
        return stages


# Seconds of a processor for one of each term.
SECONDS = {
    "read": {"start": 0.05, "frames": 1e-3, "positions": 2e-7, "simulated": 1.5e-5},
    "solve": {
        "start": 0.1,
        "reduction": 2e-10,
        "eigenvectors": 3e-10,
        "positions": 4e-7,
        "sweeps over vertices": 5e-6,
        "sweeps over bones": 4e-7,
        "sweeps over influences": 0.0,
        "stiff sweeps over influences": 3e-6,
        "sweeps over motion": 1e-5,
        "measuring": 2e-8,
        "residual shapes": 5e-6,
        "smoothing": 1e-5,
    },
    "write": {"start": 0.05, "weights": 5e-6, "keys": 1e-6},
    "reduce": {"start": 0.1, "keys": 2e-4, "positions": 3e-6},
    "measure": {"start": 0.05, "frames": 2e-3, "positions": 2e-7},
}
# A search for a target error takes several solves.
TARGET_FACTOR = 3.0
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
