# SPDX-License-Identifier: GPL-3.0-or-later
"""Colors that show the weights of all bones at once, and how many influences each vertex has. Linear RGB."""

import zlib
from collections.abc import Sequence

import numpy as np

_GOLDEN_TURN = 0.6180339887498949
_LEAST_DIFFERENCE = 0.12  # of the hue, a turn being 1, between a bone and its parent
_SHADES = ((0.85, 0.95), (0.6, 0.75), (0.45, 1.0), (0.9, 0.6))  # saturation and value
_COUNT_COLORS = ((0.02, 0.02, 0.02), (0.03, 0.11, 0.6), (0.03, 0.5, 0.15), (0.8, 0.65, 0.05), (0.85, 0.25, 0.02))
_TOO_MANY = (1.0, 0.0, 0.25)


def bone_colors(names: Sequence[str], parents: Sequence[int] | np.ndarray | None = None) -> np.ndarray:
    """(P, 3) float32: a color for each bone, from its name, so that it is the same in every mesh and rig.

    parents (P,) of the bones, −1 for none: a bone whose hue would be close to its parent's takes another one, which
    depends on the names of its ancestors only.
    """
    hues = np.array([(zlib.crc32(name.encode()) * _GOLDEN_TURN) % 1.0 for name in names])
    shades = np.array([_SHADES[zlib.crc32(name[::-1].encode()) % len(_SHADES)] for name in names]).reshape(-1, 2)
    if parents is not None:
        for bone in _parents_first(parents):
            while parents[bone] >= 0 and _apart(hues[bone], hues[parents[bone]]) < _LEAST_DIFFERENCE:
                hues[bone] = (hues[bone] + _GOLDEN_TURN) % 1.0
    # From hue, saturation and value to sRGB, and from there to linear.
    ramps = np.clip(np.abs((hues[:, None] * 6 + [0.0, 4.0, 2.0]) % 6 - 3) - 1, 0, 1)
    display = shades[:, 1:] * (1 - shades[:, :1] * (1 - ramps))
    return np.where(display <= 0.04045, display / 12.92, ((display + 0.055) / 1.055) ** 2.4).astype(np.float32)


def weight_colors(bones: np.ndarray, weights: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """(N, 4) float32 RGBA: each vertex's bones' ``colors`` (P, 3), mixed by its ``weights`` (N, K) of ``bones``.

    Black where a vertex follows no bone, and darker where weights sum to less than 1.
    """
    result = np.ones((len(bones), 4), np.float32)
    result[:, :3] = 0
    for slot in range(np.shape(bones)[1]):
        result[:, :3] += np.asarray(weights)[:, slot, None] * colors[np.asarray(bones)[:, slot]]
    return result


def count_colors(counts: np.ndarray, most: int = 4) -> np.ndarray:
    """(N, 4) float32 RGBA: black for no influence, then blue, green, yellow, orange up to ``most``; above it, red."""
    steps = np.interp(np.arange(1, most + 1), np.linspace(1, max(most, 2), len(_COUNT_COLORS) - 1), np.arange(1, 5))
    ramp = np.array([[np.interp(s, range(5), [c[i] for c in _COUNT_COLORS]) for i in range(3)] for s in steps])
    table = np.vstack([_COUNT_COLORS[:1], ramp, [_TOO_MANY]])
    rgb = table[np.minimum(np.asarray(counts), most + 1)]
    return np.column_stack([rgb, np.ones(len(rgb))]).astype(np.float32)


def _apart(first: float, second: float) -> float:
    return abs((first - second + 0.5) % 1.0 - 0.5)


def _parents_first(parents) -> list[int]:
    depth = np.zeros(len(parents), int)
    above = np.asarray(parents)
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, np.asarray(parents)[above], -1)
    return np.argsort(depth, kind="stable").tolist()
