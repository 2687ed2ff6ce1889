# SPDX-License-Identifier: GPL-3.0-or-later
"""A sheet with shape keys that rigid bones can do, alone or as the head of a body."""

import bpy
import numpy as np

from skinning_tools.blender.attributes import read_attribute
from tests.blender import scenes

SIZE = 9
NAMES = ("jawOpen", "brow.L", 'odd "name\\')


def sheet() -> tuple[np.ndarray, list]:
    """Points (N, 3) and faces."""
    u, v = (each.ravel() for each in np.meshgrid(np.linspace(-1, 1, SIZE), np.linspace(-1, 1, SIZE)))
    corners = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
    faces = np.stack([corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]], -1).reshape(-1, 4)
    return np.stack([u, v, 0.3 * np.cos(u)], axis=1), faces.tolist()


def shapes(points: np.ndarray) -> np.ndarray:
    """(3, N, 3): the displacements of the keys."""
    left, low = np.clip(0.5 + points[:, 0], 0, 1), np.clip(0.5 - points[:, 1], 0, 1)
    zero = np.zeros(len(points))
    return np.stack(
        [
            np.stack([zero, zero, -0.4 * low], 1),
            np.stack([zero, 0.3 * left, 0.2 * left], 1),
            np.stack([0.2 * low * left, zero, zero], 1),
        ]
    )


def face(name: str = "Face", scale: float = 1.0) -> bpy.types.Object:
    """The active object, with its keys."""
    points, faces = sheet()
    ob = scenes.mesh_object(scale * points, faces, name=name)
    ob.shape_key_add(name="Basis")
    for key, delta in zip(NAMES, shapes(points), strict=True):
        block = ob.shape_key_add(name=key)
        block.points.foreach_set("co", (scale * (points + delta)).astype(np.float32).ravel())
        block.value = 0.0
    return ob


def on_body():
    """The face on the head of a posed armature; neck and head share its lower edge."""
    ob, data = face(), bpy.data.armatures.new("Body")
    armature = scenes.link(bpy.data.objects.new("Body", data))
    bpy.ops.object.mode_set(mode="EDIT")
    neck, head = data.edit_bones.new("neck"), data.edit_bones.new("head")
    neck.head, neck.tail, head.tail = (0, -2, 0), (0, -1, 0), (0, 1, 0.2)
    head.head, head.parent = neck.tail, neck
    bpy.ops.object.mode_set(mode="OBJECT")
    shares = np.clip(0.8 + 0.3 * sheet()[0][:, 1], 0.0, 1.0)
    for name, weights in (("head", shares), ("neck", 1.0 - shares)):
        group = ob.vertex_groups.new(name=name)
        for vertex, weight in enumerate(weights):
            group.add([vertex], float(weight), "REPLACE")
    ob.modifiers.new("Armature", "ARMATURE").object = armature
    ob.parent = armature
    armature.location, armature.scale = (1, 2, 3), (2, 2, 2)
    turn(armature, (0.4, 0.1, 0.2))
    bpy.context.view_layer.objects.active = ob
    return ob, armature


def turn(armature, angles) -> None:
    bone = armature.pose.bones["head"]
    bone.rotation_mode, bone.rotation_euler = "XYZ", angles
    bpy.context.view_layer.update()


def played(skinned, rig, **values) -> np.ndarray:
    """(N, 3): the vertices, by the sliders; all others at 0."""
    for name in rig["skinning_sliders"]:
        rig[name] = float(values.get(name, 0.0))
    rig.update_tag()
    return positions(skinned)


def positions(object) -> np.ndarray:
    bpy.context.view_layer.update()
    evaluated = object.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return read_attribute(evaluated.data, "position").astype(float)


def world(object) -> np.ndarray:
    """(N, 3): the vertices in the world."""
    points = positions(object)
    matrix = np.array(object.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world)
    return points @ matrix[:3, :3].T + matrix[:3, 3]
