# SPDX-License-Identifier: GPL-3.0-or-later
"""`--command skinning bake-rotation-centers`: what it prints, what it leaves, and its exit statuses."""

import re
from functools import partial

import bpy
import pytest

from skinning_tools.blender.center_records import native_modifier
from skinning_tools.features.centers.baking import FRESH, bake_record, bake_state
from tests.blender import command_runs, moving_meshes
from tests.blender.refusals import assert_says
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")

run = partial(command_runs.run, "bake-rotation-centers")


@pytest.fixture
def shot(tmp_path):
    rigged_tube()
    return command_runs.saved(tmp_path)


def test_bakes_and_saves(shot, tmp_path, capsys):
    before = shot.read_bytes()
    output = tmp_path / "out.blend"
    status = run(
        "--object", "Arm", "--sigma", 0.2, "--subdivision-epsilon", 0, "--attribute", "cor", "--symmetrize",
        "--output", output,
    )  # fmt: skip
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    bpy.ops.wm.open_mainfile(filepath=str(output))
    ob = bpy.data.objects["Arm"]
    record = bake_record(ob)
    assert (record.attribute, record.sigma, record.subdivision_epsilon, record.symmetrize) == ("cor", 0.2, 0, True)
    assert bake_state(ob) == FRESH
    assert re.search(rf"^With a center +{record.center_count}$", printed.out, re.MULTILINE)
    assert "%  " in printed.out
    assert shot.read_bytes() == before


def test_quiet_and_saved_over_the_opened_file(shot, capsys):
    assert run("--object", "Arm", "--overwrite", "--quiet") == 0
    assert "%" not in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert bake_state(bpy.data.objects["Arm"]) == FRESH


def test_several_meshes_are_one_body(shot, capsys):
    ob = bpy.data.objects["Arm"]
    other = ob.copy()
    other.data, other.name = ob.data.copy(), "Sleeve"
    ob.users_collection[0].objects.link(other)
    bpy.ops.wm.save_mainfile()
    assert run("--object", "Sl*", "--object", "Arm", "--overwrite", "--quiet") == 0
    assert "Sleeve, Arm" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert [bake_state(bpy.data.objects[name]) for name in ("Arm", "Sleeve")] == [FRESH, FRESH]


@pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="geometry nodes read bones from Blender 5.1 on")
def test_adds_the_modifier(shot):
    assert run("--object", "Arm", "--overwrite", "--quiet", "--add-modifier") == 0
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert native_modifier(bpy.data.objects["Arm"]) is not None


@pytest.mark.skipif(bpy.app.version >= (5, 1, 0), reason="has the modifier")
def test_explains_the_missing_modifier(shot, capsys):
    before = shot.read_bytes()
    assert run("--object", "Arm", "--overwrite", "--quiet", "--add-modifier") == 1
    assert "Blender 5.1 or newer" in capsys.readouterr().err
    assert shot.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--object", "Leg"], 1, 'NO_OBJECT "Leg"'),
        (["--object", "Rig"], 1, 'NOT_A_MESH "Rig"'),
        (["--object", "Arm", "--sigma", "0"], 1, "OUT_OF_RANGE Sigma … at least 0.0001 … 0"),
        (["--object", "Arm", "--sigma", "small"], 2, "small is not a number"),
        ([], 2, "--object"),
    ],
)
def test_a_failure_is_reported_and_saves_nothing(shot, tmp_path, capsys, arguments, status, message):
    before = moving_meshes.state()
    assert run(*arguments, "--output", tmp_path / "out.blend") == status
    assert_says(capsys.readouterr().err, message)
    assert not (tmp_path / "out.blend").exists()
    assert moving_meshes.state() == before


def test_help(capsys):
    assert run("--help") == 0
    assert "bake-rotation-centers" in capsys.readouterr().out
