# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove Helper Bones: weights, bones and keyframes are as before they were added, and nothing else changes."""

import re

import bpy
import numpy as np
import pytest

from skinning_tools.panels.partial_solves import SKINNING_PT_partial_solves
from skinning_tools.scene import joint_helper_rig
from skinning_tools.scene.added_bones import added_helpers
from skinning_tools.scene.joint_helper_weights import read_columns
from tests.blender import command_runs, panel_recorder, refusals, scenes
from tests.blender.partial_scenes import (
    BONES,
    FRAMES,
    add_bone,
    curves,
    error,
    figures,
    keys_of,
    moving_copy,
    select,
    tube,
    weights_of,
)

pytestmark = pytest.mark.usefixtures("extension")

# Weights are stored in single precision: what is scaled and scaled back is off by a few steps of it.
ROUNDING = 5e-7


@pytest.fixture
def rig():
    """The tube with its moving rig, and a target whose flesh jiggles besides. Rows of weights sum to 1."""
    ob, armature = tube()
    for name, column in zip(BONES, weights_of(ob, armature).T.astype(np.float32), strict=True):
        for index in np.flatnonzero(column):
            ob.vertex_groups[name].add([int(index)], float(column[index]), "REPLACE")
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    wanted = scenes.played(ob, FRAMES)
    for row, shape in enumerate(wanted):
        near = np.exp(-((rest[:, 0] - 1.6) ** 2) / 0.2)
        shape[:, 2] += (0.25 * np.sin(0.9 * row) * near).astype(np.float32)
    target = moving_copy(ob, wanted)
    select(target, ob)
    return ob, armature, target, wanted


def add(**given):
    assert bpy.ops.skinning.add_helper_bones(**{"bone_count": 2, **given}) == {"FINISHED"}


def remove(**given):
    assert bpy.ops.skinning.remove_helper_bones(**given) == {"FINISHED"}


def stored(ob, names=BONES) -> np.ndarray:
    """(G, N) what the vertex groups hold."""
    return np.maximum(read_columns(ob, names), 0.0)


def structure(armature) -> dict[str, tuple]:
    return {
        bone.name: (
            np.array(bone.matrix_local).tobytes(),
            tuple(bone.head_local),
            tuple(bone.tail_local),
            bone.parent and bone.parent.name,
            bone.use_connect,
            [collection.name for collection in bone.collections],
        )
        for bone in armature.data.bones
    }


def state(ob, armature) -> tuple:
    """All that a refusal must leave as it is."""
    groups = [(group.name, group.lock_weight) for group in ob.vertex_groups]
    keys = {key: values.tobytes() for key, values in keys_of(armature.animation_data.action).items()}
    names = [group.name for group in ob.vertex_groups]
    return structure(armature), groups, keys, read_columns(ob, names).tobytes(), scenes.ui_state()


def refused(ob, rig, *parts, **given) -> None:
    refusals.refused("remove_helper_bones", *parts, state=lambda: state(ob, rig), **given)


@pytest.mark.parametrize("kind", ["RIGID", "SCALED", "AFFINE"])
def test_the_rig_is_as_before(rig, kind):
    ob, armature, _, wanted = rig
    before, bones, keys = stored(ob), structure(armature), keys_of(armature.animation_data.action)
    left, collections = error(ob, wanted), armature.data.collections_all.keys()
    add(bone_kind=kind)
    assert error(ob, wanted) < 0.5 * left
    assert np.abs(stored(ob) - before).max() > 0.1
    remove()
    np.testing.assert_allclose(stored(ob), before, rtol=0, atol=ROUNDING)
    assert structure(armature) == bones
    assert list(ob.vertex_groups.keys()) == list(BONES)
    found = keys_of(armature.animation_data.action)
    assert found.keys() == keys.keys()
    assert all(np.array_equal(found[key], values) for key, values in keys.items())
    assert armature.data.collections_all.keys() == collections
    assert figures(ob) is None
    assert error(ob, wanted) == pytest.approx(left, rel=1e-5)


