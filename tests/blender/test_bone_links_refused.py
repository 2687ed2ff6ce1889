# SPDX-License-Identifier: GPL-3.0-or-later
"""Joints and armatures that get no bone links, refused before anything is changed, and the names of the links made."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.helper_bones.bones import helper_name
from skinning_tools.blender.helper_bones.records import find_helpers
from skinning_tools.blender.vertex_groups import read_columns
from tests.blender import joint_helper_scenes as limbs
from tests.blender import refusals, scenes
from tests.blender.joint_helper_scenes import add_links, remove_links

pytestmark = pytest.mark.usefixtures("extension")


def refused(part: str, *joints, **given) -> None:
    meshes, rigs = ([ob for ob in bpy.data.objects if ob.type == kind] for kind in ("MESH", "ARMATURE"))
    refusals.refused(
        lambda: add_links(*joints, **given), part, state=lambda: [limbs.state(rig, meshes) for rig in rigs]
    )


def test_bones_without_a_joint_are_refused():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    refused("NO_BONE", "elbow")
    refused("no parent that deforms", "upper.L")
    refused("at its end", "hand.L", kind="TWIST")
    rig.data.bones["hand.L"].use_deform = False
    refused("BONE_DOES_NOT_DEFORM", "hand.L")
    add_links("fore.L", count=1)
    refused("already", "fore.L")
    refused("already", "upper.L", kind="TWIST")
    refused("is a helper bone itself", "fore_link.L")
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.pose.select_all(action="DESELECT")
    refused("Select the child bones")
    with pytest.raises(RuntimeError, match="None of the bones"):
        remove_links("hand.L")


def test_selected_bones_and_the_other_side():
    ob, rig = limbs.bar()
    bpy.ops.object.mode_set(mode="POSE")
    scenes.select_bones(rig, "fore.L")
    add_links(count=1, mirror=True)
    assert [helper.end for helper in find_helpers(rig)] == ["fore.L"]
    bpy.context.view_layer.objects.active = ob
    remove_links()
    assert not find_helpers(rig)


def test_the_other_side_alone_gets_links_where_one_has_them():
    _, rig = limbs.bar(joints=(2.0, 4.0))
    rig.data.bones["hand.L"].name = "fore.R"
    add_links("fore.L", count=1)
    add_links("fore.L", count=1, mirror=True)
    assert sorted(helper.end for helper in find_helpers(rig)) == ["fore.L", "fore.R"]
    refused("already", "fore.L", mirror=True)


@pytest.mark.parametrize(
    ("given", "match"), [({"threshold": 0.0}, "Threshold"), ({"most": 0}, "Most"), ({"count": -1}, "Count")]
)
def test_wrong_settings_are_refused(given, match):
    limbs.bar()
    refused(match, "fore.L", **given)


def test_locked_groups_are_refused_by_name():
    ob, rig = limbs.bar(joints=(2.0, 4.0))
    ob.vertex_groups["fore.L"].lock_weight = True
    refused('have to change are locked: "fore.L" of object "Bar"', "fore.L", count=2)
    ob.vertex_groups["fore.L"].lock_weight = False
    ob.vertex_groups["hand.L"].lock_weight = True
    hand = read_columns(ob, ["hand.L"])
    add_links("fore.L", count=2)
    np.testing.assert_array_equal(read_columns(ob, ["hand.L"]), hand)
    ob.vertex_groups[find_helpers(rig)[0].skin[0]].lock_weight = True
    with pytest.raises(RuntimeError, match=r'locked.*"fore_link_1\.L"'):
        remove_links("fore.L")
    assert len(find_helpers(rig)) == 1


def test_armatures_that_cannot_be_changed_are_refused(tmp_path):
    _ob, rig = limbs.bar()
    other = rig.copy()
    bpy.context.scene.collection.objects.link(other)
    refused("also those of", "fore.L")
    bpy.data.objects.remove(other)
    path = tmp_path / "rig.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    for override, code in ((False, "LINKED"), (True, "OVERRIDDEN")):
        scenes.empty_scene()
        with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
            wanted.objects = ["Bar", "Bar rig"]
        rig = scenes.link(bpy.data.objects["Bar rig"])
        scenes.link(bpy.data.objects["Bar"])
        if override:
            rig = rig.override_create(remap_local_usages=True)
        bpy.context.view_layer.objects.active = rig
        with refusals.raises_unmet(code):
            add_links("fore.L")


def test_linked_meshes_are_refused(tmp_path):
    ob, rig = limbs.bar()
    path = tmp_path / "mesh.blend"
    bpy.data.libraries.write(str(path), {ob.data})
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.meshes = [ob.data.name]
    ob.data = wanted.meshes[0]
    bpy.context.view_layer.objects.active = rig
    refused("LINKED", "fore.L", count=2)


def test_modes_and_meshes_that_cannot_be_used():
    ob, rig = limbs.bar()
    bpy.ops.object.mode_set(mode="EDIT")
    with refusals.raises_unmet("ARMATURE_IN_EDIT_MODE"):
        add_links("fore.L")
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = ob
    bpy.ops.object.mode_set(mode="EDIT")
    with refusals.raises_unmet("MODE Edit Mode"):
        add_links("fore.L", count=2)
    bpy.ops.object.mode_set(mode="OBJECT")
    ob.vertex_groups.clear()
    refused("BONE_WITHOUT_WEIGHTS", "fore.L", count=2)
    ob.modifiers.clear()
    bpy.context.view_layer.objects.active = rig
    refused("NO_DEFORMED_MESH", "fore.L", count=2)
    scenes.empty_scene()
    with refusals.raises_unmet("NO_ARMATURE"):
        add_links("fore.L")
    limbs.bar()
    with pytest.raises(RuntimeError, match="has no bone links"):
        remove_links(all_joints=True)


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
    add_links("fore.L", count=2)
    assert find_helpers(rig)[0].skin == ("fore_link2_1.L", "fore_link2_2.L")
