# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Motion: known motion is recovered, joints hold, other motion stays, and bad input is refused."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender.armatures import edit_bones_of
from skinning_tools.blender.pose_keys import rotation_values
from skinning_tools.features.partial import motion as motion_module
from skinning_tools.features.partial.motion import solve_transforms
from tests.blender import moving_meshes, partial_scenes, refusals, scenes
from tests.blender.partial_scenes import (
    BONES,
    FRAMES,
    add_bone,
    cancelled_at,
    error,
    figures,
    keys_of,
    matrices_of,
    moving_copy,
    rigged_at_rest,
    select,
    tube,
)

pytestmark = pytest.mark.usefixtures("extension")

solve = partial(refusals.finished, "solve_transforms")
refused = partial(refusals.refused, "solve_transforms")


@pytest.fixture
def rig():
    """Bones that turn and move."""
    return rigged_at_rest(move=0.1)


def heads(armature, numbers=FRAMES) -> np.ndarray:
    """(F, P − 1) how far each bone's head is from where its parent takes it, in the armature's space."""
    scene, found = bpy.context.scene, []
    for number in numbers:
        scene.frame_set(number)
        posed = armature.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
        found.append([
            (bone.head - bone.parent.matrix @ (bone.bone.parent.matrix_local.inverted() @ bone.bone.head_local)).length
            for bone in posed if bone.parent
        ])  # fmt: skip
    return np.array(found)


@pytest.mark.parametrize("kind", ["RIGID", "AFFINE"])
def test_transforms_of_the_wolf_are_recovered(shared_data, kind):
    ob, armature, _, data = partial_scenes.wolf(shared_data("wolf_ground_truth.npz"), kind)
    numbers = range(1, 22)
    names = [bone.name for bone in armature.data.bones if bone.use_deform]
    before = keys_of(armature.animation_data.action)
    # What Blender's single precision makes of the true transforms, keyed as they are.
    rounding = np.abs(matrices_of(ob, armature, names, numbers) - data["transforms"]).max(axis=(0, 1, 2))
    for curve in partial_scenes.curves(armature.animation_data.action):
        for point in curve.keyframe_points:
            point.co[1] = float(curve.data_path.endswith("scale") or (curve.data_path, curve.array_index)[1:] == (0,))
    assert error(ob, data["frames"], numbers) > 10
    solve(bone_kind=kind)
    diagonal = np.linalg.norm(np.ptp(data["rest"], axis=0))
    solved = matrices_of(ob, armature, names, numbers)
    differences = np.abs(solved - data["transforms"]).max(axis=(0, 1, 2))
    assert np.all(differences <= rounding + 1e-4 * np.array([1, 1, 1, diagonal]))
    assert error(ob, data["frames"], numbers) < 0.01
    assert set(keys_of(armature.animation_data.action)) >= set(before)


def test_the_motion_of_a_chain_of_parents_is_recovered(rig):
    ob, armature, _, wanted = rig
    solve()
    assert error(ob, wanted) < 0.002
    assert figures(ob).e_rms == pytest.approx(error(ob, wanted), abs=1e-4)
    assert figures(ob).e_rms_before > 50
    # Bones are still connected to their parents.
    assert [bone.parent and bone.parent.name for bone in armature.data.bones] == [None, *BONES[:-1]]


@pytest.mark.parametrize(("kind", "limit"), [("RIGID", 30), ("SCALED", 25), ("AFFINE", 0.01)])
def test_kinds_of_bones_where_the_target_shears(kind, limit):
    """Bones that scale under bones that scale: only chains of two can follow."""
    ob, armature, _, wanted = rigged_at_rest(stretch=0.2, move=0.1)
    solve(bone_kind=kind)
    assert error(ob, wanted) < limit
    assert figures(ob).e_rms == pytest.approx(error(ob, wanted), rel=1e-2, abs=1e-3)
    if kind == "RIGID":
        linear = matrices_of(ob, armature, BONES)[..., :3]
        np.testing.assert_allclose(
            linear.swapaxes(-1, -2) @ linear, np.broadcast_to(np.eye(3), linear.shape), atol=1e-4
        )
    assert len(armature.data.bones) == (10 if kind == "AFFINE" else 5)


