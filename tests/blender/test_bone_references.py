# SPDX-License-Identifier: GPL-3.0-or-later
"""References to removed bones, on every kind of data-block that can use an armature, for rigs in any scene or none."""

import bpy
import pytest

from skinning_tools.blender.helper_bones.references import find_references, remove_references
from tests.blender import every_block, moving_meshes, scenes
from tests.blender.helper_bone_scenes import add, added_helpers, jiggling_rig, remove, stored
from tests.blender.partial_scenes import BONES, add_bone, select, tube

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def armature():
    _, armature = tube()
    add_bone(armature, "Gone", BONES[0])
    return armature


def drive(block, armature) -> None:
    """Two drivers on a data-block, of a bone that stays and of one that is removed."""
    for name in (BONES[0], "Gone"):
        block[name] = 0.0
        driver = block.driver_add(f'["{name}"]').driver
        variable = driver.variables.new()
        variable.type = "TRANSFORMS"
        variable.targets[0].id, variable.targets[0].bone_target = armature, name


@pytest.mark.parametrize("kind", every_block.kinds())
def test_every_kind_of_user(armature, kind, tmp_path):
    block = every_block.block_of(kind, tmp_path)
    block["rig"] = armature
    assert block in bpy.data.user_map(subset={armature})[armature]
    if hasattr(block, "node_tree") and block.node_tree is None:
        block.use_nodes = True
    embedded = getattr(block, "node_tree", None)
    driven = [each for each in (block, embedded) if each is not None and hasattr(each, "animation_data")]
    for each in driven:
        drive(each, armature)
    found = find_references(armature, ["Gone"])
    assert [curve.data_path for _, curve in found.drivers] == ['["Gone"]'] * len(driven)
    remove_references(found)
    for each in driven:
        assert [curve.data_path for curve in each.animation_data.drivers] == [f'["{BONES[0]}"]']
        each.animation_data_clear()
    del block["rig"]


def in_a_collection(objects):
    scenes.moved_to("Home", *objects)


def in_nested_collections(objects):
    scenes.moved_to("Home", *objects)
    outer = bpy.data.collections.new("Outer")
    bpy.context.scene.collection.children.unlink(bpy.data.collections["Home"])
    bpy.context.scene.collection.children.link(outer)
    outer.children.link(bpy.data.collections["Home"])


def in_two_collections(objects):
    in_a_collection(objects)
    second = bpy.data.collections.new("Second")
    bpy.context.scene.collection.children.link(second)
    for ob in objects:
        second.objects.link(ob)


def in_two_scenes(objects):
    in_a_collection(objects)
    bpy.data.scenes.new("Other").collection.children.link(bpy.data.collections["Home"])


def in_a_scene_and_its_copy(objects):
    in_a_collection(objects)
    first = bpy.context.scene
    bpy.ops.scene.new(type="LINK_COPY")
    bpy.context.window.scene = first


def excluded_from_another_view_layer(objects):
    in_a_collection(objects)
    bpy.context.scene.view_layers.new("Other").layer_collection.children["Home"].exclude = True


def instanced_by_an_empty(objects):
    in_a_collection(objects)
    empty = bpy.data.objects.new("Instance", None)
    empty.instance_type, empty.instance_collection = "COLLECTION", bpy.data.collections["Home"]
    bpy.context.scene.collection.objects.link(empty)


def used_by_a_rigid_body_world(objects):
    bpy.ops.rigidbody.world_add()
    bpy.context.scene.rigidbody_world.collection = bpy.data.collections.new("Bodies")
    in_a_collection(objects)


def in_the_scene_itself(objects):
    scenes.moved_to("Home", *objects)
    for ob in objects:
        bpy.context.scene.collection.objects.link(ob)
        bpy.data.collections["Home"].objects.unlink(ob)


PLACES = [
    in_the_scene_itself,
    in_a_collection,
    in_nested_collections,
    in_two_collections,
    in_two_scenes,
    in_a_scene_and_its_copy,
    excluded_from_another_view_layer,
    instanced_by_an_empty,
    used_by_a_rigid_body_world,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_the_button_wherever_the_rig_is_kept(place):
    ob, armature, target, _ = jiggling_rig()
    before = stored(ob)
    place([ob, armature, target])
    select(target, ob)
    add()
    assert added_helpers(armature)
    remove()
    assert set(armature.data.bones.keys()) == set(BONES)
    assert abs(stored(ob) - before).max() < 1e-5


@pytest.mark.parametrize("kind", ["RIGID", "AFFINE"])
def test_a_converted_result(kind):
    """Its rig is in a collection of its own."""
    moving_meshes.fresh_scene()
    source = moving_meshes.waving_grid()
    assert bpy.ops.skinning.convert_animation(bone_count=3, bone_kind=kind) == {"FINISHED"}
    skinned, armature = bpy.data.objects["Flag_skinned"], bpy.data.objects["Flag_rig"]
    bones = armature.data.bones.keys()
    select(source, skinned)
    add()
    assert len(armature.data.bones) > len(bones)
    remove()
    assert armature.data.bones.keys() == bones
