# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones: what the skin keeps, what they follow, and that nothing stays when they are removed."""

from itertools import pairwise, permutations

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from skinning_tools.core import quaternions
from skinning_tools.core.binding.links import largest_turn, link_matrices, link_shares, twist_matrices
from skinning_tools.core.deform.polar import polar_decomposition
from skinning_tools.scene import bone_links, joint_helper_rig
from skinning_tools.scene.bone_selection import selectable, selected_bones
from skinning_tools.scene.joint_helper_rig import COLLECTION, find_helpers, helper_name
from skinning_tools.scene.joint_helper_weights import read_columns
from tests.blender import joint_helper_scenes as limbs
from tests.blender import scenes, skinned_meshes
from tests.blender.gltf_file import GltfFile

pytestmark = pytest.mark.usefixtures("extension")

Y = (0, 1, 0)


def add(*joints, **given):
    return bpy.ops.skinning.add_bone_links(joints=",".join(joints), **given)


def remove(*joints, **given):
    return bpy.ops.skinning.remove_bone_links(joints=",".join(joints), **given)


def degrees_between(first, second) -> float:
    turns = [polar_decomposition(each[..., :3])[0] for each in (first, second)]
    return float(np.degrees(largest_turn(quaternions.from_matrices(np.swapaxes(turns[0], -1, -2) @ turns[1]))))


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
    assert add("fore.L", count=count) == {"FINISHED"}
    bpy.context.view_layer.update()
    smallest = limbs.ring_areas(scenes.evaluated_positions(ob)).min()
    assert smallest >= np.cos(np.pi / (2 * (count + 1))) ** 2 - 1e-5
    assert count != 3 or smallest >= 0.85


def test_nothing_moves_at_rest():
    ob, _ = limbs.bar(joints=(2.0, 4.0))
    before = scenes.evaluated_positions(ob)
    add("fore.L", "hand.L", count=3)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(scenes.evaluated_positions(ob), before, atol=2e-6)


def test_a_forearm_twists_evenly():
    ob, rig = limbs.bar(joints=(1.0, 5.0), reach=0.5, apart=False)
    limbs.pose(rig, hand_L=(Y, 150))
    before = limbs.ring_areas(scenes.evaluated_positions(ob)).min()
    add("fore.L", kind="TWIST", count=3)
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


def test_reach_blends_rigid_weights_anew():
    ob, rig = limbs.bar(joints=(3.05,), reach=1e-3, apart=False)
    with pytest.raises(RuntimeError, match="nothing to take"):
        add("fore.L", count=3)
    assert not find_helpers(rig)
    add("fore.L", count=3, reach=1.0)
    limbs.pose(rig, fore_L=(Y, 180))
    assert limbs.ring_areas(scenes.evaluated_positions(ob)).min() >= 0.85


# What they follow


@pytest.mark.parametrize("degrees", [0, 1, 60, 150, 179])
@pytest.mark.parametrize("scale", [0.0, 0.2])
@pytest.mark.parametrize("mirrored", [1, -1])
def test_links_are_where_the_core_has_them(degrees, scale, mirrored):
    _, rig = limbs.bar(joints=(2.0, 4.0))
    rig.scale *= mirrored
    add("hand.L", count=3)
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
    add("fore.L", count=3)
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
    add("fore.L", kind="TWIST", count=3)
    names = find_helpers(rig)[0].skin
    head = np.array(rig.data.bones["fore.L"].head_local)
    axis = np.array(rig.data.bones["fore.L"].matrix_local)[:3, 1]
    for seed in range(10):
        random_pose(rig, seed, 20 + 13 * seed)
        bone, end = limbs.moved(rig, "fore.L"), limbs.moved(rig, "hand.L")
        expected = twist_matrices(bone, end, head, axis, link_shares(3))
        found = np.array([limbs.moved(rig, name) for name in names])
        assert degrees_between(found, expected) < 0.02
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_twist_bones_all_go_the_same_way_round_at_half_a_turn():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    add("fore.L", kind="TWIST", count=3)
    names = find_helpers(rig)[0].skin
    for seed in range(10):
        limbs.pose(rig, fore_L=(np.random.default_rng(seed).normal(size=3), 50), hand_L=(Y, 180))
        chain = [limbs.moved(rig, name) for name in ("fore.L", *names, "hand.L")]
        for first, second in pairwise(chain):
            assert degrees_between(first, second) == pytest.approx(45, abs=0.05)


