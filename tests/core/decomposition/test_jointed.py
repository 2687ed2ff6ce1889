# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bones that only rotate about their joints."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.animation import Animation
from skinning_tools.core.binding.influence_rows import padded_influences
from skinning_tools.core.decomposition import Settings, decompose
from skinning_tools.core.decomposition.idle_influences import LOSS
from skinning_tools.core.decomposition.jointed import solve_jointed
from skinning_tools.core.decomposition.posable import solve_posable
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import Cancelled
from skinning_tools.core.joint_search import find_joint_hierarchy
from skinning_tools.core.strongest import strongest_bones
from tests.core import skinned_shapes

JOINTS = np.array([2.0, 4.0])
SETTINGS = Settings(bone_count=3, bone_kind="RIGID")


def bending_bar(frames=14):
    """A bar of three parts that turn about the joints in all directions, blended over a short way."""
    rest, triangles = skinned_shapes.cuboid()
    bones, weights = skinned_shapes.chain_weights(rest[:, 0], JOINTS, reach=0.4)
    random = np.random.default_rng(7)
    positions = []
    for frame in range(frames):
        whole, placed = np.eye(4), np.zeros_like(rest)
        for bone in range(3):
            turn = 0.0 if frame == 0 else 0.5
            turned = Rotation.from_rotvec(turn * random.normal(size=3)).as_matrix()
            joint = [0.0, 0, 0] if bone == 0 else [JOINTS[bone - 1], 0, 0]
            whole = whole @ np.vstack([skinned_shapes.about(turned, joint), [0, 0, 0, 1]])
            own = np.where(bones == bone, weights, 0.0).sum(axis=1, keepdims=True)
            placed += own * (rest @ whole[:3, :3].T + whole[:3, 3])
        positions.append(placed)
    return Animation(np.array(positions, np.float32), triangles)


def free_solve(animation, settings=SETTINGS):
    found = decompose(animation, settings)
    return found, find_joint_hierarchy(found.rest, found.bones, found.weights, found.transforms, animation.triangles)


@pytest.fixture(scope="module")
def solved():
    animation = bending_bar()
    found, hierarchy = free_solve(animation)
    # Joints that are wrong by a twentieth of the bar find their way back.
    moved = replace(hierarchy, joints=hierarchy.joints + np.array([0.3, 0.1, -0.1]))
    return animation, found, solve_jointed(animation, found, moved, SETTINGS)


def test_no_joint_slips(solved):
    _, _, (result, hierarchy) = solved
    assert (hierarchy.parents >= 0).sum() == 2
    assert (hierarchy.slips == 0).all()
    for bone in np.flatnonzero(hierarchy.parents >= 0):
        both = result.transforms[:, [bone, hierarchy.parents[bone]]] @ np.append(hierarchy.joints[bone], 1.0)
        np.testing.assert_allclose(both[:, 0], both[:, 1], atol=1e-9)
    turns = result.transforms[..., :3]
    np.testing.assert_allclose(turns @ np.swapaxes(turns, -1, -2), np.broadcast_to(np.eye(3), turns.shape), atol=1e-9)


def test_the_joints_are_found(solved):
    _, _, (_, hierarchy) = solved
    places = hierarchy.joints[hierarchy.parents >= 0]
    np.testing.assert_allclose(places[np.argsort(places[:, 0])], [[2, 0, 0], [4, 0, 0]], atol=0.05)


def test_a_skinned_skeleton_loses_little(solved):
    _, found, (result, _) = solved
    assert result.e_rms < found.e_rms + 1.0
    np.testing.assert_allclose(result.weights.sum(axis=1), 1.0)


