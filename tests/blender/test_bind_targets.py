# SPDX-License-Identifier: GPL-3.0-or-later
"""The meshes and the armature that bpy.ops.skinning.bind chooses, and the modifier and the parent that it sets."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from tests.blender import scenes, skinned_meshes
from tests.blender.binding_scenes import (
    activate,
    armature_of_segments,
    bound,
    check_bound,
    cube,
    refused,
    tube,
)

pytestmark = pytest.mark.usefixtures("extension")


# Whom it means


def test_the_active_armature_binds_all_selected_meshes_each_by_itself(capfd):
    ob, rig = tube()
    box = cube("Box", (2.5, 0, 0))
    other = cube("Other", (0, 0, 3))
    activate(rig, ob, box)
    bound(method="RIGID")
    check_bound(ob, rig)
    check_bound(box, rig)
    assert f"Arm, Box: {len(ob.data.vertices) + 8} vertices bound, 5 bones" in capfd.readouterr().out
    assert not other.vertex_groups
    assert (ob.parent, box.parent, other.parent) == (rig, rig, None)


def test_the_active_armature_alone_selects_the_mesh_that_it_deforms():
    ob, rig = tube()
    activate(rig)
    refused("No selected mesh")
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    bound()
    check_bound(ob, rig)


def test_what_cannot_be_bound_does_not_stand_for_the_meshes_of_the_armature():
    ob, rig = tube()
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    text = scenes.link(bpy.data.objects.new("Title", bpy.data.curves.new("Title", "FONT")))
    activate(rig, text)
    refused('NOT_A_MESH "Title" … Text … deselect it', replace=True)
    activate(rig, text, ob)
    bound()
    check_bound(ob, rig)


def test_the_active_mesh_means_itself_alone():
    ob, rig = tube()
    box = cube("Box", (2.5, 0, 0))
    activate(ob, box, rig)
    bound()
    assert not box.vertex_groups


@pytest.mark.parametrize("how", ["modifier", "parent", "selected", "only", "named"])
def test_which_armature(how):
    ob, rig = tube()
    if how != "only":
        other = armature_of_segments([[(0, 0, 0), (1, 0, 0)]], "Other")
        activate(ob)
        refused('SEVERAL_ARMATURES "Other", "Rig"')
    if how == "modifier":
        ob.modifiers.new("Armature", "ARMATURE").object = rig
        other.select_set(True)
    elif how == "parent":
        ob.parent = rig
        other.select_set(True)
    elif how == "selected":
        rig.select_set(True)
    bound(armature="Rig" if how == "named" else "")
    check_bound(ob, rig)
    assert [m.object for m in ob.modifiers] == [rig]


def test_whom_it_cannot_mean():
    ob, rig = tube()
    refused('NO_OBJECT "Nobody" … "Scene" … that fit: Rig', armature="Nobody")
    refused('NOT_AN_ARMATURE "Arm"', armature="Arm")
    bpy.context.view_layer.objects.active = None
    refused("NO_ACTIVE_OBJECT")
    light = scenes.link(bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN")))
    activate(light)
    refused('NOT_A_MESH "Sun" … Light')
    activate(ob)
    bpy.data.objects.remove(rig)
    refused('no armature to bind the object "Arm" to')


# Modifier and parent


@pytest.mark.parametrize(
    ("stack", "place"),
    [
        (["SUBSURF"], 0),
        (["MIRROR", "SUBSURF"], 1),
        (["MIRROR"], 1),
        (["MIRROR", "SOLIDIFY", "SUBSURF"], 1),
        (["SUBSURF", "MIRROR"], 0),
        (["MULTIRES"], 0),
    ],
)
def test_the_modifier_goes_before_what_refines(stack, place):
    ob, _ = tube()
    for kind in stack:
        ob.modifiers.new(kind, kind)
    bound()
    bound(replace=True)
    kinds = [m.type for m in ob.modifiers]
    assert kinds == [*stack[:place], "ARMATURE", *stack[place:]]


def test_the_modifier_goes_before_what_refines_where_another_is_pinned_to_the_end():
    ob, _ = tube()
    for kind in ("SUBSURF", "NODES"):
        ob.modifiers.new(kind, kind)
    # As Shade Auto Smooth has it.
    ob.modifiers["NODES"].use_pin_to_last = True
    bound()
    assert [m.type for m in ob.modifiers] == ["ARMATURE", "SUBSURF", "NODES"]


def test_a_modifier_that_is_there_stays_where_it_is_and_is_switched_on(capfd):
    ob, rig = tube()
    ob.modifiers.new("Subdivision", "SUBSURF")
    modifier = ob.modifiers.new("Bones", "ARMATURE")
    modifier.object, modifier.show_viewport, modifier.use_vertex_groups = rig, False, False
    modifier.use_deform_preserve_volume = True
    bound()
    assert [m.name for m in ob.modifiers] == ["Subdivision", "Bones"]
    assert modifier.show_viewport
    assert modifier.use_vertex_groups
    assert modifier.use_deform_preserve_volume
    assert 'the modifier "Bones" was turned on' in capfd.readouterr().out


def test_a_parent_of_type_armature_is_the_modifier():
    ob, rig = tube()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    bpy.context.view_layer.update()
    bound()
    assert not ob.modifiers
    assert ob.parent_type == "ARMATURE"
    bpy.context.scene.frame_set(8)
    assert np.allclose(scenes.evaluated_positions(ob), skinned_meshes.expected(ob, "LBS"), atol=2e-5)


def test_another_parent_stays():
    ob, rig = tube()
    group = scenes.link(bpy.data.objects.new("Group", None))
    group.location = (1, 2, 3)
    ob.parent, ob.matrix_parent_inverse = group, Matrix.Translation((-1, -2, -2.9))
    activate(ob)
    bpy.context.view_layer.update()
    world = ob.matrix_world.copy()
    bound()
    assert ob.parent == group
    assert np.allclose(ob.matrix_world, world)
    check_bound(ob, rig)


def test_an_armature_below_the_mesh_does_not_become_its_parent():
    ob, rig = tube()
    rig.parent = ob
    bpy.context.view_layer.update()
    bound()
    assert ob.parent is None
    check_bound(ob, rig)


def test_several_deformers_are_refused():
    ob, rig = tube()
    other = armature_of_segments([[(0, 0, 0), (1, 0, 0)]], "Other")
    activate(ob)
    first = ob.modifiers.new("First", "ARMATURE")
    first.object = other
    refused('ALREADY_DEFORMED "Other" (modifier "First")', armature="Rig")
    first.object = rig
    second = ob.modifiers.new("Second", "ARMATURE")
    second.object = rig
    refused('DEFORMED_TWICE "First" … "Second"')
    second.show_viewport = False
    bound()
    assert not second.show_viewport
    check_bound(ob, rig)


def test_a_mesh_that_a_bone_carries_is_refused():
    ob, rig = tube()
    ob.parent, ob.parent_type, ob.parent_bone = rig, "BONE", "Bone 1"
    refused('parented to the bone "Bone 1" of "Rig", which would move it a second time')
