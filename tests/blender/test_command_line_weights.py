# SPDX-License-Identifier: GPL-3.0-or-later
"""The tools on weights on the command line: what they print, what they leave, and their exit statuses."""

import re

import bpy
import numpy as np
import pytest

from tests.blender import binding_scenes, command_runs, skinned_meshes

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def shot(tmp_path):
    """A tube with a vertex that follows a bone far away, and another one that does by a little weight."""
    ob, _ = skinned_meshes.rigged_tube()
    for name in ("Bone 0", "Bone 1", "Bone 2"):
        ob.vertex_groups[name].remove([70])
    ob.vertex_groups["Bone 4"].add([70], 1, "REPLACE")
    ob.vertex_groups["Bone 4"].add([200], 0.03, "REPLACE")
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


def run(command: str, *arguments) -> int:
    return command_runs.run(command, *arguments)


def weights() -> np.ndarray:
    return binding_scenes.weights_of(bpy.data.objects["Arm"], bpy.data.objects["Rig"])


@pytest.mark.parametrize(
    ("command", "given", "lines"),
    [
        (
            "remove-rogue-weights",
            (),
            ["Vertices corrected +1$", "Islands +1$", "Bones +1$", "Doubtful islands left +1$"],
        ),
        (
            "remove-rogue-weights",
            ("--include-doubtful",),
            ["Vertices corrected +2$", "Islands +2$", "Bones +1$", "Doubtful islands left +0$"],
        ),
        (
            "smooth-weights",
            ("--strength", 0.4, "--iterations", 2),
            [r"Vertices smoothed +\d+", r"Largest change +0\.\d+"],
        ),
        (
            "compress-weights",
            ("--bits", 16, "--influences", 2, "--frame-end", 4),
            [
                "Bits +16",
                "Influences +2",
                "Bytes per vertex +4",
                "Frames measured +4",
                r"Worst vertex +\d+ at frame \d",
            ],
        ),
        (
            "partition-rigid",
            ("--to", "face-sets"),
            [r"Rigid parts +\d+", r"Skin faces +\d+ \(\d", "Vertices with no bone"],
        ),
    ],
)
def test_works_and_saves(shot, tmp_path, capsys, command, given, lines):
    before, output, old = shot.read_bytes(), tmp_path / "out.blend", weights()
    status = run(command, "--object", "Arm", *given, "--output", output)
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    for line in lines:
        assert re.search(f"^{line}", printed.out, re.MULTILINE), line
    assert shot.read_bytes() == before
    bpy.ops.wm.open_mainfile(filepath=str(output))
    if command == "partition-rigid":
        assert ".sculpt_face_set" in bpy.data.objects["Arm"].data.attributes
    else:
        assert not np.array_equal(weights(), old)


def test_quiet_and_overwrite(shot, capsys):
    assert run("partition-rigid", "--object", "Arm", "--to", "objects", "--overwrite", "--quiet") == 0
    printed = capsys.readouterr().out
    assert "Separating" not in printed
    assert "hidden" in printed
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert "Arm_skin" in bpy.data.objects
    # To hide is kept in the file.
    assert bpy.data.objects["Arm"].hide_render


def test_reasons_and_mistakes(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    for status, command, given, part in (
        (1, "remove-rogue-weights", ("--object", "Leg"), 'no object "Leg"'),
        (1, "smooth-weights", ("--object", "Arm", "--strength", 2), "strength"),
        (1, "smooth-weights", ("--object", "Arm", "--vertex-group", "x"), '"x"'),
        (2, "smooth-weights", ("--object", "Arm", "--invert"), "--vertex-group"),
        (2, "compress-weights", ("--object", "Arm", "--bits", 12), "--bits"),
        (1, "compress-weights", ("--object", "Arm", "--frame-start", 9, "--frame-end", 2), "inside out"),
        (1, "partition-rigid", ("--object", "Arm", "--tolerance", 0.7), "tolerance"),
    ):
        assert run(command, *given, "--output", output) == status
        assert part in capsys.readouterr().err
    assert not output.exists()
