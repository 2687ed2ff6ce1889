# SPDX-License-Identifier: GPL-3.0-or-later
"""`--command skinning add-bone-links`, `add-bulge-bone` and their removal: what is printed and left, exit statuses."""

import re

import bpy
import numpy as np
import pytest

from skinning_tools.blender.helper_bones.records import find_helpers
from tests.blender import joint_helper_scenes as limbs
from tests.blender import scenes
from tests.blender.command_runs import run, saved
from tests.blender.refusals import assert_says

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def shot(tmp_path):
    """A limb whose elbow turns to 130° and whose wrist to 30°."""
    _, rig = limbs.bar(joints=(2.0, 4.0))
    for name, degrees in (("fore.L", 130), ("hand.L", 30)):
        for frame, angle in ((1, 0), (9, degrees)):
            limbs.pose(rig, **{name.replace(".", "_"): ((1, 0, 0), angle)})
            rig.pose.bones[name].keyframe_insert("rotation_quaternion", frame=frame)
    return saved(tmp_path)


def test_links_of_all_joints_that_need_them(shot, tmp_path, capsys):
    before, output = shot.read_bytes(), tmp_path / "out.blend"
    status = run("add-bone-links", "--object", "Bar", "--all-joints", "--output", output)
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    assert re.search(r"^Links of fore\.L +3$", printed.out, re.MULTILINE)
    assert "hand.L" not in printed.out
    assert "%  " in printed.out
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert [len(helper.skin) for helper in find_helpers(bpy.data.objects["Bar rig"])] == [3]
    assert shot.read_bytes() == before


def test_links_of_some_joints(shot, capsys):
    arguments = ("--joints", "hand.L,fore.L", "--threshold", 25, "--most", 4, "--spread", 0.2, "--overwrite", "--quiet")
    assert run("add-bone-links", "--object", "Bar rig", *arguments) == 0
    printed = capsys.readouterr().out
    assert "%" not in printed
    assert re.search(r"^Links of hand\.L +2$", printed, re.MULTILINE)
    assert re.search(r"^Links of fore\.L +4$", printed, re.MULTILINE)
    assert run("add-bone-links", "--object", "Bar", "--joints", "hand.L", "--overwrite") == 1
    assert "already" in capsys.readouterr().err


def test_twist_bones(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    arguments = ("--joints", "fore.L", "--kind", "twist", "--count", 2)
    assert run("add-bone-links", "--object", "Bar", *arguments, "--output", output) == 0
    assert re.search(r"^Twist bones of fore\.L +2$", capsys.readouterr().out, re.MULTILINE)


def test_a_biceps(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    arguments = ("--bone", "upper.L", "--from", 0, "--to", 130, "--amount", 0.5, "--radius", 0.8)
    assert run("add-bulge-bone", "--object", "Bar", *arguments, "--output", output) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^Bone upper_bulge\.L +by fore\.L$", printed, re.MULTILINE)
    bpy.ops.wm.open_mainfile(filepath=str(output))
    rig = bpy.data.objects["Bar rig"]
    bpy.context.scene.frame_set(9)
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    np.testing.assert_allclose(evaluated.pose.bones["upper_bulge.L"].location, [0, 0.4, 0], atol=1e-5)


def test_cloth_of_one_mesh(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    arguments = ("--bone", "upper.L", "--driver-bone", "fore.L", "--preset", "cloth", "--mesh")
    assert run("add-bulge-bone", "--object", "Bar", *arguments, "Skirt", "--output", output) == 1
    assert_says(capsys.readouterr().err, 'The armature "Bar rig" deforms no mesh "Skirt"')
    assert run("add-bulge-bone", "--object", "Bar", *arguments, "Bar", "--output", output) == 0
    assert re.search(r"^Bone upper_cloth\.L +by fore\.L$", capsys.readouterr().out, re.MULTILINE)


def test_what_was_added_is_removed(shot, tmp_path, capsys):
    before = limbs.mesh_state(bpy.data.objects["Bar"])
    common = ("--overwrite", "--quiet", "--object", "Bar")
    assert run("add-bone-links", "--joints", "hand.L,fore.L", "--count", 2, *common) == 0
    assert run("add-bulge-bone", "--bone", "upper.L", "--radius", 0.8, *common) == 0
    capsys.readouterr()
    assert run("remove-bone-links", "--joints", "hand.L", *common) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^Removed +hand\.L$", printed, re.MULTILINE)
    assert re.search(r"^Vertices painted since +0$", printed, re.MULTILINE)
    assert {helper.label for helper in find_helpers(bpy.data.objects["Bar rig"])} == {"fore.L", "upper_bulge.L"}
    assert run("remove-bulge-bone", "--bones", "upper.L", *common) == 0
    assert re.search(r"^Removed +upper_bulge\.L$", capsys.readouterr().out, re.MULTILINE)
    assert run("remove-bone-links", "--all-joints", *common) == 0
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert not find_helpers(bpy.data.objects["Bar rig"])
    assert limbs.mesh_state(bpy.data.objects["Bar"]) == before


def test_reasons_not_to_work(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    scenes.mesh_object([(0, 0, 0)], name="Loose")
    for arguments, part in (
        (("add-bone-links", "--object", "Arm", "--all-joints"), "Objects that fit: Bar rig, Bar, Loose"),
        (("add-bone-links", "--object", "Loose", "--all-joints"), '"Loose" is not an armature, and no armature'),
        (("add-bone-links", "--object", "Bar", "--joints", "elbow"), 'NO_BONE "elbow"'),
        (("add-bone-links", "--object", "Bar", "--joints", "hand.L"), "60°"),
        (("add-bulge-bone", "--object", "Bar", "--bone", "elbow"), 'NO_BONE "elbow"'),
        (("add-bulge-bone", "--object", "Bar", "--bone", "hand.L"), "No driver bone is known"),
        (("remove-bone-links", "--object", "Bar", "--all-joints"), "has no bone links"),
        (("remove-bulge-bone", "--object", "Bar", "--all-bones"), "has no bulge bones"),
    ):
        assert run(*arguments, "--output", output) == 1
        assert_says(capsys.readouterr().err, part)
    assert not output.exists()


@pytest.mark.parametrize(
    ("command", "option"),
    [("add-bone-links", "--joints"), ("remove-bone-links", "--joints"), ("remove-bulge-bone", "--bones")],
)
def test_bones_must_be_named(shot, tmp_path, capsys, command, option):
    assert run(command, "--object", "Bar", "--output", tmp_path / "out.blend") == 2
    assert option in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "idle"),
    [
        (["--all-joints", "--count", "2", "--most", "4"], "--most"),
        (["--joints", "fore.L", "--count", "2", "--threshold", "20"], "--threshold"),
        (["--joints", "fore.L", "--kind", "twist", "--across", "0.1"], "--reach, --spread and --across"),
    ],
)
def test_options_that_would_be_passed_over(shot, tmp_path, capsys, given, idle):
    assert run("add-bone-links", "--object", "Bar", *given, "--output", tmp_path / "out.blend") == 2
    assert f"leave out {idle}" in capsys.readouterr().err
