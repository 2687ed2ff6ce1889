# SPDX-License-Identifier: GPL-3.0-or-later
import bpy
import numpy as np
import pytest

from skinning_tools.blender import actions
from tests.blender import scenes

pytestmark = pytest.mark.usefixtures("empty")


def empty(name="Empty"):
    return scenes.link(bpy.data.objects.new(name, None))


def test_channels_play():
    object = empty()
    values = np.random.default_rng(0).normal(size=(5, 3))
    numbers = np.array([-3.0, 1, 2, 10, 10.5])
    action = actions.new_action(object, "Move")
    actions.write_channels(actions.curve_container(object), "location", values, numbers, "Transform")
    assert object.animation_data.action == action
    for number, value in zip(numbers, values, strict=True):
        bpy.context.scene.frame_set(int(number // 1), subframe=number % 1)
        assert np.allclose(object.location, value, atol=1e-6)
    bpy.context.scene.frame_set(6)
    assert np.allclose(object.location, 0.5 * (values[2] + values[3]), atol=1e-6)


def test_keys_made_bezier_later_flow():
    """The handles of keys reach toward the neighboring keys, each on its own side in time."""
    object = empty()
    actions.new_action(object, "Move")
    container = actions.curve_container(object)
    actions.write_channels(container, "location", np.arange(9.0).reshape(3, 3) ** 2, np.array([1.0, 5, 9]), "Transform")
    key = container.fcurves[0].keyframe_points[1]
    assert key.handle_left[0] < 5 < key.handle_right[0]
    assert key.handle_left_type == "AUTO_CLAMPED"
    assert key.interpolation == "LINEAR"


def test_a_component_that_never_changes_has_one_key():
    object = empty()
    actions.new_action(object, "Move")
    container = actions.curve_container(object)
    values = np.tile([1.0, 2.0, 3.0], (4, 1))
    values[2, 1] = np.nextafter(np.float32(2), np.float32(3))
    actions.write_channels(container, "location", values, np.arange(4.0), "Transform")
    assert [len(curve.keyframe_points) for curve in container.fcurves] == [1, 4, 1]
    bpy.context.scene.frame_set(9)
    assert object.location.x == 1


def test_curves_are_grouped():
    object = empty()
    actions.new_action(object, "Move")
    container = actions.curve_container(object)
    for path in ("location", "scale"):
        actions.write_channels(container, path, np.eye(3), np.arange(3.0), "Transform")
    assert [group.name for group in container.groups] == ["Transform"]
    assert len(container.groups[0].channels) == 6


def test_nothing_to_hold_curves_without_an_action():
    assert actions.curve_container(empty()) is None


def test_a_copy_has_the_curves_asked_for_and_leaves_the_original():
    source, owner = empty("Source"), empty("Owner")
    for path in ("location", "scale", "rotation_euler"):
        scenes.key_property(source, path, {1: (0, 1, 2), 9: (3, 4, 5)})
    source.animation_data.action.use_fake_user = True
    actions.curve_container(source).fcurves[0].modifiers.new("CYCLES")
    action = actions.copy_action(owner, source, "Copy", lambda path: path != "scale")
    assert (action.name, action.users) == ("Copy", 1)
    assert owner.animation_data.action == action
    curves = list(actions.curve_container(owner).fcurves)
    assert {curve.data_path for curve in curves} == {"location", "rotation_euler"}
    assert [modifier.type for curve in curves for modifier in curve.modifiers] == ["CYCLES"]
    assert len(actions.curve_container(source).fcurves) == 9
    bpy.context.scene.frame_set(5)
    assert np.allclose(owner.location, source.location)
    assert np.allclose(owner.scale, 1)


def test_a_copy_of_nothing_is_none():
    source, owner = empty("Source"), empty("Owner")
    assert actions.copy_action(owner, source, "Copy", lambda path: True) is None
    scenes.key_property(source, "scale", {1: (0, 1, 2)})
    assert actions.copy_action(owner, source, "Copy", lambda path: path == "location") is None
    assert [action.name for action in bpy.data.actions] == [source.animation_data.action.name]
    assert owner.animation_data is None


@pytest.mark.skipif("slots" not in bpy.types.Action.bl_rna.properties, reason="actions have slots since Blender 4.4")
def test_a_copy_has_only_the_source_s_slot():
    first, source, owner = empty("First"), empty("Source"), empty("Owner")
    scenes.key_property(first, "location", {1: (9, 9, 9)})
    shared = first.animation_data.action
    source.animation_data_create().action = shared
    source.animation_data.action_slot = shared.slots.new("OBJECT", "Second")
    scenes.key_property(source, "location", {1: (1, 2, 3)})
    action = actions.copy_action(owner, source, "Copy", lambda path: True)
    assert [slot.name_display for slot in action.slots] == ["Owner"]
    assert len(shared.slots) == 2
    bpy.context.scene.frame_set(1)
    assert np.allclose(owner.location, (1, 2, 3))
