# SPDX-License-Identifier: GPL-3.0-or-later
"""What a solve for an existing rig has done: its figures, stored on the mesh object, and its result."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from ...blender.figures import Figure, Result
from ...blender.measure import ErrorMeter
from ...blender.records import write_record
from .clip_errors import ClipErrors, is_farther, worse_text
from .parts import Parts
from .steps import Reading

# The figures of the last solve, a custom property of the mesh object.
FIGURES_PROPERTY = "skinning_partial_solve"


@dataclass(frozen=True)
class PartialFigures:
    """The last solve, for the panel. title: the kind of solve; e_rms_before: −1 if unknown; frame_start, frame_end: the
    range read, of several clips the first and last frame of all; warning: "" unless the mesh is farther from its target
    now; omissions: what Blender left out of what was read; clips…: the fields of the ClipErrors; of_free: the share
    that driven helper bones have of the gain of freely moving ones, −1 if they are not driven."""

    title: str
    target: str
    armature: str
    e_rms_before: float
    e_rms: float
    max_error: float
    frame_start: float
    frame_end: float
    warning: str
    omissions: tuple[str, ...]
    clips: tuple[str, ...] = ()
    clips_before: tuple[float, ...] = ()
    clips_after: tuple[float, ...] = ()
    clips_used: tuple[bool, ...] = ()
    of_free: float = -1.0

    def figures(self) -> list[Figure]:
        clips = ClipErrors(self.clips, self.clips_before, self.clips_after, self.clips_used)
        before = Figure("E_RMS before", self.e_rms_before, "{:.4f}")
        of_free = Figure(
            "Gain of free helper bones",
            self.of_free,
            "{:.0%}",
            line=f"{self.of_free:.0%} of the gain of free helper bones",
        )
        return [
            Figure("Armature", self.armature, line=""),
            Figure("Target", self.target, line=""),
            Figure("Frames", [self.frame_start, self.frame_end], "{:g} to {:g}", line=""),
            *([before] if self.e_rms_before >= 0 else []),
            Figure("E_RMS", self.e_rms, "{:.4f}"),
            Figure("Largest error", self.max_error, "{:.4f}"),
            *([of_free] if self.of_free >= 0 else []),
            *clips.figures(),
        ]


@dataclass(frozen=True)
class PartialResult(Result):
    """A finished solve. done: what was done, as text; record: its figures; remarks: further notes for the user."""

    object_name: str
    done: str
    record: PartialFigures
    seconds: float
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes for the user."""
        return (*filter(None, [self.record.warning]), *self.remarks)

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.object_name),
            Figure("Done", self.done, line="; ".join(filter(None, [self.record.warning, self.done]))),
            *self.record.figures(),
        ]


def finished(
    parts: Parts,
    title: str,
    done: str,
    reading: Reading,
    before: float | None,
    meter: ErrorMeter,
    begin: float,
    notes: Sequence[str],
    ways: Sequence[str] = (),
    clips: ClipErrors | None = None,
    of_free: float = -1.0,
) -> PartialResult:
    """The result; stores its figures on the mesh object. before: E_RMS, None if unknown; ways: advice for the case that
    it has grown. of_free: as in PartialFigures."""
    clips = clips or ClipErrors()
    numbers = reading.animation.frame_numbers
    e_rms = float(meter.e_rms)
    farther = before is not None and is_farther(before, e_rms)
    figures = PartialFigures(
        title=title,
        target=parts.target.name,
        armature=parts.armature.name,
        e_rms_before=-1.0 if before is None else float(before),
        e_rms=e_rms,
        max_error=float(meter.max_error),
        frame_start=float(numbers.min()),
        frame_end=float(numbers.max()),
        omissions=reading.omissions,
        warning=f"farther from the target than before: {', or '.join(['undo', *ways])}"
        if farther
        else worse_text(clips, ("solve with more Hold",) if title == "Weights" else ()),
        clips=clips.names,
        clips_before=clips.before,
        clips_after=clips.after,
        clips_used=clips.used,
        of_free=of_free,
    )
    write_record(parts.mesh, FIGURES_PROPERTY, figures)
    return PartialResult(parts.mesh.name, done, figures, time.perf_counter() - begin, tuple(notes))
