# SPDX-License-Identifier: GPL-3.0-or-later
"""Rogue weights: listed without a change, selected, removed without touching anything else; refusals."""

import bpy
import numpy as np
import pytest

from skinning_tools.features.weights.rogue_weights import indices
from tests.blender import binding_scenes, scenes, skinned_meshes
from tests.blender.snapshots import refused, without_properties

pytestmark = pytest.mark.usefixtures("extension")

# Of the tube's rings of 16 vertices: alone, a pair, and a patch of three that keeps most of its weight.
ALONE, PAIR, PATCH = [70], [490, 491], [130, 131, 132]


@pytest.fixture
def tube():
    """The tube, active, and its armature: ``ALONE`` and ``PAIR`` wholly, ``PATCH`` in part on a bone far away."""
    ob, rig = skinned_meshes.rigged_tube()
    ob.vertex_groups.new(name="mine").add([*ALONE, 3], 0.25, "REPLACE")
    bones = [ob.vertex_groups[bone.name] for bone in rig.data.bones]
    for vertices, bone in ((ALONE, 4), (PAIR, 0)):
        for group in bones:
            group.remove(vertices)
        bones[bone].add(vertices, 0.7, "REPLACE")
    bones[4].add(PATCH, 0.1, "REPLACE")
    return ob, rig


# Vertices that follow a bone far away by a little weight, which may be meant, and that bone.
FAINT = {200: 4, 400: 0}


def add_faint(ob) -> None:
    for vertex, bone in FAINT.items():
        ob.vertex_groups[f"Bone {bone}"].add([vertex], 0.03, "REPLACE")


def add_button(ob, bone: str) -> list[int]:
    """A face beside the tube's first bone, wholly on ``bone``; returns its vertices."""
    count = len(ob.data.vertices)

    def add(mesh, bmesh):
        mesh.faces.new([mesh.verts.new((0.4 + x, y, 0.35)) for x, y in ((0, 0), (0.1, 0), (0.1, 0.1), (0, 0.1))])

    edit(ob, add)
    button = list(range(count, count + 4))
    ob.vertex_groups[bone].add(button, 1, "REPLACE")
    return button


def islands(ob) -> dict:
    return {(item.bone, tuple(indices(item))): item for item in ob.skinning_rogue_weights.islands}


PLANTED = {("Bone 4", tuple(ALONE)), ("Bone 0", tuple(PAIR)), ("Bone 4", tuple(PATCH))}


def selected(ob) -> list[int]:
    """Vertices that are selected in Edit Mode."""
    import bmesh

    mesh = bmesh.from_edit_mesh(ob.data)
    return [vertex.index for vertex in mesh.verts if vertex.select]


def edit(ob, change) -> None:
    """``change(mesh, bmesh)`` of a mesh that is open for it."""
    import bmesh

    mesh = bmesh.new()
    mesh.from_mesh(ob.data)
    mesh.verts.ensure_lookup_table()
    change(mesh, bmesh)
    mesh.to_mesh(ob.data)
    mesh.free()


def test_a_clean_tube_has_none():
    ob, _ = skinned_meshes.rigged_tube()
    assert bpy.ops.skinning.find_rogue_weights() == {"FINISHED"}
    assert len(ob.skinning_rogue_weights.islands) == 0
    before = without_properties(ob)
    assert bpy.ops.skinning.remove_rogue_weights() == {"FINISHED"}
    assert without_properties(ob) == before


def test_finding_lists_the_planted_ones_and_changes_nothing(tube):
    ob, _ = tube
    before = without_properties(ob)
    assert bpy.ops.skinning.find_rogue_weights() == {"FINISHED"}
    assert without_properties(ob) == before
    found = islands(ob)
    assert set(found) == PLANTED
    assert [item.vertex_count for item in ob.skinning_rogue_weights.islands] == [1, 2, 3]
    assert found["Bone 0", tuple(PAIR)].strength == pytest.approx(1)
    assert all(item.checked for item in found.values())


