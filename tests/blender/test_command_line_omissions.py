# SPDX-License-Identifier: GPL-3.0-or-later
"""All subcommands that read shapes from a scene fail where Blender leaves something out of them, unless it is allowed;
operators tell it."""

import json

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender.vertex_groups import put_weights
from skinning_tools.features.convert.panel import SKINNING_PT_conversion_result
from skinning_tools.features.partial.panel import SKINNING_PT_partial_solves
from tests.blender import binding_scenes, command_runs, eigenskin_scenes, omission_scenes, panel_recorder, scenes

pytestmark = pytest.mark.usefixtures("extension")

NAMES = ["trunk", "upper", "lower"]
TOLD = 'the driver of location[0] (bpy.context.scene.frame_current * 0.1) of object "Root" is not run'
COMMANDS = {
    "convert": ("--object", "Limb", "--bones", "2", "--iterations", "1"),
    "solve-weights": ("--object", "Limb", "--target", "Target"),
    "solve-again": ("--object", "Limb", "--target", "Free"),
    "solve-transforms": ("--object", "Limb", "--target", "Free"),
    "add-helper-bones": ("--object", "Limb", "--target", "Target", "--bones", "1"),
    "build-eigenskin": ("--object", "Limb", "--examples-from", "Target"),
    "compress-weights": ("--object", "Limb"),
    "add-bone-links": ("--object", "Rig", "--joints", "lower"),
    "fit-weights-to-pose": ("--object", "Limb", "--target", "Target", "--frame", "1", "--frame", "7"),
}


@pytest.fixture
def shot(tmp_path):
    """A limb that bends, a twin of it with other weights, another with a rig of its own, and a driver of what
    carries the limb's armature that Blender does not run."""
    scenes.empty_scene()
    limb, rig = eigenskin_scenes.limb()
    rig.name = "Rig"
    twin = limb.copy()
    twin.name, twin.data = "Target", limb.data.copy()
    scenes.link(twin)
    weights = binding_scenes.dense(twin, NAMES)
    weights[100:260] = np.random.default_rng(0).dirichlet(np.ones(3), 160)
    put_weights(twin, NAMES, np.tile(np.arange(3), (len(weights), 1)), weights)
    bpy.context.scene.frame_end = 7
    for frame, turns in ((1, [("lower", "X", 70), ("upper", "Z", 40)]), (7, [("lower", "Z", 50), ("upper", "X", 60)])):
        eigenskin_scenes.pose(rig, turns)
        for name in ("lower", "upper"):
            rig.pose.bones[name].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_set(1)
    free = twin.copy()
    free.name = "Free"
    other = scenes.link(rig.copy())
    other.data = rig.data.copy()
    other.animation_data.action = rig.animation_data.action.copy()
    scenes.link(free).modifiers["Armature"].object = other
    rig.parent = scenes.link(bpy.data.objects.new("Root", None))
    omission_scenes.driver(rig.parent)
    omission_scenes.reopened(tmp_path)
    return tmp_path / "shot.blend"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("allowed", [(), ("--allow-incomplete", "caches,render")], ids=["nothing", "something else"])
