# SPDX-License-Identifier: GPL-3.0-or-later
"""Saves a file with one result of each tool: python make.py FILE, in a checkout whose extension makes the results.

The files beside this script were saved so by earlier versions, with Blender 4.2: earlier_COMMIT.blend. Tools that a
version does not have are left out.
"""

import math
import os
import sys
from pathlib import Path

import bpy
import numpy as np


def grid(name: str, x: float):
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=8, y_subdivisions=8, size=2, location=(x, 0, 0))
    bpy.context.active_object.name = name
    return bpy.context.active_object


def keyed(ob, name: str, bend) -> bpy.types.ShapeKey:
    if ob.data.shape_keys is None:
        ob.shape_key_add(name="Basis")
    key = ob.shape_key_add(name=name)
    places = np.empty(len(ob.data.vertices) * 3)
    ob.data.vertices.foreach_get("co", places)
    places = places.reshape(-1, 3)
    key.data.foreach_set("co", (places + bend(places)).ravel())
    return key


def flag() -> None:
    """A conversion with a root bone, and settings of the scene that are not the defaults."""
    ob = grid("Flag", 0)
    key = keyed(ob, "Wave", lambda p: np.outer(0.3 * np.sin(2 * p[:, 0]), (0, 0, 1)))
    for frame, value in ((1, 0.0), (8, 1.0)):
        key.value = value
        key.keyframe_insert("value", frame=frame)
    bpy.context.scene.skinning_conversion.bone_count = 7
    bpy.context.scene.skinning_conversion.bone_kind = "RIGID"
    bpy.ops.skinning.convert_animation(bone_count=4, root_bone=True, residual_shapes=1)


def limb(name: str, y: float):
    bpy.ops.mesh.primitive_cylinder_add(vertices=12, radius=0.2, depth=4, location=(0, y, 0))
    ob = bpy.context.active_object
    ob.name = name
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.subdivide(number_cuts=3)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.ops.object.armature_add(location=(0, y, -2))
    rig = bpy.context.active_object
    rig.name = f"{name}_bones"
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones
    bones[0].name, bones[0].tail = "Upper", (0, 0, 2)
    lower = bones.new("Lower")
    lower.head, lower.tail, lower.parent = (0, 0, 2), (0, 0, 4), bones["Upper"]
    bpy.ops.object.mode_set(mode="OBJECT")
    return ob, rig


def activate(ob, *others) -> None:
    bpy.ops.object.select_all(action="DESELECT")
    for each in (ob, *others):
        each.select_set(True)
    bpy.context.view_layer.objects.active = ob


def bound(name: str, y: float):
    ob, rig = limb(name, y)
    activate(rig, ob)
    bpy.ops.skinning.bind(method="DELAUNAY")
    activate(ob)
    return ob, rig


def bend(rig, angle: float) -> None:
    rig.pose.bones["Lower"].rotation_mode = "XYZ"
    rig.pose.bones["Lower"].rotation_euler = (angle, 0, 0)
    bpy.context.view_layer.update()


def corrected() -> None:
    """EigenSkin corrections from two examples."""
    ob, rig = bound("Corrected", 3)
    target = ob.copy()
    target.data = ob.data.copy()
    target.name = "Swollen"
    bpy.context.collection.objects.link(target)
    target.modifiers.new("Swell", "DISPLACE").strength = 0.05
    for angle in (math.radians(60), math.radians(-60)):
        bend(rig, angle)
        activate(ob, target)
        bpy.ops.skinning.eigenskin_add_example(source="MESH")
    bend(rig, 0.0)
    activate(ob)
    bpy.ops.skinning.build_eigenskin(components=1)


def centered() -> None:
    bound("Centered", 6)
    bpy.ops.skinning.bake_rotation_centers()
    bpy.context.scene.skinning_rotation_centers.sigma = 0.2


def linked() -> None:
    """A bone link."""
    _, rig = bound("Linked", 9)
    activate(rig)
    bpy.ops.skinning.add_bone_links(joints="Lower", count=1)


def face() -> None:
    """A face whose sliders move bones."""
    if "skinning_shape_keys" not in bpy.types.Scene.bl_rna.properties:
        return
    ob = grid("Face", 6)
    keyed(ob, "smile", lambda p: np.outer(0.2 * (p[:, 1] < -0.3), (1, 0, 0)))
    keyed(ob, "frown", lambda p: np.outer(0.2 * (p[:, 1] > 0.3), (0, 0, 1)))
    activate(ob)
    bpy.ops.skinning.convert_shape_keys(bone_count=4)


def main(path: Path) -> None:
    sys.path.insert(0, os.getcwd())
    import skinning_tools

    skinning_tools.register()
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 8
    for make in (flag, corrected, centered, linked, face):
        make()
    bpy.ops.wm.save_as_mainfile(filepath=str(path.resolve()), compress=True)
    # Blender's module may crash while it ends.
    sys.stdout.flush()
    os._exit(0)


main(Path(sys.argv[-1]))
