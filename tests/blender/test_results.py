# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of conversions: which there are, converting again, comparing with the source, and deleting."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.blender.conversions import result_of, stands_for_conversion
from skinning_tools.features.convert.panel import conversion_cells
from skinning_tools.ui.compare import shown_of
from tests.blender import moving_meshes, refusals, scenes, several_scenes

pytestmark = pytest.mark.usefixtures("extension")


def convert(**given):
    return bpy.ops.skinning.convert_animation(**{"bone_count": 4, "iterations": 3} | given)


def activate(name: str):
    ob = bpy.data.objects[name]
    bpy.context.view_layer.objects.active = ob
    return ob


def listed() -> list[str]:
    return [ob.name for ob in bpy.data.objects if stands_for_conversion(ob)]


def test_each_conversion_is_in_the_list_once(scene):
    assert listed() == []
    moving_meshes.waving_grid()
    convert()
    convert(bone_count=2)
    several_scenes.character()
    convert(selected_objects=True)
    assert listed() == ["Body_rig", "Flag_rig", "Flag_rig.001"]
    # Where the rig is gone the mesh has the figures still.
    bpy.data.objects.remove(bpy.data.objects["Flag_rig"])
    assert listed() == ["Body_rig", "Flag_rig.001", "Flag_skinned"]
    error, bones, seconds = conversion_cells(bpy.data.objects["Flag_rig.001"]["skinning_report"])
    assert (float(error), bones) == (
        pytest.approx(bpy.data.objects["Flag_skinned.001"]["skinning_e_rms"], abs=0.01),
        "2",
    )
    assert seconds.endswith(" s")


def test_the_row_is_that_of_the_active_object(scene):
    source = moving_meshes.waving_grid()
    convert()
    convert()
    names = bpy.data.objects.keys()
    for active, row in (("Flag_rig", "Flag_rig"), ("Flag_skinned", "Flag_rig"), (source.name, "Flag_rig.001")):
        activate(active)
        assert names[scene.skinning_conversion_index] == row
    scene.skinning_conversion_index = names.index("Flag_rig")
    assert bpy.context.view_layer.objects.active.name == "Flag_rig"
    assert [ob.name for ob in bpy.context.selected_objects] == ["Flag_rig"]
    moving_meshes.add_object("Other", *moving_meshes.grid())
    assert scene.skinning_conversion_index == -1


def positions_of(name: str) -> np.ndarray:
    return scenes.played(bpy.data.objects[name], range(1, 9))


@pytest.mark.parametrize(
    "given",
    [
        {"bone_kind": "RIGID", "max_influences": 2, "frame_start": 2, "frame_end": 7, "frame_step": 2},
        {"smoothness": 0.4, "root_bone": True, "key_tolerance": 2.0, "optimize_rest_pose": False},
        {"joint_hierarchy": True, "residual_shapes": 2},
        {"target_error": 30.0},
    ],
)
def test_again_with_the_same_settings(scene, given):
    moving_meshes.waving_grid()
    convert(**given)
    activate("Flag_rig")
    # What the panel says by now does not matter.
    scene.skinning_conversion.bone_count = 9
    assert bpy.ops.skinning.convert_again() == {"FINISHED"}
    first, again = (bpy.data.objects[name]["skinning_report"].to_dict() for name in ("Flag_rig", "Flag_rig.001"))
    for name in ("seconds", "solver_seconds", "object", "armature", "collection"):
        del first[name], again[name]
    assert again == first
    np.testing.assert_array_equal(positions_of("Flag_skinned"), positions_of("Flag_skinned.001"))
    # Delete Result is about the one that is active.
    assert bpy.context.view_layer.objects.active.name == "Flag_skinned.001"


def test_again_as_the_source_moves_now(scene):
    source = moving_meshes.waving_grid()
    convert(bone_count=8)
    source.data.shape_keys.animation_data_clear()
    key = source.data.shape_keys.key_blocks["Wave"]
    scenes.key_property(key, "value", {1: 0.0, 8: 1.0})
    activate("Flag_skinned").name = "Hero"
    bpy.ops.skinning.convert_again(replace=True)
    assert listed() == ["Flag_rig"]
    result = bpy.context.view_layer.objects.active
    assert result.name == "Hero"
    assert result_of(source).mesh == result
    assert result["skinning_e_rms"] < 5
    worst = np.abs(scenes.played(source, range(1, 9)) - positions_of("Hero")).max()
    assert worst < 0.1 < np.ptp(positions_of("Hero"), axis=0).max()


