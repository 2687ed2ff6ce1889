# SPDX-License-Identifier: GPL-3.0-or-later
"""Compress Weights: the weights that Blender stores, the error that Blender shows, and refusals."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.vertex_groups import put_weights
from skinning_tools.features.weights.compression import compression_figures
from tests.blender import binding_scenes, refusals, scenes, skinned_meshes
from tests.blender.snapshots import refused, snapshot

pytestmark = pytest.mark.usefixtures("extension")

FULL = {"8": 255, "16": 65535}


@pytest.fixture
def tube():
    """The tube with random weights that do not sum to 1, none at the last ring, and a group that is no bone."""
    ob, rig = skinned_meshes.rigged_tube()
    random = np.random.default_rng(0)
    weights = random.dirichlet(np.ones(5), len(ob.data.vertices)) * random.uniform(0.2, 1, (len(ob.data.vertices), 1))
    weights[-16:] = 0
    put_weights(ob, [bone.name for bone in rig.data.bones], np.tile(np.arange(5), (len(weights), 1)), weights)
    ob.vertex_groups.new(name="mine").add([3, 4], 0.25, "REPLACE")
    return ob, rig


def shown(ob) -> np.ndarray:
    """(F, N, 3) world positions as Blender shows them, at all frames of the scene."""
    scene = bpy.context.scene
    local = scenes.played(ob, range(scene.frame_start, scene.frame_end + 1))
    linear = np.array(ob.matrix_world)[:3, :3]
    return local @ linear.T


@pytest.mark.parametrize("bits", ["8", "16"])
@pytest.mark.parametrize("influences", [2, 3, 4])
def test_stored_weights_are_whole_steps_that_sum_exactly(tube, bits, influences):
    ob, rig = tube
    before = binding_scenes.weights_of(ob, rig)
    before /= np.maximum(before.sum(axis=1, keepdims=True), 1e-9)
    other = snapshot(ob)
    assert bpy.ops.skinning.compress_weights(bits=bits, max_influences=influences) == {"FINISHED"}
    after = binding_scenes.weights_of(ob, rig)
    steps = np.rint(after * FULL[bits])
    bound = before.any(axis=1)
    assert np.array_equal(steps.sum(axis=1), np.where(bound, FULL[bits], 0))
    # Single precision is all that Blender keeps.
    assert np.array_equal(after.astype(np.float32), (steps / FULL[bits]).astype(np.float32))
    assert (after > 0).sum(axis=1).max() == influences
    kept = np.sort(before, axis=1)[:, -influences:].sum(axis=1)
    largest = np.abs(after - np.where(after > 0, before, 0) / np.maximum(kept, 1e-9)[:, None]).max()
    assert largest <= (1 - 1 / influences) / FULL[bits] + 1e-6
    now = snapshot(ob)
    assert {name for name in other if other[name] != now[name]} == {"weights", "properties"}
    assert [ob.vertex_groups["mine"].weight(vertex) for vertex in (3, 4)] == [0.25, 0.25]
    # No vertex stays in a group where it has no weight.
    assert all(entry.weight > 0 for vertex in ob.data.vertices for entry in vertex.groups)


def test_compressing_again_changes_nothing(tube):
    ob, _ = tube
    bpy.ops.skinning.compress_weights()
    before = snapshot(ob)
    bpy.ops.skinning.compress_weights()
    assert snapshot(ob)["weights"] == before["weights"]
    assert compression_figures(ob).largest == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("given", [{}, {"bits": "16"}, {"max_influences": 2}, {"threshold": 0.1}])
def test_the_error_is_what_blender_shows(tube, given):
    ob, rig = tube
    ob.scale = (1.2, 0.7, 2.0)
    bpy.context.view_layer.update()
    before = shown(ob)
    assert bpy.ops.skinning.compress_weights(**given) == {"FINISHED"}
    distances = np.linalg.norm(shown(ob) - before, axis=2)
    figures = compression_figures(ob)
    assert figures.largest == pytest.approx(distances.max(), rel=0.01, abs=2e-6)
    assert figures.mean == pytest.approx(distances.mean(), rel=0.05, abs=2e-6)
    worst = distances[figures.frame - bpy.context.scene.frame_start, figures.vertex]
    assert worst == pytest.approx(distances.max(), rel=0.01, abs=2e-6)
    assert figures.frames == 8
    if "threshold" in given:
        assert binding_scenes.weights_of(ob, rig)[binding_scenes.weights_of(ob, rig) > 0].min() >= 0.1


def test_bytes_and_cut_vertices(tube):
    ob, rig = tube
    over = int(((binding_scenes.weights_of(ob, rig) > 0).sum(axis=1) > 2).sum())
    bpy.ops.skinning.compress_weights(max_influences=2)
    figures = compression_figures(ob)
    assert (figures.bits, figures.influences, figures.byte_count, figures.cut) == (8, 2, 3, over)
    bpy.ops.skinning.compress_weights(bits="16", max_influences=2)
    figures = compression_figures(ob)
    assert (figures.bits, figures.byte_count, figures.cut) == (16, 4, 0)


def test_selection_mode_and_an_unkeyed_pose_stay(tube):
    _, rig = tube
    bpy.context.scene.frame_set(3, subframe=0.5)
    pose = rig.pose.bones["Bone 2"]
    pose.rotation_euler = (0.3, 0.2, 0.1)
    bpy.context.view_layer.update()
    turned, matrix, user, blocks = (
        tuple(pose.rotation_euler),
        np.array(rig.pose.bones["Bone 3"].matrix),
        scenes.ui_state(),
        scenes.data_blocks(),
    )
    bpy.ops.skinning.compress_weights()
    assert tuple(pose.rotation_euler) == turned
    assert np.array_equal(matrix, rig.pose.bones["Bone 3"].matrix)
    assert (scenes.ui_state(), scenes.data_blocks()) == (user, blocks)


def test_the_requested_frames(tube):
    ob, _ = tube
    bpy.ops.skinning.compress_weights(frame_start=2, frame_end=7, frame_step=2)
    figures = compression_figures(ob)
    assert (figures.frames, figures.frame in (2, 4, 6)) == (3, True)


def test_without_an_animation_the_present_pose_counts(tube):
    ob, rig = tube
    bpy.context.scene.frame_set(8)
    rig.animation_data_clear()
    before = shown(ob)[0]
    bpy.ops.skinning.compress_weights()
    figures = compression_figures(ob)
    assert (figures.posed, figures.frames, figures.frame) == (True, 1, 8)
    assert figures.largest == pytest.approx(np.linalg.norm(shown(ob)[0] - before, axis=1).max(), rel=0.01)


@pytest.mark.parametrize("how", ["shown", "posed"])
def test_at_rest_nothing_is_measured(tube, how):
    ob, rig = tube
    if how == "shown":
        rig.data.pose_position = "REST"
    else:
        rig.animation_data_clear()
        for bone in rig.pose.bones:
            bone.matrix_basis.identity()
        bpy.context.view_layer.update()
    assert bpy.ops.skinning.compress_weights() == {"FINISHED"}
    assert compression_figures(ob).frames == 0


@pytest.mark.parametrize("mode", ["WEIGHT_PAINT", "POSE"])
def test_the_mode_stays(tube, mode):
    ob, rig = tube
    binding_scenes.activate(rig if mode == "POSE" else ob)
    bpy.ops.object.mode_set(mode=mode)
    assert bpy.ops.skinning.compress_weights() == {"FINISHED"}
    assert bpy.context.view_layer.objects.active.mode == mode


def test_locked_groups_that_would_change_are_refused(tube):
    ob, _ = tube
    ob.vertex_groups["Bone 2"].lock_weight = True
    refused(ob, bpy.ops.skinning.compress_weights, '"Bone 2"', "locked", "at vertex")
    ob.vertex_groups["Bone 2"].lock_weight = False
    bpy.ops.skinning.compress_weights()
    # What is compressed already need not change.
    ob.vertex_groups["Bone 2"].lock_weight = True
    assert bpy.ops.skinning.compress_weights() == {"FINISHED"}


def test_figures_of_earlier_weights_are_removed(tube):
    ob, _ = tube
    bpy.ops.skinning.compress_weights()
    assert compression_figures(ob) is not None
    bpy.ops.skinning.smooth_weights()
    assert compression_figures(ob) is None


def test_reasons_to_refuse(tube):
    ob, _ = tube
    compress = bpy.ops.skinning.compress_weights
    refused(ob, compress, "OUT_OF_RANGE Influences … at least 1 … 0", max_influences=0)
    refused(ob, compress, "threshold", threshold=1.0)
    refused(ob, compress, "RANGE_REVERSED", frame_start=5, frame_end=2)
    refused(ob, compress, "OUT_OF_RANGE Frame Step … at least 1 … 0", frame_step=0)
    bpy.ops.object.mode_set(mode="EDIT")
    with refusals.raises_unmet("MODE Edit Mode"):
        compress()
    bpy.ops.object.mode_set(mode="OBJECT")
    ob.modifiers["Armature"].object = None
    refused(ob, compress, "NOT_SKINNED")
