# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits that users make between operators with Blender's own tools, also of the extension's results and notes.

``random_edit`` draws an edit as plain values, ``do`` does it; where it does not apply it does nothing.
"""

from pathlib import Path

import bpy

from skinning_tools.blender.records import RESERVED
from tests.blender import eigenskin_scenes, moving_meshes, scenes, skinned_meshes

MODES = ("OBJECT", "OBJECT", "POSE", "EDIT", "WEIGHT_PAINT", "SCULPT")
MODIFIERS = ("SUBSURF", "MIRROR", "ARRAY", "ARMATURE", "DECIMATE", "MASK", "MESH_CACHE", "NODES")
# Edits of the object, not its data.
_OF_OBJECTS = (
    "activate",
    "mode",
    "frame",
    "delete",
    "pose",
    "transform",
    "hide",
    "duplicate",
    "unlink",
    "select_bones",
)
# Values that replace the extension's notes.
NOTES = (0, -1, 2.5, float("nan"), "text", "", [1, 2, 3], [0.5, float("inf")], ["a", "b"], {}, {"source": 3}, True)


def _moving(folder: Path) -> None:
    moving_meshes.fresh_scene(6)
    moving_meshes.waving_grid("Flag", 5, 4)
    bar = moving_meshes.twisting_bar("Bar")
    bar.location.x = 3


def _converted(folder: Path) -> None:
    _moving(folder)
    scenes_select("Flag")
    bpy.ops.skinning.convert_animation(bone_count=3, iterations=1)


def _rigged(folder: Path) -> None:
    ob, _ = skinned_meshes.rigged_tube(3, 9, 6)
    bpy.ops.skinning.bake_rotation_centers()
    target = ob.copy()
    target.data, target.name = ob.data.copy(), "Target"
    bpy.context.scene.collection.objects.link(target)


def _rig_and_target(folder: Path) -> None:
    """A mesh that a rig is to follow, both selected."""
    ob, rig = skinned_meshes.rigged_tube(3, 9, 6)
    moving_meshes.add_waving_keys(ob)
    ob.select_set(True)
    rig.select_set(True)
    bpy.context.view_layer.objects.active = ob


def _limb(folder: Path) -> None:
    poses = (("lower", "X", -60), ("lower", "X", 60), ("upper", "Y", 50))
    eigenskin_scenes.limb_with_examples(poses, rings=9, segments=6)


def _corrected(folder: Path) -> None:
    _limb(folder)
    bpy.ops.skinning.build_eigenskin(components=2)


def _linked(folder: Path) -> None:
    """A character of another file, one of its objects made an override."""
    ob, rig = skinned_meshes.rigged_tube(3, 9, 6)
    scenes.overridden([ob, rig], folder / "character.blend")


SCENES = {
    "moving": _moving,
    "converted": _converted,
    "rigged": _rigged,
    "rig and target": _rig_and_target,
    "limb": _limb,
    "corrected": _corrected,
    "linked": _linked,
}


def scenes_select(name: str) -> None:
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob.name == name)
    bpy.context.view_layer.objects.active = bpy.data.objects[name]


def random_edit(random) -> list:
    """["edit", name, values …]; random: a numpy Generator."""
    name = str(random.choice(list(_EDITS)))
    objects = [ob.name for ob in bpy.data.objects] or [""]
    values = [str(random.choice(objects)), int(random.integers(1000)), float(random.normal())]
    return ["edit", name, *values]


def do(name: str, object_name: str, number: int, value: float) -> bool:
    """Do the edit; returns whether it did anything. number and value: random input of the edit."""
    ob = bpy.data.objects.get(object_name)
    if ob is None or (name not in _OF_OBJECTS and ob.data is not None and ob.data.library is not None):
        # Python may edit linked data, which no user can; an undo of that crashes Blender.
        return False
    try:
        return _EDITS[name](ob, number, value) is not False
    except (RuntimeError, TypeError, AttributeError, ReferenceError):
        # Blender does not allow it here: linked data, another mode.
        return False


def _of(items, number: int):
    items = list(items)
    return items[number % len(items)] if items else None


def _activate(ob, number, value):
    if ob.name not in bpy.context.view_layer.objects:
        return False
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    if number % 3:
        scenes_select(ob.name)
    else:
        ob.select_set(True)
        bpy.context.view_layer.objects.active = ob
    return True


def _mode(ob, number, value):
    bpy.ops.object.mode_set(mode=MODES[number % len(MODES)])


def _frame(ob, number, value):
    bpy.context.scene.frame_set(number % 9)


def _delete(ob, number, value):
    bpy.data.objects.remove(ob)


def _delete_data(ob, number, value):
    blocks = [*bpy.data.actions, *bpy.data.meshes, *bpy.data.armatures, *bpy.data.node_groups, *bpy.data.collections]
    block = _of(blocks, number)
    if block is None or block.library is not None:
        return False
    bpy.data.batch_remove([block])
    return True


def _rename(ob, number, value):
    block = _of([ob, ob.data, *bpy.data.actions, *bpy.data.collections], number)
    if block is None:
        return False
    block.name = ("Renamed", "Flag_skinned", "Flag_rig", "ä \"'\\ %s {0}", "x" * 63)[number % 5]
    return True


def _rename_part(ob, number, value):
    keys = ob.data.shape_keys.key_blocks if ob.type == "MESH" and ob.data.shape_keys else ()
    bones = ob.data.bones if ob.type == "ARMATURE" else ()
    part = _of([*ob.vertex_groups, *keys, *bones, *ob.modifiers], number)
    if part is None:
        return False
    part.name = ("Renamed", "upper.L", 'a"b', "Bone 1")[number % 4]
    return True


def _remove_modifier(ob, number, value):
    modifier = _of(ob.modifiers, number)
    if modifier is None:
        return False
    ob.modifiers.remove(modifier)
    return True


def _add_modifier(ob, number, value):
    if ob.type != "MESH":
        return False
    modifier = ob.modifiers.new("Added", MODIFIERS[number % len(MODIFIERS)])
    if modifier.type == "ARMATURE":
        modifier.object = _of([each for each in bpy.data.objects if each.type == "ARMATURE"], number)
    return True


def _change_modifier(ob, number, value):
    modifier = _of(ob.modifiers, number)
    if modifier is None:
        return False
    if modifier.type == "ARMATURE" and number % 2:
        modifier.object = None if number % 3 else _of(bpy.data.objects, number)
    else:
        modifier.show_viewport = not modifier.show_viewport
    return True


def _remove_group(ob, number, value):
    group = _of(ob.vertex_groups, number)
    if group is None:
        return False
    ob.vertex_groups.remove(group)
    return True


def _paint(ob, number, value):
    """Weights as painted: single ones, and whole groups that are locked."""
    group = _of(ob.vertex_groups, number)
    if group is None:
        return False
    group.add(list(range(number % 5, len(ob.data.vertices), 3)), min(abs(value), 1.0), "REPLACE")
    group.lock_weight = number % 4 == 0
    return True


def _move_vertices(ob, number, value):
    if ob.type != "MESH":
        return False
    for vertex in list(ob.data.vertices)[number % 7 :: 5]:
        vertex.co.z += value
    ob.data.update()
    return True


def _edit_topology(ob, number, value):
    """Vertices deleted, or all of them."""
    if ob.type != "MESH" or bpy.context.mode != "OBJECT":
        return False
    import bmesh

    mesh = bmesh.new()
    mesh.from_mesh(ob.data)
    kept = 0 if number % 10 == 0 else max(len(mesh.verts) - 1 - number % 4, 0)
    mesh.verts.ensure_lookup_table()
    bmesh.ops.delete(mesh, geom=mesh.verts[kept:], context="VERTS")
    mesh.to_mesh(ob.data)
    mesh.free()
    return True


def _remove_key(ob, number, value):
    keys = ob.data.shape_keys if ob.type == "MESH" else None
    if keys is None or bpy.context.mode != "OBJECT" or ob.name not in bpy.context.view_layer.objects:
        return False
    scenes_select(ob.name)
    ob.active_shape_key_index = number % len(keys.key_blocks)
    # Not Object.shape_key_remove: where the key has a driver, Blender 4.5 and 5.2 crash at the next undo step.
    bpy.ops.object.shape_key_remove()
    return True


def _add_key(ob, number, value):
    if ob.type != "MESH" or not ob.data.vertices:
        return False
    key = ob.shape_key_add(name="Sculpted", from_mix=False)
    key.data[number % len(key.data)].co.z += value
    ob.active_shape_key_index = number % len(ob.data.shape_keys.key_blocks)
    return True


def _pose(ob, number, value):
    bone = _of(ob.pose.bones, number) if ob.pose else None
    if bone is None:
        return False
    bone.rotation_mode = "XYZ"
    bone.rotation_euler[number % 3] = value
    bone.location.x = 0.1 * value
    return True


def _select_bones(ob, number, value):
    if ob.type != "ARMATURE":
        return False
    for index, bone in enumerate(ob.pose.bones):
        # A property of the pose from 5.0 on.
        owner = bone if hasattr(bone, "select") else bone.bone
        owner.select = bool(number >> index & 1)
    ob.data.bones.active = _of(ob.data.bones, number)
    return True


def _remove_bone(ob, number, value):
    if ob.type != "ARMATURE" or ob.name not in bpy.context.view_layer.objects or bpy.context.mode != "OBJECT":
        return False
    scenes_select(ob.name)
    bpy.ops.object.mode_set(mode="EDIT")
    bone = _of(ob.data.edit_bones, number)
    if bone is not None:
        ob.data.edit_bones.remove(bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    return True


def _transform(ob, number, value):
    ob.scale = ((1, 1, 1), (-1, 1, 1), (0, 1, 1), (2, 0.5, 1))[number % 4]
    ob.location.x = value
    return True


def _hide(ob, number, value):
    if number % 2:
        ob.hide_viewport = not ob.hide_viewport
    else:
        ob.hide_set(not ob.hide_get())
    return True


def _duplicate(ob, number, value):
    """Duplicate an object as a user does: the extension's notes are copied, too."""
    copy = ob.copy()
    if number % 2 and ob.data is not None:
        copy.data = ob.data.copy()
    bpy.context.scene.collection.objects.link(copy)
    return True


