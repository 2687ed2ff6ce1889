# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of errors: the curve of error over bones as a PNG file, those over frames and sweeps for the interface."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .canvas import Canvas, Look, png

if TYPE_CHECKING:
    from .decomposition.target_error import CurvePoint

WIDTH, HEIGHT = 960, 640
_LIGHT = Look(paper=(255, 255, 255), ink=(40, 40, 44), grid=(224, 224, 228), margins=(110, 40, 70, 80))
_LINE, _ANSWER, _TARGET = (60, 110, 190), (220, 90, 40), (130, 130, 136)

# Drawn like the dark boxes of the interface, twice as large as in a sidebar of usual width.
FRAMES_SIZE = 520, 460
_DARK = Look(paper=(29, 29, 29), ink=(200, 200, 200), grid=(56, 56, 56), margins=(76, 26, 44, 66))
_MEAN, _LARGEST = (100, 160, 240), (240, 140, 80)
# More points than this would be narrower than a pixel.
_MOST_POINTS = 400


def curve_picture(points: "Sequence[CurvePoint]", target: float, answer: int) -> bytes:
    """A PNG file: E_RMS over the number of bones, both axes logarithmic.

    points: core.decomposition.CurvePoint of one count or more; rings are foretold, discs solved. target > 0: a dashed
    line; answer: the bone count that was chosen, in another color.
    """
    counts = np.array([point.bone_count for point in points], dtype=np.float64)
    positive = [point.e_rms for point in points if point.e_rms > 0]
    # What has no error has no logarithm; it lies on the lower edge.
    least = min([*positive, target]) / 2.0
    errors = np.maximum([point.e_rms for point in points], least)
    x_range = counts.min() / 1.25, counts.max() * 1.25
    y_range = min(errors.min(), target) / 1.3, max(errors.max(), target) * 1.3
    canvas = Canvas((WIDTH, HEIGHT), x_range, y_range, _LIGHT)
    canvas.draw_axes([answer, *counts.astype(int).tolist()], "Bones", "E_RMS")
    canvas.draw_level(target, f"target {target:.4g}", _TARGET)
    places = canvas.places(counts, errors)
    canvas.draw_curve(places, _LINE, 2.0)
    for point, place in zip(points, places, strict=True):
        color = _ANSWER if point.bone_count == answer else _LINE
        canvas.draw_disc(place, 6.5, color)
        if not point.solved:
            canvas.draw_disc(place, 4.0, _LIGHT.paper)
    chosen = next((point for point in points if point.bone_count == answer), None)
    if chosen is not None:
        canvas.draw_text(
            _LIGHT.margins[0], 28, f"{answer} bone{'s' * (answer != 1)}, E_RMS {chosen.e_rms:.3g}", _LIGHT.ink
        )
    return png(canvas.pixels())


def frames_picture(frame_numbers: ArrayLike, e_rms: ArrayLike, largest: ArrayLike) -> np.ndarray:
    """(rows, columns, 3) uint8: the error of each frame over time, the error axis logarithmic.

    frame_numbers (F,), rising. e_rms, largest (F,): E_RMS and the largest error of each frame. Of neighboring frames
    that share a pixel the worst counts.
    """
    return _dark_picture("Frame", frame_numbers, {"E_RMS": e_rms, "largest error": largest})


def sweeps_picture(history: ArrayLike) -> np.ndarray:
    """(rows, columns, 3) uint8: E_RMS after each of the sweeps ``history`` (n,), the error axis logarithmic."""
    history = np.asarray(history, dtype=np.float64)
    return _dark_picture("Sweep", np.arange(1, len(history) + 1), {"E_RMS": history})


def _dark_picture(across: str, numbers: ArrayLike, named: dict[str, ArrayLike]) -> np.ndarray:
    """One or two curves over rising ``numbers`` (n,), as ``frames_picture``."""
    frames, *curves = (np.asarray(values, dtype=np.float64) for values in (numbers, *named.values()))
    starts = np.unique(np.linspace(0, len(frames), min(len(frames), _MOST_POINTS), endpoint=False).astype(int))
    frames, curves = frames[starts], [np.maximum.reduceat(values, starts) for values in curves]
    most = max(float(values.max()) for values in curves) or 1.0
    positive = [values[values > 0] for values in curves]
    # What has no error has no logarithm; it lies on the lower edge.
    least = max(min((float(values.min()) for values in positive if len(values)), default=most / 10), most / 1000)
    x_range = (frames[0], frames[-1]) if len(frames) > 1 else (frames[0] - 1, frames[0] + 1)
    canvas = Canvas(FRAMES_SIZE, x_range, (least / 1.3, most * 1.3), _DARK, logarithmic_x=False)
    canvas.draw_axes(_frame_marks(*x_range), across, "")
    # The first one on top, and its name to the left.
    ends = (_DARK.margins[0], 0.0, _MEAN), (FRAMES_SIZE[0] - _DARK.margins[1], 1.0, _LARGEST)
    for name, values, (column, align, color) in reversed(list(zip(named, curves, ends, strict=False))):
        canvas.draw_curve(canvas.places(frames, np.maximum(values, least / 1.3)), color, 2.5)
        canvas.draw_text(column, 14, name, color, align=align)
    return canvas.pixels()


def _frame_marks(first: float, last: float) -> list[int]:
    """About five round numbers in a range, its ends first."""
    step = 10.0 ** np.floor(np.log10(max((last - first) / 5, 1)))
    step *= next(factor for factor in (1, 2, 5, 10) if (last - first) / (factor * step) <= 6)
    inner = np.arange(np.ceil(first / step) * step, last, step)
    return [round(first), round(last), *inner.astype(int).tolist()]
