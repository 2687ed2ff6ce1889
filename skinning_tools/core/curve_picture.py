# SPDX-License-Identifier: GPL-3.0-or-later
"""The curve of error over bones as a PNG file, without a plotting library."""

import struct
import zlib
from itertools import pairwise

import numpy as np

WIDTH, HEIGHT = 960, 640
_LEFT, _RIGHT, _TOP, _BOTTOM = 110, 40, 70, 80
_WHITE, _INK, _GRID = (255, 255, 255), (40, 40, 44), (224, 224, 228)
_LINE, _ANSWER, _TARGET = (60, 110, 190), (220, 90, 40), (130, 130, 136)
_TEXT_SCALE = 2
_MARK_WIDTH = 44
# Five columns a letter, each a number whose bits are its pixels from the top.
_GLYPHS = {
    " ": "0000000000", ",": "0050300000", "-": "0808080808", ".": "0060600000", "0": "3e5149453e", "1": "00427f4000",
    "2": "4261514946", "3": "2141454b31", "4": "1814127f10", "5": "2745454539", "6": "3c4a494930", "7": "0171090503",
    "8": "3649494936", "9": "064949291e", "B": "7f49494936", "E": "7f49494941", "M": "7f020c027f", "R": "7f09192946",
    "S": "4649494931", "T": "01017f0101", "_": "4040404040", "a": "2054545478", "b": "7f48444438", "d": "384444487f",
    "e": "3854545418", "g": "0c5252523e", "l": "00417f4000", "n": "7c08040478", "o": "3844444438", "r": "7c08040408",
    "s": "4854545420", "t": "043f444020", "v": "1c2040201c",
}  # fmt: skip


def curve_picture(points, target: float, answer: int) -> bytes:
    """A PNG file: E_RMS over the number of bones, both axes logarithmic.

    points: core.decomposition.CurvePoint of one count or more; rings are foretold, discs solved. target > 0: a dashed
    line; answer: the bone count that was chosen, in another color.
    """
    counts = np.array([point.bone_count for point in points], dtype=np.float64)
    positive = [point.e_rms for point in points if point.e_rms > 0]
    # What has no error has no logarithm; it lies on the lower edge.
    least = min([*positive, target]) / 2.0
    errors = np.maximum([point.e_rms for point in points], least)
    canvas = _Canvas(
        (counts.min() / 1.25, counts.max() * 1.25),
        (min(errors.min(), target) / 1.3, max(errors.max(), target) * 1.3),
    )
    canvas.draw_axes([answer, *counts.astype(int).tolist()])
    canvas.draw_level(target, f"target {target:.4g}")
    places = canvas.places(counts, errors)
    for start, end in pairwise(places):
        canvas.draw_line(start, end, _LINE, 2.0)
    for point, place in zip(points, places, strict=True):
        color = _ANSWER if point.bone_count == answer else _LINE
        canvas.draw_disc(place, 6.5, color)
        if not point.solved:
            canvas.draw_disc(place, 4.0, _WHITE)
    chosen = next((point for point in points if point.bone_count == answer), None)
    if chosen is not None:
        canvas.draw_text(_LEFT, 28, f"{answer} bone{'s' * (answer != 1)}, E_RMS {chosen.e_rms:.3g}", _INK)
    return _png(canvas.pixels())


