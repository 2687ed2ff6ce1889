# SPDX-License-Identifier: GPL-3.0-or-later
"""A face and its source in the same place: which is shown, converting again, and what the panel has of both."""

from functools import partial

import bpy
import pytest

from skinning_tools.features.shape_keys.faces import face_of
from tests.blender import moving_meshes, panel_recorder, refusals, scenes
from tests.blender.shape_key_scenes import face

pytestmark = pytest.mark.usefixtures("extension")

convert = partial(refusals.finished, "convert_shape_keys", bone_count=4, max_influences=3, quality="DRAFT")
compare = partial(refusals.finished, "compare_face")


@pytest.fixture(autouse=True)
def converted():
    moving_meshes.fresh_scene()
    face()
    convert()


def activate(name: str) -> None:
    bpy.context.view_layer.objects.active = bpy.data.objects[name]


def visible(*names: str) -> list[bool]:
    return [bpy.data.objects[name].visible_get() for name in names]


def active() -> str:
    return bpy.context.view_layer.objects.active.name


def test_source_and_result_are_shown_in_turn():
    both = "Face", "Face_skinned"
    assert visible(*both) == [True, True]
    compare(show="RESULT")
    assert (visible(*both), active()) == ([False, True], "Face_skinned")
    compare()
    assert (visible(*both), active()) == ([True, False], "Face")
    activate("Face_rig")
    compare(show="BOTH")
    assert (visible(*both), active()) == ([True, True], "Face_rig")


def test_other_results_of_the_source_are_hidden():
    convert()
    activate("Face_skinned")
    compare(show="RESULT")
    assert visible("Face", "Face_skinned", "Face_skinned.001") == [False, True, False]


@pytest.mark.parametrize("name", ["Face_rig", "Face_skinned"])
def test_a_result_stands_for_its_source(name):
    activate(name)
    convert(bone_count=3)
    assert len(bpy.data.objects["Face_rig.001"].data.bones) == 3
    assert face_of(bpy.data.objects["Face_rig.001"]).source == bpy.data.objects["Face"]


def test_source_that_is_gone():
    bpy.data.objects["Face"].name = "Other"
    activate("Face_skinned")
    refusals.refused("compare_face", 'The source of "Face_skinned" was renamed')
    scenes.mesh_object([(0, 0, 0)], [], name="Lone")
    refusals.refused("compare_face", "no face that was converted")


def test_panel_has_figures_of_the_face_and_what_is_shown():
    for name in ("Face", "Face_skinned", "Face_rig"):
        activate(name)
        drawn = panel_recorder.drawn(bpy.types.SKINNING_PT_shape_keys)
        assert "Worst Slider" in drawn.texts
        assert {"Source", "Result", "Both"} <= drawn.buttons.keys()


def test_a_linked_source_is_found_after_the_file_was_saved_elsewhere(tmp_path):
    bpy.data.libraries.write(str(tmp_path / "faces.blend"), {bpy.data.objects["Face"]})
    moving_meshes.fresh_scene()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "uses.blend"))
    with bpy.data.libraries.load("//faces.blend", link=True, relative=True) as (_, wanted):
        wanted.objects = ["Face"]
    scenes.link(bpy.data.objects["Face"])
    activate("Face")
    convert()
    (tmp_path / "below").mkdir()
    moved = str(tmp_path / "below" / "uses.blend")
    bpy.ops.wm.save_as_mainfile(filepath=moved, relative_remap=True)
    bpy.ops.wm.open_mainfile(filepath=moved)
    assert face_of(bpy.data.objects["Face_rig"]).source == bpy.data.objects["Face"]
