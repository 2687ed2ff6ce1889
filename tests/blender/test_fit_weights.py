# SPDX-License-Identifier: GPL-3.0-or-later
"""Fitting weights to a pose: known weights are found, whatever else deforms the mesh; only moved vertices change."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender import error_display
from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.features.fit import posed_copies
from tests.blender import scenes
from tests.blender.eigenskin_scenes import pose
from tests.blender.fit_scenes import (
    CHOSEN,
    fit,
    local,
    move_to,
    place,
    positions,
    raw_weights,
    refused,
    start,
    with_other_weights,
)
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")


def known_weights_come_back(ob) -> None:
    """Through a posed copy that is where the mesh is, to 1e-5 by Blender's own evaluation, in the world."""
    targets, shown = with_other_weights(ob, CHOSEN), scenes.world_positions(ob)
    copy = start()
    assert np.abs(scenes.world_positions(copy) - shown).max() < 1e-5
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5


# Known weights come back


def test_positions_of_known_weights_are_reached(bent):
    """Through Blender's own evaluation, to 1e-5, in the world."""
    ob, _ = bent
    targets = with_other_weights(ob, CHOSEN)
    plain = scenes.world_positions(ob)
    assert np.abs(targets - plain).max() > 0.1
    copy = start()
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5
    assert not posed_copies.copies_of(ob, bpy.context.scene)


def test_only_moved_vertices_change(bent):
    ob, _ = bent
    for group in ob.vertex_groups:
        # Weights that do not sum to 1 stay as they are, too.
        group.add([5, 6, 7], 0.2, "REPLACE")
    before = raw_weights(ob)
    targets = with_other_weights(ob, CHOSEN)
    copy = start()
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    changed = np.flatnonzero((raw_weights(ob) != before).any(axis=1))
    assert set(changed) <= set(CHOSEN)
    assert len(changed) > 100


def test_two_poses_settle_the_weights_themselves(bent):
    """Six numbers are enough for three weights."""
    ob, rig = bent
    wanted = raw_weights(ob)
    random = np.random.default_rng(3)
    wanted[CHOSEN] = random.dirichlet(np.ones(3), len(CHOSEN))
    for turns in ([("lower", "X", 70), ("upper", "Z", 40)], [("lower", "Z", -50), ("upper", "X", 60)]):
        pose(rig, turns)
        targets = with_other_weights(ob, CHOSEN, seed=3)
        bpy.context.view_layer.objects.active = ob if not posed_copies.copies_of(ob, bpy.context.scene) else rig
        move_to(start(), CHOSEN, targets)
    first, second = posed_copies.copies_of(ob, bpy.context.scene)
    assert first.hide_get()
    assert not second.hide_get()
    fit(candidates="ALL", max_influences=3)
    assert np.abs(raw_weights(ob) - wanted)[CHOSEN].max() < 1e-3
    assert not bpy.data.objects.get("Limb_fit")
    assert not ob.hide_get()


def test_to_another_object(bent):
    ob, _ = bent
    targets = with_other_weights(ob, CHOSEN)
    other = scenes.mesh_object(targets, name="Target")
    other.location.x += 5
    other.data.transform(other.matrix_basis.inverted())
    bpy.context.view_layer.objects.active = ob
    fit(source="OBJECT", target="Target", candidates="ALL", max_influences=3)
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5
    assert "Target" in bpy.data.objects


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_to_a_shape_key(bent, value):
    """One that moves each vertex by what known weights would: it is muted then, as it would act twice."""
    ob, _ = bent
    targets = with_other_weights(ob, CHOSEN)
    skin = read_skin(bpy.context, ob)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    transforms = np.einsum("nk,nkij->nij", skin.weights, matrices[skin.bones])
    wanted = local(ob, targets) - transforms[..., 3]
    wanted = np.linalg.solve(transforms[..., :3], wanted[..., None])[..., 0]
    ob.shape_key_add(name="Basis")
    other = ob.shape_key_add(name="Other")
    block = ob.shape_key_add(name="Wanted", from_mix=False)
    block.points.foreach_set("co", wanted.astype(np.float32).ravel())
    block.value, other.value = value, 0.5
    bpy.context.view_layer.update()
    if value:
        assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5
    fit(source="SHAPE_KEY", shape_key="Wanted", candidates="ALL", max_influences=3)
    assert block.mute == bool(value)
    block.mute = True
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5


def test_shape_keys_that_are_on_are_part_of_what_the_bones_move(bent):
    ob, _ = bent
    scenes.shape_keys(ob, count=1)
    ob.data.shape_keys.key_blocks["Key 1"].value = 0.05
    bpy.context.view_layer.update()
    known_weights_come_back(ob)


def test_modifiers_above_and_below(bent):
    """Modifiers above the armature are part of the copy, modifiers below it are not."""
    ob, _ = bent
    cast = ob.modifiers.new("Cast", "CAST")
    cast.factor = 0.3
    ob.modifiers.move(1, 0)
    bpy.context.view_layer.update()
    targets, shown = with_other_weights(ob, CHOSEN), scenes.world_positions(ob)
    ob.modifiers.new("Subdivision", "SUBSURF")
    copy = start()
    assert np.abs(scenes.world_positions(copy) - shown).max() < 1e-5
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    ob.modifiers.remove(ob.modifiers["Subdivision"])
    assert np.abs(scenes.world_positions(ob) - targets).max() < 1e-5


@pytest.mark.parametrize("scale", [(-1.2, 1.2, 1.2), (0.5, 3.0, 1.0), (1.0, -2.0, 0.3)])
def test_scale_that_is_not_applied(bent, scale):
    ob, _ = bent
    ob.scale = scale
    bpy.context.view_layer.update()
    known_weights_come_back(ob)


