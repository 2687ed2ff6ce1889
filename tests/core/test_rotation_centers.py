# SPDX-License-Identifier: GPL-3.0-or-later
"""Centres of rotation compared with the published formula, and on meshes and weights by artists."""

import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core import center_sums, rotation_centers
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadMesh, BadSettings, BadWeights, Cancelled
from skinning_tools.core.rotation_centers import (
    bake_rotation_centers,
    fingerprint,
    joined_skins,
    mirror_pairs,
    symmetrized,
)
from skinning_tools.core.virtual_subdivision import subdivide, weight_differences

from .skinned_shapes import chain_weights, cuboid, dense, naive_centers, weighted_centers


def diagonal(rest):
    return np.linalg.norm(np.ptp(rest, axis=0))


def soup(seed, vertex_count=24, triangle_count=30, bone_count=5, influences=3):
    """Random triangles between random vertices with random weights: rest, triangles, bones, weights."""
    random = np.random.default_rng(seed)
    rest = random.normal(size=(vertex_count, 3)) + 5
    triangles = np.array([random.choice(vertex_count, 3, replace=False) for _ in range(triangle_count)])
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(vertex_count)], np.int32)
    weights = random.dirichlet(np.full(influences, 0.7), vertex_count)
    weights[random.random(weights.shape) < 0.2] = 0
    # Vertices whose weights sum to next to nothing follow no bone, as Blender has it, until somebody scales them.
    weights[:, 0] = np.where(weights.sum(axis=1) > 0.01, weights[:, 0], 1)
    return rest, triangles, bones, weights


def bar():
    rest, triangles = cuboid(columns=30, rows=4)
    return rest, triangles, *chain_weights(rest[:, 0], [2.0, 4.0])


def human(shared_data):
    data = np.load(shared_data("human_rig.npz"))
    triangles = np.concatenate([data["quads"][:, [0, 1, 2]], data["quads"][:, [0, 2, 3]]])
    return data["rest"].astype(float), triangles, data["influence_bones"], data["influence_weights"]


def assert_naive(centers, valid, rest, triangles, weights, **settings):
    """Equal to the naive sum to 1e-6 of the diagonal, and invalid where that has nothing."""
    expected = naive_centers(rest, triangles, weights, **settings)
    np.testing.assert_array_equal(valid, ~np.isnan(expected[:, 0]))
    np.testing.assert_allclose(centers[valid], expected[valid], atol=1e-6 * diagonal(rest))
    np.testing.assert_array_equal(centers[~valid], rest[~valid].astype(np.float32))


