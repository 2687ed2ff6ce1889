# SPDX-License-Identifier: GPL-3.0-or-later
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skinning_tools.core.errors import Cancelled
from skinning_tools.core.virtual_subdivision import subdivide, weight_differences

from .skinned_shapes import split_triangles


def random_triangles(seed, count=12, vertex_count=9, bone_count=5):
    """Triangles, dense weights and the subdivider's view of them."""
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(bone_count, 0.5), vertex_count)
    weights[weights < 0.1] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    triangles = np.array([random.choice(vertex_count, 3, replace=False) for _ in range(count)])
    return triangles, weights, weight_differences(sparse.csr_matrix(weights), triangles)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 0.3, 2.0]), st.sampled_from([7, 100, 1 << 18]))
@settings(deadline=None, max_examples=40)
def test_pieces_are_those_of_real_subdivision(seed, epsilon, limit):
    """The pieces come in the order of the triangles for any limit, judged by their centers and areas."""
    triangles, weights, differences = random_triangles(seed)
    expected = []
    for row, triangle in enumerate(triangles):
        corners, _ = split_triangles(np.eye(3), weights[triangle], epsilon)
        shares = [abs(np.linalg.det(piece)) for piece in corners]
        expected += [(row, *np.mean(piece, axis=0), share) for piece, share in zip(corners, shares, strict=True)]
    found = []
    for pieces in subdivide(differences, epsilon, limit):
        assert np.all(np.diff(pieces.triangles) >= 0)
        found.append(np.column_stack([pieces.triangles, pieces.middles, pieces.shares]))
    found, expected = np.concatenate(found), np.array(expected)
    assert len(found) == len(expected)

    def ordered(rows):
        return rows[np.lexsort(np.round(rows, 9).T)]

    np.testing.assert_allclose(ordered(found), ordered(expected), atol=1e-12)
    np.testing.assert_allclose(np.bincount(found[:, 0].astype(int), found[:, 4]), 1, atol=1e-12)


def test_threshold_zero_leaves_triangles_whole():
    triangles, _, differences = random_triangles(1)
    (pieces,) = subdivide(differences, 0.0)
    np.testing.assert_array_equal(pieces.triangles, np.arange(len(triangles)))
    np.testing.assert_allclose(pieces.middles, 1 / 3)
    np.testing.assert_array_equal(pieces.shares, 1)


def test_memory_does_not_grow_with_the_pieces():
    """A million pieces would be 40 MB, and several times that while they are cut."""
    _, _, differences = random_triangles(2, count=40)
    limit, count = 4096, 0
    tracemalloc.start()
    try:
        for pieces in subdivide(differences, 0.005, limit):
            count += len(pieces.triangles)
            assert len(pieces.triangles) < 3 * limit
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count > 1_000_000
    assert peak < 15e6


def test_progress_rises_and_cancels():
    _, _, differences = random_triangles(3, count=200)
    seen = []
    for _ in subdivide(differences, 0.02, 500, lambda fraction, stage: seen.append(fraction)):
        pass
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert 0 <= seen[0] <= seen[-1] <= 1
    with pytest.raises(Cancelled):
        list(subdivide(differences, 0.02, 500, lambda fraction, stage: fraction < 0.5))
