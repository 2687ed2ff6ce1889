# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones that are removed again, in any order and after edits: nothing stays."""

from itertools import permutations
from operator import itemgetter

import bpy
import numpy as np
import pytest

from skinning_tools.blender.armatures import NewBone, add_bones, edit_bones_of
from skinning_tools.blender.bone_selection import selectable, selected_bones
from skinning_tools.blender.helper_bones.bones import OF_JOINTS_COLLECTION
from skinning_tools.blender.helper_bones.records import find_helpers
from skinning_tools.blender.vertex_groups import read_columns
from skinning_tools.features.helpers import bone_links
from tests.blender import joint_helper_scenes as limbs
from tests.blender import scenes, skinned_meshes
from tests.blender.joint_helper_scenes import add_links, animate, remove_links

pytestmark = pytest.mark.usefixtures("extension")


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
    add_links("fore.L", "hand.L")
    during = limbs.state(rig, [ob])
    assert [each[:4] for each in during["bones"][:3]] == [each[:4] for each in before["bones"]]
    assert during["pose"][:3] == before["pose"]
    for same in ("place", "mode", "active bone", "data-blocks"):
        assert during[same] == before[same]
    assert during["meshes"][0]["active"] == before["meshes"][0]["active"]
    helper_bones = [name for helper in find_helpers(rig) for name in helper.bones]
    collection = rig.data.collections_all[OF_JOINTS_COLLECTION]
    assert sorted(bone.name for bone in collection.bones) == sorted(helper_bones)
    assert not collection.is_visible
    for name in helper_bones:
        assert all(rig.pose.bones[name].lock_location)
        assert [each.name for each in rig.data.bones[name].collections] == [OF_JOINTS_COLLECTION]
    remove_links(all_joints=True)
    assert limbs.state(rig, [ob]) == before


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_several_helpers_of_the_same_bones_go_in_any_order(order):
    """Links of two joints, or links and twist bones, and two bulges that take weights of the same bones."""
    ob, rig = limbs.bar(joints=(2.0, 3.2))
    ob.vertex_groups.new(name="Mask").add([5], 0.5, "REPLACE")
    before = limbs.state(rig, [ob])
    add_links("fore.L", count=2)
    if order[0] % 2:
        add_links("fore.L", kind="TWIST", count=3)
    else:
        add_links("hand.L", count=3)
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
def test_full_rows_make_room_and_are_restored(order):
    """Four bones a vertex, with weights that do not sum to 1, and bulges that need a place among them."""
    ob, rig = skinned_meshes.rigged_tube(influences=4)
    bones = rig.data.bones.keys()
    before = limbs.state(rig, [ob])
    bpy.ops.skinning.add_bulge_bone(bone="Bone 1", preset="BELLY", radius=2.0, along_surface=False)
    add_links("Bone 2", count=2, reach=1.0)
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
        remove_links(helper.skin[0])


def test_painted_weights_go_to_the_bones_beside():
    ob, rig = limbs.bar()
    before = read_columns(ob, ["upper.L", "fore.L"])
    add_links("fore.L", count=3)
    names = find_helpers(rig)[0].skin
    middle = next(vertex.index for vertex in ob.data.vertices if abs(vertex.co.x - 3) < 1e-6)
    for name in (*names, "upper.L", "fore.L"):
        ob.vertex_groups[name].remove([middle])
    ob.vertex_groups[names[0]].add([middle], 0.8, "REPLACE")
    ob.vertex_groups[names[2]].add([middle], 0.2, "REPLACE")
    remove_links("fore.L")
    after = read_columns(ob, ["upper.L", "fore.L"])
    np.testing.assert_allclose(after[:, middle], [0.8 * 0.75 + 0.2 * 0.25, 0.8 * 0.25 + 0.2 * 0.75], atol=1e-6)
    others = np.arange(after.shape[1]) != middle
    np.testing.assert_array_equal(after[:, others], before[:, others])
    assert len(ob.vertex_groups) == 2
    assert not [each.name for each in ob.data.attributes if "skinning" in each.name]


def test_edited_meshes_and_renamed_bones_get_their_weights_back():
    ob, rig = limbs.bar()
    before = read_columns(ob, ["upper.L", "fore.L"])
    add_links("fore.L", count=3)
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
    remove_links("Forearm")
    assert [group.name for group in ob.vertex_groups] == ["upper.L", "Forearm"]
    np.testing.assert_array_equal(read_columns(ob, ["upper.L", "Forearm"]), before[:, 48:])
    assert len(rig.data.bones) == 2
    assert "skinning_helpers" not in ob.data