def test_removing_finds_them_and_touches_no_other_vertex(tube):
    ob, rig = tube
    before = without_properties(ob)["weights"]
    assert bpy.ops.skinning.remove_rogue_weights() == {"FINISHED"}
    after = without_properties(ob)["weights"]
    planted = {*ALONE, *PAIR, *PATCH}
    assert {vertex for vertex, (old, new) in enumerate(zip(before, after, strict=True)) if old != new} == planted
    weights = binding_scenes.weights_of(ob, rig)
    assert np.allclose(weights[sorted(planted)].sum(axis=1), 1, atol=1e-6)
    # The row of a neighbor that was not touched; the patch keeps what it had beside.
    for vertex in (*ALONE, *PAIR):
        expected = weights[vertex - 16] / weights[vertex - 16].sum(), weights[vertex + 16] / weights[vertex + 16].sum()
        assert min(np.abs(weights[vertex] - row).max() for row in expected) < 0.2
    assert not weights[PATCH, 4].any()
    assert [entry for entry in after[ALONE[0]] if entry[0] == ob.vertex_groups["mine"].index] == [
        (ob.vertex_groups["mine"].index, 0.25)
    ]
    bpy.ops.skinning.find_rogue_weights()
    assert not ob.skinning_rogue_weights.islands


def test_only_checked_ones_are_removed_and_the_others_stay_in_the_list(tube):
    ob, rig = tube
    bpy.ops.skinning.find_rogue_weights()
    islands(ob)["Bone 0", tuple(PAIR)].checked = False
    assert bpy.ops.skinning.remove_rogue_weights(only_checked=True) == {"FINISHED"}
    assert set(islands(ob)) == {("Bone 0", tuple(PAIR))}
    assert binding_scenes.weights_of(ob, rig)[PAIR, 0] == pytest.approx([0.7, 0.7])
    # The list still fits: the weights were changed by the operator itself.
    assert bpy.ops.skinning.select_rogue_weights(index=0) == {"FINISHED"}
    assert bpy.ops.skinning.check_rogue_weights(checked=True) == {"FINISHED"}
    assert bpy.ops.skinning.remove_rogue_weights(only_checked=True) == {"FINISHED"}
    assert ob.mode == "EDIT"
    assert not ob.skinning_rogue_weights.islands
    bpy.ops.object.mode_set(mode="OBJECT")
    assert not binding_scenes.weights_of(ob, rig)[PAIR, 0].any()


@pytest.mark.parametrize("mode", ["OBJECT", "WEIGHT_PAINT", "EDIT", "POSE"])
def test_without_a_list_the_same_are_removed_as_are_checked_in_it(tube, mode, capfd):
    ob, rig = tube
    add_faint(ob)
    button = add_button(ob, "Bone 4")
    doubtful = {("Bone 4", (200,)), ("Bone 0", (400,)), ("Bone 4", tuple(button))}
    bpy.ops.skinning.find_rogue_weights()
    assert set(islands(ob)) == PLANTED | doubtful
    assert {key for key, item in islands(ob).items() if item.checked} == PLANTED
    before = without_properties(ob)["weights"]
    binding_scenes.activate(rig if mode == "POSE" else ob)
    bpy.ops.object.mode_set(mode=mode)
    capfd.readouterr()
    assert bpy.ops.skinning.remove_rogue_weights() == {"FINISHED"}
    assert (
        "rogue weights of 6 vertices corrected, 3 islands, 2 bones, 3 doubtful islands left" in capfd.readouterr().out
    )
    bpy.ops.object.mode_set(mode="OBJECT")
    after = without_properties(ob)["weights"]
    changed = {vertex for vertex, (old, new) in enumerate(zip(before, after, strict=True)) if old != new}
    assert changed == {*ALONE, *PAIR, *PATCH}
    assert not islands(ob)
    binding_scenes.activate(ob)
    assert bpy.ops.skinning.remove_rogue_weights(include_doubtful=True) == {"FINISHED"}
    assert "doubtful" not in capfd.readouterr().out
    left = binding_scenes.weights_of(ob, rig)
    assert not left[[200, *button], 4].any()
    assert not left[400, 0]
    bpy.ops.skinning.find_rogue_weights()
    assert not islands(ob)


