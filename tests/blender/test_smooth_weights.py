# SPDX-License-Identifier: GPL-3.0-or-later
"""Smooth Weights: its effect on rough weights, what masks, creases and locks keep, and what it refuses."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.vertex_groups import put_weights
from tests.blender import binding_scenes, scenes, skinned_meshes
from tests.blender.snapshots import refused, snapshot

pytestmark = pytest.mark.usefixtures("extension")

SEGMENTS = 16


@pytest.fixture
def tube():
    """The tube, each vertex wholly on one bone, with weights that do not sum to 1, and one group that is no bone."""
    ob, rig = skinned_meshes.rigged_tube(influences=1)
    ob.vertex_groups.new(name="mine").add([3, 4], 0.25, "REPLACE")
    return ob, rig


def stored(ob, rig) -> np.ndarray:
    return binding_scenes.weights_of(ob, rig)


def weights(ob, rig) -> np.ndarray:
    """(N, P), rows that sum to 1 or 0."""
    found = stored(ob, rig)
    sums = found.sum(axis=1, keepdims=True)
    return np.divide(found, sums, out=np.zeros_like(found), where=sums > 0)


def steps(rows: np.ndarray) -> float:
    """The largest change of a weight from one ring of the tube to the next, but the last, which has none."""
    return float(np.abs(np.diff(rows[:-SEGMENTS].reshape(-1, SEGMENTS, rows.shape[1]), axis=0)).max())


def test_weights_get_smooth_with_all_else_as_it_was(tube):
    ob, rig = tube
    before, other = weights(ob, rig), snapshot(ob)
    assert steps(before) == 1
    assert bpy.ops.skinning.smooth_weights() == {"FINISHED"}
    after, now = weights(ob, rig), snapshot(ob)
    assert steps(after) < 0.5
    bound = before.any(axis=1)
    changed = np.abs(after - before).max(axis=1) > 1e-6
    assert np.allclose(stored(ob, rig)[changed].sum(axis=1), 1, atol=1e-6)
    # The last ring has no weights: it lends none, and gets none.
    assert np.array_equal(after.any(axis=1), bound)
    assert {name for name in other if other[name] != now[name]} == {"weights"}
    mine = ob.vertex_groups["mine"]
    assert [mine.weight(vertex) for vertex in (3, 4)] == [0.25, 0.25]
    # Smoothing does not reach between joints, so nothing is written there.
    assert 0 < changed.sum() < bound.sum()
    assert [now["weights"][v] == other["weights"][v] for v in np.flatnonzero(~changed)] == [True] * (~changed).sum()


@pytest.mark.parametrize("active", ["Lower", "Upper", "Rig"])
def test_selected_meshes_of_one_armature_are_one_body(tube, active):
    """Cut where the weights are rough, and with other weights on the two sides of the cut."""
    ob, rig = tube
    halves = lower, upper = skinned_meshes.cut(ob, 8)
    upper.vertex_groups["Bone 1"].add(range(SEGMENTS), 1, "REPLACE")
    sides = weights(lower, rig)[-SEGMENTS:], weights(upper, rig)[:SEGMENTS]
    assert not np.allclose(*sides)
    binding_scenes.activate(bpy.data.objects[active], *halves)
    assert bpy.ops.skinning.smooth_weights() == {"FINISHED"}
    below, above = stored(lower, rig), stored(upper, rig)
    assert np.abs(below[-SEGMENTS:] - above[:SEGMENTS]).max() < 1e-6
    together = np.vstack([below, above[SEGMENTS:]])
    assert steps(together) < 0.5
    binding_scenes.activate(ob)
    for vertex, row in enumerate(0.5 * sum(sides), 8 * SEGMENTS):
        for group, weight in zip(rig.data.bones.keys(), row, strict=True):
            ob.vertex_groups[group].add([vertex], weight, "REPLACE")
    bpy.ops.skinning.smooth_weights()
    assert np.abs(together - stored(ob, rig)).max() < 1e-5


def test_a_group_that_is_locked_in_one_of_them_stays_in_all(tube):
    ob, rig = tube
    halves = lower, upper = skinned_meshes.cut(ob, 8)
    lower.vertex_groups["Bone 1"].lock_weight = True
    before = [stored(half, rig) for half in halves]
    binding_scenes.activate(*halves)
    bpy.ops.skinning.smooth_weights()
    for half, rows in zip(halves, before, strict=True):
        assert np.array_equal(stored(half, rig)[:, 1], rows[:, 1])
    assert not upper.vertex_groups["Bone 1"].lock_weight


def test_a_mask_that_one_of_them_has(tube):
    ob, rig = tube
    halves = lower, _ = skinned_meshes.cut(ob, 20)
    lower.vertex_groups.new(name="some").add(range(10 * SEGMENTS), 1, "REPLACE")
    before = [stored(half, rig) for half in halves]
    binding_scenes.activate(*halves)
    bpy.ops.skinning.smooth_weights(vertex_group="some")
    changed = [(stored(half, rig) != rows).any(axis=1) for half, rows in zip(halves, before, strict=True)]
    assert (np.flatnonzero(changed[0]).max() < 10 * SEGMENTS, changed[1].any()) == (True, False)
    for half in halves:
        refused(half, bpy.ops.skinning.smooth_weights, 'NO_VERTEX_GROUP "hair"', vertex_group="hair")


def test_more_iterations_and_strength_smooth_more(tube):
    ob, rig = tube
    found = []
    for given in ({"strength": 0.1, "iterations": 1}, {"iterations": 1}, {"iterations": 20}):
        ob, rig = skinned_meshes.rigged_tube(influences=1)
        bpy.ops.skinning.smooth_weights(**given)
        found.append(steps(weights(ob, rig)))
    assert 1 > found[0] > found[1] > found[2]


def test_no_strength_changes_nothing(tube):
    ob, _ = tube
    before = snapshot(ob)
    assert bpy.ops.skinning.smooth_weights(strength=0) == {"FINISHED"}
    assert snapshot(ob) == before


@pytest.mark.parametrize(("influences", "given", "most"), [(1, 0, 4), (5, 0, 5), (5, 2, 2), (1, 3, 3)])
def test_the_limit_of_influences(influences, given, most):
    """By default four, or the mesh's own maximum."""
    ob, rig = skinned_meshes.rigged_tube(bone_count=6)
    random = np.random.default_rng(0)
    count = len(ob.data.vertices)
    bones = np.argsort(random.random((count, 6)), axis=1)[:, :influences]
    names = [bone.name for bone in rig.data.bones]
    put_weights(ob, names, bones, random.dirichlet(np.ones(influences), count))
    bpy.ops.skinning.smooth_weights(max_influences=given)
    assert (weights(ob, rig) > 0).sum(axis=1).max() == most


