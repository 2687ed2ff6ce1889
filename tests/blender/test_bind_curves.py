# SPDX-License-Identifier: GPL-3.0-or-later
"""Curves and surfaces bound by hooks: each control point follows one bone; and what is refused."""

import bpy
import numpy as np
import pytest
from mathutils import Vector

from skinning_tools.features.bind.hooks import bone_hooks
from skinning_tools.features.bind.panel import SKINNING_PT_bind
from tests.blender import command_runs, panel_recorder, refusals, scenes, skinned_meshes
from tests.blender.binding_scenes import activate, bound, tube

pytestmark = pytest.mark.usefixtures("extension")

SINGLE = 1e-5


def rigged(bone_count=4) -> bpy.types.Object:
    scenes.empty_scene()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 8
    rig = skinned_meshes.armature("Rig", bone_count)
    rig.location, rig.rotation_euler, rig.scale = (0.5, -0.3, 0.2), (0.1, 0.2, 0.3), (1.5, 1.5, 1.5)
    skinned_meshes.animate(rig)
    scene.frame_set(1)
    return rig


def line(kind: str, places, rig) -> bpy.types.Object:
    """A curve of straight pieces "Line" through ``places`` (n, 3) in the armature's space; active."""
    data = bpy.data.curves.new("Line", "CURVE")
    data.dimensions = "3D"
    spline = data.splines.new(kind)
    points = spline.bezier_points if kind == "BEZIER" else spline.points
    points.add(len(places) - 1)
    for point, place in zip(points, places, strict=True):
        if kind == "BEZIER":
            point.handle_left_type = point.handle_right_type = "VECTOR"
            point.co = place
        else:
            point.co = (*place, 1)
    if kind == "NURBS":
        spline.order_u, spline.use_endpoint_u = 2, True
    return placed(bpy.data.objects.new("Line", data), rig)


def placed(ob, rig) -> bpy.types.Object:
    scenes.link(ob)
    ob.matrix_world = rig.matrix_world
    ob.scale = (2, 2, 2)
    for spline in ob.data.splines:
        for point in (*spline.points, *spline.bezier_points):
            point.co[:3] = np.array(point.co[:3]) * 0.75
    bpy.context.view_layer.update()
    activate(ob)
    return ob


def places(count=8, bone_count=4) -> np.ndarray:
    """(n, 3) beside the bones, none between two of them."""
    along = (np.arange(count) + 0.5) * bone_count / count
    return np.column_stack([along, np.full(count, 0.3), np.zeros(count)])


def drawn(ob) -> np.ndarray:
    """(n, 3) what Blender draws of a curve or surface, in the world."""
    evaluated = ob.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = evaluated.to_mesh()
    points = np.array([evaluated.matrix_world @ vertex.co for vertex in mesh.vertices])
    evaluated.to_mesh_clear()
    return points


def carried(rig, points: np.ndarray, bones: np.ndarray) -> np.ndarray:
    """(n, 3) where bones, by their numbers, take points of the armature's rest pose, in the world."""
    return np.array(
        [
            rig.matrix_world
            @ rig.pose.bones[bone].matrix
            @ rig.data.bones[bone].matrix_local.inverted()
            @ Vector(point)
            for point, bone in zip(points, bones, strict=True)
        ]
    )


def refused(*parts: str, **given) -> None:
    """The operator fails with a text that has ``parts``, and changes no modifier and no parent."""

    def state():
        return [(ob.name, ob.parent, [m.name for m in ob.modifiers]) for ob in bpy.data.objects]

    refusals.refused("bind", *parts, state=state, **given)


@pytest.mark.parametrize("kind", ["POLY", "NURBS", "BEZIER"])
def test_each_control_point_follows_its_nearest_bone(kind, capfd):
    rig = rigged()
    ob = line(kind, places(), rig)
    before = drawn(ob)
    bound(method="RIGID")
    assert "8 control points held, 4 bones" in capfd.readouterr().out
    assert ob.parent == rig
    assert [hook.subtarget for hook in bone_hooks(ob, rig)] == [bone.name for bone in rig.data.bones]
    np.testing.assert_allclose(drawn(ob), before, atol=SINGLE)
    bpy.context.scene.frame_set(8)
    wanted = carried(rig, places(), np.floor(places()[:, 0]).astype(int))
    # Where the curve passes its control points: between them are more, and a NURBS curve may pass only its ends.
    distances = np.linalg.norm(drawn(ob)[:, None] - wanted, axis=2).min(axis=0)
    assert (distances[[0, -1]] if kind == "NURBS" else distances).max() < SINGLE


def test_in_a_pose_nothing_moves():
    rig = rigged()
    ob = line("NURBS", places(), rig)
    bpy.context.scene.frame_set(8)
    before = drawn(ob)
    bound(method="RIGID", in_pose=True)
    np.testing.assert_allclose(drawn(ob), before, atol=SINGLE)
    bpy.context.scene.frame_set(4)
    assert np.abs(drawn(ob) - before).max() > 0.1
    # A hook keeps the inverse of its own bone in the binding pose.
    refused("hold all control points", method="RIGID")
    bpy.context.scene.frame_set(8)
    np.testing.assert_allclose(drawn(ob), before, atol=SINGLE)


