# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes and armatures of all kinds that bpy.ops.skinning.bind binds, or refuses without changes."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.core.errors import Cancelled
from skinning_tools.features.bind.bind import bind, check_bindable
from skinning_tools.features.bind.settings import BindSettings
from tests.blender import refusals, scenes
from tests.blender.binding_scenes import (
    activate,
    armature_of_segments,
    binding_of,
    bound,
    check_bound,
    cube,
    every_method,
    refused,
    tube,
    weights_of,
)

pytestmark = pytest.mark.usefixtures("extension")


def test_scale_that_is_not_applied_does_not_matter():
    """Uneven scales and mirrors, against a mesh whose vertices have the same places."""
    ob, rig = tube()
    bound()
    expected = weights_of(ob, rig)
    for scale in ((-1.2, 1.2, 1.2), (0.3, 2.0, 1.0), (0.5, -3.0, -1.0)):
        ob, rig = tube()
        change = Matrix.Diagonal((*scale, 1))
        ob.data.transform(change.inverted() @ Matrix.Diagonal((1.2, 1.2, 1.2, 1)))
        if change.determinant() < 0:
            ob.data.flip_normals()
        ob.scale = scale
        bpy.context.view_layer.update()
        world = np.array([ob.matrix_world @ vertex.co for vertex in ob.data.vertices])
        bound()
        assert np.allclose(weights_of(ob, rig), expected, atol=3e-6)
        assert np.allclose([ob.matrix_world @ vertex.co for vertex in ob.data.vertices], world, atol=1e-5)


def test_an_armature_with_a_scale_of_its_own():
    ob, rig = tube()
    bound()
    expected = weights_of(ob, rig)
    ob, rig = tube()
    rig.animation_data_clear()
    rig.data.transform(Matrix.Diagonal((4, 4, 4, 1)))
    rig.scale = (0.25,) * 3
    bpy.context.view_layer.update()
    world = ob.matrix_world.copy()
    bound()
    assert np.allclose(weights_of(ob, rig), expected, atol=1e-4)
    assert np.allclose(ob.matrix_world, world, atol=1e-6)


@pytest.mark.parametrize("owner", ["mesh", "armature"])
def test_a_scale_of_zero_is_refused(owner):
    ob, rig = tube()
    rig.animation_data_clear()
    (ob if owner == "mesh" else rig).scale = (1, 0, 1)
    refused('NO_SCALE "Arm"' if owner == "mesh" else 'NO_SCALE "Rig"')


@every_method
@pytest.mark.parametrize(
    "kind", ["parts", "sheet", "dirty", "no faces", "wires", "one vertex", "far bone", "tiny bone"]
)
def test_no_input_defeats_a_method(method, kind):
    scenes.empty_scene()
    rig = armature_of_segments([[(i, 0, 0), (i + 1, 0, 0)] for i in range(5)])
    if kind == "parts":
        boxes = [cube(f"Box {i}", (i / 4, 0, 0), 0.2) for i in range(20)]
        activate(boxes[0], *boxes)
        bpy.ops.object.join()
        ob = bpy.context.object
    elif kind in ("no faces", "wires"):
        vertices = [(x / 4, np.sin(x), 0) for x in range(21)]
        ob = scenes.mesh_object(vertices, edges=[(i, i + 1) for i in range(20)] if kind == "wires" else [])
    elif kind == "one vertex":
        ob = scenes.mesh_object([(1, 0, 0)])
    else:
        ob = scenes.grid(5, 2)
    if kind == "dirty":
        vertices = [vertex.co[:] for vertex in ob.data.vertices]
        faces = [tuple(face.vertices) for face in ob.data.polygons]
        count = len(vertices)
        bpy.data.objects.remove(ob)
        # Twice the same, and triangles without an area.
        ob = scenes.mesh_object(
            vertices * 2, [*faces, *([v + count for v in f] for f in faces), (0, 1, 2), (0, count, 5)]
        )
    elif kind == "far bone":
        activate(rig)
        bpy.ops.object.mode_set(mode="EDIT")
        bone = rig.data.edit_bones.new("Far")
        bone.head, bone.tail = (500, 0, 0), (500, 1, 0)
        bpy.ops.object.mode_set(mode="OBJECT")
    elif kind == "tiny bone":
        # Blender removes those of no length at all.
        activate(rig)
        bpy.ops.object.mode_set(mode="EDIT")
        bone = rig.data.edit_bones.new("Tiny")
        bone.head, bone.tail = (2, 1, 0), (2, 1, 2e-6)
        bpy.ops.object.mode_set(mode="OBJECT")
        assert "Tiny" in rig.data.bones
    activate(ob)
    bound(method=method)
    check_bound(ob, rig)


