# SPDX-License-Identifier: GPL-3.0-or-later
"""Joints are posed one at a time through their range, evenly, and nothing of the user's is lost."""

from functools import partial

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from skinning_tools.blender import actions
from skinning_tools.core.errors import BadSettings
from skinning_tools.features.eigenskin import joint_poses
from skinning_tools.features.eigenskin.example_pose import local_rotations
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.eigenskin_scenes import limb, pose

pytestmark = pytest.mark.usefixtures("extension")

BONES = ("root", "trunk", "upper", "lower")


@pytest.fixture
def rig():
    """The limb's armature, active, with "upper" and "lower" selected."""
    _, rig = limb()
    pose(rig)
    bpy.context.view_layer.objects.active = rig
    select(rig, "upper", "lower")
    return rig


def select(rig, *names) -> None:
    for pose_bone in rig.pose.bones:
        bone = pose_bone if bpy.app.version >= (5, 0, 0) else pose_bone.bone
        bone.select = pose_bone.name in names


def run(**given):
    assert bpy.ops.skinning.eigenskin_pose_joints(**given) == {"FINISHED"}


def markers() -> list[tuple[str, int]]:
    return [(marker.name, marker.frame) for marker in bpy.context.scene.timeline_markers]


def rotations(rig, frame) -> np.ndarray:
    """(J, 4) of all bones as evaluated at a frame."""
    bpy.context.scene.frame_set(frame)
    return local_rotations(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()), BONES)


def turned(bone, axis, degrees) -> np.ndarray:
    wanted = np.tile([1.0, 0, 0, 0], (4, 1))
    half = np.radians(degrees) / 2
    wanted[BONES.index(bone), 0], wanted[BONES.index(bone), 1 + "XYZ".index(axis)] = np.cos(half), np.sin(half)
    return wanted


refused = partial(refusals.refused, run, state=lambda: (moving_meshes.state(), markers()))


def test_poses_are_marked_and_one_joint_moves_at_a_time(rig):
    run(angle_min=np.radians(-60), angle_max=np.radians(90), steps=3, frames_per_pose=5, frame_start=11)
    names = [f"{bone} X {degrees:+d}°" for bone in ("upper", "lower") for degrees in (-60, -40, -20, 30, 60, 90)]
    assert [name for name, _ in markers()] == names
    for name, frame in markers():
        bone, axis, degrees = name.removesuffix("°").split(" ")
        assert np.abs(rotations(rig, frame) - turned(bone, axis, int(degrees))).max() < 1e-6, name
    last = max(frame for _, frame in markers())
    moving = np.array([np.abs(rotations(rig, frame) - turned("root", "X", 0)).max(axis=1) > 1e-6
                       for frame in range(1, last + 30)])  # fmt: skip
    assert (moving.sum(axis=1) <= 1).all()
    assert not moving[:11].any()
    assert not moving[last + 15 :].any()
    assert moving[11 : last - 1, 2].any()
    assert moving[:, 3].any()


def test_no_frame_is_faster_than_from_pose_to_pose(rig):
    run(angle_min=np.radians(-90), angle_max=np.radians(90), steps=3, frames_per_pose=5, bone_names="lower")
    angles = [2 * np.degrees(np.arcsin(rotations(rig, frame)[3, 1])) for frame in range(1, 80)]
    assert np.abs(np.diff(angles)).max() < 30 / 5 * 1.05
    assert np.ptp(angles) == pytest.approx(180, abs=1e-3)


def test_holding_a_pose(rig):
    run(steps=2, frames_per_pose=4, hold_frames=6, bone_names="lower")
    assert [name for name, _ in markers()] == ["lower X -90°", "lower X -45°", "lower X +45°", "lower X +90°"]
    for name, frame in markers():
        degrees = int(name.split(" ")[2].removesuffix("°"))
        for held in range(frame - 6, frame + 1):
            assert np.abs(rotations(rig, held) - turned("lower", "X", degrees)).max() < 1e-6
        assert np.abs(rotations(rig, frame + 1) - turned("lower", "X", degrees)).max() > 1e-3


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ", "YZX", "AXIS_ANGLE"])
def test_rotation_modes_and_axes(rig, mode):
    rig.pose.bones["lower"].rotation_mode = mode
    run(axes=(True, True, True), steps=2, bone_names="lower")
    assert len(markers()) == 12
    for name, frame in markers():
        bone, axis, degrees = name.removesuffix("°").split(" ")
        assert np.abs(rotations(rig, frame) - turned(bone, axis, int(degrees))).max() < 1e-6, name
    assert rig.pose.bones["lower"].rotation_mode == mode