def test_each_kind_does_better_than_the_one_before():
    errors = []
    for kind in ("RIGID", "SCALED", "AFFINE"):
        ob, _, _, _ = rigged_at_rest(stretch=0.2, move=0.1)
        solve(bone_kind=kind)
        errors.append(figures(ob).e_rms)
    assert errors[0] > errors[1] > errors[2]


def test_scaled_bones_that_inherit_no_scale():
    ob, armature = tube()
    for bone in armature.data.bones:
        bone.inherit_scale = "NONE"
    for bone in armature.pose.bones:
        for frame, scale in ((1, 1.0), (8, 1.4)):
            bone.scale = (1.0, scale, 2.0 - scale)
            bone.keyframe_insert("scale", frame=frame)
    wanted = scenes.played(ob, FRAMES)
    target = moving_copy(ob, wanted)
    armature.animation_data.action = None
    select(target, ob)
    solve(bone_kind="SCALED")
    assert error(ob, wanted) < 0.002
    solve(bone_kind="RIGID")
    assert error(ob, wanted) > 1


def test_bones_that_inherit_no_rotation_or_location(rig):
    ob, armature, _, wanted = rig
    armature.data.bones["Bone 2"].use_inherit_rotation = False
    armature.data.bones["Bone 3"].use_local_location = False
    solve()
    assert error(ob, wanted) < 0.002


@pytest.mark.parametrize("mode", ["QUATERNION", "AXIS_ANGLE", "XYZ", "ZXY"])
def test_keys_are_in_the_rotation_mode_that_the_bones_have(rig, mode):
    ob, armature, _, wanted = rig
    for bone in armature.pose.bones:
        bone.rotation_mode = mode
    solve()
    assert error(ob, wanted) < 0.002
    assert all(bone.rotation_mode == mode for bone in armature.pose.bones)
    path, _ = rotation_values(mode, np.array([[1.0, 0, 0, 0]]))
    paths = {key[0].rpartition(".")[2] for key in keys_of(armature.animation_data.action, BONES)}
    assert paths == {"location", "scale", path}


def test_the_old_action_stays_and_so_does_what_is_not_solved_for(rig):
    ob, armature, _, wanted = rig
    extra = add_bone(armature, "Extra", parent="Bone 1")
    extra.location = (1, 2, 3)
    extra.keyframe_insert("location", frame=1)
    armature["property"] = 2.0
    armature.keyframe_insert('["property"]', frame=4)
    armature.keyframe_insert("location", frame=1)
    old = armature.animation_data.action
    before = keys_of(old)
    solve()
    action = armature.animation_data.action
    assert action != old
    assert action.name == "RigAction_solved"
    assert old.use_fake_user
    after = keys_of(old)
    assert all(np.array_equal(after[key], values) for key, values in before.items())
    new = keys_of(action)
    for key in before:
        if not key[0].startswith(tuple(f'pose.bones["{name}"]' for name in BONES)):
            assert np.array_equal(new[key], before[key])
    solve()
    assert armature.animation_data.action.name == "RigAction_solved.001"
    assert error(ob, wanted) < 0.002


def test_control_bones_between_and_above_go_on_moving(rig):
    """A root that is keyed, and a control between two bones that are solved for: both keep their channels."""
    ob, armature, _, wanted = rig
    for name, parent, child in (("Root", None, "Bone 0"), ("Control", "Bone 1", "Bone 2")):
        bone = add_bone(armature, name, parent, child)
        bone.rotation_mode = "XYZ"
        for frame, angle in ((1, 0.0), (8, 0.6)):
            bone.rotation_euler = (0.2, angle, 0)
            bone.location = (angle, 0, 0)
            bone.keyframe_insert("rotation_euler", frame=frame)
            bone.keyframe_insert("location", frame=frame)
    before = keys_of(armature.animation_data.action, ("Root", "Control"))
    solve()
    assert error(ob, wanted) < 0.002
    after = keys_of(armature.animation_data.action, ("Root", "Control"))
    assert all(np.array_equal(after[key], values) for key, values in before.items())
    solve(rotation_only=True)
    # The joints of the bones below the controls go along with these; the control between has keys on its location.
    names = [bone.name for bone in armature.data.bones if bone.parent]
    distances = dict(zip(names, heads(armature).max(axis=0), strict=True))
    assert distances.pop("Control") > 0.5
    assert max(distances.values()) < 1e-5


