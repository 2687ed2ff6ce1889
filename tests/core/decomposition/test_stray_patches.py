# SPDX-License-Identifier: GPL-3.0-or-later
"""Patches that follow a bone from elsewhere in the skeleton go to the bones around them."""

import numpy as np
import pytest

from skinning_tools.core.body_surface import BodySurface
from skinning_tools.core.decomposition.bone_model import BoneModel, homogeneous
from skinning_tools.core.decomposition.near_weights import PoseLimits, all_errors
from skinning_tools.core.decomposition.reduction import AnimationMatrix
from skinning_tools.core.decomposition.stray_patches import bones_around
from skinning_tools.core.decomposition.transforms import to_rows
from skinning_tools.core.decomposition.vertex_step import VertexState
from skinning_tools.core.deform import skin_frame
from tests.core import skinned_shapes

# A chain of three bones along a bar.
PARENTS, HEADS = np.array([-1, 0, 1]), np.array([[0.0, 0, 0], [2, 0, 0], [4, 0, 0]])
NEAR = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) <= 1


def bar():
    """rest (N, 3), triangles (T, 3), and the bone (N,) that moves each vertex."""
    rest, triangles = skinned_shapes.cuboid()
    return rest, triangles, np.searchsorted([1.95, 3.95], rest[:, 0])


@pytest.mark.parametrize(
    ("reach", "follows", "around"),
    [(0.25, 2, 0), (0.25, 1, None), (1.05, 2, None)],
    ids=["small and far", "led by a neighbor", "a large part"],
)
def test_the_bone_around_a_patch(reach, follows, around):
    rest, triangles, leading = bar()
    patch = np.abs(rest[:, 0] - 0.8) < reach
    leading[patch] = follows
    found, _ = bones_around(BodySurface(rest, triangles), leading, NEAR)
    np.testing.assert_array_equal(found, np.where(patch & (around is not None), around or 0, -1))


def test_a_patch_beside_another_one_belongs_to_what_is_large():
    rest, triangles, leading = bar()
    patch, beside = np.abs(rest[:, 0] - 0.8) < 0.15, np.abs(rest[:, 0] - 1.0) < 0.08
    leading[patch], leading[beside] = 2, 1
    found, _ = bones_around(BodySurface(rest, triangles), leading, NEAR)
    np.testing.assert_array_equal(found, np.where(patch & ~beside, 0, -1))


def test_no_patch_of_loose_vertices():
    rest = np.random.default_rng(0).normal(size=(30, 3))
    surface = BodySurface(rest, np.zeros((0, 3), int))
    np.testing.assert_array_equal(bones_around(surface, np.arange(30) % 3, NEAR)[0], -1)


@pytest.mark.parametrize("apart", [True, False])
def test_vertices_are_fitted_again_unless_they_would_come_farther_off_than_any(apart):
    """The third bone moves as the first, or not at all alike."""
    rest, triangles, leading = bar()
    patch = np.abs(rest[:, 0] - 0.8) < 0.25
    bones = leading.copy()
    bones[patch] = 2
    motion = np.tile(np.eye(3, 4), (6, 3, 1, 1))
    motion[:, 1, 1, 3] = np.linspace(0.0, 2.0, 6)
    motion[:, 2, 2, 3] = apart * np.linspace(0.0, 3.0, 6)
    single, alone = bones[:, None].astype(np.int32), np.ones((len(rest), 1))
    frames = np.array([skin_frame(rest, single, alone, each) for each in motion])
    frames += np.random.default_rng(0).normal(scale=0.01, size=frames.shape)
    matrix = AnimationMatrix(frames)
    points, moved = matrix.from_object_space(rest, motion)
    limits = PoseLimits(PARENTS, matrix.points_from_object_space(HEADS), len(frames))
    state, model = VertexState(homogeneous(points), single, alone), BoneModel(to_rows(moved))
    before = all_errors(model, state, matrix).max()
    surface = BodySurface(rest, triangles)
    limits.gather(model, state, matrix, surface, optimize_rest_pose=False)
    assert all_errors(model, state, matrix).max() <= before * (1.0 + 1e-9)
    # Errors of the other vertices are noise alone.
    np.testing.assert_array_equal(state.bones[:, 0], np.where(patch & apart, 2, leading))
