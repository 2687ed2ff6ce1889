# SPDX-License-Identifier: GPL-3.0-or-later
"""The Center of Rotation modifier as rig, weights and duplicates change; removing it; and objects that it is not added
to."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.blender.center_records import CRS_PROPERTY, native_modifier, set_input
from skinning_tools.blender.skin_reader import armature_modifier
from skinning_tools.features.centers import modifier as crs_modifier
from skinning_tools.features.centers.baking import bake_record
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.crs_scenes import TOLERANCE, add, deforms_as_core
from tests.blender.skinned_meshes import diagonal, expected, rigged_tube

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="geometry nodes read bones from Blender 5.1 on"),
]


refused = partial(refusals.refused, "add_center_of_rotation_modifier")


@pytest.mark.parametrize("shown", [(True, True), (True, False)])
def test_removing_restores(shown):
    ob, _ = rigged_tube()
    armature = ob.modifiers["Armature"]
    armature.show_viewport, armature.show_render = shown
    bpy.ops.skinning.bake_rotation_centers()
    blocks, names = scenes.data_blocks(), sorted(attribute.name for attribute in ob.data.attributes)
    bpy.context.scene.frame_set(4)
    before = scenes.evaluated_positions(ob)
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.ops.skinning.add_center_of_rotation_modifier()
    assert (armature.show_viewport, armature.show_render) == (False, False)
    assert bpy.ops.skinning.remove_center_of_rotation_modifier() == {"FINISHED"}
    bpy.context.view_layer.update()
    assert scenes.data_blocks() == blocks
    assert sorted(attribute.name for attribute in ob.data.attributes) == names
    assert (armature.show_viewport, armature.show_render) == shown
    assert [modifier.name for modifier in ob.modifiers] == ["Armature"]
    assert np.array_equal(scenes.evaluated_positions(ob), before)


def test_baking_again_brings_it_up_to_date():
    ob, _ = rigged_tube()
    modifier = add(ob)
    set_input(modifier, "Factor", 0.25)
    ob.vertex_groups["Bone 1"].add([200, 300], 0.9, "REPLACE")
    bpy.ops.skinning.bake_rotation_centers()
    assert len([found for found in ob.modifiers if found.type == "NODES"]) == 1
    set_input(modifier, "Factor", 1.0)
    deforms_as_core(ob)


def test_adding_again_keeps_the_factor():
    ob, _ = rigged_tube()
    set_input(add(ob), "Factor", 0.25)
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.context.scene.frame_set(4)
    linear, turned = expected(ob, "LBS"), expected(ob)
    blend = linear + 0.25 * (turned - linear)
    assert np.abs(scenes.evaluated_positions(ob) - blend).max() < TOLERANCE * diagonal(ob)


# The rig changes after the modifier was added


def rename_a_bone(ob, rig):
    rig.data.bones["Bone 1"].name = "Spine"


def remove_a_group(ob, rig):
    ob.vertex_groups.remove(ob.vertex_groups["Bone 5"])


def forbid_deforming(ob, rig):
    rig.data.bones["Bone 5"].use_deform = False


def choose_another_armature(ob, rig):
    other = rig.copy()
    other.data = rig.data.copy()
    scenes.link(other).location = (0.3, 0.2, 0.1)
    ob.modifiers["Armature"].object = other
    bpy.context.view_layer.objects.active = ob


def damage_the_record(ob, rig):
    native_modifier(ob).node_group[CRS_PROPERTY] = 1


@pytest.mark.parametrize(
    "change", [rename_a_bone, remove_a_group, forbid_deforming, choose_another_armature, damage_the_record]
)
def test_a_change_of_the_rig_is_reported_and_an_update_corrects_it(change):
    ob, rig = rigged_tube(bone_count=6)
    for group in list(ob.vertex_groups)[5:]:
        ob.vertex_groups.remove(group)
    # Without weights: nothing that the centers depend on changes with it.
    ob.vertex_groups.new(name="Bone 5")
    add(ob)
    assert crs_modifier.is_current(ob)
    change(ob, rig)
    bpy.context.view_layer.update()
    assert not crs_modifier.is_current(ob)
    assert bpy.ops.skinning.add_center_of_rotation_modifier() == {"FINISHED"}
    assert crs_modifier.is_current(ob)
    deforms_as_core(ob)
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    assert armature_modifier(ob).show_viewport
    assert armature_modifier(ob).show_render


def test_renamed_armature_modifier_is_turned_on_again():
    ob, rig = rigged_tube()
    add(ob)
    ob.modifiers["Armature"].name = "Rig deform"
    other = ob.modifiers.new("Armature", "ARMATURE")
    other.object, other.show_viewport = rig, False
    ob.modifiers.move(2, 0)
    ob.modifiers["Armature"].object = rig.copy()
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    shown = {modifier.name: (modifier.show_viewport, modifier.show_render) for modifier in ob.modifiers}
    assert shown == {"Armature": (False, True), "Rig deform": (True, True)}


def test_removing_without_an_armature_modifier_left():
    ob, _ = rigged_tube()
    add(ob)
    ob.modifiers.remove(ob.modifiers["Armature"])
    assert bpy.ops.skinning.remove_center_of_rotation_modifier() == {"FINISHED"}
    assert not ob.modifiers


def test_disabled_armature_modifier_stays_disabled():
    ob, _ = rigged_tube()
    ob.modifiers["Armature"].show_viewport = False
    add(ob)
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    assert (ob.modifiers["Armature"].show_viewport, ob.modifiers["Armature"].show_render) == (False, True)


# Objects that share a mesh


def twin_of(ob, name="Other"):
    other = ob.copy()
    other.name = name
    scenes.link(other)
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    return other


def test_twins_share_what_the_modifier_reads():
    ob, _ = rigged_tube()
    other = ob.copy()
    scenes.link(other).name = "Other"
    add(ob)
    bpy.context.view_layer.objects.active = other
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.context.view_layer.objects.active = ob
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    deforms_as_core(other)


@pytest.mark.parametrize("given", [{"sigma": 0.5}, {"attribute_name": "other", "sigma": 0.5}])
def test_a_bake_brings_twins_up_to_date(given):
    ob, _ = rigged_tube()
    add(ob)
    other = twin_of(ob)
    bpy.ops.skinning.bake_rotation_centers(**given)
    for each in (ob, other):
        deforms_as_core(each)


def test_more_influences_reach_the_twins():
    ob, _ = rigged_tube(bone_count=12, influences=6)
    add(ob)
    other = twin_of(ob)
    for group in ob.vertex_groups:
        group.add(list(range(200, 300)), 0.1, "ADD")
    ob.data.update()
    slots = len(native_modifier(ob).node_group.nodes)
    bpy.ops.skinning.bake_rotation_centers()
    assert len(native_modifier(ob).node_group.nodes) > slots
    for each in (ob, other):
        deforms_as_core(each)


def test_a_bake_of_the_twin_without_the_modifier_counts_for_the_one_with():
    ob, _ = rigged_tube()
    other = twin_of(ob)
    add(ob)
    bpy.context.view_layer.objects.active = other
    bpy.ops.skinning.bake_rotation_centers(attribute_name="other", sigma=0.5)
    assert native_modifier(other) is None
    deforms_as_core(ob)


def test_a_renamed_bone_is_mended_for_twins_at_once():
    ob, rig = rigged_tube()
    add(ob)
    other = twin_of(ob)
    rig.data.bones["Bone 1"].name = "Spine"
    bpy.ops.skinning.add_center_of_rotation_modifier()
    assert crs_modifier.is_current(other)
    deforms_as_core(other)


# What is refused, and what fails


def test_bake_is_needed():
    rigged_tube()
    refused('NO_CENTERS "Arm"', "Bake")


def test_bake_older_than_the_weights():
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    ob.vertex_groups["Bone 1"].add([300], 0.1, "REPLACE")
    refused("centers of rotation", '"Arm"', "older than its mesh or weights", "again")


def test_modifier_that_makes_vertices():
    ob, _ = rigged_tube()
    ob.modifiers.new("Halves", "MIRROR")
    ob.modifiers.move(1, 0)
    bpy.ops.skinning.bake_rotation_centers()
    refused('"Halves"', '"Arm"', "adds vertices")


def test_mesh_that_is_shared_with_other_bones():
    ob, rig = rigged_tube()
    other, other_rig = ob.copy(), rig.copy()
    other.name, other_rig.data = "Other", rig.data.copy()
    scenes.link(other_rig)
    scenes.link(other).modifiers["Armature"].object = other_rig
    add(ob)
    other_rig.data.bones["Bone 0"].use_deform = False
    bpy.context.view_layer.objects.active = other
    bpy.ops.object.select_all(action="DESELECT")
    refused('MESH_SHARED "Other"', '"Arm"', "Make Single User")


def test_a_fault_leaves_the_object_as_it_was(monkeypatch):
    ob, rig = rigged_tube()
    ob.modifiers.clear()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    bpy.context.view_layer.update()
    bpy.ops.skinning.bake_rotation_centers()
    before = moving_meshes.state(), sorted(ob.data.attributes.keys()), ob.parent_type, len(ob.modifiers)

    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(crs_modifier, "build_tree", fail)
    with pytest.raises(RuntimeError, match="bug in Skinning Tools"):
        bpy.ops.skinning.add_center_of_rotation_modifier()
    assert (moving_meshes.state(), sorted(ob.data.attributes.keys()), ob.parent_type, len(ob.modifiers)) == before


def subdividing_nodes(ob):
    tree = scenes.geometry_tree("Finer")
    node = tree.nodes.new("GeometryNodeSubdivideMesh")
    tree.links.new(tree.nodes["Group Input"].outputs[0], node.inputs[0])
    tree.links.new(node.outputs[0], tree.nodes["Group Output"].inputs[0])
    modifier = scenes.nodes_modifier(ob, tree)
    ob.modifiers.move(ob.modifiers.find(modifier.name), 0)
    bpy.context.view_layer.update()


def test_nodes_that_make_vertices():
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    subdividing_nodes(ob)
    refused('"Arm"', "changes the number of vertices", "move it below")


def test_nodes_that_make_vertices_stop_a_bake_before_it_writes():
    ob, _ = rigged_tube()
    add(ob)
    subdividing_nodes(ob)
    record = bake_record(ob)
    with pytest.raises(RuntimeError, match="changes the number of vertices"):
        bpy.ops.skinning.bake_rotation_centers(sigma=0.5)
    assert bake_record(ob) == record


def test_linked_objects_keep_their_modifier(tmp_path):
    ob, rig = rigged_tube()
    add(ob)
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {ob, rig})
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (found, linked):
        linked.objects = found.objects
    for each in linked.objects:
        bpy.context.scene.collection.objects.link(each)
    ob = next(each for each in linked.objects if each.type == "MESH")
    bpy.context.view_layer.objects.active = ob
    with refusals.raises_unmet("LINKED"):
        bpy.ops.skinning.remove_center_of_rotation_modifier()
    override = ob.override_create(remap_local_usages=True)
    bpy.context.view_layer.objects.active = override
    bpy.context.view_layer.update()
    with refusals.raises_unmet("LINKED"):
        bpy.ops.skinning.remove_center_of_rotation_modifier()
    assert native_modifier(override) is not None


def test_nothing_to_remove():
    rigged_tube()
    with pytest.raises(RuntimeError, match="has no Center of Rotation modifier"):
        bpy.ops.skinning.remove_center_of_rotation_modifier()