def test_more_than_half_a_turn(rig):
    run(angle_min=0, angle_max=np.radians(270), steps=3, bone_names="lower")
    assert [name for name, _ in markers()] == ["lower X +90°", "lower X +180°", "lower X +270°"]
    for name, frame in markers():
        degrees = int(name.split(" ")[2].removesuffix("°"))
        found, wanted = rotations(rig, frame)[3], turned("lower", "X", degrees)[3]
        assert abs(found @ wanted) == pytest.approx(1, abs=1e-6)


def test_poses_divide_the_range_of_a_joint_evenly():
    assert joint_poses.pose_angles(-20, 100, 2) == [-20, -10, 50, 100]
    assert joint_poses.pose_angles(0, 90, 3) == pytest.approx([30, 60, 90])
    assert joint_poses.pose_angles(-90, 0, 3) == pytest.approx([-90, -60, -30])
    assert joint_poses.pose_angles(10, 90, 3) == [10, 50, 90]
    assert joint_poses.pose_angles(-90, -10, 1) == [-90]
    assert joint_poses.pose_angles(0, 0, 3) == []


def test_limits_of_constraint_and_kinematics(rig):
    constraint = rig.pose.bones["upper"].constraints.new("LIMIT_ROTATION")
    constraint.owner_space = "LOCAL"
    constraint.use_limit_x, constraint.min_x, constraint.max_x = True, np.radians(-10), np.radians(20)
    lower = rig.pose.bones["lower"]
    lower.use_ik_limit_x, lower.ik_min_x, lower.ik_max_x = True, 0.0, np.radians(120)
    lower.lock_ik_y = True
    run(axes=(True, True, False), use_limits=True, steps=1)
    names = ["upper X -10°", "upper X +20°", "upper Y -90°", "upper Y +90°", "lower X +120°"]
    assert [name for name, _ in markers()] == names
    constraint.mute = True
    run(use_limits=True, steps=1, bone_names="upper")
    assert [name for name, _ in markers()] == ["upper X -90°", "upper X +90°"]
    run(steps=1, bone_names="lower")
    assert [name for name, _ in markers()] == ["lower X -90°", "lower X +90°"]


def test_locked_axes_are_left_out(rig, capfd):
    rig.pose.bones["lower"].lock_rotation = (False, True, True)
    rig.pose.bones["upper"].lock_rotation = (True, True, True)
    run(axes=(True, True, True), steps=1)
    assert [name for name, _ in markers()] == ["lower X -90°", "lower X +90°"]
    assert "upper: locked" in capfd.readouterr().out


def test_posed_bones_return_to_rest(rig):
    rig.pose.bones["trunk"].rotation_quaternion = Quaternion((1, 2, 3), 0.8)
    rig.pose.bones["trunk"].location = (1, 2, 3)
    rig.pose.bones["lower"].scale = (1, 2, 1)
    rig.pose.bones["root"].rotation_mode = "XYZ"
    rig.pose.bones["root"].rotation_euler = (1, 0, 0)
    run(frame_start=5)
    # A key, not only a value, so that whatever poses the bones meanwhile does not count.
    for bone in rig.pose.bones:
        bone.location = bone.scale = (3, 3, 3)
        bone.rotation_quaternion, bone.rotation_euler = (0, 1, 0, 0), (1, 1, 1)
    bpy.context.scene.frame_set(5)
    for name, path in (("trunk", "rotation_quaternion"), ("trunk", "location"), ("lower", "scale"),
                       ("root", "rotation_euler")):  # fmt: skip
        values = np.array(getattr(rig.pose.bones[name], path))
        assert np.array_equal(values, {"scale": [1, 1, 1], "rotation_quaternion": [1, 0, 0, 0]}.get(path, [0, 0, 0]))


def test_the_users_action_is_kept(rig, capfd):
    scenes.key_property(rig.pose.bones["lower"], "location", {1: (0, 0, 0), 9: (1, 0, 0)})
    walk = rig.animation_data.action
    walk.name = "Walk"
    before = moving_meshes.state()[0]["actions"]
    run()
    assert rig.animation_data.action.name == "Limb rig example poses"
    assert walk.use_fake_user
    assert before == ["Walk"]
    assert 'the action "Walk" is kept' in capfd.readouterr().out
    actions.assign_action(rig, walk)
    bpy.context.scene.frame_set(9)
    assert tuple(rig.pose.bones["lower"].location) == (1, 0, 0)


