# SPDX-License-Identifier: GPL-3.0-or-later
"""The error of each clip before and after a solve, as Blender evaluates it."""

from collections.abc import Generator
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.animation.clips import Clip
from ...blender.attributes import read_attribute
from ...blender.figures import Figure
from ...blender.wording import counted, listed
from ...core.animation import ErrorMeter, unit_scale
from .chosen_clips import Chosen
from .clips import Added, Player
from .parts import Parts

# Growth of an E_RMS that nobody sees: this share of it, or so much, a sixtieth of a pixel where the body has 1000.
_UNSEEN_SHARE, _UNSEEN = 5e-3, 0.02


def is_farther(before: float, after: float) -> bool:
    """Whether an E_RMS has grown by what can be seen."""
    return after - before > max(_UNSEEN_SHARE * before, _UNSEEN)


@dataclass(frozen=True)
class ClipErrors:
    """E_RMS of each clip, before (−1 if unknown) and after; used: whether the solve counted it."""

    names: tuple[str, ...] = ()
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    used: tuple[bool, ...] = ()

    @property
    def worse(self) -> tuple[str, ...]:
        """The clips that are farther from the target than before."""
        rows = zip(self.names, self.before, self.after, strict=True)
        return tuple(name for name, before, after in rows if before >= 0 and is_farther(before, after))

    def figures(self) -> list[Figure]:
        """A line for all, and rows for each."""
        if not self.names:
            return []
        count = sum(self.used)
        found = []
        if count > 1:
            text = counted(count, "action")
            ratios = [
                after / before
                for before, after, used in zip(self.before, self.after, self.used, strict=True)
                if used and before > 0
            ]
            if ratios:
                text += f" at {np.mean(ratios):.2f} of their error on average, {max(ratios):.2f} at most"
            found.append(Figure("Actions", count, line=text))
        rows = zip(self.names, self.before, self.after, self.used, strict=True)
        values = {
            name: {"before": before if before >= 0 else None, "after": after, "used": used}
            for name, before, after, used in rows
        }
        return [*found, *(_row(label, value) for label, value in values.items())]


def _row(name: str, value: dict) -> Figure:
    form = "{after:.4f}" if value["before"] is None else "{before:.4f} → {after:.4f}"
    return Figure(f'"{name}"', value, form if value["used"] else f"{form}, not used", line="", group=("clips", name))


@dataclass(frozen=True, eq=False)
class Measured:
    """meters: of the clips that were used, all together, before and after; None if there are none."""

    errors: ClipErrors
    before: ErrorMeter | None
    after: ErrorMeter | None


def measure_clips(
    context: bpy.types.Context,
    parts: Parts,
    chosen: Chosen,
    before: bpy.types.Object | None,
    after: bpy.types.Object,
    added: Added = (),
) -> Generator[float, None, Measured]:
    """Generator: play all clips, the used ones first, and compare the objects ``before`` (None if nothing moved the
    mesh) and ``after`` with the target; yields fractions. added: see ``Player``."""
    clips = [*chosen.used, *chosen.others]
    probes = [ob for ob in (before, after) if ob is not None]
    own: dict[Clip, list[ErrorMeter]] = {}
    total: list[ErrorMeter] = []
    actual = np.empty((len(parts.mesh.data.vertices), 3), np.float32)

    def visit(clip: Clip, row: int, depsgraph: bpy.types.Depsgraph, positions: np.ndarray) -> None:
        if row == 0:
            scale = unit_scale(positions[None])
            own[clip] = [ErrorMeter(scale, len(positions)) for _ in probes]
            if not total:
                total.extend(ErrorMeter(scale, len(positions)) for _ in probes)
        for number, probe in enumerate(probes):
            read_attribute(probe.evaluated_get(depsgraph).data, "position", actual)
            own[clip][number].add(positions, actual)
            if clip in chosen.used:
                total[number].add(positions, actual)

    yield from Player(context, parts, chosen, after, added).play(clips, probes, visit)
    errors = ClipErrors(
        tuple(clip.name for clip in clips),
        tuple(own[clip][0].e_rms if before is not None else -1.0 for clip in clips),
        tuple(own[clip][-1].e_rms for clip in clips),
        tuple(clip in chosen.used for clip in clips),
    )
    used = bool(chosen.used)
    return Measured(errors, total[0] if used and before is not None else None, total[-1] if used else None)


def worse_text(errors: ClipErrors, ways: tuple[str, ...]) -> str:
    """A warning if clips are farther from the target than before, else "". ways: what helps beside all actions."""
    if not errors.worse:
        return ""
    unused = any(name in errors.worse and not used for name, used in zip(errors.names, errors.used, strict=True))
    remedies = ["undo", *(["solve with all actions"] if unused else []), *ways]
    return f"farther from the target than before in {listed(errors.worse)}: {', or '.join(remedies)}"
