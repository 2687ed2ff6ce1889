# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: a vertex of a bent elbow is moved, the reachable region drawn, the weights fitted; weights
in color. Started by run.py."""

from math import radians

import bmesh
import bpy
import numpy as np
from driver import (
    after,
    begin_with,
    enable,
    idle,
    in_window,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    views,
)
from mathutils import Quaternion, Vector

from skinning_tools.blender.active_vertex import stored_vertex
from skinning_tools.features.fit import posed_copies
from skinning_tools.features.fit import reachable_view as reachable
from skinning_tools.features.fit.panel import SKINNING_PT_fit_weights
from skinning_tools.features.fit.reachable_region import read_region
from skinning_tools.features.fit.settings import FitSettings
from skinning_tools.features.weights import weight_view
from skinning_tools.features.weights.weight_view_panel import SKINNING_PT_weight_view
from tests.blender import binding_scenes, joint_helper_scenes, scenes
from tests.conftest import SHARED

ELBOW = "lowerarm01.L"


def bent_human() -> None:
    """The human rig's mesh and its armature, in Pose Mode, its left elbow bent."""
    body, rig = joint_helper_scenes.human(SHARED / "human_rig.npz")
    body.name, rig.name = "Body", "Rig"
    body.data.shade_smooth()
    turn(rig, ELBOW, (1, 0, 0), -75)
    turn(rig, "lowerarm02.L", (0, 1, 0), 60)
    turn(rig, "upperarm02.L", (0, 0, 1), 25)
    binding_scenes.activate(rig)
    bpy.ops.object.mode_set(mode="POSE")


def turn(rig, name: str, axis, degrees: float) -> None:
    """About an axis of the bone's own."""
    bone = rig.pose.bones[name]
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = Quaternion(axis, radians(degrees))


def look_at(point, distance: float) -> None:
    space = views()[0].spaces.active
    view = space.region_3d
    view.view_rotation = Vector((0.5, -1.0, 0.4)).to_track_quat("Z", "Y")
    view.view_location, view.view_distance, view.view_perspective = point, distance, "ORTHO"


def body():
    return bpy.data.objects["Body"]


def rig():
    return bpy.data.objects["Rig"]


def copy():
    return posed_copies.copies_of(body(), bpy.context.scene)[0]


def weights_of(index: int) -> dict[str, float]:
    return stored_vertex(body(), index).groups


def tests():
    enable(SKINNING_PT_fit_weights, SKINNING_PT_weight_view)
    yield from begin_with(bent_human)
    yield from open_tab("Skinning")
    elbow = rig().matrix_world @ rig().pose.bones[ELBOW].head
    size = max(body().dimensions)
    look_at(elbow, 0.35 * size)
    yield after(0.5)
    picture("fit_1_posed")
    before = scenes.world_positions(body())
    # A vertex at the elbow.
    chosen = int(np.argmin(np.linalg.norm(before - np.array(elbow), axis=1)))
    weights = weights_of(chosen)
    yield from copied(before)
    region = yield from moved(chosen, size)
    yield from fitted(chosen, region, before, size)
    yield from undone(chosen, region, weights)
    yield from distance_left()
    yield from show_weights()


def copied(before):
    """Generator: a posed copy of the mesh, which was at ``before``."""
    yield from press_button("skinning.start_weight_fit")
    yield after(0.5)
    assert bpy.context.view_layer.objects.active == copy()
    assert body().hide_get()
    assert np.abs(scenes.world_positions(copy()) - before).max() < 1e-5
    picture("fit_2_copy")
    passes("the button makes a posed copy in place of the mesh, with the armature active in Pose Mode")


def moved(chosen, size):
    """Generator: a vertex of the copy moved in Edit Mode; returns its reachable region."""
    with in_window():
        bpy.ops.object.mode_set(mode="EDIT")
        bpy.ops.ed.undo_push(message="Edit Mode")
        bpy.ops.mesh.select_all(action="DESELECT")
        edited = bmesh.from_edit_mesh(copy().data)
        edited.verts.ensure_lookup_table()
        edited.select_mode = {"VERT"}
        edited.verts[chosen].select_set(True)
        edited.select_history.add(edited.verts[chosen])
        bmesh.update_edit_mesh(copy().data)
        bpy.ops.transform.translate(value=[0.01 * size, -0.01 * size, 0.01 * size])
        bpy.ops.ed.undo_push(message="Moved")
        bpy.ops.skinning.show_reachable()
    yield after(0.5)
    settings = bpy.context.scene.skinning_weight_fit
    own = read_region(bpy.context, FitSettings.of(settings))
    assert len(own.bones) > 1
    assert reachable.display.shown
    picture("fit_3_reachable")
    settings.candidates = "NEAR"
    yield after(0.5)
    picture("fit_4_adjoining")
    region = read_region(bpy.context, FitSettings.of(settings))
    assert set(own.bones) < set(region.bones)
    assert np.linalg.norm(region.landing - region.place) <= np.linalg.norm(own.landing - own.place)
    passes(f"the reachable region of {len(own.bones)} and {len(region.bones)} bones is drawn")
    return region


