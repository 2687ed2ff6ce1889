# SPDX-License-Identifier: GPL-3.0-or-later
"""What an animation moves on one side of a symmetric body only gets bones on the other side, too."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.decomposition import Decomposition
from skinning_tools.core.decomposition.still_sides import with_still_sides
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.joint_hierarchy import JointHierarchy
from skinning_tools.core.skeleton_symmetry import mirror_symmetry, mirrored_bones
from skinning_tools.core.strongest import strongest_first
from tests.core import skinned_shapes

FRAMES, JOINTS = 8, (1.2, 2.2)


@pytest.fixture(scope="module")
def waving():
    """A bar, symmetric about its middle, x = 0, of which one end bends at two joints."""
    rest = skinned_shapes.cuboid()[0] - [3.0, 0.0, 0.0]
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], JOINTS, reach=0.4)
    motion = np.tile(np.eye(4), (FRAMES, 3, 1, 1))
    turns = Rotation.from_rotvec(np.random.default_rng(3).normal(scale=0.5, size=(FRAMES * 2, 3))).as_matrix()
    for frame in range(FRAMES):
        for bone in (1, 2):
            motion[frame, bone, :3] = skinned_shapes.about(turns[2 * frame + bone - 1], [JOINTS[bone - 1], 0, 0])
            motion[frame, bone] = motion[frame, bone - 1] @ motion[frame, bone]
    # Most vertices have fewer influences than there are slots.
    bones, weights = strongest_first(bones, weights, 2)
    found = Decomposition(
        rest, motion[..., :3, :], bones, weights, "RIGID", np.tile(np.eye(3), (3, 1, 1)), 0.0, 0.0, (0.0,), 3
    )
    joints = np.array([[0.0, 0, 0], *([x, 0, 0] for x in JOINTS)])
    partners = mirrored_bones(rest, mirror_symmetry(rest)[1], bones, weights, 3, skinned_shapes.NO_TRIANGLES)
    np.testing.assert_array_equal(partners, [0, -1, -1])
    return found, JointHierarchy(np.array([-1, 0, 1], np.int32), joints, np.zeros(3), partners, 0.0)


def test_the_other_side_has_mirrored_bones(waving):
    found, hierarchy = waving
    whole, skeleton = with_still_sides(found, hierarchy, 10)
    assert (found.bone_count, whole.bone_count) == (3, 5)
    np.testing.assert_array_equal(skeleton.partners[skeleton.partners], np.arange(5))
    linked = np.flatnonzero(skeleton.parents >= 0)
    np.testing.assert_array_equal(
        skeleton.parents[skeleton.partners[linked]], skeleton.partners[skeleton.parents[linked]]
    )
    np.testing.assert_allclose(
        skeleton.joints[3:], skeleton.joints[skeleton.partners[3:]] * [-1, 1, 1] + [2.0 * skeleton.plane, 0, 0]
    )
    assert not skeleton.unmatched.any()


def test_weights_are_mirrored_and_what_is_seen_is_the_same(waving):
    found, hierarchy = waving
    whole, skeleton = with_still_sides(found, hierarchy, 10)
    for frame in range(0, len(found.transforms), 3):
        given = found.rest, found.bones, found.weights, found.transforms[frame]
        np.testing.assert_allclose(
            skin_frame(whole.rest, whole.bones, whole.weights, whole.transforms[frame]), skin_frame(*given), atol=1e-12
        )
    weights, images = skinned_shapes.dense(whole.bones, whole.weights, 5), mirror_symmetry(found.rest)[1]
    np.testing.assert_allclose(weights[:, skeleton.partners], weights[images], atol=1e-12)


def test_vertices_without_a_partner_go_with_those_around_them(waving):
    """As what is held in one hand only."""
    found, hierarchy = waving
    more = found.rest[np.argmin(found.rest[:, 0])] + [[-0.4, 0.1, 0.2], [-0.3, 0.3, 0.0]]
    bones = np.concatenate([found.bones, np.zeros((2, 2), np.int32)])
    weights = np.concatenate([found.weights, [[1.0, 0.0], [1.0, 0.0]]])
    more = replace(found, rest=np.concatenate([found.rest, more]), bones=bones, weights=weights)
    whole, skeleton = with_still_sides(more, hierarchy, 10)
    np.testing.assert_array_equal(whole.bones[-2:, 0], skeleton.partners[2])


@pytest.mark.parametrize("most", [3, 4])
def test_no_more_bones_than_allowed(waving, most):
    """The first of them hangs from the body."""
    whole, skeleton = with_still_sides(*waving, most)
    assert whole.bone_count == len(skeleton.parents) == most
    np.testing.assert_array_equal(skeleton.parents[3:], [0][: most - 3])


def test_a_vertex_without_a_free_slot_follows_the_strongest(waving):
    found, hierarchy = waving
    narrow = replace(found, bones=found.bones[:, :1], weights=np.ones((len(found.rest), 1)))
    whole, _ = with_still_sides(narrow, hierarchy, 10)
    assert whole.bones.shape == narrow.bones.shape
    np.testing.assert_array_equal(whole.weights, 1.0)
    assert len(np.unique(whole.bones)) == 5
    moved = (skin_frame(each.rest, each.bones, each.weights, each.transforms[3]) for each in (whole, narrow))
    np.testing.assert_array_equal(*moved)


def test_what_mirrors_the_children_hangs_from_the_image(waving):
    """A forearm was found on both sides, and what is between it and the body on one side only."""
    both, _ = with_still_sides(*waving, 10)
    found = replace(both, bones=np.array([0, 1, 2, 0, 3])[both.bones], transforms=both.transforms[:, [0, 1, 2, 4]])
    found = replace(found, bone_axes=both.bone_axes[:4])
    joints = np.array([[0.0, 0, 0], *([x, 0, 0] for x in JOINTS), [-JOINTS[1], 0, 0]])
    hierarchy = JointHierarchy(np.array([-1, 0, 1, 0]), joints, np.zeros(4), np.array([0, -1, 3, 2]), 0.0)
    whole, skeleton = with_still_sides(found, hierarchy, 10)
    np.testing.assert_array_equal(skeleton.parents, [-1, 0, 1, 4, 0])
    np.testing.assert_array_equal(skeleton.partners, [0, 4, 3, 2, 1])
    moved = (skin_frame(each.rest, each.bones, each.weights, each.transforms[3]) for each in (whole, found))
    np.testing.assert_allclose(*moved, atol=1e-12)


def test_bodies_that_are_not_symmetric_stay(waving):
    found, hierarchy = waving
    for given in (replace(hierarchy, partners=None), replace(hierarchy, posed=True)):
        assert with_still_sides(found, given, 10) == (found, given)
    rest = found.rest + 0.3 * np.random.default_rng(1).normal(size=found.rest.shape)
    crooked = replace(found, rest=rest)
    assert with_still_sides(crooked, hierarchy, 10) == (crooked, hierarchy)


def test_bones_that_do_not_turn_are_not_mirrored(waving):
    """They may be leftovers."""
    found, hierarchy = waving
    still = replace(found, transforms=found.transforms[:, [0, 1, 1]])
    whole, skeleton = with_still_sides(still, hierarchy, 10)
    assert whole.bone_count == 4
    np.testing.assert_array_equal(skeleton.partners, [0, 3, -1, 1])