def test_rotation_only_keeps_the_joints():
    """Where the target's bones only turn, too, nothing is lost; where they move, the joints hold all the same."""
    ob, armature, _, wanted = rigged_at_rest()
    solve(rotation_only=True)
    assert error(ob, wanted) < 0.002
    assert heads(armature).max() < 1e-5
    ob, armature, _, wanted = rigged_at_rest(move=0.3)
    solve()
    assert error(ob, wanted) < 0.002
    assert heads(armature).max() > 0.1
    solve(rotation_only=True)
    assert heads(armature).max() < 1e-5
    assert 1 < error(ob, wanted) < 0.3 * 150
    locations = keys_of(armature.animation_data.action, BONES[1:])
    for (path, _), keys in locations.items():
        if path.endswith("location"):
            assert np.abs(keys[:, 1]).max() < 1e-6


def test_connected_bones_stay_at_their_joints():
    ob, armature, _, wanted = rigged_at_rest(move=0.3)
    active, selected = bpy.context.view_layer.objects.active, bpy.context.selected_objects
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    for name in BONES[2:]:
        armature.data.edit_bones[name].use_connect = True
    bpy.ops.object.mode_set(mode="OBJECT")
    select(*selected, active)
    for kind in ("RIGID", "AFFINE"):
        solve(bone_kind=kind)
        distances = heads(armature)[:, -3:] if kind == "RIGID" else heads(armature)[:, [5, 7]]
        assert distances.max() < 1e-5
        assert figures(ob).e_rms == pytest.approx(error(ob, wanted), rel=1e-2)
        assert error(ob, wanted) < 60


def test_a_rig_of_a_conversion_is_solved_as_its_chains():
    """Affine bones have mechanism parents: these are keyed, no bones are added, and the error is that of before."""
    moving_meshes.fresh_scene()
    flag = moving_meshes.waving_grid()
    assert bpy.ops.skinning.convert_animation(bone_count=4, iterations=4, max_influences=3) == {"FINISHED"}
    ob, armature = bpy.data.objects["Flag_skinned"], bpy.data.objects["Flag_rig"]
    before = ob["skinning_e_rms"]
    bones = [bone.name for bone in armature.data.bones]
    select(ob)
    solve(bone_kind="AFFINE")
    assert figures(ob).target == flag.name
    assert [bone.name for bone in armature.data.bones] == bones
    assert figures(ob).e_rms_before == pytest.approx(before, rel=1e-3)
    assert figures(ob).e_rms < 1.05 * before
    solve(bone_kind="RIGID")
    assert figures(ob).e_rms > before
    linear = matrices_of(ob, armature, [name for name in bones if name.startswith("DEF")])[..., :3]
    np.testing.assert_allclose(linear.swapaxes(-1, -2) @ linear, np.broadcast_to(np.eye(3), linear.shape), atol=1e-4)


def test_bones_without_weights_keep_their_motion_and_unweighted_vertices_are_reported(rig, capfd):
    ob, armature, _, wanted = rig
    before = keys_of(armature.animation_data.action, ["Bone 4"])
    ob.vertex_groups.remove(ob.vertex_groups["Bone 4"])
    solve()
    after = keys_of(armature.animation_data.action, ["Bone 4"])
    assert all(np.array_equal(after[key], values) for key, values in before.items())
    assert "have no weights, so no bone moves them" in capfd.readouterr().out
    assert error(ob, wanted) > 1


