# SPDX-License-Identifier: GPL-3.0-or-later
"""A face for game engines: actions of poses, pose assets, and the table from sliders to bones."""

import json
from functools import partial

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from skinning_tools.blender.actions import assign_action, property_path
from tests.blender import moving_meshes, panel_recorder, refusals
from tests.blender.shape_key_scenes import NAMES, face, on_body, played, positions

pytestmark = pytest.mark.usefixtures("extension")

add = partial(refusals.finished, "add_slider_poses")
save = partial(refusals.finished, "save_slider_table")
ROUNDING = 5e-6


@pytest.fixture
def rig():
    moving_meshes.fresh_scene()
    face()
    return converted()


def converted():
    refusals.finished("convert_shape_keys", bone_count=4, max_influences=3)
    rig = bpy.data.objects["Face_rig"]
    bpy.context.view_layer.objects.active = rig
    return rig


def skinned():
    return bpy.data.objects["Face_skinned"]


def test_one_action_with_a_pose_a_frame(rig):
    wanted = [played(skinned(), rig), *(played(skinned(), rig, **{name: 1.0}) for name in NAMES)]
    played(skinned(), rig)
    add(kind="TIMELINE")
    action = bpy.data.actions["Face_rig_poses"]
    assert [(marker.name, marker.frame) for marker in action.pose_markers] == [
        ("Neutral", 0),
        *((name, number + 1) for number, name in enumerate(NAMES)),
    ]
    assign_action(rig, action)
    for frame, points in enumerate(wanted):
        bpy.context.scene.frame_set(frame)
        np.testing.assert_allclose(positions(skinned()), points, atol=ROUNDING)


def test_sliders_stay_free(rig):
    wanted = played(skinned(), rig, **{NAMES[0]: 0.7})
    for kind in ("TIMELINE", "CLIPS", "ASSETS"):
        add(kind=kind)
    assert rig.animation_data.action is None
    bpy.context.scene.frame_set(2)
    np.testing.assert_allclose(played(skinned(), rig, **{NAMES[0]: 0.7}), wanted, atol=ROUNDING)


def test_an_unkeyed_pose_stays(rig):
    bone = rig.pose.bones[0]
    rig[NAMES[0]], bone.location = 0.2, (0, 0, 0)
    rig.keyframe_insert(property_path(NAMES[0]), frame=1)
    bone.keyframe_insert("location", frame=1)
    bpy.context.view_layer.update()
    rig[NAMES[0]], bone.location = 0.6, (1, 2, 3)
    for kind in ("TIMELINE", "CLIPS", "ASSETS"):
        add(kind=kind)
        bpy.context.view_layer.update()
        assert (rig[NAMES[0]], tuple(bone.location)) == (0.6, (1, 2, 3))


def test_made_again_they_replace_the_earlier_ones(rig):
    for kind in ("TIMELINE", "CLIPS", "TIMELINE", "CLIPS"):
        add(kind=kind)
    assert sorted(action.name for action in bpy.data.actions) == sorted(["Face_rig_poses", "Neutral", *NAMES])
    assert len(rig.animation_data.nla_tracks) == 5
    assert all(track.mute for track in rig.animation_data.nla_tracks)


@pytest.mark.parametrize("kinds", [("CLIPS", "ASSETS"), ("ASSETS", "CLIPS"), ("ASSETS", "CLIPS", "ASSETS")])
def test_names_do_not_depend_on_what_is_made_first(rig, kinds):
    for kind in kinds:
        add(kind=kind)
    titles = ["Neutral", *NAMES]
    assert sorted(action.name for action in bpy.data.actions) == sorted(titles + [f"{name}_pose" for name in titles])
    assert [track.name for track in rig.animation_data.nla_tracks] == titles


def test_tracks_of_a_second_face_have_plain_names(rig):
    add(kind="CLIPS")
    face("Second")
    refusals.finished("convert_shape_keys", bone_count=3, quality="DRAFT")
    bpy.context.view_layer.objects.active = second = bpy.data.objects["Second_rig"]
    add(kind="CLIPS")
    assert [track.name for track in second.animation_data.nla_tracks] == ["Neutral", *NAMES]


def test_own_action_stays(rig):
    rig.keyframe_insert(property_path(NAMES[1]), frame=1)
    before = rig.animation_data.action
    add(kind="CLIPS")
    assert rig.animation_data.action == before
    assert getattr(rig.animation_data, "action_slot", True) is not None


