# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of bones in their hierarchy. Needs numpy only."""

from collections.abc import Sequence

import numpy as np

from .errors import BadSettings


def depths(parents: Sequence[int] | np.ndarray, names: Sequence[str] | None = None) -> np.ndarray:
    """(P,) the number of ancestors of each bone, from ``parents`` (P,), −1 for a bone without a parent.

    Raises BadSettings where a bone is its own ancestor; the message has its name from ``names``, or else its index.
    """
    parents = np.asarray(parents, dtype=np.int64)
    result, ancestors = np.zeros(len(parents), dtype=np.int64), parents
    for _ in range(len(parents)):
        if (ancestors < 0).all():
            return result
        result += ancestors >= 0
        ancestors = np.where(ancestors < 0, -1, parents[ancestors])
    if (ancestors >= 0).any():
        bone = int(np.argmax(ancestors >= 0))
        raise BadSettings(f"Bone {bone if names is None else names[bone]} is its own ancestor")
    return result


def parents_first(parents: Sequence[int] | np.ndarray) -> list[int]:
    """All bones, each after its parent; bones of equal depth keep their order. Raises BadSettings: see ``depths``."""
    return np.argsort(depths(parents), kind="stable").tolist()


def subtrees(parents: np.ndarray) -> np.ndarray:
    """(P, P) bool: for each bone of ``parents`` (P,) those below it, and itself."""
    below = np.eye(len(parents), dtype=bool)
    for bone in reversed(parents_first(parents)):
        if parents[bone] >= 0:
            below[parents[bone]] |= below[bone]
    return below


def linked_bones(parents: np.ndarray) -> np.ndarray:
    """(P, P) bool, symmetric: bones and their ``parents`` (P,); none with itself."""
    linked, below = np.zeros((len(parents), len(parents)), bool), np.flatnonzero(parents >= 0)
    linked[below, parents[below]] = linked[parents[below], below] = True
    return linked
