# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights for given motion: locked weights, limits of influences, and bad input."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale
from skinning_tools.core.decomposition import Settings, decompose, skin_frame, solve_weights
from skinning_tools.core.decomposition.partial import Given
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.errors import BadAnimation, BadSettings, BadWeights, Cancelled

from .sequences import random_rig

BONES = 21


@pytest.fixture(scope="module")
def wolf(shared_data):
    """Animation, rest pose, transforms and true weights (N, P) of exact skinning."""
    data = np.load(shared_data("wolf_ground_truth.npz"))
    weights = data["weights"].astype(float)
    weights /= weights.sum(axis=1, keepdims=True)
    return Animation(data["frames"], data["triangles"], name='"Wolf"'), data["rest"], data["transforms"], weights


def rows_of(weights):
    return np.tile(np.arange(weights.shape[1]), (len(weights), 1)), weights


def given(weights, bones=(), vertices=()) -> Given:
    locked_bones, locked_vertices = np.zeros(BONES, bool), np.zeros(len(weights), bool)
    locked_bones[list(bones)], locked_vertices[list(vertices)] = True, True
    return Given(*rows_of(weights), locked_bones, locked_vertices)


def dense(bones, weights) -> np.ndarray:
    return weight_matrix(bones, weights, BONES).toarray()


def e_rms(wolf, bones, weights) -> float:
    animation, rest, transforms, _ = wolf
    meter = ErrorMeter(unit_scale(animation.frames), len(rest))
    for positions, matrices in zip(animation.frames, transforms, strict=True):
        meter.add(positions, skin_frame(rest, bones, weights, matrices))
    return meter.e_rms


def assert_tidy(bones, weights):
    assert bones.dtype == np.int32
    assert weights.min() >= 0
    assert np.all(np.diff(weights, axis=1) <= 0)
    assert np.all((bones == bones[:, :1])[weights == 0])


RIGS = st.tuples(st.integers(0, 10**6), st.integers(1, 9), st.integers(2, 30), st.integers(2, 8), st.booleans())


def animated(rest, bones, weights, transforms, noise=0.0):
    """The rig's motion, with noise."""
    frames = np.array([skin_frame(rest, bones, weights, matrices) for matrices in transforms])
    return Animation(frames + noise * np.random.default_rng(0).normal(size=frames.shape), [])


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(rig=RIGS)
def test_exact_skinning_by_any_rig_is_found(rig):
    rest, bones, weights, transforms = random_rig(*rig)
    animation = animated(rest, bones, weights, transforms)
    result = solve_weights(animation, rest, transforms, bones.shape[1])
    assert_tidy(*result)
    assert e_rms((animation, rest, transforms, None), *result) < 1e-2


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(rig=RIGS, most=st.integers(1, 5), noise=st.sampled_from([0.0, 0.1, 2.0]))
def test_no_worse_than_the_existing_weights(rig, most, noise):
    rest, bones, weights, transforms = random_rig(*rig)
    animation = animated(rest, bones, weights, transforms, noise)
    order = np.argsort(-weights, axis=1)[:, :most]
    present = np.take_along_axis(bones, order, axis=1), np.take_along_axis(weights, order, axis=1)
    present[1][:] /= present[1].sum(axis=1, keepdims=True)
    unlocked = Given(*present, np.zeros(bones.shape[1], bool), np.zeros(len(rest), bool))
    result = solve_weights(animation, rest, transforms, most, given=unlocked)
    assert_tidy(*result)
    parts = animation, rest, transforms, None
    assert e_rms(parts, *result) <= e_rms(parts, *present) * (1 + 1e-9) + 1e-4


def test_nearly_as_good_as_weights_that_took_turns_with_the_bones(shared_data):
    """A decomposition with only rest pose and motion given: the solver must find which four of thirty bones move a
    vertex."""
    data = np.load(shared_data("horse_gallop.npz"))
    animation = Animation(data["frames"][::2, ::3], [])
    result = decompose(animation, Settings(30))
    parts = animation, result.rest, result.transforms, None
    found = solve_weights(animation, result.rest, result.transforms)
    assert e_rms(parts, *found) < 1.13 * result.e_rms


