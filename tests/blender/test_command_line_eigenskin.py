# SPDX-License-Identifier: GPL-3.0-or-later
"""`--command skinning build-eigenskin`: what it prints, what it leaves, and its exit statuses."""

import re
from functools import partial

import bpy
import pytest

from skinning_tools.features.eigenskin.record import eigenskin_record
from tests.blender import command_runs, eigenskin_scenes, scenes
from tests.blender.refusals import assert_says

pytestmark = pytest.mark.usefixtures("extension")

run = partial(command_runs.run, "build-eigenskin")


@pytest.fixture
def shot(tmp_path):
    """A limb whose elbow turns from frame 1 to 7, and a twin of it that preserves volume."""
    limb, rig = eigenskin_scenes.limb()
    twin = limb.copy()
    twin.name = "Target"
    scenes.link(twin)
    twin.modifiers["Armature"].use_deform_preserve_volume = True
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 7
    for frame, degrees in ((1, 0), (7, 90)):
        eigenskin_scenes.pose(rig, [("lower", "X", degrees)])
        rig.pose.bones["lower"].keyframe_insert("rotation_quaternion", frame=frame)
    return command_runs.saved(tmp_path)


def test_reads_examples_builds_and_saves(shot, tmp_path, capsys):
    before, plain = shot.read_bytes(), eigenskin_scenes.misses(6)
    output = tmp_path / "out.blend"
    status = run("--object", "Limb", "--examples-from", "Target", "--components", 2, "--output", output)
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    assert re.search(r"^Examples added +6$", printed.out, re.MULTILINE)
    assert re.search(r"^Shape keys +2$", printed.out, re.MULTILINE)
    assert "%  " in printed.out
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert [support.name for support in eigenskin_record(bpy.data.objects["Limb"]).supports] == ["lower"]
    assert eigenskin_scenes.misses(6) < 0.2 * plain
    assert shot.read_bytes() == before


def test_uses_the_examples_of_the_file(tmp_path, capsys):
    eigenskin_scenes.limb_with_examples()
    path = tmp_path / "examples.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert run("--object", "Limb", "--budget", 4, "--overwrite", "--quiet") == 0
    printed = capsys.readouterr().out
    assert "%" not in printed.replace("Error left", "")
    assert re.search(r"^Shape keys +4$", printed, re.MULTILINE)


def test_reasons_not_to_build(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    for arguments, part in (
        (("--object", "Limb"), "no examples"),
        (("--object", "Arm"), 'NO_OBJECT "Arm"'),
        (("--object", "Limb", "--examples-from", "Elbow"), 'NO_OBJECT "Elbow"'),
        (("--object", "Limb", "--examples-from", "Target", "--support-threshold", 1.0), "threshold"),
    ):
        assert run(*arguments, "--output", output) == 1
        assert_says(capsys.readouterr().err, part)
    assert not output.exists()


def test_frames_without_a_source_are_a_mistake(shot, tmp_path, capsys):
    assert run("--object", "Limb", "--frame-start", 2, "--output", tmp_path / "out.blend") == 2
    assert "--examples-from" in capsys.readouterr().err