def test_sheared_by_its_parent(bent):
    ob, _ = bent
    parent = scenes.link(bpy.data.objects.new("Parent", None))
    parent.scale = (1, 2, 0.5)
    ob.parent = parent
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    known_weights_come_back(ob)


def test_armature_as_parent_without_a_modifier(bent):
    ob, rig = bent
    ob.modifiers.clear()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    bpy.context.view_layer.update()
    known_weights_come_back(ob)


# Which bones, which vertices


def test_locked_groups_stay_to_the_last_bit(bent):
    ob, _ = bent
    before = raw_weights(ob)
    copy = start()
    place(copy, CHOSEN, positions(copy.data)[CHOSEN] + 0.1)
    ob.vertex_groups["upper"].lock_weight = True
    fit(candidates="ALL", max_influences=3)
    after = raw_weights(ob)
    assert np.array_equal(after[:, 1], before[:, 1])
    assert (after[CHOSEN] != before[CHOSEN]).any()
    assert np.abs(after.sum(axis=1) - 1).max() < 1e-6


def test_selected_bones_alone(bent):
    ob, rig = bent
    scenes.select_bones(rig, "upper", "lower", "root")
    copy = start()
    place(copy, CHOSEN, positions(copy.data)[CHOSEN] + 0.1)
    fit(candidates="SELECTED", max_influences=3)
    assert not raw_weights(ob)[CHOSEN, 0].any()
    assert raw_weights(ob)[:, 0].any()


def test_adjoining_bones(bent):
    ob, _ = bent
    tip = np.arange(340, 372)
    assert not raw_weights(ob)[tip, :2].any()
    targets = raw_weights(ob)
    copy = start()
    place(copy, tip, positions(copy.data)[tip] + 0.1)
    fit(candidates="NEAR")
    assert raw_weights(ob)[tip, 1].any()
    assert not raw_weights(ob)[tip, 0].any()
    assert np.array_equal(raw_weights(ob)[:340], targets[:340])


def test_only_selected_vertices(bent):
    ob, _ = bent
    before = raw_weights(ob)
    copy = start()
    place(copy, CHOSEN, positions(copy.data)[CHOSEN] + 0.1)
    for vertex in copy.data.vertices:
        vertex.select = vertex.index in (150, 151)
    fit(vertices="SELECTED")
    changed = np.flatnonzero((raw_weights(ob) != before).any(axis=1))
    assert set(changed) <= {150, 151}
    assert len(changed)


def test_vertices_within_the_threshold_keep_their_weights(bent):
    ob, _ = bent
    before = raw_weights(ob)
    copy = start()
    copy.data.vertices[151].co.z += 0.02
    copy.data.vertices[150].co.z += 0.2
    fit(threshold=0.1, candidates="ALL")
    changed = np.flatnonzero((raw_weights(ob) != before).any(axis=1))
    assert changed.tolist() == [150]


def test_vertices_without_weights(capfd):
    ob, rig = rigged_tube()
    bpy.context.scene.frame_set(8)
    last = np.arange(len(ob.data.vertices) - 16, len(ob.data.vertices))
    copy = start()
    chosen = np.concatenate([[300], last])
    place(copy, chosen, positions(copy.data)[chosen] + 0.2)
    fit(keep_copies=True)
    assert "16 vertices without weights unchanged" in capfd.readouterr().out
    assert not read_bone_weights(ob, rig).bound[last].any()
    for vertex in copy.data.vertices:
        vertex.select = vertex.index in last
    refused(
        "fit_weights_to_pose", "No bone moves the 16 vertices", "Choose other bones than Own Bones", vertices="SELECTED"
    )
    fit(candidates="ALL")
    assert read_bone_weights(ob, rig).bound[last].all()


def test_report_tells_what_is_left_and_a_heat_map_shows_it(bent, capfd):
    ob, _ = bent
    copy = start()
    # Far away, where no bone reaches, and one within the segment between two bones.
    place(copy, [150, 151], positions(copy.data)[[150, 151]] + 3)
    fit()
    printed = capfd.readouterr().out
    assert "2 vertices fitted" in printed
    assert "2 of 2 cannot reach their targets with these bones" in printed
    errors = np.array([item.value for item in ob.data.attributes["skinning_fit_error"].data])
    assert np.flatnonzero(errors).tolist() == [150, 151]
    assert errors[150] > 3
    assert bpy.ops.skinning.show_fit_error() == {"FINISHED"}
    assert error_display.shows_colors(ob)
    assert bpy.ops.skinning.show_fit_error(show=False) == {"FINISHED"}
    assert not error_display.shows_colors(ob)


def test_undo_takes_one_step(bent):
    bpy.context.preferences.edit.use_global_undo = True
    ob, _ = bent
    bpy.ops.ed.undo_push(message="Limb")
    copy = start()
    bpy.ops.ed.undo_push(message="Started")
    copy.data.vertices[150].co.z += 0.1
    bpy.ops.ed.undo_push(message="Moved")
    before = raw_weights(ob)
    fit()
    bpy.ops.ed.undo_push(message="Fitted")
    assert (raw_weights(ob) != before).any()
    bpy.ops.ed.undo()
    ob = bpy.data.objects["Limb"]
    assert np.array_equal(raw_weights(ob), before)
    assert [copy.name for copy in posed_copies.copies_of(ob, bpy.context.scene)] == ["Limb_fit"]
    assert ob.hide_get()
