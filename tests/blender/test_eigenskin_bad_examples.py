# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad examples of an EigenSkin are refused with the reason, and nothing changes."""

import bpy
import numpy as np
import pytest

from skinning_tools.features.eigenskin import example_sources
from tests.blender import refusals, scenes
from tests.blender.eigenskin_scenes import limb, limb_with_examples, pose
from tests.blender.example_scenes import add, near, read, refused

pytestmark = pytest.mark.usefixtures("extension")


def no_armature(ob, rig):
    ob.modifiers.clear()


def no_groups(ob, rig):
    ob.vertex_groups.clear()


def edit_mode(ob, rig):
    bpy.ops.object.mode_set(mode="EDIT")


def at_rest(ob, rig):
    pose(rig)


def rest_position(ob, rig):
    rig.data.pose_position = "REST"


def absolute_keys(ob, rig):
    scenes.shape_keys(ob)
    ob.data.shape_keys.use_relative = False


def two_armature_modifiers(ob, rig):
    ob.modifiers.new("Second", "ARMATURE").object = rig


def muted_armature_modifier(ob, rig):
    ob.modifiers["Armature"].show_viewport = False


def subdivided(ob, rig):
    ob.modifiers.new("Finer", "SUBSURF").levels = 1


def no_scale(ob, rig):
    ob.scale.x = 0


# What is wrong, and parts of the message.
BAD_SCENES = [
    (no_armature, ['NOT_SKINNED "Limb"']),
    (no_groups, ['NO_VERTEX_GROUPS "Limb"']),
    (edit_mode, ['MODE "Limb" … Edit Mode']),
    (at_rest, ["Pose the armature first", '"Limb rig"']),
    (rest_position, ['ARMATURE_AT_REST "Limb rig"']),
    (absolute_keys, ['ABSOLUTE_KEYS "Limb"']),
    (two_armature_modifiers, ['"Armature"', '"Second"', '"Limb"']),
    (muted_armature_modifier, ['MODIFIER_DISABLED "Armature" … "Limb"']),
    (subdivided, ["372", '"Limb"', '"Finer" (Subdivision Surface)']),
    (no_scale, ['NO_SCALE "Limb"']),
]


@pytest.mark.parametrize(("spoil", "parts"), BAD_SCENES, ids=[spoil.__name__ for spoil, _ in BAD_SCENES])
def test_bad_scenes(posed, spoil, parts):
    spoil(*posed)
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", *parts)


def test_no_object_and_an_armature_without_a_mesh(posed):
    ob, rig = posed
    bpy.context.view_layer.objects.active = None
    refused("eigenskin_add_example", "NO_ACTIVE_OBJECT")
    bpy.data.objects.remove(ob)
    bpy.context.view_layer.objects.active = rig
    refused("eigenskin_add_example", 'NO_DEFORMED_MESH "Limb rig"')


def test_armature_of_several_meshes(posed):
    ob, rig = posed
    other = ob.copy()
    scenes.link(other)
    bpy.context.view_layer.objects.active = rig
    refused("eigenskin_add_example", 'SEVERAL_MESHES "Limb", "Limb.001"')


def test_an_animated_mesh_under_a_muted_modifier_is_right(posed, tmp_path):
    ob, rig = posed
    wanted = np.random.default_rng(1).normal(size=(1, len(ob.data.vertices), 3)).astype(np.float32)
    scenes.write_pc2(tmp_path / "shape.pc2", wanted)
    scenes.point_cache(ob, tmp_path / "shape.pc2", "PC2")
    muted_armature_modifier(ob, rig)
    bpy.context.view_layer.update()
    add()
    near(ob, read(ob).shapes[0], wanted[0])


def test_other_mesh_is_missing_ambiguous_or_other(posed):
    ob, _rig = posed
    refused("eigenskin_add_example", "No other mesh is selected", '"Limb"', source="MESH")
    grid = scenes.grid()
    bpy.context.view_layer.objects.active = ob
    refused("eigenskin_add_example", 'OTHER_VERTEX_COUNT "Flag" at frame … 20 … "Limb" … 372', source="MESH")
    for _ in range(2):
        copy = ob.copy()
        scenes.link(copy)
    bpy.context.view_layer.objects.active = ob
    refused("eigenskin_add_example", "Several other meshes", "2 of them", "372", source="MESH")
    copy.select_set(False)
    add(source="MESH")
    grid.hide_set(True)


def test_other_mesh_is_somewhere_else(posed, capfd):
    ob, _ = posed
    copy = ob.copy()
    scenes.link(copy)
    bpy.context.view_layer.objects.active = ob
    copy.location.y += 3
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", f'"{copy.name}" is about 3 m away', '"Limb"', source="MESH")
    copy.location.y -= 2.8
    bpy.context.view_layer.update()
    add(source="MESH")
    assert f'with the shape of "{copy.name}" added' in capfd.readouterr().out


def test_shape_key_is_missing(posed):
    ob, _rig = posed
    refused("eigenskin_add_example", "no active shape key", source="SHAPE_KEY")
    scenes.shape_keys(ob)
    refused("eigenskin_add_example", 'no shape key "Elbow"', source="SHAPE_KEY", shape_key="Elbow")
    refused("eigenskin_add_example", 'no shape key "Basis"', source="SHAPE_KEY", shape_key="Basis")


def test_not_a_number(posed):
    ob, _rig = posed
    scenes.shape_keys(ob, count=1)
    ob.data.shape_keys.key_blocks[1].points[7].co.x = float("nan")
    refused("eigenskin_add_example", "not a number", '"Limb"', "vertex 7", source="SHAPE_KEY", shape_key="Key 1")
    target = ob.copy()
    target.data = ob.data.copy()
    scenes.link(target)
    target.data.shape_keys.key_blocks[1].value = 1.0
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", "not a number", f'"{target.name}"', "vertex 7", source="MESH")


@pytest.mark.parametrize("kind", ["objects", "overrides"])
def test_linked_character(tmp_path, kind):
    ob, rig = limb()
    scenes.moved_to("Character", ob, rig)
    path = str(tmp_path / "rig.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.collections = ["Character"]
    linked = bpy.data.collections["Character"]
    if kind == "overrides":
        linked.override_hierarchy_create(bpy.context.scene, bpy.context.view_layer, do_fully_editable=True)
    else:
        bpy.context.scene.collection.children.link(linked)
    found = {member.type: member for member in bpy.context.scene.objects}
    bpy.context.view_layer.objects.active = found["MESH"]
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", "OVERRIDDEN" if kind == "overrides" else "LINKED")


def test_linked_mesh(posed, tmp_path):
    ob, _ = posed
    path = str(tmp_path / "mesh.blend")
    bpy.data.libraries.write(path, {ob.data})
    with bpy.data.libraries.load(path, link=True) as (there, wanted):
        wanted.meshes = there.meshes
    ob.data = bpy.data.meshes["Limb mesh", path]
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", 'LINKED "Limb"')


def test_index_out_of_the_list():
    _, rig = limb_with_examples()
    count = len(rig.skinning_eigenskin.examples)
    refused("eigenskin_remove_example", f"no example {count}", index=count)
    refused("eigenskin_apply_pose", "no example -2", index=-2)


def test_reading_needs_no_context_object(posed):
    with refusals.raises_unmet("NOT_A_MESH"):
        example_sources.check_addable(bpy.context, bpy.data.objects.new("Nothing", None))