def test_joints_may_slip_within_a_tolerance(solved):
    # The far end slides along the bar, by a twelfth of it at most.
    animation, found, _ = solved
    slide = 0.5 * np.sin(np.arange(len(animation.frames)))
    moved = animation.frames.copy()
    far = animation.frames[0, :, 0] > 4.5
    moved[:, far, 0] += slide[:, None].astype(np.float32)
    sliding, tree = Animation(moved, animation.triangles), free_solve(animation)[1]
    settings = replace(SETTINGS, iterations=1)
    errors = []
    for slip in (0.0, 0.02):
        result, jointed = solve_jointed(sliding, found, tree, settings, slip=slip)
        errors.append(result.e_rms)
        size = np.linalg.norm(np.ptp(result.rest, axis=0))
        for bone in np.flatnonzero(jointed.parents >= 0):
            both = result.transforms[:, [bone, jointed.parents[bone]]] @ np.append(jointed.joints[bone], 1.0)
            assert np.linalg.norm(both[:, 0] - both[:, 1], axis=1).max() <= slip * size + 1e-9
        assert jointed.held == (slip == 0)
    assert errors[1] < 0.9 * errors[0]


def test_joints_slip_by_a_share_of_the_rest_pose_that_is_found():
    # Noise, from which the rest pose shrinks while the bones leave their joints.
    frames = bending_bar(frames=4).frames[:, ::6]
    frames = frames + np.random.default_rng(0).normal(scale=0.3, size=frames.shape).astype(np.float32)
    animation, settings = Animation(frames, np.zeros((0, 3), np.int32)), replace(SETTINGS, iterations=1)
    found, hierarchy = free_solve(animation, settings)
    tree = replace(hierarchy, parents=np.array([1, -1, 1], np.int32), slips=np.zeros(3), partners=None)
    result, jointed = solve_jointed(animation, found, tree, settings, slip=0.05)
    size = np.linalg.norm(np.ptp(result.rest, axis=0))
    for bone in (0, 2):
        both = result.transforms[:, [bone, 1]] @ np.append(jointed.joints[bone], 1.0)
        assert np.linalg.norm(both[:, 0] - both[:, 1], axis=1).max() <= 0.05 * size + 1e-9


def in_order(found):
    """The three bones along the bar."""
    return np.argsort([found.rest[found.bones[:, 0] == bone, 0].mean() for bone in range(3)])


def blended(found, vertices, first, second):
    """``found`` with the two bones for some of its vertices, the first by 0.8."""
    bones, weights = found.bones.copy(), found.weights.copy()
    bones[vertices], weights[vertices] = first, 0.0
    bones[vertices, 1], weights[vertices, :2] = second, [0.8, 0.2]
    return replace(found, bones=bones, weights=weights)


def test_turning_a_bone_leaves_other_parts_alone():
    # The near end has stray weights of the far one, which moves like it.
    animation = bending_bar(frames=5)
    found, hierarchy = free_solve(animation)
    order, near = in_order(found), found.rest[:, 0] < 1.0
    stray = blended(found, near, order[0], order[2])
    size = np.linalg.norm(np.ptp(found.rest, axis=0))
    for solve in (solve_posable, solve_jointed):
        result, tree = solve(animation, stray, hierarchy, SETTINGS)
        last = np.where(result.bones == order[2], result.weights, 0.0).sum(axis=1)
        turned = 2 * np.sin(np.pi / 8) * last * np.linalg.norm(result.rest - tree.joints[order[2]], axis=1)
        assert turned[near].max() <= 0.02 * size
        np.testing.assert_allclose(result.weights.sum(axis=1), 1.0)


def test_a_skeleton_without_foreign_weights_loses_idle_influences_alone():
    animation = bending_bar(frames=5)
    found, hierarchy = free_solve(animation)
    result, tree = solve_posable(animation, found, hierarchy, SETTINGS)
    np.testing.assert_allclose(result.transforms, found.transforms, atol=1e-12)
    np.testing.assert_allclose(tree.slips, hierarchy.slips, atol=1e-12)
    assert (result.weights > 0).sum() < (found.weights > 0).sum()
    assert result.e_rms <= np.sqrt(1.0 + LOSS) * found.e_rms
    alone = replace(found, bones=found.bones[:, :1], weights=np.ones((len(found.rest), 1)))
    assert solve_posable(animation, alone, hierarchy, SETTINGS)[0] is alone


