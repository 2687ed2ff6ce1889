# SPDX-License-Identifier: GPL-3.0-or-later
"""The first segmentation: seeds, deformation gradients, region growing."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import breadth_first_order
from scipy.spatial.distance import cdist

from skinning_tools.core.decomposition import segmentation
from skinning_tools.core.decomposition.bone_model import BoneModel, homogeneous
from skinning_tools.core.decomposition.reduction import AnimationMatrix, reduce_animation
from skinning_tools.core.decomposition.segmentation import (
    deformation_gradients,
    farthest_points,
    fill_empty_regions,
    grow_regions,
    seed_triples,
    surface_neighbors,
)
from skinning_tools.core.errors import Cancelled

from .sequences import boxes, sheet


def segmented(frames, triangles, bone_count, **more):
    matrix = AnimationMatrix(frames.astype(np.float32))
    rest = matrix.rest_pose()
    return grow_regions(matrix, reduce_animation(matrix, 1e-5), rest, np.asarray(triangles), bone_count, **more), rest


def edges_of(triangles):
    return np.unique(
        np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])), axis=0
    )


def is_connected(members, edges):
    members = set(members.tolist())
    reached, fresh = set(), {min(members)}
    inside = [(a, b) for a, b in edges.tolist() if a in members and b in members]
    while fresh:
        reached |= fresh
        fresh = {b for a, b in inside + [(b, a) for a, b in inside] if a in reached and b not in reached}
    return reached == members


def test_farthest_points_solve_the_p_center_problem_within_factor_two():
    points = np.random.default_rng(0).uniform(size=(400, 3))
    chosen = farthest_points(points, 12)
    assert len(set(chosen.tolist())) == 12
    radius = cdist(points, points[chosen]).min(axis=1).max()
    # No two of them lie closer than the radius, so that any twelve balls must be at least half as large.
    apart = cdist(points[chosen], points[chosen]) + 10 * np.eye(12)
    assert apart.min() >= radius


def test_farthest_points_are_distinct_even_among_equal_points():
    assert sorted(farthest_points(np.zeros((5, 3)), 5).tolist()) == [0, 1, 2, 3, 4]


def test_seed_triangles_have_an_area():
    frames, triangles = sheet()
    flat = np.repeat(np.arange(50)[:, None], 3, axis=1)
    triples = seed_triples(frames[0], np.concatenate([flat, triangles]), 9)
    corners = frames[0][triples]
    assert np.all(np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) > 0)


@pytest.mark.parametrize("vertices", [1, 2, 3, 10])
def test_without_triangles_each_vertex_joins_its_nearest(vertices):
    points = np.random.default_rng(1).normal(size=(vertices, 3))
    triples = seed_triples(points, np.zeros((0, 3), int), min(vertices, 4))
    assert triples.shape == (min(vertices, 4), 3)
    if vertices >= 3:
        for a, b, c in triples.tolist():
            order = np.argsort(np.linalg.norm(points - points[a], axis=1))
            assert {b, c} == set(order[1:3].tolist())


def test_gradients_reproduce_an_affine_motion():
    frames, triangles = boxes(count=1, frames=8)
    matrix = AnimationMatrix(frames.astype(np.float32))
    rows = deformation_gradients(matrix, matrix.rest_pose(), triangles)
    predicted = homogeneous(matrix.rest_pose()) @ rows.reshape(len(triangles), 4, -1)
    np.testing.assert_allclose(predicted, np.broadcast_to(matrix.rows(slice(None)), predicted.shape), atol=1e-5)


def test_gradient_of_a_triangle_without_area_translates():
    frames, _ = boxes(count=1, frames=8)
    matrix = AnimationMatrix(frames.astype(np.float32))
    rows = deformation_gradients(matrix, matrix.rest_pose(), np.array([[2, 2, 2]])).reshape(1, 4, -1, 3)
    np.testing.assert_array_equal(rows[0, :3], np.broadcast_to(np.eye(3)[:, None], rows[0, :3].shape))
    predicted = rows[0, 3] + matrix.rest_pose()[2]
    np.testing.assert_allclose(predicted, matrix.rows(slice(None))[2].reshape(-1, 3), atol=1e-6)


def test_regions_of_a_connected_mesh_are_connected_and_all_there():
    frames, triangles = sheet(20, 30)
    labels, _ = segmented(frames, triangles, 10)
    edges = edges_of(triangles)
    for region in range(10):
        assert is_connected(np.nonzero(labels == region)[0], edges)


def errors_of_seeds(matrix, reduction, triangles, bone_count):
    """(N, P) squared prediction errors in reduced coordinates, all written out, the least differences that single and
    double precision let them have (N, P), and the seeds (P, 3)."""
    rest = matrix.rest_pose()
    seeds = seed_triples(rest, triangles, bone_count)
    gradients = deformation_gradients(matrix, rest, seeds).reshape(bone_count, 4, -1)
    errors = np.empty((len(rest), bone_count))
    for vertex, position in enumerate(rest):
        for bone in range(bone_count):
            predicted = position @ gradients[bone, :3] + gradients[bone, 3]
            difference = predicted @ reduction.basis - reduction.coefficients[vertex]
            errors[vertex, bone] = difference @ difference
    return errors, 1e-6 * errors + 1e-11 * np.sum(reduction.coefficients**2, axis=1)[:, None], seeds


def grown_one_by_one(errors, precision, seeds, triangles):
    """Kavan et al. 2010, section 4.1, without a queue: labels, and whether no choice was too near to call."""
    around = {vertex: set() for vertex in range(len(errors))}
    for triangle in triangles.tolist():
        for corner in triangle:
            around[corner] |= set(triangle) - {corner}
    labels = np.full(len(errors), -1)
    for bone, seed in enumerate(seeds.tolist()):
        for vertex in seed:
            labels[vertex] = bone if labels[vertex] < 0 else labels[vertex]
    decided = True
    while (labels < 0).any():
        fronts = {
            (errors[vertex, labels[other]], vertex, labels[other])
            for vertex in np.flatnonzero(labels < 0)
            for other in around[vertex]
            if labels[other] >= 0
        }
        (error, vertex, bone), *others = sorted(fronts)
        decided &= not others or others[0][0] - error > precision[vertex, bone]
        labels[vertex] = bone
    return labels, decided


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    bone_count=st.integers(2, 9),
    noise=st.sampled_from([0.0, 0.01, 0.3]),
    place=st.sampled_from([0.0, 1.0, 50.0]),
    outermost_first=st.booleans(),
)
def test_regions_grow_as_the_paper_has_it(seed, bone_count, noise, place, outermost_first):
    """The whole queue is in order: vertices of one front, and of different ones, near the middle and far from it."""
    random = np.random.default_rng(seed)
    frames, triangles = sheet(7, 9, 6)
    frames = frames @ random.normal(size=(3, 3)) + noise * random.normal(size=frames.shape) + place
    matrix = AnimationMatrix(frames.astype(np.float32))
    reduction = reduce_animation(matrix, 1e-5)
    errors, precision, seeds = errors_of_seeds(matrix, reduction, triangles, bone_count)
    if outermost_first:
        norms = np.sum(reduction.coefficients**2, axis=1)[:, None]
        errors, precision = errors - norms, np.broadcast_to(1e-6 * norms, errors.shape)
    labels, decided = grown_one_by_one(errors, precision, seeds, triangles)
    # What is too near to call may go either way, and all that follows with it. A region whose seed others have taken
    # gets vertices in another way.
    assume(decided and len(np.unique(labels)) == bone_count)
    rest = matrix.rest_pose()
    found = grow_regions(matrix, reduction, rest, triangles, bone_count, outermost_first=outermost_first)
    np.testing.assert_array_equal(found, labels)


def patch(frames, triangles, start, count):
    """The ``count`` vertices nearest to one of them over the surface, and the triangles between them."""
    neighbors = surface_neighbors(triangles, frames.shape[1])
    order = breadth_first_order(neighbors, start, directed=False, return_predecessors=False)[:count]
    place = np.full(frames.shape[1], -1)
    place[order] = np.arange(count)
    return frames[:, order], place[triangles[(place[triangles] >= 0).all(axis=1)]]


@pytest.mark.parametrize("start", [1000, 2000, 8000])
@pytest.mark.parametrize("name", ["horse_gallop", "horse_collapse", "samba"])
def test_regions_of_captured_sequences_grow_as_the_paper_has_it(shared_data, name, start):
    data = np.load(shared_data(f"{name}.npz"))
    frames, triangles = patch(data["frames"][::3], data["triangles"], start, 250)
    matrix = AnimationMatrix(frames)
    reduction = reduce_animation(matrix, 1e-5)
    labels, decided = grown_one_by_one(*errors_of_seeds(matrix, reduction, triangles, 6), triangles)
    assert decided, "another place of the mesh serves better"
    np.testing.assert_array_equal(grow_regions(matrix, reduction, matrix.rest_pose(), triangles, 6), labels)


def test_separate_parts_with_one_bone_each_are_told_apart():
    frames, triangles = boxes(count=12)
    labels, _ = segmented(frames, triangles, 12)
    by_part = labels.reshape(12, 8)
    assert np.all(by_part == by_part[:, :1])
    assert sorted(by_part[:, 0].tolist()) == list(range(12))


def test_parts_without_a_seed_go_whole_to_one_region():
    frames, triangles = boxes(count=12)
    labels, _ = segmented(frames, triangles, 5)
    by_part = labels.reshape(12, 8)
    assert np.all(by_part == by_part[:, :1])
    assert set(labels.tolist()) == set(range(5))


def test_loose_vertices_join_the_region_that_predicts_them():
    frames, triangles = boxes(count=4)
    # Loose copies of corners of the third box, which move with it.
    loose = np.concatenate([frames, 0.5 * (frames[:, 16:20] + frames[:, 20:24])], axis=1)
    labels, _ = segmented(loose, triangles, 4)
    assert np.all(labels[32:] == labels[16])


@pytest.mark.parametrize("bone_count", [1, 7, 40])
def test_no_faces_at_all(bone_count):
    frames, _ = sheet(5, 8)
    labels, _ = segmented(frames, np.zeros((0, 3), int), bone_count)
    assert np.all(np.bincount(labels, minlength=bone_count) > 0)


def test_parts_are_distinguished_whatever_the_block_size(monkeypatch):
    frames, triangles = boxes(count=12)
    scattered = np.random.default_rng(1).permutation(96)
    place = np.argsort(scattered)
    loose = np.concatenate([frames[:, scattered], 0.5 * (frames[:, :9] + frames[:, 40:49])], axis=1)
    at_once, _ = segmented(loose, place[triangles], 5)
    for size in (1, 7, 50):
        monkeypatch.setattr(segmentation, "_BLOCK_VERTICES", size)
        assert np.array_equal(segmented(loose, place[triangles], 5)[0], at_once)
    by_part = at_once[place].reshape(12, 8)
    assert np.all(by_part == by_part[:, :1])


@pytest.mark.parametrize("when", [0.2, 0.7])
def test_cancel_while_regions_are_predicted_or_grow(when):
    frames, triangles = sheet(110, 110)
    with pytest.raises(Cancelled):
        segmented(frames, triangles, 3, progress=lambda done, stage: done < when)


def test_empty_regions_take_half_of_the_largest():
    rest = np.stack([np.arange(10.0), np.zeros(10), np.zeros(10)], axis=1)
    labels = fill_empty_regions(np.array([0] * 8 + [1] * 2), rest, 4)
    assert np.all(np.bincount(labels, minlength=4) > 0)
    assert labels[8:].tolist() == [1, 1]


def test_first_region_model_predicts_better_than_standing_still():
    frames, triangles = sheet(20, 30)
    matrix = AnimationMatrix(frames.astype(np.float32))
    reduction = reduce_animation(matrix, 1e-5)
    seeds = seed_triples(matrix.rest_pose(), triangles, 10)
    model = BoneModel(deformation_gradients(matrix, matrix.rest_pose(), seeds) @ reduction.basis)
    data = reduction.rows(slice(None))
    errors = model.squared_distances(homogeneous(matrix.rest_pose()), data).min(axis=1)
    still = np.sum((np.tile(matrix.rest_pose(), len(frames)) - matrix.rows(slice(None))) ** 2, axis=1)
    assert errors.sum() < 0.1 * still.sum()
