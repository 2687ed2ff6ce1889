# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples read from frames: an animation, a simulation or a cache gives each pose its shape, all or nothing."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.features.eigenskin import example_sources
from skinning_tools.features.eigenskin.examples import read_rig
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.eigenskin_scenes import limb, pose
from tests.blender.example_scenes import near, read

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def bending():
    return bending_limb()


def bending_limb() -> tuple[bpy.types.Object, bpy.types.Object]:
    """The limb, whose lower bone turns by 10° a frame from frame 3 to 9; preserve volume is on."""
    ob, rig = limb()
    pose(rig)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 9
    bone = rig.pose.bones["lower"]
    bone.rotation_mode = "XYZ"
    scenes.key_property(bone, "rotation_euler", {frame: (np.radians(10 * (frame - 3)), 0, 0) for frame in range(3, 10)})
    scene.frame_set(1)
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.update()
    return ob, rig


def add(**given):
    assert bpy.ops.skinning.eigenskin_add_frames(**given) == {"FINISHED"}


def frames_of(rig) -> list[int]:
    return [item.frame for item in rig.skinning_eigenskin.examples]


def state() -> tuple:
    return moving_meshes.state(), [len(ob.skinning_eigenskin.examples) for ob in bpy.data.objects]


refused = partial(refusals.refused, add, state=state)


def test_every_frame_that_poses_a_joint(bending, capfd):
    ob, rig = bending
    ui, wanted = scenes.ui_state(), scenes.played(ob, range(4, 10))
    add()
    assert "3 frames at rest left out" in capfd.readouterr().out
    assert frames_of(rig) == list(range(4, 10))
    examples = read(ob)
    assert examples.names == tuple(f"Frame {frame}" for frame in range(4, 10))
    near(ob, examples.shapes, wanted)
    half = np.radians(10 * np.arange(1, 7)) / 2
    assert (
        np.abs(examples.rotations[:, 3] - np.column_stack([np.cos(half), np.sin(half), 0 * half, 0 * half])).max()
        < 1e-6
    )
    assert scenes.ui_state() == ui
    assert {item.kind for item in rig.skinning_eigenskin.examples} == {"FRAMES"}


def test_range_and_step(bending):
    ob, rig = bending
    add(frame_start=4, frame_end=8, frame_step=2)
    assert frames_of(rig) == [4, 6, 8]
    near(ob, read(ob).shapes, scenes.played(ob, (4, 6, 8)))


def test_shapes_of_another_mesh(bending, tmp_path, capfd):
    ob, rig = bending
    noise = np.random.default_rng(5).normal(scale=0.1, size=(10, len(ob.data.vertices), 3))
    wanted = (scenes.played(ob, range(10)) + noise).astype(np.float32)
    scenes.write_pc2(tmp_path / "tissue.pc2", wanted)
    target = ob.copy()
    target.data = ob.data.copy()
    target.modifiers.clear()
    scenes.link(target)
    scenes.point_cache(target, tmp_path / "tissue.pc2", "PC2", first_frame=0)
    target.location.x += 0.2
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    add(frame_start=4)
    offset = np.array(ob.matrix_world.inverted() @ target.matrix_world)
    near(ob, read(ob).shapes, wanted[4:] @ offset[:3, :3].T + offset[:3, 3], tolerance=5e-6)
    assert frames_of(rig) == list(range(4, 10))
    assert f'with the shapes of "{target.name}" added' in capfd.readouterr().out
    assert {item.kind for item in rig.skinning_eigenskin.examples} == {"MESH"}


def test_another_mesh_that_leaves_the_pose(bending):
    ob, _ = bending
    target = ob.copy()
    scenes.link(target)
    bpy.context.view_layer.objects.active = ob
    scenes.key_property(target, "location", {1: target.location, 6: target.location, 7: (9, 0, 0)})
    refused(f'"{target.name}" is about', "at frame 7")


def test_held_poses_count_once(bending, capfd):
    _, rig = bending
    bone = rig.pose.bones["lower"]
    turn = (np.radians(60), 0, 0)
    scenes.key_property(bone, "rotation_euler", {12: turn, 15: (0, 0, 0), 18: turn})
    add(frame_start=9, frame_end=19)
    assert "frames with the pose of the next one" in capfd.readouterr().out
    # 9 to 12 are one pose, as are 18 and 19; back at it is another example.
    assert frames_of(rig) == [12, 13, 14, 16, 17, 19]


