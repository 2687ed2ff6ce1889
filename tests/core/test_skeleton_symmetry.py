# SPDX-License-Identifier: GPL-3.0-or-later
"""Skeletons of symmetric bodies: bones that mirror each other, their joints, axes and names."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.bone_placement import place_at_joints, place_bones
from skinning_tools.core.chain_names import chain_names
from skinning_tools.core.joint_hierarchy import JointHierarchy, hinge_axes, still_joints
from skinning_tools.core.limb_pairs import with_limb_pairs
from skinning_tools.core.skeleton_symmetry import mirror_symmetry, mirrored_bones, symmetric_joints
from tests.core import skinned_shapes
from tests.core.skinned_shapes import NO_TRIANGLES

# A trunk with a head, two arms of two bones each, and something on one side only.
PARENTS = np.array([-1, 0, 0, 2, 0, 4, 0], dtype=np.int32)
PARTNERS = np.array([0, 1, 4, 5, 2, 3, -1])
JOINTS = np.array([[0, 0, 1], [0, 0, 2], [1, 0, 2], [2, 0, 2], [-1, 0, 2], [-2, 0, 2], [0.5, 0, 0]], dtype=float)


def body():
    """Points about each bone, mirrored in x = 0 but for the last bone's; each follows one bone."""
    random = np.random.default_rng(5)
    rest, owners = [], []
    for bone, partner in enumerate(PARTNERS):
        cloud = JOINTS[bone] + [0, 0, 0.4] + 0.1 * random.normal(size=(40, 3)) * [1, 1, 2]
        if partner == bone:
            cloud[20:] = cloud[:20] * [-1, 1, 1]
        elif 0 <= partner < bone:
            cloud = rest[partner] * [-1, 1, 1]
        rest.append(cloud if partner >= 0 else cloud[:6])
        owners.append(np.full(len(rest[-1]), bone))
    owners = np.concatenate(owners)[:, None]
    return np.concatenate(rest), owners, np.ones((len(owners), 1))


def hierarchy(partners=PARTNERS):
    return JointHierarchy(PARENTS, JOINTS, np.zeros(len(PARENTS)), partners, 0.0)


def partners_of(rest, bones, weights, bone_count, triangles=NO_TRIANGLES):
    return mirrored_bones(rest, mirror_symmetry(rest)[1], bones, weights, bone_count, triangles)


def test_bones_find_their_partners():
    np.testing.assert_array_equal(partners_of(*body(), len(PARENTS)), PARTNERS)


@pytest.mark.parametrize("place", [0.0, 7.0])
def test_what_one_hand_holds_moves_no_plane(place):
    rest = body()[0] + [place, 0.0, 0.0]
    sword = np.column_stack([np.linspace(place + 3.0, place + 9.0, 40), np.zeros((40, 2))])
    plane, pairs = mirror_symmetry(np.concatenate([rest, sword]))
    assert plane == pytest.approx(place, abs=1e-9)
    np.testing.assert_array_equal(pairs[: len(rest)], mirror_symmetry(rest)[1])
    assert (pairs[-20:] < 0).all()


def test_a_trunk_with_limbs_of_one_side_is_in_the_middle():
    """As where the right arm and leg stand still: the left hand, which has more vertices, is not its image."""
    rest, triangles = skinned_shapes.cuboid(columns=24, length=6.0)
    rest = rest - [3.0, 0.0, 0.0]
    bones = np.where(rest[:, 0] > 1.0, 1, 0)
    bones[rest[:, 0] > 2.0] = 2
    # The hands have details.
    fine = np.flatnonzero(np.abs(rest[:, 0]) > 2.0)
    random = np.random.default_rng(8)
    more = np.repeat(fine[rest[fine, 0] > 0], 12)
    jitter = 1e-2 * random.normal(size=(len(more), 3))
    left = rest[more] + jitter
    rest = np.concatenate([rest, left, left * [-1, 1, 1]])
    bones = np.concatenate([bones, np.full(len(left), 2), np.zeros(len(left), int)])[:, None]
    weights = np.ones(bones.shape)
    np.testing.assert_array_equal(partners_of(rest, bones, weights, 3, triangles), [0, -1, -1])
    # By their number, vertices would tell otherwise.
    assert partners_of(rest, bones, weights, 3)[0] == 2


def test_versions_of_two_sides_are_partners_though_they_differ():
    rest = skinned_shapes.cuboid(columns=24)[0] - [3.0, 0.0, 0.0]
    bones = np.select([rest[:, 0] < -1.0, rest[:, 0] > 1.9], [1, 2], 0)[:, None]
    np.testing.assert_array_equal(partners_of(rest, bones, np.ones(bones.shape), 3), [0, 2, 1])


