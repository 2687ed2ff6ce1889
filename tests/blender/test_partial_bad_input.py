# SPDX-License-Identifier: GPL-3.0-or-later
"""Partial solves on scenes whose parts do not fit: by the operators and, where it makes sense, on the command line."""

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender.background import drain
from skinning_tools.features.partial import helpers, motion, weights
from tests.blender import partial_scenes, scenes
from tests.blender.partial_scenes import BONES, FRAMES, error, moving_copy, select, tube, weights_of
from tests.blender.refusals import assert_says, refused

pytestmark = pytest.mark.usefixtures("extension")

OPERATORS = ("solve_weights", "solve_transforms", "add_helper_bones")
SOLVES = {
    "solve_weights": weights.solve_weights,
    "solve_transforms": motion.solve_transforms,
    "add_helper_bones": helpers.add_helper_bones,
}


@pytest.fixture
def rig():
    """The tube with its moving rig, and a target that differs from what that makes of it."""
    ob, armature = tube(move=0.1)
    wanted = scenes.played(ob, FRAMES)
    for row, shape in enumerate(wanted):
        shape[200:330, 2] += np.float32(0.2 * np.sin(row))
    target = moving_copy(ob, wanted)
    select(target, ob)
    return ob, armature, target, wanted


def refused_on_the_command_line(operator: str, tmp_path, capsys, *more) -> str:
    """The error output of the command; nothing is saved."""
    path, output = tmp_path / "shot.blend", tmp_path / "solved.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    arguments = [operator.replace("_", "-"), "--object", "Arm", "--target", "Target", "--output", str(output), *more]
    assert command_line.main(arguments) == 1
    assert not output.exists()
    return capsys.readouterr().err


def notes_of(operator: str, ob, **given) -> str:
    return "; ".join(drain(SOLVES[operator](bpy.context, ob, **given)).notes)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_armature_without_deforming_bones(rig, operator, tmp_path, capsys):
    _, armature, _, _ = rig
    for bone in armature.data.bones:
        bone.use_deform = False
    message = 'NO_DEFORMING_BONE "Rig"' if operator == "solve_weights" else "deforming bone"
    refused(operator, message)
    assert_says(refused_on_the_command_line(operator, tmp_path, capsys), message)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_armature_without_bones(rig, operator):
    _, armature, _, _ = rig
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in list(armature.data.edit_bones):
        armature.data.edit_bones.remove(bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    select(rig[2], rig[0])
    refused(operator, match="deform|bones")


@pytest.mark.parametrize("operator", ["solve_transforms", "add_helper_bones"])
def test_unweighted_vertices_are_reported_and_stay_unweighted(rig, operator):
    ob, armature, _, wanted = rig
    for name in BONES:
        ob.vertex_groups[name].remove(list(range(40, 60)))
    before = error(ob, wanted)
    assert "20 vertices (the first: 40) have no weights, so no bone moves them" in notes_of(operator, ob)
    assert error(ob, wanted) < before
    assert not weights_of(ob, armature)[40:60].any()


def test_vertices_without_weights_get_some(rig):
    ob, armature, _, wanted = rig
    for name in BONES:
        ob.vertex_groups[name].remove(list(range(40, 60)))
    before = error(ob, wanted)
    assert notes_of("solve_weights", ob) == ""
    np.testing.assert_allclose(weights_of(ob, armature).sum(axis=1), 1, atol=1e-6)
    assert error(ob, wanted) < before


@pytest.mark.parametrize("operator", OPERATORS)
def test_frames_beyond_the_keys_of_the_armature(rig, operator):
    """Blender holds the pose of the last key, and the solve uses it: no failure, but a note."""
    ob, _, target, wanted = rig
    _extend(target, wanted, 14)
    notes = notes_of(operator, ob, frame_start=1, frame_end=14)
    assert 'the action "RigAction" has keys from frame 1 to 8 only' in notes
    assert "stands still" not in notes


def _extend(target, wanted, last) -> None:
    """Let the target move on to the frame ``last``: it slides away."""
    for number in range(len(wanted) + 1, last + 1):
        block = target.shape_key_add(name=f"Frame {number}", from_mix=False)
        shape = wanted[-1] + [0, 0, 0.05 * (number - len(wanted))]
        block.points.foreach_set("co", shape.astype(np.float32).ravel())
        for other in (number - 1, number, number + 1):
            block.value = float(other == number)
            block.keyframe_insert("value", frame=other)
    held = target.data.shape_keys.key_blocks[f"Frame {len(wanted)}"]
    held.value = 0.0
    held.keyframe_insert("value", frame=len(wanted) + 1)


@pytest.mark.parametrize("operator", OPERATORS)
def test_frames_beyond_the_animation(rig, operator):
    """The target ends at frame 5 and stands still while the armature moves on."""
    ob, _, target, wanted = rig
    blocks = target.data.shape_keys.key_blocks
    still = np.ascontiguousarray(wanted[4], np.float32).ravel()
    for number in range(6, 9):
        blocks[f"Frame {number}"].points.foreach_set("co", still)
    notes = notes_of(operator, ob)
    told = 'object "Target" stands still from frame 5 on, while the armature moves' in notes
    # The solve is for the motion of the armature.
    assert told == (operator != "solve_transforms")


def test_frames_before_the_animation(rig):
    ob, _, target, wanted = rig
    blocks = target.data.shape_keys.key_blocks
    for number in range(1, 4):
        blocks[f"Frame {number}"].points.foreach_set("co", np.ascontiguousarray(wanted[3], np.float32).ravel())
    assert 'object "Target" stands still up to frame 4' in notes_of("solve_weights", ob)


@pytest.mark.parametrize("operator", ["solve_weights", "add_helper_bones"])
def test_a_target_that_was_put_aside_to_look_at_both(rig, operator):
    ob, _, target, _ = rig
    assert "beside" not in notes_of(operator, ob)
    target.location.y += 0.3 * max(target.dimensions)
    assert 'object "Target" is beside object "Arm", and was followed there' in notes_of(operator, ob)


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_target_that_stands_still_all_the_time(rig, operator):
    _, _, target, wanted = rig
    for block in target.data.shape_keys.key_blocks:
        block.points.foreach_set("co", np.ascontiguousarray(wanted[0], np.float32).ravel())
    refused(operator, 'Nothing moves: object "Target"')


@pytest.mark.parametrize("operator", ["solve_weights", "add_helper_bones"])
def test_everything_locked_on_the_command_line(rig, operator, tmp_path, capsys):
    ob, _, _, _ = rig
    ob.vertex_groups.new(name="All").add(list(range(len(ob.data.vertices))), 1.0, "REPLACE")
    message = refused_on_the_command_line(operator, tmp_path, capsys, "--locked-vertices", "All")
    assert "All weights of" in message
    assert "are locked" in message
    for group in ob.vertex_groups:
        group.lock_weight = True
    assert "are locked" in refused_on_the_command_line(operator, tmp_path, capsys)


def test_a_target_error_that_no_count_reaches_on_the_command_line(tmp_path, capsys):
    """The best possible result is made, and the report says so."""
    partial_scenes.moving_meshes.fresh_scene()
    partial_scenes.moving_meshes.waving_grid()
    path, output = tmp_path / "shot.blend", tmp_path / "converted.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    arguments = ["convert", "--object", "Flag", "--bones", "3", "--target-error", "0.01", "--output", str(output)]
    assert command_line.main(arguments) == 0
    assert "target 0.01 not reached with up to 3 bones" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert bpy.data.objects["Flag_skinned"]["skinning_bone_count"] == 3
