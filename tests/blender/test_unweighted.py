# SPDX-License-Identifier: GPL-3.0-or-later
"""Vertices without weights, in one mesh or several: bound where others are complete, found and selected."""

import sys

import bpy
import numpy as np
import pytest

from skinning_tools.features.bind.bind import bind_record
from skinning_tools.features.weights.unweighted import find_unweighted
from tests.blender import command_runs, scenes, skinned_meshes
from tests.blender.binding_scenes import METHODS, activate, dense, every_method

pytestmark = pytest.mark.usefixtures("extension")

LAST_RING = list(range(640, 656))


def character(count=4):
    """Meshes of one armature, which is active, and the armature: complete but for the last ring of the first."""
    ob, rig = skinned_meshes.rigged_tube()
    meshes = [ob]
    for index in range(1, count):
        other = ob.copy()
        other.data, other.name = ob.data.copy(), f"Part {index}"
        meshes.append(scenes.link(other))
        other.vertex_groups["Bone 4"].add(LAST_RING, 1.0, "REPLACE")
    activate(rig)
    return rig, meshes


def weights(ob, rig) -> np.ndarray:
    return dense(ob, rig.data.bones.keys())


def selection(ob) -> list[int]:
    """The selected vertices of a mesh in Edit Mode."""
    import bmesh

    return [vertex.index for vertex in bmesh.from_edit_mesh(ob.data).verts if vertex.select]


# Binding


@every_method
def test_one_complete_mesh_does_not_stop_the_others(method, capfd):
    rig, meshes = character()
    activate(rig, *meshes)
    for ob in meshes[1:3]:
        ob.vertex_groups["Bone 4"].remove(LAST_RING[:3])
    before = {ob: weights(ob, rig) for ob in meshes}
    assert bpy.ops.skinning.bind(method=method) == {"FINISHED"}
    said = capfd.readouterr().out
    assert "Arm, Part 1, Part 2: 22 vertices bound" in said
    assert "Part 3: all 656 vertices have weights and keep them" in said
    for ob in meshes:
        now = weights(ob, rig)
        had = before[ob].sum(axis=1) > 0
        assert np.array_equal(now[had], before[ob][had])
        assert np.allclose(now[~had].sum(axis=1), 1, atol=1e-6)
    assert bind_record(meshes[3]) is None


@pytest.mark.parametrize("complete", [1, 2, 3])
def test_incomplete_meshes_are_bound_whichever_are_complete(complete):
    rig, meshes = character()
    activate(rig, *meshes)
    meshes[0].vertex_groups["Bone 4"].add(LAST_RING, 1.0, "REPLACE")
    for ob in meshes[complete:]:
        ob.vertex_groups["Bone 4"].remove([640])
    assert bpy.ops.skinning.bind() == {"FINISHED"}
    assert all(weights(ob, rig)[640].sum() == pytest.approx(1) for ob in meshes)
    assert [bind_record(ob) is not None for ob in meshes] == [index >= complete for index in range(4)]


def test_if_all_are_complete_it_advises_replace():
    rig, meshes = character(3)
    activate(rig, *meshes[1:])
    with pytest.raises(RuntimeError, match=r"All 1,312 vertices of the 2 meshes .* Enable Replace"):
        bpy.ops.skinning.bind()
    assert bpy.ops.skinning.bind(replace=True) == {"FINISHED"}
    assert all(bind_record(ob) is not None for ob in meshes[1:])


def test_a_complete_mesh_that_nothing_deforms_is_attached():
    rig, meshes = character(2)
    meshes[1].modifiers.clear()
    activate(rig, *meshes)
    before = weights(meshes[1], rig)
    assert bpy.ops.skinning.bind() == {"FINISHED"}
    assert [modifier.object for modifier in meshes[1].modifiers] == [rig]
    assert np.array_equal(weights(meshes[1], rig), before)


def test_a_complete_mesh_with_locked_groups_is_no_hindrance():
    rig, meshes = character(2)
    for group in meshes[1].vertex_groups:
        group.lock_weight = True
    activate(rig, *meshes)
    assert bpy.ops.skinning.bind() == {"FINISHED"}


def test_the_command_line_reports_it_as_well(tmp_path, capfd):
    _, meshes = character(2)
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    names = [argument for ob in meshes for argument in ("--object", ob.name)]
    assert command_runs.run("bind", *names, "--overwrite") == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "Vertices bound 16" in said
    assert "Nothing to bind Part 1" in said


# Finding


def nothing(ob, vertices):
    for group in ob.vertex_groups:
        group.remove(vertices)


def zero(ob, vertices):
    nothing(ob, vertices)
    ob.vertex_groups["Bone 1"].add(vertices, 0.0, "REPLACE")


def next_to_nothing(ob, vertices):
    """Weights that Blender treats as zero."""
    nothing(ob, vertices)
    ob.vertex_groups["Bone 1"].add(vertices, 0.5e-4, "REPLACE")