@every_method
@pytest.mark.parametrize("count", [1, 300])
def test_one_bone_and_three_hundred(method, count):
    ob, rig = tube(count, rings=3 * count, segments=6)
    bound(method=method)
    check_bound(ob, rig)


def test_no_vertices():
    tube()
    ob = scenes.mesh_object([], name="Empty")
    activate(ob)
    refused('NO_VERTICES "Empty"')


def test_positions_that_are_not_numbers():
    ob, _ = tube()
    ob.data.vertices[7].co.x = float("nan")
    refused('"Arm" cannot be bound. Vertex 7 of the mesh has a position that is not a number')


def test_an_armature_that_deforms_nothing():
    _, rig = tube()
    for bone in rig.data.bones:
        bone.use_deform = False
    refused('NO_DEFORMING_BONE "Rig"')


def test_edit_mode():
    ob, rig = tube()
    bpy.ops.object.mode_set(mode="EDIT")
    refused('MODE "Arm" … Edit Mode')
    bpy.ops.object.mode_set(mode="OBJECT")
    activate(rig, ob)
    bpy.ops.object.mode_set(mode="EDIT")
    refused('ARMATURE_IN_EDIT_MODE "Rig"')
    bpy.ops.object.mode_set(mode="OBJECT")


def test_weight_paint_mode():
    ob, rig = tube()
    bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
    bound()
    assert ob.mode == "WEIGHT_PAINT"
    check_bound(ob, rig)


def test_linked_meshes_are_refused(tmp_path):
    ob, _ = tube()
    path = tmp_path / "library.blend"
    bpy.data.libraries.write(str(path), {ob.data})
    with bpy.data.libraries.load(str(path), link=True) as (source, target):
        target.meshes = source.meshes
    ob.data = target.meshes[0]
    refused('LINKED mesh of object "Arm"')


def test_a_shared_mesh(capfd):
    ob, rig = tube()
    twin = ob.copy()
    scenes.link(twin)
    activate(rig, ob, twin)
    refused('MESH_SHARED object "Arm"')
    activate(ob)
    bound()
    check_bound(ob, rig)
    assert not twin.modifiers
    assert "1 other object with the same mesh also got the weights" in capfd.readouterr().out


def test_a_hidden_mesh_is_refused_and_a_hidden_armature_is_not():
    ob, rig = tube()
    bound()
    expected = weights_of(ob, rig)
    for how in ("hide_viewport", "eye", "collection"):
        ob, rig = tube()
        rig.animation_data_clear()
        place = rig.location.copy()
        rig.location = (50, 60, 70)
        bpy.context.view_layer.update()
        if how == "eye":
            rig.hide_set(True)
        elif how == "hide_viewport":
            rig.hide_viewport = True
        else:
            scenes.moved_to("Rigs", rig)
            bpy.context.view_layer.layer_collection.children["Rigs"].exclude = True
        # Blender does not place what it hides.
        rig.location = place
        bound(armature="Rig")
        assert np.array_equal(weights_of(ob, rig), expected), how
    ob, _ = tube()
    ob.hide_set(True)
    bpy.context.view_layer.objects.active = ob
    refused('HIDDEN "Arm"')


# All or nothing


def test_cancelled_it_leaves_nothing():
    ob, _ = tube()
    before = scenes.data_blocks(), binding_of(ob)
    steps = bind(bpy.context, check_bindable(bpy.context), BindSettings())
    next(steps)
    steps.close()
    assert (scenes.data_blocks(), binding_of(ob)) == before


def test_the_work_stops_if_progress_returns_false(monkeypatch):
    ob, _ = tube()

    def stop(work):
        work(lambda fraction, stage: False)
        yield

    monkeypatch.setattr("skinning_tools.blender.background.run_in_worker", stop)
    before = binding_of(ob)
    with pytest.raises(Cancelled):
        next(bind(bpy.context, check_bindable(bpy.context), BindSettings()))
    assert binding_of(ob) == before


def test_one_bad_mesh_of_several_leaves_the_others_alone():
    ob, rig = tube()
    empty = scenes.mesh_object([], name="Empty")
    activate(rig, ob, empty)
    refused('NO_VERTICES "Empty"')


def test_a_mesh_edited_meanwhile():
    ob, _ = tube()
    steps = bind(bpy.context, check_bindable(bpy.context), BindSettings())
    next(steps)
    ob.data.vertices.add(1)
    with refusals.raises_unmet("EDITED"):
        scenes.drain(steps)