def test_again_where_the_result_alone_is_shown(scene):
    source = moving_meshes.waving_grid()
    convert()
    bpy.ops.skinning.compare_result(show="RESULT")
    activate("Flag_rig")
    assert bpy.ops.skinning.convert_again() == {"FINISHED"}
    assert visible("Flag", "Flag_skinned", "Flag_skinned.001") == [True] * 3
    errors = [bpy.data.objects[name]["skinning_e_rms"] for name in ("Flag_skinned", "Flag_skinned.001")]
    assert errors[0] == errors[1]
    # What fails leaves it hidden.
    source.hide_set(True)
    source.hide_viewport = True
    with refusals.raises_unmet("HIDDEN"):
        bpy.ops.skinning.convert_again()
    source.hide_viewport = False
    assert source.hide_get()


def test_several_objects_again(scene):
    sources = several_scenes.character()
    several_scenes.convert()
    for name in ("Eye_skinned", "Body_rig"):
        activate(name)
        assert bpy.ops.skinning.convert_again() == {"FINISHED"}
    reports = [bpy.data.objects[f"Body_rig{suffix}"]["skinning_report"].to_dict() for suffix in ("", ".001", ".002")]
    assert [[part["source"] for part in report["parts"]] for report in reports] == [["Body", "Clothes", "Eye"]] * 3
    assert reports[0]["e_rms"] == reports[1]["e_rms"] == reports[2]["e_rms"]
    bpy.data.objects.remove(sources[1])
    before = moving_meshes.state()
    with pytest.raises(RuntimeError, match='The source "Clothes" of this conversion was renamed or deleted'):
        bpy.ops.skinning.convert_again()
    assert moving_meshes.state() == before


def test_again_is_refused_where_there_is_nothing(scene):
    moving_meshes.waving_grid()
    with refusals.raises_unmet("NOT_A_RESULT"):
        bpy.ops.skinning.convert_again()


def test_settings_go_back_into_the_panel(scene):
    moving_meshes.waving_grid()
    convert(bone_kind="SCALED", root_bone=True, key_tolerance=3.0, frame_start=2, frame_end=6, smoothness=0.25)
    chosen = scene.skinning_conversion
    assert bpy.ops.skinning.use_result_settings() == {"FINISHED"}
    assert (chosen.bone_count, chosen.bone_kind, chosen.smoothness, chosen.iterations) == (4, "SCALED", 0.25, 3)
    assert (chosen.root_bone, chosen.joint_hierarchy, chosen.key_tolerance) == (True, False, 3.0)
    assert (chosen.use_scene_range, chosen.frame_start, chosen.frame_end) == (False, 2, 6)
    convert(frame_step=3)
    bpy.ops.skinning.use_result_settings()
    assert (chosen.use_scene_range, chosen.frame_step, chosen.root_bone) == (True, 3, False)


def test_settings_of_an_earlier_version(scene):
    """The figures of an earlier version lack some entries."""
    moving_meshes.waving_grid()
    convert(joint_hierarchy=True)
    for name in ("Flag_rig", "Flag_skinned"):
        figures = bpy.data.objects[name]["skinning_report"]
        for key in ("root_bone", "joint_hierarchy", "key_tolerance", "frame_e_rms", "collection"):
            del figures[key]
        del figures["settings"]["smoothness"]
    activate("Flag_rig")
    assert bpy.ops.skinning.convert_again() == {"FINISHED"}
    assert "joint_count" in bpy.data.objects["Flag_rig.001"]["skinning_report"]
    activate("Flag_rig")
    bpy.ops.skinning.delete_result()
    assert listed() == ["Flag_rig.001"]
    assert "Flag_skinning" not in bpy.data.collections


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seconds", 3),
        ("seconds", {"read": "long"}),
        ("e_rms", "small"),
        ("e_rms", float("nan")),
        ("bone_count", 0),
        ("frame_step", 0),
        ("frame_start", 1e12),
        ("converted_frames", [1, 8, 1]),
        ("converted_frames", {"frame_start": 1, "frame_end": 8}),
        ("source", 4),
        ("source_data", 4),
        ("settings", {}),
        ("settings", {"bone_kind": 3}),
        ("settings", {"bone_kind": "AFFINE", "bone_count": 3.5}),
        ("frame_max_error", [1.0, float("inf")]),
        ("worst_frame", "late"),
        ("frame_e_rms", "flat"),
        ("parts", [1, 2]),
        ("parts", [{"source": "Flag"}]),
        ("curve", {"bone_count": [1, 2], "e_rms": [1.0]}),
        ("keys", {"after": 3}),
        ("normals", {"mean": 1.0}),
        (None, "a note"),
        (None, [1, 2, 3]),
    ],
)
def test_changed_figures_are_ignored(scene, key, value):
    """The object counts as any other; panels and the list go on with the rest."""
    moving_meshes.waving_grid()
    convert()
    for name in ("Flag_rig", "Flag_skinned"):
        ob = bpy.data.objects[name]
        if key is None:
            ob["skinning_report"] = value
        else:
            ob["skinning_report"][key] = value
        assert result_of(ob) is None
    assert result_of(bpy.data.objects["Flag"]) is None
    assert listed() == []
    assert not bpy.ops.skinning.convert_again.poll()
    convert()
    assert listed() == ["Flag_rig.001"]