@given(st.integers(0, 10_000), st.floats(0.05, 2), st.sampled_from([0.0, 0.2, 0.5]), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_equal_to_the_naive_sum(seed, sigma, epsilon, influences):
    rest, triangles, bones, weights = soup(seed, influences=influences)
    if np.all(np.count_nonzero(weights, axis=1) < 2):
        return
    centers, valid = bake_rotation_centers(rest, triangles, bones, weights, sigma=sigma, subdivision_epsilon=epsilon)
    assert centers.dtype == np.float32
    assert valid.dtype == bool
    assert_naive(centers, valid, rest, triangles, dense(bones, weights), sigma=sigma, epsilon=epsilon)


@pytest.mark.parametrize("sigma", [0.05, 0.1, 1.0])
def test_equal_to_the_naive_sum_where_grids_carry_it(monkeypatch, sigma):
    """A bar fine enough for grids, no two weights alike; every fortieth vertex by the formula."""
    rest, triangles = cuboid(columns=150, rows=8)
    bones, weights = chain_weights(rest @ [1, 0.31, 0.17], [2.0, 3.0, 4.0])
    direct = []
    sums = center_sums.similarity_sums

    def counted(*arguments):
        result = sums(*arguments)
        direct.append(result[1])
        return result

    monkeypatch.setattr(center_sums, "similarity_sums", counted)
    centers, valid = bake_rotation_centers(rest, triangles, bones, weights, sigma=sigma, subdivision_epsilon=0)
    assert not all(direct)
    some = np.flatnonzero(valid)[::40]
    expected = naive_centers(rest, triangles, weights, sigma, vertices=some)
    np.testing.assert_allclose(centers[some], expected, atol=1e-6 * diagonal(rest))


def test_a_vertex_like_hardly_any_of_the_surface_is_not_left_to_interpolation():
    """A loose vertex far from all other weights: its sums are 1e-19 of those of the rest."""
    rest, triangles = cuboid(columns=150, rows=8)
    bones, weights = chain_weights(rest @ [1, 0.31, 0.17], [3.0])
    face_weights = weights[triangles].mean(axis=1)
    triangles = triangles[face_weights[:, 0] > 0.7]
    rest, bones = np.vstack([rest, [[3, 0, 0]]]), np.vstack([bones, [[0, 1]]])
    weights = np.vstack([weights, [[0.03, 0.97]]])
    centers, valid = bake_rotation_centers(rest, triangles, bones, weights, subdivision_epsilon=0)
    expected = naive_centers(rest, triangles, weights, vertices=[len(rest) - 1])
    assert valid[-1]
    np.testing.assert_allclose(centers[-1:], expected, atol=1e-6 * diagonal(rest))


def test_the_human_rig(shared_data):
    """163 bones, up to 9 influences; sixty vertices by the formula, with and without subdivision."""
    rest, triangles, bones, weights = human(shared_data)
    exact_weights = dense(bones, weights.astype(float))
    corners = rest[triangles]
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    some = np.flatnonzero(np.count_nonzero(exact_weights, axis=1) > 1)[::190]
    matrix = rotation_centers._weight_matrix(*np.broadcast_arrays(bones.astype(np.int32), weights.astype(float)))
    for epsilon in (0.0, 0.1):
        centers, valid = bake_rotation_centers(rest, triangles, bones, weights, subdivision_epsilon=epsilon)
        np.testing.assert_array_equal(valid, np.count_nonzero(exact_weights, axis=1) > 1)
        pieces = list(subdivide(weight_differences(matrix, triangles), epsilon))
        owner = np.concatenate([part.triangles for part in pieces])
        middles = np.concatenate([part.middles for part in pieces])
        shares = np.concatenate([part.shares for part in pieces])
        # The pieces that the design's prototype counted.
        assert len(owner) == (len(triangles) if epsilon == 0 else 137_076)
        expected = weighted_centers(
            np.einsum("li,lij->lj", middles, corners[owner]),
            shares * areas[owner],
            np.einsum("li,lip->lp", middles, exact_weights[triangles[owner]]),
            exact_weights,
            0.1,
            some,
        )
        np.testing.assert_allclose(centers[some], expected, atol=1e-6 * diagonal(rest))
        assert np.all(centers >= rest.min(axis=0))
        assert np.all(centers <= rest.max(axis=0))


def test_centers_of_a_bar_lie_on_its_axis():
    rest, triangles, bones, weights = bar()
    centers, valid = bake_rotation_centers(rest, triangles, bones, weights)
    np.testing.assert_array_equal(valid, np.count_nonzero(weights, axis=1) > 1)
    assert 0.4 < valid.mean() < 0.8
    np.testing.assert_allclose(centers[valid][:, 1:], 0, atol=1e-6)
    assert np.abs(centers[valid][:, 0] - rest[valid, 0]).max() < 0.3
    np.testing.assert_array_equal(centers[~valid], rest[~valid].astype(np.float32))


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_centers_follow_the_mesh(seed):
    """Moved, turned and scaled; with weights of any scale, influences in any order, faces in any order."""
    rest, triangles, bones, weights = soup(seed)
    random = np.random.default_rng(seed)
    centers, valid = bake_rotation_centers(rest, triangles, bones, weights, subdivision_epsilon=0)
    turn, scale, shift = Rotation.random(random_state=seed).as_matrix(), 10 ** random.uniform(-3, 3), [1, 2, 3]
    order = random.permutation(bones.shape[1])
    moved, still_valid = bake_rotation_centers(
        scale * rest @ turn.T + shift,
        random.permutation(triangles),
        bones[:, order],
        weights[:, order] * random.uniform(0.1, 5, (len(rest), 1)),
        subdivision_epsilon=0,
    )
    np.testing.assert_array_equal(still_valid, valid)
    expected = scale * centers @ turn.T + shift
    tolerance = 2e-6 * (scale * diagonal(rest) + np.abs(expected).max())
    np.testing.assert_allclose(moved[valid], expected[valid], atol=tolerance)


def test_seams_are_closed():
    """A mesh cut into separate faces has the centres of the whole, and both sides of a cut the same to the last bit."""
    rest, triangles, bones, weights = bar()
    whole, valid = bake_rotation_centers(rest, triangles, bones, weights)
    corner = triangles.ravel()
    cut, cut_valid = bake_rotation_centers(
        rest[corner], np.arange(len(corner)).reshape(-1, 3), bones[corner], weights[corner]
    )
    np.testing.assert_array_equal(cut_valid, valid[corner])
    for vertex in np.flatnonzero(valid):
        assert len(np.unique(cut[corner == vertex], axis=0)) == 1
    np.testing.assert_allclose(cut, whole[corner], atol=1e-6)


def test_meshes_baked_together_agree_with_the_whole():
    """A bar of which each half has its own vertices at the cut, and only as many influences as it needs."""
    rest, triangles, bones, weights = bar()
    whole, valid = bake_rotation_centers(rest, triangles, bones, weights)
    in_first = rest[triangles].mean(axis=1)[:, 0] < 2.0
    halves, kept = [], []
    for half in (in_first, ~in_first):
        chosen, corners = np.unique(triangles[half], return_inverse=True)
        used = weights[chosen].any(axis=0)
        halves.append((rest[chosen], corners.reshape(-1, 3), bones[chosen][:, used], weights[chosen][:, used]))
        kept.append(chosen)
    assert [half[2].shape[1] for half in halves] == [2, 3]
    order = np.concatenate(kept)
    assert len(order) > len(rest)
    centers, found = bake_rotation_centers(*joined_skins(halves))
    np.testing.assert_array_equal(found, valid[order])
    np.testing.assert_allclose(centers, whole[order], atol=1e-6 * diagonal(rest))
    first, second = np.split(centers, [len(kept[0])])
    _, here, there = np.intersect1d(*kept, return_indices=True)
    assert len(here) > 10
    np.testing.assert_array_equal(first[here], second[there])


def test_faces_without_area_and_loose_vertices_change_nothing():
    rest, triangles, bones, weights = bar()
    expected, valid = bake_rotation_centers(rest, triangles, bones, weights)
    more = np.vstack([triangles, [[5, 5, 9], [7, 7, 7]]])
    # A loose vertex skinned like another one has that one's centre; one that follows a bone alone has none.
    blended, single = np.flatnonzero(valid)[0], np.flatnonzero(~valid)[0]
    extra = [blended, single]
    loose = np.vstack([rest, [[0, 0.2, 0.1], [1, 0.1, 0.2]]])
    centers, found = bake_rotation_centers(
        loose, more, np.vstack([bones, bones[extra]]), np.vstack([weights, weights[extra]])
    )
    np.testing.assert_allclose(centers[:-2], expected, atol=1e-6)
    np.testing.assert_array_equal(found, np.append(valid, [True, False]))
    np.testing.assert_array_equal(centers[-2], centers[blended])
    np.testing.assert_array_equal(centers[-1], loose[-1].astype(np.float32))


def test_a_pair_of_bones_that_no_face_shares():
    rest, triangles, bones, weights = bar()
    bones, weights = np.vstack([bones, [[7, 8, 0]]]), np.vstack([weights, [[0.5, 0.5, 0]]])
    rest = np.vstack([rest, [[1, 2, 3]]])
    centers, valid = bake_rotation_centers(rest, triangles, bones, weights)
    assert not valid[-1]
    np.testing.assert_array_equal(centers[-1], [1, 2, 3])


def test_separate_parts_with_the_same_bones_share_their_centers():
    """Teeth in a head: the sum is over the whole surface, connected or not."""
    rest, triangles, bones, weights = bar()
    shifted = np.vstack([rest, rest + np.array([0, 3, 0])])
    both = np.vstack([triangles, triangles + len(rest)])
    centers, valid = bake_rotation_centers(shifted, both, np.tile(bones, (2, 1)), np.tile(weights, (2, 1)))
    np.testing.assert_allclose(centers[valid][:, 1], 1.5, atol=1e-5)


def test_one_bone_vertices_move_as_with_linear_blending():
    rest, triangles, bones, weights = bar()
    centers, valid = bake_rotation_centers(rest, triangles, bones, weights)
    matrices = np.random.default_rng(1).normal(size=(3, 3, 4))
    shown = [skin_frame(rest, bones, weights, matrices, method, centers) for method in ("LBS", "CRS")]
    np.testing.assert_allclose(shown[0][~valid], shown[1][~valid], atol=1e-6)
    assert np.abs(shown[0] - shown[1])[valid].max() > 0.1


def test_arguments_are_left_alone():
    rest, triangles, bones, weights = soup(3)
    bones[0, 1] = bones[0, 0]
    copies = [array.copy() for array in (rest, triangles, bones, weights)]
    bake_rotation_centers(rest, triangles, bones, weights)
    fingerprint(rest, triangles, bones, weights)
    for array, copy in zip((rest, triangles, bones, weights), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_bone_named_twice_counts_with_the_sum():
    rest, triangles, bones, weights = bar()
    doubled = np.hstack([bones, bones]), np.hstack([0.25 * weights, 0.75 * weights])
    expected, valid = bake_rotation_centers(rest, triangles, bones, weights)
    centers, found = bake_rotation_centers(rest, triangles, *doubled)
    np.testing.assert_array_equal(found, valid)
    np.testing.assert_allclose(centers, expected, atol=1e-6)


def test_progress_rises_and_the_bake_can_be_cancelled():
    arguments = bar()
    seen = []
    bake_rotation_centers(*arguments, progress=lambda fraction, stage: seen.append(fraction))
    assert seen == sorted(seen)
    assert 0 <= seen[0] < 0.2
    assert seen[-1] == 1
    for limit in (0.0, 0.3, 0.9):
        with pytest.raises(Cancelled):
            bake_rotation_centers(*arguments, progress=lambda fraction, stage, limit=limit: fraction <= limit - 1e-9)
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Cancelled):
        bake_rotation_centers(*arguments, subdivision_epsilon=1e-5, progress=lambda *_: not stopped.is_set())


def test_memory_is_bounded_by_the_batch_and_not_by_the_pieces():
    """1.3 million pieces in two bones' bar: a list of them with weights and positions takes 150 MB."""
    rest, triangles = cuboid(columns=20, rows=4)
    bones, weights = chain_weights(rest[:, 0], [3.0], reach=3.0)

    def peak(epsilon):
        tracemalloc.start()
        try:
            bake_rotation_centers(rest, triangles, bones, weights, subdivision_epsilon=epsilon)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # Ten times as many pieces, no more memory.
    assert peak(0.0003) < 1.5 * peak(0.001)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"sigma": 0}, BadSettings, "Sigma must be greater than zero"),
        ({"sigma": -1}, BadSettings, "Sigma"),
        ({"sigma": float("nan")}, BadSettings, "Sigma"),
        ({"subdivision_epsilon": -0.1}, BadSettings, "subdivision threshold"),
        ({"subdivision_epsilon": float("nan")}, BadSettings, "subdivision threshold"),
        ({"weights": lambda weights: weights * 0}, BadWeights, "No vertex of The Flag has a weight"),
        ({"weights": lambda weights: weights[:, :0], "bones": lambda bones: bones[:, :0]}, BadWeights, "No vertex"),
        ({"weights": lambda weights: weights * [1, 0, 0]}, BadWeights, "Nothing needs a center of rotation"),
        ({"weights": lambda weights: -weights}, BadWeights, "Vertex 0"),
        ({"weights": lambda weights: weights[1:]}, BadWeights, "do not fit"),
        ({"triangles": lambda triangles: triangles[:0]}, BadMesh, "There are no faces"),
        ({"triangles": lambda triangles: triangles + 1}, BadMesh, "refers to a vertex"),
        ({"triangles": lambda triangles: triangles[:, [0, 0, 1]]}, BadMesh, "No face of The Flag has an area"),
        ({"rest": lambda rest: np.where(np.arange(len(rest))[:, None] == 5, np.inf, rest)}, BadMesh, "Vertex 5"),
    ],
)
def test_bad_input(change, error, message):
    arguments = dict(zip(("rest", "triangles", "bones", "weights"), bar(), strict=True), name="The Flag")
    for key, value in change.items():
        arguments[key] = value(arguments[key]) if callable(value) else value
    with pytest.raises(error, match=message):
        bake_rotation_centers(**arguments)


