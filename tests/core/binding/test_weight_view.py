# SPDX-License-Identifier: GPL-3.0-or-later
"""Colors of weights and influence counts."""

import numpy as np
import pytest

from skinning_tools.core.binding.weight_view import PALETTES, bone_colors, count_colors, shown_together, weight_colors

# Least distance of neighbors in OKLab, and what palettes are meant for: the missing cones (Machado et al. 2009).
LEAST = {"DISTINCT": 0.2, "COLOR_BLIND": 0.14}
EYES = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def oklab(linear):
    """Ottosson 2020."""
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    axes = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.cbrt(np.clip(linear, 0, 1) @ np.transpose(cones)) @ np.transpose(axes)


def distances(colors, eyes="all"):
    seen = oklab(np.asarray(colors, float) @ np.transpose(EYES[eyes]))
    return np.linalg.norm(seen[:, None] - seen[None], axis=2)


def all_colors(palette):
    """Of the palette: as many bones as it has colors, all beside each other."""
    count = len(PALETTES[palette].split())
    return bone_colors([str(bone) for bone in range(count)], np.ones((count, count)), palette)


@pytest.mark.parametrize("palette", PALETTES)
def test_any_two_colors_of_a_palette_differ(palette):
    for eyes in EYES if palette == "COLOR_BLIND" else ["all"]:
        apart = distances(all_colors(palette), eyes)
        assert apart[~np.eye(len(apart), dtype=bool)].min() >= LEAST[palette], eyes
    # And from black, which means no bone.
    assert np.linalg.norm(oklab(all_colors(palette)), axis=1).min() > 0.25


def test_the_usual_palette_is_not_one_for_color_blind_eyes():
    apart = distances(all_colors("DISTINCT"), "no green")
    assert apart[~np.eye(len(apart), dtype=bool)].min() < 0.1


@pytest.fixture(scope="module")
def human(shared_data):
    """Names, and how much any two of the 163 bones show side by side."""
    data = np.load(shared_data("human_rig.npz"))
    quads = data["quads"]
    edges = np.concatenate([quads[:, [side, (side + 1) % 4]] for side in range(4)])
    together = shown_together(data["influence_bones"], data["influence_weights"], edges, data["parents"])
    return [str(name) for name in data["bone_names"]], together, data["parents"]


def test_no_bone_looks_like_one_beside_it(human):
    """All that share a vertex or an edge of the body, and parents: about 700 pairs."""
    names, together, parents = human
    beside = together > 0
    assert beside.sum() // 2 > 600
    assert beside[np.arange(len(parents))[parents >= 0], parents[parents >= 0]].all()
    assert distances(bone_colors(names, together))[beside].min() >= 0.2
    # By the names alone some look the same.
    assert distances(bone_colors(names))[beside].min() < 1e-6


def test_where_colors_run_out_bones_that_hardly_show_together_share_one(human):
    names, together, _ = human
    beside = together > 0
    alike = beside & (distances(bone_colors(names, together, "COLOR_BLIND")) < 1e-6)
    by_name = beside & (distances(bone_colors(names, None, "COLOR_BLIND")) < 1e-6)
    assert together[alike].sum() < 0.01 * together[by_name].sum()
    assert together[alike].sum() < 0.001 * together.sum()


def test_more_bones_beside_each_other_than_colors():
    count = 40
    found = np.unique(bone_colors([str(bone) for bone in range(count)], np.ones((count, count))), axis=0)
    assert len(found) == len(PALETTES["DISTINCT"].split())


def test_colors_depend_on_names_and_neighbors_alone():
    names = ["hips", "spine", "chest", "arm.L", "arm.R"]
    together = shown_together(np.zeros((0, 2), int), np.zeros((0, 2)), np.zeros((0, 2), int), [-1, 0, 1, 2, 2])
    colors = bone_colors(names, together)
    turned = bone_colors(names[::-1], together[::-1, ::-1])
    np.testing.assert_array_equal(turned[::-1], colors)
    # A bone that is beside none of them changes nothing.
    np.testing.assert_array_equal(bone_colors([*names, "prop"], np.pad(together, (0, 1)))[:5], colors)


def test_what_shows_together():
    bones = np.array([[0, 1], [1, 0], [2, 2], [3, 3]])
    weights = np.array([[0.25, 0.75], [0.5, 0.5], [1, 0], [0, 0]])
    # Vertex 2 follows another bone than its neighbors; vertex 3 follows none.
    together = shown_together(bones, weights, np.array([[0, 1], [1, 2], [2, 3]]), [-1, -1, -1, 2])
    expected = np.zeros((4, 4))
    expected[0, 1] = 0.25 + 0.5
    expected[1, 2] = 1
    expected[2, 3] = 1e-6
    np.testing.assert_allclose(together, expected + expected.T, atol=1e-12)


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