@pytest.mark.parametrize("factor", [0.2, 0.5])
def test_rows_of_any_sum_count_as_blender_has_them(rig, factor):
    """Every other vertex has weights that sum to less, another one is also in a group of no bone."""
    ob, _, _, wanted = rig
    for group in list(ob.vertex_groups):
        for vertex in list(ob.data.vertices)[::2]:
            for member in vertex.groups:
                if member.group == group.index:
                    member.weight *= factor
    ob.vertex_groups.new(name="Held").add(range(0, len(ob.data.vertices), 3), 1.0, "REPLACE")
    solve()
    assert error(ob, wanted) < 0.01


@pytest.mark.parametrize("kind", ["modifier", "parent"])
def test_vertices_moved_by_envelopes_count_in_the_error(rig, kind, capfd):
    ob, armature, _, wanted = rig
    for group in ob.vertex_groups:
        group.remove(range(48))
    for bone in armature.data.bones:
        bone.envelope_distance = 2.0
    if kind == "parent":
        scenes.deforming_parent(ob, armature)
    else:
        ob.modifiers[0].use_bone_envelopes = True
    bpy.context.view_layer.update()
    solve()
    assert "only bone envelopes" in capfd.readouterr().out
    assert figures(ob).e_rms > 1
    assert figures(ob).e_rms == pytest.approx(error(ob, wanted), rel=1e-3)


def test_frames_and_steps(rig):
    ob, armature, _, wanted = rig
    solve(frame_start=3, frame_end=7, frame_step=2)
    keys = keys_of(armature.animation_data.action, BONES)
    times = {float(time) for values in keys.values() for time in values[:, 0]}
    assert times == {3.0, 5.0, 7.0}
    assert error(ob, wanted[[2, 4, 6]], (3, 5, 7)) < 0.002
    assert (figures(ob).frame_start, figures(ob).frame_end) == (3, 7)


def test_stretched_time(rig):
    """Twice as fast: the scene's four frames show every second key."""
    ob, armature, _, wanted = rig
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = 100, 50
    solve(frame_end=4)
    assert error(ob, wanted[1::2], range(1, 5)) < 0.002
    times = {float(time) for keys in keys_of(armature.animation_data.action).values() for time in keys[:, 0]}
    assert times == {2.0, 4.0, 6.0, 8.0}


def test_nothing_else_changes(rig):
    ob, armature, _, _ = rig
    bpy.context.scene.frame_set(5, subframe=0.25)
    before, blocks = scenes.ui_state(), scenes.data_blocks()
    weights = partial_scenes.weights_of(ob, armature)
    rest = [np.array(bone.matrix_local) for bone in armature.data.bones]
    solve()
    assert scenes.ui_state() == before
    after = scenes.data_blocks()
    assert [name for name in after["actions"] if name not in blocks["actions"]] == ["RigAction_solved"]
    changed = {name for name in after if after[name] != blocks[name]}
    assert changed <= {"actions", "all_ids"}
    assert np.array_equal(partial_scenes.weights_of(ob, armature), weights)
    assert all(np.array_equal(a, bone.matrix_local) for a, bone in zip(rest, armature.data.bones, strict=True))


@pytest.mark.parametrize("kind", ["RIGID", "AFFINE"])
def test_a_cancelled_solve_leaves_nothing(rig, kind):
    ob, armature, _, _ = rig
    action = armature.animation_data.action
    before, blocks = scenes.ui_state(), scenes.data_blocks()
    for fraction in (0.1, 0.3, 0.5, 0.75, 0.9):
        cancelled_at(fraction, solve_transforms(bpy.context, ob, bone_kind=kind))
        assert scenes.ui_state() == before
        assert scenes.data_blocks() == blocks
        assert armature.animation_data.action == action
        assert len(armature.data.bones) == 5


