# SPDX-License-Identifier: GPL-3.0-or-later
"""Lattices and curves beside an animated armature, and where Blender has their control points in a pose."""

import bpy
import numpy as np

from skinning_tools.blender.control_points import read_positions, stored_shapes
from skinning_tools.blender.vertex_groups import put_weights
from tests.blender import scenes, skinned_meshes
from tests.blender.binding_scenes import activate


def cage(bone_count=4, across=3, along=9) -> tuple[bpy.types.Object, bpy.types.Object]:
    """A lattice "Cage" around an animated chain of bones along x, at rest, with points inside; active, not bound."""
    scenes.empty_scene()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 8
    rig = skinned_meshes.armature("Rig", bone_count)
    rig.location, rig.rotation_euler = (0.5, -0.3, 0.2), (0.1, 0.2, 0.3)
    skinned_meshes.animate(rig)
    scene.frame_set(1)
    lattice = bpy.data.lattices.new("Cage")
    lattice.points_u, lattice.points_v, lattice.points_w = along, across, across
    ob = scenes.link(bpy.data.objects.new("Cage", lattice))
    # A lattice's own points are a unit apart.
    places = rest_of(ob)
    places = (places - places.mean(axis=0)) * [bone_count / (along - 1), 0.4, 0.4] + [bone_count / 2, 0, 0]
    lattice.points.foreach_set("co_deform", places.astype(np.float32).ravel())
    lattice.update_tag()
    ob.matrix_world = rig.matrix_world
    bpy.context.view_layer.update()
    activate(ob)
    return ob, rig


def skinned_cage(**given) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The cage with weights of its bones, in frame 1."""
    ob, rig = cage(**given)
    count = len(rig.data.bones)
    bones, weights = skinned_meshes.bone_weights(rest_of(ob)[:, 0], count, 2)
    put_weights(ob, [bone.name for bone in rig.data.bones], bones, weights / weights.sum(axis=1, keepdims=True))
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    bpy.context.view_layer.update()
    return ob, rig


def rest_of(ob) -> np.ndarray:
    """(N, 3) the stored positions of a lattice's points."""
    return read_positions(*next(stored_shapes(ob.data)))


def seen(ob) -> np.ndarray:
    """(N, 3) where Blender's evaluation has a lattice's points, in the world."""
    evaluated = ob.evaluated_get(bpy.context.evaluated_depsgraph_get())
    world = np.array(evaluated.matrix_world)
    return read_positions(*next(stored_shapes(evaluated.data))) @ world[:3, :3].T + world[:3, 3]
