# SPDX-License-Identifier: GPL-3.0-or-later
"""Channels of helpers: quadratic functions of a few components of joints' rotations.

The features of a joint are the products of 1, x, y and z of its quaternion whose w is not negative: what vanishes at
rest. A channel becomes a driver, and Blender copies and evaluates each variable of each driver in every update. So a
channel takes only the components that are worth their time.
"""

import numpy as np

# Pairs of 1 x y z, in the order of the features of a joint.
PRODUCTS = ((0, 1), (0, 2), (0, 3), (1, 1), (2, 2), (3, 3), (1, 2), (1, 3), (2, 3))
# More variables might not fit into one expression in Blender.
_MOST_VARIABLES = 7
# A driver takes as much time as so many variables of it (in Blender 5.2, 1.6 and 1.2 µs of an update of the pose).
_DRIVER = 1.3


def features(turns: np.ndarray, joints: tuple[int, ...] | list[int]) -> np.ndarray:
    """(F, 9 J) the products of the joints' quaternions; turns (F, P, 4)."""
    given = turns[:, list(joints)]
    given = np.where(given[..., :1] < 0, -given, given)
    given[..., 0] = 1.0
    parts = [given[:, :, a] * given[:, :, b] for a, b in PRODUCTS]
    return np.stack(parts, axis=-1).reshape(len(turns), -1)


def chosen_terms(gram: np.ndarray, right: np.ndarray, least_gain: float) -> np.ndarray:
    """(D,) bool: the features that a channel takes, of the variables that explain it best, one added after the other.

    gram (D, D) and right (D,): of the regression on the features of some joints. least_gain: by how much a variable
    must lower the squared error.
    """
    pairs = np.array([[(a or b) - 1, b - 1] for a, b in PRODUCTS])
    first, second = (3 * np.arange(len(gram) // len(PRODUCTS))[:, None, None] + pairs).reshape(-1, 2).T
    used, explained = np.zeros(len(gram) // 3, bool), 0.0
    for number in range(min(_MOST_VARIABLES, len(used))):
        tried = np.flatnonzero(~used)
        masks = used | np.eye(len(used), dtype=bool)[tried]
        gains = _explained(gram, right, masks[:, first] & masks[:, second])
        best = int(np.argmax(gains))
        if not gains[best] - explained > least_gain * (1.0 if number else 1.0 + _DRIVER):
            break
        used[tried[best]], explained = True, gains[best]
    return used[first] & used[second]


def _explained(gram: np.ndarray, right: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """(T,) by how much the features ``terms`` (T, D) lower the squared error."""
    found = np.empty(len(terms))
    counts = terms.sum(axis=1)
    for count in np.unique(counts):
        same = np.flatnonzero(counts == count)
        places = np.nonzero(terms[same])[1].reshape(len(same), count)
        solved = np.linalg.solve(gram[places[:, :, None], places[:, None]], right[places][..., None])[..., 0]
        found[same] = (solved * right[places]).sum(axis=1)
    return found


def fitted(gram: np.ndarray, right: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """(D, C) coefficients of channels with the features ``terms`` (D, C), 0 for the others; right (D, C)."""
    coefficients = np.zeros(right.shape)
    for channel, own in enumerate(terms.T):
        coefficients[own, channel] = np.linalg.solve(gram[np.ix_(own, own)], right[own, channel])
    return coefficients
