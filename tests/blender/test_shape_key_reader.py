# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape keys read in bulk equal what Blender evaluates, and are left to Blender where they alone do not tell."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.animation.animation_reader import read_animation
from skinning_tools.core.errors import BadAnimation, BadScene
from tests.blender import scenes

FRAMES = range(1, 8)
BULK = "Shape keys"
EVALUATED = "Evaluated mesh"


pytestmark = pytest.mark.usefixtures("empty")


def check_against_blender(object, method, moves=True):
    """Read frames 1 to 7 and compare them with the viewport."""
    expected = scenes.played(object, FRAMES)
    source, _ = scenes.drain(read_animation(bpy.context, object, FRAMES[0], FRAMES[-1]))
    assert source.method == method
    assert source.animation.frames.dtype == np.float32
    size = np.abs(expected).max()
    np.testing.assert_allclose(source.animation.frames, expected, rtol=0, atol=4 * np.finfo(np.float32).eps * size)
    assert bool(np.ptp(source.animation.frames, axis=0).any()) == moves
    return source


def keyed_object():
    object = scenes.grid()
    first, second, third = scenes.shape_keys(object)
    scenes.key_property(first, "value", {1: 0.0, 4: 1.0, 7: 0.2})
    scenes.key_property(second, "value", {2: 1.0, 6: 0.0})
    third.value = 0.3
    return object


def test_keyed_values_and_a_constant_one():
    check_against_blender(keyed_object(), BULK)


def test_the_scene_is_not_evaluated_in_bulk():
    object = keyed_object()
    bpy.context.scene.frame_set(3)
    object.data.shape_keys.key_blocks[3].value = 0.9
    source, _ = scenes.drain(read_animation(bpy.context, object, 1, 7))
    assert source.method == BULK
    assert bpy.context.scene.frame_current == 3


def test_values_beyond_the_slider_range_are_clamped():
    object = keyed_object()
    block = object.data.shape_keys.key_blocks[1]
    block.slider_min, block.slider_max = 0.25, 0.6
    source = check_against_blender(object, BULK)
    offset = np.array([block.points[0].co[i] - object.data.shape_keys.reference_key.points[0].co[i] for i in range(3)])
    assert np.abs(offset).max() > 0.1
    assert not np.allclose(source.animation.frames[3, 0], source.animation.frames[2, 0] + offset)


def test_slider_beyond_one_and_negative():
    object = scenes.grid()
    block = scenes.shape_keys(object, 1)[0]
    block.slider_min, block.slider_max = -3.0, 5.0
    scenes.key_property(block, "value", {1: -3.0, 7: 5.0})
    check_against_blender(object, BULK)


def test_muted_block():
    object = keyed_object()
    object.data.shape_keys.key_blocks[1].mute = True
    check_against_blender(object, BULK)


@pytest.mark.parametrize("assigned", [True, False], ids=["weights", "empty group"])
def test_block_masked_by_a_vertex_group(assigned):
    object = keyed_object()
    group = object.vertex_groups.new(name="mask")
    object.vertex_groups.new(name="other")
    if assigned:
        for index in range(8):
            group.add([index], index / 7, "REPLACE")
    object.data.shape_keys.key_blocks[1].vertex_group = "mask"
    object.data.shape_keys.key_blocks[2].vertex_group = "no such group"
    check_against_blender(object, BULK)


def test_blocks_relative_to_other_blocks():
    object = keyed_object()
    blocks = object.data.shape_keys.key_blocks
    blocks[2].relative_key = blocks[1]
    blocks[3].relative_key = blocks[2]
    check_against_blender(object, BULK)


def test_value_of_the_basis_and_positions_of_the_mesh():
    """The first block's own value has no effect, and the mesh's own positions have none either."""
    object = keyed_object()
    key = object.data.shape_keys
    key.reference_key.relative_key = key.key_blocks[1]
    scenes.key_property(key.reference_key, "value", {1: 0.0, 7: 1.0})
    for vertex in object.data.vertices:
        vertex.co.z += 5.0
    check_against_blender(object, BULK)


def test_muted_curve():
    object = keyed_object()
    animation = object.data.shape_keys.animation_data
    curves = _curves(animation)
    curves[0].mute = True
    check_against_blender(object, EVALUATED)