def test_the_net_of_a_surface():
    rig = rigged()
    bpy.ops.surface.primitive_nurbs_surface_surface_add(radius=1)
    ob = bpy.context.object
    ob.data.splines[0].order_u = ob.data.splines[0].order_v = 2
    ob.data.splines[0].use_endpoint_u = ob.data.splines[0].use_endpoint_v = True
    across, along = np.meshgrid((-0.3, -0.1, 0.1, 0.3), (0.5, 1.5, 2.5, 3.5))
    net = np.column_stack([along.ravel(), across.ravel(), np.full(16, 0.3)])
    for point, place in zip(ob.data.splines[0].points, net, strict=True):
        point.co = (*place, 1)
    ob.location = (0, 0, 0)
    ob.matrix_world = rig.matrix_world
    bpy.context.view_layer.update()
    activate(ob)
    before = drawn(ob)
    bound(method="RIGID")
    np.testing.assert_allclose(drawn(ob), before, atol=SINGLE)
    assert sorted(len(hook.vertex_indices) for hook in bone_hooks(ob, rig)) == [4, 4, 4, 4]
    bpy.context.scene.frame_set(8)
    wanted = carried(rig, net, np.floor(net[:, 0]).astype(int))
    # It may pass only the corners of its net.
    corners = np.linalg.norm(drawn(ob)[:, None] - wanted[[0, 3, 12, 15]], axis=2).min(axis=0)
    assert corners.max() < SINGLE


def test_held_points_stay_unless_replaced():
    rig = rigged()
    ob = line("POLY", places(), rig)
    hook = ob.modifiers.new("Mine", "HOOK")
    hook.object, hook.subtarget = rig, "Bone 3"
    hook.vertex_indices_set([0, 1])
    ob.modifiers.new("Array", "ARRAY")
    bound(method="RIGID")
    assert list(ob.modifiers["Mine"].vertex_indices) == [0, 1]
    assert sum(len(hook.vertex_indices) for hook in bone_hooks(ob, rig)) == 8
    # Hooks act on control points before a modifier makes geometry of them.
    assert ob.modifiers[-1].name == "Array"
    bound(method="RIGID", replace=True)
    assert "Mine" not in ob.modifiers
    assert sum(len(hook.vertex_indices) for hook in bone_hooks(ob, rig)) == 8


def test_hooks_are_not_replaced_in_a_pose():
    """The control points would jump to where they are without hooks."""
    rig = rigged()
    ob = line("POLY", places(), rig)
    bound(method="RIGID")
    rig.pose.bones["Bone 3"].rotation_mode = "XYZ"
    rig.pose.bones["Bone 3"].rotation_euler.x = 1.0
    before = [(hook.name, list(hook.vertex_indices)) for hook in bone_hooks(ob, rig)]
    with pytest.raises(RuntimeError, match="would jump if they were replaced in this pose"):
        bound(method="RIGID", in_pose=True, replace=True)
    assert [(hook.name, list(hook.vertex_indices)) for hook in bone_hooks(ob, rig)] == before


def test_whole_splines_and_selected_bones():
    rig = rigged()
    ob = line("POLY", places(), rig)
    other = ob.data.splines.new("POLY")
    other.points[0].co = (3.5 * 0.75, 0.2, 0, 1)
    bound(method="RIGID", whole_parts=True)
    assert len({hook.subtarget for hook in bone_hooks(ob, rig)}) == 2


def test_a_curve_beside_selected_meshes_is_left_alone():
    ob, rig = tube(4, rings=17, segments=8)
    path = line("POLY", places(), rig)
    activate(rig, ob, path)
    bound()
    assert ob.vertex_groups
    assert not path.modifiers


def test_other_methods_say_what_to_do():
    rig = rigged()
    line("BEZIER", places(), rig)
    refused("Choose the method Rigid", 'object "Line"', "Convert")
    refused("Choose the method Rigid", method="RIGID", as_objects=True)
    bpy.context.scene.skinning_bind.method = "AUTOMATIC"
    assert not panel_recorder.drawn(SKINNING_PT_bind).buttons["Bind"].layout.active
    bpy.context.scene.skinning_bind.method = "RIGID"
    assert panel_recorder.drawn(SKINNING_PT_bind).buttons["Bind"].layout.active


def test_what_moves_it_already_is_named():
    rig = rigged()
    ob = line("POLY", places(), rig)
    ob.modifiers.new("Bones", "ARMATURE").object = rig
    refused('already moved by the modifier "Bones"', method="RIGID")
    ob.modifiers.clear()
    ob.data.splines.clear()
    refused("has no control points", method="RIGID", armature="Rig")


def test_a_flat_curve_is_noted(capfd):
    rig = rigged()
    ob = line("POLY", places(), rig)
    ob.data.dimensions = "2D"
    bound(method="RIGID")
    assert "is a 2D curve and stays in its plane" in capfd.readouterr().out


def test_texts_are_refused():
    rigged()
    activate(scenes.link(bpy.data.objects.new("Word", bpy.data.curves.new("Word", "FONT"))))
    refused('NOT_A_MESH "Word"', method="RIGID")


def test_the_command_line(tmp_path, capsys):
    line("POLY", places(), rigged())
    path = tmp_path / "line.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    given = ("bind", "--object", "Line", "--armature", "Rig", "--overwrite", "--quiet")
    assert command_runs.run(*given) == 1
    assert "Choose the method Rigid" in capsys.readouterr().err
    assert command_runs.run(*given, "--method", "RIGID") == 0
    assert "Control points held" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(path))
    assert len(bone_hooks(bpy.data.objects["Line"], bpy.data.objects["Rig"])) == 4
