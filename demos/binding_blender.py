# SPDX-License-Identifier: GPL-3.0-or-later
"""Blender's own binding: automatic weights (bone heat) and envelopes."""

import time

import bpy
import numpy as np

from demos.objects import armature
from skinning_tools.blender.bone_weights import read_bone_weights
from tests.blender import scenes

WAYS = {"automatic weights": "ARMATURE_AUTO", "envelopes": "ENVELOPES"}


def bind_in_blender(rest, faces, heads, tails, parents, names, way: str):
    """bones and weights (N, K) from Blender's binding, rows of zeros where it assigns none, processor seconds and
    wall-clock seconds. ``way``: a key of ``WAYS``."""
    scenes.empty_scene()
    mesh = scenes.mesh_object(rest, np.asarray(faces).tolist(), name="Body")
    rig = armature("Rig", names, heads, tails, parents)
    for object in bpy.context.view_layer.objects:
        object.select_set(True)
    bpy.context.view_layer.objects.active = rig
    processor, wall = time.process_time(), time.perf_counter()
    if way == "automatic weights":
        # If its solver fails, Blender reports it on the terminal, and leaves groups without weights.
        bpy.ops.object.parent_set(type=WAYS[way])
    else:
        bpy.ops.object.parent_set(type="ARMATURE_NAME")
        bpy.context.view_layer.objects.active = mesh
        bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
        for bone in rig.pose.bones:
            (bone if "select" in bpy.types.PoseBone.bl_rna.properties else bone.bone).select = True
        bpy.ops.paint.weight_from_bones(type=WAYS[way])
        bpy.ops.object.mode_set(mode="OBJECT")
    seconds = time.process_time() - processor, time.perf_counter() - wall
    found = read_bone_weights(mesh, rig, names)
    return found.bones, found.weights, *seconds
