# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmarks' baselines on animations whose best approximation is known."""

import importlib

import numpy as np
import pytest
import scipy.linalg

from benchmarks._baselines import (
    clustered_pca,
    dem_bones,
    eigenskin_corrections,
    skinning_arbitrary_deformations,
    skinning_mesh_animations,
    truncated_svd,
)
from benchmarks._baselines.approximations import (
    Skinned,
    best_bones_and_weights,
    measured,
    region_transforms,
    trajectories,
)
from skinning_tools.core.animation import Animation, unit_scale
from skinning_tools.core.deform import skin_frames
from tests.core.decomposition.sequences import boxes, sheet

BONES = 5
SKINNING = (skinning_mesh_animations, skinning_arbitrary_deformations)


@pytest.fixture(scope="module")
def rigid_boxes():
    return Animation(*boxes(BONES))


@pytest.fixture(scope="module")
def waving_sheet():
    return Animation(*sheet(14, 22, 16))


@pytest.mark.parametrize("baseline", [*SKINNING, clustered_pca, truncated_svd])
def test_as_many_bones_as_rigid_parts_are_exact(baseline, rigid_boxes):
    assert measured(rigid_boxes, baseline.approximate(rigid_boxes, BONES))[0] < 1e-3


@pytest.mark.parametrize("baseline", SKINNING)
def test_skinning_has_at_most_four_convex_weights(baseline, waving_sheet):
    skinned = baseline.approximate(waving_sheet, 6)
    assert skinned.weights.shape[1] <= 4
    assert skinned.weights.min() >= 0
    np.testing.assert_allclose(skinned.weights.sum(axis=1), 1.0, atol=1e-12)
    assert len(np.unique(skinned.bones)) == 6


def test_singular_values_measure_the_remaining_error(waving_sheet):
    for bones in (1, 2):
        found = measured(waving_sheet, truncated_svd.approximate(waving_sheet, bones))[0]
        sizes = scipy.linalg.svdvals(trajectories(waving_sheet))
        left = np.sqrt(np.sum(sizes[4 * bones :] ** 2) / waving_sheet.frames.size)
        assert found == pytest.approx(1000 * unit_scale(waving_sheet.frames) * left, rel=1e-6)


def test_clusters_with_bases_of_their_own_beat_one_bone_each(waving_sheet):
    data, rest = trajectories(waving_sheet), waving_sheet.frames[0].astype(float)
    clusters = clustered_pca.approximate(waving_sheet, 6)
    regions = [np.nonzero(clusters.labels == cluster)[0] for cluster in range(6)]
    transforms = region_transforms(rest, data, regions)
    rigid = Skinned(rest, clusters.labels[:, None], np.ones((len(rest), 1)), transforms)
    assert measured(waving_sheet, clusters)[0] < measured(waving_sheet, rigid)[0]


def test_vertices_are_in_the_cluster_that_reconstructs_them_best(waving_sheet):
    clusters = clustered_pca.approximate(waving_sheet, 4)
    data = trajectories(waving_sheet)
    captured = np.array([np.sum((data @ basis) ** 2, axis=1) for basis in clusters.bases])
    own = captured[clusters.labels, np.arange(len(data))]
    np.testing.assert_allclose(own, captured.max(axis=0), rtol=1e-9)


def test_lsqr_finds_the_least_squares_transforms(waving_sheet):
    data, rest = trajectories(waving_sheet), waving_sheet.frames[0].astype(float)
    rest[:, 2] += 0.1 * np.sin(5 * rest[:, 0] + 3 * rest[:, 1])  # flat, its third direction would be open
    bones = np.array([0, 1, 2])[None].repeat(len(rest), axis=0)
    weights = np.random.default_rng(0).dirichlet(np.ones(3), len(rest))
    start = np.zeros((len(waving_sheet.frames), 3, 3, 4))
    found = skinning_arbitrary_deformations.fitted_transforms(rest, data, bones, weights, start)
    design = (weights[:, :, None] * np.column_stack([rest, np.ones(len(rest))])[:, None]).reshape(len(rest), 12)
    expected = np.linalg.lstsq(design, data, rcond=None)[0]
    residual = np.linalg.norm(design @ expected - data)
    predicted = skin_frames(rest, bones, weights, found)
    assert np.linalg.norm(predicted - waving_sheet.frames) == pytest.approx(residual, rel=1e-5)