@pytest.mark.parametrize("invert", [False, True])
def test_a_vertex_group_masks(tube, invert):
    ob, rig = tube
    half = list(range(20 * SEGMENTS))
    ob.vertex_groups.new(name="half").add(half, 1, "REPLACE")
    before = stored(ob, rig)
    bpy.ops.skinning.smooth_weights(vertex_group="half", invert_vertex_group=invert)
    changed = np.flatnonzero((stored(ob, rig) != before).any(axis=1))
    inside = np.isin(changed, half)
    assert len(changed) > 0
    assert not inside.any() if invert else inside.all()


def test_weights_of_the_mask_scale_the_strength(tube):
    ob, rig = tube
    everything = list(range(len(ob.data.vertices)))
    ob.vertex_groups.new(name="some").add(everything, 0.25, "REPLACE")
    bpy.ops.skinning.smooth_weights(vertex_group="some", strength=0.8, iterations=2)
    masked = weights(ob, rig)
    ob, rig = skinned_meshes.rigged_tube(influences=1)
    bpy.ops.skinning.smooth_weights(strength=0.2, iterations=2)
    assert np.allclose(masked, weights(ob, rig), atol=1e-6)


def select(ob, chosen) -> None:
    flags = np.zeros(len(ob.data.vertices), bool)
    flags[chosen] = True
    for parts in (ob.data.edges, ob.data.polygons):
        parts.foreach_set("select", np.zeros(len(parts), bool))
    ob.data.vertices.foreach_set("select", flags)


JOINT = list(range(7 * SEGMENTS, 10 * SEGMENTS))


def test_other_edited_or_selected_objects_stay_so():
    ob, _rig = skinned_meshes.rigged_tube()
    edited, selected = (scenes.grid(name=name) for name in ("Edited", "Selected"))
    binding_scenes.activate(ob, edited)
    bpy.ops.object.mode_set(mode="EDIT")
    edited.select_set(False)
    selected.select_set(True)
    before = scenes.ui_state()
    assert bpy.ops.skinning.smooth_weights() == {"FINISHED"}
    assert scenes.ui_state() == before
    assert [each.mode for each in (ob, edited, selected)] == ["EDIT", "EDIT", "OBJECT"]


@pytest.mark.parametrize("mode", ["OBJECT", "WEIGHT_PAINT", "EDIT"])
def test_only_selected_vertices(tube, mode):
    ob, rig = tube
    before = stored(ob, rig)
    select(ob, JOINT)
    bpy.ops.object.mode_set(mode=mode)
    assert bpy.ops.skinning.smooth_weights(use_selection=True) == {"FINISHED"}
    assert ob.mode == mode
    bpy.ops.object.mode_set(mode="OBJECT")
    changed = np.flatnonzero((stored(ob, rig) != before).any(axis=1))
    assert len(changed) > 0
    assert np.isin(changed, JOINT).all()