@pytest.mark.parametrize("locked", [False, True])
def test_if_all_are_doubtful_nothing_changes_and_the_list_stays(locked, capfd):
    ob, _ = skinned_meshes.rigged_tube()
    add_faint(ob)
    ob.vertex_groups["Bone 0"].lock_weight = locked
    bpy.ops.skinning.find_rogue_weights()
    assert f"{1 if locked else 2} doubtful island" in capfd.readouterr().out
    islands(ob)["Bone 4", (200,)].checked = True
    before = without_properties(ob)["weights"]
    assert bpy.ops.skinning.remove_rogue_weights() == {"FINISHED"}
    said = capfd.readouterr().out
    assert "no rogue weights corrected, " in said
    assert f"{1 if locked else 2} doubtful island" in said
    assert ("1 locked island, " in said) == locked
    assert without_properties(ob)["weights"] == before
    assert bpy.ops.skinning.remove_rogue_weights(only_checked=True) == {"FINISHED"}
    assert set(islands(ob)) == {("Bone 0", (400,))}


@pytest.mark.parametrize("mode", ["OBJECT", "WEIGHT_PAINT", "EDIT", "POSE"])
def test_every_mode_finds_selects_and_removes(tube, mode):
    ob, rig = tube
    binding_scenes.activate(rig if mode == "POSE" else ob)
    bpy.ops.object.mode_set(mode=mode)
    assert bpy.ops.skinning.find_rogue_weights() == {"FINISHED"}
    assert set(islands(ob)) == PLANTED
    assert bpy.context.view_layer.objects.active.mode == mode
    assert bpy.ops.skinning.select_rogue_weights() == {"FINISHED"}
    assert (bpy.context.view_layer.objects.active, ob.mode, rig.mode) == (ob, "EDIT", "OBJECT")
    assert selected(ob) == sorted([*ALONE, *PAIR, *PATCH])
    bpy.ops.object.mode_set(mode="OBJECT")
    binding_scenes.activate(rig if mode == "POSE" else ob)
    bpy.ops.object.mode_set(mode=mode)
    assert bpy.ops.skinning.remove_rogue_weights() == {"FINISHED"}
    assert bpy.context.view_layer.objects.active.mode == mode
    bpy.ops.object.mode_set(mode="OBJECT")
    assert not binding_scenes.weights_of(ob, rig)[PATCH, 4].any()


def test_selecting_one_row_shows_its_vertices_and_its_group(tube):
    ob, _ = tube
    ob.data.vertices[PAIR[0]].hide = True
    bpy.context.scene.tool_settings.mesh_select_mode = (False, False, True)
    bpy.ops.skinning.find_rogue_weights()
    row = [item.bone for item in ob.skinning_rogue_weights.islands].index("Bone 0")
    assert bpy.ops.skinning.select_rogue_weights(index=row) == {"FINISHED"}
    assert selected(ob) == PAIR
    assert tuple(bpy.context.scene.tool_settings.mesh_select_mode) == (True, False, False)
    assert ob.vertex_groups.active.name == "Bone 0"
    # From there, the next row.
    other = 1 if row == 0 else 0
    assert bpy.ops.skinning.select_rogue_weights(index=other) == {"FINISHED"}
    assert selected(ob) == list(indices(ob.skinning_rogue_weights.islands[other]))


def test_a_list_that_no_longer_fits_is_refused(tube):
    ob, rig = tube
    bpy.ops.skinning.find_rogue_weights()
    ob.vertex_groups["Bone 2"].add([300], 0.9, "REPLACE")
    for operator, given in (
        ("select_rogue_weights", {}),
        ("remove_rogue_weights", {"only_checked": True}),
    ):
        refused(ob, operator, '"Arm" were changed since', "Find them again", **given)
    bpy.ops.skinning.find_rogue_weights()
    edit(ob, lambda mesh, bmesh: bmesh.ops.delete(mesh, geom=mesh.verts[10:11], context="VERTS"))
    refused(ob, "select_rogue_weights", "were changed since")
    bpy.ops.skinning.find_rogue_weights()
    rig.data.bones["Bone 4"].name = "Hand"
    refused(ob, "select_rogue_weights", "were changed since")
    refused(ob, "remove_rogue_weights", "were changed since", only_checked=True)
    # What finds for itself does not need the list.
    assert bpy.ops.skinning.remove_rogue_weights() == {"FINISHED"}