def test_partners_are_mutual_however_the_sides_are_triangulated():
    """Quads are cut along the same diagonal on both sides, so that areas of mirrored vertices differ."""
    x, y = (each.ravel().astype(float) for each in np.meshgrid(np.arange(-6, 7), np.arange(7), indexing="ij"))
    rest = np.stack([x, y, 0.3 * np.sin(y)], axis=1)
    index = np.arange(len(rest)).reshape(13, 7)
    corners = index[:-1, :-1].ravel(), index[1:, :-1].ravel(), index[1:, 1:].ravel(), index[:-1, 1:].ravel()
    triangles = np.concatenate([np.stack([corners[i] for i in each], axis=1) for each in ((0, 1, 2), (0, 2, 3))])
    random = np.random.default_rng(104)
    for _ in range(100):
        centers = np.stack([random.uniform(-6, 6, 6), random.uniform(0, 7, 6), np.zeros(6)], axis=1)
        weights = np.exp(-2.0 * np.linalg.norm(rest[:, None] - centers, axis=2))
        weights /= weights.sum(axis=1, keepdims=True)
        partners = partners_of(rest, np.tile(np.arange(6), (len(rest), 1)), weights, 6, triangles)
        found = np.flatnonzero(partners >= 0)
        np.testing.assert_array_equal(partners[partners[found]], found)


def test_a_body_without_symmetry_has_none():
    rest = body()[0]
    rest = rest + 0.5 * np.random.default_rng(1).normal(size=rest.shape)
    assert mirror_symmetry(rest)[1] is None


def test_joints_that_nearly_mirror_each_other_do_so_and_others_stay():
    moved = JOINTS + 0.05 * np.random.default_rng(2).normal(size=JOINTS.shape) + [3.0, 0, 0]
    moved[5] += [0, 5, 0]
    joints = symmetric_joints(moved, PARTNERS, 3.0, 6.0)
    np.testing.assert_allclose(joints[2] - [3, 0, 0], (joints[4] - [3, 0, 0]) * [-1, 1, 1])
    np.testing.assert_allclose(joints[:2, 0], 3.0)
    np.testing.assert_array_equal(joints[[3, 5, 6]], moved[[3, 5, 6]])


def test_bones_are_drawn_as_mirror_images():
    rest, bones, weights = body()
    placement = place_bones(rest, bones, weights, len(PARENTS))
    hinges = np.random.default_rng(3).normal(size=JOINTS.shape)
    placed = place_at_joints(placement, hierarchy(), rest, bones, weights, hinges / np.linalg.norm(hinges))
    np.testing.assert_allclose(placed.heads[4], placed.heads[2] * [-1, 1, 1])
    np.testing.assert_allclose(placed.lengths[[4, 5]], placed.lengths[[2, 3]])
    # As Blender mirrors bones: x points the other way.
    flip = np.array([-1.0, 1.0, 1.0])
    np.testing.assert_allclose(placed.axes[[4, 5]], flip[:, None] * placed.axes[[2, 3]] * flip, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(placed.axes), 1.0)
    np.testing.assert_allclose(placed.axes[[0, 1], 0, 1], 0.0, atol=1e-12)


def test_on_a_regular_grid_the_plane_is_not_half_a_cell_off():
    """There, each vertex has an image but those at the rim."""
    x, z = (each.ravel() for each in np.meshgrid(np.linspace(-1.0, 1.0, 41), np.linspace(0.0, 2.0, 41)))
    pole = np.column_stack([np.full(100, 1.5), np.full(100, 0.3), np.linspace(0.0, 3.0, 100)])
    plane, _ = mirror_symmetry(np.concatenate([np.column_stack([x, 0.0 * x, z]), pole]))
    assert plane == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("hand", [3, 5])
def test_what_one_hand_holds_makes_no_hand_longer(hand):
    """As a sword: the bone of the hand that holds it is drawn as that of the other hand."""
    rest, bones, weights = body()
    empty = place_at_joints(place_bones(rest, bones, weights, 7), hierarchy(), rest, bones, weights)
    sword = np.linspace(JOINTS[hand], JOINTS[hand] + [0, -2, 0.2], 40)
    skin = np.r_[rest, sword], np.r_[bones, np.full((40, 1), hand)], np.r_[weights, np.ones((40, 1))]
    holding = place_at_joints(place_bones(*skin, 7), hierarchy(), *skin)
    np.testing.assert_allclose(holding.lengths[[3, 5]], empty.lengths[[3, 5]])
    np.testing.assert_allclose(holding.axes[[3, 5], :, 1], empty.axes[[3, 5], :, 1], atol=1e-12)


