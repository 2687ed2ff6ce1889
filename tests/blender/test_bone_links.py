# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones: what the skin keeps, what they follow, and how many a joint gets."""

from itertools import pairwise

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from skinning_tools.blender.helper_bones.records import find_helpers
from skinning_tools.core import quaternions
from skinning_tools.core.binding.links import link_matrices, link_shares, range_of_turns
from skinning_tools.core.rotations import polar_decomposition
from skinning_tools.features.helpers import bone_links
from tests.blender import joint_helper_scenes as limbs
from tests.blender import scenes
from tests.blender.gltf_file import GltfFile
from tests.blender.joint_helper_scenes import add_links, animate, remove_links
from tests.core.binding.twisted_bar import twist_matrices

pytestmark = pytest.mark.usefixtures("extension")


Y = (0, 1, 0)


def degrees_between(first, second) -> float:
    turns = [polar_decomposition(each[..., :3])[0] for each in (first, second)]
    return float(np.degrees(range_of_turns(quaternions.from_matrices(np.swapaxes(turns[0], -1, -2) @ turns[1]))))


def random_pose(rig, seed: int, degrees: float, scale=0.0) -> None:
    """All bones turned anyhow, the last one by ``degrees`` from its parent."""
    random = np.random.default_rng(seed)
    for bone in (rig.pose.bones[name] for name in ("upper.L", "fore.L", "hand.L")):
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion(random.normal(size=4)).normalized()
        bone.scale = np.exp(scale * random.normal(size=3))
    axis = random.normal(size=3)
    rig.pose.bones["hand.L"].rotation_quaternion = Quaternion(axis / np.linalg.norm(axis), np.radians(degrees))
    bpy.context.view_layer.update()


# What the skin keeps


@pytest.mark.parametrize("count", [1, 2, 3])
def test_half_a_turn_keeps_the_cross_section(count):
    """The chapter's figure: cos² of half a step; 0.854 with three links. The joint's middle ring goes to nothing
    without any."""
    ob, rig = limbs.bar(apart=False)
    limbs.pose(rig, fore_L=(Y, 180))
    assert limbs.ring_areas(scenes.evaluated_positions(ob)).min() < 1e-6
    assert add_links("fore.L", count=count) == {"FINISHED"}
    bpy.context.view_layer.update()
    smallest = limbs.ring_areas(scenes.evaluated_positions(ob)).min()
    assert smallest >= np.cos(np.pi / (2 * (count + 1))) ** 2 - 1e-5
    assert count != 3 or smallest >= 0.85


def test_nothing_moves_at_rest():
    ob, _ = limbs.bar(joints=(2.0, 4.0))
    before = scenes.evaluated_positions(ob)
    add_links("fore.L", "hand.L", count=3)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(scenes.evaluated_positions(ob), before, atol=2e-6)


def test_a_forearm_twists_evenly():
    ob, rig = limbs.bar(joints=(1.0, 5.0), reach=0.5, apart=False)
    limbs.pose(rig, hand_L=(Y, 150))
    before = limbs.ring_areas(scenes.evaluated_positions(ob)).min()
    add_links("fore.L", kind="TWIST", count=3)
    bpy.context.view_layer.update()
    points = scenes.evaluated_positions(ob)
    assert before < 0.1
    areas = limbs.ring_areas(points)
    # Between neighbors that are a step of 37.5° apart; at the wrist three bones are blended, over two steps.
    assert areas[16:45].min() > np.cos(np.radians(150 / 8)) ** 2 - 1e-5
    assert areas.min() > np.cos(np.radians(150 / 4)) ** 2
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    line = (np.isclose(rest[:, 1], 0.5) & np.isclose(rest[:, 2], 0.5)).nonzero()[0]
    line = line[np.argsort(rest[line, 0])]
    angles = np.unwrap(np.arctan2(points[line, 2], points[line, 1]))
    x = rest[line, 0]
    inside = (x > 1.6) & (x < 4.4)
    turned = np.degrees(np.abs(angles - angles[0]))[inside]
    # 3 / 4 of the twist along the four units, evenly but for the bends of linear blending.
    np.testing.assert_allclose(turned - turned[0], (x[inside] - x[inside][0]) / 4 * 112.5, atol=3)


