# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes that are hard to decompose: many parts, loose vertices, no faces, no motion, too many bones."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose
from skinning_tools.core.decomposition.error_seeds import parts_of, regions_by_error
from skinning_tools.core.decomposition.reduction import AnimationMatrix, reduce_animation
from skinning_tools.core.errors import BadAnimation, Cancelled

from .sequences import boxes, sheet

NO_FACES = np.empty((0, 3), int)


def groups_of_boxes(parts, groups, seed=0, frames=12):
    """Separate boxes on a grid, dealt at random to groups that move each as one rigid body: frames, triangles, and the
    group of each vertex."""
    random = np.random.default_rng(seed)
    still, triangles = boxes(parts, frames=1)
    grid = np.stack([np.arange(parts) % 8, np.arange(parts) // 8, np.zeros(parts)], axis=1)
    rest = still[0] + (3 * (grid - np.arange(parts)[:, None] * [1, 0, 0])).repeat(8, axis=0)
    of_vertex = random.permutation(np.arange(parts) % groups).repeat(8)
    axes, drift = 0.15 * random.normal(size=(groups, 3)), 0.3 * random.normal(size=(groups, 3))
    moved = [
        np.einsum("nij,nj->ni", Rotation.from_rotvec(axes * f).as_matrix()[of_vertex], rest) + f * drift[of_vertex]
        for f in range(frames)
    ]
    return np.array(moved), triangles, of_vertex


def shuffled(frames, triangles, seed=0):
    """The same mesh with its vertices in another order."""
    order = np.random.default_rng(seed).permutation(frames.shape[1])
    return frames[:, order], np.argsort(order)[triangles]


def solved(frames, triangles, *settings, **more):
    return decompose(Animation(frames, triangles, name='"Test"'), Settings(*settings, **more))


def error_of_regions(frames, labels) -> float:
    """E_RMS where each region (labels (N,)) has the affine motion that fits it best."""
    meter = ErrorMeter(unit_scale(frames), frames.shape[1])
    rest = np.column_stack([frames[0], np.ones(frames.shape[1])])
    for positions in frames:
        fitted = np.empty_like(positions)
        for region in np.unique(labels):
            own = labels == region
            fitted[own] = rest[own] @ np.linalg.lstsq(rest[own], positions[own], rcond=None)[0]
        meter.add(positions, fitted)
    return meter.e_rms


@pytest.mark.parametrize("kind", BONE_KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_boxes_with_a_bone_each_in_any_order_of_vertices(kind, seed):
    assert solved(*shuffled(*boxes(20), seed), 20, kind).e_rms < 1e-3


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_boxes_of_very_different_sizes(kind):
    frames, triangles = boxes(20)
    sizes = np.exp(np.random.default_rng(1).uniform(-4, 0, 20)).repeat(8)[:, None]
    centers = frames.reshape(len(frames), 20, 8, 3).mean(axis=2).repeat(8, axis=1)
    assert solved(centers + sizes * (frames - centers), triangles, 20, kind).e_rms < 1e-3


@pytest.mark.parametrize("kind", BONE_KINDS)
@pytest.mark.parametrize("faces", [True, False])
@pytest.mark.parametrize(("parts", "groups", "seed"), [(60, 12, 1), (60, 12, 2), (48, 6, 0), (48, 6, 3), (100, 30, 2)])
def test_dozens_of_parts_that_move_in_groups_are_exact(parts, groups, seed, faces, kind):
    frames, triangles, _ = groups_of_boxes(parts, groups, seed)
    frames, triangles = shuffled(frames, triangles, seed)
    assert solved(frames, triangles if faces else NO_FACES, groups, kind).e_rms < 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_a_bone_less_than_groups_costs_no_more_than_two_groups_in_one(seed):
    """The best result with one bone per vertex: of all pairs of groups, merging the best one."""
    frames, triangles, groups = groups_of_boxes(32, 6, seed)
    best = min(
        error_of_regions(frames, np.where(groups == other, one, groups)) for one, other in combinations(range(6), 2)
    )
    assert solved(frames, triangles, 5, max_influences=1).e_rms <= best
    assert solved(frames, triangles, 5).e_rms < 0.8 * best


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_parts_that_are_flat(kind):
    """Cards, as of hair or leaves: a single card does not determine how points off its plane move."""
    frames, _, _ = groups_of_boxes(60, 12, 1)
    corners = (8 * np.arange(60)[:, None] + np.arange(4)).ravel()
    triangles = np.concatenate([np.array([[0, 1, 3], [0, 3, 2]]) + 4 * part for part in range(60)])
    assert solved(frames[:, corners], triangles, 12, kind).e_rms < 1e-3


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_isolated_vertices_follow_the_parts_that_they_belong_to(kind):
    """Half of the vertices are in no face: each moves as one of the boxes, and many others lie between."""
    frames, triangles, groups = groups_of_boxes(40, 5, 2)
    kept = np.isin(triangles, np.arange(8 * 20)).all(axis=1)
    result = solved(frames, triangles[kept], 5, kind)
    assert result.e_rms < 1e-3
    strongest = result.bones[np.arange(320), np.argmax(result.weights, axis=1)]
    assert len({(int(group), int(bone)) for group, bone in zip(groups, strongest, strict=True)}) == 5


def test_a_few_loose_vertices_change_nothing_for_the_others():
    frames, triangles = sheet()
    alone = solved(frames, triangles, 6)
    more = np.concatenate([frames, 0.5 * (frames[:, :3] + frames[:, 3:6])], axis=1)
    result = solved(more, triangles, 6)
    assert result.e_rms < 1.1 * alone.e_rms
    assert parts_of(triangles, more.shape[1]) is None


@pytest.mark.parametrize("kind", BONE_KINDS)
@pytest.mark.parametrize("given", [{}, {"smoothness": 0.5}, {"residual_shapes": 2}, {"target_error": 0.1}])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_mesh_that_stands_still(kind, given, offset):
    for frames, triangles in (sheet(6, 9), boxes(4), (sheet(6, 9)[0], NO_FACES)):
        result = solved(np.repeat(frames[:1] + offset, 5, axis=0), triangles, 6, kind, **given)
        assert result.e_rms < 1e-3
        assert result.bone_count == (1 if "target_error" in given else 6)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_flat_mesh_far_from_the_origin_by_the_published_method(offset):
    """Its equations are singular but for rounding, and what that makes of the free direction grows with the offset.

    Rounding has a say in the later sweeps, so where they end differs; but they gain, and lose no digits on the way.
    """
    frames, triangles = sheet(5, 8)
    result = solved(frames + offset, triangles, 7, method="KAVAN2010", iterations=4)
    assert result.e_rms == pytest.approx(result.history[-1], rel=1e-3)
    assert result.e_rms < result.history[0]


def test_invalid_numbers_are_reported_with_frame_and_vertex():
    frames, triangles = boxes(4)
    for value in (np.nan, np.inf):
        broken = frames.copy()
        broken[6, 21, 2] = value
        with pytest.raises(BadAnimation, match=r'"Test" .* at frame 7, vertex 21\.'):
            solved(broken, triangles, 4)


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_five_hundred_bones_on_two_thousand_vertices(kind):
    frames, triangles = sheet(40, 50, 12)
    frames = frames + 0.002 * np.random.default_rng(0).normal(size=frames.shape)
    result = solved(frames, triangles, 500, kind, iterations=2)
    assert result.bone_count == 500
    assert np.isfinite(result.transforms).all()
    assert result.e_rms < solved(frames, triangles, 50, kind, iterations=2).e_rms


def test_parts_are_surfaces_and_what_is_loose_is_one_more():
    triangles = np.array([[0, 1, 2], [2, 1, 3], [6, 5, 4]])
    np.testing.assert_array_equal(parts_of(triangles, 9), [0, 0, 0, 0, 1, 1, 1, 2, 2])
    np.testing.assert_array_equal(parts_of(NO_FACES, 3), [0, 0, 0])
    assert parts_of(triangles[:2], 4) is None
    assert parts_of(triangles[:2], 9) is None


@pytest.mark.parametrize("bone_count", [1, 3, 40])
def test_regions_by_error_are_all_there(bone_count):
    for frames, triangles in (boxes(5), (sheet(5, 8)[0], NO_FACES)):
        animation = Animation(frames, triangles)
        matrix = AnimationMatrix(animation.frames)
        reduction = reduce_animation(matrix, 1e-4)
        rest = matrix.rest_pose()
        parts = parts_of(animation.triangles, len(rest))
        arguments = matrix, reduction, rest, animation.triangles, parts, bone_count
        labels = regions_by_error(*arguments)
        assert np.array_equal(np.unique(labels), np.arange(bone_count))
        with pytest.raises(Cancelled):
            regions_by_error(*arguments, lambda fraction, stage: fraction < 1)