def test_names_that_other_things_have_got_since(scene):
    moving_meshes.waving_grid()
    convert()
    bpy.data.objects["Flag"].name = "Source"
    bpy.data.objects["Flag_skinned"].name = "Mesh"
    for name in ("Flag", "Flag_skinned"):
        bpy.data.objects.new(name, None)
    result = result_of(bpy.data.objects["Flag_rig"])
    assert (result.source, result.mesh) == (None, None)


@pytest.mark.parametrize("active", ["Flag_rig", "Flag_skinned"])
@pytest.mark.parametrize("columns", [9, 4])
@pytest.mark.parametrize("how", ["again", "replace", "convert"])
def test_another_object_of_the_sources_name_is_not_its_source(scene, tmp_path, active, columns, how):
    moving_meshes.waving_grid()
    convert()
    bpy.data.objects["Flag"].name = "Old"
    stranger = moving_meshes.waving_grid(columns=columns)
    assert stranger.name == "Flag"
    if columns == 4:
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
        scenes.reopened(tmp_path / "shot.blend")
    stranger = activate("Flag")
    assert result_of(stranger) is None
    activate(active)
    assert result_of(bpy.data.objects[active]).source is None
    before = moving_meshes.state()
    work = partial(convert, on_result="REPLACE")
    if how != "convert":
        work = partial(bpy.ops.skinning.convert_again, replace=how == "replace")
    with pytest.raises(RuntimeError, match='The source "Flag" of this conversion was renamed or deleted'):
        work()
    assert moving_meshes.state() == before
    # Once it has its name again, all is as before.
    bpy.data.objects["Flag"].name = "Stranger"
    bpy.data.objects["Old"].name = "Flag"
    assert bpy.ops.skinning.convert_again() == {"FINISHED"}


@pytest.mark.parametrize("how", ["imported again", "other mesh", "renamed mesh", "shared mesh", "earlier version"])
def test_the_source_stays_the_source(scene, how):
    source = moving_meshes.waving_grid()
    convert()
    if how == "imported again":
        bpy.data.objects.remove(source)
        source = moving_meshes.waving_grid(columns=5)
        assert source.data.name != "Flag"
    elif how == "other mesh":
        source.data = source.data.copy()
    elif how == "renamed mesh":
        source.data.name = "Cloth"
    elif how == "shared mesh":
        scenes.link(bpy.data.objects.new("Other", source.data))
    else:
        for ob in (bpy.data.objects["Flag_rig"], bpy.data.objects["Flag_skinned"]):
            del ob["skinning_report"]["source_data"]
        source.data.name = "Cloth"
        moving_meshes.add_object("Other", *moving_meshes.grid()).data.name = "Flag"
    assert result_of(source).mesh.name == "Flag_skinned"
    activate("Flag_rig")
    assert bpy.ops.skinning.convert_again() == {"FINISHED"}


def visible(*names) -> list[bool]:
    return [bpy.data.objects[name].visible_get() for name in names]


def test_source_and_result_are_shown_in_turn(scene):
    moving_meshes.waving_grid()
    convert()
    both = "Flag", "Flag_skinned"
    assert shown_of([(bpy.data.objects["Flag"], bpy.data.objects["Flag_skinned"])]) == "BOTH"
    bpy.ops.skinning.compare_result()
    assert visible(*both) == [True, False]
    bpy.ops.skinning.compare_result()
    assert visible(*both) == [False, True]
    # Something that is hidden is not to be the active object.
    assert bpy.context.view_layer.objects.active.name == "Flag_skinned"
    assert shown_of([(bpy.data.objects["Flag"], bpy.data.objects["Flag_skinned"])]) == "RESULT"
    bpy.ops.skinning.compare_result(show="SOURCE")
    assert (visible(*both), bpy.context.view_layer.objects.active.name) == ([True, False], "Flag")
    bpy.ops.skinning.compare_result(show="BOTH")
    assert visible(*both) == [True, True]
    bpy.data.objects.remove(bpy.data.objects["Flag"])
    activate("Flag_rig")
    with pytest.raises(RuntimeError, match="The source of this conversion was renamed or deleted"):
        bpy.ops.skinning.compare_result()