def test_links_stand_and_share_as_they_are_told():
    """Along the limb, and across it toward the inside of the bend; in the scene's units."""
    ob, rig = limbs.bar(apart=False)
    ob.scale = rig.scale = (2, 2, 2)
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["fore.L"].tail.z += 0.3
    bpy.ops.object.mode_set(mode="OBJECT")
    before = scenes.evaluated_positions(ob)
    add_links("fore.L", count=3, spread=1.0, across=0.4, bias=0.5, ease=0.2)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(scenes.evaluated_positions(ob), before, atol=2e-6)
    (helper,) = find_helpers(rig)
    assert (helper.start, helper.end, len(helper.others)) == ("upper.L", "fore.L", 3)
    bones = rig.data.bones
    places = np.array([bones[name].head_local for name in helper.skin]) - bones["fore.L"].head_local
    halfway = 0.5 * np.arctan(0.1)
    along, across = np.array([(np.cos(halfway), 0, np.sin(halfway)), (-np.sin(halfway), 0, np.cos(halfway))])
    np.testing.assert_allclose(places @ along, [-0.5, 0, 0.5], atol=1e-6)
    np.testing.assert_allclose(places @ across, [0.2] * 3, atol=1e-6)
    random = np.random.default_rng(0)
    for degrees in (30, 120):
        limbs.pose(rig, upper_L=(random.normal(size=3), 50), fore_L=(random.normal(size=3), degrees))
        parent, child = limbs.moved(rig, "upper.L"), limbs.moved(rig, "fore.L")
        joints = np.array([bones[name].head_local for name in helper.skin])
        expected = link_matrices(parent, child, joints, link_shares(3, 0.5, 0.2))
        np.testing.assert_allclose([limbs.moved(rig, name) for name in helper.skin], expected, atol=5e-5)


def test_twist_bones_share_as_they_are_told():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    add_links("fore.L", kind="TWIST", count=2, bias=-0.6)
    limbs.pose(rig, hand_L=(Y, 100))
    turned = [degrees_between(limbs.moved(rig, "fore.L"), limbs.moved(rig, name)) for name in find_helpers(rig)[0].skin]
    np.testing.assert_allclose(turned, 100 * link_shares(2, -0.6), atol=0.02)


def test_reach_blends_rigid_weights_again():
    ob, rig = limbs.bar(joints=(3.05,), reach=1e-3, apart=False)
    with pytest.raises(RuntimeError, match="no weights to take"):
        add_links("fore.L", count=3)
    assert not find_helpers(rig)
    add_links("fore.L", count=3, reach=1.0)
    limbs.pose(rig, fore_L=(Y, 180))
    assert limbs.ring_areas(scenes.evaluated_positions(ob)).min() >= 0.85


# What they follow


@pytest.mark.parametrize("degrees", [0, 1, 60, 150, 179])
@pytest.mark.parametrize("scale", [0.0, 0.2])
@pytest.mark.parametrize("mirrored", [1, -1])
def test_links_are_where_the_core_has_them(degrees, scale, mirrored):
    _, rig = limbs.bar(joints=(2.0, 4.0))
    rig.scale *= mirrored
    add_links("hand.L", count=3)
    names = find_helpers(rig)[0].skin
    joint = np.array(rig.data.bones["hand.L"].head_local)
    for seed in range(5):
        random_pose(rig, seed, degrees, scale)
        expected = link_matrices(limbs.moved(rig, "fore.L"), limbs.moved(rig, "hand.L"), joint, link_shares(3))
        found = np.array([limbs.moved(rig, name) for name in names])
        assert degrees_between(found, expected) < 0.01
        # Below 1.6° Blender does not normalize the blended quaternion: up to 5e-5 of the joint's distance from the
        # origin, here 4. The stretch it finds in single precision.
        np.testing.assert_allclose(found, expected, atol=1e-3 if scale else 2e-4)


def test_all_links_go_the_same_way_round_at_half_a_turn():
    """Which of the two ways is up to rounding: but of one joint to one rounding."""
    _, rig = limbs.bar()
    add_links("fore.L", count=3)
    names = find_helpers(rig)[0].skin
    for seed in range(10):
        random = np.random.default_rng(seed)
        axis = random.normal(size=3)
        limbs.pose(rig, upper_L=(random.normal(size=3), 77), fore_L=(axis / np.linalg.norm(axis), 180))
        chain = [limbs.moved(rig, name) for name in ("upper.L", *names, "fore.L")]
        for first, second in pairwise(chain):
            assert degrees_between(first, second) == pytest.approx(45, abs=0.05)


