# SPDX-License-Identifier: GPL-3.0-or-later
"""Save Training Set: the action and the point cache show the same poses, and nothing else changes."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender import actions
from skinning_tools.blender.armatures import edit_bones_of
from skinning_tools.features.deformers.training import save_training_set
from tests.blender import moving_meshes, refusals, scenes, skinned_meshes
from tests.blender.partial_scenes import cancelled_at

pytestmark = pytest.mark.usefixtures("extension")

POSES = 9
save = partial(refusals.finished, "save_training_set", pose_count=POSES)
refused = partial(refusals.refused, "save_training_set", pose_count=POSES)


@pytest.fixture
def tube():
    """The tube with Corrective Smooth, its bones in various rotation modes, one limited; it plays another action."""
    ob, rig = skinned_meshes.rigged_tube(rings=21, segments=8)
    ob.modifiers.new("Smooth", "CORRECTIVE_SMOOTH").iterations = 5
    for bone, mode in zip(rig.pose.bones, ("QUATERNION", "XYZ", "AXIS_ANGLE", "ZXY", "QUATERNION"), strict=True):
        bone.rotation_mode = mode
    limit = rig.pose.bones["Bone 1"].constraints.new("LIMIT_ROTATION")
    limit.owner_space = "LOCAL"
    for axis in "xyz":
        setattr(limit, f"use_limit_{axis}", True)
        setattr(limit, f"min_{axis}", -0.3)
        setattr(limit, f"max_{axis}", 0.2)
    return ob, rig


def played_cache(ob, path) -> list[np.ndarray]:
    """What Blender's own Mesh Cache modifier plays from the file."""
    copy = ob.copy()
    copy.data = ob.data.copy()
    copy.modifiers.clear()
    scenes.link(copy)
    modifier = copy.modifiers.new("Cache", "MESH_CACHE")
    modifier.cache_format, modifier.filepath, modifier.frame_start = "PC2", str(path), 1
    found = scenes.played(copy, range(1, POSES + 2))
    bpy.data.objects.remove(copy)
    return found


@pytest.mark.parametrize("last_parent", ["Bone 3", None])
def test_action_and_cache_show_the_same(tube, tmp_path, last_parent):
    """Also where the last bone, as a foot that follows controls, is no child of that which it is joined to."""
    ob, rig = tube
    with edit_bones_of(bpy.context, rig) as bones:
        bones["Bone 4"].use_connect, bones["Bone 4"].parent = False, bones.get(last_parent or "")
    present, path = rig.animation_data.action, tmp_path / "tube.pc2"
    before = scenes.ui_state()
    save(filepath=str(path))
    assert scenes.ui_state() == before
    assert rig.animation_data.action == present
    action = bpy.data.actions["Arm_training"]
    assert action.use_fake_user
    cached = played_cache(ob, path)
    actions.assign_action(rig, action)
    wanted = scenes.played(ob, range(1, POSES + 2))
    np.testing.assert_allclose(cached, wanted, atol=1e-4)
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    moved = [np.abs(shape - wanted[0]).max() for shape in wanted]
    assert np.abs(wanted[0] - rest).max() < 0.05
    assert min(moved[1:]) > 0.05
    # The last ring with weights comes along with that in the middle of the bone before.
    rings = np.array(wanted).reshape(len(wanted), -1, 8, 3).mean(axis=2)
    lengths = np.linalg.norm(rings[:, 19] - rings[:, 14], axis=1)
    assert lengths.max() < 1.1 * lengths[0]


def test_the_seed_decides(tube, tmp_path):
    files = [tmp_path / f"{number}.pc2" for number in range(3)]
    for path, seed in zip(files, (1, 1, 2), strict=True):
        save(filepath=str(path), seed=seed)
    first, second, third = (path.read_bytes() for path in files)
    assert first == second
    assert first != third


def test_cancelled_leaves_nothing(tube, tmp_path):
    ob, _ = tube
    path, before, blocks = tmp_path / "tube.pc2", scenes.ui_state(), scenes.data_blocks()
    for fraction in (0.05, 0.5, 0.9):
        cancelled_at(fraction, save_training_set(bpy.context, ob, filepath=str(path), pose_count=POSES))
        assert scenes.ui_state() == before
        assert scenes.data_blocks() == blocks
        assert not list(tmp_path.iterdir())


def test_bad_input(tube, tmp_path):
    ob, rig = tube
    path = tmp_path / "tube.pc2"
    refused("The point cache needs a file name")
    refused("there is no folder", filepath=str(tmp_path / "none" / "tube.pc2"))
    path.write_bytes(b"another program's")
    refused("this extension did not write the file there", filepath=str(path))
    assert path.read_bytes() == b"another program's"
    path.unlink()
    constraint = rig.pose.bones["Bone 2"].constraints.new("LIMIT_SCALE")
    refused('the constraint "Limit Scale" of the bone "Bone 2"', "without controls", filepath=str(path))
    rig.pose.bones["Bone 2"].constraints.remove(constraint)
    rig.pose.bones["Bone 1"].driver_add("location", 0)
    refused('a driver of the bone "Bone 1"', filepath=str(path))
    rig.pose.bones["Bone 1"].driver_remove("location", 0)
    rig.data.bones["Bone 3"].use_inherit_rotation = False
    refused("the missing Inherit Rotation", filepath=str(path))
    rig.data.bones["Bone 3"].use_inherit_rotation = True
    ob.modifiers.remove(ob.modifiers["Smooth"])
    refused("Nothing but its weights deforms", filepath=str(path))
    assert not path.exists()
    moving_meshes.fresh_scene()


def test_command_line(tube, tmp_path, capsys):
    ob, _ = tube
    path, output, cache = tmp_path / "shot.blend", tmp_path / "taught.blend", tmp_path / "tube.pc2"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    arguments = ["save-training-set", "--object", ob.name, "--cache", str(cache), "--output", str(output)]
    assert command_line.main([*arguments, "--poses", str(POSES)]) == 0
    assert "Arm_training" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert "Arm_training" in bpy.data.actions
    assert len(played_cache(bpy.data.objects["Arm"], cache)) == POSES + 1
