# SPDX-License-Identifier: GPL-3.0-or-later
"""`--command skinning bind`: what it prints, what it leaves, and its exit statuses."""

import re
from functools import partial

import bpy
import pytest

from tests.blender import command_runs
from tests.blender.binding_scenes import armature_of_segments, check_bound, cube, tube
from tests.blender.refusals import assert_says

pytestmark = pytest.mark.usefixtures("extension")

run = partial(command_runs.run, "bind")


@pytest.fixture
def shot(tmp_path):
    """A tube, a box, their armature in a pose, and another armature."""
    tube()
    cube("Box", (1, 0, 0))
    armature_of_segments([[(0, 0, 0), (1, 0, 0)]], "Other")
    bpy.context.scene.frame_set(8)
    bpy.context.view_layer.objects.active = None
    return command_runs.saved(tmp_path)


def test_binds_and_saves(shot, tmp_path, capsys):
    before, output = shot.read_bytes(), tmp_path / "out.blend"
    status = run(
        "--object", "Arm", "--armature", "Rig", "--method", "point-to-line", "--influences", 2, "--output", output
    )
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    assert re.search(r"^Vertices bound +656$", printed.out, re.MULTILINE)
    assert re.search(r"^Bones +5$", printed.out, re.MULTILINE)
    assert "%  " in printed.out
    assert shot.read_bytes() == before
    bpy.ops.wm.open_mainfile(filepath=str(output))
    ob, rig = bpy.data.objects["Arm"], bpy.data.objects["Rig"]
    check_bound(ob, rig, 2)
    assert (ob.parent, ob.modifiers[0].object) == (rig, rig)
    assert not bpy.data.objects["Box"].vertex_groups


def test_several_objects(shot, capsys):
    assert run("--object", "Arm", "--object", "Box", "--armature", "Rig", "--overwrite", "--quiet") == 0
    assert "%" not in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    for name in ("Arm", "Box"):
        check_bound(bpy.data.objects[name], bpy.data.objects["Rig"])


def test_replace_and_the_armature_that_the_mesh_has(shot, tmp_path, capsys):
    assert run("--object", "Arm", "--armature", "Rig", "--overwrite", "--quiet") == 0
    assert run("--object", "Arm", "--overwrite") == 1
    assert "Enable Replace" in capsys.readouterr().err
    assert run("--object", "Arm", "--overwrite", "--replace", "--method", "RIGID", "--quiet") == 0
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    check_bound(bpy.data.objects["Arm"], bpy.data.objects["Rig"], 1)


def test_objects_to_bones(shot, capsys):
    assert run("--object", "Box", "--armature", "Rig", "--method", "RIGID", "--as-objects", "--overwrite") == 0
    assert re.search(r"^Box +Bone \d$", capsys.readouterr().out, re.MULTILINE)
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert bpy.data.objects["Box"].parent_type == "BONE"


def test_reasons_not_to_bind(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    for arguments, part in (
        (("--object", "Arm"), 'SEVERAL_ARMATURES "Other", "Rig"'),
        (("--object", "Leg"), 'NO_OBJECT "Leg"'),
        (("--object", "Rig"), 'NOT_A_MESH "Rig"'),
        (("--object", "Arm", "--armature", "Nobody"), 'NO_OBJECT "Nobody"'),
        (("--object", "Arm", "--armature", "Rig", "--influences", 0), "OUT_OF_RANGE Influences … at least 1 … 0"),
    ):
        assert run(*arguments, "--output", output) == 1
        assert_says(capsys.readouterr().err, part)
    assert run("--object", "Arm", "--whole-parts", "--output", output) == 2
    assert run("--object", "Arm", "--method", "MAGIC", "--output", output) == 2
    assert not output.exists()


@pytest.mark.parametrize(
    ("given", "idle"),
    [
        (["--influences", "2"], "--influences"),
        (["--distance-limit", "1"], "--distance-limit"),
        (["--use-envelopes"], "--use-envelopes"),
        (["--as-objects", "--replace"], "--replace"),
    ],
)
def test_options_that_would_be_passed_over(shot, tmp_path, capsys, given, idle):
    assert run("--object", "Arm", "--method", "rigid", *given, "--output", tmp_path / "out.blend") == 2
    assert f"leave out {idle}" in capsys.readouterr().err


@pytest.mark.parametrize("given", [["--falloff-inside", "0.5"], ["--falloff-outside", "1"], ["--no-smoothing"]])
def test_options_of_containment(shot, tmp_path, capsys, given):
    output = ("--output", tmp_path / "out.blend")
    assert run("--object", "Arm", "--replace", *given, *output) == 2
    assert f"{given[0]} require --method CONTAINMENT" in capsys.readouterr().err
    assert run("--object", "Arm", "--armature", "Rig", "--replace", "--method", "CONTAINMENT", *given, *output) == 0
