# SPDX-License-Identifier: GPL-3.0-or-later
"""What drives bulge bones: angles that bones, constraints and sliders make, by expressions without Python."""

import bpy
import numpy as np
import pytest
from mathutils import Euler, Quaternion, Vector

from skinning_tools.features.helpers.bulge_presets import PRESETS
from tests.blender import joint_helper_scenes as limbs
from tests.blender import scenes
from tests.blender.joint_helper_scenes import BULGE_END, BULGE_START, add_bulge, bulge_of, bulge_share, evaluated_bone

pytestmark = pytest.mark.usefixtures("extension")


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "XYZ", "ZXY"])
@pytest.mark.parametrize("degrees", [0, 15, 45, 90, 140])
def test_it_moves_out_as_far_as_the_driver_bends(mode, degrees):
    """The bend is measured the same for any orientation and twist of the bone."""
    _, rig = limbs.bar()
    add_bulge(radius=1.5, amount=0.3)
    name = bulge_of(rig)
    bone = rig.pose.bones["fore.L"]
    bone.rotation_mode = mode
    axis = Vector((np.cos(1.1), 0, np.sin(1.1)))
    turn = Quaternion(axis, np.radians(degrees)) @ Quaternion((0, 1, 0), 0.8)
    if mode == "QUATERNION":
        bone.rotation_quaternion = -turn
    elif mode == "AXIS_ANGLE":
        bone.rotation_axis_angle = (turn.angle, *turn.axis)
    else:
        bone.rotation_euler = turn.to_euler(mode)
    location = evaluated_bone(rig, name).location
    np.testing.assert_allclose(location, [0, 0.3 * 1.5 * bulge_share(degrees), 0], atol=1e-5)
    rest = rig.data.bones[name].matrix_local.to_3x3()
    moved = evaluated_bone(rig, name).matrix.translation - rig.data.bones[name].head_local
    np.testing.assert_allclose(moved, rest @ Vector(location), atol=1e-5)


def test_it_includes_the_effect_of_ik_and_constraints_on_the_driver():
    _, rig = limbs.bar()
    add_bulge(radius=1.0, amount=0.5)
    name = bulge_of(rig)
    copied = scenes.link(bpy.data.objects.new("Target", None))
    copied.rotation_euler = Euler((0, 0, np.radians(70)))
    constraint = rig.pose.bones["fore.L"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.owner_space = copied, "LOCAL"
    assert evaluated_bone(rig, name).location.y == pytest.approx(0.5 * bulge_share(70), abs=1e-4)
    rig.pose.bones["fore.L"].constraints.remove(constraint)
    assert evaluated_bone(rig, name).location.y == pytest.approx(0)
    ik = rig.pose.bones["fore.L"].constraints.new("IK")
    ik.target, ik.chain_count = copied, 2
    copied.matrix_world.translation = rig.matrix_world @ Vector((1.5, 1.0, 2.5))
    upper, fore = (evaluated_bone(rig, each).matrix.to_3x3() for each in ("upper.L", "fore.L"))
    bend = np.degrees(upper.col[1].angle(fore.col[1]))
    assert bend > 40
    assert evaluated_bone(rig, name).location.y == pytest.approx(0.5 * bulge_share(bend), abs=1e-4)


@pytest.mark.parametrize(("measure", "axis"), [("TWIST", (0, 1, 0)), ("X", (1, 0, 0)), ("Z", (0, 0, 1))])
def test_signed_angles_about_an_axis(measure, axis):
    """The bulge grows in one direction of the angle only, here for negative angles."""
    _, rig = limbs.bar()
    add_bulge(measure=measure, angle_start=-BULGE_START, angle_end=-BULGE_END, radius=1.0, amount=0.5)
    for degrees in (-90, -30, 0, 30, 90):
        limbs.pose(rig, fore_L=(axis, degrees))
        expected = 0.5 * bulge_share(-degrees) if degrees < 0 else 0.0
        assert evaluated_bone(rig, bulge_of(rig)).location.y == pytest.approx(expected, abs=1e-5)


def test_all_expressions_need_no_python():
    _, rig = limbs.bar()
    for measure in ("BEND", "TWIST", "X", "Z"):
        for motion in ("MOVE", "SCALE"):
            add_bulge(measure=measure, motion=motion)
    add_bulge(preset="BELLY")
    drivers = [curve.driver for curve in rig.animation_data.drivers]
    assert len(drivers) == 4 * (1 + 3) + 1
    for driver in drivers:
        assert driver.is_simple_expression
        assert driver.is_valid
        assert len(driver.expression) < 255


def test_sliders_work_and_can_be_overridden():
    _, rig = limbs.bar()
    add_bulge(radius=1.0, amount=0.5)
    bone = rig.pose.bones[bulge_of(rig)]
    limbs.pose(rig, fore_L=((1, 0, 0), 90))
    bone["amount"] = 0.2
    rig.update_tag()
    assert evaluated_bone(rig, bone.name).location.y == pytest.approx(0.2 * bulge_share(90), abs=1e-5)
    bone["angle_start"], bone["angle_end"] = np.radians(80), np.radians(100)
    rig.update_tag()
    assert evaluated_bone(rig, bone.name).location.y == pytest.approx(0.1, abs=1e-5)
    assert all(bone.is_property_overridable_library(f'["{key}"]') for key in ("amount", "angle_start", "angle_end"))


def test_a_belly_breathes_by_a_slider_that_can_be_keyed():
    ob, rig = limbs.bar(apart=False)
    was = scenes.evaluated_positions(ob)
    add_bulge(preset="BELLY", radius=1.0)
    bone = rig.pose.bones[bulge_of(rig)]
    for frame, value in ((1, 0.0), (11, 1.0)):
        bone["bulge"] = value
        bone.keyframe_insert('["bulge"]', frame=frame)
    farthest = [np.abs(points - was).max() for points in scenes.played(ob, [1, 6, 11])]
    np.testing.assert_allclose(farthest, PRESETS["BELLY"].amount * np.array([0, 0.5, 1]), atol=2e-6)


# Object > Apply


SCALES = {"larger": (2.5, 2.5, 2.5), "smaller": (0.01, 0.01, 0.01), "mirrored": (-1.0, 1.0, 1.0), "back": (-2, -2, -2)}


def transformed(rig, ob, scale) -> None:
    """Armature and mesh turned, moved and scaled as one."""
    ob.parent = rig
    ob.matrix_parent_inverse = rig.matrix_world.inverted()
    rig.location, rig.rotation_euler, rig.scale = (1, 2, 3), (0.3, 0.2, 1.0), scale
    bpy.context.view_layer.update()


def apply(objects, **which) -> None:
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob in objects)
    bpy.context.view_layer.objects.active = objects[0]
    assert bpy.ops.object.transform_apply(**{"location": False, "rotation": False, "scale": False} | which) == {
        "FINISHED"
    }
    bpy.context.view_layer.update()