def test_running_again_replaces_its_own(rig):
    scene = bpy.context.scene
    scene.timeline_markers.new("Beat", frame=3)
    run(steps=3)
    run(steps=1)
    assert [action.name for action in bpy.data.actions] == ["Limb rig example poses"]
    assert markers()[0] == ("Beat", 3)
    assert sorted(name for name, _ in markers()[1:]) == sorted(
        f"{bone} X {degrees:+d}°" for bone in ("upper", "lower") for degrees in (-90, 90)
    )


@pytest.mark.parametrize("note", [3, {"names": "upper X +90°"}, {"names": "a", "frames": ["b"]}])
def test_an_action_whose_note_somebody_has_changed_is_kept_as_the_users(rig, note):
    run(steps=1)
    action = rig.animation_data.action
    action["skinning_example_poses"] = note
    run(steps=3)
    assert rig.animation_data.action != action
    assert action.use_fake_user


def test_a_scene_that_stretches_time(rig):
    bpy.context.scene.render.frame_map_new = 250
    run(bone_names="lower", steps=2)
    for name, frame in markers():
        degrees = int(name.split(" ")[2].removesuffix("°"))
        assert np.abs(rotations(rig, frame) - turned("lower", "X", degrees)).max() < 1e-5


def test_the_frame_stays(rig):
    bpy.context.scene.frame_set(7)
    run()
    assert bpy.context.scene.frame_current == 7
    assert np.abs(local_rotations(rig.evaluated_get(bpy.context.evaluated_depsgraph_get()), BONES)
                  - rotations(rig, 7)).max() < 1e-7  # fmt: skip


def test_long_names_are_cut_to_what_a_marker_holds(rig):
    name = "ä" * 30
    rig.data.bones["lower"].name = name
    run(bone_names=name, steps=1)
    assert all(marker.endswith("°") and len(marker.encode()) <= 63 for marker, _ in markers())
    assert len(markers()) == 2


def test_posing_is_one_undo_step(rig):
    bpy.ops.ed.undo_push(message="before")
    run()
    bpy.ops.ed.undo_push(message="posed")
    bpy.ops.ed.undo()
    assert not bpy.data.actions
    assert markers() == []


def test_bad_input(rig):
    refused("No axis is chosen", axes=(False, False, False))
    refused("above the highest", "90", "-90", angle_min=np.pi / 2, angle_max=-np.pi / 2)
    refused("OUT_OF_RANGE Steps … at least 1 … 0", steps=0)
    refused("OUT_OF_RANGE Frames per Pose … at least 1 … 0", frames_per_pose=0)
    refused("OUT_OF_RANGE Hold … at least 0 … -1", hold_frames=-1)
    refused('NO_BONE "Limb rig" … "tail"', bone_names="upper, tail")
    refused("No bone can turn", angle_min=0, angle_max=0)
    select(rig)
    refused('NO_BONE_SELECTED "Limb rig"')
    bpy.context.view_layer.objects.active = scenes.grid()
    refused("NO_ARMATURE")
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    refused('ARMATURE_IN_EDIT_MODE "Limb rig"', bone_names="upper")


def test_tweak_mode_is_refused(rig):
    scenes.key_property(rig.pose.bones["lower"], "location", {1: (0, 0, 0), 9: (1, 0, 0)})
    animation = rig.animation_data
    track = animation.nla_tracks.new()
    track.strips.new("Walk", 1, animation.action)
    animation.action = None
    animation.nla_tracks.active = track
    track.select = track.strips[0].select = True
    animation.use_tweak_mode = True
    if not animation.use_tweak_mode:
        pytest.skip("Blender enters Tweak Mode only from the editor here")
    refused('TWEAK_MODE "Limb rig"')


def test_linked_armature(tmp_path):
    _, rig = limb()
    path = str(tmp_path / "rig.blend")
    bpy.data.libraries.write(path, {rig})
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = ["Limb rig"]
    scenes.link(bpy.data.objects["Limb rig"])
    refused('LINKED_OBJECT "Limb rig"', bone_names="upper")


