# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Weights: known weights are recovered, locked weights stay, and bad input is refused without a trace."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.blender.skin_reader import mesh_triangles, rest_positions
from skinning_tools.core.decomposition.smoothness import neighbor_weights
from skinning_tools.features.partial import weights as weights_module
from skinning_tools.features.partial.weights import solve_weights
from tests.blender import moving_meshes, partial_scenes, refusals, scenes
from tests.blender.partial_scenes import (
    BONES,
    FRAMES,
    cancelled_at,
    error,
    figures,
    moving_copy,
    select,
    tube,
    weights_of,
)
from tests.core.decomposition.sequences import dirichlet_energy

pytestmark = pytest.mark.usefixtures("extension")

solve = partial(refusals.finished, "solve_weights")
refused = partial(refusals.refused, "solve_weights")


@pytest.fixture
def rig():
    """The tube without weights, its armature, the target, and where its vertices are to be."""
    ob, armature = tube(stretch=0.2, move=0.1)
    wanted = scenes.played(ob, FRAMES)
    target = moving_copy(ob, wanted)
    truth = weights_of(ob, armature)
    ob.vertex_groups.clear()
    select(target, ob)
    return ob, armature, target, wanted, truth


def test_weights_of_the_wolf_are_recovered(shared_data):
    ob, armature, _, data = partial_scenes.wolf(shared_data("wolf_ground_truth.npz"))
    ob.vertex_groups.clear()
    solve(max_influences=13)
    np.testing.assert_allclose(weights_of(ob, armature), data["weights"], atol=2e-3)
    result = figures(ob)
    assert result.e_rms < 0.002
    assert result.e_rms_before == -1
    assert error(ob, data["frames"], range(1, 22)) == pytest.approx(result.e_rms, rel=1e-3)


def test_from_nothing_to_the_target(rig):
    ob, armature, _, wanted, _ = rig
    solve()
    assert error(ob, wanted) < 0.002
    assert figures(ob).e_rms == pytest.approx(error(ob, wanted), abs=1e-5)
    rows = read_bone_weights(ob, armature)
    assert np.count_nonzero(rows.weights, axis=1).max() <= 4
    np.testing.assert_allclose(rows.totals, 1, atol=1e-6)


def test_few_influences_are_kept_and_cost_something(rig):
    ob, armature, _, wanted, _ = rig
    solve(max_influences=2)
    assert np.count_nonzero(weights_of(ob, armature), axis=1).max() == 2
    assert figures(ob).e_rms_before == -1
    two = error(ob, wanted)
    solve(max_influences=1)
    assert figures(ob).e_rms_before == pytest.approx(two, rel=1e-3)
    assert error(ob, wanted) > 1.5 * two > 0.1


def test_the_target_counts_where_it_is_in_the_world(rig):
    ob, _, target, wanted, _ = rig
    target.location, target.rotation_euler, target.scale = (3, 1, 2), (0.3, 0.5, -1), (0.5, 2, 1)
    bpy.context.view_layer.update()
    moved = np.linalg.inv(np.array(target.matrix_world)) @ np.array(ob.matrix_world)
    for block in target.data.shape_keys.key_blocks:
        points = np.empty((len(ob.data.vertices), 3), np.float32)
        block.points.foreach_get("co", points.ravel())
        block.points.foreach_set("co", (points @ moved[:3, :3].T + moved[:3, 3]).astype(np.float32).ravel())
    solve()
    assert error(ob, wanted) < 0.002


def test_the_armature_may_be_active_and_the_mesh_selected(rig):
    ob, armature, target, wanted, _ = rig
    ob.modifiers.clear()
    select(ob, armature)
    solve(target=target.name)
    assert [modifier.object for modifier in ob.modifiers] == [armature]
    assert error(ob, wanted) < 0.002


def test_a_mesh_of_its_own_animation(rig):
    """Shape keys move the mesh, an armature goes along: the weights are for the animation by the keys."""
    _, armature, target, wanted, _ = rig
    keys = partial_scenes.keys_of(target.data.shape_keys.animation_data.action)
    select(armature, target)
    solve()
    assert not target.modifiers
    after = partial_scenes.keys_of(target.data.shape_keys.animation_data.action)
    assert all(np.array_equal(after[key], values) for key, values in keys.items())
    assert error(target, wanted) < 1e-3
    assert figures(target).e_rms < 0.002
    # With the keys gone and the armature on, the bones do what the keys did.
    target.shape_key_clear()
    target.data.attributes["position"].data.foreach_set("vector", rest_positions(rig[0].data).astype("f4").ravel())
    target.modifiers.new("Armature", "ARMATURE").object = armature
    assert error(target, wanted) < 0.002