def test_moving_the_character_keeps_the_list(tube):
    ob, rig = tube
    bpy.ops.skinning.find_rogue_weights()
    rig.location, ob.location = (7, 1, 2), (6.3, 1.4, 2.2)
    bpy.context.scene.frame_set(8)
    assert bpy.ops.skinning.select_rogue_weights() == {"FINISHED"}


def test_locked_groups_stay_and_are_not_checked(tube):
    ob, rig = tube
    ob.vertex_groups["Bone 4"].lock_weight = True
    bpy.ops.skinning.find_rogue_weights()
    assert {key[0]: item.checked for key, item in islands(ob).items()} == {"Bone 4": False, "Bone 0": True}
    before = binding_scenes.weights_of(ob, rig)
    assert bpy.ops.skinning.remove_rogue_weights() == {"FINISHED"}
    after = binding_scenes.weights_of(ob, rig)
    assert np.array_equal(before[:, 4], after[:, 4])
    assert not after[PAIR, 0].any()


def test_a_seam_is_no_gap(tube):
    """Split along a ring, each bone's vertices would be in two parts."""
    ob, _ = tube

    def split(mesh, bmesh):
        ring = [edge for edge in mesh.edges if all(vertex.index // 16 == 20 for vertex in edge.verts)]
        bmesh.ops.split_edges(mesh, edges=ring)

    edit(ob, split)
    assert len(ob.data.vertices) == 41 * 16 + 16
    bpy.ops.skinning.find_rogue_weights()
    assert sorted(item.vertex_count for item in ob.skinning_rogue_weights.islands) == [1, 2, 3]


def test_a_shared_mesh_with_shape_keys(tube):
    ob, rig = tube
    twin = ob.copy()
    scenes.link(twin)
    scenes.shape_keys(ob, 1)[0].value = 1
    binding_scenes.activate(ob)
    keys = np.array([point.co for point in ob.data.shape_keys.key_blocks[1].points])
    assert bpy.ops.skinning.remove_rogue_weights() == {"FINISHED"}
    assert not binding_scenes.weights_of(twin, rig)[PATCH, 4].any()
    assert np.array_equal(keys, [point.co for point in ob.data.shape_keys.key_blocks[1].points])


def test_reasons_to_refuse(tube):
    ob, rig = tube
    refused(ob, "select_rogue_weights", "empty")
    refused(ob, "remove_rogue_weights", "No rogue weights", "checked", only_checked=True)
    bpy.ops.skinning.find_rogue_weights()
    refused(ob, "select_rogue_weights", "no row 3", index=3)
    bpy.ops.skinning.check_rogue_weights(checked=False)
    refused(ob, "select_rogue_weights", "No row", "checked")
    refused(ob, "remove_rogue_weights", "checked", only_checked=True)
    bpy.ops.object.mode_set(mode="SCULPT")
    refused(ob, "find_rogue_weights", "MODE Sculpt Mode")
    bpy.ops.object.mode_set(mode="OBJECT")
    ob.data.vertices[5].co.x = float("nan")
    with pytest.raises(RuntimeError, match="Vertex 5 of the mesh has a position that is not a number"):
        bpy.ops.skinning.remove_rogue_weights()
    ob.data.vertices[5].co.x = 0
    for bone in rig.data.bones:
        bone.use_deform = False
    refused(ob, "find_rogue_weights", "NO_GROUP_OF_A_BONE")
    ob.modifiers.clear()
    refused(ob, "find_rogue_weights", "NOT_SKINNED")
