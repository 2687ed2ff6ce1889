# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers in addition to a rig's own bones: they reduce its error, and respect its weights and limits as requested."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose, skin_frame
from skinning_tools.core.decomposition.helper_bones import add_helper_bones
from skinning_tools.core.decomposition.helper_motion import move_helpers
from skinning_tools.core.decomposition.segmentation import farthest_points
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.errors import BadAnimation, BadSettings, BadWeights, Cancelled

from .sequences import random_rig, sheet


@pytest.fixture(scope="module")
def collapse(shared_data):
    """Every third vertex of a collapsing horse, and the arguments of a rig of six rigid bones that follows roughly.

    Not a decomposition, whose local minimum depends on how the processor rounds: six places far from one another, a
    vertex follows the two nearest, and a place moves as the vertices do that are nearest to it.
    """
    animation = Animation(np.load(shared_data("horse_collapse.npz"))["frames"][::2, ::3], [], name='"Horse"')
    rest = animation.frames[0].astype(float)
    distances = np.linalg.norm(rest[:, None] - rest[farthest_points(rest, 6)], axis=2)
    bones = np.argsort(distances, axis=1)[:, :2].astype(np.int32)
    weights = np.maximum(np.take_along_axis(distances, bones, axis=1), 1e-6) ** -4
    transforms = np.empty((len(animation.frames), 6, 3, 4))
    for bone in range(6):
        near = bones[:, 0] == bone
        start = rest[near].mean(axis=0)
        for frame, at in enumerate(animation.frames[:, near].astype(float)):
            rotation = Rotation.align_vectors(at - at.mean(axis=0), rest[near] - start)[0].as_matrix()
            transforms[frame, bone] = np.column_stack([rotation, at.mean(axis=0) - rotation @ start])
    return animation, rest, transforms, bones, weights / weights.sum(axis=1, keepdims=True)


def dense(bones, weights, count) -> np.ndarray:
    return weight_matrix(bones, weights, count).toarray()


def shares_of(rig, result):
    """The rig's own weights before and after (N, 6), and the helpers' (N, H)."""
    before = dense(rig[3], rig[4], 6)
    after = dense(result.bones, result.weights, 6 + result.transforms.shape[1])
    np.testing.assert_allclose(after.sum(axis=1), before.sum(axis=1), atol=1e-9)
    assert after.min() >= 0
    return before, after[:, :6], after[:, 6:]


# Of the rig's own error: reached are 0.253, 0.239 and 0.204, by the kernels of every processor.
@pytest.mark.parametrize(("kind", "limit"), [("RIGID", 0.28), ("SCALED", 0.26), ("AFFINE", 0.225)])
def test_the_error_falls_and_own_weights_are_only_scaled(collapse, kind, limit):
    result = add_helper_bones(*collapse, 4, bone_kind=kind)
    assert result.e_rms <= limit * result.e_rms_before
    assert result.max_error < result.max_error_before
    before, own, helpers = shares_of(collapse, result)
    taken = helpers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(own, before * (1 - taken), atol=1e-9)
    assert np.count_nonzero(np.hstack([own, helpers]), axis=1).max() <= 8
    assert np.all(helpers.max(axis=0) > 0.02)
    assert np.array_equal(result.changed, taken[:, 0] > 0)
    # With these weights, their motion is found again.
    skin = collapse[2], result.bones, result.weights, 4, kind, result.bone_axes
    moved = move_helpers(*collapse[:2], *skin)
    meter = ErrorMeter(unit_scale(collapse[0].frames), len(collapse[1]))
    for wanted, own, added in zip(collapse[0].frames, collapse[2], moved, strict=True):
        meter.add(wanted, skin_frame(collapse[1], result.bones, result.weights, np.concatenate([own, added])))
    assert meter.e_rms < 1.05 * result.e_rms
    linear = result.transforms[..., :3]
    if kind == "RIGID":
        np.testing.assert_allclose(
            linear.swapaxes(-1, -2) @ linear, np.broadcast_to(np.eye(3), linear.shape), atol=1e-9
        )
    if kind == "SCALED":
        turned = linear @ result.bone_axes
        metric = turned.swapaxes(-1, -2) @ turned
        np.testing.assert_allclose(metric * (1 - np.eye(3)), 0, atol=1e-8)


