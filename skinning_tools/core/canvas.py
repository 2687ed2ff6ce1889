# SPDX-License-Identifier: GPL-3.0-or-later
"""Curves as pixels, and pixels as a PNG file, without a plotting library."""

import struct
import zlib
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .segments import segment_distances

Color = tuple[int, int, int]


class Look(NamedTuple):
    """Colors from 0 to 255, and room around the curves in pixels: left, right, top, bottom."""

    paper: Color
    ink: Color
    grid: Color
    margins: tuple[int, int, int, int]


_TEXT_SCALE = 2
_MARK_WIDTH = 44
# Each letter has five columns; the bits of a number are the pixels of a column from the top.
_GLYPHS = {
    " ": "0000000000", ",": "0050300000", "-": "0808080808", ".": "0060600000", "0": "3e5149453e", "1": "00427f4000",
    "2": "4261514946", "3": "2141454b31", "4": "1814127f10", "5": "2745454539", "6": "3c4a494930", "7": "0171090503",
    "8": "3649494936", "9": "064949291e", "B": "7f49494936", "E": "7f49494941", "M": "7f020c027f", "R": "7f09192946",
    "S": "4649494931", "T": "01017f0101", "_": "4040404040", "a": "2054545478", "b": "7f48444438", "d": "384444487f",
    "e": "3854545418", "f": "087e090102", "m": "7c04180478", "F": "7f09090901",
    "g": "0c5252523e", "l": "00417f4000", "n": "7c08040478", "o": "3844444438", "p": "7c14141408", "r": "7c08040408",
    "s": "4854545420", "t": "043f444020", "v": "1c2040201c", "w": "3c4030403c",
}  # fmt: skip


class Canvas:
    """A picture with axes, whose pixels are counted from the top left. The vertical axis is logarithmic."""

    def __init__(
        self,
        size: tuple[int, int],
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        look: Look,
        logarithmic_x: bool = True,
    ):
        """size: width and height."""
        self._width, self._height = size
        self._left, right, self._top, bottom = look.margins
        self._right, self._bottom = self._width - right, self._height - bottom
        self._look = look
        self._x_scale = np.log if logarithmic_x else np.asarray
        self._x_range, self._y_range = x_range, y_range
        self._pixels = np.full((self._height, self._width, 3), look.paper, dtype=np.float64)

    def pixels(self) -> np.ndarray:
        """(rows, columns, 3) uint8."""
        return np.rint(self._pixels).astype(np.uint8)

    def places(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """(n, 2): column and row of points of the curve."""
        (first, last), scale = self._x_scale(self._x_range), self._x_scale
        low, high = np.log(self._y_range)
        right, up = (scale(x) - first) / (last - first), (np.log(y) - low) / (high - low)
        columns = self._left + right * (self._right - self._left)
        return np.stack(np.broadcast_arrays(columns, self._bottom - up * (self._bottom - self._top)), axis=-1)

    def draw_axes(self, marks: list[int], x_name: str, y_name: str) -> None:
        """marks: values to be named below, the first ones where there is no room for all."""
        left, right, top, bottom = self._left, self._right, self._top, self._bottom
        ink, grid = self._look.ink, self._look.grid
        taken: list[float] = []
        for value in marks:
            (column, _) = self.places(value, self._y_range[0])
            if all(abs(column - other) > _MARK_WIDTH for other in taken):
                taken.append(column)
                self.draw_line((column, top), (column, bottom), grid, 1.0)
                self.draw_text(column, bottom + 12, f"{value}", ink, align=0.5)
        for level in ticks(*self._y_range):
            (_, row) = self.places(self._x_range[0], level)
            self.draw_line((left, row), (right, row), grid, 1.0)
            self.draw_text(left - 12, row - 7, f"{level:g}", ink, align=1.0)
        self.draw_line((left, top), (left, bottom), ink, 1.5)
        self.draw_line((left, bottom), (right, bottom), ink, 1.5)
        self.draw_text(right, bottom + 42, x_name, ink, align=1.0)
        self.draw_text(left - 12, top - 30, y_name, ink, align=1.0)

    def draw_level(self, value: float, text: str, color: Color) -> None:
        """A dashed line across at ``value``."""
        (_, row) = self.places(self._x_range[0], value)
        for column in range(self._left, self._right, 14):
            self.draw_line((column, row), (min(column + 8, self._right), row), color, 1.5)
        self.draw_text(self._right, row - 20, text, color, align=1.0)

    def draw_curve(self, places: np.ndarray, color: Color, width: float) -> None:
        for start, end in pairwise(places):
            self.draw_line(start, end, color, width)

    def draw_line(self, start: ArrayLike, end: ArrayLike, color: Color, width: float) -> None:
        start, end = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
        rows, columns = self._around(np.minimum(start, end) - width, np.maximum(start, end) + width)
        distance = segment_distances(np.stack(np.meshgrid(columns, rows), axis=-1) + 0.5, start, end - start)
        self._blend(rows, columns, np.clip(0.5 * width + 0.5 - distance, 0.0, 1.0), color)

    def draw_disc(self, center: ArrayLike, radius: float, color: Color) -> None:
        """A line without length, whose ends are round."""
        self.draw_line(center, center, color, 2 * radius)

    def draw_text(self, column: float, row: float, text: str, color: Color, align: float = 0.0) -> None:
        """align: 0 begins at ``column``, 0.5 is centered there, 1 ends there."""
        if not text:
            return
        mask = np.concatenate([_glyph(letter) for letter in text], axis=1)[:, :-1]
        mask = np.kron(mask, np.ones((_TEXT_SCALE, _TEXT_SCALE)))
        left, top = round(column - align * mask.shape[1]), round(row)
        rows, columns = self._around((left, top), (left + mask.shape[1], top + mask.shape[0]))
        self._blend(rows, columns, mask[rows[0] - top :, columns[0] - left :][: len(rows), : len(columns)], color)

    def _around(self, first: tuple[float, float], last: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of a box that are in the picture."""
        low = np.clip(np.floor(first), 0, [self._width - 1, self._height - 1]).astype(int)
        high = np.clip(np.ceil(last), low + 1, [self._width, self._height]).astype(int)
        return np.arange(low[1], high[1]), np.arange(low[0], high[0])

    def _blend(self, rows: np.ndarray, columns: np.ndarray, opacity: np.ndarray, color: Color) -> None:
        part = self._pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        part += opacity[..., None] * (np.array(color) - part)


def _glyph(letter: str) -> np.ndarray:
    """(8, 6) float64, a blank column last; blank where there is no such letter."""
    columns = bytes.fromhex(_GLYPHS.get(letter, _GLYPHS[" "])) + b"\0"
    return np.array([[column >> row & 1 for column in columns] for row in range(8)], dtype=np.float64)


def ticks(low: float, high: float) -> list[float]:
    """Values 1, 2 and 5 times powers of ten within a range, or three even ones where there are too few."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    found = [value for value in values if low <= value <= high]
    if len(found) >= 2:
        return found
    return sorted({float(f"{value:.2g}") for value in np.geomspace(low * 1.02, high / 1.02, 3)})


def png(pixels: np.ndarray) -> bytes:
    """A PNG file (RGB, 8 bits) of ``pixels`` (rows, columns, 3) uint8."""
    height, width = pixels.shape[:2]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    return png_beginning(width, height) + _chunk(b"IDAT", zlib.compress(rows.tobytes())) + _chunk(b"IEND", b"")


def png_beginning(width: int, height: int) -> bytes:
    """What all files of ``png`` of this size begin with, and no others: it says who wrote them."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"tEXt", b"Software\0skinning_tools")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