def test_a_root_between_two_limbs_stays_in_the_middle():
    """As of a bat, which has nothing else but wings: turned, it must not swing about one of them."""
    rest, bones, weights = body()
    limbs = [0, 2, 3, 4, 5]
    used = np.isin(bones[:, 0], limbs)
    tree = JointHierarchy(np.array([-1, 0, 1, 0, 3]), JOINTS[limbs], np.zeros(5), np.array([0, 3, 4, 1, 2]), 0.0)
    skin = rest[used], np.searchsorted(limbs, bones[used]), weights[used]
    placed = place_at_joints(place_bones(*skin, 5), tree, *skin)
    np.testing.assert_allclose([placed.heads[0, 0], placed.axes[0, 0, 1]], 0.0, atol=1e-12)
    assert placed.lengths[0] > 0.2
    # What goes on in the middle is where it points, however near.
    joints = np.where((np.arange(7) == 1)[:, None], [0, 0, 1.42], JOINTS)
    skin = body()
    placed = place_at_joints(place_bones(*skin, 7), replace(hierarchy(), joints=joints), *skin)
    np.testing.assert_allclose(placed.heads[0] + placed.lengths[0] * placed.axes[0, :, 1], joints[1], atol=1e-12)


def test_bones_with_joints_that_are_no_mirror_images_reach_their_own_next_joint():
    rest, bones, weights = body()
    joints = JOINTS.copy()
    joints[4] = [-0.5, 0.4, 2]
    tree = JointHierarchy(PARENTS, joints, np.zeros(len(PARENTS)), PARTNERS, 0.0)
    placed = place_at_joints(place_bones(rest, bones, weights, len(PARENTS)), tree, rest, bones, weights)
    tails = placed.heads + placed.lengths[:, None] * placed.axes[:, :, 1]
    np.testing.assert_allclose(tails[[2, 4]], joints[[3, 5]], atol=1e-12)


def test_the_trunk_goes_on_in_the_middle_though_an_arm_has_more_bones():
    assert hierarchy().heirs()[0] == 1
    assert hierarchy(None).heirs()[0] in (2, 4)


def test_a_side_that_carries_the_other_or_the_middle_is_told():
    assert not hierarchy().lopsided.any()
    for carried in (1, 4):
        parents = PARENTS.copy()
        parents[carried] = 2
        tree = replace(hierarchy(), parents=parents)
        assert np.flatnonzero(tree.lopsided).tolist() == [2]
        assert not replace(tree, posed=True).lopsided.any()


def test_a_bone_in_a_limb_that_the_other_side_lacks_is_told():
    assert not hierarchy().unmatched.any()
    parents = PARENTS.copy()
    parents[4] = 6
    tree = replace(hierarchy(), parents=parents)
    assert np.flatnonzero(tree.unmatched).tolist() == [6]
    assert not replace(tree, posed=True).unmatched.any()


def test_names_tell_chain_and_side():
    names = chain_names(hierarchy(), JOINTS)
    assert names == ("trunk.001", "trunk.002", "limb_1.L.001", "limb_1.L.002", "limb_1.R.001", "limb_1.R.002", "part_1")


def test_a_limb_goes_on_as_its_mirror_image_does():
    parents = np.array([*PARENTS[:6], 5, 3], np.int32)
    # Each hand has one more bone, and the right one holds a stick.
    parents, partners = np.append(parents, 5), np.array([0, 1, 4, 5, 2, 3, 7, 6, -1])
    joints = np.concatenate([JOINTS[:6], [[-3, 0, 2], [3, 0, 2], [-2, -1, 2]]])
    tree = JointHierarchy(parents.astype(np.int32), joints, np.zeros(9), partners, 0.0)
    names = chain_names(tree, joints)
    assert (names[7], names[6], names[8]) == ("limb_1.L.003", "limb_1.R.003", "part_1")


def test_a_leg_with_bones_that_the_other_leg_lacks_has_its_names():
    parents = np.array([-1, 0, 0, 1, 2, 4, 5, 6], np.int32)
    partners = np.array([0, 2, 1, 6, -1, -1, 3, -1])
    names = chain_names(
        JointHierarchy(parents, np.zeros((8, 3)), np.zeros(8), partners), -np.arange(24.0).reshape(8, 3)
    )
    assert names[1:4] == ("limb_1.L.001", "limb_1.R.001", "limb_1.L.002")
    assert names[4:] == ("part_1", "part_2", "limb_1.R.002", "limb_1.R.003")


