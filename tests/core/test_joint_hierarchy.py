# SPDX-License-Identifier: GPL-3.0-or-later
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.bone_channels import JointTree, bone_channels, square
from skinning_tools.core.bone_order import depths, parents_first
from skinning_tools.core.bone_placement import place_at_joints, place_bones
from skinning_tools.core.decomposition import BONE_KINDS, Decomposition
from skinning_tools.core.joint_hierarchy import JointHierarchy, carried_along, inverse_motion, rigid_motion
from skinning_tools.core.joint_search import find_joint_hierarchy
from skinning_tools.core.key_reduction import reduce_keys
from tests.core import skinned_shapes
from tests.core.skinned_shapes import NO_TRIANGLES


def arm(frame_count=20, joints=(2.0, 4.0), turn=0.6, seed=0, axis=None):
    """rest, bones, weights and transforms of a bar whose bones each turn about a joint of the one before, the first
    anyhow; ``axis``: about this one only."""
    rest, _ = skinned_shapes.cuboid()
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], joints, reach=0.5)
    random = np.random.default_rng(seed)
    turns = random.normal(size=(frame_count, len(joints) + 1, 3)) * turn
    if axis is not None:
        turns = turns[..., :1] * np.asarray(axis)
    rotations = Rotation.from_rotvec(turns.reshape(-1, 3)).as_matrix().reshape(frame_count, -1, 3, 3)
    transforms = np.empty((frame_count, len(joints) + 1, 3, 4))
    for frame in range(frame_count):
        whole = np.eye(4)
        whole[:3] = np.column_stack([rotations[frame, 0], random.normal(size=3)])
        transforms[frame, 0] = whole[:3]
        for bone, joint in enumerate(joints, start=1):
            whole = whole @ square(skinned_shapes.about(rotations[frame, bone], [joint, 0, 0]))
            transforms[frame, bone] = whole[:3]
    return rest, bones, weights, transforms


def links(hierarchy):
    return {frozenset((bone, int(parent))) for bone, parent in enumerate(hierarchy.parents) if parent >= 0}


def test_the_joints_of_an_arm_are_recovered():
    hierarchy = find_joint_hierarchy(*arm(), NO_TRIANGLES)
    assert links(hierarchy) == {frozenset((0, 1)), frozenset((1, 2))}
    assert hierarchy.parents[1] == -1, "the middle bone is in the middle of the tree"
    np.testing.assert_allclose(hierarchy.joints[[0, 2]], [[2, 0, 0], [4, 0, 0]], atol=0.01)
    np.testing.assert_allclose(hierarchy.slips, 0, atol=2e-3)
    assert depths(hierarchy.parents).tolist() == [1, 0, 1]
    assert hierarchy.descendant_counts().tolist() == [0, 2, 0]
    assert parents_first(hierarchy.parents)[0] == 1


def test_a_surface_without_area():
    """Triangles along a line, as of a wire."""
    rest, *_, transforms = arm()
    rest = np.column_stack([np.linspace(0, 6, len(rest)), np.zeros((len(rest), 2))])
    bones = np.searchsorted([2.0, 4.0], rest[:, :1])
    triangles = np.arange(len(rest) - 2)[:, None] + np.arange(3)
    hierarchy = find_joint_hierarchy(rest, bones, np.ones((len(rest), 1)), transforms, triangles)
    assert links(hierarchy) == {frozenset((0, 1)), frozenset((1, 2))}


def test_legs_hang_from_the_body_and_not_from_each_other():
    """Both turn about one axis, on which they could be joined as well, nearer to their own surface."""
    turn = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    heights = np.linspace(-0.99, 0.99, 30)
    body = np.array([[*(np.sqrt(1 - z * z) * side), z] for z in heights for side in ring])
    legs = [
        np.array([[x + 0.15 * c, 0.15 * s, z] for z in np.linspace(-0.5, -2.5, 20) for c, s in ring])
        for x in (0.3, -0.3)
    ]
    rest = np.concatenate([body, *legs])
    bones = np.stack([np.repeat([0, 1, 2], [len(body), 800, 800]), np.zeros(len(rest), int)], axis=1)
    own = np.where(bones[:, 0] > 0, np.clip(-0.4 - rest[:, 2], 0.6, 1), 1.0)
    swing = 0.6 * np.sin(2 * np.pi * np.arange(20) / 20)
    transforms = np.tile(np.eye(3, 4), (20, 3, 1, 1))
    for frame, angle in enumerate(swing):
        for bone, sign in ((1, 1), (2, -1)):
            turned = Rotation.from_rotvec([sign * angle, 0, 0]).as_matrix()
            transforms[frame, bone] = skinned_shapes.about(turned, [0, 0, -0.5])[:3]
    hierarchy = find_joint_hierarchy(rest, bones, np.stack([own, 1 - own], axis=1), transforms, NO_TRIANGLES)
    assert hierarchy.parents.tolist() == [-1, 0, 0]


