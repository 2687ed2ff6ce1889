# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove Helper Bones: weights, bones and keyframes are as before they were added; the button and the command line."""

import re

import bpy
import numpy as np
import pytest

from skinning_tools.features.partial.panel import SKINNING_PT_partial_solves
from tests.blender import command_runs, panel_recorder
from tests.blender.helper_bone_scenes import (
    ROUNDING,
    add,
    added_helpers,
    jiggling_rig,
    refused,
    remove,
    stored,
    structure,
)
from tests.blender.partial_scenes import (
    BONES,
    FRAMES,
    error,
    figures,
    keys_of,
    select,
    weights_of,
)

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def rig():
    return jiggling_rig()


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


def test_without_a_bone_above_a_neighboring_bone_gets_the_weights(rig):
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
    refused(ob, armature, f'No unlocked bone can take the weights of "{helper}"')
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
    assert "no bones made by Add Helper Bones" in capsys.readouterr().err
