# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole conversions through the operator, and the pipeline behind it, driven step by step."""

import importlib.util
import logging
import sys
import threading

import bpy
import numpy as np
import pytest

from skinning_tools.blender import background, conversion_figures, dependencies, error_display
from skinning_tools.blender.conversions import result_of
from skinning_tools.core.animation import ErrorMeter, unit_scale
from skinning_tools.features.convert import conversion, rig_writer
from skinning_tools.features.convert.chosen_sources import reason_not_to_convert
from skinning_tools.features.convert.settings import ConvertSettings
from tests.blender import moving_meshes, refusals, scenes

pytestmark = pytest.mark.usefixtures("extension")


def settings(**given):
    return ConvertSettings(**{"bone_count": 5, "iterations": 3} | given)


def conversion_steps(ob, **given):
    return conversion.convert(bpy.context, [ob], settings(**given))


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 5, "iterations": 5} | given)


def measured(source, skinned, frames) -> ErrorMeter:
    """The error of the result by the test's own way: world positions, scaled back by the object's uniform scale."""
    expected = [moving_meshes.world_positions(source, frame) for frame in frames]
    meter = ErrorMeter(unit_scale(np.array(expected[:1])), len(expected[0]))
    for frame, positions in zip(frames, expected, strict=True):
        meter.add(positions, moving_meshes.world_positions(skinned, frame))
    return meter


@pytest.mark.parametrize("make", [moving_meshes.waving_grid, moving_meshes.twisting_bar])
def test_leaves_what_the_contract_names(scene, make):
    source = make()
    assert convert() == {"FINISHED"}

    skinned = bpy.data.objects[f"{source.name}_skinned"]
    rig = bpy.data.objects[f"{source.name}_rig"]
    assert rig.type == "ARMATURE"
    assert rig.animation_data.action == bpy.data.actions[f"{source.name}_skinning"]
    assert [modifier.object for modifier in skinned.modifiers if modifier.type == "ARMATURE"] == [rig]
    assert skinned["skinning_bone_count"] == 5
    meter = measured(source, skinned, range(1, 9))
    assert skinned["skinning_e_rms"] == pytest.approx(meter.e_rms, rel=1e-3, abs=1e-3)
    assert skinned["skinning_max_error"] == pytest.approx(meter.max_error, rel=1e-3, abs=1e-3)
    assert meter.e_rms < 50
    errors = np.empty(len(skinned.data.vertices), np.float32)
    skinned.data.attributes["skinning_error"].data.foreach_get("value", errors)
    np.testing.assert_allclose(errors, meter.vertex_error, rtol=1e-2, atol=1e-5)


def test_source_frame_selection_and_mode_are_as_they_were(scene):
    source = moving_meshes.waving_grid()
    other = moving_meshes.add_object("Other", *moving_meshes.grid())
    source.select_set(False)
    bpy.context.view_layer.objects.active = source
    bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
    scene.frame_set(5, subframe=0.25)
    before = scenes.ui_state()
    mesh, users = source.data, source.data.users
    points = [moving_meshes.world_positions(source, frame) for frame in (1, 8)]
    scene.frame_set(5, subframe=0.25)
    assert convert() == {"FINISHED"}
    assert scenes.ui_state() == before
    assert other.select_get()
    assert (source.data, mesh.users, list(source.modifiers), len(source.vertex_groups)) == (mesh, users, [], 0)
    for frame, expected in zip((1, 8), points, strict=True):
        np.testing.assert_array_equal(moving_meshes.world_positions(source, frame), expected)


@pytest.mark.parametrize("kind", ["AFFINE", "SCALED", "RIGID"])
def test_every_bone_kind(scene, kind):
    source = moving_meshes.waving_grid()
    assert convert(bone_kind=kind) == {"FINISHED"}
    skinned = bpy.data.objects[f"{source.name}_skinned"]
    report = skinned[conversion_figures.REPORT_PROPERTY].to_dict()
    assert report["settings"]["bone_kind"] == kind
    assert report["e_rms"] == pytest.approx(measured(source, skinned, range(1, 9)).e_rms, rel=1e-3)


