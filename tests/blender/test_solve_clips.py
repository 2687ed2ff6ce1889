# SPDX-License-Identifier: GPL-3.0-or-later
"""Solves over several actions: each counts, those left out are measured, and the user's state stays."""

import json
from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender import actions
from skinning_tools.blender.animation.clips import clip_of, clips_of, playing, strip_clips
from skinning_tools.blender.background import drain
from skinning_tools.blender.temporary_scene import evaluate_frame
from skinning_tools.features.partial import chosen_clips, helpers
from skinning_tools.features.partial.helpers import add_helper_bones
from skinning_tools.features.partial.rest_key import NAME
from skinning_tools.features.partial.weights import solve_weights
from tests.blender import action_scenes, omission_scenes, partial_scenes, refusals, skinned_meshes
from tests.blender.partial_scenes import figures, weights_of

pytestmark = pytest.mark.usefixtures("extension")

solve = partial(refusals.finished, "solve_weights")
refused = partial(refusals.refused, "solve_weights")
PLACE = "name", "frame_start", "frame_end", "action_frame_start", "action_frame_end", "scale", "repeat", "mute"
SLOTS = "slots" in bpy.types.Action.bl_rna.properties


@pytest.fixture
def rig():
    return action_scenes.rig_of_clips()


def state(armature):
    """What the user has set on the armature, and where the user is."""
    animation, channels = armature.animation_data, []
    for name in ("location", "rotation_euler", "rotation_quaternion", "scale"):
        channels += [tuple(getattr(bone, name)) for bone in armature.pose.bones]
    slot = getattr(animation, "action_slot", None)
    return (
        animation.action, slot, animation.use_nla, animation.action_influence, animation.action_blend_type, channels,
        bpy.context.scene.frame_current, len(bpy.data.actions), len(bpy.data.objects), len(bpy.data.scenes),
        [(track.name, track.mute) for track in animation.nla_tracks],
    )  # fmt: skip


def by_name(found):
    return {
        name: (before, after, used)
        for name, before, after, used in zip(
            found.clips, found.clips_before, found.clips_after, found.clips_used, strict=True
        )
    }


def test_all_actions_count_by_default(rig):
    ob, armature, _ = rig
    before = state(armature)
    solve(max_influences=8)
    assert state(armature) == before
    found = by_name(figures(ob))
    assert set(found) == set(action_scenes.CLIPS)
    assert all(used and after < 0.95 * before for before, after, used in found.values()), found
    assert figures(ob).warning == ""
    assert figures(ob).e_rms < figures(ob).e_rms_before


def test_one_action_alone_says_what_happens_to_the_others(rig):
    ob, armature, _ = rig
    solve(max_influences=8, actions="SELECTED", action_names="Bend")
    found = by_name(figures(ob))
    assert [name for name in found if found[name][2]] == ["Bend"]
    assert found["Bend"][1] < found["Bend"][0]
    worse = [name for name in ("Twist", "Wave") if found[name][1] > found[name][0]]
    assert worse
    assert "farther from the target than before in " + ", ".join(worse) in figures(ob).warning
    alone = found["Bend"][1]
    # With everything held, nothing changes.
    weights = weights_of(ob, armature)
    solve(max_influences=8, actions="SELECTED", action_names="Bend, Wave", hold=1.0)
    assert by_name(figures(ob))["Bend"][1] == pytest.approx(alone, rel=1e-3)
    np.testing.assert_allclose(weights_of(ob, armature), weights, atol=5e-4)


def test_hold_lies_between_the_present_weights_and_the_best(rig):
    ob, armature, _ = rig
    present, changes, errors = weights_of(ob, armature), [], []
    for hold in (0.9, 0.5, 0.0):
        for group in list(ob.vertex_groups):
            ob.vertex_groups.remove(group)
        for bone, column in zip(partial_scenes.BONES, present.T, strict=True):
            group = ob.vertex_groups.new(name=bone)
            for vertex in np.flatnonzero(column):
                group.add([int(vertex)], float(column[vertex]), "REPLACE")
        solve(hold=hold)
        changes.append(np.abs(weights_of(ob, armature) - present).sum())
        errors.append(figures(ob).e_rms)
    assert 0 < changes[0] < changes[1] < changes[2]
    assert errors[0] > errors[1] > errors[2]


