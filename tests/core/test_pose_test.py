# SPDX-License-Identifier: GPL-3.0-or-later
"""What tears when one bone turns."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from skinning_tools.core.pose_test import shares_below, stretches, turns
from skinning_tools.core.seams import meeting_parts, sewn_vertices, torn_seams, with_seams

EDGES = np.array([[0, 1], [1, 2], [2, 3]])
REST = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]])
BONES = np.array([[0], [0], [1], [1]])
PARENTS = np.array([-1, 0])
MATRICES = np.tile(np.eye(4), (2, 1, 1))
MATRICES[1, 0, 3] = 1.5


def test_a_bone_carries_the_bones_below_it():
    given = np.array([[0, 1], [1, 2], [2, 0]]), np.array([[0.5, 0.5], [0.25, 0.75], [1, 0]]), np.array([-1, 0, 1])
    np.testing.assert_allclose(list(shares_below(*given)), [[1, 1, 1], [0.5, 1, 1], [0, 0.75, 1]])
    np.testing.assert_allclose(list(shares_below(*given, np.array([2, 0]))), [[0, 0.75, 1], [1, 1, 1]])


def test_many_bones_need_no_memory_for_all_shares_at_once():
    count, bone_count = 5000, 200
    bones, weights = np.arange(count)[:, None] % bone_count, np.ones((count, 1))
    tracemalloc.start()
    try:
        for shares in shares_below(bones, weights, np.arange(bone_count) - 1):
            assert shares.shape == (count,)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * 8 * count * bone_count


@pytest.mark.parametrize("preserve_volume", [False, True])
def test_the_edge_at_a_hard_joint_stretches_as_far_as_its_end_swings(preserve_volume):
    shares = shares_below(BONES, np.ones((4, 1)), PARENTS)
    found = list(turns(REST, shares, MATRICES, np.pi / 2, preserve_volume))
    # The root moves everything alike; the other bone turns about three axes, both ways.
    assert [(turn.bone, turn.axis) for turn in found] == [(1, axis) for axis in (0, 0, 1, 1, 2, 2)]
    about_x, about_z = found[0], found[4]
    np.testing.assert_allclose(stretches(about_x.points, EDGES, np.ones(3)), 1)
    np.testing.assert_allclose(about_z.points[2:], [[1.5, 0.5, 0], [1.5, 1.5, 0]], atol=1e-12)
    np.testing.assert_allclose(stretches(about_z.points, EDGES, np.ones(3)), [1, np.sqrt(0.5), 1])


def test_blended_vertices_turn_half_with_preserved_volume():
    shares = np.array([[0.0, 0, 0.5, 1]])
    matrix = MATRICES[1:]
    linear, kept = (list(turns(REST, shares, matrix, np.pi / 2, volume))[4].points for volume in (False, True))
    np.testing.assert_allclose(linear[2], [1.75, 0.25, 0])
    np.testing.assert_allclose(kept[2], [1.5 + 0.5 * np.sqrt(0.5), 0.5 * np.sqrt(0.5), 0])


def test_a_seam_opens():
    rest = np.concatenate([REST, REST[1:2]])
    edges = with_seams(rest, EDGES)
    assert sorted(edges[-1]) == [1, 4]
    assert len(edges) == len(EDGES) + 1
    lengths = np.array([1.0, 1, 1, 0])
    moved = rest.copy()
    moved[4, 2] = 0.5
    np.testing.assert_allclose(stretches(moved, edges, lengths), [1, 1, 1, 6])
    assert torn_seams(rest, EDGES, [rest, moved, rest]) == 1
    assert torn_seams(rest, EDGES, [rest]) == 0
    # Where an edge joins the two, nothing is split.
    assert torn_seams(rest, edges, [moved]) == 0
    assert torn_seams(REST, EDGES, [REST]) == 0


def test_all_parts_that_meet_at_a_seam_are_neighbors():
    """Three faces, each of another part, with a corner at one place; a fourth goes on from the edge of the third."""
    fans = [[[0, 0], [1, 0], [1, 1]], [[0, 0], [-1, 0], [-1, 1]], [[0, 0], [0, -1], [1, -1]], [[0, -2], [1, -2]]]
    rest = np.pad(np.concatenate(fans).astype(float), ((0, 0), (0, 1)))
    triangles = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [7, 9, 10]])
    parts = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3])
    expected = np.zeros((4, 4), bool)
    expected[:3, :3] = expected[2:, 2:] = True
    np.testing.assert_array_equal(meeting_parts(rest, triangles, parts, 4), expected)


def test_sides_of_a_seam_are_one_where_bones_move_them_alike():
    rest = np.zeros((8, 3))
    rest[5:7] = [1, 0, 0]
    # At one place: two that move alike, two others that do, one between; a layer beside without a border.
    weights = sparse.csr_matrix([[1, 0], [0, 1], [0.5, 0.5], [1, 1e-7], [0, 1], [1, 0], [1, 0], [1, 0]])
    border = np.array([1, 1, 1, 1, 1, 1, 1, 0], bool)
    assert sewn_vertices(rest, border, weights).tolist() == [0, 1, 2, 0, 1, 5, 5, 7]
    assert sewn_vertices(rest, ~border, weights).tolist() == list(range(8))