def test_frame_range_and_step_are_those_given(scene):
    moving_meshes.waving_grid()
    assert convert(frame_start=2, frame_end=7, frame_step=2) == {"FINISHED"}
    report = bpy.data.objects["Flag_rig"][conversion_figures.REPORT_PROPERTY]
    assert (report["frame_start"], report["frame_end"], report["frame_count"], report["frame_step"]) == (2, 6, 3, 2)


def test_frame_range_is_the_scenes_where_not_given(scene):
    moving_meshes.waving_grid()
    scene.frame_start, scene.frame_end = 3, 6
    assert convert() == {"FINISHED"}
    report = bpy.data.objects["Flag_rig"][conversion_figures.REPORT_PROPERTY]
    assert (report["frame_start"], report["frame_end"]) == (3, 6)


def test_script_gets_the_defaults_and_not_the_panels_settings(scene):
    moving_meshes.waving_grid()
    scene.skinning_conversion.bone_count = 3
    bpy.ops.skinning.convert_animation(iterations=1)
    assert bpy.data.objects["Flag_skinned"]["skinning_bone_count"] == 20


def test_converting_twice_makes_a_second_rig(scene):
    moving_meshes.waving_grid()
    convert()
    convert()
    rigs = [ob for ob in bpy.data.objects if ob.type == "ARMATURE"]
    assert len(rigs) == 2
    assert rigs[0].animation_data.action != rigs[1].animation_data.action


@pytest.mark.parametrize("stage", ["Reading", "Solving", "Writing", "Measuring"])
def test_cancelled_in_any_stage_leaves_nothing(scene, stage):
    source = moving_meshes.twisting_bar()
    scene.frame_set(3, subframe=0.5)
    before = moving_meshes.state()
    steps = conversion_steps(source)
    assert any(text.startswith(stage) for _, text in steps)
    steps.close()
    assert moving_meshes.state() == before


def test_cancelling_stops_the_worker(scene):
    ob = moving_meshes.waving_grid()
    steps = conversion_steps(ob, iterations=100_000)
    assert any(text.startswith("Solving") for _, text in steps)
    steps.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "skinning_tools worker"]


def test_progress_never_goes_back(scene):
    fractions = [fraction for fraction, _ in conversion_steps(moving_meshes.twisting_bar())]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < 0.5 < fractions[-1] <= 1


@pytest.mark.parametrize("name", ["write_rig", "write_error_attribute"])
def test_fault_of_the_extension_is_said_and_leaves_nothing(scene, monkeypatch, caplog, name):
    def fails(*_):
        raise ValueError("the fault")

    moving_meshes.waving_grid()
    before = moving_meshes.state()
    monkeypatch.setattr(rig_writer, name, fails)
    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError, match=r"bug in .* .ValueError: the fault."):
        convert()
    assert "Traceback" in caplog.text
    assert moving_meshes.state() == before


def test_deleted_source_is_said(scene):
    source = moving_meshes.waving_grid()
    steps = conversion_steps(source)
    assert any(text.startswith("Solving") for _, text in steps)
    bpy.data.objects.remove(source)
    before = scenes.data_blocks()["objects"]
    with refusals.raises_unmet('REMOVED "Flag"'):
        background.drain(steps)
    assert scenes.data_blocks()["objects"] == before


def test_second_job_is_refused(scene):
    moving_meshes.waving_grid()
    job = background.begin_job("The other job")
    try:
        with refusals.raises_unmet("JOB_RUNNING The other job"):
            convert()
    finally:
        background.end_job(job)


def test_missing_scipy_is_said_in_one_line(scene, monkeypatch):
    """The extension registers; poll, and so button and panel, say which library is missing."""
    moving_meshes.waving_grid()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "scipy", raising=False)
    assert "\n" not in reason_not_to_convert(bpy.context, ConvertSettings())
    with pytest.raises(RuntimeError, match=r"scipy is missing for Python 3\.\d+"):
        convert()


def test_broken_scipy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    with pytest.raises(dependencies.MissingDependency, match="scipy is installed but cannot be loaded"):
        dependencies.require_dependencies()