def test_the_meshs_own_modifiers_are_the_target(rig):
    ob, armature, target = rig
    bpy.data.objects.remove(target)
    ob.modifiers.new("Smooth", "CORRECTIVE_SMOOTH")
    partial_scenes.select(ob)
    before = state(armature)
    solve(max_influences=8, random_poses=10)
    assert state(armature) == before
    assert all(after < before for before, after, _ in by_name(figures(ob)).values())
    assert ob.modifiers["Smooth"].show_viewport


def test_a_target_that_tears_a_split_mesh_is_noted(rig):
    """Corrective Smooth takes the sides of a seam for borders."""
    ob, _, target = rig
    bpy.data.objects.remove(target)
    skinned_meshes.split(ob, range(320, 336))
    ob.modifiers.new("Smooth", "CORRECTIVE_SMOOTH")
    partial_scenes.select(ob)
    told = drain(solve_weights(bpy.context, ob)).summary()
    assert 'object "Arm" is split, and its target tears it open at 16 pairs of vertices' in told


def test_the_rest_shape_moves_in_a_shape_key_alone(rig):
    ob, _, _ = rig
    solve(max_influences=2)
    without = figures(ob).e_rms
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    solve(max_influences=2, rest_shape=True)
    assert figures(ob).e_rms < 0.99 * without
    key = ob.data.shape_keys.key_blocks[NAME]
    moved = np.array([point.co for point in key.points])
    basis = np.array([point.co for point in ob.data.shape_keys.reference_key.points])
    np.testing.assert_array_equal(basis, rest)
    size = np.linalg.norm(np.ptp(rest, axis=0))
    assert 0 < np.linalg.norm(moved - rest, axis=1).max() <= 0.005001 * size
    shown = ob.evaluated_get(bpy.context.evaluated_depsgraph_get())
    assert key.value == 1.0
    assert len(shown.data.vertices) == len(rest)
    # Weights of the mesh itself again.
    solve(max_influences=2)
    assert key.mute


def test_cancelling_leaves_nothing(rig):
    ob, armature, _ = rig
    before, weights = state(armature), weights_of(ob, armature)
    for fraction in (0.02, 0.05, 0.2, 0.39, 0.75, 0.95):
        partial_scenes.cancelled_at(fraction, solve_weights(bpy.context, ob))
        assert state(armature) == before
        np.testing.assert_array_equal(weights_of(ob, armature), weights)


def test_the_interface_gets_a_turn_after_each_frame_that_is_looked_at(rig, monkeypatch):
    ob, armature, target = rig
    bpy.data.objects.remove(target)
    ob.modifiers.new("Smooth", "CORRECTIVE_SMOOTH")
    partial_scenes.select(ob)
    before, evaluated = state(armature), []

    def counted(*given):
        evaluated[-1] += 1
        return evaluate_frame(*given)

    monkeypatch.setattr(chosen_clips, "evaluate_frame", counted)
    steps = solve_weights(bpy.context, ob)
    while True:
        evaluated.append(0)
        if next(steps)[1] == "Reading the actions":
            break
        assert state(armature) == before
    steps.close()
    assert sum(evaluated[:-1]) > 1
    assert max(evaluated[:-1]) == 1


@pytest.mark.parametrize("fraction", [0.2, 0.75])
def test_an_unkeyed_pose_stays(rig, fraction):
    """Blender plays an action again once it is assigned."""
    ob, armature, _ = rig
    bone = armature.pose.bones["Bone 2"]
    armature["slider"] = 0.5
    armature.keyframe_insert('["slider"]', frame=1)
    bpy.context.view_layer.update()
    armature["slider"], bone.rotation_euler = 0.75, (0.3, 0.2, 0.1)
    posed = state(armature)
    partial_scenes.cancelled_at(fraction, solve_weights(bpy.context, ob))
    bpy.context.view_layer.update()
    assert state(armature) == posed
    solve(max_influences=8)
    bpy.context.view_layer.update()
    assert state(armature) == posed
    assert armature["slider"] == 0.75