def test_frames_read_again_replace_those_of_the_same_poses(bending, capfd):
    ob, rig = bending
    add(frame_start=4, frame_end=6)
    ob.modifiers.new("Smooth", "SMOOTH").iterations = 5
    capfd.readouterr()
    add()
    assert "3 of the same poses replaced" in capfd.readouterr().out
    assert frames_of(rig) == list(range(4, 10))
    assert read(ob).names == tuple(f"Frame {frame}" for frame in range(4, 10))
    near(ob, read(ob).shapes, scenes.played(ob, range(4, 10)))


def test_the_marked_frames_are_read(bending):
    ob, rig = bending
    scene = bpy.context.scene
    rig.animation_data_clear()
    bpy.context.view_layer.objects.active = rig
    bpy.ops.skinning.eigenskin_pose_joints(bone_names="lower, upper", steps=2, frames_per_pose=3, frame_start=20)
    scene.timeline_markers.new("Beat", frame=22)
    marks = {marker.frame: marker.name for marker in scene.timeline_markers if marker.name != "Beat"}
    add()
    # Beyond the scene's range, as none was given.
    assert frames_of(rig) == sorted(marks)
    assert [item.name for item in rig.skinning_eigenskin.examples] == [marks[frame] for frame in sorted(marks)]
    near(ob, read(ob).shapes, scenes.played(ob, sorted(marks)))
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    first, second = sorted(marks)[:2]
    add(frame_start=first, frame_end=second)
    assert frames_of(rig) == [first, second]
    refused("No frame from 1 to 5 is marked", f"{first} to {max(marks)}", frame_start=1, frame_end=5)
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    add(frame_start=first, frame_end=first + 3, use_markers=False)
    assert frames_of(rig) == list(range(first, first + 4))


def soft_body(ob):
    ob.vertex_groups.new(name="goal").add(range(0, 200), 1.0, "REPLACE")
    modifier = ob.modifiers.new("Soft Body", "SOFT_BODY")
    modifier.settings.vertex_group_goal = "goal"
    bpy.context.view_layer.update()


def cloth(ob):
    scenes.cloth(ob, pinned=range(200))


@pytest.mark.parametrize("simulate", [soft_body, cloth])
@pytest.mark.parametrize("scrubbed", [False, True])
def test_a_simulation_is_played_from_its_start(simulate, scrubbed):
    ob, _ = bending_limb()
    simulate(ob)
    wanted = scenes.played(ob, range(1, 10))[[5, 8]]
    ob, rig = bending_limb()
    simulate(ob)
    for frame in (9, 4) if scrubbed else ():
        bpy.context.scene.frame_set(frame)
    add(frame_start=6, frame_end=9, frame_step=3)
    near(ob, read(ob).shapes, wanted)
    assert np.abs(wanted - read_rig(bpy.context, ob)[0].rest).max() > 0.1
    assert frames_of(rig) == [6, 9]


@pytest.mark.parametrize("simulate", [soft_body, cloth])
def test_a_simulation_that_ends_too_early(simulate):
    ob, rig = bending_limb()
    simulate(ob)
    ob.modifiers[-1].point_cache.frame_end = 8
    refused(f'"{ob.modifiers[-1].name}"', '"Limb" ends at frame 8', "Extend the cache to frame 9", frame_start=6)
    add(frame_start=7, frame_end=8)
    assert frames_of(rig) == [7, 8]
    bpy.context.scene.frame_set(9)
    with pytest.raises(RuntimeError, match="ends at frame 8"):
        bpy.ops.skinning.eigenskin_add_example()


def test_a_baked_simulation_that_ends_too_early():
    ob, _ = bending_limb()
    cloth(ob)
    cache = ob.modifiers[-1].point_cache
    cache.frame_end = 4
    with bpy.context.temp_override(point_cache=cache):
        bpy.ops.ptcache.bake(bake=True)
    assert cache.is_baked
    refused('"Limb" ends at frame 4', "Delete its bake, extend the cache to frame 9")


def corrected(ob, rig) -> None:
    """Build a correction, and have a shape key of the artist's on."""
    add()
    bpy.ops.skinning.build_eigenskin()
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    key = ob.shape_key_add(name="Smile", from_mix=False)
    for point in key.points:
        point.co.z += 0.2
    key.value = 0.5
    bpy.context.view_layer.update()


