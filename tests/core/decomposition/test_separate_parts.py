# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts that move as one though they are far from each other get bones of their own."""

from dataclasses import replace

import numpy as np
import pytest

from skinning_tools.core.decomposition import Decomposition
from skinning_tools.core.decomposition.separate_parts import with_separate_parts
from skinning_tools.core.deform import skin_frame
from tests.core import skinned_shapes


@pytest.fixture
def standing():
    """A bar whose ends, longer than wide, have one bone, and its middle another; and triangles."""
    rest, triangles = skinned_shapes.cuboid()
    # Between 0.8 and 1.2, and 4.8 and 5.2, they share vertices.
    middle = np.clip((2.0 - np.abs(rest[:, 0] - 3.0)) / 0.4 + 0.5, 0.0, 1.0)
    weights = np.column_stack([np.maximum(middle, 1.0 - middle), np.minimum(middle, 1.0 - middle)])
    bones = np.where(middle[:, None] >= 0.5, [[0, 1]], [[1, 0]]).astype(np.int32)
    motion = np.random.default_rng(2).normal(size=(5, 2, 3, 4))
    found = Decomposition(rest, motion, bones, weights, "RIGID", np.tile(np.eye(3), (2, 1, 1)), 0.0, 0.0, (0.0,), 3)
    return found, triangles


def test_each_end_gets_a_bone_and_nothing_that_is_seen_changes(standing):
    found, triangles = standing
    parted = with_separate_parts(found, triangles, 10)
    assert (found.bone_count, parted.bone_count, len(parted.bone_axes)) == (2, 3, 3)
    ends = [
        set(parted.bones[part & (found.bones[:, 0] == 1), 0]) for part in (found.rest[:, 0] < 3, found.rest[:, 0] > 3)
    ]
    assert sorted(map(sorted, ends)) == [[1], [2]]
    np.testing.assert_array_equal(parted.bones == 0, found.bones == 0)
    for frame in range(5):
        moved = (skin_frame(each.rest, each.bones, each.weights, each.transforms[frame]) for each in (found, parted))
        np.testing.assert_array_equal(*moved)


def test_no_more_bones_than_allowed(standing):
    found, triangles = standing
    assert with_separate_parts(found, triangles, 2) is found


@pytest.mark.parametrize("leads", ["a half and a patch at the other end", "all but a belt"])
def test_patches_that_are_small_or_near_each_other_stay_together(standing, leads):
    found, triangles = standing
    x = found.rest[:, 0]
    led = (x > 2.95) | (x < 0.05) if "patch" in leads else (x < 2.05) | (x > 2.35)
    skin = replace(found, bones=led[:, None].astype(np.int32), weights=np.ones((len(x), 1)))
    assert with_separate_parts(skin, triangles, 10) is skin


def test_two_sides_are_separate_however_near(standing):
    found, triangles = standing
    x = found.rest[:, 0]
    led = np.abs(x - 3.0) > 0.15
    skin = replace(found, bones=led[:, None].astype(np.int32), weights=np.ones((len(x), 1)))
    parted = with_separate_parts(skin, triangles, 10)
    sides = [np.unique(parted.bones[led & side]).tolist() for side in (x < 3.0, x > 3.0)]
    assert sorted(sides) == [[1], [2]]
    lopsided = replace(skin, rest=found.rest * np.where(x > 3.0, 1.0, 0.6)[:, None])
    assert with_separate_parts(lopsided, triangles, 10) is lopsided


@pytest.mark.parametrize(("away", "count"), [(0.3, 3), (2.0, 4)])
def test_a_loose_piece_stays_with_what_is_near(standing, away, count):
    """Though either touches another piece, so that no way over the surface leads from one to the other."""
    found, triangles = standing
    rest, more = skinned_shapes.cuboid(columns=6, rows=6, length=1.0)
    pieces = [found.rest, *(rest + np.array([x, 0.0, 0.0]) for x in (-1.02, 6.0 + away, 7.02 + away))]
    bones = np.concatenate([found.rest[:, 0] > 4.0, *(np.full(len(rest), bone) for bone in (0, 1, 2))])
    whole = replace(
        found,
        rest=np.concatenate(pieces),
        bones=bones[:, None].astype(np.int32),
        weights=np.ones((len(bones), 1)),
        transforms=found.transforms[:, [0, 1, 0]],
        bone_axes=found.bone_axes[[0, 1, 0]],
    )
    faces = np.concatenate([triangles, *(more + len(found.rest) + number * len(rest) for number in range(3))])
    assert with_separate_parts(whole, faces, 10).bone_count == count


def test_points_are_parts_without_a_size(standing):
    found, triangles = standing
    loose = np.repeat([[0.0, 0.0, 5.0], [6.0, 0.0, 5.0]], 6, axis=0)
    own = np.full((12, 1), 2, np.int32), np.ones((12, 1))
    rest = np.concatenate([found.rest, loose])
    skin = [np.concatenate(pair) for pair in zip((found.bones[:, :1], np.ones((len(found.rest), 1))), own, strict=True)]
    motion, axes = found.transforms[:, [0, 1, 0]], found.bone_axes[[0, 1, 0]]
    given = replace(found, rest=rest, bones=skin[0], weights=skin[1], transforms=motion, bone_axes=axes)
    with np.errstate(all="raise"):
        parted = with_separate_parts(given, triangles, 10)
    assert len(np.unique(parted.bones[-12:])) == 2


def test_without_a_surface_nothing_is_separate(standing):
    found, _ = standing
    assert with_separate_parts(found, np.zeros((0, 3), int), 10) is found