def test_a_target_with_its_own_animation_counts_only_where_it_has_one(rig):
    """A cache belongs to the present action: the others do not move it, and nothing shows what helpers should do."""
    ob, _, target = rig
    wanted = np.repeat(np.array([[vertex.co for vertex in ob.data.vertices]]), 8, axis=0)
    wanted += np.linspace(0, 0.1, 8)[:, None, None]
    bpy.data.objects.remove(target)
    own = partial_scenes.moving_copy(ob, wanted)
    partial_scenes.select(own, ob)
    solve()
    assert figures(ob).clips == ()
    refused("does not move with the actions Bend", actions="SELECTED", action_names="Bend")
    result = drain(add_helper_bones(bpy.context, ob, bone_count=1))
    assert any("no keys of the helpers in Bend, Wave, where the target does not move" in note for note in result.notes)
    assert [action.name for action in bpy.data.actions if action.name.endswith("_helpers")] == ["Twist_helpers"]


@pytest.mark.parametrize("chosen", ["", "Bend"])
def test_helper_bones_have_keys_in_each_action(rig, chosen):
    """In those that the solve has not used, too, such as the one frame of a pose in a library."""
    ob, armature, _ = rig
    action_scenes.add_clip(armature, "Pose", 1, axis=0)
    armature.animation_data.action = bpy.data.actions["Twist"]
    names = set(bpy.data.actions.keys())
    refusals.finished("add_helper_bones", bone_count=2, actions="SELECTED" if chosen else "ALL", action_names=chosen)
    found = by_name(figures(ob))
    assert all(after < before for before, after, _ in found.values()), found
    assert [name for name in found if found[name][2]] == ([chosen] if chosen else sorted(names))
    made = {f"{name}_helpers" for name in names}
    assert set(bpy.data.actions.keys()) == names | made
    assert armature.animation_data.action == bpy.data.actions["Twist_helpers"]
    helpers = [bone.name for bone in armature.pose.bones if bone.name.startswith("HLP-")]
    for name in made:
        assert set(helpers) <= clip_of(armature, bpy.data.actions[name]).bones
        assert bpy.data.actions[name].users


def test_helper_bones_have_keys_for_each_strip_of_an_action(rig, monkeypatch):
    ob, armature, _ = rig
    animation = armature.animation_data
    animation.action = bpy.data.actions["Bend"]
    track = animation.nla_tracks.new()
    for number, frames in enumerate(((1, 5), (6, 12))):
        strip = track.strips.new("Part", 20 * number, bpy.data.actions["Wave"])
        strip.action_frame_start, strip.action_frame_end = frames
    aside = animation.nla_tracks.new().strips.new("Other", 1, actions.new_action(bpy.data.objects["Target"], "Other"))
    mixed = animation.nla_tracks.new().strips.new("Mixed", 1, bpy.data.actions["Twist"])
    mixed.blend_type = "ADD"
    names, places = set(bpy.data.actions.keys()), [[getattr(each, key) for key in PLACE] for each in track.strips]
    bpy.data.actions["Wave"].use_fake_user = False
    with monkeypatch.context() as patched:
        patched.setattr(helpers, "forget_figures", partial(pytest.fail, "at the last step"))
        with pytest.raises(pytest.fail.Exception, match="at the last step"):
            drain(add_helper_bones(bpy.context, ob, bone_count=1, actions="NLA"))
    assert [strip.action.name for strip in track.strips] == ["Wave"] * 2
    assert not bpy.data.actions["Wave"].use_fake_user
    assert names == set(bpy.data.actions.keys())
    result = drain(add_helper_bones(bpy.context, ob, bone_count=1, actions="NLA"))
    made = set(bpy.data.actions.keys()) - names
    # The strips play the copies of their own frames, as before; the earlier actions stay in the file.
    assert [strip.action.name for strip in track.strips] == ["Wave_helpers", "Wave_helpers.001"]
    playing_now = aside.action.name, mixed.action.name, animation.action.name
    assert playing_now == ("Other", "Twist", "Bend_helpers")
    assert [[getattr(each, key) for key in PLACE] for each in track.strips] == places
    assert bpy.data.actions["Wave"].use_fake_user
    assert any('the tracks of "Rig" play the new actions' in note for note in result.notes)
    for strip in track.strips:
        curves = [
            curve for bag in actions.strip_containers(strip) for curve in bag.fcurves if "HLP-" in curve.data_path
        ]
        numbers = {round(point.co.x) for curve in curves for point in curve.keyframe_points}
        assert numbers == set(range(round(strip.action_frame_start), round(strip.action_frame_end) + 1))
    assert sorted(made) == ["Bend_helpers", "Twist_helpers", "Wave_helpers", "Wave_helpers.001"]
    # Kept when the file is saved.
    assert all(bpy.data.actions[name].users for name in made)


