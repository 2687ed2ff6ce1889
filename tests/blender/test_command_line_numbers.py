# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option of every subcommand that takes a number, with numbers that make no sense: a result or a reason, and
never more memory than the work needs."""

import contextlib
import sys
from pathlib import Path

import bpy
import pytest

from skinning_tools import command_line
from skinning_tools.ui.command_line import arguments
from tests.blender import eigenskin_scenes, moving_meshes, scenes, shape_key_scenes, skinned_meshes
from tests.blender import joint_helper_scenes as limbs

pytestmark = pytest.mark.usefixtures("extension")

WHOLE = ("0", "-1", "99999", "2147483647", "2147483648", "-9223372036854775809", "1" + "0" * 400, "nan", "1.5", "0x10")
FRAME = ("0", "-1", "1048574", "-1048574", "2147483647", "1" + "0" * 30, "1e3")
REAL = ("0", "-1", "1e9", "3e38", "-3e38", "1e39", "1e308", "nan", "-inf", "inf", "1e-320", "")
VALUES = {arguments.whole_number: WHOLE, arguments.frame_number: FRAME, arguments.number: REAL}
# What takes its time, as was asked for: rounds without end, and every frame that Blender has. As many helper bones as
# there are vertices are asked for by the largest number, too.
PATIENT = {("--iterations", "99999"), ("--iterations", "2147483647"), ("--frame-end", "1048574")}
PATIENT |= {("--frame-start", "-1048574"), ("--poses", "99999"), ("--poses", "2147483647"), ("--helper-bones", "99999")}
# Memory in addition to that of the process at the beginning.
MOST_BYTES = 2 << 30

# For each command with numbers: the scene that it works on, and its other arguments.
TWO = ("--object", "Limb", "--target", "Target")
NEEDED = {
    "convert": ("flag", "--object", "Flag", "--bones", "4", "--iterations", "2"),
    "convert-shape-keys": ("face", "--object", "Face", "--bones", "4"),
    "solve-weights": ("limb", *TWO),
    "solve-transforms": ("limb", *TWO),
    "solve-again": ("skeleton", "--object", "Flag_skinned"),
    "add-helper-bones": ("limb", *TWO),
    "fit-weights-to-pose": ("limb", *TWO, "--frame", "7"),
    "build-eigenskin": ("limb", "--object", "Limb", "--examples-from", "Target"),
    "bind": ("tube", "--object", "Arm", "--replace"),
    "bake-rotation-centers": ("tube", "--object", "Arm"),
    "smooth-weights": ("tube", "--object", "Arm"),
    "transfer-weights": ("tube", "--object", "Sleeve", "--source", "Arm"),
    "compress-weights": ("tube", "--object", "Arm"),
    "pose-test": ("tube", "--object", "Arm"),
    "partition-rigid": ("tube", "--object", "Arm"),
    "bake-deformers": ("smoothed", "--object", "Limb", "--poses", "20"),
    "save-training-set": ("smoothed", "--object", "Limb", "--poses", "4", "--cache", "set.pc2"),
    "add-bone-links": ("bar", "--object", "Bar", "--all-joints"),
    "add-bulge-bone": ("bar", "--object", "Bar", "--bone", "fore.L"),
}


def commands() -> dict:
    return command_line.parser()._subparsers._group_actions[0].choices


def numeric(command) -> list:
    """The options of a subcommand that take a number."""
    return [action for action in command._actions if action.type in VALUES]


CASES = [
    (name, action.option_strings[-1], value)
    for name in NEEDED
    for action in numeric(commands()[name])
    for value in VALUES[action.type]
    if (action.option_strings[-1], value) not in PATIENT
]


def test_the_table_has_every_number():
    for name, command in commands().items():
        # What argparse would read by itself has no limits.
        assert not [action.dest for action in command._actions if action.type in (int, float)]
        # convert-shots takes the options of convert.
        assert not numeric(command) or name in {*NEEDED, "convert-shots"}
    assert len(CASES) > 300


@pytest.fixture(scope="module")
def shots(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shots")
    found = {name: folder / f"{name}.blend" for name in ("flag", "face", "limb", "smoothed", "tube", "bar")}
    moving_meshes.saved_flag(found["flag"])
    shape_key_scenes.face()
    bpy.ops.wm.save_as_mainfile(filepath=str(found["face"]))
    found["skeleton"] = folder / "skeleton.blend"
    hierarchy = "--kind", "rigid", "--joint-hierarchy", "--bones", "4", "--iterations", "2", "--quiet"
    files = "--input", str(found["flag"]), "--output", str(found["skeleton"])
    assert command_line.main(["convert", "--object", "Flag", *hierarchy, *files]) == 0
    scenes.empty_scene()
    limb, rig = eigenskin_scenes.limb()
    twin = limb.copy()
    twin.name = "Target"
    scenes.link(twin)
    twin.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 7
    for frame, degrees in ((1, 0), (7, 90)):
        eigenskin_scenes.pose(rig, [("lower", "X", degrees)])
        rig.pose.bones["lower"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.ops.wm.save_as_mainfile(filepath=str(found["limb"]))
    limb.modifiers.new("Smooth", "CORRECTIVE_SMOOTH")
    bpy.ops.wm.save_as_mainfile(filepath=str(found["smoothed"]))
    arm, _ = skinned_meshes.rigged_tube()
    sleeve = scenes.link(arm.copy())
    sleeve.name, sleeve.data = "Sleeve", arm.data.copy()
    sleeve.vertex_groups.clear()
    sleeve.modifiers.clear()
    bpy.ops.wm.save_as_mainfile(filepath=str(found["tube"]))
    _, rig = limbs.bar(joints=(2.0, 4.0))
    for frame, angle in ((1, 0), (9, 130)):
        limbs.pose(rig, fore_L=((1, 0, 0), angle))
        rig.pose.bones["fore.L"].keyframe_insert("rotation_quaternion", frame=frame)
    bpy.ops.wm.save_as_mainfile(filepath=str(found["bar"]))
    return found


@contextlib.contextmanager
def little_memory():
    """Limit the memory of this process, on systems that support it."""
    if sys.platform != "linux":
        yield
        return
    import resource

    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + MOST_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize(("name", "option", "value"), CASES)
def test_a_number_gives_a_result_or_a_reason(shots, tmp_path, capfd, caplog, name, option, value):
    shot, *needed = NEEDED[name]
    needed = [str(tmp_path / each) if each.endswith(".pc2") else each for each in needed]
    given = [name, *needed, "--input", str(shots[shot]), "--output", str(tmp_path / "out.blend"), "--quiet"]
    with little_memory():
        code = command_line.main([*given, f"{option}={value}"])
    error = capfd.readouterr().err
    assert code in (0, 1, 2)
    assert (tmp_path / "out.blend").exists() == (code == 0)
    assert ("Error: " in error) == (code != 0)
    assert "bug in Skinning Tools" not in error
    assert not caplog.records


@pytest.mark.parametrize("name", [name for name in NEEDED if "--influences" in commands()[name].format_help()])
def test_influences_are_no_more_than_bones(shots, tmp_path, name):
    """More influences than bones give the same weights as one for each bone."""
    shot, *needed = NEEDED[name]
    found = []
    for count in (8, 99999):
        output = tmp_path / f"{count}.blend"
        given = [name, *needed, "--input", str(shots[shot]), "--output", str(output), "--quiet"]
        assert command_line.main([*given, "--influences", str(count)]) == 0
        bpy.ops.wm.open_mainfile(filepath=str(output))
        found.append(
            {
                ob.name: [[(each.group, each.weight) for each in vertex.groups] for vertex in ob.data.vertices]
                for ob in bpy.data.objects
                if ob.type == "MESH"
            }
        )
    assert found[0] == found[1]