def test_an_arm_that_hangs_from_a_bone_of_its_side_alone_has_a_side():
    parents = np.array([-1, 0, 0, 2, 6, 4, 0], np.int32)
    names = chain_names(JointHierarchy(parents, JOINTS, np.zeros(7), PARTNERS, 0.0), JOINTS)
    assert names[2:] == ("limb_1.L.001", "limb_1.L.002", "limb_1.R.001", "limb_1.R.002", "part_1")


def test_without_symmetry_chains_of_several_bones_are_limbs_and_have_no_sides():
    names = chain_names(hierarchy(None), JOINTS)
    assert len(set(names)) == len(names)
    assert {name.split(".")[0] for name in names} == {"trunk", "limb_1", "limb_2", "part_1", "part_2"}


def test_the_trunk_goes_on_to_the_arms_though_each_leg_has_nearly_as_many_bones():
    trunk, arms, legs = [-1, 0, 1], [2, 3, 2, 5], [0, 7, 8, 9, 10, 0, 12, 13, 14, 15]
    parents = np.array([*trunk, *arms, *legs], np.int32)
    joints = np.zeros((len(parents), 3))
    names = chain_names(JointHierarchy(parents, joints, np.zeros(len(parents))), joints)
    assert names[:3] == ("trunk.001", "trunk.002", "trunk.003")
    assert {name.split(".")[0] for name in names[3:]} == {"limb_1", "limb_2", "limb_3", "limb_4"}


# As much but for rounding is not more.
@pytest.mark.parametrize(("head", "leg"), [(5.0, "limb_1.001"), (3.0 + 1e-9, "trunk.003"), (0.5, "trunk.003")])
def test_the_trunk_does_not_go_on_to_a_leg_beside_a_head_that_carries_more(head, leg):
    parents, joints = np.array([-1, 0, 1, 1, 3, 4], np.int32), np.zeros((6, 3))
    names = chain_names(JointHierarchy(parents, joints, np.zeros(6)), joints, np.array([9.0, 9, head, 1, 1, 1]))
    assert names[3] == leg


def test_of_two_trees_that_mirror_each_other_none_is_the_trunk():
    joints = np.array([[-1.0, 0, 0], [-2, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0, 0]])
    parents, partners = np.array([-1, 0, -1, 2, -1], np.int32), np.array([2, 3, 0, 1, 4])
    names = chain_names(JointHierarchy(parents, joints, np.zeros(5), partners), joints)
    assert names == ("limb_1.R.001", "limb_1.R.002", "limb_1.L.001", "limb_1.L.002", "middle_1")


def posed(turns):
    """The body with both arms turned about their shoulders, as ``turns`` of two vectors say, and leaning as a whole."""
    rest, bones, weights = body()
    joints, lean = JOINTS.copy(), Rotation.from_rotvec([0.4, -0.3, 2.0])
    for shoulder, elbow, turn in ((2, 3, turns[0]), (4, 5, turns[1])):
        turned = Rotation.from_rotvec(turn)
        moved = np.isin(bones[:, 0], (shoulder, elbow))
        rest[moved] = turned.apply(rest[moved] - JOINTS[shoulder]) + JOINTS[shoulder]
        joints[elbow] = turned.apply(JOINTS[elbow] - JOINTS[shoulder]) + JOINTS[shoulder]
    tree = JointHierarchy(PARENTS, lean.apply(joints), np.zeros(len(PARENTS)))
    return tree, lean.apply(rest), bones, weights


def test_limbs_of_a_posed_body_find_their_images_but_no_sides():
    tree, *skin = posed(([0.2, 1.3, 0.5], [-0.9, 0.1, 0.4]))
    paired = with_limb_pairs(tree, *skin)
    assert paired.posed
    np.testing.assert_array_equal(paired.partners, [0, 1, 4, -1, 2, -1, -1])
    names = chain_names(paired, paired.joints)
    assert names == ("trunk.001", "trunk.002", "limb_1.001", "limb_1.002", "limb_2.001", "limb_2.002", "part_1")
    # Nothing is placed in a mirror plane.
    placed = [place_at_joints(place_bones(*skin, 7), each, *skin) for each in (paired, tree)]
    np.testing.assert_array_equal(placed[0].heads[2:], placed[1].heads[2:])