def test_links_follow_what_constraints_make_of_a_disconnected_child():
    """By IK, and by a constraint that moves it away."""
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
    add("fore.L", "hand.L", count=2)
    bpy.context.view_layer.update()
    for helper in find_helpers(rig):
        parent, child = limbs.moved(rig, helper.start), limbs.moved(rig, helper.end)
        assert degrees_between(parent, child) > 5
        joint = np.array(rig.data.bones[helper.end].head_local)
        expected = link_matrices(parent, child, joint, link_shares(2))
        np.testing.assert_allclose([limbs.moved(rig, name) for name in helper.skin], expected, atol=1e-4)


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
    add("fore.L", "hand.L")
    assert {helper.end: len(helper.skin) for helper in find_helpers(rig)} == {"fore.L": 2, "hand.L": 1}


def animate(rig, name: str, degrees: float) -> None:
    bone = rig.pose.bones[name]
    bone.rotation_mode = "XYZ"
    for frame, angle in ((1, 0), (10, degrees), (20, 0)):
        bone.rotation_euler = (np.radians(angle), 0, 0)
        bone.keyframe_insert("rotation_euler", frame=frame)


def test_the_number_from_the_action():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    animate(rig, "fore.L", 130)
    animate(rig, "hand.L", 40)
    bpy.context.scene.frame_set(7)
    before = scenes.ui_state()
    with pytest.raises(RuntimeError, match=r"60° \(hand\.L 40°\)"):
        add("hand.L")
    add(all_joints=True)
    assert {helper.end: len(helper.skin) for helper in find_helpers(rig)} == {"fore.L": 2}
    assert scenes.ui_state() == before
    assert len(bpy.data.actions) == 1
    remove(all_joints=True)
    add("fore.L", "hand.L", threshold=np.radians(30), most=2)
    assert {helper.end: len(helper.skin) for helper in find_helpers(rig)} == {"fore.L": 2, "hand.L": 1}


def test_the_twist_of_the_action():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    hand = rig.pose.bones["hand.L"]
    hand.rotation_mode = "QUATERNION"
    for frame, turn in ((1, Quaternion()), (5, Quaternion((0, 0, 1), 1.2) @ Quaternion(Y, np.radians(100)))):
        hand.rotation_quaternion = turn
        hand.keyframe_insert("rotation_quaternion", frame=frame)
    add("fore.L", kind="TWIST")
    assert len(find_helpers(rig)[0].skin) == 2


def test_a_joint_of_which_nothing_is_known_gets_most():
    _, rig = limbs.bar()
    add("fore.L")
    assert len(find_helpers(rig)[0].skin) == 3
    remove("fore.L")
    with pytest.raises(RuntimeError, match="No joint turns by more than 60°"):
        add(all_joints=True)


# What is left


def painter_mode(rig, ob) -> None:
    """The mesh in Weight Paint, its armature in Pose Mode."""
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="WEIGHT_PAINT")


def pose_mode(rig, ob) -> None:
    bpy.ops.object.mode_set(mode="POSE")
    rig.data.bones.active = rig.data.bones["fore.L"]
    ob.vertex_groups.active_index = 0


def mesh_active(rig, ob) -> None:
    bpy.context.view_layer.objects.active = ob


def hidden_armature(rig, ob) -> None:
    bpy.context.view_layer.objects.active = ob
    rig.hide_viewport = True