def test_a_tail_hangs_from_the_trunk_even_where_it_follows_the_legs():
    """No joint holds it at the trunk, but hung from one leg it would not follow the other."""
    rest, triangles = skinned_shapes.cuboid()
    rest = rest[:, [2, 0, 1]]
    bones = np.where(rest[:, 1] < 3.2, 0, 3)
    aside = (np.abs(rest[:, 0]) > 0.45) & (np.abs(rest[:, 1] - 3.2) < 0.8)
    bones[aside] = np.where(rest[aside, 0] < 0, 1, 2)
    turns = np.random.default_rng(7).normal(scale=0.6, size=(20, 2))
    transforms = np.tile(np.eye(3, 4), (20, 4, 1, 1))
    for frame, (swing, wag) in enumerate(turns):
        leg = skinned_shapes.about(Rotation.from_euler("x", swing).as_matrix(), [0, 2.5, 0])
        tail = skinned_shapes.about(Rotation.from_euler("x", wag).as_matrix(), [0, 3.9, 0])
        transforms[frame, 1:3], transforms[frame, 3] = leg, (square(leg) @ square(tail))[:3]
    hierarchy = find_joint_hierarchy(rest, bones[:, None], np.ones((len(rest), 1)), transforms, triangles)
    assert links(hierarchy) == {frozenset((0, bone)) for bone in (1, 2, 3)}


def test_a_wing_hangs_from_the_middle_of_its_root():
    """A loose piece beside a long body, hinged along its root: any place on that axis holds."""
    body = np.array(
        [[0.5 * np.cos(a), y, 0.5 * np.sin(a)] for y in np.linspace(-3, 3, 40) for a in np.arange(24) / 3.8]
    )
    # Its corner at the front is the nearest to the body.
    wing = np.array([[0.55 + x - 0.01 * y, y, 0.0] for x in np.linspace(0, 3, 20) for y in np.linspace(0.4, 1.6, 9)])
    transforms = np.tile(np.eye(3, 4), (20, 2, 1, 1))
    for frame in range(20):
        turned = Rotation.from_rotvec([0, 0.6 * np.sin(2 * np.pi * frame / 20), 0]).as_matrix()
        transforms[frame, 1] = skinned_shapes.about(turned, [0.55, 0, 0])[:3]
    bones = np.repeat([0, 1], [len(body), len(wing)])[:, None]
    hierarchy = find_joint_hierarchy(
        np.concatenate([body, wing]), bones, np.ones(bones.shape), transforms, NO_TRIANGLES
    )
    assert hierarchy.parents.tolist() in ([-1, 0], [1, -1])
    joint = hierarchy.joints[np.argmax(hierarchy.parents)]
    np.testing.assert_allclose(joint, [0.55, 1.0, 0.0], atol=0.15)


@pytest.mark.parametrize("small", [0, 1])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_limb_hangs_from_the_larger_of_two_bones_that_move_alike(small, side):
    rest, triangles = skinned_shapes.cuboid()
    bones = np.full((len(rest), 1), 1 - small)
    bones[(rest[:, 0] > 2.0) & (side * rest[:, 1] > 0)] = small
    bones[rest[:, 0] > 4.0] = 2
    # Sheared, so that no symmetry decides.
    rest = rest + 0.3 * rest[:, :1] * [0, 1, 0]
    turns = 0.4 * np.random.default_rng(1).normal(size=(20, 3))
    transforms = np.tile(np.eye(3, 4), (20, 3, 1, 1))
    for frame, turn in enumerate(Rotation.from_rotvec(turns).as_matrix()):
        transforms[frame, 2] = skinned_shapes.about(turn, [4.0, 1.2, 0])[:3]
    hierarchy = find_joint_hierarchy(rest, bones, np.ones(bones.shape), transforms, triangles)
    assert frozenset((2, 1 - small)) in links(hierarchy)


