# SPDX-License-Identifier: GPL-3.0-or-later
"""A sheet with shape keys that rigid bones can do, alone, as the head of a body, or with teeth and an eye."""

import bpy
import numpy as np
from mathutils import Euler, Matrix, Vector

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


def with_teeth() -> tuple[bpy.types.Object, bpy.types.Object]:
    """The face, and teeth that have its jaw's key and one of their own, in a space of their own. Both are selected, and
    the face is active."""
    ob = bpy.data.objects["Face"] if "Face" in bpy.data.objects else face()
    points = np.array([(x, y, z) for x in (-0.4, 0.4) for y in (-0.9, -0.3) for z in (0.1, 0.3)])
    place = Matrix.LocRotScale((0.3, -0.2, 0.5), Euler((0.2, 0.4, -0.3)), Vector((2, 2, 2)))
    inverse = np.array(place.inverted())[:3, :3]
    teeth = scenes.mesh_object((points - place.translation) @ inverse.T, [(0, 1, 3, 2), (4, 5, 7, 6)], name="Teeth")
    add_key(teeth, "Basis", np.zeros_like(points))
    add_key(teeth, NAMES[0], shapes(points)[0] @ inverse.T)
    add_key(teeth, "teethOut", np.broadcast_to(inverse @ (0, 0, 0.2), points.shape))
    # The rest of its transform comes from a parent, as in many files.
    teeth.parent, teeth.matrix_parent_inverse = ob.parent, ob.matrix_parent_inverse
    teeth.matrix_world = ob.matrix_world @ place
    bpy.context.view_layer.update()
    bpy.context.view_layer.objects.active = ob
    return ob, teeth


def with_eye():
    """Face and teeth on the head of a body, and an eye on a bone of its own; the armature."""
    ob, armature = on_body()
    with_teeth()
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    bone = armature.data.edit_bones.new("eye")
    bone.head, bone.tail = (0.4, 0.5, 0.5), (0.4, 0.5, 0.9)
    bone.parent = armature.data.edit_bones["head"]
    bpy.ops.object.mode_set(mode="OBJECT")
    around = np.array([(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])
    eye = scenes.mesh_object(around + np.array((0.4, 0.5, 0.5)), [(0, 1, 3, 2), (4, 5, 7, 6)], name="Eye")
    add_key(eye, "Basis", np.zeros_like(around))
    add_key(eye, "look", around @ np.array(Euler((0.4, 0.2, 0)).to_matrix()).T - around)
    for each, name in ((bpy.data.objects["Teeth"], "head"), (eye, "eye")):
        each.vertex_groups.new(name=name).add(range(len(around)), 1.0, "REPLACE")
        each.modifiers.new("Armature", "ARMATURE").object = armature
    eye.matrix_world = ob.matrix_world
    for each in (ob, eye, bpy.data.objects["Teeth"]):
        each.select_set(True)
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    return armature


def add_key(ob, name: str, delta: np.ndarray) -> None:
    block = ob.shape_key_add(name=name)
    points = np.array([vertex.co for vertex in ob.data.vertices]) + delta
    block.points.foreach_set("co", points.astype(np.float32).ravel())
    block.value = 0.0


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