@pytest.mark.parametrize("inherit", [True, False])
@pytest.mark.parametrize("mirrored", [1, -1])
def test_twist_bones_are_where_the_core_has_them(inherit, mirrored):
    ob, rig = limbs.bar(joints=(2.0, 4.0), apart=mirrored > 0)
    for each in (ob, rig):
        each.scale.x = mirrored
    rig.data.bones["hand.L"].use_inherit_rotation = inherit
    add_links("fore.L", kind="TWIST", count=3)
    names = find_helpers(rig)[0].skin
    head = np.array(rig.data.bones["fore.L"].head_local)
    axis = np.array(rig.data.bones["fore.L"].matrix_local)[:3, 1]
    for seed in range(10):
        random_pose(rig, seed, 20 + 13 * seed)
        bone, end = limbs.moved(rig, "fore.L"), limbs.moved(rig, "hand.L")
        expected = twist_matrices(bone, end, head, axis, link_shares(3))
        found = np.array([limbs.moved(rig, name) for name in names])
        assert degrees_between(found, expected) < 0.02
        np.testing.assert_allclose(found, expected, atol=5e-5)


def test_twist_bones_all_go_the_same_way_round_at_half_a_turn():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    add_links("fore.L", kind="TWIST", count=3)
    names = find_helpers(rig)[0].skin
    for seed in range(10):
        limbs.pose(rig, fore_L=(np.random.default_rng(seed).normal(size=3), 50), hand_L=(Y, 180))
        chain = [limbs.moved(rig, name) for name in ("fore.L", *names, "hand.L")]
        for first, second in pairwise(chain):
            assert degrees_between(first, second) == pytest.approx(45, abs=0.05)


def test_links_follow_what_constraints_make_of_a_disconnected_child():
    """The joint is moved by IK, or by a constraint that moves it away."""
    _, rig = limbs.bar(joints=(2.0, 4.0))
    bpy.ops.object.mode_set(mode="EDIT")
    hand = rig.data.edit_bones["hand.L"]
    hand.use_connect, hand.head = False, (4.2, 0.1, 0.0)
    bpy.ops.object.mode_set(mode="OBJECT")
    target = scenes.link(bpy.data.objects.new("Target", None))
    target.matrix_world.translation = rig.matrix_world @ rig.data.bones["hand.L"].head_local
    target.location.z += 2
    bpy.context.view_layer.objects.active = rig
    ik = rig.pose.bones["hand.L"].constraints.new("IK")
    ik.target, ik.chain_count = target, 3
    add_links("fore.L", "hand.L", count=2)
    bpy.context.view_layer.update()
    for helper in find_helpers(rig):
        parent, child = limbs.moved(rig, helper.start), limbs.moved(rig, helper.end)
        assert degrees_between(parent, child) > 5
        joint = np.array(rig.data.bones[helper.end].head_local)
        expected = link_matrices(parent, child, joint, link_shares(2))
        np.testing.assert_allclose([limbs.moved(rig, name) for name in helper.skin], expected, atol=2e-5)


# How many


def test_the_number_from_limits():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    limit = rig.pose.bones["fore.L"].constraints.new("LIMIT_ROTATION")
    limit.owner_space = "LOCAL"
    limit.use_limit_x = limit.use_limit_y = limit.use_limit_z = True
    limit.min_x, limit.max_x = np.radians(-10), np.radians(130)
    hand = rig.pose.bones["hand.L"]
    hand.use_ik_limit_x, hand.ik_min_x, hand.ik_max_x = True, np.radians(-70), np.radians(50)
    hand.lock_ik_y = hand.lock_ik_z = True
    add_links("fore.L", "hand.L")
    assert {helper.end: len(helper.skin) for helper in find_helpers(rig)} == {"fore.L": 3, "hand.L": 2}


def test_the_number_from_the_twist_between_limits():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    hand = rig.pose.bones["hand.L"]
    hand.use_ik_limit_y, hand.ik_min_y, hand.ik_max_y = True, np.radians(-55), np.radians(50)
    add_links("fore.L", kind="TWIST")
    assert len(find_helpers(rig)[0].skin) == 2