def test_the_fingerprint_covers_everything_that_centers_depend_on():
    rest, triangles, bones, weights = soup(5)
    first = fingerprint(rest, triangles, bones, weights)
    order = np.array([2, 0, 1])
    assert fingerprint(rest, triangles, bones[:, order], weights[:, order]) == first
    padded = np.hstack([bones, bones[:, :1]]), np.hstack([weights, np.zeros((len(bones), 1))])
    assert fingerprint(rest, triangles, *padded) == first
    assert fingerprint(rest, triangles, bones, weights * 4) == first
    assert fingerprint(rest + 1e-3, triangles, bones, weights) != first
    assert fingerprint(rest, triangles[::-1], bones, weights) != first
    assert fingerprint(rest, triangles, bones[:, order], weights) != first
    changed = weights.copy()
    changed[np.argmax(np.count_nonzero(weights, axis=1)), 0] += 0.05
    assert fingerprint(rest, triangles, bones, changed) != first


def test_mirrored_vertices_are_found():
    rest = np.array([[1, 2, 3], [0, 1, 1], [-1, 2, 3], [2, 0, 0], [1e-6, 1, 1], [-2.5, 0, 0.0]])
    np.testing.assert_array_equal(mirror_pairs(rest), [2, 1, 0, -1, 4, -1])
    bar_rest = cuboid(10, 4)[0] - [3, 0, 0]
    pairs = mirror_pairs(bar_rest)
    np.testing.assert_allclose(bar_rest[pairs], bar_rest * [-1, 1, 1], atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_split_seams_stay_closed(seed):
    """Vertices at one place have partners at the mirrored place, however many there are on either side."""
    random = np.random.default_rng(seed)
    half = random.random((6, 3)) + np.array([0.1, 0, 0])
    plane = random.random((3, 3)) * [0, 1, 1]
    copies = ([half, half, half * [-1, 1, 1]], [half, half * [-1, 1, 1], half * [-1, 1, 1], half * [-1, 1, 1]])
    order = None
    for parts in copies:
        rest = np.concatenate([*parts, plane, plane])
        order = random.permutation(len(rest))
        rest = rest[order]
        pairs = mirror_pairs(rest)
        assert (pairs >= 0).all()
        np.testing.assert_allclose(rest[pairs], rest * [-1, 1, 1], atol=1e-12)
        _, place = np.unique(np.round(rest, 6), axis=0, return_inverse=True)
        centers = random.random((place.max() + 1, 3)).astype(np.float32)[place.ravel()]
        result, known = symmetrized(centers, np.ones(len(rest), bool), pairs)
        assert known.all()
        for each in range(place.max() + 1):
            np.testing.assert_array_equal(np.ptp(result[place.ravel() == each], axis=0), 0)


def test_vertices_that_nearly_coincide_are_at_one_place():
    random = np.random.default_rng(0)
    half = random.random((20, 3)) + np.array([0.1, 0, 0])
    noise = [1e-8 * random.normal(size=half.shape) for _ in range(4)]
    rest = np.concatenate([(half + noise[i]) * [1 if i < 2 else -1, 1, 1] for i in range(4)])
    assert (mirror_pairs(rest) >= 0).all()


def test_sigma_that_leaves_nothing_is_refused():
    rest, triangles = cuboid(8, 2)
    bones, weights = chain_weights(rest[:, 0], (2.0, 4.0))
    # No two places have the same weights, so that no similarity is exactly 1.
    weights = weights * np.random.default_rng(0).uniform(0.5, 1, weights.shape)
    with pytest.raises(BadSettings, match=r"Sigma is so small that no vertex finds a center\. Raise it to 0\.01"):
        bake_rotation_centers(rest, triangles, bones, weights, sigma=1e-9)


def test_symmetrized_centers():
    random = np.random.default_rng(1)
    rest = cuboid(10, 4)[0] - [3, 0, 0]
    pairs = mirror_pairs(rest)
    centers = random.normal(size=rest.shape).astype(np.float32)
    valid = random.random(len(rest)) < 0.6
    result, known = symmetrized(centers, valid, pairs)
    np.testing.assert_array_equal(known, valid | valid[pairs])
    np.testing.assert_allclose(result[known], (result * [-1, 1, 1])[pairs][known], atol=1e-7)
    np.testing.assert_array_equal(result[~known], centers[~known])
    middle = (pairs == np.arange(len(rest))) & valid
    np.testing.assert_allclose(result[middle][:, 0], 0, atol=1e-7)
    alone, still = symmetrized(centers, valid, np.full(len(rest), -1))
    np.testing.assert_array_equal(alone, centers)
    np.testing.assert_array_equal(still, valid)