@pytest.mark.parametrize("arranged", [painter_mode, pose_mode, mesh_active, hidden_armature])
def test_removing_leaves_nothing(arranged):
    ob, rig = limbs.bar(joints=(2.0, 4.0))
    rig.data.use_mirror_x = True
    ob.vertex_groups.new(name="Mask").add([3, 5], 0.0, "REPLACE")
    ob.vertex_groups["fore.L"].add([0], 0.0, "REPLACE")
    animate(rig, "fore.L", 100)
    arranged(rig, ob)
    before = limbs.state(rig, [ob])
    add("fore.L", "hand.L")
    during = limbs.state(rig, [ob])
    assert [each[:4] for each in during["bones"][:3]] == [each[:4] for each in before["bones"]]
    assert during["pose"][:3] == before["pose"]
    for same in ("place", "mode", "active bone", "data-blocks"):
        assert during[same] == before[same]
    assert during["meshes"][0]["active"] == before["meshes"][0]["active"]
    helper_bones = [name for helper in find_helpers(rig) for name in helper.bones]
    collection = rig.data.collections_all[COLLECTION]
    assert sorted(bone.name for bone in collection.bones) == sorted(helper_bones)
    assert not collection.is_visible
    for name in helper_bones:
        assert all(rig.pose.bones[name].lock_location)
        assert [each.name for each in rig.data.bones[name].collections] == [COLLECTION]
    remove(all_joints=True)
    assert limbs.state(rig, [ob]) == before


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_several_helpers_of_the_same_bones_go_in_any_order(order):
    """Links of two joints, or links and twist bones, and two bulges that take weights of the same bones."""
    ob, rig = limbs.bar(joints=(2.0, 3.2))
    ob.vertex_groups.new(name="Mask").add([5], 0.5, "REPLACE")
    before = limbs.state(rig, [ob])
    add("fore.L", count=2)
    if order[0] % 2:
        add("fore.L", kind="TWIST", count=3)
    else:
        add("hand.L", count=3)
    bpy.ops.skinning.add_bulge_bone(bone="fore.L", preset="CUSTOM", radius=2.0)
    bpy.ops.skinning.add_bulge_bone(bone="upper.L", preset="BELLY", radius=2.0)
    made = find_helpers(rig)
    assert len(made) == 4
    for index in order:
        remaining = limbs.mesh_state(ob)
        take_away(made[index])
        assert limbs.mesh_state(ob) != remaining
    assert limbs.state(rig, [ob]) == before


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_rows_that_are_full_give_way_and_come_back(order):
    """Four bones a vertex, with weights that do not sum to 1, and bulges that need a place among them."""
    ob, rig = skinned_meshes.rigged_tube(influences=4)
    bones = rig.data.bones.keys()
    before = limbs.state(rig, [ob])
    bpy.ops.skinning.add_bulge_bone(bone="Bone 1", preset="BELLY", radius=2.0, along_surface=False)
    add("Bone 2", count=2, reach=1.0)
    bpy.ops.skinning.add_bulge_bone(bone="Bone 2", preset="BELLY", radius=2.0, along_surface=False)
    made = find_helpers(rig)
    columns = read_columns(ob, [*bones, *(name for helper in made for name in helper.skin)])
    assert (columns > 0).sum(axis=0).max() == 4
    for index in order:
        take_away(made[index])
    assert limbs.state(rig, [ob]) == before


def take_away(helper) -> None:
    if helper.kind == "BULGE":
        bpy.ops.skinning.remove_bulge_bone(bones=helper.skin[0])
    else:
        remove(helper.skin[0])


def test_painted_weights_go_to_the_bones_beside():
    ob, rig = limbs.bar()
    before = read_columns(ob, ["upper.L", "fore.L"])
    add("fore.L", count=3)
    names = find_helpers(rig)[0].skin
    middle = next(vertex.index for vertex in ob.data.vertices if abs(vertex.co.x - 3) < 1e-6)
    for name in (*names, "upper.L", "fore.L"):
        ob.vertex_groups[name].remove([middle])
    ob.vertex_groups[names[0]].add([middle], 0.8, "REPLACE")
    ob.vertex_groups[names[2]].add([middle], 0.2, "REPLACE")
    remove("fore.L")
    after = read_columns(ob, ["upper.L", "fore.L"])
    np.testing.assert_allclose(after[:, middle], [0.8 * 0.75 + 0.2 * 0.25, 0.8 * 0.25 + 0.2 * 0.75], atol=1e-6)
    others = np.arange(after.shape[1]) != middle
    np.testing.assert_array_equal(after[:, others], before[:, others])
    assert len(ob.vertex_groups) == 2
    assert not [each.name for each in ob.data.attributes if "skinning" in each.name]


