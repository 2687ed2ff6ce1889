# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys are kept: straight motion needs two, and no vertex moves by more than the tolerance."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core import quaternions
from skinning_tools.core.animation import Animation, unit_scale
from skinning_tools.core.bone_channels import BoneChannels, bone_channels
from skinning_tools.core.decomposition import Decomposition, Settings, decompose
from skinning_tools.core.decomposition.residual import ResidualShapes
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import Cancelled
from skinning_tools.core.key_reduction import reduce_keys

from .decomposition.sequences import sheet

KINDS = ("AFFINE", "SCALED", "RIGID")


def rig(kind, frame_count=40, bone_count=3, noise=0.0, residual=None, seed=1):
    """A Decomposition of smooth motion, with noise, and the rest matrices of its bones."""
    random = np.random.default_rng(seed)
    times = np.linspace(0, 1, frame_count)
    rest_frames = np.tile(np.eye(4), (bone_count, 1, 1))
    rest_frames[:, :3, :3] = Rotation.random(bone_count, random_state=seed).as_matrix()
    rest_frames[:, :3, 3] = random.normal(size=(bone_count, 3))
    speeds = random.normal(size=(bone_count, 3))
    local = np.empty((frame_count, bone_count, 3, 4))
    for bone in range(bone_count):
        local[:, bone, :, :3] = Rotation.from_rotvec(np.sin(3 * times)[:, None] * speeds[bone]).as_matrix()
        local[:, bone, :, 3] = np.sin(5 * times)[:, None] * random.normal(size=3)
    if kind != "RIGID":
        local[..., :3] *= 1 + 0.3 * np.sin(4 * times)[:, None, None, None] * random.random((bone_count, 1, 3))
    if kind == "AFFINE":
        local[..., :3] += 0.1 * np.cos(2 * times)[:, None, None, None] * random.normal(size=(bone_count, 3, 3))
    local[..., 3] += noise * random.normal(size=local.shape[:-1])
    whole = np.concatenate([local, np.broadcast_to([0, 0, 0, 1.0], (frame_count, bone_count, 1, 4))], axis=2)
    transforms = (rest_frames @ whole @ np.linalg.inv(rest_frames))[..., :3, :]
    rest = random.normal(size=(80, 3))
    bones = np.tile(np.arange(bone_count, dtype=np.int32), (80, 1))
    weights = random.dirichlet(np.full(bone_count, 0.5), 80)
    axes = rest_frames[:, :3, :3]
    result = Decomposition(rest, transforms, bones, weights, kind, axes, 0.0, 0.0, (), 1, residual=residual)
    return result, rest_frames


def moved_along(result, distances) -> Decomposition:
    """The same skin on bones that only move along x by ``distances`` (F,)."""
    transforms = np.tile(np.eye(3, 4), (len(distances), result.bone_count, 1, 1))
    transforms[..., 0, 3] = distances[:, None]
    return replace(result, transforms=transforms)


def reduced(result, rest, tolerance, **options):
    times = np.arange(1.0, len(result.transforms) + 1)
    channels = bone_channels(result, rest)
    choice = reduce_keys(result, channels, rest, times, tolerance, **options)
    return channels, choice, times


def largest_move(result, rest, channels, choice, times) -> float:
    """By the test's own way: the channels interpolated one by one, quaternions normalized, the matrices multiplied."""

    def sampled(name, bone, frame):
        values, rows = getattr(channels, name)[:, bone], choice.bones[name][bone]
        return np.array([np.interp(times[frame], times[rows], column[rows]) for column in values.T])

    def matrix(bone, frame):
        turn = sampled("rotation", bone, frame)
        linear = quaternions.to_matrices(turn / np.linalg.norm(turn))
        if channels.scale is not None:
            linear = linear @ np.diag(sampled("scale", bone, frame))
        if channels.child_rotation is not None:
            turn = sampled("child_rotation", bone, frame)
            linear = linear @ quaternions.to_matrices(turn / np.linalg.norm(turn)) @ np.diag(channels.child_scale[bone])
        whole = np.eye(4)
        whole[:3, :3], whole[:3, 3] = linear, sampled("location", bone, frame)
        return (rest[bone] @ whole @ np.linalg.inv(rest[bone]))[:3]

    largest = 0.0
    for frame in range(len(times)):
        at_rest = result.rest
        if result.residual is not None:
            values, rows = result.residual.values, choice.shapes
            now = [np.interp(times[frame], times[rows], column[rows]) for column in values.T]
            at_rest = at_rest + np.tensordot(now, result.residual.shapes, axes=1)
        matrices = np.array([matrix(bone, frame) for bone in range(len(rest))])
        moved = skin_frame(at_rest, result.bones, result.weights, matrices)
        before = skin_frame(result.rest_at(frame), result.bones, result.weights, result.transforms[frame])
        largest = max(largest, np.linalg.norm(moved - before, axis=1).max())
    return largest