def test_a_write_that_fails_leaves_nothing(rig, monkeypatch):
    """AFFINE adds parents, which take over how the bones hang in the skeleton."""
    _, armature, _, _ = rig
    joining = "inherit_scale", "use_inherit_rotation", "use_local_location", "use_connect"
    ways = [("NONE", True, True, True), ("FULL", False, False, False), ("ALIGNED", True, True, False)]
    with edit_bones_of(bpy.context, armature) as edit_bones:
        for name, values in zip(BONES[1:], ways, strict=False):
            for key, value in zip(joining, values, strict=True):
                setattr(edit_bones[name], key, value)

    def structure():
        return [
            (
                bone.name,
                bone.parent and bone.parent.name,
                *(getattr(bone, key) for key in joining),
                np.array(bone.matrix_local).tobytes(),
            )
            for bone in armature.data.bones
        ]

    skeleton, action = structure(), armature.animation_data.action
    before, blocks, real = scenes.ui_state(), scenes.data_blocks(), motion_module.apply_motion

    def fail(*given):
        real(*given)
        assert len(armature.data.bones) == 10
        assert armature.animation_data.action != action
        raise MemoryError("none left")

    monkeypatch.setattr(motion_module, "apply_motion", fail)
    with pytest.raises(RuntimeError, match=r"none left|[Mm]emory"):
        bpy.ops.skinning.solve_transforms(bone_kind="AFFINE")
    assert (scenes.ui_state(), scenes.data_blocks()) == (before, blocks)
    assert structure() == skeleton
    assert (armature.animation_data.action, action.use_fake_user) == (action, False)


def test_bad_input(rig):
    ob, armature, target, _ = rig
    refused("ONE_FRAME", frame_start=3, frame_end=3)
    refused('NO_OBJECT "Nobody"', target="Nobody")
    select(ob)
    refused(r'"Arm" does not move from frame 1 to 8 without its armature')
    modifier = target.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature
    select(target, ob)
    refused(r'is deformed by "Rig" itself, whose new keys would move it')
    target.modifiers.remove(modifier)
    constraint = armature.pose.bones["Bone 3"].constraints.new("COPY_LOCATION")
    refused('constraint "Copy Location" of the bone "Bone 3" would override its keys')
    constraint.mute = True
    driver = armature.pose.bones["Bone 2"].driver_add("location", 0)
    driver.driver.expression = "1.0"
    refused('bone "Bone 2" of "Rig" is driven')
    armature.pose.bones["Bone 2"].driver_remove("location", 0)
    armature.scale = (1, 2, 1)
    bpy.context.view_layer.update()
    refused("UNEVEN_SCALE")
    armature.scale = (1, 1, 1)
    for name in BONES:
        group = ob.vertex_groups[name]
        group.remove(list(range(len(ob.data.vertices))))
    refused("has weights of a deforming bone")
    ob.vertex_groups.clear()
    refused("NO_VERTEX_GROUPS")
    other = moving_meshes.waving_grid("Other")
    select(other, ob)
    refused("NO_VERTEX_GROUPS")
    ob.modifiers.clear()
    select(target, armature, ob)
    refused("NO_GROUP_OF_A_BONE")


def test_a_target_of_other_vertices(rig):
    ob, *_ = rig
    other = moving_meshes.waving_grid("Other")
    select(other, ob)
    refused('OTHER_VERTEX_COUNT "Other" has 63 vertices, and object "Arm" has 656')


def test_a_strip_that_is_being_edited(rig):
    ob, armature, target, _ = rig
    animation = armature.animation_data
    track = animation.nla_tracks.new()
    track.strips.new("Strip", 1, animation.action)
    animation.action = None
    solve()
    assert error(ob, rig[3]) < 0.002
    animation.action = None
    animation.use_tweak_mode = True
    if animation.use_tweak_mode:
        select(target, ob)
        refused("TWEAK_MODE")


def test_command_line(rig, tmp_path, capsys):
    ob, _, target, wanted = rig
    path, output = tmp_path / "shot.blend", tmp_path / "solved.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    arguments = ["solve-transforms", "--object", ob.name, "--target", target.name, "--output", str(output)]
    assert command_line.main([*arguments, "--kind", "rigid"]) == 0
    assert "E_RMS before" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert error(bpy.data.objects["Arm"], wanted) < 0.002
    assert {"RigAction", "RigAction_solved"} <= set(bpy.data.actions.keys())
