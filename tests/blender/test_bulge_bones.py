# SPDX-License-Identifier: GPL-3.0-or-later
"""Bulge bones: how the skin bulges, which bones give them weights, and that removing them leaves nothing."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from skinning_tools.blender.helper_bones.records import find_helpers
from skinning_tools.blender.vertex_groups import read_columns
from tests.blender import joint_helper_scenes as limbs
from tests.blender import refusals, scenes
from tests.blender.joint_helper_scenes import BULGE_START, add_bulge, bulge_of, bulge_share, evaluated_bone

pytestmark = pytest.mark.usefixtures("extension")


# The skin


def test_the_skin_bulges_where_the_elbow_folds():
    ob, rig = limbs.bar(apart=False)
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["fore.L"].tail.z = 0.5
    bpy.ops.object.mode_set(mode="OBJECT")
    was = scenes.evaluated_positions(ob)
    add_bulge(radius=1.0, amount=0.4)
    np.testing.assert_allclose(scenes.evaluated_positions(ob), was, atol=1e-6)
    weights = read_columns(ob, [bulge_of(rig)])[0]
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    best = rest[weights.argmax()]
    np.testing.assert_allclose(best, [1.5, 0, 0.5], atol=0.06)
    assert weights.max() > 0.95
    # Over the skin, a radius of 1 from the middle of a side does not reach the other side.
    assert (weights[rest[:, 2] < -0.4] <= 0).all()
    limbs.pose(rig, fore_L=((0, 0, 1), 110))
    rig.pose.bones[bulge_of(rig)]["amount"] = 0.0
    rig.update_tag()
    bpy.context.view_layer.update()
    flat = scenes.evaluated_positions(ob)
    rig.pose.bones[bulge_of(rig)]["amount"] = 0.4
    rig.update_tag()
    bpy.context.view_layer.update()
    raised = scenes.evaluated_positions(ob) - flat
    assert raised[:, 2].max() == pytest.approx(0.4 * bulge_share(110) * weights.max(), abs=1e-3)
    np.testing.assert_allclose(raised[:, :2], 0, atol=1e-5)


def test_without_a_bend_at_rest_the_pose_tells_where_the_inside_is():
    ob, rig = limbs.bar(apart=False)
    limbs.pose(rig, upper_L=((1, 0, 0), 130), fore_L=((0, 0, 1), 60))
    upper, fore = (limbs.moved(rig, name)[:, :3] for name in ("upper.L", "fore.L"))
    folded = upper.T @ fore @ [1, 0, 0]
    add_bulge(radius=0.5)
    weights = read_columns(ob, [bulge_of(rig)])[0]
    side = np.array([vertex.co for vertex in ob.data.vertices])[weights.argmax()][1:]
    assert side @ folded[1:] / np.linalg.norm(side) / np.linalg.norm(folded[1:]) > 0.97


def test_scaling_grows_from_the_middle_of_the_limb():
    ob, rig = limbs.bar(apart=False)
    add_bulge(motion="SCALE", radius=1.0, amount=0.5)
    head = np.array(rig.data.bones[bulge_of(rig)].head_local)
    np.testing.assert_allclose(head, [1.5, 0, 0], atol=0.06)
    weights = read_columns(ob, [bulge_of(rig)])[0]
    limbs.pose(rig, fore_L=((1, 0, 0), 120))
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    best = int(weights.argmax())
    moved = scenes.evaluated_positions(ob)[best] - rest[best]
    np.testing.assert_allclose(moved, weights[best] * 0.5 * (rest[best] - head), atol=2e-6)


def test_the_cursor_is_taken_back_to_rest_with_the_bone():
    ob, rig = limbs.bar()
    limbs.pose(rig, upper_L=((1, 0.2, 0.3), 80))
    place = Vector((1.0, 0.5, 0.1))
    to_rig = rig.matrix_world.inverted() @ ob.matrix_world
    carried = Matrix([*limbs.moved(rig, "upper.L").tolist(), [0, 0, 0, 1]])
    bpy.context.scene.cursor.location = rig.matrix_world @ carried @ to_rig @ place
    add_bulge(center="CURSOR", radius=0.4)
    weights = read_columns(ob, [bulge_of(rig)])[0]
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    np.testing.assert_allclose(rest[weights.argmax()], place, atol=0.06)


def test_the_radius_is_in_the_scenes_units():
    """The bulge is the same for any scales of mesh and armature."""
    ob, rig = limbs.bar(apart=False)
    # Through space, as the way over the skin from a point on an edge is up to rounding.
    add_bulge(radius=0.8, amount=0.5, along_surface=False)
    expected = read_columns(ob, [bulge_of(rig)])
    bpy.ops.skinning.remove_bulge_bone(all_bones=True)
    for each in (ob, rig):
        each.scale = (3, 3, 3)
    bpy.context.view_layer.update()
    add_bulge(radius=2.4, amount=0.5, along_surface=False)
    found = read_columns(ob, [bulge_of(rig)])
    np.testing.assert_allclose(np.maximum(found, 0), np.maximum(expected, 0), atol=1e-6)
    limbs.pose(rig, fore_L=((1, 0, 0), 120))
    assert evaluated_bone(rig, bulge_of(rig)).location.y == pytest.approx(0.4, abs=1e-5)


def test_clothes_bulge_along_and_shoes_do_not():
    ob, rig = limbs.bar(apart=False)
    for name, offset in (("Sleeve", (0, 0, 0.05)), ("Shoe", (0, 0, 5.0))):
        other = ob.copy()
        other.data, other.name = ob.data.copy(), name
        other.data.transform(Matrix.Translation(offset))
        bpy.context.scene.collection.objects.link(other)
    add_bulge(radius=1.0)
    name = bulge_of(rig)
    assert read_columns(bpy.data.objects["Sleeve"], [name]).max() > 0.9
    assert name not in bpy.data.objects["Shoe"].vertex_groups


def test_rows_keep_to_four_bones():
    ob, rig = limbs.bar()
    count = len(ob.data.vertices)
    for name in ("fore.L",):
        ob.vertex_groups[name].add(list(range(count)), 0.2, "REPLACE")
    add_bulge(radius=1.5)
    bones = ["upper.L", "fore.L", bulge_of(rig)]
    assert ((read_columns(ob, bones) > 0).sum(axis=0)).max() <= 4


# Presets


@pytest.fixture
def person(shared_data):
    return limbs.human(shared_data("human_rig.npz"))


@pytest.mark.parametrize(
    ("preset", "bone", "driver", "side"),
    [
        ("BICEPS", "upperarm02.L", "", (0, 0, 1)),
        ("CALF", "lowerleg01.L", "foot.L", (0, 0, -1)),
        ("CHEST", "spine02", "upperarm01.L", (0, 0, 1)),
        ("BELLY", "spine04", "", (0, 0, 1)),
        ("BREATHING", "spine02", "", (0, 0, 1)),
        ("FAT", "upperleg02.L", "lowerleg01.L", (0, 0, -1)),
    ],
)
def test_presets_are_on_the_right_side_of_a_person(person, preset, bone, driver, side):
    """Y is up in its own space, and it faces Z."""
    ob, rig = person
    bpy.ops.skinning.add_bulge_bone(bone=bone, driver_bone=driver, preset=preset)
    name = bulge_of(rig)
    assert np.array(rig.data.bones[name].matrix_local)[:3, 1] @ side > 0.6
    assert (read_columns(ob, [name]) > 0).sum() > 20
    # One of a place, or one for each axis of a scale.
    assert len(rig.animation_data.drivers) == (3 if preset == "BREATHING" else 1)


def test_both_sides_of_a_person_are_symmetric(person):
    ob, rig = person
    bpy.ops.skinning.add_bulge_bone(bone="upperarm02.L", mirror=True)
    left, right = (helper.skin[0] for helper in find_helpers(rig))
    assert bpy.utils.flip_name(left) == right
    heads = [np.array(rig.data.bones[name].head_local) for name in (left, right)]
    np.testing.assert_allclose(heads[1], heads[0] * [-1, 1, 1], atol=2e-6)
    weights = read_columns(ob, [left, right])
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    moved = weights > 0
    assert moved[0].sum() == moved[1].sum() > 20
    order = [np.lexsort(np.round(rest[m] * [sign, 1, 1], 3).T) for m, sign in zip(moved, (1, -1), strict=True)]
    np.testing.assert_allclose(weights[0][moved[0]][order[0]], weights[1][moved[1]][order[1]], atol=2e-6)


# What is left


def test_removing_leaves_nothing():
    ob, rig = limbs.bar(joints=(2.0, 4.0))
    bpy.ops.object.mode_set(mode="POSE")
    before = limbs.state(rig, [ob])
    add_bulge(radius=1.0)
    add_bulge("fore.L", preset="BELLY", motion="SCALE")
    bpy.ops.skinning.add_bone_links(joints="fore.L", count=2)
    during = limbs.state(rig, [ob])
    for same in ("place", "mode", "active bone", "data-blocks"):
        assert during[same] == before[same]
    bpy.ops.skinning.remove_bone_links(all_joints=True)
    bpy.ops.skinning.remove_bulge_bone(all_bones=True)
    assert limbs.state(rig, [ob]) == before


def test_other_drivers_and_the_action_stay():
    ob, rig = limbs.bar()
    curve = rig.pose.bones["fore.L"].driver_add("location", 0)
    curve.driver.expression = "0.5"
    rig.pose.bones["upper.L"].keyframe_insert("location", frame=1)
    bpy.context.view_layer.update()
    before = limbs.state(rig, [ob])
    add_bulge(radius=1.0)
    bpy.ops.skinning.remove_bulge_bone(bones="upper.L")
    assert limbs.state(rig, [ob]) == before


def test_renamed_bones_stay_driven_and_go_whole():
    ob, rig = limbs.bar()
    before = read_columns(ob, ["upper.L"])
    add_bulge(radius=1.0, amount=0.5)
    rig.data.bones[bulge_of(rig)].name = "Muscle.L"
    rig.data.bones["fore.L"].name = "Forearm.L"
    limbs.pose(rig, Forearm_L=((1, 0, 0), 90))
    assert evaluated_bone(rig, "Muscle.L").location.y == pytest.approx(0.5 * bulge_share(90), abs=1e-5)
    assert find_helpers(rig)[0].end == "Forearm.L"
    bpy.ops.skinning.remove_bulge_bone(bones="Muscle.L")
    assert rig.animation_data is None
    np.testing.assert_array_equal(read_columns(ob, ["upper.L"]), before)
    assert [group.name for group in ob.vertex_groups] == ["upper.L", "Forearm.L"]


def test_plays_without_the_extension_and_with_scripts_off(tmp_path):
    ob, rig = limbs.bar()
    for motion in ("MOVE", "SCALE"):
        add_bulge(radius=1.0, amount=0.5, motion=motion)
    limbs.pose(rig, fore_L=((1, 0, 0.3), 80))
    expected = scenes.evaluated_positions(ob)
    path, output = tmp_path / "bulge.blend", tmp_path / "points.npy"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    limbs.play_elsewhere(path, "Bar", output)
    np.testing.assert_array_equal(np.load(output), expected)


# What is refused, before anything is changed


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"bone": "elbow"}, "NO_BONE"),
        ({"driver_bone": "elbow"}, "NO_BONE"),
        ({"bone": "fore.L"}, "No driver bone is known"),
        ({"preset": "CHEST"}, "No driver bone is known"),
        ({"angle_end": BULGE_START}, "same angle"),
        ({"radius": -1.0}, "Radius"),
        ({"mirror": True}, "on the other side"),
        ({"radius": 1e-6}, "it would move nothing"),
    ],
)
def test_wrong_settings_are_refused(given, match):
    ob, rig = limbs.bar()
    before = limbs.state(rig, [ob])
    with refusals.raises_unmet(match):
        add_bulge(**given)
    assert limbs.state(rig, [ob]) == before


def test_bones_and_meshes_that_cannot_bulge():
    ob, rig = limbs.bar()
    rig.data.bones["upper.L"].use_deform = False
    with refusals.raises_unmet("BONE_DOES_NOT_DEFORM"):
        add_bulge()
    rig.data.bones["upper.L"].use_deform = True
    ob.vertex_groups["upper.L"].lock_weight = True
    with pytest.raises(RuntimeError, match=r'locked.*"upper\.L" of object "Bar"'):
        add_bulge()
    ob.vertex_groups.remove(ob.vertex_groups["upper.L"])
    with pytest.raises(RuntimeError, match="no weights"):
        add_bulge()
    rig.data.bones.active = None
    with pytest.raises(RuntimeError, match="is active"):
        add_bulge("")
    with pytest.raises(RuntimeError, match="has no bulge bones"):
        bpy.ops.skinning.remove_bulge_bone(all_bones=True)
    ob.modifiers.clear()
    with refusals.raises_unmet("NO_DEFORMED_MESH"):
        add_bulge()


def test_a_bulge_of_a_bulge_is_refused():
    _, rig = limbs.bar()
    add_bulge()
    with pytest.raises(RuntimeError, match="is a helper bone itself"):
        add_bulge(bulge_of(rig), preset="BELLY")
    with pytest.raises(RuntimeError, match="None of the bones has a bulge"):
        bpy.ops.skinning.remove_bulge_bone(bones="fore.L")


def test_meshes_without_faces_and_with_points_only():
    ob, rig = limbs.bar(apart=False)
    places = np.column_stack([np.linspace(0, 3, 40), np.zeros(40), np.full(40, 0.5)])
    points = scenes.mesh_object(places, name="Points")
    points.vertex_groups.new(name="upper.L").add(list(range(40)), 1.0, "REPLACE")
    points.modifiers.new("Armature", "ARMATURE").object = rig
    bpy.data.objects.remove(ob)
    bpy.context.view_layer.objects.active = rig
    add_bulge(radius=0.5)
    assert read_columns(points, [bulge_of(rig)]).max() > 0.9