def test_source_stands_for_the_last_face_made_from_it(rig):
    bpy.context.view_layer.objects.active = bpy.data.objects["Face"]
    add(kind="TIMELINE")
    assert "Face_rig_poses" in bpy.data.actions


def test_pose_assets_add_up(rig):
    add(kind="ASSETS")
    wanted = played(skinned(), rig, **{NAMES[0]: 1.0, NAMES[1]: 1.0})
    rest = played(skinned(), rig)
    for name in NAMES[:2]:
        assert bpy.data.actions[f"{name}_pose"].asset_data is not None
        rig.pose.apply_pose_from_action(bpy.data.actions[f"{name}_pose"])
    rig.update_tag()
    np.testing.assert_allclose(positions(skinned()), wanted, atol=ROUNDING)
    rig.pose.apply_pose_from_action(bpy.data.actions["Neutral_pose"])
    rig.update_tag()
    np.testing.assert_allclose(positions(skinned()), rest, atol=ROUNDING)


def pose_of(table: dict, values: dict[str, float]) -> dict[str, np.ndarray]:
    """The matrix (4, 4) of each bone in the armature, from the table alone, as docs/engine_tables.md describes it."""
    pose = {}
    for bone in table["bones"]:
        place, axes = np.zeros(3), np.eye(3)
        for slider in table["sliders"]:
            motion, value = slider["bones"].get(bone["name"]), values.get(slider["name"], 0.0)
            if motion is not None:
                place = place + value * np.array(motion["location"])
                axes = axes + value * (np.array(Quaternion(motion["rotation"]).to_matrix()) - np.eye(3))
        y = axes[:, 1] / np.linalg.norm(axes[:, 1])
        z = axes[:, 2] - (axes[:, 2] @ y) * y
        z /= np.linalg.norm(z)
        local = np.eye(4)
        local[:3] = np.stack([np.cross(y, z), y, z, place], axis=1)
        pose[bone["name"]] = np.array(bone["rest"]) @ local
    return pose


def _rounding(bone: bpy.types.PoseBone) -> float:
    """Damped Track and Locked Track take their angles from a cosine in single precision, which a few operations have
    rounded: the smaller the angle, the less exact."""
    single = float(np.finfo(np.float32).eps)
    swing, twist = (bone.bone.matrix_local.inverted() @ bone.matrix).to_quaternion().to_swing_twist("Y")
    return ROUNDING + 8 * single / max(min(swing.angle, abs(twist)), single**0.5)


@pytest.mark.parametrize("body", [False, True])
def test_table_gives_the_pose(rig, tmp_path, body):
    if body:
        moving_meshes.fresh_scene()
        _, armature = on_body()
        armature.pose.bones["head"].rotation_euler = (0.0, 0.0, 0.0)
        rig = converted()
    save(filepath=str(tmp_path / "face.json"))
    table = json.loads((tmp_path / "face.json").read_text("utf-8"))
    assert (table["schema"], table["schema_version"]) == ("skinning_tools.sliders", 1)
    assert [(each["name"], each["least"], each["most"]) for each in table["sliders"]] == [(n, 0, 1) for n in NAMES]
    assert {bone["parent"] for bone in table["bones"]} == {"head" if body else None}
    for values in ({NAMES[0]: 1.0}, {NAMES[0]: 0.5, NAMES[2]: 0.7}):
        played(skinned(), rig, **values)
        shown = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
        for name, matrix in pose_of(table, values).items():
            np.testing.assert_allclose(matrix, shown[name].matrix, atol=_rounding(shown[name]))


def test_table_replaces_only_its_own_file(rig, tmp_path):
    path = tmp_path / "face.json"
    save(filepath=str(path))
    save(filepath=str(path))
    path.write_text('{"other": 1}')
    refusals.refused("save_slider_table", "did not write the file", filepath=str(path))
    assert path.read_text() == '{"other": 1}'


def test_without_the_helper(rig, tmp_path):
    bpy.data.objects.remove(bpy.data.objects["Face_sliders"])
    refusals.refused("save_slider_table", "follow no mesh of sliders", filepath=str(tmp_path / "face.json"))


def test_without_sliders():
    moving_meshes.fresh_scene()
    face()
    refusals.refused("add_slider_poses", 'The object "Face" is no face with sliders')
    refusals.refused("save_slider_table", 'The object "Face" is no face with sliders', filepath="face.json")


def test_panel_offers_them(rig):
    shown = panel_recorder.drawn(bpy.types.SKINNING_PT_face_sliders)
    assert "skinning.save_slider_table" in panel_recorder.pressable(shown)
