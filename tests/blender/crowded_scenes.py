# SPDX-License-Identifier: GPL-3.0-or-later
"""A character with everything that the extension makes, among many other objects of every kind and state."""

import bpy

from tests.blender import eigenskin_scenes, moving_meshes, scenes

POSES = (("lower", "X", -60), ("lower", "X", 60), ("upper", "Y", 50))
# What a crowd is made of, in turn.
KINDS = ("plain", "modified", "rigged", "child", "empty", "armature", "instance", "curve", "light", "linked")
# The active object and its mode.
STATES = (
    ("Limb rig", "OBJECT"),
    ("Limb rig", "POSE"),
    ("Limb rig", "EDIT"),
    ("Limb", "OBJECT"),
    ("Limb", "EDIT"),
    ("Limb", "WEIGHT_PAINT"),
    ("Flag", "OBJECT"),
    ("Flag_skinned", "OBJECT"),
    ("Flag_rig", "POSE"),
    ("Other 0", "OBJECT"),
    ("Other 4", "OBJECT"),
)


def character(rings=9, segments=6) -> None:
    """A limb with examples and corrections, baked centers, figures of a compression and helpers at its joints, and a
    flag with its conversion. Needs the extension."""
    limb, _ = eigenskin_scenes.limb_with_examples(POSES, rings=rings, segments=segments)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, 6
    bpy.ops.skinning.build_eigenskin(components=2)
    bpy.ops.skinning.bake_rotation_centers()
    bpy.ops.skinning.add_bone_links(joints="lower")
    bpy.ops.skinning.find_rogue_weights()
    bpy.ops.skinning.compress_weights(frame_start=1, frame_end=2)
    flag = moving_meshes.waving_grid("Flag", 5, 4)
    flag.location.x = 4
    bpy.ops.skinning.convert_animation(bone_count=3, iterations=1)
    activate(limb)


def add_crowd(count: int, path) -> None:
    """``count`` objects "Other 0" to … in collections of the scene; path: of a .blend file for the linked ones."""
    home = bpy.data.collections.new("Crowd")
    bpy.context.scene.collection.children.link(home)
    mesh = bpy.data.meshes.new("Other")
    mesh.from_pydata([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0)], [], [(0, 1, 2)])
    armature = bpy.data.armatures.new("Other")
    curve, light = bpy.data.curves.new("Other", "CURVE"), bpy.data.lights.new("Other", "POINT")
    shown = bpy.data.collections.new("Shown")
    shown.objects.link(bpy.data.objects.new("Shown", mesh))
    rigs = [bpy.data.objects.new("Other rig", armature)]
    home.objects.link(rigs[0])
    linked = _linked(mesh, [f"Other {index}" for index in range(count) if _kind(index) == "linked"], path)
    data = dict.fromkeys(("plain", "modified", "rigged", "child"), mesh)
    data |= {"armature": armature, "curve": curve, "light": light}
    last = rigs[0]
    for index in range(count):
        name, kind = f"Other {index}", _kind(index)
        if kind == "linked":
            home.objects.link(linked[name])
            continue
        ob = bpy.data.objects.new(name, data.get(kind))
        home.objects.link(ob)
        if kind == "modified":
            ob.modifiers.new("Subdivision", "SUBSURF").show_viewport = False
            ob.modifiers.new("Mirror", "MIRROR").show_viewport = False
        elif kind == "rigged":
            ob.modifiers.new("Armature", "ARMATURE").object = rigs[0]
        elif kind == "child":
            ob.parent = last
        elif kind == "instance":
            ob.instance_type, ob.instance_collection = "COLLECTION", shown
        last = ob
    bpy.context.view_layer.update()


def _kind(index: int) -> str:
    return KINDS[index % len(KINDS)]


def _linked(mesh, names: list[str], path) -> dict:
    """Objects that are linked from another file, by name."""
    made = {bpy.data.objects.new(name, mesh.copy()) for name in names}
    bpy.data.libraries.write(str(path), made)
    bpy.data.batch_remove(made)
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.objects = list(names)
    return {ob.name: ob for ob in wanted.objects}


def activate(ob, mode: str = "OBJECT") -> None:
    """Select the object alone, in a mode."""
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    for other in list(bpy.context.view_layer.objects.selected):
        other.select_set(False)
    ob.select_set(True)
    bpy.context.view_layer.objects.active = ob
    if mode != "OBJECT":
        bpy.ops.object.mode_set(mode=mode)


def enter(name: str, mode: str) -> None:
    """One of STATES."""
    activate(bpy.data.objects[name], mode)
    scenes.select_bones(bpy.data.objects["Limb rig"], "lower")
