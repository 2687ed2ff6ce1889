# SPDX-License-Identifier: GPL-3.0-or-later
"""Compressed weights as the bytes that engines read: the attributes of glTF, and a table for custom engines."""

import struct
from collections.abc import Sequence

import numpy as np

from ..errors import BadSettings
from .compression import STEPS, CompressedWeights, compress_weights
from .influence_rows import padded_influences

# magic, then numbers of vertices, bones and influences, bits of a weight and of an index, length of the names
_HEAD = struct.Struct("<8s6I")
MAGIC = b"SKINWGT1"


def joint_rows(joints: np.ndarray, weights: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, float]:
    """JOINTS and WEIGHTS of glTF, both (N, K) uint8 or uint16, and the largest rounding of a weight.

    joints and weights (N, K) as for ``compress_weights``, but all influences stay. Joints have bytes if the largest
    index allows it; an unused slot has joint 0, as the standard wants. Each row of weights sums to 255 or 65535 over
    all its slots.
    """
    width = np.shape(joints)[1]
    rounded = compress_weights(joints, weights, bits=bits, max_influences=width)
    bones, steps = padded_influences(rounded.bones, rounded.steps, width)
    bones = np.where(steps > 0, bones, 0)
    return bones.astype(_index_type(int(bones.max(initial=0)) + 1)), steps, rounded.largest_error


def packed_table(rounded: CompressedWeights, names: Sequence[str]) -> bytes:
    """The table of docs/engine_tables.md: ``rounded`` over the bones ``names`` (P,), little-endian.

    The head; the names in UTF-8, each with a zero byte at its end; the bones (N, K), strongest first, in 1 byte each
    where that is enough; the weights (N, K − 1) without each row's last, which the sum implies. Zeros fill names and
    bones up to a multiple of four bytes. A row without any weight has index P, which stands for no bone.
    """
    bound = np.any(rounded.steps, axis=1)
    width = used_slots(rounded)
    bones = np.where(bound[:, None], rounded.bones, len(names))[:, :width]
    steps = rounded.steps[:, :width].copy()
    steps[~bound, 0] = STEPS[rounded.bits]
    indices = bones.astype(_index_type(len(names) + int(not bound.all())))
    text = _filled(b"".join(name.encode() + b"\0" for name in names))
    head = _HEAD.pack(
        MAGIC, *bones.shape[:1], len(names), bones.shape[1], rounded.bits, 8 * indices.itemsize, len(text)
    )
    return head + text + _filled(_little(indices)) + _little(steps[:, :-1])


def used_slots(rounded: CompressedWeights) -> int:
    """The most influences of a row, at least 1: K of the table."""
    return int(np.count_nonzero(rounded.steps, axis=1).max(initial=1))


def _index_type(count: int) -> type[np.unsignedinteger]:
    """The smallest type for indices below ``count``. Raises BadSettings."""
    if count > 1 << 16:
        raise BadSettings(f"{count:,} bones are more than an index of 16 bits can tell apart")
    return np.uint8 if count <= 1 << 8 else np.uint16


def _little(numbers: np.ndarray) -> bytes:
    return np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).tobytes()


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