def shapes(frame_count=40, vertex_count=80, seed=3):
    random = np.random.default_rng(seed)
    times = np.linspace(0, 1, frame_count)
    values = np.stack([np.sin(4 * times), np.cos(7 * times)], axis=1)
    return ResidualShapes(0.2 * random.normal(size=(2, vertex_count, 3)), values / np.abs(values).max(axis=0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tolerance", [0.002, 0.02, 0.2])
@pytest.mark.parametrize("with_shapes", [False, True])
def test_no_vertex_moves_by_more_than_the_tolerance(kind, tolerance, with_shapes):
    result, rest = rig(kind, noise=0.002, residual=shapes() if with_shapes else None)
    channels, choice, times = reduced(result, rest, tolerance)
    moved = largest_move(result, rest, channels, choice, times)
    assert moved <= tolerance * (1 + 1e-9)
    assert moved >= 0.3 * tolerance
    for rows in [row for bones in choice.bones.values() for row in bones]:
        assert (rows[0], rows[-1]) == (0, len(times) - 1)
        assert np.all(np.diff(rows) > 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_larger_tolerance_needs_fewer_keys(kind):
    result, rest = rig(kind)
    counts = [reduced(result, rest, tolerance)[1].key_count() for tolerance in (0.001, 0.01, 0.1, 10.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 2 * counts[2]
    channels = len(bone_channels(result, rest).moving())
    assert counts[-1] == 2 * 3 * {"AFFINE": 14, "SCALED": 10, "RIGID": 7}[kind]
    assert channels == {"AFFINE": 4, "SCALED": 3, "RIGID": 2}[kind]


def test_straight_motion_keeps_its_ends():
    """Locations on a line with one corner: three keys, at the corner's frame."""
    frame_count = 30
    result, rest = rig("RIGID", frame_count)
    result = moved_along(result, np.minimum(np.arange(frame_count), 11.0))
    _, choice, _ = reduced(result, rest, 1e-6)
    for rows in choice.bones["location"]:
        assert rows.tolist() == [0, 11, 29]
    for rows in choice.bones["rotation"]:
        assert rows.tolist() == [0, 29]


def test_shapes_that_do_not_matter_keep_few_keys():
    residual = shapes()
    tiny = ResidualShapes(residual.shapes * 1e-6, residual.values)
    result, rest = rig("RIGID", residual=tiny)
    assert len(reduced(result, rest, 0.01)[1].shapes) == 2
    result, rest = rig("RIGID", residual=residual)
    assert len(reduced(result, rest, 0.01)[1].shapes) > 5


def test_bones_without_vertices_keep_their_ends():
    result, rest = rig("AFFINE")
    result.weights[:] = [1, 0, 0]
    _, choice, _ = reduced(result, rest, 0.01)
    assert all(rows[2].tolist() == [0, 39] for rows in choice.bones.values())


def test_two_frames_keep_both():
    result, rest = rig("SCALED", frame_count=2)
    _, choice, _ = reduced(result, rest, 0.5)
    assert all(rows.tolist() == [0, 1] for bones in choice.bones.values() for rows in bones)


def test_uneven_times_count():
    """The corner of a line in time is no corner of one in rows."""
    result, rest = rig("RIGID", frame_count=5)
    times = np.array([1.0, 2.0, 3.0, 13.0, 23.0])
    result = moved_along(result, times)
    choice = reduce_keys(result, bone_channels(result, rest), rest, times, 1e-6)
    assert all(rows.tolist() == [0, 4] for rows in choice.bones["location"])


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    tolerance=st.floats(1e-4, 1.0),
    noise=st.floats(0, 0.1),
    kind=st.sampled_from(KINDS),
    frame_count=st.integers(2, 25),
)
def test_the_tolerance_holds_for_any_motion(seed, tolerance, noise, kind, frame_count):
    result, rest = rig(kind, frame_count, bone_count=2, noise=noise, seed=seed)
    parts = reduced(result, rest, tolerance)
    assert largest_move(result, rest, *parts) <= tolerance * (1 + 1e-9)


def test_channels_at_all_keys_are_themselves():
    result, rest = rig("AFFINE")
    channels = bone_channels(result, rest)
    every = {name: [np.arange(40)] * 3 for name in channels.moving()}
    at_all_keys = channels.at_keys(every, np.arange(40.0))
    np.testing.assert_array_equal(at_all_keys.object_matrices(rest), channels.object_matrices(rest))
    assert isinstance(channels, BoneChannels)


def test_a_solved_animation(shared_data):
    """At a fifth of the largest error of a captured sequence, a third of all keys is not needed."""
    data = np.load(shared_data("samba.npz"))
    animation = Animation(data["frames"][:60], data["triangles"])
    result = decompose(animation, Settings(12, "RIGID", iterations=4))
    rest = np.tile(np.eye(4), (12, 1, 1))
    tolerance = 0.2 * result.max_error / 1000 / unit_scale(animation.frames)
    channels, choice, times = reduced(result, rest, tolerance)
    assert largest_move(result, rest, channels, choice, times) <= tolerance * (1 + 1e-9)
    assert choice.key_count() < 0.67 * 60 * 12 * 7


def test_it_reports_progress_and_cancels():
    result, rest = rig("AFFINE", residual=shapes())
    fractions = []
    reduced(result, rest, 0.01, progress=lambda fraction, stage: fractions.append(fraction))
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < fractions[-1] <= 1
    with pytest.raises(Cancelled):
        reduced(result, rest, 0.01, progress=lambda fraction, stage: fraction < 0.1)


def test_same_keys_in_every_run():
    frames, triangles = sheet()
    result = decompose(Animation(frames, triangles), Settings(5, "SCALED", iterations=3))
    rest = np.tile(np.eye(4), (5, 1, 1))
    first, second = (reduced(result, rest, 0.01)[1] for _ in range(2))
    for name, rows in first.bones.items():
        for one, other in zip(rows, second.bones[name], strict=True):
            np.testing.assert_array_equal(one, other)