def test_figures_are_found_from_source_mesh_and_rig(scene):
    source = moving_meshes.waving_grid()
    assert result_of(source) is None
    convert()
    skinned, rig = bpy.data.objects["Flag_skinned"], bpy.data.objects["Flag_rig"]
    for ob in (source, skinned, rig):
        result = result_of(ob)
        assert (result.source, result.mesh, result.rig) == (source, skinned, rig)
        assert result.figures["e_rms"] == skinned["skinning_e_rms"]
        assert list(result.figures["seconds"]) == ["read", "solve", "write", "measure"]
    for part, expected in (("MESH", skinned), ("RIG", rig), ("SOURCE", source)):
        bpy.ops.skinning.select_result(part=part)
        assert bpy.context.view_layer.objects.active == expected
        assert bpy.context.selected_objects == [expected]


@pytest.mark.parametrize("name", ["Flag", "Ü" * 200])
def test_figures_are_those_of_the_last_conversion(scene, name):
    source = moving_meshes.waving_grid(name)
    convert(bone_count=3)
    convert(bone_count=4)
    first, last = sorted((ob for ob in bpy.data.objects if "skinning_e_rms" in ob), key=lambda ob: ob.name)
    result = result_of(source)
    assert (result.mesh, result.figures["bone_count"]) == (last, 4)
    assert result_of(first).figures["bone_count"] == 3
    assert result_of(moving_meshes.add_object("Other", *moving_meshes.grid())) is None


def test_a_result_is_converted_again(scene):
    source = moving_meshes.twisting_bar()
    convert(bone_count=8)
    skinned = bpy.data.objects["Bar_skinned"]
    bpy.ops.skinning.select_result(part="MESH")
    bpy.ops.skinning.show_error()
    assert convert(bone_count=8, on_result="CONVERT") == {"FINISHED"}
    again = bpy.data.objects["Bar_skinned_skinned"]
    assert again["skinning_e_rms"] == pytest.approx(measured(skinned, again, range(1, 9)).e_rms, abs=1e-3)
    assert not error_display.shows_error(again)
    assert result_of(skinned).source == source
    assert result_of(again).source == skinned


def test_the_active_object_stays_where_a_local_one_has_its_name(scene, tmp_path):
    moving_meshes.waving_grid()
    library = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(library))
    scene = moving_meshes.fresh_scene()
    moving_meshes.add_object("Flag", *moving_meshes.grid())
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        wanted.objects = ["Flag"]
    linked = wanted.objects[0]
    scene.collection.objects.link(linked)
    linked.select_set(False)
    bpy.context.view_layer.objects.active = linked
    selected = bpy.context.selected_objects
    assert convert() == {"FINISHED"}
    assert bpy.context.view_layer.objects.active == linked
    assert bpy.context.selected_objects == selected


def test_error_is_not_shown_in_edit_mode(scene):
    moving_meshes.waving_grid()
    convert()
    bpy.ops.skinning.select_result(part="MESH")
    bpy.ops.object.mode_set(mode="EDIT")
    with refusals.raises_unmet("NOT_IN_OBJECT_MODE"):
        bpy.ops.skinning.show_error()


def test_error_is_shown_in_color_and_hidden_again(scene):
    source = moving_meshes.waving_grid()
    convert()
    skinned = bpy.data.objects["Flag_skinned"]
    bpy.ops.skinning.select_result(part="MESH")
    attributes = list(skinned.data.attributes.keys())
    bpy.ops.skinning.show_error()
    colors = np.empty((len(skinned.data.vertices), 4), np.float32)
    skinned.data.color_attributes[error_display.COLOR_ATTRIBUTE].data.foreach_get("color", colors.ravel())
    errors = np.empty(len(colors), np.float32)
    skinned.data.attributes["skinning_error"].data.foreach_get("value", errors)
    np.testing.assert_array_equal(colors[errors.argmax()], [1, 0, 0, 1])
    assert skinned.data.attributes.active_color.name == error_display.COLOR_ATTRIBUTE
    assert not source.visible_get()
    bpy.ops.skinning.show_error()
    assert list(skinned.data.attributes.keys()) == attributes
    assert source.visible_get()


def test_colors_go_from_blue_to_red():
    colors = error_display.error_colors(np.array([0.0, 0.5, 1.0, 9.0]) * 0.01, 0.01)
    np.testing.assert_allclose(colors, [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 1], [1, 0, 0, 1]], atol=1e-6)
    np.testing.assert_array_equal(error_display.error_colors(np.zeros(2), 0.0), [[0, 0, 1, 1]] * 2)