def test_the_number_from_all_actions():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    animate(rig, "fore.L", 130)
    rig.animation_data.action.use_fake_user = True
    rig.animation_data.action = None
    animate(rig, "hand.L", 40)
    present = rig.animation_data.action
    bpy.context.scene.frame_set(7)
    before = scenes.ui_state()
    with pytest.raises(RuntimeError, match=r"60° \(hand\.L 40°\)"):
        add_links("hand.L")
    add_links(all_joints=True)
    assert {helper.end: len(helper.skin) for helper in find_helpers(rig)} == {"fore.L": 3}
    assert scenes.ui_state() == before
    assert (len(bpy.data.actions), rig.animation_data.action) == (2, present)
    remove_links(all_joints=True)
    add_links("fore.L", "hand.L", threshold=np.radians(19), most=4)
    assert {helper.end: len(helper.skin) for helper in find_helpers(rig)} == {"fore.L": 4, "hand.L": 3}


def test_the_twist_of_the_action():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    hand = rig.pose.bones["hand.L"]
    hand.rotation_mode = "QUATERNION"
    for frame, turn in ((1, Quaternion()), (5, Quaternion((0, 0, 1), 1.2) @ Quaternion(Y, np.radians(100)))):
        hand.rotation_quaternion = turn
        hand.keyframe_insert("rotation_quaternion", frame=frame)
    add_links("fore.L", kind="TWIST")
    assert len(find_helpers(rig)[0].skin) == 2


def test_a_joint_of_unknown_range_gets_the_most_links():
    _, rig = limbs.bar()
    add_links("fore.L")
    assert len(find_helpers(rig)[0].skin) == 3
    remove_links("fore.L")
    with pytest.raises(RuntimeError, match="No joint moves through more than 60°"):
        add_links(all_joints=True)


@pytest.mark.parametrize("scale", [(-1, 1, 1), (2, 2, -2)])
def test_characters_with_a_scale(scale):
    """Mesh and armature with one that is not applied; the reach is the scene's."""
    ob, rig = limbs.bar(apart=False)
    for each in (ob, rig):
        each.scale = scale
    add_links("fore.L", count=3, reach=1.5)
    limbs.pose(rig, fore_L=(Y, 180))
    assert limbs.ring_areas(scenes.evaluated_positions(ob)).min() >= 0.85
    assert len(find_helpers(rig)[0].skin) == 3


def test_further_notes_for_the_user():
    ob, rig = limbs.bar()
    ob.data["skinning_eigenskin"] = {"vertex_count": 1}
    for each in (ob, rig):
        each.scale = (1, 2, 1)
    bpy.context.view_layer.update()
    added, _ = scenes.drain(bone_links.add_links(bpy.context, rig, joints="fore.L"))
    assert "EigenSkin of Bar" in added.summary()
    assert "scaled unevenly" in added.summary()


# Without the extension


def test_plays_without_the_extension_and_with_scripts_off(tmp_path):
    ob, rig = limbs.bar(joints=(2.0, 4.0))
    add_links("fore.L", count=3)
    add_links("fore.L", kind="TWIST", count=2)
    animate(rig, "fore.L", 140)
    animate(rig, "hand.L", 90)
    bpy.context.scene.frame_set(7)
    expected = scenes.evaluated_positions(ob)
    path, output = tmp_path / "linked.blend", tmp_path / "points.npy"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    limbs.play_elsewhere(path, "Bar", output)
    np.testing.assert_array_equal(np.load(output), expected)


def test_survives_export(tmp_path):
    if not hasattr(bpy.ops.export_scene, "gltf"):
        pytest.skip("this Blender has no glTF export")
    ob, rig = limbs.bar()
    ob.matrix_world.identity()
    rig.matrix_world.identity()
    ob.parent = rig
    add_links("fore.L", count=3)
    limbs.pose(rig, fore_L=(Y, 150))
    points = scenes.evaluated_positions(ob)
    bpy.ops.export_scene.gltf(
        filepath=str(tmp_path / "bar.glb"),
        export_yup=False,
        export_current_frame=True,
        export_rest_position_armature=False,
    )
    file = GltfFile.read(tmp_path / "bar.glb")
    attributes = file.vertices()
    matrices = file.joint_matrices()
    rest = np.column_stack([attributes["POSITION"], np.ones(len(attributes["POSITION"]))])
    weights = attributes["WEIGHTS_0"].astype(np.float64)
    found = np.einsum("nk,nkij,nj->ni", weights, matrices[attributes["JOINTS_0"]], rest)[:, :3]
    assert len(matrices) >= 5
    distance = np.linalg.norm(found[:, None] - points[None, ::7], axis=-1).min(axis=0)
    assert distance.max() < 1e-5