def test_vertices_within_the_limits_are_fitted_again_with_those_beyond():
    animation = bending_bar(frames=5)
    found, hierarchy = free_solve(animation)
    order, places = in_order(found), found.rest[:, 0]
    worse = blended(found, (places > 2.5) & (places < 3.5), order[1], order[0])
    worse = blended(worse, places < 1.0, order[0], order[2])
    for smoothness in (0.0, 0.2):
        result, tree = solve_posable(animation, worse, hierarchy, replace(SETTINGS, smoothness=smoothness))
        assert result.e_rms < 1.0 + found.e_rms
        np.testing.assert_array_equal(tree.joints, hierarchy.joints)


def test_shapes_and_smooth_weights_are_of_the_jointed_bones():
    animation = bending_bar(frames=5)
    settings = replace(SETTINGS, iterations=3)
    given = animation, *free_solve(animation, settings)
    plain = solve_jointed(*given, settings)[0]
    shaped = solve_jointed(*given, replace(settings, residual_shapes=2, smoothness=0.3))[0]
    assert len(shaped.residual.shapes) == 2
    assert shaped.e_rms <= plain.e_rms + 0.5


def test_an_idle_bone_at_the_end_of_a_chain_is_left_out():
    animation = bending_bar(frames=5)
    settings = replace(SETTINGS, iterations=3)
    found, hierarchy = free_solve(animation, settings)
    idle = found.transforms[:, :1]
    more = replace(found, transforms=np.concatenate([found.transforms, idle], axis=1))
    more = replace(more, bone_axes=np.tile(np.eye(3), (4, 1, 1)))
    tree = replace(
        hierarchy,
        parents=np.append(hierarchy.parents, 0).astype(np.int32),
        joints=np.vstack([hierarchy.joints, [[0, 0, 0]]]),
        slips=np.append(hierarchy.slips, 0.1),
        partners=None,
    )
    result, left = solve_jointed(animation, more, tree, settings)
    assert result.bone_count == len(left.parents) == 3
    assert result.bones.max() == 2


@pytest.mark.parametrize("both_idle", [True, False])
def test_an_idle_bone_is_left_out_only_together_with_its_mirror_image(both_idle):
    animation = bending_bar(frames=5)
    settings = replace(SETTINGS, iterations=3)
    found, hierarchy = free_solve(animation, settings)
    near, trunk, far = in_order(found)
    idle = [3, 4] if both_idle else [3]
    # Their turns are nothing that a vertex would follow.
    strange = np.zeros((5, len(idle), 3, 4))
    turns = np.random.default_rng(8).normal(size=(5 * len(idle), 3))
    strange[..., :3] = Rotation.from_rotvec(2.0 * turns).as_matrix().reshape(5, len(idle), 3, 3)
    more = replace(
        found,
        transforms=np.concatenate([found.transforms, strange], axis=1),
        bone_axes=np.tile(np.eye(3), (3 + len(idle), 1, 1)),
    )
    partners = np.full(3 + len(idle), -1)
    partners[trunk] = trunk
    for one, other in ((near, far), (3, 4)) if both_idle else ((3, far),):
        partners[[one, other]] = other, one
    places = [[3.4, 0, 0], [2.6, 0, 0]][: len(idle)]
    tree = replace(
        hierarchy,
        parents=np.append(hierarchy.parents, [trunk] * len(idle)).astype(np.int32),
        joints=np.vstack([hierarchy.joints, places]),
        slips=np.append(hierarchy.slips, [0.1] * len(idle)),
        partners=partners,
        plane=3.0,
    )
    left = solve_jointed(animation, more, tree, settings)[1]
    assert len(left.parents) == (3 if both_idle else 4)


