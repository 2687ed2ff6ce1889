# SPDX-License-Identifier: GPL-3.0-or-later
"""Add Helper Bones: they cut the error, the rig's own bones stay as they are, and bad input is refused."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.features.partial.helpers import add_helper_bones
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.partial_scenes import (
    BONES,
    FRAMES,
    cancelled_at,
    error,
    figures,
    keys_of,
    moving_copy,
    select,
    tube,
    weights_of,
)

pytestmark = pytest.mark.usefixtures("extension")

add = partial(refusals.finished, "add_helper_bones")
refused = partial(refusals.refused, "add_helper_bones")


@pytest.fixture
def rig():
    """The tube with its moving rig, and a target whose muscles also bulge and whose flesh jiggles."""
    ob, armature = tube()
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    wanted = scenes.played(ob, FRAMES)
    for row, shape in enumerate(wanted):
        near = np.exp(-((rest[:, 0] - 1.6) ** 2) / 0.2) + 0.7 * np.exp(-((rest[:, 0] - 3.4) ** 2) / 0.3)
        shape += (near[:, None] * [[0.0, 0.12 * np.sin(row), 0.25 * np.sin(0.9 * row)]]).astype(np.float32)
    target = moving_copy(ob, wanted)
    select(target, ob)
    return ob, armature, target, wanted


def helpers_of(armature) -> list[str]:
    return [bone.name for bone in armature.data.bones if bone.name.startswith("HLP-")]


def bones_of(armature) -> dict[str, tuple]:
    """All data of the rig's own bones at rest."""
    return {
        name: (
            np.array(armature.data.bones[name].matrix_local).tobytes(),
            tuple(armature.data.bones[name].head_local),
            tuple(armature.data.bones[name].tail_local),
            armature.data.bones[name].parent and armature.data.bones[name].parent.name,
            armature.data.bones[name].use_connect,
            armature.data.bones[name].inherit_scale,
            armature.pose.bones[name].rotation_mode,
        )
        for name in BONES
    }


# Of the rig's own error.
@pytest.mark.parametrize(("kind", "limit"), [("RIGID", 0.3), ("SCALED", 0.3), ("AFFINE", 0.2)])
def test_the_error_falls_and_the_given_bones_stay(rig, kind, limit):
    ob, armature, _, wanted = rig
    old, before = armature.animation_data.action, error(ob, wanted)
    bones, keys = bones_of(armature), keys_of(armature.animation_data.action)
    add(bone_count=3, bone_kind=kind)
    after = error(ob, wanted)
    assert after < limit * before
    assert figures(ob).e_rms_before == pytest.approx(before, rel=1e-3)
    assert figures(ob).e_rms == pytest.approx(after, rel=1e-2)
    assert bones_of(armature) == bones
    action = armature.animation_data.action
    assert (action.name, old.use_fake_user) == ("RigAction_helpers", True)
    for found in (keys_of(action, BONES), keys_of(old)):
        assert found.keys() == keys.keys()
        assert all(np.array_equal(found[key], values) for key, values in keys.items())
    assert len(helpers_of(armature)) == 3
    assert len(armature.data.bones) == 5 + (6 if kind == "AFFINE" else 3)