def test_bad_input(rig):
    _ob, _armature, _ = rig
    other = bpy.data.objects.new("Other", bpy.data.armatures.new("Other"))
    actions.new_action(other, "Foreign")
    curves = actions.curve_container(other).fcurves
    curves.new('pose.bones["Spine"].location').keyframe_points.insert(1.0, 0.0)
    bpy.data.actions.new("Empty")
    refused("no action is named", actions="SELECTED")
    refused('There is no action "Jump"', "Bend, Twist, Wave", actions="SELECTED", action_names="Jump")
    refused('"Foreign" has no keys for bones', actions="SELECTED", action_names="Foreign")
    refused('"Empty" has no keys for bones', actions="SELECTED", action_names="Bend,Empty")
    refused("has no NLA strips", actions="NLA")
    refused("Hold must be from 0 to 1", hold=1.5)


def test_a_strip_that_is_being_edited(rig):
    _, _, target = rig
    target.keyframe_insert("location", frame=1)
    animation = target.animation_data
    track = animation.nla_tracks.new()
    track.name = "Bend"
    track.strips.new("Moved", 1, animation.action)
    animation.action, animation.nla_tracks.active = None, track
    animation.use_tweak_mode = True
    assert animation.use_tweak_mode
    refused('TWEAK_MODE "Target"')


def test_other_vertices_in_one_action_only(rig):
    _ob, armature, target = rig
    thinned = target.modifiers.new("Thin", "DECIMATE")
    driver = thinned.driver_add("ratio").driver
    driver.type = "SCRIPTED"
    driver.expression = "1 - 0.5 * (turn > 0.4)"
    variable = driver.variables.new()
    variable.name, variable.type = "turn", "SINGLE_PROP"
    variable.targets[0].id = armature
    variable.targets[0].data_path = 'pose.bones["Bone 0"].rotation_euler[2]'
    refused('action "Wave"', "Choose a target with the same vertices", actions="SELECTED", action_names="Bend,Wave")


def test_an_action_of_one_frame_and_one_that_is_empty(rig):
    ob, armature, _ = rig
    action_scenes.add_clip(armature, "Pose", 1, axis=0)
    armature.animation_data.action = bpy.data.actions.new("Nothing")
    before = state(armature)
    solve()
    assert state(armature) == before
    assert set(figures(ob).clips) == {*action_scenes.CLIPS, "Pose"}


def test_strips_of_the_nla(rig):
    ob, armature, _ = rig
    track = armature.animation_data.nla_tracks.new()
    strip = track.strips.new("Part", 20, bpy.data.actions["Wave"])
    strip.action_frame_start, strip.action_frame_end, track.mute = 2, 7, True
    mixed = armature.animation_data.nla_tracks.new().strips.new("Added", 40, bpy.data.actions["Bend"])
    mixed.blend_type = "ADD"
    clips, left = strip_clips(armature)
    assert [(clip.name, clip.numbers) for clip in clips] == [("Wave", range(2, 8))]
    assert left == ["Added"]
    before = state(armature)
    solve(actions="NLA")
    assert state(armature) == before
    assert [name for name, row in by_name(figures(ob)).items() if row[2]] == ["Wave"]


