# SPDX-License-Identifier: GPL-3.0-or-later
"""A skinned limb, and clothes around it."""

import bpy
import numpy as np

from skinning_tools.blender.vertex_groups import write_weights
from tests.blender import binding_scenes, moving_meshes, scenes

BONES = ("upper", "middle", "hand.L")


def tube(name: str, start: float, end: float, radius: float, rings: int = 25, inward: bool = False) -> bpy.types.Object:
    """An open tube along x."""
    x, angle = np.meshgrid(np.linspace(start, end, rings), np.arange(16) * np.pi / 8, indexing="ij")
    points = np.stack([x, radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1, 3)
    corners = np.arange(rings * 16).reshape(rings, 16)
    beside = np.roll(corners, -1, axis=1)
    faces = np.stack([corners[:-1], beside[:-1], beside[1:], corners[1:]], axis=-1).reshape(-1, 4)
    return scenes.mesh_object(points, (faces[:, ::-1] if inward else faces).tolist(), name=name)


def weights_along(x: np.ndarray) -> np.ndarray:
    """(n, 3) the limb's weights at places along it."""
    middle = np.clip(1.5 - np.abs(x - 3.0), 0, 1)
    return np.column_stack([(1 - middle) * (x < 3), middle, (1 - middle) * (x >= 3)])


def limb() -> tuple[bpy.types.Object, bpy.types.Object]:
    """A tube from 0 to 6 of radius 1 with those weights, and its armature; the tube is called Body."""
    moving_meshes.fresh_scene()
    body = tube("Body", 0.0, 6.0, 1.0, rings=61)
    segments = [[(0, 0, 0), (2, 0, 0)], [(2, 0, 0), (4, 0, 0)], [(4, 0, 0), (6, 0, 0)]]
    rig = binding_scenes.armature_of_segments(segments, parents=(-1, 0, 1))
    for bone, name in zip(list(rig.data.bones), BONES, strict=True):
        bone.name = name
    x = np.array([vertex.co.x for vertex in body.data.vertices])
    rows = weights_along(x)
    write_weights(body, BONES, np.broadcast_to(np.arange(3), rows.shape), rows)
    body.modifiers.new("Armature", "ARMATURE").object = rig
    return body, rig


def sleeve(name: str = "Sleeve", radius: float = 1.1, **given) -> bpy.types.Object:
    """A tube around the limb; active, and alone selected."""
    ob = tube(name, 1.0, 5.0, radius, **given)
    binding_scenes.activate(ob)
    bpy.context.view_layer.update()
    return ob