def test_a_deforming_parent_leaves_the_mesh_where_it_is(rig):
    _, armature, target, _, _ = rig
    place = scenes.deforming_parent(target, armature)
    select(armature, target)
    solve()
    bpy.context.view_layer.update()
    assert target.parent_type == "ARMATURE"
    np.testing.assert_allclose(np.array(target.matrix_world), place, atol=1e-5)


def test_own_animation_excludes_the_armature(rig):
    _, armature, target, wanted, _ = rig
    modifier = target.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature
    select(armature, target)
    solve()
    assert modifier.show_viewport
    assert figures(target).e_rms < 0.002
    # Then it moves twice, as it would have before.
    assert error(target, wanted) > 10


def test_locked_groups_and_vertices_keep_their_weights_to_the_last_bit(rig):
    ob, armature, _, wanted, truth = rig
    random = np.random.default_rng(0)
    for index, name in enumerate(BONES):
        group = ob.vertex_groups.new(name=name)
        for vertex, weight in enumerate(0.5 * truth[:, index]):
            if weight > 0:
                group.add([vertex], float(weight), "REPLACE")
    kept = random.choice(len(truth), 100, replace=False)
    ob.vertex_groups.new(name="Keep").add(kept.tolist(), 0.2, "REPLACE")
    ob.vertex_groups["Bone 2"].lock_weight = True
    before = _stored(ob)
    solve(locked_vertices="Keep", max_influences=3)
    after = _stored(ob)
    assert after["Bone 2"] == before["Bone 2"]
    assert after["Keep"] == before["Keep"]
    for name in BONES:
        for vertex in kept.tolist():
            assert after[name].get(vertex) == before[name].get(vertex)
    assert error(ob, wanted) < 0.002
    others = np.setdiff1d(np.arange(len(truth)), kept)
    assert np.count_nonzero(weights_of(ob, armature)[others], axis=1).max() <= 3


def _stored(object) -> dict[str, dict[int, float]]:
    names = {group.index: group.name for group in object.vertex_groups}
    found = {name: {} for name in names.values()}
    for vertex in object.data.vertices:
        for element in vertex.groups:
            found[names[element.group]][vertex.index] = element.weight
    return found


def test_smoother_with_the_slider_at_a_known_error(rig):
    ob, armature, target, _, _ = rig
    noise = 0.01 * np.random.default_rng(0).normal(size=(len(ob.data.vertices), 3))
    for block in target.data.shape_keys.key_blocks[1:]:
        points = np.empty(noise.shape, np.float32)
        block.points.foreach_get("co", points.ravel())
        block.points.foreach_set("co", (points + noise * np.sin(len(block.name))).astype(np.float32).ravel())
    neighbors = neighbor_weights(rest_positions(ob.data), mesh_triangles(ob.data))
    energies, errors = [], []
    for smoothness in (0.0, 0.25, 0.5, 1.0):
        solve(smoothness=smoothness)
        rows = read_bone_weights(ob, armature)
        energies.append(dirichlet_energy(neighbors, rows.bones, rows.weights, 5))
        errors.append(figures(ob).e_rms)
    assert np.all(np.diff(energies) < 0)
    assert errors[0] < errors[-1] < 5 * errors[0]


def test_nothing_else_changes(rig):
    ob, _, target, _, _ = rig
    bpy.context.scene.frame_set(5, subframe=0.25)
    before, blocks = scenes.ui_state(), scenes.data_blocks()
    solve()
    assert scenes.ui_state() == before
    assert scenes.data_blocks() == blocks
    assert {group.name for group in ob.vertex_groups} <= set(BONES)
    assert not target.vertex_groups
    assert [modifier.name for modifier in ob.modifiers] == ["Armature"]


def test_a_cancelled_solve_leaves_nothing(rig):
    ob, _, _, _, _ = rig
    before, blocks = scenes.ui_state(), scenes.data_blocks()
    for fraction in (0.1, 0.3, 0.5, 0.9):
        cancelled_at(fraction, solve_weights(bpy.context, ob, smoothness=0.5))
        assert scenes.ui_state() == before
        assert scenes.data_blocks() == blocks
        assert not ob.vertex_groups
        assert ob.modifiers["Armature"].show_viewport


@pytest.mark.parametrize("rest_shape", [True, False])
def test_a_write_that_fails_leaves_nothing(rig, rest_shape, monkeypatch):
    ob, *_ = rig
    ob.modifiers.clear()
    ob["skinning_compression"] = [2.5]
    if not rest_shape:
        for name in ("Basis", "Rest for Weights", "Smile"):
            ob.shape_key_add(name=name, from_mix=False)
    before, blocks, real = scenes.ui_state(), scenes.data_blocks(), weights_module.attach

    def fail(*given):
        assert real(*given) == ["Armature modifier added"]
        raise MemoryError("none left")

    monkeypatch.setattr(weights_module, "attach", fail)
    with pytest.raises(RuntimeError, match=r"none left|[Mm]emory"):
        bpy.ops.skinning.solve_weights(armature="Rig", target="Target", rest_shape=rest_shape)
    assert (scenes.ui_state(), scenes.data_blocks()) == (before, blocks)
    assert not ob.vertex_groups
    assert not ob.modifiers
    assert list(ob["skinning_compression"]) == [2.5]
    keys = ob.data.shape_keys
    assert [block.mute for block in keys.key_blocks] == [False] * 3 if keys else rest_shape