def test_what_another_action_left_in_a_bone_does_not_count(rig):
    _, armature, _ = rig
    few = action_scenes.add_clip(armature, "Few", 4, axis=0, bones=("Bone 1",))
    armature.animation_data.action = None
    armature.pose.bones["Bone 3"].rotation_euler = (1.0, 0.0, 0.0)
    clip = clip_of(armature, few)
    assert clip.bones == {"Bone 1"}
    with playing(armature, clip, reset=("Bone 1", "Bone 3")):
        assert tuple(armature.pose.bones["Bone 3"].rotation_euler) == (0.0, 0.0, 0.0)
    assert armature.pose.bones["Bone 3"].rotation_euler[0] == 1.0
    assert armature.animation_data.action is None


def test_actions_that_only_another_armature_uses_are_its_own(rig):
    _, armature, _ = rig
    other = bpy.data.objects.new("Other", armature.data.copy())
    other.animation_data_create().action = bpy.data.actions["Bend"]
    assert [clip.name for clip in clips_of(armature)] == ["Twist", "Wave"]
    twin = bpy.data.objects.new("Twin", armature.data)
    twin.animation_data_create().action = bpy.data.actions["Bend"]
    assert [clip.name for clip in clips_of(armature)] == ["Bend", "Twist", "Wave"]


@pytest.mark.skipif(not SLOTS, reason="actions have slots since Blender 4.4")
def test_of_several_slots_the_armatures_own(rig):
    _, armature, _ = rig
    action = bpy.data.actions["Bend"]
    other = bpy.data.objects.new("Other", armature.data.copy())
    other.animation_data_create().action = action
    slot = action.slots.new("OBJECT", "Other")
    other.animation_data.action_slot = slot
    armature.animation_data.action = action
    armature.animation_data.action_slot = action.slots[0]
    container = actions.curve_container(other)
    actions.write_channels(container, 'pose.bones["Bone 0"].location', np.zeros((9, 3)), np.arange(1.0, 10.0), "Bone 0")
    clip = clip_of(armature, action)
    assert clip.slot == action.slots[0].handle
    assert clip.numbers == range(1, 7)


@pytest.mark.skipif(not SLOTS, reason="actions have slots since Blender 4.4")
def test_strips_play_their_slot(rig):
    _, armature, _ = rig
    action, animation = bpy.data.actions["Wave"], armature.animation_data
    slot, before = action.slots.new("OBJECT", "Second"), (animation.action, animation.action_slot)
    animation.action, animation.action_slot = action, slot
    values = np.arange(9.0).reshape(3, 3)
    path = f"{actions.bone_path('Bone 1')}.location"
    actions.write_channels(actions.curve_container(armature), path, values, np.arange(1.0, 4.0), "Bone 1")
    animation.action, animation.action_slot = before
    strip = animation.nla_tracks.new().strips.new("Part", 1, action)
    strip.action_slot = slot
    (clip,), _ = strip_clips(armature)
    assert (clip.slot, clip.bones) == (slot.handle, {"Bone 1"})


def test_on_the_command_line_every_action_is_in_the_report(rig, tmp_path, capsys):
    ob, _, target = rig
    report = tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    arguments = ["solve-weights", "--object", ob.name, "--target", target.name, "--hold", "0.1"]
    arguments += ["--output", str(tmp_path / "solved.blend"), "--report", str(report)]
    assert command_line.main([*arguments, "--actions", "selected", "--action-names", "Bend,Wave"]) == 0
    printed = capsys.readouterr().out
    assert '"Bend"' in printed
    assert "not used" in printed
    clips = json.loads(report.read_text(encoding="utf-8"))["figures"]["clips"]
    assert {name: row["used"] for name, row in clips.items()} == {"Bend": True, "Wave": True, "Twist": False}
    assert clips["Bend"]["after"] < clips["Bend"]["before"]


def test_bones_that_blocked_scripts_should_drive_are_noted(rig, tmp_path):
    _, armature, _ = rig
    omission_scenes.driver(armature.pose.bones["Bone 4"])
    omission_scenes.reopened(tmp_path)
    ob = bpy.data.objects["Arm"]
    result = drain(solve_weights(bpy.context, ob, target="Target"))
    assert set(result.record.clips) == set(action_scenes.CLIPS)
    assert any("Rig" in note and "script" in note.lower() for note in result.notes), result.notes