@pytest.mark.parametrize("motion", ["MOVE", "SCALE"])
@pytest.mark.parametrize("driven", [True, False], ids=["driven", "slider"])
@pytest.mark.parametrize("who", ["armature", "mesh", "both"])
@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_it_follows_what_is_applied(scale, who, driven, motion):
    """What is seen stays where it is; where bones are mirrored Blender poses them in another way, but as far out."""
    ob, rig = limbs.bar()
    add_bulge(radius=1.0, amount=0.4, motion=motion, preset="BICEPS" if driven else "CUSTOM")
    transformed(rig, ob, scale)
    limbs.pose(rig, fore_L=((0, 0, 1), 110))
    if not driven:
        rig.pose.bones[bulge_of(rig)]["bulge"] = 0.8
        rig.update_tag()
    bpy.context.view_layer.update()
    before = scenes.world_positions(ob)
    amount = rig.pose.bones[bulge_of(rig)]["amount"]
    rig.pose.bones[bulge_of(rig)]["amount"] = 0.0
    rig.update_tag()
    bpy.context.view_layer.update()
    height = np.abs(scenes.world_positions(ob) - before).max()
    assert height > 0.1 * abs(scale[0])
    rig.pose.bones[bulge_of(rig)]["amount"] = amount
    rig.update_tag()
    out = evaluated_bone(rig, bulge_of(rig)).location.y * abs(rig.scale.x)
    apply({"armature": [rig], "mesh": [ob], "both": [rig, ob]}[who], location=True, rotation=True, scale=True)
    # Bones a few units from the origin are in single precision.
    assert evaluated_bone(rig, bulge_of(rig)).location.y * abs(rig.scale.x) == pytest.approx(out, rel=1e-5, abs=1e-6)
    if scale[0] < 0 and who != "mesh":
        return
    np.testing.assert_allclose(scenes.world_positions(ob), before, atol=1e-4 * height + 1e-5)


def test_an_uneven_scale_goes_along_the_bulge():
    ob, rig = limbs.bar(apart=False)
    add_bulge(radius=1.0, amount=0.4)
    name = bulge_of(rig)
    outward = np.array(rig.data.bones[name].matrix_local.col[1][:3])
    scale = np.array([1.0, 2.0, 3.0])
    rig.scale = scale
    apply([rig, ob], scale=True)
    limbs.pose(rig, fore_L=((0, 0, 1), 110))
    expected = 0.4 * np.linalg.norm(scale * outward) * bulge_share(110)
    assert evaluated_bone(rig, name).location.y == pytest.approx(expected, rel=1e-5)


def test_a_renamed_bulge_bone_bulges_as_before():
    _, rig = limbs.bar()
    add_bulge(radius=1.0, amount=0.4)
    rig.data.bones[bulge_of(rig)].name = "Muscle"
    limbs.pose(rig, fore_L=((0, 0, 1), 110))
    assert evaluated_bone(rig, "Muscle").location.y == pytest.approx(0.4 * bulge_share(110), rel=1e-5)
