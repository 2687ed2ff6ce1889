# SPDX-License-Identifier: GPL-3.0-or-later
"""Armatures from arrays, and arrays from meshes."""

from collections.abc import Sequence

import bpy
import numpy as np

from tests.blender import scenes


def armature(name: str, bone_names: Sequence[str], heads, tails, parents) -> bpy.types.Object:
    """An armature object in the scene, active. heads and tails (P, 3); parents (P,): indices, −1 for none."""
    rig = scenes.link(bpy.data.objects.new(name, bpy.data.armatures.new(name)))
    bpy.ops.object.mode_set(mode="EDIT")
    bones = []
    for bone_name, head, tail in zip(bone_names, heads, tails, strict=True):
        bone = rig.data.edit_bones.new(bone_name)
        bone.head, bone.tail = head, tail
        bones.append(bone)
    for bone, parent in zip(bones, parents, strict=True):
        bone.parent = bones[parent] if parent >= 0 else None
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def triangles(mesh: bpy.types.Mesh) -> np.ndarray:
    """(T, 3) int32."""
    mesh.calc_loop_triangles()
    corners = np.empty((len(mesh.loop_triangles), 3), np.int32)
    mesh.loop_triangles.foreach_get("vertices", corners.ravel())
    return corners


def bone_of(name: str, made: bpy.types.Object, found: bpy.types.Object) -> str:
    """The bone of ``found`` that moves most of what the bone ``name`` of ``made``, the same mesh, moves."""
    wanted = shares(made)[:, made.vertex_groups[name].index]
    return found.vertex_groups[int(np.argmax(wanted @ shares(found)))].name


def shares(ob: bpy.types.Object) -> np.ndarray:
    """(N, groups) weights."""
    dense = np.zeros((len(ob.data.vertices), len(ob.vertex_groups)))
    for vertex in ob.data.vertices:
        for group in vertex.groups:
            dense[vertex.index, group.group] = group.weight
    return dense