@pytest.mark.parametrize("own_weights", ["KEEP", "ADAPT"])
def test_more_helpers_are_better(collapse, own_weights):
    errors = [add_helper_bones(*collapse, count, own_weights=own_weights).e_rms for count in (1, 3, 9)]
    assert np.all(np.diff(errors) < 0)


def test_own_weights_that_may_adapt_do_better(collapse):
    kept, adapted = (add_helper_bones(*collapse, 4, own_weights=value) for value in ("KEEP", "ADAPT"))
    assert adapted.e_rms < 0.95 * kept.e_rms
    before, own, helpers = shares_of(collapse, adapted)
    assert np.abs(own - before * (1 - helpers.sum(axis=1, keepdims=True))).max() > 0.05
    assert np.count_nonzero(np.hstack([own, helpers]), axis=1).max() <= 8


@pytest.mark.parametrize("bone", [3, 18])
def test_the_motion_of_a_missing_bone_is_recovered_by_a_helper(shared_data, bone):
    """Exact skinning of which one bone is missing: a single helper explains what that has left, but for vertices that
    no other bone moves."""
    data = np.load(shared_data("wolf_ground_truth.npz"))
    weights = data["weights"].astype(float)
    kept = np.arange(21) != bone
    weights = weights[:, kept]
    sums = weights.sum(axis=1, keepdims=True)
    weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 1e-6)
    rows = np.tile(np.arange(20), (len(weights), 1))
    animation = Animation(data["frames"], data["triangles"])
    result = add_helper_bones(animation, data["rest"], data["transforms"][:, kept], rows, weights, 1, max_influences=21)
    moved = weights.any(axis=1)
    shapes = np.concatenate([data["transforms"][:, kept], result.transforms], axis=1)
    left = [
        skin_frame(data["rest"], result.bones, result.weights, matrices) - positions
        for positions, matrices in zip(data["frames"], shapes, strict=True)
    ]
    before = [
        skin_frame(data["rest"], rows, weights, matrices) - positions
        for positions, matrices in zip(data["frames"], data["transforms"][:, kept], strict=True)
    ]
    assert np.linalg.norm(np.array(left)[:, moved]) < 0.1 * np.linalg.norm(np.array(before)[:, moved])


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_an_exact_rig_needs_no_help(shared_data, kind):
    data = np.load(shared_data("wolf_ground_truth.npz"))
    weights = data["weights"] / data["weights"].sum(axis=1, keepdims=True)
    rows = np.tile(np.arange(21), (len(weights), 1))
    animation = Animation(data["frames"], data["triangles"])
    result = add_helper_bones(
        animation, data["rest"], data["transforms"], rows, weights, 3, bone_kind=kind, max_influences=21
    )
    assert result.e_rms <= result.e_rms_before * (1 + 1e-6)
    assert np.isfinite(result.transforms).all()


@pytest.mark.parametrize("own_weights", ["KEEP", "ADAPT"])
def test_locked_weights_stay(collapse, own_weights):
    locked_bones, locked_vertices = np.arange(6) == 2, np.arange(len(collapse[1])) % 4 == 0
    result = add_helper_bones(
        *collapse, 3, own_weights=own_weights, locked_bones=locked_bones, locked_vertices=locked_vertices
    )
    before, own, helpers = shares_of(collapse, result)
    np.testing.assert_allclose(own[:, 2], before[:, 2], atol=1e-6)
    np.testing.assert_allclose(own[locked_vertices], before[locked_vertices], atol=1e-12)
    assert not helpers[locked_vertices].any()
    assert not result.changed[locked_vertices].any()
    assert result.e_rms < result.e_rms_before


def test_vertices_without_weights_stay_without(collapse):
    animation, rest, transforms, bones, weights = collapse
    bare = weights.copy()
    bare[:500] = 0
    rig = animation, rest, transforms, bones, bare
    result = add_helper_bones(*rig, 3)
    _, own, helpers = shares_of(rig, result)
    assert not own[:500].any()
    assert not helpers[:500].any()