def test_bones_that_were_parented_to_links_stay():
    _, rig = limbs.bar()
    add_links("fore.L", count=1)
    bpy.ops.object.mode_set(mode="EDIT")
    bone = rig.data.edit_bones.new("Tassel")
    bone.head, bone.tail, bone.parent = (3, 0, 0), (3, 0, 1), rig.data.edit_bones["fore_link.L"]
    bpy.ops.object.mode_set(mode="OBJECT")
    remove_links("fore.L")
    assert rig.data.bones["Tassel"].parent.name == "upper.L"


def test_the_collection_goes_where_its_bones_were_moved_to_another():
    _, rig = limbs.bar()
    limbs.add_bulge("upper.L")
    bone, other = rig.data.bones[limbs.bulge_of(rig)], rig.data.collections.new("Mine")
    for collection in list(bone.collections):
        collection.unassign(bone)
    other.assign(bone)
    bpy.ops.skinning.remove_bulge_bone(all_bones=True)
    assert rig.data.collections_all.keys() == ["Mine"]


def test_a_bulge_whose_carrier_and_note_are_gone_is_removed():
    ob, rig = limbs.bar()
    limbs.add_bulge("upper.L")
    with edit_bones_of(bpy.context, rig) as bones:
        bones.remove(bones["upper.L"])
    del ob.data["skinning_helpers"]
    bpy.ops.skinning.remove_bulge_bone(all_bones=True)
    assert rig.data.bones.keys() == ["fore.L"]
    assert ob.vertex_groups.keys() == ["upper.L", "fore.L"]


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
    add_links("fore.L", count=3)
    assert "fore_link_2.L" in other.vertex_groups
    np.testing.assert_array_equal(*(read_columns(each, ["fore_link_2.L"]) for each in (ob, other)))
    # One of the two was read before the scale; without Reach this is no matter.
    remove_links("fore.L")
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
    add_links("fore.L", count=3)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(scenes.evaluated_positions(ob), was, atol=2e-6)
    remove_links("fore.L")
    assert limbs.mesh_state(ob) == before


@pytest.mark.parametrize("fails", ["constrain_links", "link_specs"])
def test_a_failure_leaves_nothing(fails, monkeypatch):
    ob, rig = limbs.bar()
    before = limbs.state(rig, [ob])

    def fail(*_):
        raise ZeroDivisionError("as a test")

    monkeypatch.setattr(bone_links, fails, fail)
    with pytest.raises(RuntimeError, match="bug in Skinning Tools"):
        add_links("fore.L", count=2)
    assert limbs.state(rig, [ob]) == before


def test_mode_and_selection_stay_where_bones_cannot_be_made():
    _ob, rig = limbs.bar()
    bpy.ops.object.mode_set(mode="POSE")
    selectable(rig)["fore.L"].select, selectable(rig)["upper.L"].select = True, False
    spec = NewBone("link", "gone", rig.data.bones["fore.L"].matrix_local, 1.0, True)
    with pytest.raises(KeyError):
        add_bones(bpy.context, rig, [spec])
    assert rig.mode == "POSE"
    assert selected_bones(rig) == ["fore.L"]


def test_a_cancelled_job_leaves_nothing():
    ob, rig = limbs.bar()
    animate(rig, "fore.L", 100)
    before = limbs.state(rig, [ob])
    # While weights are read, between frames, and while weights are shared.
    stages = []
    for stop in (1, 3, 5):
        steps = bone_links.add_links(bpy.context, rig, joints="fore.L")
        stages.append([next(steps) for _ in range(stop)])
        steps.close()
        assert limbs.state(rig, [ob]) == before
    assert stages[1][-1][1] == "Looking at the actions" != stages[2][-1][1]
    assert stages[2] == sorted(stages[2], key=itemgetter(0)), "progress goes on"


def test_a_record_that_was_changed_is_made_again():
    ob, rig = limbs.bar()
    animate(rig, "fore.L", 100)
    before = limbs.state(rig, [ob])
    ob.data["skinning_helpers"] = 3
    add_links("fore.L")
    remove_links("fore.L")
    assert limbs.state(rig, [ob])["meshes"] == before["meshes"]
