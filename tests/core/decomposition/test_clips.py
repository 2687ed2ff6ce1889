# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips of one mesh: frames with weights, and one solve that does not sacrifice a calm or short clip."""

import numpy as np
import pytest

from skinning_tools.core.animation import Animation, unit_scale
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose
from skinning_tools.core.decomposition.clips import clip_errors, clip_weights, decompose_clips
from skinning_tools.core.decomposition.reduction import AnimationMatrix

LENGTHS = (12, 8, 5)


@pytest.fixture(scope="module")
def clips() -> Animation:
    """A vault that waves wildly, breathes calmly, and bends in a few frames."""
    y, x = (each.ravel() for each in np.meshgrid(np.linspace(-0.7, 0.7, 13), np.linspace(-1, 1, 17), indexing="ij"))
    rest = np.stack([x, y, 0.6 * np.cos(1.5 * x) * np.cos(2 * y)], axis=1)
    corners = np.arange(13 * 17).reshape(13, 17)
    quads = (corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1])
    faces = np.stack([each.ravel() for each in quads], axis=1)
    random, parts = np.random.default_rng(5), []
    for count, size in zip(LENGTHS, (0.5, 0.02, 0.2), strict=True):
        waves = random.uniform(2, 6, (3, 2)), random.uniform(0, 6, 3)
        shape = np.sin(rest[:, :2] @ waves[0].T + waves[1])
        values = np.sin(np.linspace(0, 3, count)[:, None] * random.uniform(0.5, 1.5, 3))
        frames = np.repeat(rest[None], count, axis=0)
        frames[..., 2] += size * values @ shape.T
        frames[..., 0] += 0.5 * size * values[:, ::-1] @ shape.T
        parts.append(frames)
    return Animation(np.concatenate(parts), np.concatenate([faces[:, :3], faces[:, [0, 2, 3]]]))


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_weights_change_what_counts_and_nothing_else(clips, kind):
    settings = Settings(4, kind, iterations=4)
    equal = decompose(clips, settings)
    same = decompose(clips, settings, frame_weights=np.ones(len(clips.frames)))
    np.testing.assert_array_equal(equal.transforms, same.transforms)
    weights = np.repeat((0.2, 5.0, 1.0), LENGTHS)
    found = decompose(clips, settings, frame_weights=weights)
    assert found.e_rms == pytest.approx(_e_rms(clips, found), rel=1e-9)
    assert clip_errors(clips, found, LENGTHS)[1] < 0.7 * clip_errors(clips, equal, LENGTHS)[1]
    linear = found.transforms[..., :3]
    if kind == "RIGID":
        np.testing.assert_allclose(
            linear @ linear.swapaxes(-1, -2), np.broadcast_to(np.eye(3), linear.shape), atol=1e-9
        )
    if kind == "SCALED":
        stretched = linear @ found.bone_axes
        gram = stretched.swapaxes(-1, -2) @ stretched
        off = gram - np.einsum("fpii->fpi", gram)[..., None] * np.eye(3)
        np.testing.assert_allclose(off, 0, atol=1e-8 * np.abs(gram).max())


def _e_rms(animation, found) -> float:
    total = sum(np.square(clip_errors(animation, found, LENGTHS)) * LENGTHS)
    return float(np.sqrt(total / sum(LENGTHS)))


def test_object_space_and_back_with_weights(clips):
    random = np.random.default_rng(0)
    weights = random.uniform(0.1, 10, len(clips.frames))
    matrix = AnimationMatrix(clips.frames, weights)
    rest, transforms = random.normal(size=(5, 3)), random.normal(size=(len(clips.frames), 3, 3, 4))
    there = matrix.from_object_space(rest, transforms)
    back = matrix.to_object_space(*there)
    np.testing.assert_allclose(back[0], rest, atol=1e-12)
    np.testing.assert_allclose(back[1], transforms, atol=1e-10)
    moved = (clips.frames[:, 0].astype(float) - matrix.means) / matrix.radius
    np.testing.assert_allclose(matrix.rows(slice(0, 1)).reshape(-1, 3), moved * weights[:, None], atol=1e-12)
    np.testing.assert_allclose(matrix.unweigh(matrix.rows(slice(0, 1))).reshape(-1, 3), moved, atol=1e-12)


@pytest.mark.parametrize("kind", ["AFFINE", "RIGID"])
def test_no_clip_is_sacrificed(clips, kind):
    settings = Settings(6, kind, iterations=6)
    equal = clip_errors(clips, decompose(clips, settings), LENGTHS)
    weighed = clip_errors(clips, decompose_clips(clips, LENGTHS, settings), LENGTHS)
    ends = np.cumsum(LENGTHS)
    own = []
    for end, count in zip(ends, LENGTHS, strict=True):
        alone = Animation(clips.frames[end - count : end], clips.triangles)
        found = decompose(alone, settings)
        own.append(found.e_rms * unit_scale(clips.frames) / unit_scale(alone.frames))
    # The clip that is worst beside its own solve is better off.
    assert (weighed / own).max() < 0.8 * (equal / own).max()


def test_weights_of_clips():
    weights = clip_weights(np.array([1.0, 4.0, 1e-9]), (4, 16, 9))
    assert np.square(weights).mean() == pytest.approx(1)
    # Ratio / √frames; a ratio far below the largest counts as a tenth of that.
    assert weights[0] / weights[4] == pytest.approx((1 / 2) / (4 / 4))
    assert weights[20] / weights[4] == pytest.approx((0.4 / 3) / (4 / 4))
    np.testing.assert_array_equal(clip_weights(np.zeros(2), (3, 3)), 1)


def test_a_target_error_is_of_all_frames_alike(clips):
    settings = Settings(12, target_error=3.0, iterations=4)
    found = decompose_clips(clips, LENGTHS, settings)
    plain = decompose(clips, settings)
    np.testing.assert_array_equal(found.transforms, plain.transforms)
    assert _e_rms(clips, found) <= 3.0 * 1.05
