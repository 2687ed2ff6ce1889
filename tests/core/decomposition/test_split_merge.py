# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving bones from regions that earn little to those that need them."""

import numpy as np
import pytest

from skinning_tools.core.decomposition.bone_model import homogeneous
from skinning_tools.core.decomposition.reduction import Reduction
from skinning_tools.core.decomposition.split_merge import Cloud, move_bones

from .sequences import boxes, sheet


def affine_error(points, data, labels):
    """Squared error of the best affine motion of each region, by plain least squares."""
    total = 0.0
    for region in np.unique(labels):
        rows = labels == region
        total += np.sum((points[rows] @ np.linalg.lstsq(points[rows], data[rows], rcond=None)[0] - data[rows]) ** 2)
    return total


def cloud(points, data):
    return Cloud(points, Reduction(np.eye(data.shape[1]), data, 0.0))


def problem(frames):
    return homogeneous(frames[0]), frames.transpose(1, 0, 2).reshape(frames.shape[1], -1)


@pytest.mark.parametrize("bone_count", [3, 8, 15])
def test_every_round_lowers_the_error_and_keeps_the_number_of_bones(bone_count):
    frames, _ = sheet(20, 30)
    points, data = problem(frames)
    labels = np.random.default_rng(bone_count).integers(0, bone_count, size=len(points))
    last = affine_error(points, data, labels)
    for _ in range(5):
        labels, moves = move_bones(cloud(points, data), labels, bone_count)
        error = affine_error(points, data, labels)
        assert len(np.unique(labels)) == bone_count
        assert (error < last) if moves else error == pytest.approx(last)
        last = error


def test_a_part_cut_in_two_gives_its_bone_to_one_that_shares():
    """Two of six boxes share a region, a third is cut in two: the only move that makes all six exact is taken."""
    frames, _ = boxes(count=6, motion="affine")
    frames = np.repeat(frames, 3, axis=1)
    part = np.arange(frames.shape[1]) // 24
    labels = np.array([0, 0, 1, 2, 3, 4])[part]
    labels[(part == 2) & (frames[0, :, 0] > frames[0, part == 2, 0].mean())] = 5
    points, data = problem(frames)
    moved, moves = move_bones(cloud(points, data), labels, 6)
    assert moves == 1
    assert affine_error(points, data, moved) < 1e-9 * affine_error(points, data, labels)


def test_nothing_moves_where_every_bone_is_needed():
    frames, _ = boxes(count=5, motion="affine")
    points, data = problem(frames)
    labels = np.arange(len(points)) // 8
    moved, moves = move_bones(cloud(points, data), labels, 5)
    assert moves == 0
    np.testing.assert_array_equal(moved, labels)


def test_tiny_regions_are_left_alone():
    points, data = problem(sheet(2, 3)[0])
    labels = np.arange(len(points))
    moved, moves = move_bones(cloud(points, data), labels, len(points))
    assert moves == 0
    np.testing.assert_array_equal(moved, labels)