def test_simulations_that_end_too_early_are_named(rig, capfd):
    cloth = scenes.cloth(bpy.data.objects["Limb"])
    unrelated = scenes.cloth(scenes.grid())
    bpy.context.view_layer.objects.active = rig
    cloth.point_cache.frame_end = unrelated.point_cache.frame_end = 20
    run()
    text = capfd.readouterr().out
    last = max(frame for _, frame in markers()) + 30
    assert '; the simulation "Cloth" of "Limb" ends at frame 20. Extend the cache to frame ' in text
    assert "Flag" not in text
    cloth.point_cache.frame_end = last
    run()
    assert "simulation" not in capfd.readouterr().out


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"axes": (True, False, True), "steps": 2, "hold_frames": 4, "frame_start": -20},
        {"angle_min": 0.2, "frames_per_pose": 3},
    ],
)
def test_the_outcome_is_known_before(rig, given):
    rig.pose.bones["upper"].lock_rotation[2] = True
    plan = joint_poses.planned_poses(rig, ["upper", "lower"], joint_poses.PoseRange(**given))
    posed = joint_poses.pose_joints(bpy.context, rig, ["upper", "lower"], joint_poses.PoseRange(**given))
    assert plan == (posed.pose_count, posed.last) == (len(markers()), posed.last)
    assert round(rig.animation_data.action.frame_range[1]) == posed.last


def test_the_outcome_of_impossible_ranges(rig):
    assert joint_poses.planned_poses(rig, ["lower"], joint_poses.PoseRange(angle_min=0, angle_max=0)) == (0, 1)
    with pytest.raises(BadSettings, match="No axis"):
        joint_poses.planned_poses(rig, ["lower"], joint_poses.PoseRange(axes=(False, False, False)))


def test_poses_over_a_ball(rig):
    """On two shells of angles in all directions; a joint that turns about one axis alone has its poses about that."""
    rig.pose.bones["lower"].lock_rotation = (False, True, True)
    run(axes=(True, True, True), sampling="BALL", count=24, angle_max=np.radians(100), steps=2)
    names = [name for name, _ in markers()]
    ball, rest = names[:24], names[24:]
    assert ball == [f"upper ball {number}" for number in range(1, 25)]
    assert rest == ["lower X -100°", "lower X -50°", "lower X +50°", "lower X +100°"]
    found = np.array([rotations(rig, frame)[2] for name, frame in markers()[:24]])
    angles = np.degrees(2 * np.arccos(np.abs(found[:, 0])))
    np.testing.assert_allclose(np.sort(angles), [50] * 12 + [95] * 12, atol=1e-3)
    directions = found[:, 1:] / np.linalg.norm(found[:, 1:], axis=1, keepdims=True)
    for shell in (directions[angles < 60], directions[angles > 60]):
        cosines = shell @ shell.T - 2 * np.eye(12)
        # The corners of an icosahedron.
        np.testing.assert_allclose(cosines.max(axis=1), 1 / np.sqrt(5), atol=0.01)


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ", "AXIS_ANGLE"])
def test_poses_over_a_ball_stay_within_the_limits(rig, mode):
    bone = rig.pose.bones["upper"]
    bone.rotation_mode = mode
    bone.use_ik_limit_x, bone.ik_min_x, bone.ik_max_x = True, np.radians(-20), np.radians(100)
    bone.use_ik_limit_y, bone.ik_min_y, bone.ik_max_y = True, 0.0, np.radians(60)
    bone.lock_ik_z = True
    run(axes=(True, True, True), sampling="BALL", count=16, use_limits=True, bone_names="upper")
    assert 8 <= len(markers()) <= 16
    found = np.array([rotations(rig, frame)[2] for _, frame in markers()])
    found *= np.where(found[:, :1] < 0, -1, 1)
    vectors = np.degrees(2 * np.arccos(found[:, :1])) * found[:, 1:] / np.linalg.norm(found[:, 1:], axis=1)[:, None]
    assert np.all(vectors.min(axis=0) > [-20, -1e-3, -1e-3])
    assert np.all(vectors.max(axis=0) < [100, 60, 1e-3])
    assert vectors[:, 0].max() > 80


@pytest.mark.parametrize("given", [{"count": 1}, {"angle_max": np.pi}, {"angle_max": 0.0}])
def test_what_is_no_ball(rig, given):
    refused("Poses" if "count" in given else "ball joint", axes=(True, True, True), sampling="BALL", **given)