def test_edited_meshes_and_renamed_bones_get_their_weights_back():
    ob, rig = limbs.bar()
    before = read_columns(ob, ["upper.L", "fore.L"])
    add("fore.L", count=3)
    rig.data.bones["fore.L"].name = "Forearm"
    rig.data.bones["fore_link_2.L"].name = "Elbow"
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="DESELECT")
    bpy.ops.object.mode_set(mode="OBJECT")
    for vertex in ob.data.vertices[:48]:
        vertex.select = True
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.delete(type="VERT")
    bpy.ops.object.mode_set(mode="OBJECT")
    remove("Forearm")
    assert [group.name for group in ob.vertex_groups] == ["upper.L", "Forearm"]
    np.testing.assert_array_equal(read_columns(ob, ["upper.L", "Forearm"]), before[:, 48:])
    assert len(rig.data.bones) == 2
    assert "skinning_helpers" not in ob.data


def test_bones_that_were_parented_to_links_stay():
    _, rig = limbs.bar()
    add("fore.L", count=1)
    bpy.ops.object.mode_set(mode="EDIT")
    bone = rig.data.edit_bones.new("Tassel")
    bone.head, bone.tail, bone.parent = (3, 0, 0), (3, 0, 1), rig.data.edit_bones["fore_link.L"]
    bpy.ops.object.mode_set(mode="OBJECT")
    remove("fore.L")
    assert rig.data.bones["Tassel"].parent.name == "upper.L"


# All meshes


def test_all_meshes_of_the_armature_share_their_weights():
    ob, _rig = limbs.bar()
    other = ob.copy()
    other.data = ob.data.copy()
    twin = other.copy()
    for each in (other, twin):
        bpy.context.scene.collection.objects.link(each)
    other.hide_viewport = True
    other.scale = (1, 2, -0.5)
    before = [limbs.mesh_state(each) for each in (ob, other)]
    add("fore.L", count=3)
    assert "fore_link_2.L" in other.vertex_groups
    np.testing.assert_array_equal(*(read_columns(each, ["fore_link_2.L"]) for each in (ob, other)))
    # One of the two was read before the scale; without Reach this is no matter.
    remove("fore.L")
    assert [limbs.mesh_state(each) for each in (ob, other)] == before


def test_weights_that_do_not_sum_to_one():
    """Less than 1 stays so, more is brought to 1, and both come back."""
    ob, _rig = limbs.bar()
    columns = read_columns(ob, ["upper.L", "fore.L"])
    for slot, name in enumerate(("upper.L", "fore.L")):
        for vertex in range(0, columns.shape[1], 2):
            weight = float(columns[slot, vertex])
            if weight > 0:
                ob.vertex_groups[name].add([vertex], min(1.0, weight * (0.5 if vertex % 4 else 1.9)), "REPLACE")
    ob.vertex_groups.new(name="Mask").add(list(range(100)), 0.5, "REPLACE")
    before = limbs.mesh_state(ob)
    was = scenes.evaluated_positions(ob)
    add("fore.L", count=3)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(scenes.evaluated_positions(ob), was, atol=2e-6)
    remove("fore.L")
    assert limbs.mesh_state(ob) == before


@pytest.mark.parametrize("fails", ["constrain_links", "link_specs"])
def test_a_failure_leaves_nothing(fails, monkeypatch):
    ob, rig = limbs.bar()
    before = limbs.state(rig, [ob])

    def fail(*_):
        raise ZeroDivisionError("as a test")

    monkeypatch.setattr(bone_links, fails, fail)
    with pytest.raises(RuntimeError, match="fault of its own"):
        add("fore.L", count=2)
    assert limbs.state(rig, [ob]) == before