def test_own_weights_are_only_scaled_and_rows_still_sum_to_one(rig):
    ob, armature, _, _ = rig
    before = weights_of(ob, armature)
    add(bone_count=3)
    names = [bone.name for bone in armature.data.bones if bone.use_deform]
    after = weights_of(ob, armature)
    own, helpers = after[:, [names.index(name) for name in BONES]], after[:, [n.startswith("HLP-") for n in names]]
    np.testing.assert_allclose(after.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(own, before * (1 - helpers.sum(axis=1, keepdims=True)), atol=1e-6)
    assert np.count_nonzero(after, axis=1).max() <= 8


def test_own_weights_may_adapt(rig):
    ob, _, _, wanted = rig
    groups = {group.name for group in ob.vertex_groups}
    add(bone_count=2, own_weights="ADAPT")
    adapted = error(ob, wanted)
    assert groups < {group.name for group in ob.vertex_groups}
    assert adapted == pytest.approx(figures(ob).e_rms, rel=1e-2)


def test_locked_weights_stay_bit_for_bit(rig):
    ob, _, _, _ = rig
    kept = list(range(0, 656, 3))
    ob.vertex_groups.new(name="Keep").add(kept, 1.0, "REPLACE")
    ob.vertex_groups["Bone 2"].lock_weight = True
    index = ob.vertex_groups["Bone 2"].index
    before = [{element.group: element.weight for element in vertex.groups} for vertex in ob.data.vertices]
    add(bone_count=3, locked_vertices="Keep")
    after = [{element.group: element.weight for element in vertex.groups} for vertex in ob.data.vertices]
    assert all(after[vertex] == before[vertex] for vertex in kept)
    assert [row.get(index) for row in after] == [row.get(index) for row in before]
    assert figures(ob).e_rms < figures(ob).e_rms_before


def test_helpers_hang_on_the_bones_whose_vertices_they_share(rig):
    """Helpers are children of the rig's bones, so they follow when these are posed by hand."""
    _, armature, _, _ = rig
    add(bone_count=3)
    for name in helpers_of(armature):
        bone = armature.data.bones[name]
        assert bone.parent.name in BONES
        assert not bone.use_connect
        assert abs(bone.head_local.x - (BONES.index(bone.parent.name) + 0.5)) < 1.5
    assert armature.data.collections["Helper Bones"].is_visible


def test_parents_that_stretch_are_no_hindrance():
    """The rig's own bones scale; rigid helpers under them inherit nothing of that, and are where they were solved."""
    ob, _ = tube(stretch=0.3, move=0.1)
    wanted = scenes.played(ob, FRAMES)
    for row, shape in enumerate(wanted):
        shape[200:330, 2] += 0.2 * np.sin(row)
    select(moving_copy(ob, wanted), ob)
    for kind in ("RIGID", "AFFINE"):
        before = error(ob, wanted)
        add(bone_count=2, bone_kind=kind)
        assert error(ob, wanted) < 0.8 * before
        assert figures(ob).e_rms == pytest.approx(error(ob, wanted), rel=1e-2)


def test_a_second_round_helps_on(rig):
    ob, armature, _, wanted = rig
    add(bone_count=1)
    first = error(ob, wanted)
    add(bone_count=2)
    assert error(ob, wanted) < 0.8 * first
    assert len(helpers_of(armature)) == 3
    assert armature.animation_data.action.name == "RigAction_helpers.001"
    assert not any("HLP-HLP" in name for name in helpers_of(armature))


@pytest.mark.parametrize("kind", ["RIGID", "SCALED", "AFFINE"])
def test_the_source_of_a_conversion_is_the_target(kind):
    """A flat mesh, whose affine bones may flatten or mirror what hangs on them."""
    moving_meshes.fresh_scene()
    moving_meshes.waving_grid()
    assert bpy.ops.skinning.convert_animation(bone_count=2, iterations=4, max_influences=2) == {"FINISHED"}
    ob = bpy.data.objects["Flag_skinned"]
    select(ob)
    add(bone_count=3, bone_kind=kind)
    assert figures(ob).target == "Flag"
    assert figures(ob).e_rms_before == pytest.approx(ob["skinning_e_rms"], rel=1e-3)
    assert figures(ob).e_rms < 0.7 * figures(ob).e_rms_before


def test_an_animation_of_two_frames_only(rig):
    ob, _, _, wanted = rig
    add(bone_count=1, frame_start=2, frame_end=3)
    assert error(ob, wanted[1:3], (2, 3)) < 0.6 * figures(ob).e_rms_before


def test_a_rig_that_is_moved_without_an_action(rig):
    """The rig's own bones are driven, so the action has only the keys of the helpers."""
    ob, armature, _, wanted = rig
    armature.animation_data.action = None
    for index, bone in enumerate(armature.pose.bones):
        curve = bone.driver_add("rotation_euler", 2)
        curve.driver.expression = f"0.02*{index + 1}*frame"
    bpy.context.view_layer.update()
    before = error(ob, wanted)
    add(bone_count=2)
    assert error(ob, wanted) < before
    assert {path.split('"')[1] for path, _ in keys_of(armature.animation_data.action)} == set(helpers_of(armature))


def test_nothing_else_changes(rig):
    ob, _, _, _ = rig
    bpy.context.scene.frame_set(5, subframe=0.25)
    before, blocks = scenes.ui_state(), scenes.data_blocks()
    add(bone_count=2)
    assert scenes.ui_state() == before
    after = scenes.data_blocks()
    assert {name for name in after if after[name] != blocks[name]} <= {"actions", "all_ids"}
    assert len(after["actions"]) == len(blocks["actions"]) + 1
    assert [modifier.name for modifier in ob.modifiers] == ["Armature"]


def test_in_pose_mode_with_the_armature_active(rig):
    ob, armature, target, wanted = rig
    before = error(ob, wanted)
    select(target, armature)
    bpy.ops.object.mode_set(mode="POSE")
    add(bone_count=2, target=target.name)
    assert armature.mode == "POSE"
    bpy.ops.object.mode_set(mode="OBJECT")
    assert error(ob, wanted) < before


@pytest.mark.parametrize("kind", ["RIGID", "AFFINE"])
def test_cancelled_leaves_nothing(rig, kind):
    ob, armature, _, _ = rig
    action, weights = armature.animation_data.action, weights_of(ob, armature)
    before, blocks = scenes.ui_state(), scenes.data_blocks()
    for fraction in (0.1, 0.3, 0.5, 0.75, 0.9):
        cancelled_at(fraction, add_helper_bones(bpy.context, ob, bone_kind=kind))
        assert scenes.ui_state() == before
        assert scenes.data_blocks() == blocks
        assert armature.animation_data.action == action
        assert len(armature.data.bones) == 5
        assert np.array_equal(weights_of(ob, armature), weights)
        assert {group.name for group in ob.vertex_groups} == set(BONES)


def test_bad_input(rig):
    ob, armature, target, _ = rig
    refused("OUT_OF_RANGE at least 1 … 0", bone_count=0)
    refused("at least 2, the vertex's own bone and a helper", max_influences=1)
    refused("ONE_FRAME", frame_start=3, frame_end=3)
    refused('NO_VERTEX_GROUP "Keep"', locked_vertices="Keep")
    select(ob)
    refused(r'"Arm" does not move from frame 1 to 8 without its armature')
    select(target, ob)
    ob.vertex_groups.new(name="All").add(list(range(656)), 1.0, "REPLACE")
    refused("are locked, so helper bones cannot take any", locked_vertices="All")
    for group in ob.vertex_groups:
        group.lock_weight = True
    refused("are locked, so helper bones cannot take any")
    twin = armature.copy()
    bpy.context.scene.collection.objects.link(twin)
    refused('The bones of "Rig" are also those of')
    bpy.data.objects.remove(twin)
    other = moving_meshes.waving_grid("Other")
    select(other, ob)
    refused('OTHER_VERTEX_COUNT "Other" has 63 vertices, and object "Arm" has 656')
    for name in BONES:
        armature.data.bones[name].use_deform = False
    refused("NO_GROUP_OF_A_BONE")


def test_vertices_at_the_limit_of_influences(rig):
    ob, _, _, _ = rig
    for name in BONES[:2]:
        ob.vertex_groups[name].add(list(range(656)), 0.5, "REPLACE")
    refused("follows 2 bones already", max_influences=2)


def test_a_rig_that_needs_no_help():
    ob, armature = tube()
    wanted = scenes.played(ob, FRAMES)
    select(moving_copy(ob, wanted), ob)
    weights, before = weights_of(ob, armature), error(ob, wanted)
    refused("No helper bone brings ", " closer to its target", bone_count=2)
    assert len(armature.data.bones) == 5
    assert np.array_equal(weights_of(ob, armature), weights)
    assert error(ob, wanted) == before


def test_command_line(rig, tmp_path, capsys):
    ob, _, target, wanted = rig
    before = error(ob, wanted)
    path, output = tmp_path / "shot.blend", tmp_path / "helped.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    arguments = ["add-helper-bones", "--object", ob.name, "--target", target.name, "--output", str(output)]
    assert command_line.main([*arguments, "--bones", "2", "--kind", "scaled"]) == 0
    assert "2 helper bones added" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert error(bpy.data.objects["Arm"], wanted) < 0.5 * before
    assert len(helpers_of(bpy.data.objects["Rig"])) == 2
    assert keys_of(bpy.data.actions["RigAction"])
