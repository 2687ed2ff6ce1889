# SPDX-License-Identifier: GPL-3.0-or-later
"""Residual shapes as shape keys: what Blender shows with them, without the extension, and what an export holds."""

import bpy
import numpy as np
import pytest
from scipy.spatial import cKDTree

import skinning_tools
from skinning_tools.blender import actions, residual_keys
from skinning_tools.blender.conversions import result_of
from skinning_tools.core.animation import ErrorMeter, unit_scale
from skinning_tools.features.convert import conversion, rig_writer
from skinning_tools.features.convert.panel import SKINNING_PT_convert_animation
from skinning_tools.features.convert.settings import ConvertSettings
from tests.blender import moving_meshes, panel_recorder, refusals

pytestmark = pytest.mark.usefixtures("extension")

FRAMES = range(1, 9)
NAMES = ["Residual 1", "Residual 2", "Residual 3"]


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 4, "iterations": 5} | given)


def converted(name="Flag", **given):
    assert convert(**given) == {"FINISHED"}
    return bpy.data.objects[f"{name}_skinned"]


def e_rms(source, skinned) -> float:
    expected = [moving_meshes.world_positions(source, frame) for frame in FRAMES]
    meter = ErrorMeter(unit_scale(np.array(expected[:1])), len(expected[0]))
    for frame, positions in zip(FRAMES, expected, strict=True):
        meter.add(positions, moving_meshes.world_positions(skinned, frame))
    return meter.e_rms


@pytest.mark.parametrize("kind", ["AFFINE", "SCALED", "RIGID"])
@pytest.mark.parametrize("make", [moving_meshes.waving_grid, moving_meshes.twisting_bar])
def test_the_error_that_blender_shows_falls(scene, make, kind):
    source = make()
    plain = converted(source.name, bone_kind=kind)
    before = e_rms(source, plain)
    bpy.context.view_layer.objects.active = source
    assert convert(bone_kind=kind, residual_shapes=3) == {"FINISHED"}
    shaped = bpy.data.objects[f"{source.name}_skinned.001"]
    after = e_rms(source, shaped)
    assert after < 0.5 * before
    assert shaped["skinning_e_rms"] == pytest.approx(after, rel=1e-3, abs=1e-3)
    for block in shaped.data.shape_keys.key_blocks[1:]:
        block.mute = True
    assert e_rms(source, shaped) == pytest.approx(before, rel=1e-2)


def test_keys_are_at_rest_and_before_the_armature(scene):
    moving_meshes.waving_grid()
    skinned = converted(residual_shapes=3)
    keys = skinned.data.shape_keys
    assert keys.key_blocks.keys() == ["Basis", "Residual Offset", *NAMES]
    assert keys.key_blocks["Residual Offset"].value == 1
    assert keys.use_relative
    assert [modifier.type for modifier in skinned.modifiers] == ["ARMATURE"]
    curves = actions.existing_curves(keys)
    assert [curve.data_path for curve in curves] == [f'key_blocks["{name}"].value' for name in NAMES]
    lowest = []
    for curve in curves:
        values = np.array([point.co[1] for point in curve.keyframe_points])
        assert len(values) == len(FRAMES)
        assert values.max() == 1
        lowest.append(values.min())
        assert {point.interpolation for point in curve.keyframe_points} == {"LINEAR"}
    # A value that was never negative begins where it was; the offset is for the others.
    assert min(lowest) == 0
    for block in keys.key_blocks[1:]:
        assert (block.slider_min, block.slider_max) == (0, 1)
    basis, positions = np.empty((2, len(skinned.data.vertices), 3), np.float32)
    keys.key_blocks[0].points.foreach_get("co", basis.ravel())
    skinned.data.attributes["position"].data.foreach_get("vector", positions.ravel())
    np.testing.assert_array_equal(basis, positions)


def test_bones_and_shapes_play_from_one_action_where_actions_have_slots(scene):
    moving_meshes.waving_grid()
    skinned = converted(residual_shapes=2)
    action = skinned.data.shape_keys.animation_data.action
    assert action.name == ("Flag_skinning" if hasattr(action, "slots") else "Flag_shapes")
    assert bpy.data.objects["Flag_rig"].animation_data.action == bpy.data.actions["Flag_skinning"]


def test_without_shapes_there_are_no_keys(scene):
    moving_meshes.waving_grid()
    skinned = converted()
    assert skinned.data.shape_keys is None
    action = bpy.data.actions["Flag_skinning"]
    assert not hasattr(action, "slots") or len(action.slots) == 1


def test_values_follow_stretched_time(scene):
    source = moving_meshes.waving_grid()
    scene.render.frame_map_new = 200
    skinned = converted(residual_shapes=3)
    assert skinned["skinning_e_rms"] == pytest.approx(e_rms(source, skinned), rel=1e-3, abs=1e-3)
    assert skinned["skinning_e_rms"] < 1


def test_it_plays_without_the_extension(scene, tmp_path):
    moving_meshes.waving_grid()
    skinned = converted(residual_shapes=3)
    expected = [moving_meshes.world_positions(skinned, frame) for frame in FRAMES]
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    skinning_tools.unregister()
    try:
        bpy.ops.wm.open_mainfile(filepath=str(path), use_scripts=False)
        skinned = bpy.data.objects["Flag_skinned"]
        for frame, positions in zip(FRAMES, expected, strict=True):
            np.testing.assert_allclose(moving_meshes.world_positions(skinned, frame), positions, atol=1e-6)
    finally:
        skinning_tools.register()


