# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones in a transparent skin, for pictures of a body of two meters or so."""

import bpy
import numpy as np
import rendering
from mathutils import Matrix

BONE = (1.0, 0.62, 0.05)
OPAQUE = 0.4


def with_bones(points: np.ndarray, triangles: np.ndarray, rig, place: Matrix, skin) -> bpy.types.Mesh:
    """A skin of points (N, 3) and triangles (T, 3), transparent, in the color ``skin``, with the bones of ``rig``.

    place: from the armature's space to that of the points."""
    parts, faces = [points], triangles.tolist()
    for bone in rig.pose.bones:
        corners, own = bone_shape(place @ bone.matrix, place.median_scale * bone.length)
        count = sum(map(len, parts))
        parts.append(corners)
        faces += [[count + corner for corner in face] for face in own]
    mesh = bpy.data.meshes.new("With Bones")
    mesh.from_pydata(np.concatenate(parts).tolist(), [], faces)
    mesh.materials.append(transparent(rendering.plain("Skin", skin, roughness=0.6)))
    mesh.materials.append(rendering.plain("Bone", BONE, roughness=0.6))
    of_bones = np.arange(len(faces)) >= len(triangles)
    mesh.polygons.foreach_set("material_index", of_bones.astype(np.int32))
    mesh.polygons.foreach_set("use_smooth", ~of_bones)
    return mesh


def bone_shape(matrix: Matrix, length: float) -> tuple[np.ndarray, list[list[int]]]:
    """Points and faces of a bone as Blender draws it, and a small ball for its head."""
    width, ball = 0.1 * length + 0.012, 0.022
    wide = 0.12 * length
    points = [(0, 0, 0), (width, wide, 0), (0, wide, width), (-width, wide, 0), (0, wide, -width), (0, length, 0)]
    faces = [[0, 1 + (k + 1) % 4, 1 + k] for k in range(4)] + [[5, 1 + k, 1 + (k + 1) % 4] for k in range(4)]
    points += [(ball, 0, 0), (0, ball, 0), (-ball, 0, 0), (0, -ball, 0), (0, 0, ball), (0, 0, -ball)]
    faces += [[6 + k, 6 + (k + 1) % 4, 10] for k in range(4)] + [[6 + (k + 1) % 4, 6 + k, 11] for k in range(4)]
    turn = np.array(matrix.to_quaternion().to_matrix())
    return np.array(points) @ turn.T + np.array(matrix.translation), faces


def transparent(material: bpy.types.Material) -> bpy.types.Material:
    """``material``, so that what is behind it shows through."""
    nodes, links = material.node_tree.nodes, material.node_tree.links
    mix, clear = nodes.new("ShaderNodeMixShader"), nodes.new("ShaderNodeBsdfTransparent")
    mix.inputs[0].default_value = OPAQUE
    links.new(clear.outputs[0], mix.inputs[1])
    links.new(nodes["Principled BSDF"].outputs[0], mix.inputs[2])
    links.new(mix.outputs[0], nodes["Material Output"].inputs["Surface"])
    return material