def test_weights_of_given_bones_are_found_again():
    random = np.random.default_rng(1)
    rest = random.normal(size=(60, 3))
    transforms = random.normal(size=(9, 3, 3, 4))
    weights = random.dirichlet(np.ones(3), len(rest))
    bones = np.arange(3)[None].repeat(len(rest), axis=0)
    animation = Animation(skin_frames(rest, bones, weights, transforms), [])
    found_bones, found = best_bones_and_weights(rest, trajectories(animation), transforms)
    order = np.argsort(found_bones, axis=1)
    np.testing.assert_allclose(np.take_along_axis(found, order, axis=1), weights, atol=1e-5)


def test_mean_shift_tells_heaps_apart():
    random = np.random.default_rng(2)
    heaps = np.repeat(np.arange(4), 50)
    points = 10.0 * np.eye(4, 6)[heaps] + random.normal(size=(200, 6))
    labels = skinning_mesh_animations.mean_shift(points, 2.0)
    assert len(np.unique(labels)) == 4
    assert all(len(np.unique(labels[heaps == heap])) == 1 for heap in range(4))
    assert len(np.unique(skinning_mesh_animations.mean_shift(points, 100.0))) == 1


def test_parts_that_do_not_hang_together_are_two(rigid_boxes):
    alike = np.zeros(len(rigid_boxes.triangles), dtype=int)
    parts = skinning_mesh_animations.largest_parts(rigid_boxes.triangles, alike, BONES)
    assert sorted(np.bincount(parts)) == [12] * BONES
    assert skinning_mesh_animations.largest_parts(rigid_boxes.triangles, alike, BONES + 1) is None


def test_too_few_clusters_are_said():
    # One box: whatever the bandwidth, no more parts than its triangles.
    with pytest.raises(skinning_mesh_animations.TooFewClusters):
        skinning_mesh_animations.approximate(Animation(*boxes(1)), 13)


def test_as_many_corrections_as_a_motion_has_are_exact():
    random = np.random.default_rng(3)
    animation = Animation(*boxes(BONES))
    skinned = skinning_arbitrary_deformations.approximate(animation, BONES)
    shapes = 0.1 * random.normal(size=(2, animation.vertex_count, 3))
    keys = random.normal(size=(len(animation.frames), 2))
    moved = np.stack(
        [
            Skinned(skinned.rest + np.tensordot(key, shapes, axes=1), skinned.bones, skinned.weights, [matrices]).frame(
                0
            )
            for key, matrices in zip(keys, skinned.transforms, strict=True)
        ]
    )
    target = Animation(moved, animation.triangles)
    assert measured(target, skinned)[0] > 1
    assert measured(target, eigenskin_corrections.correct(target, skinned, 2))[0] < 1e-3


def test_more_corrections_leave_less(waving_sheet):
    # Bones of a flat rest pose flatten every displacement out of its plane.
    curved = Animation(waving_sheet.frames[3:], waving_sheet.triangles)
    skinned = skinning_arbitrary_deformations.approximate(curved, 3)
    errors = [measured(curved, skinned)[0]]
    for count in (1, 3, 6):
        errors.append(measured(curved, eigenskin_corrections.correct(curved, skinned, count))[0])
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.5 * errors[0]


@pytest.mark.skipif(not dem_bones.available(), reason="Dem Bones is not installed (build.py bench … --rivals)")
def test_dem_bones_makes_rigid_convex_skinning(waving_sheet):
    found = dem_bones.approximate(waving_sheet, 4, **(dem_bones.TUNED_4 | {"iterations": 20}))
    linear = found.transforms[..., :3]
    np.testing.assert_allclose(linear @ linear.swapaxes(-1, -2), np.broadcast_to(np.eye(3), linear.shape), atol=1e-6)
    assert np.count_nonzero(found.weights > 0, axis=1).max() <= 4
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, atol=1e-6)
    assert measured(waving_sheet, found)[0] < 100


@pytest.mark.parametrize("name", ["skinning_tables", "scale"])
def test_benchmarks_load(name):
    assert callable(importlib.import_module(f"benchmarks.{name}").main)
