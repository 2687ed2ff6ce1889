# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights to start from when bones of a skeleton were added and removed."""

import numpy as np

from skinning_tools.core.decomposition.again import first_weights

REST = np.stack([np.arange(9.0), np.zeros(9), np.zeros(9)], axis=1)
EDGES = np.stack([np.arange(8), np.arange(1, 9)], axis=1)
PARENTS = np.array([-1, 0, 1])


def ends(*bounds):
    return np.array([[[start, 0, 0], [end, 0, 0]] for start, end in bounds], float)


def test_vertices_of_a_removed_bone_go_to_their_neighbors():
    bones = np.array([[0]] * 3 + [[0]] * 3 + [[2]] * 3)
    weights = np.array([[1.0]] * 3 + [[0.0], [0.1], [0.0]] + [[1.0]] * 3)
    found, shares = first_weights(REST, EDGES, bones, weights, ends((0, 2), (40, 41), (6, 8)), PARENTS)
    np.testing.assert_array_equal(shares, 1)
    assert found[[0, 3, 5, 8], 0].tolist() == [0, 0, 2, 2]


def test_a_new_bone_takes_the_nearest_vertices_of_the_bones_beside_it():
    bones, weights = np.array([[0]] * 7 + [[2]] * 2), np.ones((9, 1))
    # Bone 0 was cut in two, of which bone 1 is the end; bone 2 lies on it but hangs elsewhere.
    parents = np.array([-1, 0, -1])
    found, shares = first_weights(REST, EDGES, bones, weights, ends((0, 3), (3, 8), (50, 51)), parents)
    assert found[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2]
    np.testing.assert_array_equal(shares.sum(axis=1), 1)