def test_a_bone_is_not_drawn_longer_than_what_it_moves():
    rest, bones, weights, transforms = arm()
    hierarchy = find_joint_hierarchy(rest, bones, weights, transforms, NO_TRIANGLES)
    far = replace(hierarchy, joints=hierarchy.joints + np.array([0, 50, 0]))
    plain = place_bones(rest, bones, weights, 3)
    assert np.all(place_at_joints(plain, far, rest, bones, weights).lengths[[0, 2]] <= 2.001 * plain.lengths[[0, 2]])


def test_a_skeleton_is_drawn_from_joint_to_joint_and_to_the_end():
    rest, bones, weights, transforms = arm()
    hierarchy = find_joint_hierarchy(rest, bones, weights, transforms, NO_TRIANGLES)
    placed = place_at_joints(place_bones(rest, bones, weights, 3), hierarchy, rest, bones, weights)
    ends = np.stack([placed.heads, placed.heads + placed.lengths[:, None] * placed.axes[:, :, 1]])
    assert hierarchy.parents.tolist() == [1, -1, 1]
    # The one in the middle, which has no parent, lies between its children; those end where their vertices do.
    np.testing.assert_allclose(np.sort(ends[:, 1, 0]), [2, 4], atol=0.05)
    np.testing.assert_allclose(ends[1, [0, 2], 0], [rest[:, 0].min(), rest[:, 0].max()], atol=0.15)


def test_a_hinge_is_joined_where_its_bones_meet():
    """Along its axis the motion does not determine the joint."""
    hierarchy = find_joint_hierarchy(*arm(axis=(0, 0, 1.0)), NO_TRIANGLES)
    np.testing.assert_allclose(hierarchy.joints[[0, 2]], [[2, 0, 0], [4, 0, 0]], atol=0.01)


def test_size_and_place_do_not_matter():
    rest, bones, weights, transforms = arm()
    plain = find_joint_hierarchy(rest, bones, weights, transforms, NO_TRIANGLES)
    far = np.array([3e4, -1e4, 2e4])
    moved = transforms.copy()
    moved[..., 3] = 1e3 * transforms[..., 3] + far - np.einsum("fpij,j->fpi", transforms[..., :3], far)
    hierarchy = find_joint_hierarchy(1e3 * rest + far, bones, weights, moved, NO_TRIANGLES)
    np.testing.assert_array_equal(hierarchy.parents, plain.parents)
    np.testing.assert_allclose((hierarchy.joints - far) / 1e3, plain.joints, atol=1e-4)
    np.testing.assert_allclose(hierarchy.slips / 1e3, plain.slips, atol=1e-6)


def test_bones_that_fly_apart_are_not_joined():
    random = np.random.default_rng(3)
    rest, bones, weights, transforms = arm()
    transforms[..., 3] += random.normal(size=(*transforms.shape[:2], 3))
    assert np.all(find_joint_hierarchy(rest, bones, weights, transforms, NO_TRIANGLES).parents == -1)


def test_the_skeleton_of_a_person_is_recovered(shared_data):
    """Bones that turn by more than 5 degrees against their parents; the whole hand moves as one, in which any of its
    bones may be the fingers' parent."""
    data = np.load(shared_data("human_rig.npz"))
    weights, bones = data["influence_weights"].astype(float), np.maximum(data["influence_bones"], 0).astype(int)
    weights /= weights.sum(axis=1, keepdims=True)
    transforms, parents, names = data["walk_matrices"].astype(float), data["parents"], data["bone_names"]
    hierarchy = find_joint_hierarchy(data["rest"].astype(float), bones, weights, transforms, NO_TRIANGLES)
    found = links(hierarchy)
    used = np.bincount(bones.ravel(), weights.ravel(), len(parents)) > 0
    diagonal = np.linalg.norm(np.ptp(data["rest"], axis=0))
    checked = 0
    for bone in np.flatnonzero((parents >= 0) & used):
        parent = parents[bone]
        relative = np.swapaxes(transforms[:, parent, :, :3], -1, -2) @ transforms[:, bone, :, :3]
        turn = np.degrees(Rotation.from_matrix(relative).magnitude()).max()
        if not used[parent] or turn < 5 or names[bone].startswith("finger"):
            continue
        checked += 1
        if names[bone] == "neck01":
            continue  # neck01, 02 and 03 turn as one
        assert frozenset((bone, int(parent))) in found, names[bone]
        if hierarchy.parents[bone] == parent:
            assert np.linalg.norm(hierarchy.joints[bone] - data["heads"][bone]) < 0.01 * diagonal, names[bone]
    assert checked > 15


