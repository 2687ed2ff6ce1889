# SPDX-License-Identifier: GPL-3.0-or-later
"""The tools on weights on the command line: what they print, what they leave, and their exit statuses."""

import json
import re

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from tests.blender import binding_scenes, skinned_meshes
from tests.blender.command_runs import run, saved
from tests.blender.refusals import assert_says

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def shot(tmp_path):
    """A tube with a vertex that follows a bone far away, and another one that does by a little weight."""
    ob, _ = skinned_meshes.rigged_tube()
    for name in ("Bone 0", "Bone 1", "Bone 2"):
        ob.vertex_groups[name].remove([70])
    ob.vertex_groups["Bone 4"].add([70], 1, "REPLACE")
    ob.vertex_groups["Bone 4"].add([200], 0.03, "REPLACE")
    return saved(tmp_path)


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


def test_unweighted_vertices_are_counted_and_nothing_is_saved(shot, tmp_path, capsys):
    for group in bpy.data.objects["Arm"].vertex_groups:
        group.remove([5, 9])
    bpy.ops.wm.save_mainfile()
    shot.with_name("shot.blend1").unlink(missing_ok=True)
    before, report = shot.read_bytes(), tmp_path / "report.json"
    for name in ("Arm", "Rig"):
        assert command_line.main(["find-unweighted", "--object", name, "--report", str(report)]) == 0
        assert re.search(r"^Vertices without weights +18\nOf Arm +18$", capsys.readouterr().out, re.MULTILINE)
        told = json.loads(report.read_text())
        found = {"count": 18, "indices": [5, 9, *range(640, 656)]}
        assert told["figures"] == {"vertices_without_weights": 18, "meshes": {"Arm": found}}
        assert (told["input"]["path"], told["output"]) == (str(shot), None)
    assert shot.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "shot.blend"]


def test_unweighted_vertices_need_a_skinned_mesh(shot, capsys):
    bpy.ops.object.light_add()
    bpy.ops.mesh.primitive_cube_add()
    bpy.ops.object.armature_add()
    bpy.ops.wm.save_mainfile()
    for name, part in (
        ("Point", "NOT_A_MESH"), ("Cube", 'NOT_SKINNED "Cube"'), ("Armature", 'NO_DEFORMED_MESH "Armature"'),
        ("Leg", 'NO_OBJECT "Leg"'),
    ):  # fmt: skip
        assert run("find-unweighted", "--object", name) == 1
        assert_says(capsys.readouterr().err, part)


def test_reasons_and_mistakes(shot, tmp_path, capsys):
    output = tmp_path / "out.blend"
    for status, command, given, part in (
        (1, "remove-rogue-weights", ("--object", "Leg"), 'NO_OBJECT "Leg"'),
        (1, "smooth-weights", ("--object", "Arm", "--strength", 2), "strength"),
        (1, "smooth-weights", ("--object", "Arm", "--vertex-group", "x"), '"x"'),
        (2, "smooth-weights", ("--object", "Arm", "--invert"), "--vertex-group"),
        (2, "compress-weights", ("--object", "Arm", "--bits", 12), "--bits"),
        (1, "compress-weights", ("--object", "Arm", "--frame-start", 9, "--frame-end", 2), "RANGE_REVERSED"),
        (1, "partition-rigid", ("--object", "Arm", "--tolerance", 0.7), "tolerance"),
    ):
        assert run(command, *given, "--output", output) == status
        assert_says(capsys.readouterr().err, part)
    assert not output.exists()
