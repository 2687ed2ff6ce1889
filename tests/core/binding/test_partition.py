# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid parts and skin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.binding.partition import (
    SKIN,
    influence_counts,
    influence_shares,
    partition_faces,
    vertex_bones,
)
from skinning_tools.core.errors import BadMesh, BadSettings

from ..skinned_shapes import chain_weights, cuboid


def of_triangles(triangles, *arguments, **settings):
    return partition_faces(triangles.ravel(), np.arange(0, 3 * len(triangles), 3), *arguments, **settings)


def test_a_bar_with_one_joint_has_two_rigid_ends():
    rest, triangles = cuboid(columns=60, rows=4)
    bones, weights = chain_weights(rest[:, 0], [3.0])
    result = of_triangles(triangles, bones, weights)
    np.testing.assert_array_equal(result.bones, [0, 1])
    x = rest[triangles][:, :, 0]
    # Smooth steps are within single precision of their ends a little before these.
    clearly = 0.01
    np.testing.assert_array_equal(result.face_bones[(x <= 2).all(axis=1)], 0)
    np.testing.assert_array_equal(result.face_bones[(x >= 4).all(axis=1)], 1)
    blended = ((x > 2 + clearly) & (x < 4 - clearly)).any(axis=1)
    np.testing.assert_array_equal(result.face_bones[blended], SKIN)
    assert result.skin_faces + result.face_counts.sum() == len(triangles)


def test_faces_between_two_rigid_parts_are_skin():
    rest, triangles = cuboid(columns=10, rows=2)
    bone = (rest[:, 0] > 2.9).astype(np.int32)[:, None]
    result = of_triangles(triangles, bone, np.ones((len(rest), 1)))
    corners = bone[:, 0][triangles]
    np.testing.assert_array_equal(
        result.face_bones, np.where((corners == corners[:, :1]).all(axis=1), corners[:, 0], SKIN)
    )
    assert result.skin_faces == 16


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_polygons_of_any_size(seed):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 7, 30)
    corners = random.integers(0, 12, sizes.sum())
    bones = random.integers(0, 3, (12, 2)).astype(np.int32)
    weights = np.where(random.random((12, 1)) < 0.7, [[1.0, 0.0]], [[0.5, 0.5]])
    starts = np.cumsum(sizes) - sizes
    expected = []
    for start, size in zip(starts, sizes, strict=True):
        face = corners[start : start + size]
        alone = {int(bones[v, 0]) if weights[v, 0] == 1 else None for v in face}
        expected.append(SKIN if len(alone) > 1 or None in alone else alone.pop())
    np.testing.assert_array_equal(partition_faces(corners, starts, bones, weights).face_bones, expected)


def test_nearly_whole_weights_count_when_asked_to():
    weights = np.array([[0.995, 0.005], [0.3, 0.7], [1 - 1e-7, 1e-7]])
    bones = np.array([[2, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(vertex_bones(bones, weights), [SKIN, SKIN, 1])
    np.testing.assert_array_equal(vertex_bones(bones, weights, 0.01), [2, SKIN, 1])


def test_small_parts_are_left_to_the_skin():
    triangles = np.array([[0, 1, 2], [0, 1, 3], [4, 5, 6]])
    bones = np.array([[0], [0], [0], [0], [1], [1], [1]])
    result = of_triangles(triangles, bones, np.ones((7, 1)), least_faces=2)
    np.testing.assert_array_equal(result.face_bones, [0, 0, SKIN])
    np.testing.assert_array_equal(result.bones, [0])
    np.testing.assert_array_equal(result.face_counts, [2])


def test_shares_of_influences():
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0], [1, 0, 0], [0.4, 0.3, 0.3], [0.999, 0.001, 0]])
    np.testing.assert_allclose(influence_shares(weights), [0, 0.4, 0.4, 0.2])
    np.testing.assert_allclose(influence_shares(weights, 0.01), [0, 0.6, 0.2, 0.2])
    np.testing.assert_array_equal(influence_counts(weights), [1, 2, 1, 3, 2])


def test_a_mesh_without_faces_has_no_parts():
    result = of_triangles(np.zeros((0, 3), int), np.zeros((2, 1), int), np.ones((2, 1)))
    assert len(result.face_bones) == len(result.bones) == result.skin_faces == 0


def test_wrong_input_is_refused():
    with pytest.raises(BadMesh, match="without corners"):
        partition_faces([0, 1, 2], [0, 3], np.zeros((3, 1), int), np.ones((3, 1)))
    with pytest.raises(BadSettings, match="tolerance"):
        partition_faces([0], [0], np.zeros((1, 1), int), np.ones((1, 1)), tolerance=0.5)
