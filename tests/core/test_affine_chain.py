# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.vq import kmeans2
from scipy.spatial.transform import Rotation

from skinning_tools.core import affine_chain, quaternions
from skinning_tools.core.affine_chain import AffineChain, in_rest_frame, rigid_channels, scaled_channels, split


def with_translation(linear, seed=9):
    translation = np.random.default_rng(seed).normal(size=(*linear.shape[:2], 3, 1))
    return np.concatenate([linear, translation], axis=-1)


def spinning(frames, bones, degrees=20.0, seed=0):
    """(F, P, 3, 3) rotations at an even speed, each bone about an axis of its own, starting unturned."""
    axes = np.random.default_rng(seed).normal(size=(bones, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    angles = np.radians(degrees) * np.arange(frames)
    return Rotation.from_rotvec((angles[:, None, None] * axes).reshape(-1, 3)).as_matrix().reshape(frames, bones, 3, 3)


def rounded(linear):
    """The allowed error of the factors: the nudge of 2e-14, times the ratio of the child's scales, and rounding."""
    ratio = affine_chain.CHILD_SCALES.max() / affine_chain.CHILD_SCALES.min()
    return 3e-14 * ratio * np.abs(linear).max() + 1e-90


def halfway_matrices(chain):
    """(F − 1, P, 3, 4): the chain half-way between frames, each channel interpolated alone as Blender does."""

    def middle(values):
        return 0.5 * (values[:-1] + values[1:])

    return AffineChain(
        middle(chain.location),
        quaternions.normalized(middle(chain.rotation)),
        middle(chain.scale),
        quaternions.normalized(middle(chain.child_rotation)),
        chain.child_scale,
    ).matrices()


def polar_halfway(linear):
    """(F − 1, P, 3, 3): what a bone that could shear would show: rotation and stretch of the polar decomposition."""
    u, s, vt = np.linalg.svd(linear)
    sign = np.sign(np.linalg.det(u @ vt))
    u[..., 2] *= sign[..., None]
    s[..., 2] *= sign
    rotation = quaternions.from_matrices(u @ vt)
    stretch = vt.swapaxes(-1, -2) @ (s[..., None] * vt)
    middle = quaternions.to_matrices(quaternions.halfway(rotation[:-1], rotation[1:]))
    return middle @ (0.5 * (stretch[:-1] + stretch[1:]))


def halfway_error(middle, matrices):
    """(F − 1, P) distance of the linear part of ``middle`` from the average of the frames on both sides."""
    average = 0.5 * (matrices[:-1, ..., :3] + matrices[1:, ..., :3])
    return np.sqrt(np.square(middle[..., :3] - average).sum((-1, -2)))


def rms(values):
    return np.sqrt(np.mean(np.square(values)))


@st.composite
def linear_parts(draw):
    """(F, P, 3, 3) of all ranks and both orientations, from tiny to huge."""
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    frames, bones = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    rank = draw(st.integers(0, 3))
    scale = 10.0 ** draw(st.integers(-6, 6))
    return scale * (random.normal(size=(frames, bones, 3, rank)) @ random.normal(size=(frames, bones, rank, 3)))


@settings(deadline=None)
@given(linear_parts())
def test_factors_multiply_back_to_any_matrix(linear):
    matrices = with_translation(linear)
    chain = split(matrices)
    assert np.abs(chain.matrices() - matrices)[..., :3].max() <= rounded(linear)
    assert np.array_equal(chain.location, matrices[..., 3])
    for rotation in (chain.rotation, chain.child_rotation):
        assert np.allclose(np.linalg.norm(rotation, axis=-1), 1, atol=1e-14)
        assert np.all(np.einsum("fpi,fpi->fp", rotation[1:], rotation[:-1]) >= 0)


def test_a_bone_at_rest_has_channels_at_rest():
    matrices = np.broadcast_to(np.eye(3, 4), (4, 2, 3, 4))
    chain = split(matrices)
    assert np.allclose(chain.rotation, [1, 0, 0, 0], atol=1e-12)
    assert np.allclose(chain.child_rotation, [1, 0, 0, 0], atol=1e-12)
    assert np.array_equal(chain.child_scale, np.ones((2, 3)))
    assert np.allclose(chain.scale, 1, atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 1e-6, 1e-3])
def test_rigid_spinning_with_noise_is_as_smooth_as_the_spinning_itself(noise):
    rotations = spinning(60, 10)
    matrices = with_translation(rotations + noise * np.random.default_rng(1).normal(size=rotations.shape))
    errors = halfway_error(halfway_matrices(split(matrices)), matrices)
    ideal = halfway_error(polar_halfway(rotations), rotations)
    assert errors.max() <= 1.3 * ideal.max() + 3 * noise
    assert rms(errors) <= 1.02 * rms(ideal) + noise


def test_noise_about_rest_does_not_show_between_frames():
    noise = 1e-9 * np.random.default_rng(1).normal(size=(40, 5, 3, 3))
    matrices = with_translation(np.eye(3) + noise)
    assert halfway_error(halfway_matrices(split(matrices)), matrices).max() < 1e-8


@pytest.mark.parametrize("degrees", [0.0, 15.0])
def test_slow_shear_is_as_smooth_as_a_polar_decomposition(degrees):
    phase = 2 * np.pi * np.arange(60) / 60
    shear = np.eye(3) + 0.5 * np.sin(phase)[:, None, None, None] * np.random.default_rng(2).normal(size=(10, 3, 3))
    matrices = with_translation(spinning(60, 10, degrees) @ shear)
    errors = halfway_error(halfway_matrices(split(matrices)), matrices)
    ideal = halfway_error(polar_halfway(matrices[..., :3]), matrices)
    assert rms(errors) <= 1.5 * rms(ideal)
    assert errors.max() <= 3 * ideal.max()


def test_singular_values_may_cross():
    """Two stretches change places: the middle is their average, not a turn by 45 degrees."""
    time = np.linspace(0, 1, 11)[:, None, None, None]
    matrices = with_translation((1 - time) * np.diag([2.0, 1, 0.5]) + time * np.diag([0.5, 1, 2.0]))
    assert halfway_error(halfway_matrices(split(matrices)), matrices).max() < 1e-9


def test_a_mirroring_bone_passes_through_flat():
    """One scale goes from 1 to −1: the scale changes its sign, and nothing turns over."""
    factors = np.ones((41, 6, 3))
    factors[..., 1] = np.linspace(1, -1, 41)[:, None]
    matrices = with_translation(spinning(41, 6, 5.0) * factors[..., None, :])
    chain = split(matrices)
    assert np.abs(chain.matrices() - matrices).max() < 1e-12
    assert halfway_error(halfway_matrices(chain), matrices).max() < 0.01


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_singular_bones_stay_continuous(rank):
    rotations = spinning(40, 8, 10.0)
    random = np.random.default_rng(3)
    flat = random.normal(size=(8, 3, rank)) @ random.normal(size=(8, rank, 3))
    matrices = with_translation(rotations @ flat)
    errors = halfway_error(halfway_matrices(split(matrices)), matrices)
    ideal = 0.5 * np.radians(10.0) ** 2 * np.linalg.norm(flat, axis=(1, 2))
    assert np.all(errors <= ideal + rounded(flat))


def test_growing_from_nothing():
    size = np.maximum(0.0, np.linspace(-1, 1, 41))[:, None, None, None]
    matrices = with_translation(size * spinning(41, 5, 4.0))
    chain = split(matrices)
    assert np.abs(chain.matrices() - matrices).max() < 1e-12
    assert halfway_error(halfway_matrices(chain), matrices).max() < 0.06


def test_long_animations_take_the_same_care():
    """More frames than are used to try all child scales."""
    rotations = spinning(900, 60, 7.0)
    matrices = with_translation(rotations + 1e-4 * np.random.default_rng(1).normal(size=rotations.shape))
    errors = halfway_error(halfway_matrices(split(matrices)), matrices)
    assert errors.max() <= 1.5 * halfway_error(polar_halfway(rotations), rotations).max() + 1e-3


def test_where_a_bone_has_no_extent_its_errors_do_not_count():
    """Noise across a thin region must not spoil the motion along it."""
    random = np.random.default_rng(4)
    linear = spinning(40, 6, 12.0)
    linear = linear @ (np.eye(3) + 0.3 * random.normal(size=linear.shape) * [0, 0, 1])
    matrices = with_translation(linear)
    extents = np.tile([1.0, 1.0, 0.01], (6, 1))

    def seen(chain):
        average = 0.5 * (linear[:-1] + linear[1:])
        return rms((halfway_matrices(chain)[..., :3] - average) * extents[:, None, :])

    assert seen(split(matrices, extents)) <= seen(split(matrices))


@pytest.mark.parametrize(("name", "bones"), [("horse_gallop", 30), ("samba", 30), ("elastic_cow", 18)])
def test_real_motion_between_frames(shared_data, name, bones):
    """Least-squares bones of captured and simulated motion are nearly as good as if bones could shear."""
    frames = np.load(shared_data(f"{name}.npz"))["frames"].astype(np.float64)
    labels = kmeans2(frames[0], bones, seed=1, minit="++")[1]
    matrices = []
    for bone in range(bones):
        points = frames[:, labels == bone] - frames[0, labels == bone].mean(axis=0)
        rest = np.column_stack([points[0], np.ones(points.shape[1])])
        stacked = np.linalg.lstsq(rest, points.transpose(1, 0, 2).reshape(len(rest), -1), rcond=None)[0]
        matrices.append(stacked.reshape(4, -1, 3).transpose(1, 2, 0))
    matrices = np.array(matrices).swapaxes(0, 1)
    chain = split(matrices)
    assert np.abs(chain.matrices() - matrices).max() <= rounded(matrices[..., :3])
    errors = halfway_error(halfway_matrices(chain), matrices)
    ideal = halfway_error(polar_halfway(matrices[..., :3]), matrices)
    assert rms(errors) <= 1.5 * rms(ideal)
    assert errors.max() <= 1.5 * ideal.max()


def test_rest_frames_undo_themselves():
    random = np.random.default_rng(5)
    rest = np.tile(np.eye(4), (3, 1, 1))
    rest[:, :3, :3] = spinning(2, 3, 50.0)[1]
    rest[:, :3, 3] = 1e4 * random.normal(size=(3, 3))
    matrices = random.normal(size=(4, 3, 3, 4))
    bottom = np.broadcast_to([0.0, 0, 0, 1], (4, 3, 1, 4))
    in_rest = np.concatenate([in_rest_frame(matrices, rest), bottom], axis=-2)
    back = rest @ in_rest @ np.linalg.inv(rest)
    assert np.abs(back[..., :3, :] - matrices).max() < 1e-10


def test_far_from_the_origin_a_small_motion_keeps_its_digits():
    rest = np.eye(4)[None].copy()
    rest[0, :3, 3] = 1e6
    matrices = np.eye(3, 4)[None, None].copy()
    matrices[..., 3] = 1e-9
    assert np.allclose(in_rest_frame(matrices, rest)[..., 3], 1e-9, rtol=1e-12, atol=0)


@settings(deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([(), (0,), (1, 2), (0, 1, 2)]))
def test_scaled_channels_are_exact_and_continuous(seed, zeroed):
    random = np.random.default_rng(seed)
    scale = 1 + 0.8 * random.normal(size=(1, 3, 3)) + 0.05 * np.cumsum(random.normal(size=(20, 3, 3)), axis=0)
    scale[:, :, list(zeroed)] = 0
    matrices = with_translation(spinning(20, 3, 8.0, seed) * scale[..., None, :])
    location, rotation, found = scaled_channels(matrices)
    assert np.array_equal(location, matrices[..., 3])
    rebuilt = quaternions.to_matrices(rotation) * found[..., None, :]
    assert np.abs(rebuilt - matrices[..., :3]).max() < 1e-11
    if not zeroed:
        # The bone turns by 8 degrees a frame: no more, and never the other way round.
        assert np.einsum("fpi,fpi->fp", rotation[1:], rotation[:-1]).min() > np.cos(np.radians(4.1))


def test_rigid_channels_are_exact_and_continuous():
    matrices = with_translation(spinning(100, 4, 11.0))
    location, rotation = rigid_channels(matrices)
    assert np.array_equal(location, matrices[..., 3])
    assert np.abs(quaternions.to_matrices(rotation) - matrices[..., :3]).max() < 1e-13
    assert np.einsum("fpi,fpi->fp", rotation[1:], rotation[:-1]).min() > np.cos(np.radians(5.6))


def test_the_plain_chain_is_kept_where_it_serves():
    """A stretch along fixed axes needs no help, and the child then has no scale."""
    scale = 1 + np.linspace(0, 1, 20)[:, None, None] * [0.5, 1.0, 1.5]
    chain = split(with_translation(np.eye(3) * scale[..., None, :]))
    assert np.array_equal(chain.child_scale, [affine_chain.PLAIN])