def test_curve_modifier_and_extrapolation():
    object = keyed_object()
    for curve in _curves(object.data.shape_keys.animation_data):
        curve.extrapolation = "LINEAR"
        curve.modifiers.new("CYCLES")
    check_against_blender(object, BULK)


@pytest.mark.skipif(bpy.app.version < (4, 4), reason="actions have slots from Blender 4.4 on")
def test_only_the_assigned_slot_counts():
    object = keyed_object()
    animation = object.data.shape_keys.animation_data
    other = animation.action.slots.new("KEY", "other")
    animation.action_slot = other
    object.data.shape_keys.key_blocks[1].keyframe_insert("value", frame=1)
    object.data.shape_keys.key_blocks[1].value = 1.0
    object.data.shape_keys.key_blocks[1].keyframe_insert("value", frame=7)
    check_against_blender(object, BULK)


@pytest.mark.skipif(bpy.app.version < (4, 4), reason="actions have slots from Blender 4.4 on")
def test_an_action_without_a_slot_moves_nothing():
    object = keyed_object()
    object.data.shape_keys.animation_data.action_slot = None
    check_against_blender(object, BULK, moves=False)


def test_driven_by_a_property():
    object = keyed_object()
    object["lift"] = 0.0
    scenes.key_property(object, "location", {1: (0, 0, 0), 7: (0, 0, 1)})
    curve = object.data.shape_keys.key_blocks[3].driver_add("value")
    variable = curve.driver.variables.new()
    variable.name = "z"
    variable.targets[0].id = object
    variable.targets[0].data_path = "location.z"
    curve.driver.expression = "z * 0.5"
    bpy.context.view_layer.update()
    check_against_blender(object, EVALUATED)


@pytest.mark.parametrize("interpolation", ["KEY_LINEAR", "KEY_CARDINAL", "KEY_CATMULL_ROM", "KEY_BSPLINE"])
def test_absolute_keys(interpolation):
    object = scenes.grid()
    scenes.shape_keys(object)
    key = object.data.shape_keys
    key.use_relative = False
    for block in key.key_blocks:
        block.interpolation = interpolation
    scenes.key_property(key, "eval_time", {1: 0.0, 7: 40.0})
    check_against_blender(object, EVALUATED)


def test_absolute_keys_that_stand_still():
    object = keyed_object()
    object.data.shape_keys.use_relative = False
    object.data.shape_keys.eval_time = 15.0
    check_against_blender(object, EVALUATED, moves=False)


def test_a_block_whose_muting_is_keyed():
    object = keyed_object()
    scenes.key_property(object.data.shape_keys.key_blocks[3], "mute", {1: False, 4: True})
    check_against_blender(object, EVALUATED)


def test_nla_strips():
    object = keyed_object()
    animation = object.data.shape_keys.animation_data
    track = animation.nla_tracks.new()
    track.strips.new("keys", 2, animation.action)
    animation.action = None
    check_against_blender(object, EVALUATED)


def test_modifier_after_the_keys():
    object = keyed_object()
    scenes.wave(object)
    check_against_blender(object, EVALUATED)


def test_modifier_that_is_off_in_the_viewport():
    object = keyed_object()
    scenes.wave(object).show_viewport = False
    check_against_blender(object, BULK)


def test_modifier_that_an_action_switches_on():
    object = keyed_object()
    modifier = scenes.wave(object)
    scenes.key_property(modifier, "show_viewport", {1: False, 4: True, 6: False})
    bpy.context.scene.frame_set(1)
    assert not modifier.show_viewport
    check_against_blender(object, EVALUATED)


