# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's state: everything that the interface calls active, selected, shown, or a mode."""

import bpy

from tests.blender import scenes


def whereabouts() -> dict:
    """By object: what of it is active, selected and shown; and the frame, the active object and the selection."""
    view_layer = bpy.context.view_layer
    view_layer.update()
    found = {"user": scenes.ui_state()}
    for ob in view_layer.objects:
        found[ob.name] = {"shown": ob.visible_get(), "mode": ob.mode, **_KINDS.get(ob.type, dict)(ob)}
    return found


def moved(before: dict, after: dict) -> list[tuple]:
    """The changes of everything that existed before: owner, property, before and after."""
    found = [("user", "", before["user"], after["user"])] if before["user"] != after["user"] else []
    for name in before.keys() - {"user"}:
        now = after.get(name, {})
        found += [(name, key, old, now.get(key)) for key, old in before[name].items() if now.get(key) != old]
    return found


def _of_mesh(ob) -> dict:
    mesh = ob.data
    return {
        "modifier": ob.modifiers.active and ob.modifiers.active.name,
        "group": ob.vertex_groups.active and ob.vertex_groups.active.name,
        "key": ob.active_shape_key and ob.active_shape_key.name,
        "color": mesh.color_attributes.active_color and mesh.color_attributes.active_color.name,
        "layer": mesh.uv_layers.active and mesh.uv_layers.active.name,
        "material": ob.active_material_index,
        "vertices": [vertex.select for vertex in mesh.vertices] if ob.mode != "EDIT" else None,
    }


def _of_armature(ob) -> dict:
    bones = ob.data.bones
    return {
        "bone": bones.active and bones.active.name,
        "bones": sorted(bone.name for bone in scenes.selectable(ob) if bone.select),
        "collection": ob.data.collections.active and ob.data.collections.active.name,
        "constraint": [(bone.name, bone.constraints.active and bone.constraints.active.name) for bone in ob.pose.bones],
    }


_KINDS = {"MESH": _of_mesh, "ARMATURE": _of_armature}


def unsettle(ob, rig=None) -> None:
    """Make something other than what Blender itself chooses active and selected."""
    names = [modifier.name for modifier in ob.modifiers]
    for name in ("First", "Last"):
        ob.modifiers.new(name, "TRIANGULATE").show_viewport = False
    ob.modifiers.move(len(names), 0)
    ob.modifiers.active = ob.modifiers["First"]
    ob.vertex_groups.new(name="Mine")
    if len(ob.vertex_groups) > 1:
        ob.vertex_groups.active_index = 1
    mesh = bpy.data.meshes.new("Bystander")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    other = bpy.data.objects.new("Bystander", mesh)
    bpy.context.scene.collection.objects.link(other)
    other.select_set(True)
    if rig is not None:
        rig.data.bones.active = rig.data.bones[-1]
        own = rig.data.collections.new("Mine")
        rig.data.collections.active = own