def test_where_a_helper_had_taken_all(rig):
    """Flesh that follows no bone of the rig's own in the least."""
    ob, _, target, wanted = rig
    for row, number in enumerate(FRAMES):
        wanted[row, 208:272] = wanted[0, 208:272] + [0.0, 0.0, 0.2 * row]
        target.data.shape_keys.key_blocks[f"Frame {number}"].points.foreach_set("co", wanted[row].ravel())
    before = stored(ob)
    add(bone_count=1)
    assert stored(ob).sum(axis=0).min() < 1e-5
    remove()
    np.testing.assert_allclose(stored(ob), before, rtol=0, atol=ROUNDING)


def test_two_rounds_go_together(rig):
    ob, armature, _, _ = rig
    before = stored(ob)
    add(bone_count=1)
    add(bone_kind="AFFINE")
    remove()
    np.testing.assert_allclose(stored(ob), before, rtol=0, atol=2 * ROUNDING)
    assert set(armature.data.bones.keys()) == set(BONES)


def test_locked_weights_stay_and_totals_are_kept(rig):
    ob, armature, _, _ = rig
    ob.vertex_groups["Bone 2"].lock_weight = True
    add()
    helpers = added_helpers(armature)
    painted = [index for index, column in enumerate(stored(ob, helpers).T) if column.any()]
    for name in (*BONES, *helpers):
        group = ob.vertex_groups[name]
        for index, weight in enumerate(stored(ob, [name])[0]):
            if weight and index in painted[:40]:
                group.add([index], 0.5 * weight, "REPLACE")
    before, total = stored(ob), stored(ob, [*BONES, *helpers]).sum(axis=0)
    assert total[painted[:40]].max() < 0.6
    remove()
    after = stored(ob)
    np.testing.assert_array_equal(after[2], before[2])
    np.testing.assert_allclose(after.sum(axis=0), total, atol=2 * ROUNDING)
    others = [0, 1, 3, 4]
    for index in painted:
        was, now = before[others, index], after[others, index]
        np.testing.assert_allclose(now / now.sum(), was / was.sum(), atol=1e-5)
    untouched = np.setdiff1d(np.arange(len(ob.data.vertices)), painted)
    np.testing.assert_array_equal(after[:, untouched], before[:, untouched])


def only(ob, armature, vertices, *names) -> None:
    """Give vertices equal weights of the groups ``names`` and of no other bone."""
    for bone in armature.data.bones:
        if bone.name in ob.vertex_groups:
            ob.vertex_groups[bone.name].remove(vertices)
    for name in names:
        ob.vertex_groups[name].add(vertices, 1 / len(names), "REPLACE")


@pytest.mark.parametrize("locked", [False, True])
def test_where_no_own_weight_is_left_the_nearest_free_bone_above_gets_it(rig, locked):
    ob, armature, _, _ = rig
    add(bone_kind="AFFINE")
    helper = added_helpers(armature)[0]
    above = armature.data.bones[helper].parent.parent.name
    assert above in BONES
    only(ob, armature, [0, 1, 2], helper)
    only(ob, armature, [3], helper, "Bone 4")
    ob.vertex_groups["Bone 4"].lock_weight = True
    if locked:
        ob.vertex_groups[above].lock_weight = True
        above = armature.data.bones[above].parent.name
    remove()
    after = dict(zip(BONES, stored(ob), strict=True))
    np.testing.assert_allclose(after[above][:4], [1, 1, 1, 0.5])
    assert after["Bone 4"][3] == 0.5
    assert sum(column[0] for column in after.values()) == 1


def unparent(armature, name) -> None:
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones[name].parent = None
    bpy.ops.object.mode_set(mode="OBJECT")


def test_without_a_bone_above_the_one_beside_gets_it(rig):
    ob, armature, _, _ = rig
    add(bone_count=1)
    (helper,) = added_helpers(armature)
    unparent(armature, helper)
    select(ob)
    columns = stored(ob, [*BONES, helper])
    beside = BONES[int(np.argmax((columns[:-1] * columns[-1]).sum(axis=1)))]
    only(ob, armature, [0], helper)
    for name in BONES:
        ob.vertex_groups[name].lock_weight = True
    refused(ob, armature, "have weights of", helper, "no bone is free to take them")
    ob.vertex_groups[beside].lock_weight = False
    remove()
    assert stored(ob, [beside])[0, 0] == 1


