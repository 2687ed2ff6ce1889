# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches of a surface that follow a bone from elsewhere in the skeleton, such as some of a back that the head leads.

In the animation they look right. Whoever turns the head tears them out.
"""

import numpy as np

from ..body_surface import BodySurface

# A patch is stray only if it has less than this share of what its bone leads. It is large from this share of the whole
# surface on: turned, it is seen.
_LEAST, _LARGE = 0.4, 5e-3


def bones_around(surface: BodySurface, leading: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) of each vertex in a stray patch, the bone with the longest border to that, −1 for all other vertices; and
    (N,) bool whether its patch is large.

    leading (N,): the bone that each vertex follows most; near (P, P) bool: a bone itself and its neighbors in the
    skeleton. A patch is stray if it is smaller than its bone's part and the bone around it is not near its own.
    """
    patches, areas, count = surface.patches(leading), surface.areas(), len(near)
    sizes, bones = np.bincount(patches, areas), np.empty(patches.max() + 1, int)
    bones[patches] = leading
    small = sizes < _LEAST * np.bincount(bones, sizes, count)[bones]
    # What is small is no place to belong to.
    borders = surface.borders(patches, np.where(small[patches], count, leading), count + 1)[:, :count]
    around = np.asarray(borders.argmax(axis=1)).ravel()
    found = small & (borders.max(axis=1).toarray().ravel() > 0) & ~near[bones, around]
    return np.where(found, around, -1)[patches], (sizes >= _LARGE * areas.sum())[patches]
