# SPDX-License-Identifier: GPL-3.0-or-later
"""Colors of weights and influence counts."""

import colorsys

import numpy as np
import pytest

from skinning_tools.core.binding.weight_view import bone_colors, count_colors, weight_colors


def display(linear):
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


def hues(colors):
    return np.array([colorsys.rgb_to_hsv(*row)[0] for row in display(colors.astype(float))])


def test_a_bone_has_the_same_color_in_every_rig():
    names = ["hips", "spine", "chest", "arm.L", "arm.R"]
    parents = [-1, 0, 1, 2, 2]
    colors = bone_colors(names, parents)
    more = bone_colors(["root", *names, "hand.L"], [-1, -1, 1, 2, 3, 3, 4])
    np.testing.assert_array_equal(more[1:6], colors)
    turned = bone_colors(names[::-1], [2, 2, 3, 4, -1])
    np.testing.assert_array_equal(turned[::-1], colors)


def test_no_bone_looks_like_its_parent(shared_data):
    data = np.load(shared_data("human_rig.npz"))
    parents = data["parents"]
    colors = bone_colors([str(name) for name in data["bone_names"]], parents)
    assert ((colors >= 0) & (colors <= 1)).all()
    hue = hues(colors)
    has_parent = parents >= 0
    difference = np.abs((hue - hue[parents] + 0.5) % 1 - 0.5)[has_parent]
    assert difference.min() > 0.119
    # Without the parents some do.
    alone = hues(bone_colors([str(name) for name in data["bone_names"]]))
    assert np.abs((alone - alone[parents] + 0.5) % 1 - 0.5)[has_parent].min() < 0.05
    # And 163 bones are 163 colors.
    assert len(np.unique(np.round(colors, 4), axis=0)) == len(parents)


def test_colors_mix_by_weight():
    colors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    bones = np.array([[0, 1], [2, 0], [1, 1]])
    weights = np.array([[0.25, 0.75], [1.0, 0.0], [0.0, 0.0]])
    expected = [[0.25, 0.75, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    result = weight_colors(bones, weights, colors)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected)


@pytest.mark.parametrize("most", [1, 2, 4, 8])
def test_counts_above_the_limit_stand_out(most):
    colors = count_colors(np.arange(most + 3), most)
    assert colors.shape == (most + 3, 4)
    assert len(np.unique(colors[: most + 2], axis=0)) == most + 2
    np.testing.assert_array_equal(colors[most + 1], colors[most + 2])
    np.testing.assert_allclose(colors[most + 1], [1, 0, 0.25, 1])


def test_no_vertices_and_no_bones():
    assert bone_colors([], []).shape == (0, 3)
    assert weight_colors(np.zeros((0, 2), int), np.zeros((0, 2)), np.zeros((1, 3))).shape == (0, 4)
    assert count_colors(np.zeros(0, int)).shape == (0, 4)
