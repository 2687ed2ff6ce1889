# SPDX-License-Identifier: GPL-3.0-or-later
"""Lattices: binding, and every tool on weights, as for meshes; and what refuses them by name."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.bodies import read_body
from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.features.bind.bind import bind_record
from skinning_tools.features.bind.panel import SKINNING_PT_bind
from skinning_tools.features.weights.compression import compression_figures
from skinning_tools.features.weights.panel import SKINNING_PT_weights
from tests.blender import command_runs, panel_recorder, refusals, scenes
from tests.blender.binding_scenes import activate, binding_of, bound, check_bound, every_method, tube, weights_of
from tests.blender.lattice_scenes import cage, rest_of, seen, skinned_cage

pytestmark = pytest.mark.usefixtures("extension")

SINGLE = 1e-5


# As a body


def test_a_lattice_is_its_outside_and_its_grid():
    scenes.empty_scene()
    lattice = bpy.data.lattices.new("Cage")
    lattice.points_u, lattice.points_v, lattice.points_w = 3, 4, 5
    body = read_body(scenes.link(bpy.data.objects.new("Cage", lattice)))
    assert len(body.rest) == 60
    assert len(body.edges) == 2 * 4 * 5 + 3 * 3 * 5 + 3 * 4 * 4
    # Points are a unit apart.
    np.testing.assert_allclose(body.edge_lengths[: len(body.edges)].min(), 1)
    assert len(body.triangles) == 2 * 2 * (2 * 3 + 3 * 4 + 2 * 4)
    for triangles in (body.triangles, body.others):
        corners = body.rest[triangles]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        outward = corners.mean(axis=1) - body.rest.mean(axis=0)
        assert (np.einsum("ti,ti->t", normals, outward) > 0).all()
        # Closed: a unit square for each face.
        np.testing.assert_allclose(np.linalg.norm(normals, axis=1).sum() / 2, 2 * (2 * 3 + 3 * 4 + 2 * 4))


@pytest.mark.parametrize(("sizes", "faces"), [((3, 4, 1), 6), ((1, 1, 5), 0), ((1, 1, 1), 0), ((2, 2, 2), 6)])
def test_flat_and_thin_lattices(sizes, faces):
    scenes.empty_scene()
    lattice = bpy.data.lattices.new("Cage")
    lattice.points_u, lattice.points_v, lattice.points_w = sizes
    body = read_body(scenes.link(bpy.data.objects.new("Cage", lattice)))
    assert len(body.triangles) == 2 * faces
    assert len(body.place_edges) >= len(body.edges)


# Bind


@every_method
def test_every_method_binds_every_point_and_the_armature_moves_it(method):
    ob, rig = cage()
    before = seen(ob)
    bound(method=method)
    weights = check_bound(ob, rig, 1 if method == "RIGID" else 4)
    # Along the cage the bones take over from each other, inside as outside.
    owner, x = weights.argmax(axis=1), rest_of(ob)[:, 0]
    assert np.abs(owner - np.clip(np.floor(x), 0, 3)).max() <= 1
    assert owner[x < 0.4].max() == 0
    assert owner[x > 3.6].min() == 3
    assert [(m.type, m.object) for m in ob.modifiers] == [("ARMATURE", rig)]
    np.testing.assert_allclose(seen(ob), before, atol=SINGLE)
    bpy.context.scene.frame_set(8)
    assert np.abs(seen(ob) - before).max() > 0.3


def test_a_lattice_and_a_mesh_are_bound_each_by_itself(capfd):
    ob, rig = tube(4, rings=17, segments=8)
    bound(method="AUTOMATIC", armature="Rig")
    alone = weights_of(ob, rig)
    ob.vertex_groups.clear()
    lattice = bpy.data.lattices.new("Cage")
    lattice.points_u = lattice.points_v = lattice.points_w = 3
    box = scenes.link(bpy.data.objects.new("Cage", lattice))
    box.scale = (3, 1, 1)
    box.matrix_world = rig.matrix_world @ box.matrix_basis
    bpy.context.view_layer.update()
    activate(rig, ob, box)
    bound()
    np.testing.assert_allclose(weights_of(ob, rig), alone, atol=1e-4)
    check_bound(box, rig)
    assert bind_record(box).vertex_count == 27
    # An armature alone stands for all that it deforms, lattices too.
    activate(rig)
    bound(replace=True, method="RIGID")
    assert "Cage" in capfd.readouterr().out.splitlines()[-1]


def test_what_a_lattice_deforms_is_not_bound_with_it():
    ob, rig = tube(4, rings=17, segments=8)
    lattice = scenes.link(bpy.data.objects.new("Cage", bpy.data.lattices.new("Cage")))
    ob.modifiers.new("Lattice", "LATTICE").object = lattice
    activate(rig, ob, lattice)
    with refusals.raises_unmet("ALREADY_DEFORMED"):
        bound()
    assert not ob.vertex_groups
    ob.modifiers["Lattice"].show_viewport = False
    bound()
    assert ob.vertex_groups


def test_a_lattice_is_bound_in_a_pose_with_its_shape_keys():
    ob, _ = skinned_cage()
    bpy.context.scene.frame_set(8)
    evaluated = ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    posed = np.array([point.co_deform for point in evaluated.points], dtype=np.float32)
    ob.vertex_groups.clear()
    ob.modifiers.clear()
    ob.data.points.foreach_set("co_deform", posed.ravel())
    ob.data.update_tag()
    ob.shape_key_add(name="Basis")
    key = ob.shape_key_add(name="Wide")
    key.points.foreach_set("co", (1.1 * posed).ravel())
    key.value = 0.4
    bpy.context.view_layer.update()
    before = seen(ob)
    bound(in_pose=True)
    np.testing.assert_allclose(seen(ob), before, atol=SINGLE)
    assert bind_record(ob).moved[0] < SINGLE
    assert np.abs(rest_of(ob) - posed).max() > 0.1


# Weights


def test_unweighted_points_are_selected(capfd):
    ob, rig = skinned_cage()
    for group in ob.vertex_groups:
        group.remove([3, 11])
    assert bpy.ops.skinning.find_unweighted() == {"FINISHED"}
    assert "2 vertices without weights selected" in capfd.readouterr().out
    assert ob.mode == "EDIT"
    bpy.ops.object.mode_set(mode="OBJECT")
    assert [i for i, point in enumerate(ob.data.points) if point.select] == [3, 11]
    bound()
    check_bound(ob, rig)


def plant_rogue(ob) -> int:
    """A point at one end of the cage that follows the bone of the other end."""
    point = int(np.argmin(rest_of(ob)[:, 0]))
    for group in ob.vertex_groups:
        group.remove([point])
    ob.vertex_groups["Bone 3"].add([point], 1.0, "REPLACE")
    return point


@pytest.mark.parametrize("mode", ["OBJECT", "EDIT"])
def test_rogue_weights_are_found_selected_and_removed(mode):
    ob, rig = skinned_cage()
    point = plant_rogue(ob)
    bpy.ops.object.mode_set(mode=mode)
    bpy.ops.skinning.find_rogue_weights()
    assert [item.bone for item in ob.skinning_rogue_weights.islands] == ["Bone 3"]
    bpy.ops.skinning.select_rogue_weights(index=0)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert [i for i, each in enumerate(ob.data.points) if each.select] == [point]
    bpy.ops.object.mode_set(mode=mode)
    bpy.ops.skinning.remove_rogue_weights(only_checked=True)
    assert ob.mode == mode
    bpy.ops.object.mode_set(mode="OBJECT")
    assert weights_of(ob, rig)[point].argmax() == 0


@pytest.mark.parametrize("mode", ["OBJECT", "EDIT"])
def test_weights_are_smoothed_over_the_grid(mode):
    ob, rig = skinned_cage()
    for index, group in enumerate(ob.vertex_groups):
        group.remove(range(len(ob.data.points)))
        mine = np.flatnonzero(np.clip(np.floor(rest_of(ob)[:, 0]), 0, 3) == index).tolist()
        group.add(mine, 1.0, "REPLACE")
    before = weights_of(ob, rig)
    bpy.ops.object.mode_set(mode=mode)
    bpy.ops.skinning.smooth_weights(strength=0.5, iterations=2)
    assert ob.mode == mode
    bpy.ops.object.mode_set(mode="OBJECT")
    after = weights_of(ob, rig)
    assert (after > 0).sum() > (before > 0).sum()
    np.testing.assert_allclose(after.sum(axis=1), 1, atol=1e-6)


def test_the_selection_limits_smoothing():
    ob, rig = skinned_cage()
    plant_rogue(ob)
    before = weights_of(ob, rig)
    chosen = np.zeros(len(ob.data.points), bool)
    chosen[:12] = True
    ob.data.points.foreach_set("select", chosen)
    bpy.ops.skinning.smooth_weights(use_selection=True)
    changed = np.abs(weights_of(ob, rig) - before).max(axis=1) > 1e-6
    assert changed.any()
    assert not changed[~chosen].any()


def test_weights_are_compressed_and_the_error_is_measured():
    ob, rig = skinned_cage()
    bpy.ops.skinning.compress_weights(bits="8", max_influences=2)
    steps = weights_of(ob, rig) * 255
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-3)
    figures = compression_figures(ob)
    assert figures.vertex_count == len(ob.data.points)
    assert 0 < figures.largest < 0.05


def test_locked_groups_stay():
    ob, rig = skinned_cage()
    ob.vertex_groups["Bone 1"].lock_weight = True
    before = weights_of(ob, rig)[:, 1]
    bpy.ops.skinning.smooth_weights()
    bound(replace=True)
    np.testing.assert_array_equal(weights_of(ob, rig)[:, 1], before)


def test_the_command_line_binds_and_smooths_lattices(tmp_path, capsys):
    cage()
    path = tmp_path / "cage.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert command_runs.run("bind", "--object", "Cage", "--armature", "Rig", "--overwrite", "--quiet") == 0
    assert command_runs.run("smooth-weights", "--object", "Cage", "--overwrite", "--quiet") == 0
    assert command_runs.run("find-unweighted", "--object", "Rig") == 0
    assert "Of Cage" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(path))
    check_bound(bpy.data.objects["Cage"], bpy.data.objects["Rig"])


def test_the_panels_work_on_lattices():
    skinned_cage()
    assert panel_recorder.drawn(SKINNING_PT_weights).texts == []
    bound(replace=True)
    texts = panel_recorder.drawn(SKINNING_PT_bind).texts
    assert "Method" in texts


# What it refuses


@pytest.mark.parametrize(
    "operator", ["partition_rigid", "bake_rotation_centers", "show_weights", "fit_weights_to_pose", "build_eigenskin"]
)
def test_tools_for_surfaces_refuse_a_lattice_by_name(operator):
    ob, _ = skinned_cage()
    refusals.refused(operator, 'NOT_A_MESH "Cage"', state=lambda: binding_of(ob))


def test_t_intersections_are_those_of_meshes():
    cage()
    refusals.refused("find_t_intersections", "Only meshes have T-intersections")


def test_a_lattice_in_edit_mode():
    ob, _ = cage()
    bpy.ops.object.mode_set(mode="EDIT")
    refusals.refused("bind", 'MODE "Cage"', state=lambda: list(ob.vertex_groups))


def test_a_linked_lattice(tmp_path):
    cage()
    path = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    ob, _ = cage()
    with bpy.data.libraries.load(str(path), link=True) as (_, into):
        into.lattices = ["Cage"]
    ob.data = into.lattices[0]
    refusals.refused("bind", "LINKED lattice", state=lambda: binding_of(ob))


def test_weights_are_read_as_of_a_mesh():
    ob, rig = skinned_cage()
    stored = read_bone_weights(ob, rig)
    assert stored.bound.all()
    assert stored.names == tuple(bone.name for bone in rig.data.bones)