def test_all_meshes_of_the_armature_count(rig):
    """Shown or not, and one that shares its mesh with another only once."""
    ob, armature, _, _ = rig
    before = stored(ob)
    add()
    twin = ob.copy()
    hidden = ob.copy()
    hidden.data = ob.data.copy()
    for copy in (twin, hidden):
        bpy.context.scene.collection.objects.link(copy)
    hidden.hide_viewport = True
    select(armature)
    remove()
    for each in (ob, twin, hidden):
        assert set(each.vertex_groups.keys()) == set(BONES)
        np.testing.assert_allclose(stored(each), before, rtol=0, atol=ROUNDING)


def test_a_mesh_that_no_armature_deforms_is_restored_as_well(rig):
    """Solves take one that has weights, with the armature named."""
    ob, armature, _, _ = rig
    ob.modifiers.clear()
    before = stored(ob)
    add(armature=armature.name)
    remove(armature=armature.name)
    np.testing.assert_allclose(stored(ob), before, rtol=0, atol=ROUNDING)
    assert set(ob.vertex_groups.keys()) == set(BONES)


def test_what_the_user_has_hung_on_helpers_stays(rig):
    ob, armature, _, _ = rig
    add(bone_kind="AFFINE")
    helper = added_helpers(armature)[0]
    above = armature.data.bones[helper].parent.parent.name
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = armature.data.edit_bones
    child = bones.new("Connected")
    child.parent, child.use_connect = bones[helper], True
    child.tail = bones[helper].tail + bones[helper].y_axis
    head, tail = child.head.copy(), child.tail.copy()
    bpy.ops.object.mode_set(mode="OBJECT")
    cube = bpy.data.objects.new("Prop", None)
    bpy.context.scene.collection.objects.link(cube)
    cube.parent, cube.parent_type, cube.parent_bone = armature, "BONE", helper
    armature.data.pose_position = "REST"
    bpy.context.view_layer.update()
    place = np.array(cube.matrix_world)
    select(ob)
    remove()
    child = armature.data.bones["Connected"]
    assert child.parent.name == above
    np.testing.assert_allclose([child.head_local, child.tail_local], [head, tail], atol=1e-6)
    assert (cube.parent, cube.parent_type, cube.parent_bone) == (armature, "BONE", above)
    bpy.context.view_layer.update()
    np.testing.assert_allclose(np.array(cube.matrix_world), place, atol=1e-5)


def test_what_names_them_goes_and_nothing_else(rig, capsys):
    ob, armature, target, _ = rig
    add()
    helper = added_helpers(armature)[0]
    empty = bpy.data.objects.new("Empty", None)
    bpy.context.scene.collection.objects.link(empty)
    named = {"Own": "Bone 1", "Gone": helper}
    for name, bone in named.items():
        for owner in (empty, armature.pose.bones["Bone 3"]):
            constraint = owner.constraints.new("COPY_ROTATION")
            constraint.name, constraint.target, constraint.subtarget, constraint.influence = name, armature, bone, 0.0
    both = empty.constraints.new("ARMATURE")
    for bone in ("Bone 1", helper):
        part = both.targets.new()
        part.target, part.subtarget = armature, bone
    reach = armature.pose.bones["Bone 4"].constraints.new("IK")
    reach.influence, reach.target = 0.0, empty
    reach.pole_target, reach.pole_subtarget = armature, helper
    material = bpy.data.materials.new("Skin")
    ob.data.materials.append(material)
    if material.node_tree is None:
        material.use_nodes = True
    value = material.node_tree.nodes.new("ShaderNodeMapping").inputs["Location"]
    driven = [empty, value, target.data.shape_keys.key_blocks[1], armature.pose.bones["Bone 0"]]
    paths = ["location", "default_value", "slider_max", "scale"]
    for owner, path in zip(driven, paths, strict=True):
        for index, bone in enumerate(("Bone 1", helper)):
            curve = (
                owner.driver_add(path, index) if path != "slider_max" else owner.driver_add(("slider_min", path)[index])
            )
            variable = curve.driver.variables.new()
            variable.type = "TRANSFORMS" if path != "scale" else "SINGLE_PROP"
            variable.targets[0].id = armature
            if path == "scale":
                variable.targets[0].data_path = f'pose.bones["{bone}"].location[0]'
            else:
                variable.targets[0].bone_target = bone
            curve.driver.expression = variable.name
    remove()
    for owner in (empty, armature.pose.bones["Bone 3"]):
        assert [each.name for each in owner.constraints if each.type == "COPY_ROTATION"] == ["Own"]
    assert [part.subtarget for part in both.targets] == ["Bone 1"]
    assert (reach.target, reach.pole_target) == (empty, None)
    blocks = [empty, material.node_tree, target.data.shape_keys, armature]
    left = [[(curve.data_path, curve.array_index) for curve in block.animation_data.drivers] for block in blocks]
    assert [len(found) for found in left] == [1, 1, 1, 1]
    assert left[0] == [("location", 0)]


