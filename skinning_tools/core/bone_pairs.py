# SPDX-License-Identifier: GPL-3.0-or-later
"""Which places of a mesh share which two bones."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class BonePairs:
    """All pairs of bones that stand together in a row of a sparse matrix, sorted by pair.

    keys (I,) int64: first bone · P + second bone, first < second. rows (I,): the matrix' row; ascending within a pair.
    first, second (I,): where in the matrix' indices and data the two bones' entries are.
    """

    keys: np.ndarray
    rows: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def of(cls, pointers: np.ndarray, indices: np.ndarray, bone_count: int) -> "BonePairs":
        """pointers (n + 1,), indices (entries,): the pattern of a sparse matrix in rows, its indices sorted by row."""
        lengths = np.diff(pointers)
        row_parts, first_parts, second_parts = [np.empty(0, int)], [np.empty(0, int)], [np.empty(0, int)]
        for length in np.unique(lengths[lengths > 1]):
            matching = np.flatnonzero(lengths == length)
            one, other = np.triu_indices(length, 1)
            row_parts.append(np.repeat(matching, len(one)))
            first_parts.append((pointers[matching, None] + one).ravel())
            second_parts.append((pointers[matching, None] + other).ravel())
        rows, first, second = (
            np.concatenate(parts).astype(np.int32) for parts in (row_parts, first_parts, second_parts)
        )
        keys = indices[first].astype(np.int64) * bone_count + indices[second]
        order = np.lexsort((rows, keys))
        return cls(keys[order], rows[order], first[order], second[order])

    def groups(self) -> dict[int, slice]:
        """From each key to its part of the arrays."""
        if len(self.keys) == 0:
            return {}
        starts = np.flatnonzero(np.diff(self.keys, prepend=-1))
        ends = np.append(starts[1:], len(self.keys))
        return {int(self.keys[start]): slice(start, end) for start, end in zip(starts, ends, strict=True)}
