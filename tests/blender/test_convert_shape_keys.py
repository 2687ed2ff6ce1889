# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Shape Keys to Bones: sliders play what the keys do, with scripts off and on a body, and bad input is refused
without a trace."""

import re
from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.blender.actions import property_path
from skinning_tools.blender.animation.shape_key_reader import key_coordinates
from skinning_tools.features.shape_keys.conversion import convert_shape_keys
from tests.blender import command_runs, moving_meshes, panel_recorder, refusals, scenes
from tests.blender.shape_key_scenes import NAMES, face, on_body, played, shapes, sheet, turn, world

pytestmark = pytest.mark.usefixtures("extension", "scene")

convert = partial(refusals.finished, "convert_shape_keys", bone_count=5, max_influences=4)
refused = partial(refusals.refused, "convert_shape_keys")
# Of single precision, by which constraints may turn a bone at rest.
ROUNDING = 5e-6
# Of what the keys move, up to 0.4.
CLOSE = 0.01


def made(name: str = "Face"):
    """The skinned object and the rig."""
    return bpy.data.objects[f"{name}_skinned"], bpy.data.objects[f"{name}_rig"]


def test_sliders_do_what_keys_do():
    face()
    convert()
    points, _ = sheet()
    assert np.abs(played(*made()) - points).max() < ROUNDING
    for name, delta in zip(NAMES, shapes(points), strict=True):
        assert np.abs(played(*made(), **{name: 1.0}) - points - delta).max() < CLOSE


def test_mixtures_and_values_beyond_are_sums():
    face()
    convert()
    points, _ = sheet()
    first, second, _ = shapes(points)
    mixed = played(*made(), **{NAMES[0]: 0.5, NAMES[1]: 0.8})
    assert np.abs(mixed - points - 0.5 * first - 0.8 * second).max() < 2 * CLOSE
    negative = played(*made(), **{NAMES[1]: -0.5})
    assert np.abs(negative - points + 0.5 * second).max() < 2 * CLOSE


def test_sliders_have_names_ranges_and_defaults_of_keys():
    block = face().data.shape_keys.key_blocks[NAMES[1]]
    block.slider_min, block.slider_max = -1.0, 2.0
    convert()
    rig = made()[1]
    assert set(NAMES) <= set(rig.keys())
    shown = rig.id_properties_ui(NAMES[1]).as_dict()
    assert (shown["min"], shown["max"], shown["default"]) == (-1.0, 2.0, 0.0)
    assert rig.is_property_overridable_library(f'["{NAMES[0]}"]')


def test_no_driver_needs_scripts():
    face()
    convert()
    blocks = (*bpy.data.objects, *bpy.data.meshes, *bpy.data.armatures, *bpy.data.shape_keys)
    drivers = [d.driver for b in blocks if b.animation_data for d in b.animation_data.drivers]
    assert len(drivers) == len(NAMES)
    assert {driver.type for driver in drivers} == {"SUM"}


def test_plays_after_reload_without_scripts(tmp_path):
    face()
    convert()
    points, _ = sheet()
    before = played(*made(), **{NAMES[0]: 1.0})
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "face.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "face.blend"), use_scripts=False)
    assert np.abs(played(*made()) - points).max() < ROUNDING
    np.testing.assert_allclose(played(*made(), **{NAMES[0]: 1.0}), before, atol=ROUNDING)


def test_source_is_as_it_was():
    ob = face()
    ob.location, ob.rotation_euler, ob.scale = (1, 2, 3), (0.3, 0.2, 0.1), (2, 2, 2)
    keys = ob.data.shape_keys
    keys.key_blocks[NAMES[0]].value = 0.7
    before = [key_coordinates(block).copy() for block in keys.key_blocks], [block.value for block in keys.key_blocks]
    bpy.context.view_layer.update()
    place = world(ob)
    convert()
    assert bpy.context.view_layer.objects.active == ob
    np.testing.assert_array_equal([key_coordinates(block) for block in keys.key_blocks], before[0])
    assert [block.value for block in keys.key_blocks] == before[1]
    skinned, rig = made()
    played(skinned, rig, **{NAMES[0]: keys.key_blocks[NAMES[0]].value})
    assert np.abs(world(skinned) - place).max() < 2 * CLOSE


def test_muted_keys_are_left_out():
    ob = face()
    ob.data.shape_keys.key_blocks[NAMES[1]].mute = True
    convert()
    assert NAMES[1] not in made()[1]


@pytest.mark.parametrize(
    ("symmetric", "note"), [(True, ""), (False, f"mirror image in X of these: {', '.join(NAMES[1:])}")]
)
def test_keys_without_a_mirror_image_are_noted(symmetric, note):
    ob = face()
    if symmetric:
        for name in NAMES[1:]:
            ob.shape_key_remove(ob.data.shape_keys.key_blocks[name])
        points = np.array([each.co for each in ob.data.shape_keys.reference_key.points])
        points[:, 2] += 0.2 * np.abs(points[:, 0])
        ob.data.shape_keys.key_blocks[NAMES[0]].points.foreach_set("co", points.ravel().astype(np.float32))
    result, _ = scenes.drain(convert_shape_keys(bpy.context, ob, bone_count=4, symmetric=True))
    assert ("without Symmetric" in result.summary()) != symmetric
    assert note in result.summary()


def test_keys_of_a_group_and_relative_to_others():
    ob = face()
    keys, (points, _) = ob.data.shape_keys.key_blocks, sheet()
    first = shapes(points)[0]
    ob.vertex_groups.new(name="half").add(list(range(40)), 0.5, "REPLACE")
    keys[NAMES[0]].vertex_group = "half"
    keys[NAMES[1]].relative_key = keys[NAMES[2]]
    convert(bone_count=12)
    masked = first * np.where(np.arange(len(points)) < 40, 0.5, 0.0)[:, None]
    assert np.abs(played(*made(), **{NAMES[0]: 1.0}) - points - masked).mean() < CLOSE
    difference = key_coordinates(keys[NAMES[1]]) - key_coordinates(keys[NAMES[2]])
    assert np.abs(played(*made(), **{NAMES[1]: 1.0}) - points - difference).mean() < CLOSE


def test_one_key_is_enough():
    ob = scenes.grid()
    ob.shape_key_add(name="Basis")
    block = ob.shape_key_add(name="up")
    block.points[3].co.z += 1.0
    convert(bone_count=2)
    rest = played(*made("Flag"))
    assert played(*made("Flag"), up=1.0)[3, 2] - rest[3, 2] > 0.9


def test_300_keys():
    ob, (points, _) = face(), sheet()
    random = np.random.default_rng(0)
    for number in range(297):
        delta = random.normal(0, 0.2, 3) * np.clip(points @ random.normal(0, 1, 3), 0, 1)[:, None]
        block = ob.shape_key_add(name=f"Key {number}")
        block.points.foreach_set("co", (points + delta).astype(np.float32).ravel())
    convert(bone_count=3, max_influences=2)
    rig = made()[1]
    assert len(rig["skinning_sliders"]) == 300
    moved = played(*made(), **{"Key 296": 1.0}) - points
    wanted = key_coordinates(ob.data.shape_keys.key_blocks["Key 296"]) - points
    assert np.vdot(moved, wanted) > 0.5 * np.vdot(wanted, wanted)


def test_existing_property_of_that_name_stays():
    ob, armature = on_body()
    armature[NAMES[0]] = 7
    bpy.context.view_layer.objects.active = ob
    convert()
    rig = made()[1]
    assert rig[NAMES[0]] == 7
    assert f"{NAMES[0]}.001" in rig["skinning_sliders"]


def test_face_on_a_body_follows_its_head():
    ob, armature = on_body()
    convert(bone_count=8)
    skinned, rig = made()
    assert {bone.parent.name for bone in rig.data.bones if bone.name not in armature.data.bones} == {"head"}
    assert set(armature.data.bones.keys()) == {"neck", "head"}
    keys = ob.data.shape_keys.key_blocks
    for angles in ((0.4, 0.1, 0.2), (-0.5, 0.6, 0.0)):
        turn(armature, angles)
        turn(rig, angles)
        played(skinned, rig)
        assert np.abs(world(skinned) - world(ob)).max() < 1e-5
        played(skinned, rig, **{NAMES[1]: 1.0})
        keys[NAMES[1]].value = 1.0
        assert np.abs(world(skinned) - world(ob)).mean() < 4 * CLOSE
        keys[NAMES[1]].value = 0.0


def test_bones_are_named_by_sliders():
    face()
    convert(bone_count=3)
    bones = made()[1].data.bones.keys()
    assert len(bones) == 3
    assert all(name.startswith(("jaw", "brow", "odd_name")) for name in bones)


def test_names_of_a_body_are_not_taken():
    ob, armature = on_body()
    armature.data.bones["neck"].name = "jaw"
    bpy.context.view_layer.objects.active = ob
    convert(bone_count=3)
    rig = made()[1]
    assert {bone.name for bone in rig.data.bones["jaw"].children} == {"head"}
    assert len(rig.data.bones) == 5


def test_weights_of_a_body_stay():
    ob, _ = on_body()
    convert()
    skinned, count = made()[0], 0
    for vertex, other in zip(ob.data.vertices, skinned.data.vertices, strict=True):
        before = {ob.vertex_groups[g.group].name: g.weight for g in vertex.groups}
        after = {skinned.vertex_groups[g.group].name: g.weight for g in other.groups}
        count += 1
        assert after.get("neck", 0.0) == before.get("neck", 0.0)
        assert sum(after.values()) == pytest.approx(sum(before.values()), abs=1e-4)
    assert count == len(sheet()[0])


def test_cancelled_leaves_nothing():
    ob = face()
    before = moving_meshes.state()
    steps = convert_shape_keys(bpy.context, ob, bone_count=3)
    for fraction, _ in steps:
        if fraction > 0.93:
            break
    steps.close()
    assert moving_meshes.state() == before


def change_keys(ob, act):
    act(ob.data.shape_keys)
    bpy.context.view_layer.update()


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda keys: setattr(keys, "use_relative", False), "ABSOLUTE_KEYS"),
        (lambda keys: [setattr(block, "mute", True) for block in keys.key_blocks], "muted"),
        (
            lambda keys: [
                b.points.foreach_set("co", key_coordinates(keys.reference_key).ravel()) for b in keys.key_blocks
            ],
            "No shape key",
        ),
        (lambda keys: setattr(keys.key_blocks[2].points[5], "co", (float("nan"), 0, 0)), "vertex 5"),
    ],
)
def test_keys_that_cannot_be_used(act, text):
    change_keys(face(), act)
    if "nan" not in text and text != "vertex 5":
        refused(text)
        return
    with pytest.raises(RuntimeError, match=text):
        bpy.ops.skinning.convert_shape_keys()
    assert "Face_rig" not in bpy.data.objects


def test_without_keys():
    scenes.grid()
    refused("no shape keys")


def test_other_objects():
    scenes.link(bpy.data.objects.new("Empty", None))
    refused("NOT_A_MESH")


@pytest.mark.parametrize("scale", [(1, 2, 1), (-1, 1, 1)])
def test_scales_that_turn_bones(scale):
    face().scale = scale
    bpy.context.view_layer.update()
    refused("unevenly or mirrored")


def test_more_bones_than_vertices():
    face()
    refused("too few for 82 bones", bone_count=82)


@pytest.mark.parametrize(
    ("given", "text"), [({"bone_count": 0}, "Bones must"), ({"max_influences": 0}, "Influences must")]
)
def test_settings_that_make_no_sense(given, text):
    face()
    refused(text, **given)


def test_command_line(tmp_path, capsys):
    face()
    path = tmp_path / "face.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    given = "--object", "Face", "--bones", "5", "--influences", "3", "--input", str(path), "--overwrite"
    assert command_runs.run("convert-shape-keys", *given) == 0
    assert re.search(r"^ *Sliders +3$", capsys.readouterr().out, re.MULTILINE)
    bpy.ops.wm.open_mainfile(filepath=str(path))
    assert len(made()[1].data.bones) == 5


def test_panel_shows_figures_and_sliders():
    face()
    convert()
    bpy.context.view_layer.objects.active = made()[1]
    shown = panel_recorder.drawn(bpy.types.SKINNING_PT_face_sliders).properties
    assert shown == [property_path(name) for name in NAMES]
    bpy.context.view_layer.objects.active = made()[0]
    assert "Worst Slider" in panel_recorder.drawn(bpy.types.SKINNING_PT_shape_keys).texts