class _Canvas:
    """A picture with logarithmic axes whose pixels are counted from the top left."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float]):
        self._x, self._y = np.log(x_range), np.log(y_range)
        self._pixels = np.full((HEIGHT, WIDTH, 3), 255.0)

    def pixels(self) -> np.ndarray:
        return np.rint(self._pixels).astype(np.uint8)

    def places(self, x, y) -> np.ndarray:
        """(n, 2): column and row of points of the curve."""
        right = (np.log(x) - self._x[0]) / (self._x[1] - self._x[0])
        up = (np.log(y) - self._y[0]) / (self._y[1] - self._y[0])
        return np.stack(
            [_LEFT + right * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM)], axis=-1
        )

    def draw_axes(self, counts: list[int]) -> None:
        """counts: to be marked below, the first ones where there is no room for all."""
        left, right, top, bottom = _LEFT, WIDTH - _RIGHT, _TOP, HEIGHT - _BOTTOM
        taken = []
        for value in counts:
            (column, _) = self.places(value, np.exp(self._y[0]))
            if all(abs(column - other) > _MARK_WIDTH for other in taken):
                taken.append(column)
                self.draw_line((column, top), (column, bottom), _GRID, 1.0)
                self.draw_text(column, bottom + 12, f"{value}", _INK, align=0.5)
        for value in _ticks(*np.exp(self._y)):
            (_, row) = self.places(np.exp(self._x[0]), value)
            self.draw_line((left, row), (right, row), _GRID, 1.0)
            self.draw_text(left - 12, row - 7, f"{value:g}", _INK, align=1.0)
        self.draw_line((left, top), (left, bottom), _INK, 1.5)
        self.draw_line((left, bottom), (right, bottom), _INK, 1.5)
        self.draw_text(right, bottom + 42, "Bones", _INK, align=1.0)
        self.draw_text(left - 12, top - 30, "E_RMS", _INK, align=1.0)

    def draw_level(self, value: float, text: str) -> None:
        """A dashed line across at ``value``."""
        (_, row) = self.places(np.exp(self._x[0]), value)
        for column in range(_LEFT, WIDTH - _RIGHT, 14):
            self.draw_line((column, row), (min(column + 8, WIDTH - _RIGHT), row), _TARGET, 1.5)
        self.draw_text(WIDTH - _RIGHT, row - 20, text, _TARGET, align=1.0)

    def draw_line(self, start, end, color, width: float) -> None:
        start, end = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        rows, columns = self._around(np.minimum(start, end) - width, np.maximum(start, end) + width)
        offset = np.stack(np.meshgrid(columns, rows), axis=-1) + 0.5 - start
        along = end - start
        share = np.clip(offset @ along / max(float(along @ along), 1e-12), 0.0, 1.0)
        distance = np.linalg.norm(offset - share[..., None] * along, axis=-1)
        self._blend(rows, columns, np.clip(0.5 * width + 0.5 - distance, 0.0, 1.0), color)

    def draw_disc(self, center, radius: float, color) -> None:
        center = np.asarray(center, dtype=np.float64)
        rows, columns = self._around(center - radius - 1, center + radius + 1)
        distance = np.linalg.norm(np.stack(np.meshgrid(columns, rows), axis=-1) + 0.5 - center, axis=-1)
        self._blend(rows, columns, np.clip(radius + 0.5 - distance, 0.0, 1.0), color)

    def draw_text(self, column: float, row: float, text: str, color, align: float = 0.0) -> None:
        """align: 0 begins at ``column``, 0.5 is centered there, 1 ends there."""
        mask = np.concatenate([_glyph(letter) for letter in text], axis=1)[:, :-1]
        mask = np.kron(mask, np.ones((_TEXT_SCALE, _TEXT_SCALE)))
        left, top = round(column - align * mask.shape[1]), round(row)
        rows, columns = self._around((left, top), (left + mask.shape[1], top + mask.shape[0]))
        self._blend(rows, columns, mask[rows[0] - top :, columns[0] - left :][: len(rows), : len(columns)], color)

    def _around(self, first, last) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of a box that are in the picture."""
        low = np.clip(np.floor(first), 0, [WIDTH - 1, HEIGHT - 1]).astype(int)
        high = np.clip(np.ceil(last), low + 1, [WIDTH, HEIGHT]).astype(int)
        return np.arange(low[1], high[1]), np.arange(low[0], high[0])

    def _blend(self, rows, columns, opacity: np.ndarray, color) -> None:
        part = self._pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        part += opacity[..., None] * (np.array(color) - part)


def _glyph(letter: str) -> np.ndarray:
    """(8, 6) float64, a blank column last; blank where there is no such letter."""
    columns = bytes.fromhex(_GLYPHS.get(letter, _GLYPHS[" "])) + b"\0"
    return np.array([[column >> row & 1 for column in columns] for row in range(8)], dtype=np.float64)


def _ticks(low: float, high: float) -> list[float]:
    """Values 1, 2 and 5 times powers of ten within a range, or three even ones where there are too few."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    found = [value for value in values if low <= value <= high]
    if len(found) >= 2:
        return found
    return sorted({float(f"{value:.2g}") for value in np.geomspace(low * 1.02, high / 1.02, 3)})


def _png(pixels: np.ndarray) -> bytes:
    """A PNG file (RGB, 8 bits) of ``pixels`` (rows, columns, 3) uint8."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = pixels.shape[:2]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows.tobytes())), chunk(b"IEND", b"")
    return b"".join((b"\x89PNG\r\n\x1a\n", *chunks))