def test_mode_and_selection_stay_where_bones_cannot_be_made():
    _ob, rig = limbs.bar()
    bpy.ops.object.mode_set(mode="POSE")
    selectable(rig)["fore.L"].select, selectable(rig)["upper.L"].select = True, False
    spec = joint_helper_rig.BoneSpec("link", "gone", rig.data.bones["fore.L"].matrix_local, 1.0, None)
    with pytest.raises(KeyError):
        joint_helper_rig.add_bones(bpy.context, rig, [spec])
    assert rig.mode == "POSE"
    assert selected_bones(rig) == ["fore.L"]


def test_a_cancelled_job_leaves_nothing():
    ob, rig = limbs.bar()
    animate(rig, "fore.L", 100)
    before = limbs.state(rig, [ob])
    # While weights are read, and at some of the twenty frames.
    for stop in (1, 3, 15):
        steps = bone_links.add_links(bpy.context, rig, ["fore.L"], bone_links.LinkSettings())
        for _ in range(stop):
            next(steps)
        steps.close()
        assert limbs.state(rig, [ob]) == before


@pytest.mark.parametrize("scale", [(-1, 1, 1), (2, 2, -2)])
def test_characters_with_a_scale(scale):
    """Mesh and armature with one that is not applied; the reach is the scene's."""
    ob, rig = limbs.bar(apart=False)
    for each in (ob, rig):
        each.scale = scale
    add("fore.L", count=3, reach=1.5)
    limbs.pose(rig, fore_L=(Y, 180))
    assert limbs.ring_areas(scenes.evaluated_positions(ob)).min() >= 0.85
    assert len(find_helpers(rig)[0].skin) == 3


def test_what_the_user_should_know_besides():
    ob, rig = limbs.bar()
    ob.data["skinning_eigenskin"] = {"vertex_count": 1}
    for each in (ob, rig):
        each.scale = (1, 2, 1)
    bpy.context.view_layer.update()
    added, _ = scenes.drain(bone_links.add_links(bpy.context, rig, ["fore.L"], bone_links.LinkSettings()))
    assert "EigenSkin of Bar" in added.summary()
    assert "scaled unevenly" in added.summary()


# What is refused, before anything is changed


def refused(match: str, *joints, **given) -> None:
    objects = [ob for ob in bpy.data.objects if ob.type == "MESH"]
    rigs = [ob for ob in bpy.data.objects if ob.type == "ARMATURE"]
    before = [limbs.state(rig, objects) for rig in rigs]
    with pytest.raises(RuntimeError, match=match):
        add(*joints, **given)
    assert [limbs.state(rig, objects) for rig in rigs] == before


def test_bones_without_a_joint_are_refused():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    refused("no bone", "elbow")
    refused("no parent that deforms", "upper.L")
    refused("at its end", "hand.L", kind="TWIST")
    rig.data.bones["hand.L"].use_deform = False
    refused("does not deform", "hand.L")
    add("fore.L", count=1)
    refused("already", "fore.L")
    refused("already", "upper.L", kind="TWIST")
    refused("helper bone itself", "fore_link.L")
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    refused("Select the child bones")
    with pytest.raises(RuntimeError, match="None of the bones"):
        remove("hand.L")


def test_selected_bones_and_the_other_side():
    ob, rig = limbs.bar()
    bpy.ops.object.mode_set(mode="POSE")
    for owner in rig.pose.bones if hasattr(rig.pose.bones[0], "select") else rig.data.bones:
        owner.select = owner.name == "fore.L"
    add(count=1, mirror=True)
    assert [helper.end for helper in find_helpers(rig)] == ["fore.L"]
    bpy.context.view_layer.objects.active = ob
    remove()
    assert not find_helpers(rig)


@pytest.mark.parametrize(
    ("given", "match"), [({"threshold": 0.0}, "threshold"), ({"most": 0}, "Most"), ({"count": -1}, "Count")]
)
def test_wrong_settings_are_refused(given, match):
    limbs.bar()
    refused(match, "fore.L", **given)


