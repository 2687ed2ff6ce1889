# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest

from skinning_tools.core.bone_placement import extents_along, place_bones


def rods():
    """Two rods of 200 points: along x about (−9, 0, 0), and along (0, 3, 4) about (9, 1, 1), thin across."""
    random = np.random.default_rng(0)
    along = np.linspace(-1, 1, 200)[:, None]
    thin = 0.02 * random.normal(size=(200, 3))
    first = np.array([-9.0, 0, 0]) + along * [2, 0, 0] + thin
    second = np.array([9.0, 1, 1]) + along * [0, 0.6, 0.8] + thin
    bones = np.repeat([[0], [1]], 200, axis=0)
    return np.concatenate([first, second]), bones, np.ones((400, 1))


def test_bones_lie_along_what_they_move():
    rest, bones, weights = rods()
    placement = place_bones(rest, bones, weights, 2)
    assert np.allclose(placement.heads, [[-9, 0, 0], [9, 1, 1]], atol=0.01)
    assert np.allclose(placement.axes[0, :, 1], [-1, 0, 0], atol=0.05)
    assert np.allclose(placement.axes[1, :, 1], [0, 0.6, 0.8], atol=0.05)
    assert placement.lengths[0] == pytest.approx(2, rel=0.05)
    assert placement.lengths[1] == pytest.approx(1, rel=0.05)
    assert np.allclose(np.linalg.det(placement.axes), 1)
    assert np.allclose(placement.axes.swapaxes(1, 2) @ placement.axes, np.eye(3), atol=1e-12)


def test_shared_vertices_count_less():
    rest = np.array([[0.0, 0, 0], [1, 0, 0]])
    placement = place_bones(rest, np.array([[0, 0], [0, 1]]), np.array([[1, 0], [0.5, 0.5]]), 2)
    assert placement.heads[0, 0] == pytest.approx(0.25 / 1.25)
    assert placement.heads[1, 0] == pytest.approx(1)


def test_bones_with_axes_of_their_own_keep_them():
    rest, bones, weights = rods()
    turned = np.array([[0, 0.6, 0.8], [1, 0, 0], [0, -0.8, 0.6]]).T
    placement = place_bones(rest, bones, weights, 2, own_axes=np.stack([np.eye(3), turned]))
    assert np.array_equal(placement.axes[0, :, 1], [-1, 0, 0])
    assert np.array_equal(placement.axes[1, :, 1], [0, 0.6, 0.8])
    assert np.allclose(np.linalg.det(placement.axes), 1)
    # Each is one of the given ones, but for its sign.
    assert np.allclose(np.sort(np.abs(turned.T @ placement.axes[1]), axis=0), [[0] * 3, [0] * 3, [1] * 3])
    assert placement.lengths[0] == pytest.approx(2, rel=0.05)


def test_a_bone_without_vertices_is_in_the_middle():
    rest, bones, weights = rods()
    placement = place_bones(rest, bones, weights, 3)
    assert np.allclose(placement.heads[2], rest.mean(axis=0))
    assert np.array_equal(placement.axes[2], np.eye(3))
    assert placement.lengths[2] > 0


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e6])
@pytest.mark.parametrize("distance", [0.0, 1e7])
def test_single_precision_tells_the_tail_from_the_head(scale, distance):
    rest, bones, weights = rods()
    placement = place_bones(scale * rest + distance, bones, weights, 2)
    tails = placement.heads + placement.lengths[:, None] * placement.axes[:, :, 1]
    lengths = np.linalg.norm(np.float32(tails) - np.float32(placement.heads), axis=1)
    assert np.allclose(lengths, placement.lengths, rtol=0.02)
    assert np.all(lengths > 2e-6)


def test_a_single_vertex_is_enough():
    placement = place_bones(np.array([[0.0, 0, 0], [0, 0, 2]]), np.array([[0], [1]]), np.ones((2, 1)), 2)
    assert np.allclose(placement.heads, [[0, 0, 0], [0, 0, 2]])
    assert np.allclose(placement.axes.swapaxes(1, 2) @ placement.axes, np.eye(3))
    assert np.all(placement.lengths > 0)


def test_extents_are_standard_deviations_along_the_axes():
    rest, bones, weights = rods()
    axes = place_bones(rest, bones, weights, 2).axes
    extents = extents_along(axes, rest, bones, weights, 2)
    expected = [
        np.std((rest[part] - rest[part].mean(axis=0)) @ axes[i], axis=0)
        for i, part in enumerate(np.split(np.arange(400), 2))
    ]
    assert np.allclose(extents, expected)