def test_deforming_parent():
    object = keyed_object()
    armature = scenes.link(bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig")))
    bpy.ops.object.mode_set(mode="EDIT")
    bone = armature.data.edit_bones.new("Bone")
    bone.tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    object.vertex_groups.new(name="Bone").add(range(5), 1.0, "REPLACE")
    object.parent, object.parent_type = armature, "ARMATURE"
    scenes.key_property(armature.pose.bones[0], "location", {1: (0, 0, 0), 7: (0, 2, 0)})
    source = check_against_blender(object, EVALUATED)
    object.parent_type = "OBJECT"
    without, _ = scenes.drain(read_animation(bpy.context, object, 1, 7))
    assert without.method == BULK
    assert not np.allclose(without.animation.frames, source.animation.frames)


def test_pinned_to_one_shape():
    object = keyed_object()
    object.active_shape_key_index = 1
    object.show_only_shape_key = True
    check_against_blender(object, EVALUATED, moves=False)


def test_frame_change_handler():
    object = keyed_object()

    def handler(scene, depsgraph=None):
        object.data.shape_keys.key_blocks[3].value = scene.frame_current / 10

    bpy.app.handlers.frame_change_pre.append(handler)
    try:
        check_against_blender(object, EVALUATED)
    finally:
        bpy.app.handlers.frame_change_pre.remove(handler)


def test_time_remapping():
    object = keyed_object()
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = 100, 50
    check_against_blender(object, EVALUATED)


def test_keyed_points_of_a_block():
    """As add-ons write it that key single vertices."""
    object = keyed_object()
    scenes.key_property(object.data.shape_keys.key_blocks[1].points[2], "co", {1: (0, 0, 0), 7: (0, 0, 3)})
    check_against_blender(object, EVALUATED)


def test_keyed_vertices_of_the_mesh():
    object = keyed_object()
    scenes.key_property(object.data.vertices[2], "co", {1: (0, 0, 0), 7: (0, 0, 3)})
    check_against_blender(object, EVALUATED)


def test_animated_transform_of_the_object_does_not_matter():
    object = keyed_object()
    scenes.key_property(object, "rotation_euler", {1: (0, 0, 0), 7: (1, 2, 3)})
    scenes.key_property(object, "scale", {1: (0, 0, 0), 7: (-1, 2, 3)})
    check_against_blender(object, BULK)


def test_one_key_block_per_frame():
    """As importers of sampled animation write it."""
    object = scenes.grid()
    for index, block in enumerate(scenes.shape_keys(object, 7)):
        scenes.key_property(block, "value", {index: 0.0, index + 1: 1.0, index + 2: 0.0})
    source = check_against_blender(object, BULK)
    block = object.data.shape_keys.key_blocks[5]
    np.testing.assert_allclose(source.animation.frames[4, 3], block.points[3].co, atol=1e-6)


def test_the_mesh_has_the_shape_of_the_first_frame_and_no_keys():
    object = keyed_object()
    source, _ = scenes.drain(read_animation(bpy.context, object, 3, 7))
    positions = np.array([vertex.co for vertex in source.mesh.vertices], dtype=np.float32)
    np.testing.assert_array_equal(positions, source.animation.frames[0])
    assert source.mesh.shape_keys is None
    assert source.mesh.animation_data is None
    assert source.mesh is not object.data
    assert len(object.data.shape_keys.key_blocks) == 4


def test_infinite_position_names_the_frame():
    object = keyed_object()
    block = object.data.shape_keys.key_blocks[3]
    coordinates = np.zeros((len(block.points), 3), dtype=np.float32)
    coordinates[5, 0] = np.inf
    block.points.foreach_set("co", coordinates.ravel())
    scenes.key_property(block, "value", {1: 0.0, 3: 0.0, 4: 1.0})
    before = scenes.data_blocks()
    with pytest.raises(BadAnimation, match=r'object "Flag".*frame 4, vertex 5'):
        scenes.drain(read_animation(bpy.context, object, 1, 7))
    assert scenes.data_blocks() == before


def test_closing_in_the_middle_leaves_nothing():
    object = keyed_object()
    before, state = scenes.data_blocks(), scenes.ui_state()
    reading = read_animation(bpy.context, object, 1, 7)
    assert 0 < next(reading) < 1
    reading.close()
    assert scenes.data_blocks() == before
    assert scenes.ui_state() == state


def test_key_blocks_removed_while_reading():
    object = keyed_object()
    reading = read_animation(bpy.context, object, 1, 7)
    next(reading)
    object.shape_key_clear()
    with pytest.raises(BadScene, match=r'object "Flag" were changed'):
        scenes.drain(reading)


def test_two_objects_sharing_a_mesh():
    object = keyed_object()
    twin = scenes.link(bpy.data.objects.new("Twin", object.data))
    source = check_against_blender(twin, BULK)
    assert source.mesh.name == "Twin_skinned"
    assert object.data == twin.data
    assert object.data.users == 2


def _curves(animation):
    if not hasattr(animation, "action_slot"):
        return animation.action.fcurves
    return animation.action.layers[0].strips[0].channelbag(animation.action_slot).fcurves
