# SPDX-License-Identifier: GPL-3.0-or-later
"""`--command skinning`: what it prints, what it leaves, and its exit statuses."""

import re

import bpy
import pytest

from skinning_tools.blender.conversion_figures import REPORT_PROPERTY
from tests.blender import moving_meshes
from tests.blender.command_runs import run, saved
from tests.blender.refusals import assert_says

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def shot(tmp_path):
    """A saved and opened file with a moving mesh "Flag" and a camera "Eye"."""
    scene = moving_meshes.fresh_scene()
    moving_meshes.waving_grid()
    scene.collection.objects.link(bpy.data.objects.new("Eye", bpy.data.cameras.new("Eye")))
    return saved(tmp_path)


def test_converts_and_saves(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    before = shot.read_bytes()
    status = run(
        "convert", "--object", "Flag", "--bones", 6, "--kind", "rigid", "--influences", 3, "--iterations", 4,
        "--no-rest-pose", "--frame-start", 2, "--frame-end", 7, "--frame-step", 1, "--output", output,
    )  # fmt: skip
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    bpy.ops.wm.open_mainfile(filepath=str(output))
    report = bpy.data.objects["Flag_skinned"][REPORT_PROPERTY].to_dict()
    chosen = report["settings"]
    assert (chosen["bone_count"], chosen["bone_kind"], chosen["max_influences"]) == (6, "RIGID", 3)
    assert (chosen["iterations"], chosen["optimize_rest_pose"], chosen["target_error"]) == (4, False, 0)
    assert (report["frame_start"], report["frame_end"], report["frame_count"]) == (2, 7, 6)
    assert re.search(rf"^E_RMS +{report['e_rms']:.4f}$", printed.out, re.MULTILINE)
    assert str(output) in printed.out
    for stage in ("Reading", "Solving", "Writing", "Measuring"):
        assert f"%  {stage}" in printed.out
    assert shot.read_bytes() == before


def test_scene_range_and_defaults(shot, tmp_path, capsys):
    assert run("convert", "--object", "Flag", "--iterations", 2, "--quiet", "--output", tmp_path / "out.blend") == 0
    assert not re.search(r"^ *\d+ ?%", capsys.readouterr().out, re.MULTILINE)
    report = bpy.data.objects["Flag_skinned"][REPORT_PROPERTY].to_dict()
    assert (report["frame_start"], report["frame_end"], report["settings"]["bone_count"]) == (1, 8, 20)


def test_a_file_saved_with_its_source_hidden(shot, tmp_path):
    """The scene as the button Result leaves it, with the source hidden but still in the view layer."""
    source = bpy.data.objects["Flag"]
    source.hide_set(True)
    assert run("convert", "--object", "Flag", "--iterations", 2, "--quiet", "--output", tmp_path / "out.blend") == 0
    assert source.visible_get()
    bpy.data.objects.remove(bpy.data.objects["Flag_skinned"])
    source.hide_set(True)
    assert run("convert", "--object", "Flag", "--bones", 1000, "--output", tmp_path / "two.blend") == 1
    assert not source.visible_get()


def test_overwrites_only_on_request(shot, capsys):
    before = shot.read_bytes()
    assert run("convert", "--object", "Flag", "--bones", 4, "--output", shot) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert shot.read_bytes() == before
    assert "Flag_skinned" not in bpy.data.objects
    assert run("convert", "--object", "Flag", "--bones", 4, "--iterations", 2, "--overwrite") == 0
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert "Flag_skinned" in bpy.data.objects


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--object", "Fleg"], 1, 'NO_OBJECT "Fleg" … "Scene" … that fit: Flag'),
        (["--object", "Eye"], 1, 'NOT_A_MESH "Eye"'),
        (["--object", "Flag", "--bones", "0"], 1, "OUT_OF_RANGE Bones … at least 1 … 0"),
        (["--object", "Flag", "--bones", "1000"], 1, '"Flag"'),
        (["--object", "Flag", "--frame-start", "9", "--frame-end", "3"], 1, "RANGE_REVERSED"),
        (["--object", "Flag", "--bones", "many"], 2, "many is not a whole number"),
        (["--object", "Flag", "--kind", "SOFT"], 2, "invalid choice"),
        ([], 2, "--object"),
    ],
)
def test_a_failure_is_reported_and_saves_nothing(shot, tmp_path, capsys, arguments, status, message):
    output = tmp_path / "out.blend"
    before = moving_meshes.state()
    assert run("convert", *arguments, "--output", output) == status
    assert_says(capsys.readouterr().err, message)
    assert not output.exists()
    assert moving_meshes.state() == before


@pytest.mark.parametrize(
    ("output", "message"),
    [("missing_folder/out.blend", "there is no folder"), ("out.glb", ".blend file")],
)
def test_output_is_checked_before_the_work(shot, tmp_path, capsys, output, message):
    before = moving_meshes.state()
    assert run("convert", "--object", "Flag", "--output", tmp_path / output) == 2
    assert message in capsys.readouterr().err
    assert moving_meshes.state() == before


def test_where_to_save_must_be_said(shot, capsys):
    assert run("convert", "--object", "Flag") == 2
    assert "--output FILE.blend, or --overwrite" in capsys.readouterr().err


def test_file_must_be_open(tmp_path, capsys):
    moving_meshes.fresh_scene()
    moving_meshes.waving_grid()
    assert run("convert", "--object", "Flag", "--output", tmp_path / "out.blend") == 2
    assert "No file is open" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["convert", "--help"]])
def test_help(capsys, arguments):
    assert run(*arguments) == 0
    assert "--command skinning" in capsys.readouterr().out


def test_command_is_needed(capsys):
    assert run() == 2
    assert "COMMAND" in capsys.readouterr().err
