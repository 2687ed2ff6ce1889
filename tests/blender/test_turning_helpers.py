# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers that turn: clavicle and scapula, which follow the arm, and cloth, which a leg pushes out."""

import bpy
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from skinning_tools.blender.helper_bones import shared_weights
from skinning_tools.blender.helper_bones.records import find_helpers
from skinning_tools.blender.vertex_groups import read_columns, write_weights
from skinning_tools.core.smooth_step import smooth_step
from tests.blender import joint_helper_scenes as limbs
from tests.blender import scenes
from tests.blender.joint_helper_scenes import evaluated_bone
from tests.core.skinned_shapes import cuboid

pytestmark = pytest.mark.usefixtures("extension")

UP, FRONT, LEFT = np.eye(3)[2], -np.eye(3)[1], np.eye(3)[0]
SHOULDER = {"bone": "chest", "driver_bone": "arm.L"}


def bust(tilt=0.0):
    """A bar along x, from hand to hand: a chest, clavicles and arms, which point down by ``tilt`` degrees at rest; mesh
    and armature."""
    scenes.empty_scene()
    rig = scenes.link(bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig")))
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones
    chest = bones.new("chest")
    chest.head, chest.tail = (0, 0, -1), (0, 0, 0.6)
    down = np.radians(tilt)
    for side, sign in (("L", 1), ("R", -1)):
        parent = chest
        places = [(0.4, 0, 0), (2, 0, 0), (2 + 3 * np.cos(down), 0, -3 * np.sin(down))]
        for name, head, tail in (("clavicle", *places[:2]), ("arm", *places[1:])):
            bone = bones.new(f"{name}.{side}")
            bone.head, bone.tail = Vector(head) * Vector((sign, 1, 1)), Vector(tail) * Vector((sign, 1, 1))
            bone.roll, bone.parent = 0.3, parent
            parent = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    rest, triangles = cuboid(60, 6, 12.0)
    rest[:, 0] -= 6
    ob = scenes.mesh_object(rest, triangles.tolist(), name="Bust")
    x = np.abs(rest[:, 0])
    arm, outer = smooth_step(x - 1.5), smooth_step((x - 0.2) / 1.2)
    left = rest[:, 0] > 0
    columns = [1 - outer, *((w * s) for s in (left, ~left) for w in (outer - outer * arm, outer * arm))]
    names = ["chest", "clavicle.L", "arm.L", "clavicle.R", "arm.R"]
    write_weights(ob, names, np.tile(np.arange(5, dtype=np.int32), (len(rest), 1)), np.array(columns, float).T)
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    bpy.context.view_layer.objects.active = rig
    bpy.context.view_layer.update()
    return ob, rig


def point(rig, direction, name="arm.L", twist=0.0) -> None:
    """Turn a bone the shortest way to a direction in the armature's space; its parents are at rest."""
    bone = rig.pose.bones[name]
    axes = bone.bone.matrix_local.to_3x3()
    local = axes.transposed() @ Vector(direction).normalized()
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = Vector((0, 1, 0)).rotation_difference(local) @ Quaternion((0, 1, 0), twist)
    bpy.context.view_layer.update()


def raised(degrees: float) -> np.ndarray:
    """The direction of a left arm that is so far from hanging down, to the side."""
    return np.sin(np.radians(degrees)) * LEFT - np.cos(np.radians(degrees)) * UP


def add(preset: str, **given):
    assert bpy.ops.skinning.add_bulge_bone(preset=preset, **SHOULDER | given) == {"FINISHED"}
    return find_helpers(bpy.context.view_layer.objects.active)[-1]


# The shoulder


@pytest.mark.parametrize("preset", ["CLAVICLE", "SCAPULA"])
@pytest.mark.parametrize("tilt", [0, 50])
def test_a_third_of_the_arms_elevation_beyond_30_degrees(preset, tilt):
    """From any rest pose, whatever the arm's twist; the outer end of the bone goes up."""
    _, rig = bust(tilt)
    helper = add(preset)
    rig.pose.bones[helper.skin[0]]["reach"] = 0.0
    for elevation in (10, 60, 90, 150):
        point(rig, raised(elevation), twist=0.7)
        expected = (max(elevation, 30) - (90 - tilt)) / 3
        for name in helper.skin:
            outward = limbs.moved(rig, name)[:, :3] @ LEFT
            assert np.degrees(np.arctan2(outward @ UP, outward @ LEFT)) == pytest.approx(expected, abs=0.02)


def test_reaching_across_turns_it_forward():
    """By a share of how far the arm points across: 45° to the front at 0, from −45° to the side to 90°."""
    _, rig = bust()
    helper = add("CLAVICLE")
    rig.pose.bones[helper.skin[0]]["amount"] = 0.0
    for direction, angle in ((LEFT, -45), (FRONT, 45), (FRONT - LEFT, 90), (-UP, 0)):
        point(rig, direction)
        outward = limbs.moved(rig, helper.skin[0])[:, :3] @ LEFT
        turned = np.degrees(np.arctan2(outward @ FRONT, outward @ LEFT))
        assert turned == pytest.approx(0.25 * (angle + 45), abs=0.02)


def test_where_the_bones_of_the_girdle_are():
    """One for each bone that gives weights; the clavicle turns about its inner end, the scapula at the arm's joint."""
    ob, rig = bust()
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    for preset, head, side in (("CLAVICLE", 0.4, UP + FRONT), ("SCAPULA", 2.0, -FRONT)):
        helper = add(preset)
        assert helper.carriers == ("chest", "clavicle.L")
        assert helper.skin == tuple(f"arm_{preset.lower()}_{number}.L" for number in (1, 2))
        np.testing.assert_allclose(rig.data.bones[helper.skin[0]].head_local, [head, 0, 0], atol=1e-6)
        weights = np.maximum(read_columns(ob, helper.skin), 0).sum(axis=0)
        assert (weights @ rest / weights.sum()) @ side > 0.1
    point(rig, raised(150))
    assert (evaluated_bone(rig, "arm_scapula_1.L").head - rig.data.bones["arm.L"].head_local).length < 1e-6


@pytest.fixture
def many_influences(monkeypatch):
    """As on a mesh that has vertices with so many bones: none is left out."""
    monkeypatch.setattr(shared_weights, "_MOST_INFLUENCES", 9)


@pytest.mark.usefixtures("many_influences")
def test_nothing_changes_while_the_arm_is_at_rest():
    """Whatever chest and clavicle do."""
    ob, rig = bust(30)
    poses = np.random.default_rng(3).normal(size=(2, 2, 4))
    results = []
    for added in (False, True):
        for preset in ("CLAVICLE", "SCAPULA") if added else ():
            add(preset)
        for turns in poses:
            for name, turn in zip(("chest", "clavicle.L"), turns, strict=True):
                rig.pose.bones[name].rotation_mode = "QUATERNION"
                rig.pose.bones[name].rotation_quaternion = Quaternion(turn).normalized()
            results.append(scenes.evaluated_positions(ob))
    np.testing.assert_allclose(results[2:], results[:2], atol=1e-5)


def test_a_raised_arm_keeps_more_of_its_cross_section():
    ob, rig = bust(40)
    area = {}
    for label in ("without", "with"):
        point(rig, raised(150))
        points = scenes.evaluated_positions(ob)[:-2].reshape(61, 24, 3)
        middle = points.mean(axis=1, keepdims=True)
        rings = np.cross(points - middle, np.roll(points, -1, axis=1) - middle).sum(axis=1)
        area[label] = np.linalg.norm(rings, axis=1)[36:].min() / 2
        point(rig, raised(50))
        add("CLAVICLE")
    assert area["without"] < 0.75
    assert area["with"] > area["without"] + 0.05


@pytest.mark.usefixtures("many_influences")
def test_the_other_side_is_its_mirror_image():
    """Also in the middle, where both take weights of the chest."""
    ob, rig = bust(20)
    add("SCAPULA", mirror=True, along_surface=False)
    assert [helper.end for helper in find_helpers(rig)] == ["arm.L", "arm.R"]
    direction = np.array([0.3, -0.9, 0.4])
    point(rig, direction)
    point(rig, direction * [-1, 1, 1], "arm.R")
    points = scenes.evaluated_positions(ob)
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    order = [np.lexsort(np.round(rest * [sign, 1, 1], 4).T) for sign in (1, -1)]
    np.testing.assert_allclose(points[order[0]], points[order[1]] * [-1, 1, 1], atol=1e-5)


def test_all_expressions_need_no_python():
    _, rig = bust(20)
    for preset in ("CLAVICLE", "SCAPULA"):
        add(preset)
    for measure in ("RAISE", "ACROSS", "OUT"):
        for motion in ("MOVE", "TURN"):
            add("CUSTOM", bone="clavicle.L", measure=measure, motion=motion, angle_start=0.1, angle_end=2.0)
    drivers = [curve.driver for curve in rig.animation_data.drivers]
    assert len(drivers) == 2 * 2 + 3 * 2
    for driver in drivers:
        assert driver.is_simple_expression
        assert driver.is_valid
        assert len(driver.expression) < 255
    ob = bpy.data.objects["Bust"]
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    np.testing.assert_allclose(scenes.evaluated_positions(ob), rest, atol=1e-5)


def test_removing_leaves_nothing():
    """One side first, whose bones the other side had pushed out of some vertices' four."""
    ob, rig = bust()
    before = limbs.state(rig, [ob])
    for preset in ("CLAVICLE", "SCAPULA"):
        add(preset, mirror=True)
    bpy.ops.skinning.remove_bulge_bone(bones="clavicle.L")
    assert [helper.end for helper in find_helpers(rig)] == ["arm.R", "arm.R"]
    bpy.ops.skinning.remove_bulge_bone(all_bones=True)
    assert limbs.state(rig, [ob]) == before


def test_painted_weights_go_to_the_bone_that_carried_them():
    ob, _ = bust()
    helper = add("SCAPULA")
    second = read_columns(ob, [helper.skin[1]])[0]
    vertex = int(second.argmax())
    ob.vertex_groups[helper.skin[1]].add([vertex], 0.9, "REPLACE")
    had = np.maximum(read_columns(ob, ["clavicle.L", "chest"])[:, vertex], 0)
    first = max(read_columns(ob, [helper.skin[0]])[0][vertex], 0)
    bpy.ops.skinning.remove_bulge_bone(all_bones=True)
    has = np.maximum(read_columns(ob, ["clavicle.L", "chest"])[:, vertex], 0)
    np.testing.assert_allclose(has, np.minimum(np.add(had, (0.9, first)), 1), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"driver_bone": ""}, "No driver bone is known"),
        ({"driver_bone": "chest"}, "cannot drive a bulge on itself"),
        ({"bone": "arm.L", "driver_bone": "clavicle.L", "preset": "CLOTH", "mesh": "Skirt"}, 'no mesh "Skirt"'),
        ({"angle_start": 2.0, "angle_end": 1.0}, "ends before it begins"),
        ({"bone": "clavicle.L", "driver_bone": "chest"}, "is in the middle"),
    ],
)
def test_wrong_settings_are_refused(given, match):
    ob, rig = bust()
    before = limbs.state(rig, [ob])
    if match == "is in the middle":
        given = {"bone": "chest", "driver_bone": "neck"}
        bpy.ops.object.mode_set(mode="EDIT")
        neck = rig.data.edit_bones.new("neck")
        neck.head, neck.tail, neck.parent = (0, 0, 0.6), (0, 0, 1), rig.data.edit_bones["chest"]
        bpy.ops.object.mode_set(mode="OBJECT")
        before = limbs.state(rig, [ob])
    with pytest.raises(RuntimeError, match=match):
        bpy.ops.skinning.add_bulge_bone(**{"preset": "SCAPULA"} | SHOULDER | given)
    assert limbs.state(rig, [ob]) == before