def test_a_bone_that_is_no_vertex_s_strongest_stays_where_it_is_needed():
    # The far half follows the near one a little more than the bone that it alone has.
    rest, triangles = skinned_shapes.cuboid()
    joint = np.array([3.0, 0, 0])
    far = rest[:, 0] > joint[0]
    bones, weights = np.tile([0, 1], (len(rest), 1)), np.where(far[:, None], [0.55, 0.45], [1.0, 0.0])
    motion = np.tile(np.eye(3, 4), (8, 2, 1, 1))
    for frame, turn in enumerate(np.random.default_rng(5).normal(size=(8, 3))):
        motion[frame, 1] = skinned_shapes.about(Rotation.from_rotvec(1.5 * turn).as_matrix(), joint)
    frames = np.array([skin_frame(rest, bones, weights, each) for each in motion])
    animation, settings = Animation(frames.astype(np.float32), triangles), replace(SETTINGS, bone_count=2, iterations=3)
    found, hierarchy = free_solve(animation, settings)
    found = replace(found, rest=rest, transforms=motion, bones=bones, weights=weights)
    tree = replace(hierarchy, parents=np.array([-1, 0]), joints=np.array([0 * joint, joint]), partners=None)
    result, _ = solve_jointed(animation, found, tree, settings)
    assert result.bone_count == 2
    assert result.e_rms < 0.1


def test_vertices_that_stand_still_at_one_place_hang_from_no_joint():
    # As those without weights in a rig whose bones all move.
    animation = bending_bar(frames=10)
    still = np.tile(np.float32([3.0, 0.0, 1.5]), (10, 4, 1))
    turned = Rotation.from_rotvec(0.1 * np.arange(10)[:, None] * [0, 0, 1.0]).as_matrix()
    moved = animation.frames @ np.swapaxes(turned, -1, -2) + np.linspace(0, 2, 10)[:, None, None]
    animation = Animation(np.concatenate([moved, still], axis=1).astype(np.float32), animation.triangles)
    settings = Settings(4, "RIGID", iterations=5)
    found, hierarchy = free_solve(animation, settings)
    assert (hierarchy.parents >= 0).sum() == 3, "the search links what is near"
    result, held = solve_jointed(animation, found, hierarchy, settings)
    assert (held.parents >= 0).sum() == 2
    made = np.array([skin_frame(result.rest, result.bones, result.weights, each) for each in result.transforms])
    np.testing.assert_allclose(made[:, -4:], still, atol=0.02)


def test_a_bone_of_one_vertex_keeps_its_joint():
    animation = bending_bar(frames=5)
    settings = replace(SETTINGS, iterations=3)
    found, hierarchy = free_solve(animation, settings)
    assert (hierarchy.slips > 0).sum() == 2
    tip = next(bone for bone in range(3) if bone not in hierarchy.parents)
    bones, weights = found.bones.copy(), found.weights.copy()
    bones[bones == tip] = hierarchy.parents[tip]
    last = np.where(found.bones == tip, found.weights, 0.0).max(axis=1).argmax()
    bones[last], weights[last] = tip, np.eye(weights.shape[1])[0]
    _, held = solve_jointed(animation, replace(found, bones=bones, weights=weights), hierarchy, settings)
    assert (held.parents >= 0).sum() == 2


def test_fewer_bones_than_influences():
    # Pruning keeps the slots of the weights, and leaves as many bones as there are parts.
    animation = bending_bar(frames=5)
    settings = replace(SETTINGS, iterations=3)
    found, hierarchy = free_solve(animation, settings)
    slots = padded_influences(found.bones, found.weights, 5)
    wide = replace(found, bones=slots[0], weights=slots[1])
    narrow = solve_jointed(animation, found, hierarchy, settings)[0]
    result = solve_jointed(animation, wide, hierarchy, replace(settings, max_influences=5))[0]
    assert result.bones.shape == result.weights.shape == wide.bones.shape
    assert result.e_rms == pytest.approx(narrow.e_rms, rel=1e-9)
    np.testing.assert_allclose(result.weights.sum(axis=1), 1.0)


def test_a_bone_without_vertices_among_bones_that_carry_none():
    animation = bending_bar(frames=5)
    settings = replace(SETTINGS, iterations=1)
    found, hierarchy = free_solve(animation, settings)
    root = int(np.flatnonzero(hierarchy.parents < 0)[0])
    alone = replace(found, bones=np.full_like(found.bones[:, :1], root), weights=np.ones((len(found.rest), 1)))
    result, left = solve_jointed(animation, alone, hierarchy, settings)
    assert np.isfinite(result.transforms).all()
    assert np.isfinite(left.joints).all()


