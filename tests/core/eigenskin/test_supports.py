# SPDX-License-Identifier: GPL-3.0-or-later
"""Masks: where a joint corrects, and which support loses a shared vertex."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skinning_tools.core.eigenskin.supports import limited_masks, strengths, support_mask


def test_strength_is_the_largest_displacement():
    displacements = np.array([[[3, 4, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, -2.0]]])
    np.testing.assert_allclose(strengths(displacements), [5, 2])
    np.testing.assert_array_equal(strengths(np.zeros((0, 2, 3))), [0, 0])


@given(st.floats(0.001, 0.9), st.floats(1e-6, 1e6))
def test_the_mask_is_whole_from_the_threshold_on_and_smooth_below(threshold, scale):
    strength = scale * np.linspace(0, 1, 4001)
    mask = support_mask(strength, threshold)
    assert np.all(mask[strength >= threshold * scale * 1.0001] == 1)
    assert np.all(mask[strength <= 0.4999 * threshold * scale] == 0)
    assert np.all(np.diff(mask) >= 0)
    # A cubic over half the threshold: nowhere steeper than 1.5 of that.
    assert np.diff(mask).max() <= 1.5 * (1 / 4000) / (0.5 * threshold) + 1e-9


def test_without_a_threshold_all_that_moves_more_than_rounding_belongs():
    strength = np.array([0, 1e-9, 1e-7, 1e-3, 1])
    np.testing.assert_array_equal(support_mask(strength, 0), [0, 1, 1, 1, 1])
    np.testing.assert_array_equal(support_mask(strength, 0, least=1e-6), [0, 0, 0, 1, 1])


def random_supports(seed):
    random = np.random.default_rng(seed)
    count = random.integers(1, 8)
    strength = random.uniform(0, 1, (count, 50)) * random.choice([0, 1], (count, 50), p=[0.3, 0.7])
    masks = np.clip(random.uniform(-0.5, 2, (count, 50)), 0, 1) * (strength > 0)
    return masks, strength, random.integers(1, 6, count), int(random.integers(1, 12))


@given(st.integers(0, 100_000))
def test_no_vertex_is_in_more_components_than_allowed(seed):
    masks, strength, counts, most = random_supports(seed)
    limited = limited_masks(masks, strength, counts, most)
    assert np.all(limited >= 0)
    assert np.all(limited <= masks)
    assert np.max(counts @ (limited > 0)) <= most
    # Where there is room for all, nothing changes.
    roomy = counts @ (masks > 0) <= most
    np.testing.assert_array_equal(limited[:, roomy], masks[:, roomy])


@given(st.integers(0, 100_000))
def test_the_most_important_supports_stay(seed):
    masks, strength, counts, most = random_supports(seed)
    limited = limited_masks(masks, strength, counts, most)
    importance = masks * strength
    for vertex in range(masks.shape[1]):
        stayed = limited[:, vertex] > 0
        if stayed.any():
            gone = (masks[:, vertex] > 0) & ~stayed
            assert not gone.any() or importance[gone, vertex].max() <= importance[stayed, vertex].min()


@given(st.integers(0, 100_000))
def test_masks_change_gradually_where_strengths_and_masks_do(seed):
    """Along a line over the surface on which supports begin, end and overtake each other."""
    masks, strength, counts, most = random_supports(seed)
    ends, levels = masks[:, :2], np.maximum(strength[:, :2], 0.05)
    share = np.linspace(0, 1, 20_001)
    along = ends[:, :1] * (1 - share) + ends[:, 1:] * share
    limited = limited_masks(along, levels[:, :1] * (1 - share) + levels[:, 1:] * share, counts, most)
    assert np.abs(np.diff(limited, axis=1)).max() < 0.02


def test_a_support_with_too_many_components_vanishes():
    limited = limited_masks(np.ones((2, 3)), np.array([[3.0, 3, 3], [1, 1, 1]]), np.array([4, 2]), 3)
    np.testing.assert_array_equal(limited, 0)
    assert limited_masks(np.ones((2, 3)), np.array([[3.0] * 3, [1] * 3]), np.array([2, 2]), 3)[0].min() == 1


@pytest.mark.parametrize("counts", [[], [3]])
def test_few_supports(counts):
    masks = np.ones((len(counts), 4))
    np.testing.assert_array_equal(limited_masks(masks, masks, np.array(counts, int), 10), masks)