def test_without_corrections_and_other_shape_keys(bending, capfd):
    ob, rig = bending
    wanted = scenes.played(ob, range(4, 10))
    corrected(ob, rig)
    shown = scenes.played(ob, range(4, 10))
    capfd.readouterr()
    add()
    text = capfd.readouterr().out
    assert "read without the corrections" in text
    assert 'read without the shape keys "Smile", ' in text
    near(ob, read(ob).shapes, wanted)
    assert np.array_equal(scenes.played(ob, range(4, 10)), shown)


@pytest.mark.parametrize("steps_taken", [1, 6])
def test_cancelling_shows_the_corrections_again(bending, steps_taken):
    ob, rig = bending
    corrected(ob, rig)
    bpy.context.scene.frame_set(8)
    before = scenes.evaluated_positions(ob)
    steps = example_sources.add_frames(bpy.context, ob)
    for _ in range(steps_taken):
        next(steps)
    assert ob.show_only_shape_key
    steps.close()
    assert not ob.show_only_shape_key
    assert not ob.modifiers["Armature"].use_deform_preserve_volume
    assert np.array_equal(scenes.evaluated_positions(ob), before)


@pytest.mark.parametrize("steps_taken", [1, 4, 9])
def test_cancelling_leaves_nothing(bending, steps_taken):
    ob, rig = bending
    bpy.context.scene.frame_set(2, subframe=0.25)
    before = moving_meshes.state()
    steps = example_sources.add_frames(bpy.context, ob)
    for _ in range(steps_taken):
        next(steps)
    assert bpy.context.scene.frame_current == steps_taken
    steps.close()
    assert moving_meshes.state() == before
    assert not rig.skinning_eigenskin.examples


def test_failing_in_the_middle_leaves_nothing(bending):
    ob, rig = bending
    finer = ob.modifiers.new("Finer", "SUBSURF")
    finer.levels = 1
    scenes.key_property(finer, "show_viewport", {1: False, 7: True})
    bpy.context.scene.frame_set(1)
    refused("at frame 7", '"Limb" has 372', '"Finer" (Subdivision Surface)')
    assert not rig.skinning_eigenskin.examples


def test_hidden_at_a_frame(bending):
    ob, _ = bending
    scenes.key_property(ob, "hide_viewport", {1: False, 6: True})
    bpy.context.scene.frame_set(1)
    refused("hidden")


def test_progress_grows_to_the_end(bending):
    ob, _ = bending
    added, steps = scenes.drain(example_sources.add_frames(bpy.context, ob))
    fractions = [fraction for fraction, _ in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] <= 1
    assert steps[3] == (pytest.approx(0.95 * 4 / 9), "Reading frame 4")
    assert len(added.names) == 6


def test_reading_frames_is_one_undo_step(bending):
    bpy.ops.ed.undo_push(message="before")
    add()
    bpy.ops.ed.undo_push(message="added")
    bpy.ops.ed.undo()
    assert not bpy.data.objects["Limb rig"].skinning_eigenskin.examples
    assert len(bpy.data.meshes) == 1


def test_bad_input(bending):
    _, rig = bending
    refused("RANGE_REVERSED", frame_start=9, frame_end=1)
    refused("OUT_OF_RANGE at least 1 … 0", frame_step=0)
    refused("No joint", '"Limb"', "from 1 to 3", frame_end=3)
    rig.animation_data_clear()
    pose(rig)
    refused("No joint", '"Limb"', "9 frames")


def test_other_mesh_with_other_vertices(bending):
    ob, _ = bending
    scenes.grid()
    bpy.context.view_layer.objects.active = ob
    refused('OTHER_VERTEX_COUNT "Flag" at frame 4 … 20 … "Limb" … 372')


def test_missing_cache(bending, tmp_path):
    ob, _ = bending
    frames = np.zeros((10, len(ob.data.vertices), 3))
    scenes.write_pc2(tmp_path / "tissue.pc2", frames)
    scenes.point_cache(ob, tmp_path / "tissue.pc2", "PC2")
    (tmp_path / "tissue.pc2").unlink()
    refused("cache file", "missing", "tissue.pc2")
