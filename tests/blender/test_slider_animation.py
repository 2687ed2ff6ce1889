# SPDX-License-Identifier: GPL-3.0-or-later
"""Animation of shape keys goes on with the sliders: curves, drivers and NLA strips, with a body or without."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.blender import background
from skinning_tools.blender.actions import existing_curves, property_path, value_path
from skinning_tools.features.shape_keys.conversion import convert_shape_keys
from tests.blender import refusals, scenes
from tests.blender.shape_key_scenes import NAMES, face, on_body

pytestmark = pytest.mark.usefixtures("extension", "scene")

convert = partial(refusals.finished, "convert_shape_keys", bone_count=3, max_influences=2)
FRAMES = range(1, 21)


def keyed(ob, name: str = NAMES[0], values=(0.0, 1.0, 0.3)) -> bpy.types.FCurve:
    """The curve of a key with these values ten frames apart."""
    keys = ob.data.shape_keys
    for frame, value in zip((1, 11, 21), values, strict=True):
        keys.key_blocks[name].value = value
        keys.key_blocks[name].keyframe_insert("value", frame=frame)
    return next(curve for curve in existing_curves(keys) if curve.data_path == value_path(name))


def drive(block, source, path: str) -> bpy.types.Driver:
    driver = block.driver_add("value").driver
    variable = driver.variables.new()
    variable.name = "x"
    target = variable.targets[0]
    target.id_type, target.id, target.data_path = source.id_type, source, path
    driver.expression = "2 * x"
    return driver


def compared(ob, name: str = NAMES[0]) -> tuple[list, list]:
    """The values of a key and its slider over time."""
    rig, scene = bpy.data.objects[f"{ob.name}_rig"], bpy.context.scene
    wanted, got = [], []
    for frame in FRAMES:
        scene.frame_set(frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        wanted.append(ob.data.shape_keys.evaluated_get(depsgraph).key_blocks[name].value)
        got.append(rig.evaluated_get(depsgraph)[name])
    return wanted, got


def agree(ob, name: str = NAMES[0]) -> None:
    wanted, got = compared(ob, name)
    assert np.ptp(wanted) > 0.1
    np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_curves_are_copied():
    ob = face()
    curve = keyed(ob)
    curve.keyframe_points[0].handle_right_type = "FREE"
    curve.keyframe_points[0].handle_right = (6.0, 0.9)
    curve.keyframe_points[1].interpolation = "BOUNCE"
    convert()
    agree(ob)
    assert bpy.data.objects["Face_rig"].animation_data.action != ob.data.shape_keys.animation_data.action


def test_curves_stay_in_the_range_of_the_key():
    ob = face()
    curve = keyed(ob)
    curve.keyframe_points[1].interpolation = "ELASTIC"
    for point in curve.keyframe_points:
        point.co[1] = 1.7 * point.co[1] - 0.3
    curve.update()
    convert()
    agree(ob)


def test_modifiers_are_copied():
    ob = face()
    curve = keyed(ob)
    cycles = curve.modifiers.new("CYCLES")
    cycles.mode_after = "MIRROR"
    envelope = curve.modifiers.new("ENVELOPE")
    envelope.reference_value, envelope.default_min, envelope.default_max = 0.2, -0.5, 0.5
    envelope.control_points.add(5.0)
    # Not the point's own values: see ``actions``.
    envelope.control_points.foreach_set("min", [-0.1])
    envelope.control_points.foreach_set("max", [0.3])
    polynomial = curve.modifiers.new("GENERATOR")
    polynomial.use_additive, polynomial.poly_order = True, 2
    polynomial.coefficients = (0.05, 0.01, -0.0005)
    convert()
    agree(ob)


def test_sliders_begin_at_values_that_nothing_animates():
    ob = face()
    keyed(ob)
    for block, value in zip(ob.data.shape_keys.key_blocks[1:], (0.0, 0.7, 3.0), strict=False):
        block.value = value
    convert()
    for name in NAMES[1:]:
        agreed = compared(ob, name)
        np.testing.assert_allclose(agreed[1], agreed[0], atol=1e-6)


def test_baked_samples_are_copied():
    ob = face()
    keyed(ob).convert_to_samples(1, 21)
    convert()
    agree(ob)


def test_drivers_are_copied_and_read_sliders():
    ob = face()
    keyed(ob)
    keys = ob.data.shape_keys
    drive(keys.key_blocks[NAMES[1]], keys, value_path(NAMES[0]))
    convert()
    agree(ob, NAMES[1])
    rig = bpy.data.objects["Face_rig"]
    [curve] = rig.animation_data.drivers
    assert curve.driver.variables[0].targets[0].id == rig
    assert curve.driver.variables[0].targets[0].data_path == property_path(NAMES[0])


def test_drivers_go_on_without_the_source():
    ob, control = face(), scenes.link(bpy.data.objects.new("Control", None))
    drive(ob.data.shape_keys.key_blocks[NAMES[0]], control, "location.x")
    bpy.context.view_layer.objects.active = ob
    convert()
    bpy.data.objects.remove(ob)
    control.location.x = 0.2
    bpy.context.view_layer.update()
    rig = bpy.data.objects["Face_rig"].evaluated_get(bpy.context.evaluated_depsgraph_get())
    assert rig[NAMES[0]] == pytest.approx(0.4)


def test_strips_are_followed():
    ob = face()
    keyed(ob)
    animation = ob.data.shape_keys.animation_data
    action = animation.action
    animation.nla_tracks.new().strips.new("Talk", 4, action)
    animation.action = None
    convert()
    agree(ob)
    rig = bpy.data.objects["Face_rig"]
    shown = []
    for hidden in (False, True):
        ob.hide_set(hidden)
        bpy.context.scene.frame_set(14)
        shown.append(rig.evaluated_get(bpy.context.evaluated_depsgraph_get())[NAMES[0]])
    # Also while Compare hides the source.
    assert shown[0] == shown[1] > 0.1


def test_action_of_the_object_goes_on():
    ob = face()
    keyed(ob)
    for frame, place in ((1, 0.0), (21, 3.0)):
        ob.location.x = place
        ob.keyframe_insert("location", frame=frame)
    convert()
    agree(ob)
    rig = bpy.data.objects["Face_rig"]
    assert {curve.data_path for curve in existing_curves(rig)} == {"location", property_path(NAMES[0])}
    assert len(existing_curves(ob)) == 3


def test_action_of_a_body_stays():
    ob, armature = on_body()
    keyed(ob)
    armature.pose.bones["head"].keyframe_insert("rotation_euler", frame=1)
    drive(ob.data.shape_keys.key_blocks[NAMES[1]], armature, 'pose.bones["head"].rotation_euler[0]')
    bpy.context.view_layer.objects.active = ob
    convert()
    agree(ob)
    rig = bpy.data.objects["Face_rig"]
    assert len(existing_curves(armature)) == 3
    assert len(existing_curves(rig)) == 4
    assert rig.animation_data.drivers[0].driver.variables[0].targets[0].id == rig


def test_not_asked_for():
    ob = face()
    keyed(ob)
    convert(animation=False)
    assert bpy.data.objects["Face_rig"].animation_data is None or not existing_curves(bpy.data.objects["Face_rig"])


def test_figures_tell_what_is_animated():
    ob = face()
    keyed(ob)
    drive(ob.data.shape_keys.key_blocks[NAMES[1]], ob, "location.x").expression = "__import__('math').sin(x)"
    result = background.drain(convert_shape_keys(bpy.context, ob, bone_count=3))
    assert "1 slider animated, 1 slider driven, 1 scripted driver" in result.summary()