def test_an_action_of_two_armatures_keeps_its_keyframes(rig):
    _, armature, _, _ = rig
    add()
    other = armature.copy()
    other.data = armature.data.copy()
    bpy.context.scene.collection.objects.link(other)
    action = armature.animation_data.action
    if hasattr(action, "slots"):
        other.animation_data.action_slot = action.slots[0]
    keys = keys_of(action)
    remove()
    assert keys_of(action).keys() == keys.keys()
    assert len(added_helpers(other)) == 2
    bpy.data.objects.remove(other)


def test_other_curves_and_actions_stay(rig):
    _, armature, _, _ = rig
    add()
    action = armature.animation_data.action
    other = action.copy()
    armature["extra"] = 1.0
    armature.keyframe_insert('["extra"]', frame=3)
    remove()
    assert armature.animation_data.action == action
    paths = {curve.data_path for curve in curves(action)}
    assert '["extra"]' in paths
    assert not any("HLP-" in path for path in paths)
    assert any("HLP-" in curve.data_path for curve in curves(other))


def test_bones_of_the_user_with_such_names_stay_and_renamed_helpers_go(rig):
    ob, armature, _, _ = rig
    own = add_bone(armature, "HLP-own", "Bone 1").name
    armature.data.collections.new("Helper Bones").assign(armature.data.bones[own])
    add()
    armature.data.bones[added_helpers(armature)[0]].name = "Belly"
    assert "Belly" in ob.vertex_groups
    remove()
    assert set(armature.data.bones.keys()) == {*BONES, own}
    assert armature.data.collections["Helper Bones"].bones.keys() == [own]
    assert set(ob.vertex_groups.keys()) == set(BONES)


def test_parents_that_a_solve_gave_the_rig_itself_stay(rig):
    """Affine motion gives bones parents of the same kind."""
    _, armature, _, _ = rig
    add()
    assert bpy.ops.skinning.solve_transforms(bone_kind="AFFINE") == {"FINISHED"}
    assert len(armature.data.bones) == 2 * 7
    remove()
    assert set(armature.data.bones.keys()) == {*BONES, *(f"MCH-{name}" for name in BONES)}


def test_mode_selection_and_active_group_stay(rig):
    ob, armature, _, _ = rig
    add()
    ob.vertex_groups.active_index = ob.vertex_groups["Bone 3"].index
    select(armature)
    bpy.ops.object.mode_set(mode="POSE")
    scenes.select_bones(armature, "Bone 1")
    before = scenes.ui_state()
    remove()
    assert armature.mode == "POSE"
    bpy.ops.object.mode_set(mode="OBJECT")
    assert ob.vertex_groups.active.name == "Bone 3"
    bpy.ops.object.mode_set(mode="POSE")
    assert scenes.ui_state() == before
    bpy.ops.object.mode_set(mode="OBJECT")


