# SPDX-License-Identifier: GPL-3.0-or-later
"""Smoothing of weights removes noise, and keeps sums, borders and locked weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.binding.smoothing import smooth_weights
from skinning_tools.core.binding.types import Body
from skinning_tools.core.errors import BadSettings, Cancelled

from ..skinned_shapes import chain_weights, cuboid, dense

NO_EDGES = np.zeros((0, 2), int)


def sheet(columns=12, rows=8, places=None):
    """An open sheet in the plane: a body with the edges of its quads, and the place (x, y) of each vertex."""
    x = np.arange(columns + 1.0) if places is None else np.asarray(places, float)
    index = np.arange(len(x) * (rows + 1)).reshape(len(x), rows + 1)
    rest = np.stack([*np.meshgrid(x, np.arange(rows + 1.0), indexing="ij"), np.zeros(index.shape)], axis=-1)
    a, b, c, d = index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]
    quads = np.stack([a, b, c, d], axis=-1).reshape(-1, 4)
    edges = np.unique(np.sort(quads[:, [0, 1, 1, 2, 2, 3, 3, 0]].reshape(-1, 2), axis=1), axis=0)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return Body(rest.reshape(-1, 3), triangles, edges), index


def random_rows(seed, count, bone_count=5, influences=3):
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(count)], np.int32)
    return bones, random.dirichlet(np.ones(influences), count)


def smoothed(body, bones, weights, bone_count=5, **settings):
    return dense(
        *smooth_weights(body, bones, weights, bone_count, **{"max_influences": bone_count, **settings}), bone_count
    )


def energy(body, rows):
    first, second = body.place_edges.T
    return float(np.sum((rows[first] - rows[second]) ** 2))


@given(st.integers(0, 10_000), st.floats(0.05, 1), st.integers(1, 6))
@settings(deadline=None, max_examples=30)
def test_weights_get_smoother_and_rows_stay_convex(seed, strength, iterations):
    body, _ = sheet()
    bones, weights = random_rows(seed, len(body.rest))
    before = dense(bones, weights, 5)
    new_bones, new_weights = smooth_weights(body, bones, weights, 5, strength=strength, iterations=iterations)
    assert new_bones.dtype == np.int32
    assert new_bones.shape == (len(body.rest), 4)
    assert new_weights.min() >= 0
    np.testing.assert_allclose(new_weights.sum(axis=1), 1, atol=1e-12)
    after = smoothed(body, bones, weights, strength=strength, iterations=iterations)
    assert energy(body, after) < energy(body, before)
    assert after.min() >= 0
    assert (after.max(axis=0) <= before.max(axis=0) + 1e-4).all()


@pytest.mark.parametrize("settings", [{"strength": 0.0}, {"iterations": 0}])
def test_nothing_to_do_changes_nothing(settings):
    body, _ = sheet()
    bones, weights = random_rows(1, len(body.rest))
    np.testing.assert_allclose(smoothed(body, bones, weights, **settings), dense(bones, weights, 5), atol=1e-12)


def test_even_weights_stay_and_steps_become_ramps():
    body, index = sheet(columns=19)
    bones = np.tile(np.arange(2), (len(body.rest), 1))
    np.testing.assert_allclose(smoothed(body, bones, np.full(bones.shape, 0.5), 2), 0.5, atol=1e-12)
    step = (body.rest[:, 0] > 9).astype(float)
    after = smoothed(body, bones, np.column_stack([1 - step, step]), 2, strength=1.0, iterations=30)[:, 1]
    row = after[index[:, 4]]
    assert (np.diff(row) >= -1e-12).all()
    assert np.diff(row).max() < 0.2
    assert row[0] < 0.01
    assert row[-1] > 0.99
    np.testing.assert_allclose(row + row[::-1], row[0] + row[-1], atol=0.02)


def test_single_vertices_do_not_flicker_at_full_strength():
    """On a grid, neighbors alone would hand a peak to the odd vertices and back for ever."""
    body, index = sheet(columns=14, rows=14)
    bones = np.tile(np.arange(2), (len(body.rest), 1))
    peak = np.zeros(len(body.rest))
    peak[index[7, 7]] = 1
    after = smoothed(body, bones, np.column_stack([1 - peak, peak]), 2, strength=1.0, iterations=12)[:, 1]
    middle = after[index[7]]
    assert np.argmax(middle) == 7
    assert (np.diff(middle[:8]) >= -1e-9).all()


def test_neighbors_count_by_distance():
    """Weights that rise evenly along uneven columns are as smooth as can be."""
    places = np.cumsum([0, 1, 0.2, 0.7, 3, 0.05, 0.4, 2, 1, 0.1, 0.6])
    body, index = sheet(places=places)
    share = body.rest[:, 0] / places[-1]
    bones = np.tile(np.arange(2), (len(share), 1))
    after = smoothed(body, bones, np.column_stack([1 - share, share]), 2, strength=1.0, iterations=1)[:, 1]
    inner = index[1:-1].ravel()
    np.testing.assert_allclose(after[inner], share[inner], atol=1e-12)


def test_smoothing_a_border_does_not_depend_on_the_interior():
    body, index = sheet()
    border = np.zeros(index.shape, bool)
    border[[0, -1]] = border[:, [0, -1]] = True
    bones, weights = random_rows(2, len(body.rest))
    other = weights.copy()
    other[~border.ravel()] = [0.2, 0.3, 0.5]
    one, two = (smoothed(body, bones, rows, iterations=8) for rows in (weights, other))
    np.testing.assert_allclose(one[border.ravel()], two[border.ravel()], atol=1e-3)
    assert np.abs(one - dense(bones, weights, 5))[border.ravel()].max() > 0.1


def test_nothing_passes_over_a_crease():
    body, index = sheet()
    crease = (body.rest[body.edges][:, :, 0] == 6).all(axis=1)
    bones, weights = random_rows(3, len(body.rest))
    other = weights.copy()
    other[index[7:].ravel()] = [0.2, 0.3, 0.5]
    one, two = (smoothed(body, bones, rows, iterations=8, creases=crease) for rows in (weights, other))
    np.testing.assert_allclose(one[index[:7].ravel()], two[index[:7].ravel()], atol=1e-3)
    without = smoothed(body, bones, weights, iterations=8)
    across = smoothed(body, bones, other, iterations=8)
    assert np.abs(without - across)[index[:7].ravel()].max() > 0.05


def test_where_creases_cross_vertices_stay():
    body, index = sheet()
    ends = body.rest[body.edges]
    crease = (ends[:, :, 0] == 6).all(axis=1) | (ends[:, :, 1] == 4).all(axis=1)
    bones, weights = random_rows(4, len(body.rest))
    after = smoothed(body, bones, weights, creases=crease)
    np.testing.assert_allclose(after[index[6, 4]], dense(bones, weights, 5)[index[6, 4]], atol=1e-12)


def split(body, index, column=6):
    """The sheet cut in two along a column, whose vertices it then has twice."""
    twin = np.arange(len(body.rest))
    twin[index[column]] = len(body.rest) + np.arange(index.shape[1])
    right = (body.rest[body.triangles][:, :, 0] >= column).all(axis=1)
    triangles = np.where(right[:, None], twin[body.triangles], body.triangles)
    right = (body.rest[body.edges][:, :, 0] >= column).all(axis=1)
    edges = np.concatenate([body.edges, twin[body.edges[right]]])
    return Body(np.vstack([body.rest, body.rest[index[column]]]), triangles, edges)


def test_a_seam_is_no_border_and_stays_closed():
    body, index = sheet()
    bones, weights = random_rows(5, len(body.rest))
    cut = split(body, index)
    twice = np.concatenate([np.arange(len(body.rest)), index[6]])
    whole = smoothed(body, bones, weights)
    parts = smoothed(cut, bones[twice], weights[twice])
    np.testing.assert_allclose(parts, whole[twice], atol=1e-9)
    # Even one that was torn closes.
    torn = weights[twice]
    torn[len(weights) :] = [1.0, 0.0, 0.0]
    parts = smooth_weights(cut, bones[twice], torn, 5, max_influences=2)
    for rows in parts:
        np.testing.assert_array_equal(rows[len(weights) :], rows[index[6]])


def test_loose_parts_do_not_mix():
    body, _ = sheet()
    count = len(body.rest)
    two = Body(
        np.vstack([body.rest, body.rest + np.array([0, 0, 0.01])]),
        np.vstack([body.triangles, body.triangles + count]),
        np.vstack([body.edges, body.edges + count]),
    )
    bones = np.repeat([[0], [1]], count, axis=0)
    np.testing.assert_array_equal(smoothed(two, bones, np.ones((2 * count, 1)), 2)[:, 0], bones[:, 0] == 0)


def test_outside_of_the_mask_rows_stay_as_they_are():
    body, _ = sheet()
    bones, weights = random_rows(6, len(body.rest), influences=5)
    mask = body.rest[:, 0] < 5
    new_bones, new_weights = smooth_weights(body, bones, weights, 5, mask=mask, max_influences=2)
    np.testing.assert_array_equal(new_bones[~mask], bones[~mask])
    np.testing.assert_array_equal(new_weights[~mask], weights[~mask])
    assert (np.count_nonzero(new_weights[mask], axis=1) <= 2).all()
    # A half mask is half the strength.
    half = smoothed(body, bones, weights, strength=0.8, mask=np.full(len(body.rest), 0.5))
    np.testing.assert_allclose(half, smoothed(body, bones, weights, strength=0.4), atol=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 5))
@settings(deadline=None, max_examples=20)
def test_locked_bones_keep_their_weights(seed, most):
    body, _ = sheet(6, 5)
    bones, weights = random_rows(seed, len(body.rest), influences=2)
    locked = np.arange(5) == seed % 5
    before = dense(bones, weights, 5)
    after = smoothed(body, bones, weights, locked=locked, max_influences=most)
    np.testing.assert_allclose(after[:, locked], before[:, locked], atol=1e-12)
    assert (np.count_nonzero(after, axis=1) <= most).all()
    assert np.abs(after - before).max() > 0.01


def test_vertices_without_weights_lend_nothing():
    body, index = sheet()
    bones = np.zeros((len(body.rest), 1), int)
    weights = np.ones((len(body.rest), 1))
    weights[index[5, 5]] = 0
    after = smooth_weights(body, bones, weights, 1)[1][:, 0]
    np.testing.assert_allclose(after, np.arange(len(after)) != index[5, 5], atol=1e-12)
    none = smooth_weights(body, bones, np.zeros(weights.shape), 1)[1]
    assert not none.any()


def test_a_closed_body_by_its_triangles():
    rest, triangles = cuboid(columns=20, rows=3)
    body = Body(rest, triangles, NO_EDGES)
    bones, weights = chain_weights(rest[:, 0], [3.0], reach=0.2)
    before, after = dense(bones, weights), smoothed(body, bones, weights, 2)
    assert energy(body, after) < 0.7 * energy(body, before)


@pytest.mark.parametrize(
    "body",
    [
        Body(np.zeros((4, 3)), np.zeros((0, 3), int), NO_EDGES),
        Body(np.arange(12.0).reshape(4, 3), np.zeros((0, 3), int), NO_EDGES),
        Body(np.repeat(np.eye(3), 2, axis=0), [[0, 1, 2], [0, 2, 4], [1, 3, 5]], NO_EDGES),
        Body(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0.0]]), [[0, 1, 2]], [[0, 1]]),
    ],
)
def test_degenerate_bodies(body):
    bones, weights = random_rows(7, len(body.rest))
    rows = smooth_weights(body, bones, weights, 5)[1]
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-12)


def test_wrong_settings_are_refused():
    body, _ = sheet()
    bones, weights = random_rows(8, len(body.rest))
    for wrong, text in (
        ({"strength": 1.1}, "strength"),
        ({"mask": np.zeros(len(body.rest))}, "selects no vertex"),
        ({"mask": np.ones(3)}, "do not fit"),
        ({"creases": np.ones(3)}, "do not fit"),
        ({"max_influences": 0}, "at least 1"),
    ):
        with pytest.raises(BadSettings, match=text):
            smooth_weights(body, bones, weights, 5, **wrong)
    with pytest.raises(Cancelled):
        smooth_weights(body, bones, weights, 5, progress=lambda share, stage: False)