def groups_of_no_bone(ob, vertices):
    nothing(ob, vertices)
    ob.vertex_groups.new(name="mask").add(vertices, 1.0, "REPLACE")


def bones_that_do_not_deform(ob, vertices):
    nothing(ob, vertices)
    rig = ob.modifiers["Armature"].object
    rig.data.bones["Bone 4"].use_deform = False
    # All other vertices follow bones that do.
    ob.vertex_groups["Bone 3"].add(sorted({*range(656)} - {*vertices}), 1.0, "REPLACE")
    ob.vertex_groups["Bone 4"].add(vertices, 1.0, "REPLACE")


UNWEIGHTED = [nothing, zero, next_to_nothing, groups_of_no_bone, bones_that_do_not_deform]


@pytest.mark.parametrize("make", UNWEIGHTED)
@pytest.mark.parametrize("mode", ["OBJECT", "POSE", "EDIT", "WEIGHT_PAINT"])
def test_unweighted_vertices_are_selected(mode, make):
    _, (ob,) = character(1)
    ob.vertex_groups["Bone 4"].add(LAST_RING, 1.0, "REPLACE")
    make(ob, [17, *LAST_RING[:2]])
    if mode != "POSE":
        activate(ob)
    bpy.ops.object.mode_set(mode=mode)
    assert bpy.ops.skinning.find_unweighted() == {"FINISHED"}
    assert ob.mode == "EDIT"
    assert selection(ob) == [17, *LAST_RING[:2]]
    assert bpy.context.scene.tool_settings.mesh_select_mode[:] == (True, False, False)


def test_locked_groups_move_vertices_too():
    _, (ob,) = character(1)
    for group in ob.vertex_groups:
        group.lock_weight = True
    assert find_unweighted(bpy.context, bpy.context.object).counts == {"Arm": 16}


def test_a_mesh_without_any_group():
    _, (ob,) = character(1)
    ob.vertex_groups.clear()
    assert bpy.ops.skinning.find_unweighted() == {"FINISHED"}
    assert len(selection(ob)) == 656


def test_hidden_vertices_are_shown():
    _, (ob,) = character(1)
    for vertex in ob.data.vertices:
        vertex.hide = True
    assert bpy.ops.skinning.find_unweighted() == {"FINISHED"}
    assert selection(ob) == LAST_RING


def test_without_any_nothing_changes(capfd):
    rig, meshes = character(3)
    activate(rig, *meshes[1:])
    bpy.ops.object.mode_set(mode="POSE")
    before = scenes.ui_state()
    assert bpy.ops.skinning.find_unweighted() == {"FINISHED"}
    assert "2 meshes: bones move every vertex" in capfd.readouterr().out
    assert scenes.ui_state() == before


# Which meshes are searched


def test_all_meshes_that_the_active_armature_deforms(capfd):
    _, meshes = character()
    nothing(meshes[2], [5, 6])
    assert bpy.ops.skinning.find_unweighted() == {"FINISHED"}
    assert "4 meshes: 18 vertices without weights selected (Arm 16, Part 2 2)" in capfd.readouterr().out
    assert [ob.mode for ob in meshes] == ["EDIT", "OBJECT", "EDIT", "OBJECT"]
    assert selection(meshes[0]) == LAST_RING
    assert selection(meshes[2]) == [5, 6]


def test_the_mesh_of_the_field_alone():
    _, meshes = character()
    nothing(meshes[2], [5, 6])
    bpy.context.scene.skinning_mesh = meshes[2].name
    assert find_unweighted(bpy.context, bpy.context.object).counts == {"Part 2": 2}


@pytest.mark.parametrize("active", ["mesh", "armature"])
def test_the_selected_meshes(active):
    rig, meshes = character()
    activate(rig if active == "armature" else meshes[1], *meshes[:2])
    assert find_unweighted(bpy.context, bpy.context.object).counts == {"Arm": 16, "Part 1": 0}


def test_a_mesh_of_no_armature_is_refused():
    scenes.empty_scene()
    scenes.grid()
    with pytest.raises(RuntimeError, match="No mesh that an armature deforms is active or selected"):
        bpy.ops.skinning.find_unweighted()


@pytest.mark.parametrize("method", METHODS)
def test_binding_gives_them_weights(method):
    _, meshes = character(2)
    nothing(meshes[1], [5, 6])
    bpy.ops.skinning.find_unweighted()
    bpy.ops.object.mode_set(mode="OBJECT")
    activate(bpy.data.objects["Rig"])
    bpy.ops.skinning.bind(method=method)
    assert find_unweighted(bpy.context, bpy.context.object).counts == {"Arm": 0, "Part 1": 0}


def test_a_broken_scipy_is_said(monkeypatch):
    character(1)
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    with pytest.raises(RuntimeError, match="scipy is installed but cannot be loaded"):
        bpy.ops.skinning.find_unweighted()