def test_it_is_a_failure(command, allowed, shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    assert command_runs.run(command, *COMMANDS[command], *allowed, "--output", output) == 1
    said = capsys.readouterr().err
    assert TOLD in said
    assert "--allow-incomplete scripts" in said
    assert not output.exists()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("allowed", ["Scripts", "files, scripts", "all"])
def test_it_is_a_note_where_it_is_allowed(command, allowed, shot, tmp_path, capsys):
    output, report = tmp_path / "out.blend", tmp_path / "report.json"
    given = (command, *COMMANDS[command], "--allow-incomplete", allowed, "--output", output, "--report", report)
    assert command_line.main([str(argument) for argument in given]) == 0
    assert "Note  " in capsys.readouterr().out
    notes = json.loads(report.read_text("utf-8"))["notes"]
    assert sum(TOLD in note for note in notes) == 1
    assert output.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_scripts_that_run_are_no_failure(command, shot, tmp_path, capsys):
    bpy.ops.wm.open_mainfile(filepath=str(shot), use_scripts=True)
    root = bpy.data.objects["Root"]
    root.animation_data.drivers[0].driver.expression = "bpy.context.scene.frame_current * 0.0"
    assert command_runs.run(command, *COMMANDS[command], "--output", tmp_path / "out.blend") == 0
    assert "driver" not in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("hidden", [False, True])
def test_a_driver_that_fails_at_a_later_frame_is_a_failure(command, hidden, shot, tmp_path, capsys):
    root = bpy.data.objects["Root"]
    # Where the scene itself does not evaluate it, either.
    for name in ("Root", "Rig"):
        bpy.data.objects[name].hide_set(hidden)
    curve = root.animation_data.drivers[0]
    curve.driver.expression = "0 / (frame - 7)"
    bpy.context.view_layer.update()
    assert curve.driver.is_valid
    assert command_runs.run(command, *COMMANDS[command], "--output", tmp_path / "out.blend") == 1
    assert 'the driver of location[0] (0 / (frame - 7)) of object "Root" is invalid' in capsys.readouterr().err


def test_a_bulge_bone_needs_the_pose_where_its_joint_is_straight_at_rest(shot, tmp_path, capsys):
    given = ("add-bulge-bone", "--object", "Rig", "--bone", "upper", "--output", tmp_path / "out.blend")
    assert command_runs.run(*given) == 1
    assert TOLD in capsys.readouterr().err
    assert command_runs.run(*given, "--allow-incomplete", "scripts") == 0
    assert TOLD in capsys.readouterr().out


def test_an_unknown_kind_is_an_error_of_usage(shot, tmp_path, capsys):
    given = ("--allow-incomplete", "scripts,weather", "--output", tmp_path / "out.blend")
    assert command_runs.run("convert", *COMMANDS["convert"], *given) == 2
    assert "there is no kind weather. Choose from scripts, drivers" in capsys.readouterr().err


def test_the_operator_converts_and_tells_it(shot, capfd):
    bpy.context.view_layer.objects.active = bpy.data.objects["Limb"]
    assert bpy.ops.skinning.convert_animation(bone_count=2, iterations=1) == {"FINISHED"}
    assert TOLD in capfd.readouterr().out
    rig = bpy.data.objects["Limb_rig"]
    bpy.context.view_layer.objects.active = rig
    assert TOLD[1:] in texts(SKINNING_PT_conversion_result)


def test_the_operator_solves_and_tells_it(shot, capfd):
    limb = bpy.data.objects["Limb"]
    bpy.context.view_layer.objects.active = limb
    assert bpy.ops.skinning.solve_weights(target="Target") == {"FINISHED"}
    assert TOLD in capfd.readouterr().out
    assert TOLD[1:] in texts(SKINNING_PT_partial_solves)


@pytest.mark.parametrize("operator", ["crs_to_shape_keys", "crs_to_pc2"])
def test_the_operator_plays_centers_of_rotation_and_tells_it(operator, shot, tmp_path, capfd):
    bpy.context.view_layer.objects.active = bpy.data.objects["Limb"]
    assert bpy.ops.skinning.bake_rotation_centers() == {"FINISHED"}
    given = {"filepath": str(tmp_path / "limb.pc2")} if operator == "crs_to_pc2" else {}
    assert getattr(bpy.ops.skinning, operator)(**given) == {"FINISHED"}
    assert TOLD in capfd.readouterr().out


def texts(panel) -> str:
    return " ".join(panel_recorder.drawn(panel).texts)


@pytest.fixture
def scripts_off():
    """What a file was opened with counts for those that are opened after it."""
    yield
    bpy.ops.wm.read_homefile(use_empty=True)
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False


@pytest.mark.parametrize("command", COMMANDS)
def test_the_advice_can_be_followed(command, shot, tmp_path, capsys, scripts_off):
    """The option that the message of a trusted file suggests removes the failure."""
    given = [command, *COMMANDS[command], "--input", str(shot), "--output", str(tmp_path / "out.blend")]
    assert command_line.main(given) == 1
    assert omission_scenes.ADVICE in capsys.readouterr().err
    assert command_line.main([*given, "--run-scripts"]) == 0
    assert "is not run" not in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_scripts_run_where_the_command_opens_the_file(command, shot, tmp_path, capsys):
    given = [command, *COMMANDS[command], "--output", str(tmp_path / "out.blend"), "--run-scripts"]
    assert command_line.main(given) == 2
    assert "--run-scripts requires --input" in capsys.readouterr().err


def test_scripts_of_shots_run(shot, tmp_path, capfd, monkeypatch):
    given = ["convert-shots", str(shot), "--output", str(tmp_path / "out"), *COMMANDS["convert"]]
    with command_runs.shots_in_this_blender(monkeypatch):
        assert command_line.main(given) == 1
        assert command_line.main([*given, "--run-scripts"]) == 0
        capfd.readouterr()
        assert command_line.main([*given, "--run-scripts"]) == 0
    assert "1, finished before" in capfd.readouterr().out