def test_bad_settings_and_targets(rig):
    ob, armature, target, _, _ = rig
    refused("OUT_OF_RANGE Influences … at least 1 … 0", max_influences=0)
    refused("OUT_OF_RANGE Smoothness … from 0 to 1 … 2", smoothness=2.0)
    refused('NO_VERTEX_GROUP "Keep"', locked_vertices="Keep")
    refused('NO_OBJECT "Nobody"', target="Nobody")
    refused('NO_OBJECT "Nobody"', armature="Nobody")
    refused("NOT_AN_ARMATURE", armature=target.name)
    refused("NOT_A_MESH", target=armature.name)
    refused("ONE_FRAME", frame_start=3, frame_end=3)
    refused("RANGE_REVERSED", frame_start=5, frame_end=2)
    refused("OUT_OF_RANGE Frame Step … at least 1 … 0", frame_step=0)
    other = moving_meshes.waving_grid("Other")
    select(other, ob)
    refused('OTHER_VERTEX_COUNT "Other" … 63 … "Arm" … 656')
    select(ob)
    refused(r'"Arm" does not move from frame 1 to 8 without its armature')
    third = target.copy()
    bpy.context.scene.collection.objects.link(third)
    select(third, target, ob)
    refused("Several other meshes are selected")
    target.hide_viewport = True
    refused("HIDDEN", target=target.name)


def test_bad_armatures(rig):
    ob, armature, target, _, _ = rig
    armature.data.pose_position = "REST"
    refused("ARMATURE_AT_REST")
    armature.data.pose_position = "POSE"
    for bone in armature.data.bones:
        bone.use_deform = False
    refused('NO_DEFORMING_BONE "Rig"')
    for bone in armature.data.bones:
        bone.use_deform = True
    action, armature.animation_data.action = armature.animation_data.action, None
    for bone in armature.pose.bones:
        bone.matrix_basis.identity()
        bone.location = bone.rotation_euler = (0, 0, 0)
        bone.scale = (1, 1, 1)
    refused('"Rig" move alike from frame 1 to 8')
    armature.animation_data.action = action
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    refused("PRESERVES_VOLUME")
    ob.modifiers.clear()
    select(target, ob)
    refused('No armature is chosen for object "Arm"')
    select(armature)
    refused('NO_DEFORMED_MESH "Rig"')


def test_everything_locked(rig):
    ob, _, _, _, _ = rig
    solve()
    ob.vertex_groups.new(name="All").add(list(range(656)), 1.0, "REPLACE")
    refused('All weights of object "Arm" are locked', locked_vertices="All")
    for group in ob.vertex_groups:
        group.lock_weight = True
    refused('All weights of object "Arm" are locked')


def test_other_actives():
    moving_meshes.fresh_scene()
    refused("NO_ACTIVE_OBJECT")
    empty = scenes.link(bpy.data.objects.new("Nothing", None))
    select(empty)
    refused("NOT_A_MESH Empty")


def test_a_linked_mesh(rig, tmp_path):
    ob, armature, target, _, _ = rig
    path = tmp_path / "library.blend"
    bpy.data.libraries.write(str(path), {ob.data})
    with bpy.data.libraries.load(str(path), link=True) as (_, linked):
        linked.meshes = [ob.data.name]
    ob.data = linked.meshes[0]
    select(target, ob)
    refused("LINKED", armature=armature.name)


def test_command_line(rig, tmp_path, capsys):
    ob, _, target, _, _ = rig
    path, output = tmp_path / "shot.blend", tmp_path / "solved.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    arguments = ["solve-weights", "--object", ob.name, "--target", target.name, "--output", str(output)]
    assert command_line.main([*arguments, "--influences", "2", "--smoothness", "0.1"]) == 0
    printed = capsys.readouterr().out
    assert "E_RMS" in printed
    assert str(output) in printed
    bpy.ops.wm.open_mainfile(filepath=str(output))
    solved = bpy.data.objects["Arm"]
    assert np.count_nonzero(weights_of(solved, bpy.data.objects["Rig"]), axis=1).max() == 2
    bpy.ops.wm.open_mainfile(filepath=str(path))
    assert command_line.main([*arguments, "--smoothness", "3"]) == 1
    refusals.assert_says(capsys.readouterr().err, "OUT_OF_RANGE Smoothness … from 0 to 1 … 3")
