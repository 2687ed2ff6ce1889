# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Shape Keys to Bones of several meshes at once: head, teeth and eyes on one armature, with one set of
sliders."""

import json
from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.core.errors import BadScene
from skinning_tools.features.shape_keys.conversion import convert_shape_keys
from skinning_tools.features.shape_keys.faces import face_of
from tests.blender import command_runs, moving_meshes, panel_recorder, refusals, scenes
from tests.blender.shape_key_scenes import NAMES, played, turn, with_eye, with_teeth, world

pytestmark = pytest.mark.usefixtures("extension", "scene")

SETTINGS = {"selected_objects": True, "bone_count": 8, "max_influences": 3, "quality": "DRAFT"}
convert = partial(refusals.finished, "convert_shape_keys", **SETTINGS)
refused = partial(refusals.refused, "convert_shape_keys", **SETTINGS)
# Of what the keys move, up to 0.4, on a body of scale 2.
CLOSE, ROUNDING = 0.03, 2e-5


def assert_same_in_the_world(slider: str = "", close: float = ROUNDING, names: tuple = ()) -> None:
    """With one slider at 1, every skinned mesh, or those of ``names``, is where its source is with that key."""
    rig = bpy.data.objects["Face_rig"]
    for source, skinned in face_of(rig).pairs:
        if names and skinned.name not in names:
            continue
        block = source.data.shape_keys.key_blocks.get(slider)
        if block is not None:
            block.value = 1.0
        played(skinned, rig, **{slider: 1.0} if slider else {})
        assert np.abs(world(skinned) - world(source)).mean() < close, (skinned.name, slider)
        if block is not None:
            block.value = 0.0


def face_bones(rig, armature) -> dict[str, int]:
    """The number of the face's bones by their parent."""
    parents = [bone.parent.name for bone in rig.data.bones if bone.name not in armature.data.bones]
    return {name: parents.count(name) for name in set(parents)}


def shown_in_panel() -> str:
    return " ".join(panel_recorder.drawn(bpy.types.SKINNING_PT_shape_keys).texts)


def test_teeth_and_eyes_of_a_body_go_along():
    armature = with_eye()
    result, _ = scenes.drain(convert_shape_keys(bpy.context, bpy.context.active_object, **SETTINGS))
    figures = {figure.key: figure.value for figure in result.figures()}
    assert (figures["meshes"], figures["bones"], figures["sliders"], figures["vertices"]) == (3, 8, 5, 97)
    assert figures["worst_mesh"] == "Face"
    rig = bpy.data.objects["Face_rig"]
    assert [mesh.name for _, mesh in face_of(rig).pairs] == ["Face_skinned", "Eye_skinned", "Teeth_skinned"]
    assert {mesh.modifiers[0].object for _, mesh in face_of(rig).pairs} == {rig}
    assert list(rig["skinning_sliders"]) == [*NAMES, "look", "teethOut"]
    # The eye only turns, which a single bone does.
    assert face_bones(rig, armature) == {"head": 7, "eye": 1}
    for angles in ((0.4, 0.1, 0.2), (-0.5, 0.6, 0.0)):
        for each in (armature, rig):
            turn(each, angles)
            each.pose.bones["eye"].rotation_mode = "XYZ"
            each.pose.bones["eye"].rotation_euler = angles[::-1]
        assert_same_in_the_world()
        for slider in (NAMES[1], "look", "teethOut"):
            assert_same_in_the_world(slider, CLOSE)
        # At the edge that the neck shares, rigid bones are farther from what the jaw does.
        assert_same_in_the_world(NAMES[0], CLOSE, ("Teeth_skinned", "Eye_skinned"))


def test_without_an_armature_they_share_bones():
    ob, teeth = with_teeth()
    parent = scenes.link(bpy.data.objects.new("Parent", None))
    for each in (ob, teeth):
        each.parent = parent
    parent.location, parent.rotation_euler = (1, 2, 3), (0.3, 0.2, 0.1)
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    convert()
    rig = bpy.data.objects["Face_rig"]
    assert len(rig.data.bones) == 8
    parent.rotation_euler = (0.0, 0.5, 0.0)
    assert_same_in_the_world()
    for slider in rig["skinning_sliders"]:
        assert_same_in_the_world(slider, CLOSE)


def test_first_mesh_with_a_key_gives_range_value_and_animation():
    ob, teeth = with_teeth()
    keys, others = ob.data.shape_keys.key_blocks, teeth.data.shape_keys.key_blocks
    keys[NAMES[0]].slider_max, others[NAMES[0]].slider_max = 2.0, 3.0
    keys[NAMES[1]].value, others["teethOut"].slider_min = 0.7, -1.0
    for block, values in ((keys[NAMES[0]], (0.2, 1.5)), (others[NAMES[0]], (0.0, 1.0)), (others["teethOut"], (0, 0.5))):
        for frame, value in zip((1, 11), values, strict=True):
            block.value = value
            block.keyframe_insert("value", frame=frame)
    result, _ = scenes.drain(convert_shape_keys(bpy.context, ob, **SETTINGS))
    assert "animated in different ways" in result.summary()
    assert NAMES[0] in result.notes[-1]
    assert "teethOut" not in result.notes[-1]
    rig = bpy.data.objects["Face_rig"]
    assert (rig.id_properties_ui(NAMES[0]).as_dict()["max"], rig.id_properties_ui("teethOut").as_dict()["min"]) == (
        2,
        -1,
    )
    assert rig[NAMES[1]] == pytest.approx(0.7)
    bpy.context.scene.frame_set(11)
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    assert (evaluated[NAMES[0]], evaluated["teethOut"]) == pytest.approx((1.5, 0.5))