def test_a_full_vertex_gets_no_helper(collapse):
    animation, rest, transforms, bones, weights = collapse
    full = np.count_nonzero(weights, axis=1) == 4
    result = add_helper_bones(animation, rest, transforms, bones, weights, 3, max_influences=4)
    assert 0 < result.changed.sum() <= np.count_nonzero(~full)
    assert not result.changed[full].any()


def test_more_helpers_than_there_is_to_help():
    """A sheet of which one corner alone is wrong, and as many helpers as a mesh could use."""
    frames, triangles = sheet(6, 8)
    still = np.repeat(frames[:1], len(frames), axis=0)
    still[3:, :5, 2] += 0.3
    animation = Animation(still, triangles)
    transforms = np.tile(np.eye(3, 4), (len(still), 1, 1, 1))
    rig = animation, still[0], transforms, np.zeros((48, 1), np.int32), np.ones((48, 1))
    for kind in BONE_KINDS:
        result = add_helper_bones(*rig, 12, bone_kind=kind)
        assert np.isfinite(result.transforms).all()
        assert result.e_rms < 0.05 * result.e_rms_before


def test_the_same_in_every_run(collapse):
    first, second = (add_helper_bones(*collapse, 3) for _ in range(2))
    assert np.array_equal(first.transforms, second.transforms)
    assert np.array_equal(first.weights, second.weights)


def test_bad_input(collapse):
    animation, rest, transforms, bones, weights = collapse
    with pytest.raises(BadSettings, match="at least 1, not 0"):
        add_helper_bones(*collapse, 0)
    with pytest.raises(BadSettings, match="too few for 2147483647 helper bones"):
        add_helper_bones(*collapse, 2**31 - 1)
    with pytest.raises(BadSettings, match="at least 2"):
        add_helper_bones(*collapse, max_influences=1)
    with pytest.raises(BadSettings, match="Bone kind must be one of"):
        add_helper_bones(*collapse, bone_kind="SOFT")
    with pytest.raises(BadSettings, match="Own weights must be one of KEEP, ADAPT"):
        add_helper_bones(*collapse, own_weights="LOSE")
    with pytest.raises(BadSettings, match=r'The bones have 7 frames, "Horse" has 27'):
        add_helper_bones(animation, rest, transforms[:7], bones, weights)
    with pytest.raises(BadSettings, match="The rest pose has 9 vertices"):
        add_helper_bones(animation, rest[:9], transforms, bones, weights)
    with pytest.raises(BadWeights, match=r'No vertex of "Horse" has weights'):
        add_helper_bones(animation, rest, transforms, bones, 0 * weights)
    with pytest.raises(BadWeights, match="are locked"):
        add_helper_bones(*collapse, locked_bones=np.ones(6, bool))
    with pytest.raises(BadWeights, match="are locked"):
        add_helper_bones(*collapse, locked_vertices=np.ones(len(rest), bool))
    even = np.tile(np.arange(4), (len(rest), 1)), np.full((len(rest), 4), 0.25)
    with pytest.raises(BadWeights, match="follows 4 bones already"):
        add_helper_bones(animation, rest, transforms, *even, max_influences=4)
    with pytest.raises(BadAnimation, match="1 frame"):
        add_helper_bones(Animation(animation.frames[:1], []), rest, transforms[:1], bones, weights)


@pytest.mark.parametrize("limit", [0.1, 0.4, 0.7, 0.96])
def test_cancelled(collapse, limit):
    with pytest.raises(Cancelled):
        add_helper_bones(*collapse, 2, own_weights="ADAPT", progress=lambda fraction, _: fraction < limit)


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(1, 5), st.integers(3, 40), st.integers(2, 6)),
    flat=st.booleans(),
    noise=st.sampled_from([0.0, 1e-3, 0.3, 3.0]),
    kind=st.sampled_from(BONE_KINDS),
    own_weights=st.sampled_from(["KEEP", "ADAPT"]),
    helpers=st.integers(1, 3),
)
def test_the_error_of_any_rig_never_rises(seed, sizes, flat, noise, kind, own_weights, helpers):
    rest, bones, weights, transforms = random_rig(seed, *sizes, flat)
    frames = np.array([skin_frame(rest, bones, weights, matrices) for matrices in transforms])
    frames += noise * np.random.default_rng(seed).normal(size=frames.shape)
    rig = Animation(frames, []), rest, transforms, bones, weights
    options = {"bone_kind": kind, "own_weights": own_weights, "max_influences": 8, "iterations": 6}
    result = add_helper_bones(*rig, helpers, **options)
    assert result.e_rms <= result.e_rms_before
    assert np.isfinite(result.transforms).all()
    assert result.weights.min() >= 0
    np.testing.assert_allclose(result.weights.sum(axis=1), 1, atol=1e-12)
    everything = np.concatenate([rig[2], result.transforms], axis=1)
    meter = ErrorMeter(unit_scale(rig[0].frames), len(rig[1]))
    for positions, matrices in zip(rig[0].frames, everything, strict=True):
        meter.add(positions, skin_frame(rig[1], result.bones, result.weights, matrices))
    assert meter.e_rms == pytest.approx(result.e_rms)