@pytest.mark.parametrize("case", ["one bone", "still", "idle bone", "one vertex", "flat", "shear"])
def test_whatever_there_is(case):
    rest, bones, weights, transforms = arm()
    if case == "one bone":
        bones, weights, transforms = np.zeros_like(bones), weights, transforms[:, :1]
    elif case == "still":
        transforms = np.broadcast_to(np.eye(3, 4), transforms.shape).copy()
    elif case == "idle bone":
        transforms = np.concatenate([transforms, np.zeros_like(transforms[:, :1])], axis=1)
    elif case == "one vertex":
        rest, bones, weights = rest[:1], bones[:1], weights[:1]
    elif case == "flat":
        rest = rest * [1, 1, 0]
        transforms = transforms * np.array([1, 1, 0])[:, None]
    else:
        transforms = transforms + np.random.default_rng(0).normal(size=transforms.shape) * [0.3, 0.3, 0.3, 0.0]
    with np.errstate(all="raise"):
        hierarchy = find_joint_hierarchy(rest, bones, weights, transforms, NO_TRIANGLES)
    bone_count = transforms.shape[1]
    assert hierarchy.parents.shape == (bone_count,)
    assert np.all(np.isfinite(hierarchy.joints))
    assert np.any(hierarchy.parents == -1)
    assert np.all(depths(hierarchy.parents) < bone_count)
    placement = place_at_joints(place_bones(rest, bones, weights, bone_count), hierarchy, rest, bones, weights)
    assert np.all(placement.lengths > 0)
    np.testing.assert_allclose(np.linalg.det(placement.axes), 1, atol=1e-9)
    np.testing.assert_allclose(
        np.swapaxes(placement.axes, 1, 2) @ placement.axes, np.tile(np.eye(3), (bone_count, 1, 1)), atol=1e-9
    )


def test_many_bones_look_at_near_ones_only():
    joints = np.arange(0.05, 5.9, 0.06)
    rest, _, weights, transforms = arm(joints=joints, turn=0.1)
    strongest = np.argsort(-weights, axis=1)[:, :4]
    kept = np.take_along_axis(weights, strongest, axis=1)
    hierarchy = find_joint_hierarchy(rest, strongest, kept / kept.sum(axis=1, keepdims=True), transforms, NO_TRIANGLES)
    assert (hierarchy.parents >= 0).sum() > 0.9 * len(joints)


def test_nearest_rigid_motion_leaves_rigid_ones_alone():
    rest, bones, weights, transforms = arm()
    np.testing.assert_allclose(rigid_motion(transforms, rest, bones, weights), transforms, atol=1e-12)
    whole = square(transforms)
    np.testing.assert_allclose(inverse_motion(whole) @ whole, np.broadcast_to(np.eye(4), whole.shape), atol=1e-12)


def decomposition(kind):
    rest, bones, weights, transforms = arm(frame_count=30, turn=0.2)
    axes = np.tile(np.eye(3), (3, 1, 1))
    random = np.random.default_rng(1)
    times = np.linspace(0, 6, 30)
    stretch = 1 + 0.2 * np.sin(times[:, None, None] + random.normal(size=(3, 3)))
    if kind == "SCALED":
        transforms[..., :3] *= stretch[:, :, None, :]
    elif kind == "AFFINE":
        transforms[..., :3] += 0.1 * np.cos(times)[:, None, None, None] * random.normal(size=(3, 3, 3))
    return Decomposition(rest, transforms, bones, weights, kind, axes, 0.0, 0.0, (), 1)


def joint_tree(result):
    """Hierarchy, bones at rest and joints at rest, all as an armature would have them."""
    hierarchy = find_joint_hierarchy(result.rest, result.bones, result.weights, result.transforms, NO_TRIANGLES)
    own_axes = result.bone_axes if result.bone_kind == "SCALED" else None
    placement = place_bones(result.rest, result.bones, result.weights, 3, own_axes)
    frames = []
    at_joints = place_at_joints(placement, hierarchy, result.rest, result.bones, result.weights)
    for place in (placement, at_joints):
        frames.append(square(np.concatenate([place.axes, place.heads[..., None]], axis=-1)))
    bare = result.bone_kind == "RIGID"
    return frames[1] if bare else frames[0], JointTree(hierarchy, frames[1], bare)


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_channels_on_joints_are_the_same_motion(kind):
    result = decomposition(kind)
    bone_rest, tree = joint_tree(result)
    channels = bone_channels(result, bone_rest, tree)
    np.testing.assert_allclose(channels.object_matrices(bone_rest), result.transforms, atol=1e-11)
    assert (channels.location is None) == (kind == "RIGID")


