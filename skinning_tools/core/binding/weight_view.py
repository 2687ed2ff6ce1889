# SPDX-License-Identifier: GPL-3.0-or-later
"""Colors that show the weights of all bones at once, and how many influences each vertex has. Linear RGB."""

import itertools
import zlib
from collections.abc import Sequence

import numpy as np

from ..strongest import strongest_bones

_COUNT_COLORS = ((0.02, 0.02, 0.02), (0.03, 0.11, 0.6), (0.03, 0.5, 0.15), (0.8, 0.65, 0.05), (0.85, 0.25, 0.02))
_TOO_MANY = (1.0, 0.0, 0.25)

# As display colors. DISTINCT: any two are at least 0.2 apart in OKLab (Ottosson 2020). COLOR_BLIND: at least 0.14, also
# for eyes without red, green or blue cones (Machado et al. 2009); hence fewer. Found by packing the gamut.
PALETTES = {
    "DISTINCT": "c30f0f a50096 690f2d 4b5a87 c378a5 87781e 00a5c3 784bff f02dff d2b469 1e4b00 0fc32d 0ff0e1 f0c3ff "
    "a5ff1e 000fd2",
    "COLOR_BLIND": "b40f0f a500d2 a5874b 4b6978 f05ad2 3c2d87 69002d a5c396 78f0ff e1f096",
}

# How much a bone shows beside its parent where no vertex has both.
_RELATED = 1e-6


def bone_colors(names: Sequence[str], together: np.ndarray | None = None, palette: str = "DISTINCT") -> np.ndarray:
    """(P, 3) float32: a color of the palette for each bone, chosen by its name, unless a bone beside it has that color.

    together (P, P), symmetric: how much two bones show side by side, see ``shown_together``. Bones beside each other
    have different colors as long as there are enough; then those that show least together share one. The order of the
    bones does not matter, and the color of a bone changes only with those beside it.
    """
    display = np.array([[int(color[at : at + 2], 16) for at in (0, 2, 4)] for color in PALETTES[palette].split()]) / 255
    linear = np.where(display <= 0.04045, display / 12.92, ((display + 0.055) / 1.055) ** 2.4)
    count = len(linear)
    together = np.zeros((len(names), len(names))) if together is None else np.asarray(together)
    first = [zlib.crc32(name.encode()) for name in names]
    chosen = np.full(len(first), -1)
    bones = sorted(range(len(first)), key=lambda bone: (first[bone], names[bone]))
    again = True
    while again:
        again = False
        for bone in bones:
            others = chosen >= 0
            others[bone] = False
            taken = np.bincount(chosen[others], together[bone, others], minlength=count)
            # Rounding is no reason to change.
            if chosen[bone] < 0 or taken.min() < 0.999 * taken[chosen[bone]]:
                order = (first[bone] + np.arange(count)) % count
                chosen[bone] = order[np.argmin(taken[order])]
                again = True
    return linear[chosen].astype(np.float32)


def shown_together(
    bones: np.ndarray, weights: np.ndarray, edges: np.ndarray, parents: Sequence[int] | np.ndarray
) -> np.ndarray:
    """(P, P) how much two bones show side by side: the smaller of their weights, summed over vertices that follow both;
    1 for each edge on which they are the strongest at either end; and a little for a bone and its parent.

    bones and weights (N, K), edges (E, 2), parents (P,), −1 for none.
    """
    parents = np.asarray(parents, dtype=np.int64)
    count = len(parents)
    total = np.zeros(count * count)
    for one, other in itertools.combinations(range(bones.shape[1]), 2):
        shared = np.minimum(weights[:, one], weights[:, other])
        total += np.bincount(bones[:, one].astype(np.int64) * count + bones[:, other], shared, minlength=len(total))
    if bones.size:
        strongest = strongest_bones(bones, weights).astype(np.int64)
        whole = (weights.sum(axis=1) > 0)[edges].all(axis=1)
        ends = strongest[edges[whole]]
        total += np.bincount(ends[:, 0] * count + ends[:, 1], minlength=len(total))
    result = total.reshape(count, count)
    children = np.flatnonzero(parents >= 0)
    result[children, parents[children]] += _RELATED
    result = result + result.T
    np.fill_diagonal(result, 0.0)
    return result


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