def test_limbs_of_unlike_lengths_and_those_of_symmetric_bodies_stay_as_they_are():
    tree, rest, bones, weights = posed(([0.2, 1.3, 0.5], [-0.9, 0.1, 0.4]))
    shoulder = tree.joints[4]
    shorter = np.where(np.isin(bones, (4, 5)), 0.8 * (rest - shoulder) + shoulder, rest)
    joints = tree.joints.copy()
    joints[5] = 0.8 * (joints[5] - shoulder) + shoulder
    assert with_limb_pairs(replace(tree, joints=joints), shorter, bones, weights).partners is None
    assert with_limb_pairs(hierarchy(), *body()).partners is PARTNERS


def test_a_hinge_gives_the_x_axis_and_a_stiff_joint_none():
    axis = np.array([0.6, 0.8, 0.0])
    tree = JointHierarchy(np.array([-1, 0, 0, 0], np.int32), np.array([[0, 0, 0], *3 * [[0, 0, 1.0]]]), np.zeros(4))
    random = np.random.default_rng(6)
    transforms = np.tile(np.eye(3, 4), (30, 4, 1, 1))
    # On the way into the motion, the hinge turns otherwise.
    lowered = Rotation.from_rotvec([0, 0, 1.5])
    for frame in range(30):
        whole = Rotation.from_rotvec(random.normal(size=3))
        transforms[frame, 0] = skinned_shapes.about(whole.as_matrix(), [0, 0, 0])
        hinged = whole * lowered * Rotation.from_rotvec(axis * random.normal())
        transforms[frame, 1] = skinned_shapes.about(hinged.as_matrix(), [0, 0, 0])
        ball = whole * Rotation.from_rotvec(random.normal(size=3))
        transforms[frame, 2] = skinned_shapes.about(ball.as_matrix(), [0, 0, 0])
        stiff = whole * Rotation.from_rotvec(random.uniform(-0.02, 0.02, 3))
        transforms[frame, 3] = skinned_shapes.about(stiff.as_matrix(), [0, 0, 0])
    axes = hinge_axes(transforms, tree)
    np.testing.assert_allclose(abs(axes[1] @ axis), 1.0)
    np.testing.assert_array_equal(axes[[0, 2, 3]], 0.0)
    np.testing.assert_array_equal(still_joints(transforms, tree), [False, False, False, True])


def test_without_a_hinge_the_bend_gives_the_x_axis():
    """A chain that is bent about the direction of y at rest, and moves about all axes."""
    tree = JointHierarchy(np.array([-1, 0, 1], np.int32), np.array([[0, 0, 0], [0, 0, 0], [0, 0, 2.0]]), np.zeros(3))
    rest = np.concatenate([[[0, 0, -1.0], [0.1, 0, -2]], [[0.1, 0.3, 0.5], [0, 0, 2]], [[1, 0.1, 2], [2, 0, 2]]])
    bones, weights = np.repeat(np.arange(3), 2)[:, None], np.ones((6, 1))
    placed = place_at_joints(place_bones(rest, bones, weights, 3), tree, rest, bones, weights)
    np.testing.assert_allclose(np.abs(placed.axes[1:, 1, 0]), 1.0, atol=0.01)


def test_a_head_with_two_ears_points_to_its_own_end():
    joints = np.array([[0, 0, 0], [0, 0, 1], [0.3, 0, 1.2], [-0.3, 0, 1.2]])
    tree = JointHierarchy(np.array([-1, 0, 1, 1], np.int32), joints, np.zeros(4))
    rest = np.array([[0, 0, 0], [0, 0, 0.5], [0, 0, 1.2], [0, 1, 1], [0.4, 0, 1.5], [-0.4, 0, 1.5]])
    bones, weights = np.array([0, 0, 1, 1, 2, 3])[:, None], np.ones((6, 1))
    placed = place_at_joints(place_bones(rest, bones, weights, 4), tree, rest, bones, weights)
    np.testing.assert_allclose(placed.axes[1, :, 1], [0, 1, 0], atol=0.05)


def test_bones_that_share_less_are_partners_if_none_is_left():
    """The right foot is larger than the left one, at the cost of the right shin."""
    heights = np.linspace(0.05, 0.95, 10)
    rest = np.array([[side, 0, height] for side in (1.0, -1.0) for height in heights])
    cuts = np.where(rest[:, 0] > 0, 0.2, 0.6)
    bones = (2 * (rest[:, 0] < 0) + (rest[:, 2] < cuts)).astype(np.int32)[:, None]
    np.testing.assert_array_equal(partners_of(rest, bones, np.ones((20, 1)), 4), [2, 3, 0, 1])
