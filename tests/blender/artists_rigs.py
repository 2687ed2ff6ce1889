# SPDX-License-Identifier: GPL-3.0-or-later
"""Game characters with their artists' weights, as arrays."""

import bpy

from skinning_tools.blender.bodies import read_body, read_skeleton
from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.blender.skin_reader import armature_of

# Thresholds of the search for rogue weights were chosen on the first ones; the others were held out.
CHOSEN_ON = ("Alpaca", "Bee", "Casual", "Enemy_2Legs", "Enemy_Large", "Fox", "Frog")
HELD_OUT = ("George", "KnightCharacter", "Koi", "Stegosaurus", "Wasp", "Witch")


def read(path) -> list[tuple]:
    """Body, skeleton, bones and weights of each mesh of a character that an armature deforms."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.import_scene.gltf(filepath=str(path))
    meshes = [ob for ob in bpy.data.objects if ob.type == "MESH" and armature_of(ob) is not None]
    for ob in meshes:
        armature_of(ob).data.pose_position = "REST"
    bpy.context.view_layer.update()
    found = []
    for ob in meshes:
        armature = armature_of(ob)
        rows = read_bone_weights(ob, armature)
        found.append((read_body(ob), read_skeleton(ob, armature), rows.bones, rows.weights))
    return found