def test_the_result_is_converted_again(scene):
    moving_meshes.waving_grid()
    skinned = converted(residual_shapes=3)
    bpy.ops.skinning.select_result(part="MESH")
    again = converted("Flag_skinned", bone_count=8, residual_shapes=1, on_result="CONVERT")
    assert again["skinning_e_rms"] == pytest.approx(e_rms(skinned, again), rel=1e-3, abs=1e-3)
    assert again.data.shape_keys.key_blocks.keys() == ["Basis", "Residual Offset", "Residual 1"]


@pytest.mark.parametrize("stage", ["Solving", "Writing", "Measuring"])
def test_cancelled_it_leaves_nothing(scene, stage):
    source = moving_meshes.waving_grid()
    before = moving_meshes.state()
    steps = conversion.convert(bpy.context, [source], ConvertSettings(bone_count=4, iterations=3, residual_shapes=3))
    assert any(text.startswith(stage) for _, text in steps)
    steps.close()
    assert moving_meshes.state() == before


@pytest.mark.parametrize(
    "place",
    [
        (rig_writer, "put_residual_keys"),
        (rig_writer, "key_residual_values"),
        (residual_keys.actions, "curve_container"),
    ],
    ids=lambda place: place[1],
)
def test_failed_it_leaves_nothing(scene, monkeypatch, place):
    def fails(*_):
        raise ValueError("the fault")

    moving_meshes.waving_grid()
    before = moving_meshes.state()
    monkeypatch.setattr(*place, fails)
    with pytest.raises(RuntimeError, match="bug in Skinning Tools"):
        convert(residual_shapes=2)
    assert moving_meshes.state() == before


def test_a_count_that_makes_no_sense(scene):
    moving_meshes.waving_grid()
    before = moving_meshes.state()
    with refusals.raises_unmet("OUT_OF_RANGE at least 0 … -1"):
        convert(residual_shapes=-1)
    assert moving_meshes.state() == before


@pytest.mark.parametrize(
    ("asked", "given", "made"),
    [
        (8, {}, 8),
        (9, {}, 8),
        (2**31 - 1, {}, 8),
        (5, {"frame_start": 2, "frame_end": 4}, 3),
        (5, {"frame_step": 3}, 3),
        (30, {"target_error": 30.0, "selected_objects": True, "key_tolerance": 2.0}, 8),
        (9, {"bone_kind": "RIGID", "joint_hierarchy": True}, 8),
    ],
)
def test_no_more_than_frames(scene, capsys, asked, given, made):
    """More shapes than possible are left out, and the report and the figures say so."""
    moving_meshes.waving_grid()
    skinned = converted(residual_shapes=asked, **given)
    assert len(skinned.data.shape_keys.key_blocks) == 2 + made
    figures = result_of(skinned).figures
    assert figures["settings"]["residual_shapes"] == made
    note = f"{made} residual shapes instead of {asked}: there cannot be more shapes than frames"
    # A skeleton of cloth has others.
    notes = [each for each in figures.get("notes", []) if "shapes" in each]
    assert notes == ([note] if made < asked else [])
    assert (note in capsys.readouterr().out) == (made < asked)
    chosen = scene.skinning_conversion
    chosen.residual_shapes, chosen.use_scene_range = asked, False
    chosen.frame_start, chosen.frame_end = given.get("frame_start", 1), given.get("frame_end", 8)
    chosen.frame_step = given.get("frame_step", 1)
    assert (note in panel_recorder.drawn(SKINNING_PT_convert_animation).texts) == (made < asked)


@pytest.mark.parametrize("vertices", [2, 3])
def test_more_shapes_than_the_vertices_have_ways_to_move(scene, vertices):
    scene.frame_end = 20
    moving_meshes.add_object("Flag", np.eye(3)[:vertices])
    moving_meshes.add_waving_keys(bpy.data.objects["Flag"])
    skinned = converted(bone_count=1, residual_shapes=15)
    assert len(skinned.data.shape_keys.key_blocks) == 17
    assert skinned["skinning_e_rms"] < 1e-2


def test_the_panel_cannot_ask_for_less_than_none(scene):
    scene.skinning_conversion.residual_shapes = -3
    assert scene.skinning_conversion.residual_shapes == 0


@pytest.mark.skipif(not hasattr(bpy.ops.export_scene, "gltf"), reason="this Blender has no glTF export")
def test_an_exported_file_shows_the_same(scene, tmp_path):
    """Out and in again: bones, morph targets and their motion in one animation."""
    source = moving_meshes.waving_grid()
    skinned = converted(residual_shapes=3, bone_kind="RIGID")
    expected = [moving_meshes.world_positions(skinned, frame) for frame in FRAMES]
    bpy.data.objects.remove(source)
    path = tmp_path / "flag.glb"
    scene = moving_meshes.through_gltf(path)
    (imported,) = (ob for ob in scene.objects if ob.type == "MESH" and ob.find_armature())
    assert imported.data.shape_keys.key_blocks.keys()[1:] == ["Residual Offset", *NAMES]
    assert imported.data.shape_keys.animation_data is not None
    size = np.ptp(expected[0], axis=0).max()
    start = _first_frame(imported)
    for number, positions in enumerate(expected):
        found = moving_meshes.world_positions(imported, start + number)
        distance = cKDTree(found).query(positions)[0].max()
        assert distance < 1e-5 * size


def _first_frame(imported) -> int:
    curves = actions.existing_curves(imported.data.shape_keys)
    return round(min(point.co[0] for curve in curves for point in curve.keyframe_points))