def test_the_masks_of_weight_paint_count_by_themselves(tube):
    ob, rig = tube
    select(ob, JOINT)
    bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
    ob.data.use_paint_mask_vertex = True
    before = stored(ob, rig)
    bpy.ops.skinning.smooth_weights()
    changed = np.flatnonzero((stored(ob, rig) != before).any(axis=1))
    assert len(changed) > 0
    assert np.isin(changed, JOINT).all()
    ob.data.use_paint_mask_vertex, ob.data.use_paint_mask = False, True
    for face in ob.data.polygons:
        face.select = min(face.vertices) >= 30 * SEGMENTS and max(face.vertices) < 34 * SEGMENTS
    before = stored(ob, rig)
    bpy.ops.skinning.smooth_weights()
    changed = np.flatnonzero((stored(ob, rig) != before).any(axis=1))
    assert len(changed) > 0
    assert changed.min() >= 30 * SEGMENTS
    assert changed.max() < 34 * SEGMENTS


@pytest.mark.parametrize("kind", ["sharp", "crease", "slight crease"])
def test_nothing_passes_over_a_crease(tube, kind):
    """Up to the ring 8, which is at the joint, all follow the first bone alone, and from the next on the second."""
    ob, rig = tube
    ring = [index for index, edge in enumerate(ob.data.edges) if {v // SEGMENTS for v in edge.vertices} == {8}]
    assert len(ring) == SEGMENTS
    if kind == "sharp":
        for index in ring:
            ob.data.edges[index].use_edge_sharp = True
    else:
        crease = ob.data.attributes.new("crease_edge", "FLOAT", "EDGE")
        for index in ring:
            crease.data[index].value = 0.8 if kind == "crease" else 0.3
    before = weights(ob, rig)
    bpy.ops.skinning.smooth_weights()
    first = slice(9 * SEGMENTS)
    passed = not np.allclose(before[first], weights(ob, rig)[first], atol=1e-6)
    assert passed == (kind == "slight crease")
    assert not np.allclose(before, weights(ob, rig), atol=1e-6)
    bpy.ops.skinning.smooth_weights(keep_creases=False)
    assert not np.allclose(before[first], weights(ob, rig)[first], atol=1e-6)


def test_locked_groups_stay(tube):
    ob, rig = tube
    ob.vertex_groups["Bone 1"].lock_weight = True
    before = stored(ob, rig)
    bpy.ops.skinning.smooth_weights()
    after = stored(ob, rig)
    assert np.array_equal(before[:, 1], after[:, 1])
    assert not np.array_equal(before, after)


def test_a_shared_mesh_with_shape_keys_and_the_armature_active(tube):
    ob, rig = tube
    keys = scenes.shape_keys(ob, 1)
    points = np.array([point.co for point in keys[0].points])
    binding_scenes.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")
    assert bpy.ops.skinning.smooth_weights() == {"FINISHED"}
    assert rig.mode == "POSE"
    assert steps(weights(ob, rig)) < 0.5
    assert np.array_equal(points, [point.co for point in keys[0].points])


def test_loose_edges_and_meshes_without_faces(tube):
    _, rig = tube
    ob = scenes.mesh_object([(x / 2, 0, 0) for x in range(11)], edges=[(i, i + 1) for i in range(10)], name="Wire")
    for index, bone in enumerate(rig.data.bones):
        ob.vertex_groups.new(name=bone.name).add([2 * index, 2 * index + 1], 1, "REPLACE")
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    assert bpy.ops.skinning.smooth_weights() == {"FINISHED"}
    assert np.allclose(weights(ob, rig).sum(axis=1)[:10], 1)


def test_reasons_to_refuse(tube):
    ob, _ = tube
    smooth = bpy.ops.skinning.smooth_weights
    ob.vertex_groups.new(name="empty")
    ob.vertex_groups.new(name="all").add(list(range(len(ob.data.vertices))), 1, "REPLACE")
    refused(ob, smooth, "strength", "1.5", strength=1.5)
    refused(ob, smooth, "OUT_OF_RANGE Iterations … at least 1 … 0", iterations=0)
    refused(ob, smooth, "OUT_OF_RANGE Influences … at least 0 … -1", max_influences=-1)
    refused(ob, smooth, 'NO_VERTEX_GROUP "hair"', vertex_group="hair")
    refused(ob, smooth, '"empty"', "no weights", vertex_group="empty")
    refused(ob, smooth, '"all"', "inverse", vertex_group="all", invert_vertex_group=True)
    select(ob, [])
    refused(ob, smooth, "No vertex", "selected", use_selection=True)
    select(ob, [100])
    refused(ob, smooth, "No selected vertex", '"mine"', use_selection=True, vertex_group="mine")
    bpy.context.view_layer.objects.active = None
    refused(ob, smooth, "NO_ACTIVE_OBJECT")
