# SPDX-License-Identifier: GPL-3.0-or-later
"""Several objects to one armature: which are converted, refusals, and cases that only seem to require one."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender import background
from skinning_tools.blender.conversions import result_of
from skinning_tools.core import memory
from skinning_tools.features.convert import conversion
from skinning_tools.features.convert.chosen_sources import reason_not_to_convert
from skinning_tools.features.convert.settings import ConvertSettings
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.several_scenes import FRAMES, add, character, convert, measured, played, select, skinned_of

pytestmark = pytest.mark.usefixtures("extension")


refused = partial(refusals.refused, convert)


def test_only_one_selected_is_as_usual(scene):
    first = moving_meshes.twisting_bar()
    add("Sun", bpy.data.lights.new("Sun", "SUN")).select_set(True)
    convert()
    convert(selected_objects=False)
    one, other = skinned_of(first)[0], bpy.data.objects["Bar_skinned.001"]
    assert "parts" not in one["skinning_report"]
    assert one["skinning_e_rms"] == other["skinning_e_rms"]
    assert one.vertex_groups.keys() == other.vertex_groups.keys()
    for frame in FRAMES:
        np.testing.assert_array_equal(
            moving_meshes.world_positions(one, frame), moving_meshes.world_positions(other, frame)
        )


def test_without_the_option_the_others_are_left_alone(scene):
    character()
    assert convert(selected_objects=False) == {"FINISHED"}
    assert [ob.name for ob in bpy.data.objects if "skinning_report" in ob] == ["Body_rig", "Body_skinned"]


def test_selected_objects_without_a_shape_are_skipped(scene):
    character()
    for data in (bpy.data.cameras.new("Eye"), bpy.data.lights.new("Sun", "SUN"), bpy.data.armatures.new("Bones"), None):
        add("Other", data).select_set(True)
    assert convert() == {"FINISHED"}
    assert len(bpy.data.objects["Body_rig"]["skinning_report"]["parts"]) == 3


@pytest.mark.parametrize("kind", ["CURVE", "FONT", "INSTANCE"])
def test_an_object_with_a_shape_that_is_not_a_mesh_is_reported(scene, kind):
    character()
    ob = add("Belt", None if kind == "INSTANCE" else bpy.data.curves.new("Belt", kind))
    if kind == "INSTANCE":
        ob.instance_type, ob.instance_collection = "COLLECTION", bpy.data.collections.new("Parts")
    ob.select_set(True)
    refused('"Belt"', "NOT_A_MESH", "Deselect it", "Collection Instance" if kind == "INSTANCE" else "type")
    assert '"Belt"' in reason_not_to_convert(bpy.context, ConvertSettings(selected_objects=True))
    assert reason_not_to_convert(bpy.context, ConvertSettings()) == ""


def test_vertices_that_change_in_number(scene):
    _, clothes, _ = character()
    modifier = clothes.modifiers.new("Array", "ARRAY")
    scenes.key_property(modifier, "count", {4: 1, 5: 2})
    refused('"Clothes"', "topology", "frame 5", "vertices change from 63 to 126")


def test_without_vertices(scene):
    sources = character()
    select(sources[0], *sources[1:], moving_meshes.add_object("Nothing", np.zeros((0, 3))))
    refused('NO_VERTICES "Nothing"')


def test_hidden_at_a_frame(scene):
    _, clothes, _ = character()
    scenes.key_property(clothes, "hide_viewport", {1: False, 4: True, 5: False})
    scene.frame_set(1)
    refused('"Clothes"', "hidden at frame 4")


def test_hidden(scene):
    body, clothes, eye = character()
    eye.hide_viewport = True
    with refusals.raises_unmet('HIDDEN "Eye"'):
        background.drain(conversion.convert(bpy.context, (body, clothes, eye), ConvertSettings()))
    # What is hidden is not selected.
    convert()
    assert [part["source"] for part in bpy.data.objects["Body_rig"]["skinning_report"]["parts"]] == ["Body", "Clothes"]


def test_in_edit_mode(scene):
    body, clothes, _ = character()
    select(body, clothes)
    bpy.ops.object.mode_set(mode="EDIT")
    assert clothes.mode == "EDIT"
    refused("MODE Edit Mode")


def test_not_a_number(scene):
    _, clothes, _ = character()
    moving_meshes.add_waving_keys(clothes)
    clothes.data.shape_keys.key_blocks["Bend"].data[7].co.x = np.nan
    refused('"Clothes"', "not a number", "vertex 7")


def test_active_scaled_to_nothing(scene):
    body, _, _ = character()
    scenes.key_property(body, "scale", {1: (1, 1, 1), 3: (1, 1, 0), 5: (1, 1, 1)})
    refused('"Body"', "scaled to nothing at frame 3", '"Clothes"', "active")


def test_another_object_scaled_to_nothing_becomes_a_point(scene):
    body, _, eye = character()
    scenes.key_property(eye, "scale", {1: (0, 0, 0), 5: (1, 1, 1)})
    select(body, eye)
    assert convert(bone_count=16, iterations=15) == {"FINISHED"}
    skinned = skinned_of(body, eye)
    assert measured((body, eye), skinned).e_rms < 2
    assert np.ptp(moving_meshes.world_positions(skinned[1], 1), axis=0).max() < 0.005


def test_of_one_place_the_scale_does_not_matter(scene):
    """Children of one parent that is scaled to nothing: there is nothing to bring from one space to the other."""
    body, clothes = moving_meshes.waving_grid("Body"), moving_meshes.twisting_bar("Clothes")
    parent = add("Parent", None)
    scenes.key_property(parent, "scale", {1: (0, 0, 0), 4: (1, 1, 1)})
    body.parent = clothes.parent = parent
    select(body, clothes)
    assert convert() == {"FINISHED"}
    for frame in FRAMES:
        difference = played((body, clothes), frame) - played(skinned_of(body, clothes), frame)
        assert np.abs(difference).max() < 0.05


def test_nothing_moves(scene):
    first, second = (moving_meshes.add_object(name, *moving_meshes.grid()) for name in ("First", "Second"))
    second.location.x = 3
    select(first, second)
    refused('Nothing moves: object "First" with 1 other has')


def test_objects_that_only_move_against_each_other(scene):
    first, second = (moving_meshes.add_object(name, *moving_meshes.grid()) for name in ("First", "Second"))
    scenes.key_property(second, "location", {1: (0, 0, 0), 8: (5, 0, 1)})
    select(first, second)
    assert convert(bone_count=2, bone_kind="RIGID") == {"FINISHED"}
    assert measured((first, second), skinned_of(first, second)).e_rms < 1e-3


def test_objects_that_share_a_mesh(scene):
    first = moving_meshes.waving_grid("First")
    second = add("Second", first.data)
    scenes.key_property(second, "location", {1: (0, 0, 2), 8: (2, 0, 3)})
    select(first, second)
    assert convert(bone_count=16) == {"FINISHED"}
    skinned = skinned_of(first, second)
    assert len({first.data, *(ob.data for ob in skinned)}) == 3
    assert second.data == first.data
    assert measured((first, second), skinned).e_rms < 1


def test_names_that_are_taken(scene):
    body, clothes, _ = character()
    add("Clothes_skinned", None)
    select(body, clothes)
    convert()
    convert()
    rigs = [ob for ob in bpy.data.objects if ob.type == "ARMATURE"]
    assert [ob.name for ob in rigs] == ["Body_rig.001", "Body_rig.002"]
    for number, rig in enumerate(rigs, start=1):
        assert sorted(ob.name for ob in rig.children) == [
            f"Body_skinned.{number:03}", f"Clothes_skinned.{number:03}"
        ]  # fmt: skip
        assert rig.animation_data.action.name == f"Body_skinning.{number:03}"
    assert result_of(clothes).rig == rigs[1]


@pytest.mark.parametrize("name", ["Flag", "Ü" * 200])
def test_names_that_clash_with_each_other(scene, tmp_path, name):
    """A linked object may have the name of a local one, and long names are shortened to the same."""
    moving_meshes.twisting_bar(name)
    library = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(library))
    scene = moving_meshes.fresh_scene()
    local = moving_meshes.waving_grid(name)
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        wanted.objects = list(wanted.objects) or [local.name]
    linked = next(ob for ob in wanted.objects if ob.type == "MESH")
    scene.collection.objects.link(linked)
    select(local, linked)
    assert convert(bone_count=16, iterations=15) == {"FINISHED"}
    (rig,) = (ob for ob in bpy.data.objects if ob.type == "ARMATURE")
    skinned = sorted(rig.children, key=lambda ob: ob.name)
    assert len({ob.name for ob in skinned}) == len({ob.data.name for ob in skinned}) == 2
    assert all(ob.data.library is None and ob.library is None for ob in skinned)
    assert measured((local, linked), skinned).e_rms < 2


def test_with_a_library_override(scene, tmp_path):
    override = scenes.overridden([moving_meshes.twisting_bar()], tmp_path / "character.blend")["MESH"]
    override.location.z = 1
    bpy.context.scene.frame_end = 8
    local = moving_meshes.waving_grid("Local")
    select(local, override)
    assert convert(bone_count=12) == {"FINISHED"}
    assert measured((local, override), skinned_of(local, override)).e_rms < 2


@pytest.mark.parametrize("stage", ["Reading", "Solving", "Writing", "Reducing", "Measuring"])
def test_cancelled_in_any_stage_leaves_nothing(scene, stage):
    body, *others = character()
    scene.frame_set(3, subframe=0.5)
    before = moving_meshes.state()
    settings = ConvertSettings(bone_count=5, iterations=3, residual_shapes=2, key_tolerance=1.0)
    steps = conversion.convert(bpy.context, (body, *others), settings)
    assert any(text.startswith(stage) for _, text in steps)
    steps.close()
    assert moving_meshes.state() == before


def test_one_of_them_deleted_is_said(scene):
    body, clothes, eye = character()
    steps = conversion.convert(bpy.context, (body, clothes, eye), ConvertSettings(bone_count=5))
    assert any(text.startswith("Solving") for _, text in steps)
    bpy.data.objects.remove(eye)
    left = scenes.data_blocks()
    with refusals.raises_unmet('REMOVED "Eye"'):
        background.drain(steps)
    for kind, names in scenes.data_blocks().items():
        assert names == [name for name in left[kind] if not name.endswith("_skinned")], kind


def test_memory_is_that_of_all(scene, monkeypatch):
    character()
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    refused('"Body" with 2 others (146 vertices, 8 frames)')


def test_an_unknown_name_on_the_command_line(scene, tmp_path, capsys):
    character()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    output = tmp_path / "out.blend"
    assert command_line.main(["convert", "--object", "Body", "--object", "Hat", "--output", str(output)]) == 1
    refusals.assert_says(capsys.readouterr().err, 'NO_OBJECT "Hat"')
    assert not output.exists()