@pytest.mark.parametrize("active", ["Face", "Teeth"])
def test_driver_that_passes_a_key_on_is_no_other_animation(active):
    ob, teeth = with_teeth()
    block = ob.data.shape_keys.key_blocks[NAMES[0]]
    for frame, value in ((1, 0.0), (11, 0.5)):
        block.value = value
        block.keyframe_insert("value", frame=frame)
    driver = teeth.data.shape_keys.key_blocks[NAMES[0]].driver_add("value").driver
    target = driver.variables.new().targets[0]
    target.id_type, target.id, target.data_path = "KEY", ob.data.shape_keys, block.path_from_id("value")
    bpy.context.view_layer.objects.active = bpy.data.objects[active]
    result, _ = scenes.drain(convert_shape_keys(bpy.context, bpy.data.objects[active], **SETTINGS))
    assert result.notes == ()
    bpy.context.scene.frame_set(11)
    rig = bpy.data.objects[f"{active}_rig"]
    assert rig.evaluated_get(bpy.context.evaluated_depsgraph_get())[NAMES[0]] == pytest.approx(0.5)
    assert not rig.animation_data.drivers


def test_meshes_that_are_left_out_are_named():
    ob, _ = with_teeth()
    given = SETTINGS | {"selected_objects": False}
    result, _ = scenes.drain(convert_shape_keys(bpy.context, ob, **given))
    assert 'Only object "Face" is converted' in result.summary()
    assert '"Teeth"' in result.summary()
    assert "Teeth_skinned" not in bpy.data.objects
    bpy.context.view_layer.objects.active = None
    with pytest.raises(BadScene, match="There is no active object"):
        scenes.drain(convert_shape_keys(bpy.context, None, **given))


def test_meshes_of_different_armatures():
    with_eye()
    other = bpy.data.objects["Body"].copy()
    scenes.link(other).name = "Other"
    eye, ob = bpy.data.objects["Eye"], bpy.data.objects["Face"]
    bpy.context.view_layer.objects.active = ob
    bpy.context.scene.skinning_shape_keys.selected_objects = True
    assert "Converts Face, Eye, Teeth" in shown_in_panel()
    eye.modifiers[0].object = other
    assert 'The object "Eye" is not deformed by the armature "Body"' in shown_in_panel()
    refused('OTHER_ARMATURE "Eye" … "Body" … "Face"')
    eye.modifiers.clear()
    refused('OTHER_ARMATURE "Eye" … "Body" … "Face"')
    bpy.context.view_layer.objects.active = eye
    refused('OTHER_ARMATURE "Eye" … "Body" … "Face"')


def test_what_is_wrong_with_another_mesh_names_it():
    _, teeth = with_teeth()
    teeth.scale = (1, 2, 1)
    bpy.context.view_layer.update()
    refused('The object "Teeth" is scaled unevenly')
    teeth.scale = (2, 2, 2)
    for block in teeth.data.shape_keys.key_blocks:
        block.mute = True
    refused('All shape keys of object "Teeth" are muted')
    moving_meshes.fresh_scene()
    with_eye()
    refused("The meshes follow 2 bones of their armature", bone_count=1)


def test_cancelled_leaves_nothing():
    with_eye()
    before = moving_meshes.state()
    steps = convert_shape_keys(bpy.context, bpy.context.active_object, **SETTINGS)
    for fraction, _ in steps:
        if fraction > 0.93:
            break
    assert "Eye_skinned" in bpy.data.objects
    steps.close()
    assert moving_meshes.state() == before


def test_the_face_is_compared_and_converted_again_as_a_whole(tmp_path):
    with_eye()
    convert()
    sources = [bpy.data.objects[name] for name in ("Face", "Eye", "Teeth")]
    rig = bpy.context.view_layer.objects.active = bpy.data.objects["Face_rig"]
    refusals.finished("compare_face", show="RESULT")
    assert not any(ob.visible_get() for ob in sources)
    assert bpy.data.objects["Teeth_skinned"].visible_get()
    convert(selected_objects=False)
    again = bpy.data.objects["Face_rig.001"]
    assert [source for source, _ in face_of(again).pairs] == sources
    bpy.context.view_layer.objects.active = bpy.data.objects["Teeth_skinned.001"]
    assert "Worst Mesh" in shown_in_panel()
    refusals.finished("compare_face", show="BOTH")
    assert all(ob.visible_get() for ob in sources)
    assert not bpy.data.objects["Eye_skinned"].visible_get()
    bpy.context.view_layer.objects.active = rig
    refusals.finished("save_slider_table", filepath=str(tmp_path / "face.json"))
    table = json.loads((tmp_path / "face.json").read_text())
    (eye,) = [bone["name"] for bone in table["bones"] if bone["parent"] == "eye"]
    look = next(slider for slider in table["sliders"] if slider["name"] == "look")
    assert list(look["bones"]) == [eye]
    refusals.finished("add_slider_poses", kind="CLIPS")
    assert {"look", "teethOut"} <= {track.name for track in rig.animation_data.nla_tracks}
    sources[1].name = "Other"
    refused('The source of "Eye_skinned" was renamed', selected_objects=False)


def test_command_line(tmp_path):
    with_teeth()
    path = tmp_path / "face.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    given = "--object", "Face", "--object", "Tee*", "--bones", "5", "--input", str(path), "--overwrite"
    assert command_runs.run("convert-shape-keys", *given) == 0
    bpy.ops.wm.open_mainfile(filepath=str(path))
    assert [mesh.name for _, mesh in face_of(bpy.data.objects["Face_rig"]).pairs] == ["Face_skinned", "Teeth_skinned"]
