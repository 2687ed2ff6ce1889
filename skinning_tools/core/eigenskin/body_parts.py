# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of a body that some of its joints connect: each part moves as one if only these joints turn."""

import numpy as np


def body_parts(parents: np.ndarray, joints: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Part (J,) of each joint, and the part (M,) above each of ``joints`` (M,), ascending.

    parents (J,) −1 for roots, each after its parent. Part m follows joint m of ``joints``; part M follows none of them.
    """
    # The last entry is the part above a root, whose parent is −1.
    parts = np.full(len(parents) + 1, len(joints))
    for joint in range(len(parents)):
        place = int(np.searchsorted(joints, joint))
        parts[joint] = place if place < len(joints) and joints[place] == joint else parts[parents[joint]]
    return parts[:-1], np.array([parts[parents[joint]] for joint in joints], int)


def part_weights(bones: np.ndarray, weights: np.ndarray, part_of_bone: np.ndarray, count: int) -> np.ndarray:
    """(count, N) the weight of each part at each vertex: bones and weights (N, K), part_of_bone (P,)."""
    own = np.zeros((count, len(bones)))
    vertices = np.arange(len(bones))
    for slot in range(bones.shape[1]):
        np.add.at(own, (part_of_bone[bones[:, slot]], vertices), weights[:, slot])
    return own