def test_other_results_of_the_source_are_hidden(scene):
    moving_meshes.waving_grid()
    convert()
    convert(bone_count=2)
    meshes = "Flag", "Flag_skinned", "Flag_skinned.001"
    for rig, show, shown in (
        ("Flag_rig", "RESULT", [False, True, False]),
        ("Flag_rig.001", "RESULT", [False, False, True]),
        ("Flag_rig", "BOTH", [True, True, False]),
        ("Flag_rig.001", "SOURCE", [True, False, False]),
    ):
        activate(rig)
        bpy.ops.skinning.compare_result(show=show)
        assert visible(*meshes) == shown


def test_sources_and_results_of_several_objects_are_shown_in_turn(scene):
    several_scenes.character()
    several_scenes.convert()
    activate("Body_rig")
    bpy.ops.skinning.compare_result(show="RESULT")
    assert visible("Body", "Clothes", "Eye") == [False] * 3
    assert visible("Body_skinned", "Clothes_skinned", "Eye_skinned", "Body_rig") == [True] * 4


@pytest.mark.parametrize("active", ["Flag", "Flag_skinned", "Flag_rig"])
@pytest.mark.parametrize("shapes", [0, 2])
def test_delete_restores_the_earlier_state(scene, active, shapes):
    moving_meshes.waving_grid()
    before = scenes.data_blocks()
    convert(residual_shapes=shapes)
    bpy.ops.skinning.compare_result(show="RESULT")
    activate(active)
    assert bpy.ops.skinning.delete_result() == {"FINISHED"}
    assert scenes.data_blocks() == before
    assert bpy.data.objects["Flag"].visible_get()
    assert bpy.context.view_layer.objects.active.name == "Flag"


def test_delete_one_of_two(scene):
    moving_meshes.waving_grid()
    convert()
    before = scenes.data_blocks()
    convert(bone_count=2)
    activate("Flag_rig.001")
    bpy.ops.skinning.delete_result()
    assert scenes.data_blocks() == before


def test_delete_several(scene):
    several_scenes.character()
    before = scenes.data_blocks()
    several_scenes.convert()
    activate("Eye_skinned")
    bpy.ops.skinning.delete_result()
    assert scenes.data_blocks() == before


def test_delete_from_pose_mode(scene):
    moving_meshes.waving_grid()
    before = scenes.data_blocks()
    convert()
    activate("Flag_rig")
    bpy.ops.object.mode_set(mode="POSE")
    bpy.ops.skinning.delete_result()
    assert scenes.data_blocks() == before


def test_delete_keeps_data_used_elsewhere(scene):
    moving_meshes.waving_grid()
    convert()
    other = bpy.data.objects.new("Other", bpy.data.objects["Flag_skinned"].data)
    bpy.data.collections["Flag_skinning"].objects.link(other)
    scenes.key_property(other, "location", {1: (0, 0, 0)})
    other.animation_data.action = bpy.data.actions["Flag_skinning"]
    activate("Flag_rig")
    bpy.ops.skinning.delete_result()
    assert other.name in bpy.data.collections["Flag_skinning"].objects
    assert other.data.name == "Flag_skinned"
    assert other.animation_data.action.name == "Flag_skinning"
    assert "Flag_rig" not in bpy.data.objects


def test_delete_a_duplicate(scene):
    """A duplicate's figures name the original, which is to stay."""
    moving_meshes.waving_grid()
    convert()
    rig, mesh = bpy.data.objects["Flag_rig"], bpy.data.objects["Flag_skinned"]
    rig_copy, mesh_copy = rig.copy(), mesh.copy()
    mesh_copy.parent = mesh_copy.modifiers["Armature"].object = rig_copy
    for ob in (rig_copy, mesh_copy):
        scene.collection.objects.link(ob)
    assert listed() == ["Flag_rig", "Flag_rig.001"]
    activate(rig_copy.name)
    bpy.ops.skinning.delete_result()
    assert [ob.name for ob in bpy.data.objects] == ["Flag", "Flag_rig", "Flag_skinned"]
    assert rig.animation_data.action is not None


def test_delete_never_takes_a_rig_of_the_user(scene):
    """Where the skinned mesh was given to another armature."""
    moving_meshes.waving_grid()
    convert()
    own = bpy.data.objects.new("Own", bpy.data.armatures.new("Own"))
    scene.collection.objects.link(own)
    bpy.data.objects["Flag_skinned"].modifiers["Armature"].object = own
    activate("Flag_skinned")
    bpy.ops.skinning.delete_result()
    assert "Own" in bpy.data.objects
    assert "Flag" in bpy.data.objects
    assert "Flag_skinned" not in bpy.data.objects


def test_a_source_that_is_a_result_itself(scene):
    moving_meshes.waving_grid()
    convert()
    before = scenes.data_blocks()
    activate("Flag_skinned")
    convert(bone_count=3, on_result="CONVERT")
    activate("Flag_skinned_rig")
    bpy.ops.skinning.delete_result()
    assert scenes.data_blocks() == before