# Cloth


def hips():
    """Hips with two thighs, and a skirt that hangs on the hips; body, skirt and armature. All stand along Z."""
    scenes.empty_scene()
    rig = scenes.link(bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig")))
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones
    root = bones.new("hips")
    root.head, root.tail = (0, 0, 4), (0, 0, 5)
    for side, sign in (("L", 1), ("R", -1)):
        thigh = bones.new(f"thigh.{side}")
        thigh.head, thigh.tail, thigh.parent, thigh.roll = (0.5 * sign, 0, 4), (0.5 * sign, 0, 0), root, 0.6
    bpy.ops.object.mode_set(mode="OBJECT")
    meshes = []
    for name, width, height in (("Body", 1.0, 5.0), ("Skirt", 4.0, 4.5)):
        rest, triangles = cuboid(30, 8, height)
        upright = np.column_stack([width * rest[:, 1], width * rest[:, 2], 5 - rest[:, 0]])
        # A skirt is open.
        open_ended = (triangles < len(rest) - 2).all(axis=1) | (name == "Body")
        ob = scenes.mesh_object(upright, triangles[open_ended].tolist(), name=name)
        ob.vertex_groups.new(name="hips").add(list(range(len(rest))), 1.0, "REPLACE")
        ob.modifiers.new("Armature", "ARMATURE").object = rig
        meshes.append(ob)
    bpy.context.view_layer.objects.active = rig
    bpy.context.view_layer.update()
    return (*meshes, rig)


@pytest.mark.parametrize(("around", "side"), [(0.0, FRONT), (np.pi / 2, None)])
def test_a_leg_pushes_the_skirt_out_on_its_side_only(around, side):
    """By its swing beyond 5°, and only toward the side on which the bone is."""
    body, skirt, rig = hips()
    bpy.ops.skinning.add_bulge_bone(bone="hips", driver_bone="thigh.L", preset="CLOTH", mesh="Skirt", around=around)
    (helper,) = find_helpers(rig)
    assert helper.skin == ("thigh_cloth.L",)
    assert helper.skin[0] not in body.vertex_groups
    weights = np.maximum(read_columns(skirt, helper.skin)[0], 0)
    rest = np.array([vertex.co for vertex in skirt.data.vertices])
    heavy = weights > 0.5
    if side is None:
        side = LEFT * np.sign((weights @ rest)[0])
    assert heavy.any()
    assert (rest[heavy] @ side).min() > -0.5
    # The waist, and the other side, hang on the hips; before the thigh, all follows.
    assert weights[(rest[:, 2] > 4) | (rest @ side < -1)].max() == 0
    beside = np.abs((rest - rig.data.bones["thigh.L"].head_local) @ np.cross(side, UP))
    assert weights[(rest @ side > 1.9) & (rest[:, 2] < 3.1) & (beside < 0.6)].min() > 0.99
    for swing in (-60, 4, 40, 120):
        for other in (0.0, 0.2):
            direction = np.sin(np.radians(swing)) * side - np.cos(np.radians(swing)) * UP
            point(rig, direction + other * np.cross(side, UP), "thigh.L")
            hangs = limbs.moved(rig, helper.skin[0])[:, :3] @ -UP
            expected = max(swing - 5, 0)
            assert np.degrees(np.arctan2(hangs @ side, hangs @ -UP)) == pytest.approx(expected, abs=0.02)
    assert np.abs(scenes.evaluated_positions(skirt) - rest).max() > 1
    bpy.ops.skinning.remove_bulge_bone(all_bones=True)
    assert [group.name for group in skirt.vertex_groups] == ["hips"]