def _unlink(ob, number, value):
    home = _of(ob.users_collection, number)
    if home is None:
        return False
    home.objects.unlink(ob)
    ob.use_fake_user = True
    return True


def _spoil_note(ob, number, value):
    """A custom property of the extension's changed, or a value within it, or deleted."""
    owners = [each for each in _owners() if any(key.startswith(RESERVED) for key in each.keys())]  # noqa: SIM118
    owner = _of(owners, number)
    if owner is None:
        return False
    key = _of([key for key in owner.keys() if key.startswith(RESERVED)], number // 7)  # noqa: SIM118
    place = owner
    while number % 2 and hasattr(place[key], "to_dict") and len(place[key].keys()):
        place = place[key]
        key = _of(place.keys(), number // 3)
        number //= 2
    if number % 5 == 0:
        del place[key]
    else:
        place[key] = NOTES[number % len(NOTES)]
    return True


def _owners() -> list:
    """All data-blocks and bones that may have the extension's custom properties."""
    blocks = [*bpy.data.objects, *bpy.data.meshes, *bpy.data.armatures, *bpy.data.actions, *bpy.data.node_groups]
    blocks += [*bpy.data.shape_keys, *bpy.data.collections]
    for ob in bpy.data.objects:
        blocks += list(ob.pose.bones) if ob.pose else []
        blocks += list(ob.data.bones) if ob.type == "ARMATURE" else []
    return [block for block in blocks if getattr(block, "library", None) is None]


_EDITS = {
    function.__name__.strip("_"): function
    for function in (
        *(_activate, _activate, _mode, _frame, _delete, _delete_data, _rename, _rename_part, _remove_modifier),
        *(
            _add_modifier,
            _change_modifier,
            _remove_group,
            _paint,
            _move_vertices,
            _edit_topology,
            _remove_key,
            _add_key,
        ),
        *(_pose, _select_bones, _remove_bone, _transform, _hide, _duplicate, _unlink, _spoil_note),
    )
}