def test_locked_groups_are_refused_by_name():
    ob, rig = limbs.bar(joints=(2.0, 4.0))
    ob.vertex_groups["fore.L"].lock_weight = True
    refused(r'locked.*"fore\.L" of object "Bar"', "fore.L", count=2)
    ob.vertex_groups["fore.L"].lock_weight = False
    ob.vertex_groups["hand.L"].lock_weight = True
    hand = read_columns(ob, ["hand.L"])
    add("fore.L", count=2)
    np.testing.assert_array_equal(read_columns(ob, ["hand.L"]), hand)
    ob.vertex_groups[find_helpers(rig)[0].skin[0]].lock_weight = True
    with pytest.raises(RuntimeError, match=r'locked.*"fore_link_1\.L"'):
        remove("fore.L")
    assert len(find_helpers(rig)) == 1


def test_armatures_that_cannot_be_changed_are_refused(tmp_path):
    _ob, rig = limbs.bar()
    other = rig.copy()
    bpy.context.scene.collection.objects.link(other)
    refused("also those of", "fore.L")
    bpy.data.objects.remove(other)
    path = tmp_path / "rig.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    for override, match in ((False, "linked from another file"), (True, "library override")):
        scenes.empty_scene()
        with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
            wanted.objects = ["Bar", "Bar rig"]
        rig = scenes.link(bpy.data.objects["Bar rig"])
        scenes.link(bpy.data.objects["Bar"])
        if override:
            rig = rig.override_create(remap_local_usages=True)
        bpy.context.view_layer.objects.active = rig
        with pytest.raises(RuntimeError, match=match):
            add("fore.L")


def test_linked_meshes_are_refused(tmp_path):
    ob, rig = limbs.bar()
    path = tmp_path / "mesh.blend"
    bpy.data.libraries.write(str(path), {ob.data})
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.meshes = [ob.data.name]
    ob.data = wanted.meshes[0]
    bpy.context.view_layer.objects.active = rig
    refused("linked from another file", "fore.L", count=2)


def test_modes_and_meshes_that_cannot_be_used():
    ob, rig = limbs.bar()
    bpy.ops.object.mode_set(mode="EDIT")
    with pytest.raises(RuntimeError, match="Edit Mode"):
        add("fore.L")
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    with pytest.raises(RuntimeError, match="Edit Mode"):
        add("fore.L", count=2)
    bpy.ops.object.mode_set(mode="OBJECT")
    ob.vertex_groups.clear()
    refused("no weights", "fore.L", count=2)
    ob.modifiers.clear()
    bpy.context.view_layer.objects.active = rig
    refused("deforms no mesh", "fore.L", count=2)
    scenes.empty_scene()
    with pytest.raises(RuntimeError, match="no active armature"):
        add("fore.L")
    limbs.bar()
    with pytest.raises(RuntimeError, match="has no bone links"):
        remove(all_joints=True)


# Names


@pytest.mark.parametrize(
    "name",
    ["forearm.L", "forearm_r", "L_forearm", "handLeft", "Left hand", "arm.L.001", "spine", "Arm L", "l-arm", "x" * 63],
)
def test_names_keep_their_side(name):
    made = helper_name(name, "link_1")
    assert "_link_1" in made
    assert len(made.encode()) <= 63
    assert bpy.utils.flip_name(made) == helper_name(bpy.utils.flip_name(name), "link_1")


def test_names_that_are_taken():
    ob, rig = limbs.bar()
    ob.vertex_groups.new(name="fore_link_2.L")
    add("fore.L", count=2)
    assert find_helpers(rig)[0].skin == ("fore_link2_1.L", "fore_link2_2.L")


# Without the extension


def test_plays_without_the_extension_and_with_scripts_off(tmp_path):
    ob, rig = limbs.bar(joints=(2.0, 4.0))
    add("fore.L", count=3)
    add("fore.L", kind="TWIST", count=2)
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
    add("fore.L", count=3)
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
    assert distance.max() < 1e-4
