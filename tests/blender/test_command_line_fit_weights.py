# SPDX-License-Identifier: GPL-3.0-or-later
"""`--command skinning fit-weights-to-pose`: what it prints, what it leaves, and its exit statuses."""

import re
from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.blender.vertex_groups import put_weights, read_weights
from tests.blender import binding_scenes, command_runs, eigenskin_scenes, scenes
from tests.blender.refusals import assert_says

pytestmark = pytest.mark.usefixtures("extension")

run = partial(command_runs.run, "fit-weights-to-pose")

NAMES = ["trunk", "upper", "lower"]


@pytest.fixture
def shot(tmp_path):
    """A limb that bends in two ways at the frames 1 and 7, and a twin with other weights at its middle."""
    limb, rig = eigenskin_scenes.limb()
    twin = limb.copy()
    twin.name, twin.data = "Target", limb.data.copy()
    scenes.link(twin)
    weights = binding_scenes.dense(twin, NAMES)
    weights[100:260] = np.random.default_rng(0).dirichlet(np.ones(3), 160)
    put_weights(twin, NAMES, np.tile(np.arange(3), (len(weights), 1)), weights)
    for frame, turns in ((1, [("lower", "X", 70), ("upper", "Z", 40)]), (7, [("lower", "Z", 50), ("upper", "X", 60)])):
        eigenskin_scenes.pose(rig, turns)
        for name in ("lower", "upper"):
            rig.pose.bones[name].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.context.scene.frame_set(1)
    return command_runs.saved(tmp_path)


def test_fits_to_several_frames_and_saves(shot, tmp_path, capsys):
    before = shot.read_bytes()
    assert eigenskin_scenes.misses(1) > 0.05
    output = tmp_path / "out.blend"
    options = ("--target", "Target", "--frame", 1, "--frame", 7, "--candidates", "all", "--influences", 3)
    status = run("--object", "Limb", *options, "--output", output)
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    assert re.search(r"^Poses +2$", printed.out, re.MULTILINE)
    assert re.search(r"^Vertices fitted +160$", printed.out, re.MULTILINE)
    assert re.search(r"^Out of reach +0$", printed.out, re.MULTILINE)
    assert shot.read_bytes() == before
    bpy.ops.wm.open_mainfile(filepath=str(output))
    # Both poses settle the weights, so that it is right in all others, too.
    assert max(eigenskin_scenes.misses(frame) for frame in (1, 4, 7)) < 1e-5


def test_named_bones_and_a_shape_key(shot, capsys):
    limb = bpy.data.objects["Limb"]
    limb.shape_key_add(name="Basis")
    block = limb.shape_key_add(name="Bulge", from_mix=False)
    block.points[150].co.z += 0.2
    bpy.ops.wm.save_mainfile()
    assert run("--object", "Limb", "--shape-key", "Bulge", "--bones", "upper, lower", "--overwrite", "--quiet") == 0
    assert "Vertices fitted        1" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    _, weights = read_weights(bpy.data.objects["Limb"], ["trunk"])
    assert weights[150].sum() == 0


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--object", "Limb"], 1, "no posed copy"),
        (["--object", "Gone", "--target", "Target"], 1, 'NO_OBJECT "Gone"'),
        (["--object", "Limb", "--target", "Gone"], 1, 'NO_OBJECT "Gone"'),
        (["--object", "Limb", "--target", "Target", "--bones", "nose"], 1, 'NO_BONE "nose"'),
        (["--object", "Limb", "--shape-key", "Gone"], 1, 'no shape key "Gone"'),
        (["--object", "Limb", "--frame", "3"], 2, "--frame requires --target or --shape-key"),
        (["--object", "Limb", "--target", "Target", "--candidates", "selected"], 2, "invalid choice"),
        ([], 2, "--object"),
    ],
)
def test_what_is_refused(shot, tmp_path, capsys, arguments, status, text):
    output = tmp_path / "out.blend"
    assert run(*arguments, "--output", output) == status
    assert_says(capsys.readouterr().err, text)
    assert not output.exists()