def fitted(chosen, region, before, size):
    """Generator: the vertex alone comes as near to where it was moved as its region allows."""
    yield from press_button("skinning.fit_weights_to_pose", across=0.3)
    yield lambda: idle() and not posed_copies.copies_of(body(), bpy.context.scene)
    yield after(0.5)
    picture("fit_5_fitted")
    after_fit = scenes.world_positions(body())
    changed = np.flatnonzero(np.linalg.norm(after_fit - before, axis=1) > 1e-5)
    assert changed.tolist() == [chosen], changed
    assert np.linalg.norm(after_fit[chosen] - region.landing) < 1e-4 * size
    assert bpy.context.view_layer.objects.active == rig()
    assert rig().mode == "POSE"
    passes(f"the button fits vertex {chosen} alone, from Edit Mode, and gives the armature back")


def undone(chosen, region, weights):
    """Generator: the fit undone and redone; weights: those of the vertex before it."""
    after_fit = scenes.world_positions(body())
    press("Z", ctrl=True)
    yield lambda: bool(posed_copies.copies_of(body(), bpy.context.scene))
    yield after(1.0)
    assert weights_of(chosen) == weights
    assert copy().mode == "EDIT"
    again = read_region(bpy.context, FitSettings.of(bpy.context.scene.skinning_weight_fit))
    assert np.abs(again.place - region.place).max() < 1e-6, "what the artist had moved is as it was"
    picture("fit_6_undone")
    press("Z", ctrl=True, shift=True)
    yield lambda: not posed_copies.copies_of(body(), bpy.context.scene)
    yield after(1.0)
    assert weights_of(chosen) != weights
    assert np.abs(scenes.world_positions(body()) - after_fit).max() < 1e-6
    passes("undo brings copy and weights back in one step, redo the fit")


def distance_left():
    """Generator: the error of the fit in color."""
    with in_window():
        bpy.ops.skinning.show_reachable(show=False)
        bpy.ops.skinning.show_fit_error()
    yield after(0.5)
    picture("fit_7_distance_left")
    assert views()[0].spaces.active.shading.color_type == "VERTEX"
    assert not reachable.display.shown
    passes("the distance left is shown in color")


def show_weights():
    """Generator: the weight view, while weights change, and off."""
    look_at(Vector((0, 0, 0)), 1.3 * max(body().dimensions))
    for ob in bpy.context.view_layer.objects:
        ob.hide_set(ob == rig())
    yield from press_button("mode='BONES'", across=0.2)
    yield after(2.0)
    picture("weights_1_bones")
    shown = body().data.skinning_weight_view
    assert shown.mode == "BONES"
    first = shown.fingerprint
    passes(f"the button shows {len(shown.bones)} bones in color")
    yield from press_button("mode='COUNT'", across=0.6)
    yield after(0.5)
    picture("weights_2_counts")
    assert body().data.skinning_weight_view.mode == "COUNT"

    bpy.ops.skinning.show_weights(mode="BONES")
    with in_window():
        bpy.context.view_layer.objects.active = body()
        bpy.ops.object.mode_set(mode="OBJECT")
        body().vertex_groups["head"].add(list(range(2000)), 1.0, "REPLACE")
        body().data.update()
    yield lambda: body().data.skinning_weight_view.fingerprint != first
    yield after(0.3)
    picture("weights_3_changed")
    passes("the colors follow the weights")
    with in_window():
        bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
        for vertex in body().data.vertices:
            vertex.select = vertex.index == 10037
    yield after(0.5)
    picture("weights_4_painting")
    views()[0].spaces.active.overlay.weight_paint_mode_opacity = 0.0
    yield after(0.5)
    picture("weights_5_painting_uncovered")
    with in_window():
        bpy.ops.object.mode_set(mode="OBJECT")
        bpy.ops.skinning.show_weights(mode="OFF")
    yield after(0.5)
    assert not weight_view.shows_weights(body())
    picture("weights_6_off")
    passes("switched off nothing is left")

    with in_window():
        body().select_set(True)
        bpy.context.view_layer.objects.active = body()
        bpy.ops.view3d.localview(frame_selected=False)
        bpy.ops.skinning.start_weight_fit()
    yield after(1.0)
    picture("fit_8_local_view")
    assert copy().local_view_get(views()[0].spaces.active)
    passes("a copy is where the mesh is in a local view, too")