def test_refused(rig):
    ob, armature, target, _ = rig
    refused(ob, armature, 'The armature "Rig" has no bones that Add Helper Bones has made')
    add()
    helper = added_helpers(armature)[1]
    ob.vertex_groups[helper].lock_weight = True
    refused(ob, armature, "Vertex groups are locked", f'"{helper}" of object "Arm"')
    ob.vertex_groups[helper].lock_weight = False
    refused(ob, armature, 'no object "Nobody"', armature="Nobody")
    select(target)
    refused(ob, armature, 'object "Target"')
    twin = armature.copy()
    bpy.context.scene.collection.objects.link(twin)
    refused(ob, armature, 'The bones of "Rig" are also those of', armature="Rig")
    bpy.data.objects.remove(twin)
    select(ob)
    bpy.ops.object.mode_set(mode="EDIT")
    with pytest.raises(RuntimeError, match="Switch to Object Mode"):
        remove()
    bpy.ops.object.mode_set(mode="OBJECT")
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    with pytest.raises(RuntimeError, match='"Rig" is in Edit Mode'):
        remove()
    bpy.ops.object.mode_set(mode="OBJECT")
    select(ob)
    assert len(added_helpers(armature)) == 2


def test_a_failure_leaves_nothing(rig, monkeypatch):
    """Where Blender cannot enter Edit Mode."""
    ob, armature, _, _ = rig
    add()
    constraint = armature.pose.bones["Bone 0"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget, constraint.influence = armature, added_helpers(armature)[0], 0.0
    before = state(ob, armature)

    def fail(*_):
        raise ZeroDivisionError("as a test")

    monkeypatch.setattr(joint_helper_rig, "edit_bones_of", fail)
    with pytest.raises(RuntimeError, match="fault of its own"):
        remove()
    assert state(ob, armature) == before
    assert len(armature.pose.bones["Bone 0"].constraints) == 1


def test_linked_data_is_refused(rig, tmp_path):
    ob, armature, _, _ = rig
    add()
    path = tmp_path / "rig.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True)
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.actions, wanted.meshes = [armature.animation_data.action.name], [ob.data.name]
    (action,), (mesh,) = wanted.actions, wanted.meshes
    own = armature.animation_data.action
    armature.animation_data.action = action
    refused(ob, armature, "is linked from another file", "Make it local, or choose another")
    armature.animation_data.action = own
    local, ob.data = ob.data, mesh
    refused(ob, armature, "The mesh of object", "linked from another file", "cannot be given back")
    ob.data = local
    remove()


def test_the_panel_has_a_button_where_there_are_some(rig):
    ob, armature, _, _ = rig
    assert "Remove Helper Bones" not in panel_recorder.drawn(SKINNING_PT_partial_solves).buttons
    add()
    layout = panel_recorder.drawn(SKINNING_PT_partial_solves)
    assert "Remove Helper Bones" in panel_recorder.pressable(layout)
    assert layout.buttons["Remove Helper Bones"].armature == armature.name
    assert "Rig: 2 helper bones" in layout.texts
    twin = armature.copy()
    bpy.context.scene.collection.objects.link(twin)
    layout = panel_recorder.drawn(SKINNING_PT_partial_solves)
    assert "Remove Helper Bones" not in panel_recorder.pressable(layout)
    assert any("are also those of" in text for text in layout.texts)
    bpy.data.objects.remove(twin)
    select(ob)
    remove()
    assert "Remove Helper Bones" not in panel_recorder.drawn(SKINNING_PT_partial_solves).buttons


def test_command_line(rig, tmp_path, capsys):
    ob, armature, _, _ = rig
    before = weights_of(ob, armature)
    add()
    path, output = tmp_path / "shot.blend", tmp_path / "bare.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert command_runs.run("remove-helper-bones", "--object", "Arm", "--output", output) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^Removed +HLP-\S.*, HLP-\S", printed, re.MULTILINE)
    assert re.search(r"^Vertices with new weights +\d+$", printed, re.MULTILINE)
    bpy.ops.wm.open_mainfile(filepath=str(output))
    ob, armature = bpy.data.objects["Arm"], bpy.data.objects["Rig"]
    assert set(armature.data.bones.keys()) == set(BONES)
    np.testing.assert_allclose(weights_of(ob, armature), before, atol=ROUNDING)
    assert command_runs.run("remove-helper-bones", "--object", "Rig", "--overwrite") == 1
    assert "no bones that Add Helper Bones has made" in capsys.readouterr().err