def test_a_root_that_mirrors_its_child_does_not_draw_its_joint_aside():
    # Two parts of a bar of about the same length: the bar is symmetric, and the parts are partners.
    rest, triangles = skinned_shapes.cuboid()
    rest = rest * [1.0, 0.5, 0.5]
    turns = Rotation.from_rotvec(0.5 * np.random.default_rng(3).normal(size=(6, 3)) * np.arange(6)[:, None] / 6)
    turned = (rest - [2.2, 0, 0]) @ np.swapaxes(turns.as_matrix(), -1, -2) + [2.2, 0, 0]
    animation = Animation(np.where(rest[:, :1] > 2.2, turned, rest).astype(np.float32), triangles)
    settings = Settings(2, "RIGID", iterations=5)
    found, hierarchy = free_solve(animation, settings)
    np.testing.assert_array_equal(hierarchy.partners, [1, 0])
    result, _ = solve_jointed(animation, found, hierarchy, settings)
    assert result.e_rms < 0.1


def test_hips_do_not_cross():
    bar, triangles = skinned_shapes.cuboid(8, 4, 2.0)
    trunk, leg = bar - [1.0, 0, 0], bar[:, [1, 2, 0]] * [0.8, 0.8, -1.0] - [0, 0, 0.5]
    aside = np.array([0.6, 0, 0])
    rest = np.concatenate([trunk, leg - aside, leg + aside])
    part = np.repeat([0, 1, 2], len(bar))
    frames = np.repeat(rest[None], 10, axis=0)
    # Each leg turns about a place that is beyond the middle.
    for side, turn in ((1, [0.5, 0.2, 0.4]), (2, [0.5, -0.2, -0.4])):
        for frame, angle in enumerate(np.sin(np.arange(10.0))):
            turned = Rotation.from_rotvec(angle * np.roll(turn, frame)).as_matrix()
            step = skinned_shapes.about(turned, [0.15 if side == 1 else -0.15, 0, -0.5])
            frames[frame, part == side] = rest[part == side] @ step[:3, :3].T + step[:3, 3]
    triangles = np.concatenate([triangles + start * len(bar) for start in range(3)])
    animation = Animation(frames.astype(np.float32), triangles)
    found, hierarchy = free_solve(animation)
    bones = [int(np.bincount(strongest_bones(found.bones, found.weights)[part == each]).argmax()) for each in range(3)]
    joints, parents, partners = np.zeros((3, 3)), np.full(3, bones[0], np.int32), np.empty(3, int)
    joints[bones], partners[bones] = [[0, 0, 0], [-0.15, 0, -0.5], [0.15, 0, -0.5]], [bones[each] for each in (0, 2, 1)]
    parents[bones[0]] = -1
    given = replace(hierarchy, parents=parents, joints=joints, slips=np.zeros(3), partners=partners, plane=0.0)
    solved = solve_jointed(animation, found, given, SETTINGS)[1].joints[bones, 0]
    assert solved[1] < -0.07
    assert solved[2] > 0.07


def test_important_vertices_are_closer():
    # Two bones for three parts.
    animation = bending_bar(frames=6)
    settings = Settings(2, "RIGID", iterations=5)
    given = animation, *free_solve(animation, settings), settings
    chosen = animation.frames[0, :, 0] > 5.0
    errors = []
    for importance in (None, np.ones(len(chosen)), np.where(chosen, 10.0, 1.0)):
        result = solve_jointed(*given, importance=importance)[0]
        made = np.array([skin_frame(result.rest, result.bones, result.weights, each) for each in result.transforms])
        errors.append(np.square(made - animation.frames)[:, chosen].mean())
    assert errors[0] == errors[1]
    assert errors[2] < 0.8 * errors[0]


def test_it_can_be_cancelled():
    animation = bending_bar(frames=5)
    with pytest.raises(Cancelled):
        solve_jointed(animation, *free_solve(animation, replace(SETTINGS, iterations=1)), SETTINGS, lambda *_: False)