def farthest_helper(animation, rest, result, own_count) -> float:
    """How far a helper puts what it moves from where that should be, on average by its weights, in any frame."""
    shares = dense(result.bones, result.weights, own_count + result.transforms.shape[1])[:, own_count:]
    moved = np.einsum("fhij,nj->fhni", result.transforms[..., :3], rest) + result.transforms[..., None, :, 3]
    used = np.flatnonzero(shares.any(axis=0))
    parts = shares[:, used] / shares[:, used].sum(axis=0)
    astray = np.einsum("nh,fhni->fhi", parts, moved[:, used] - animation.frames[:, None])
    return float(np.linalg.norm(astray, axis=-1).max(initial=0.0))


def farthest_allowed(animation, rest, transforms, bones, weights) -> float:
    """A helper of any weight goes 82 times the rig's largest error at the most, by what holds it near; and a rigid
    motion of one part may have been another's, the mesh's own size away."""
    own = np.array([skin_frame(rest, bones, weights, matrices) for matrices in transforms])
    left = np.linalg.norm(own - animation.frames, axis=2).max()
    return 82 * left + np.linalg.norm(np.ptp(animation.frames.reshape(-1, 3), axis=0))


@pytest.mark.parametrize("own_weights", ["KEEP", "ADAPT"])
def test_helpers_with_next_to_no_weight_do_not_leap(own_weights):
    """Three vertices and three helpers, which weights of a millionth would send to where numbers lose their digits."""
    frames, _ = sheet(5, 8)
    animation = Animation(frames[:, [0, 20, 39]], [])
    rig = decompose(animation, Settings(1, "RIGID", iterations=2))
    skin = rig.rest, rig.transforms, rig.bones, rig.weights
    result = add_helper_bones(animation, *skin, 3, own_weights=own_weights)
    assert result.e_rms <= result.e_rms_before
    assert farthest_helper(animation, rig.rest, result, 1) <= farthest_allowed(animation, *skin)


@hypothesis.settings(deadline=None, max_examples=40)
@hypothesis.given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(1, 3), st.integers(3, 14), st.integers(2, 6)),
    flat=st.booleans(),
    noise=st.sampled_from([1e-3, 0.03, 0.3]),
    kind=st.sampled_from(BONE_KINDS),
    own_weights=st.sampled_from(["KEEP", "ADAPT"]),
    helpers=st.integers(1, 3),
)
@hypothesis.example(177, (3, 3, 4), False, 0.03, "RIGID", "ADAPT", 2)
@hypothesis.example(217, (2, 4, 6), False, 0.03, "RIGID", "ADAPT", 2)
@hypothesis.example(129, (2, 7, 6), False, 0.3, "RIGID", "KEEP", 2)
def test_helpers_of_any_small_rig_do_not_leap(seed, sizes, flat, noise, kind, own_weights, helpers):
    rest, bones, weights, transforms = random_rig(seed, *sizes, flat)
    frames = np.array([skin_frame(rest, bones, weights, matrices) for matrices in transforms])
    frames += noise * np.random.default_rng(seed).normal(size=frames.shape)
    animation, skin = Animation(frames, []), (rest, transforms, bones, weights)
    options = {"bone_kind": kind, "own_weights": own_weights, "max_influences": 8}
    result = add_helper_bones(animation, *skin, helpers, **options)
    assert farthest_helper(animation, rest, result, transforms.shape[1]) <= farthest_allowed(animation, *skin)