def test_locked_bones_keep_their_weights_and_the_others_are_recovered(wolf):
    """Of nine influences, two bones are locked at what they are."""
    animation, rest, transforms, truth = wolf
    locked = np.argsort(-truth.sum(axis=0))[1:3]
    bones, weights = solve_weights(animation, rest, transforms, 13, given=given(truth, locked))
    assert_tidy(bones, weights)
    solved = dense(bones, weights)
    # If less than that remains for others, a row is scaled to its sum.
    np.testing.assert_allclose(solved[:, locked], truth[:, locked], atol=1e-6)
    np.testing.assert_allclose(solved.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(solved, truth, atol=3e-3)


def test_the_others_make_the_best_of_wrong_locked_weights(wolf):
    """A bone is locked at half of its proper weight: the rest is solved with that weight fixed, not just scaled."""
    animation, rest, transforms, truth = wolf
    bone = 18  # it shares most of its vertices with bones that move much like it
    wrong = truth.copy()
    wrong[:, bone] *= 0.5
    wrong /= wrong.sum(axis=1, keepdims=True)
    result = solve_weights(animation, rest, transforms, 13, given=given(wrong, [bone]))
    np.testing.assert_allclose(dense(*result)[:, bone], wrong[:, bone], atol=1e-6)
    assert e_rms(wolf, *result) < 0.7 * e_rms(wolf, *rows_of(wrong))


def test_arguments_are_not_changed(wolf):
    """Unsorted rows of int32, which sparse matrices would share."""
    animation, rest, transforms, truth = wolf
    bones = np.argsort(-truth, axis=1).astype(np.int32)
    weights = np.take_along_axis(truth, bones, axis=1)
    before = bones.copy(), weights.copy()
    kept = Given(bones, weights, np.arange(BONES) == 18, np.arange(len(rest)) < 9)
    solve_weights(animation, rest, transforms, given=kept)
    assert np.array_equal(bones, before[0])
    assert np.array_equal(weights, before[1])


def test_locked_bones_count_as_influences(wolf):
    animation, rest, transforms, truth = wolf
    locked = np.argsort(-truth.sum(axis=0))[:3]
    weights = solve_weights(animation, rest, transforms, 4, given=given(truth, locked))[1]
    held = (truth[:, locked] > 0).sum(axis=1)
    used = (weights > 0).sum(axis=1)
    assert np.all(used <= np.maximum(4, held + 1))
    assert np.any(used == 4)


@pytest.mark.parametrize("smoothness", [0.0, 0.5])
def test_locked_vertices_keep_all_their_weights(wolf, smoothness):
    animation, rest, transforms, truth = wolf
    random = np.random.default_rng(0)
    kept = np.arange(0, len(rest), 3)
    noise = truth.copy()
    noise[kept] = random.dirichlet(np.ones(BONES), len(kept))
    result = solve_weights(animation, rest, transforms, 6, smoothness=smoothness, given=given(noise, vertices=kept))
    solved = dense(*result)
    np.testing.assert_allclose(solved[kept], noise[kept], atol=1e-12)
    others = np.setdiff1d(np.arange(len(rest)), kept)
    assert np.count_nonzero(solved[others], axis=1).max() <= 6
    if not smoothness:
        assert np.abs(solved[others] - truth[others]).mean() < 2e-3


def test_locked_vertices_without_weights_stay_without(wolf):
    animation, rest, transforms, truth = wolf
    bare = truth.copy()
    bare[:50] = 0
    solved = dense(*solve_weights(animation, rest, transforms, given=given(bare, vertices=range(50))))
    assert not solved[:50].any()
    np.testing.assert_allclose(solved[50:].sum(axis=1), 1, atol=1e-12)


def test_vertices_without_weights_get_some(wolf):
    animation, rest, transforms, truth = wolf
    bare = truth.copy()
    bare[:50] = 0
    with_given = solve_weights(animation, rest, transforms, given=given(bare))
    without = solve_weights(animation, rest, transforms)
    np.testing.assert_allclose(dense(*with_given)[:50], dense(*without)[:50], atol=1e-12)


def test_more_influences_than_bones(wolf):
    animation, rest, transforms, _ = wolf
    bones, weights = solve_weights(animation, rest, transforms[:, :3], 8)
    assert bones.shape == weights.shape == (len(rest), 3)
    assert_tidy(bones, weights)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)


def test_one_influence_is_the_best_bone(wolf):
    animation, rest, transforms, _ = wolf
    bones, weights = solve_weights(animation, rest, transforms, 1)
    assert np.array_equal(weights, np.ones((len(rest), 1)))
    everything = np.array([
        [np.square(rest @ m[:, :3].T + m[:, 3] - positions).sum(axis=1) for m in matrices]
        for positions, matrices in zip(animation.frames.astype(float), transforms, strict=True)
    ]).sum(axis=0)  # fmt: skip
    np.testing.assert_allclose(everything[bones[:, 0], np.arange(len(rest))], everything.min(axis=0), rtol=1e-6)


def test_the_same_in_every_run(wolf):
    animation, rest, transforms, truth = wolf
    first, second = (
        solve_weights(animation, rest, transforms, smoothness=0.3, given=given(truth, [2], range(9))) for _ in range(2)
    )
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_bad_input(wolf):
    animation, rest, transforms, truth = wolf
    with pytest.raises(BadSettings, match=r'The bones have 5 frames, "Wolf" has 21'):
        solve_weights(animation, rest, transforms[:5])
    with pytest.raises(BadSettings, match=r'The rest pose has 9 vertices, "Wolf" has 5075'):
        solve_weights(animation, rest[:9], transforms)
    with pytest.raises(BadSettings, match="at least 1, not 0"):
        solve_weights(animation, rest, transforms, 0)
    for value in (-0.1, 1.5, np.nan):
        with pytest.raises(BadSettings, match="Smoothness must be from 0 to 1"):
            solve_weights(animation, rest, transforms, smoothness=value)
    with pytest.raises(BadWeights, match=r'All weights of "Wolf" are locked'):
        solve_weights(animation, rest, transforms, given=given(truth, range(BONES)))
    with pytest.raises(BadWeights, match=r'All weights of "Wolf" are locked'):
        solve_weights(animation, rest, transforms, given=given(truth, vertices=range(len(rest))))
    with pytest.raises(BadAnimation, match="1 frame"):
        solve_weights(Animation(animation.frames[:1], animation.triangles), rest, transforms[:1])


@pytest.mark.parametrize("limit", [0.05, 0.5])
def test_cancelled(wolf, limit):
    animation, rest, transforms, _ = wolf
    with pytest.raises(Cancelled):
        solve_weights(animation, rest, transforms, progress=lambda fraction, _: fraction < limit, smoothness=0.5)