def test_a_bone_that_turns_about_a_joint_does_not_move_there():
    result = decomposition("RIGID")
    bone_rest, tree = joint_tree(result)
    channels = bone_channels(result, bone_rest, tree)
    linked = tree.hierarchy.parents >= 0
    assert linked.sum() == 2
    assert np.abs(channels.joint_location[:, linked]).max() < 0.02
    assert np.abs(channels.joint_location[:, ~linked]).max() > 1


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_fewer_keys_on_joints_stay_within_the_tolerance(kind):
    """Smooth motion, so that there are keys to leave out; the descendants of a joint move along with it."""
    rest, bones, weights, transforms = arm(frame_count=60, turn=0.0)
    times = np.arange(60.0)
    for bone, joint in enumerate((0.0, 2.0, 4.0)):
        for frame in range(60):
            turn = Rotation.from_rotvec([0, 0, 0.4 * np.sin(times[frame] / 9 + bone)]).as_matrix()
            local = square(skinned_shapes.about(turn, [joint, 0, 0]))
            above = square(transforms[frame, bone - 1]) if bone else np.eye(4)
            transforms[frame, bone] = (above @ local)[:3]
    result = Decomposition(rest, transforms, bones, weights, kind, np.tile(np.eye(3), (3, 1, 1)), 0.0, 0.0, (), 1)
    bone_rest, tree = joint_tree(result)
    channels = bone_channels(result, bone_rest, tree)
    choice = reduce_keys(result, channels, bone_rest, times, 0.02)
    assert len(choice.bones["joint_rotation"][0]) < 30
    reduced = channels.at_keys(choice.bones, times).object_matrices(bone_rest)
    change = np.einsum(
        "nk,fnkij,nj->fni", weights, (reduced - result.transforms)[:, bones], np.c_[rest, np.ones(len(rest))]
    )
    assert np.linalg.norm(change, axis=-1).max() <= 0.02 * (1 + 1e-9)


def test_bones_that_move_exactly_as_their_parents():
    transforms = np.random.default_rng(3).normal(size=(4, 4, 3, 4))
    transforms[:, 2] = transforms[:, 1]
    transforms[:, 3] = transforms[:, 1]
    transforms[2, 3, 0, 0] += 1e-9
    tree = JointHierarchy(np.array([-1, 0, 1, 1]), np.zeros((4, 3)), np.zeros(4))
    np.testing.assert_array_equal(carried_along(transforms, tree), [False, False, True, False])


def test_the_root_is_the_hip_though_the_head_is_large_and_the_arms_are_long():
    random = np.random.default_rng(4)
    joints = np.array([[0, 0, 0.5], [0, 0, 0.3], [-0.4, 0, 0.7], [0.4, 0, 0.7], [-0.1, 0, 0.2], [0.1, 0, 0.2]])
    lengths = np.array([[0, 0, 0.6], [0, 0, 0.2], [-0.9, 0, 0], [0.9, 0, 0], [0, 0, -0.7], [0, 0, -0.7]])
    clouds = np.stack([joint + random.random((60, 1)) * length for joint, length in zip(joints, lengths, strict=True)])
    clouds += 0.05 * random.normal(size=clouds.shape)
    clouds[0, :, :2] *= 3.0
    clouds[:2, 30:] = clouds[:2, :30] * [-1, 1, 1]
    clouds[[3, 5]] = clouds[[2, 4]] * [-1, 1, 1]
    transforms = np.empty((12, 6, 3, 4))
    for frame in range(12):
        # The head and the legs hang from the hip, the arms from the head.
        for bone, parent in ((1, 1), (0, 1), (2, 0), (3, 0), (4, 1), (5, 1)):
            turned = Rotation.from_rotvec(0.5 * random.normal(size=3)).as_matrix()
            moved = square(skinned_shapes.about(turned, joints[bone]))
            transforms[frame, bone] = (moved if bone == parent else square(transforms[frame, parent]) @ moved)[:3]
    skin = np.repeat(np.arange(6), 60)[:, None], np.ones((360, 1))
    tree = find_joint_hierarchy(clouds.reshape(-1, 3), *skin, transforms, NO_TRIANGLES)
    assert tree.parents.tolist() == [1, -1, 0, 0, 1, 1]
