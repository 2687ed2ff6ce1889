# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of a .blend file as plain values, to compare it before and after an operator or its undo."""

import hashlib

import bpy
import numpy as np

from skinning_tools.blender.records import RESERVED

# Data of the program or of windows.
NOT_OF_THE_FILE = {
    "all_ids",
    "libraries",
    "window_managers",
    "screens",
    "workspaces",
    "brushes",
    "palettes",
    "linestyles",
}
# Properties that derive from other values, or that change when they are read.
NOT_OF_A_THING = {"rna_type", "is_evaluated", "session_uid", "original", "users", "tag", "is_updated", "id_data"} | {
    "is_updated_data", "execution_time", "bl_idname", "active", "active_index", "is_active", "persistent_uid"
}  # fmt: skip


def file_state() -> dict[str, object]:
    """By "collection/name", and "ui" for where the user is: text that is the same for the same content."""
    state: dict[str, object] = {"ui": _ui()}
    for kind in _collections():
        for block in getattr(bpy.data, kind):
            if block.library is None:
                state[f"{kind}/{block.name}"] = _content(block)
    return state


def differences(before: dict, after: dict) -> list[str]:
    """The differences: added, removed and changed."""
    found = [f"+ {name}" for name in after.keys() - before.keys()] + [
        f"- {name}" for name in before.keys() - after.keys()
    ]
    for name in before.keys() & after.keys():
        one, other = before[name], after[name]
        if one != other:
            parts = [key for key in (one | other) if one.get(key) != other.get(key)]
            found.append(f"{name}: {', '.join(f'{part} {one.get(part)} → {other.get(part)}' for part in parts[:4])}")
    return sorted(found)


def orphans() -> set[str]:
    """Data-blocks that nothing uses and that would be lost with the file."""
    kinds = (kind for kind in _collections() if kind not in {"scenes", "libraries", "images", "texts"})
    return {f"{kind}/{block.name}" for kind in kinds for block in getattr(bpy.data, kind) if block.users == 0}


def not_numbers() -> list[str]:
    """Where a mesh, its weights, a bone or a curve has NaN or infinity."""
    found = []
    for mesh in bpy.data.meshes:
        if not mesh.is_editmode and not np.isfinite(_read(mesh.vertices, "co", 3)).all():
            found.append(mesh.name)
        keys = mesh.shape_keys.key_blocks if mesh.shape_keys else ()
        found += [f"{mesh.name} {key.name}" for key in keys if not np.isfinite(_read(key.data, "co", 3)).all()]
    for ob in bpy.data.objects:
        bones = ob.pose.bones if ob.pose else ()
        found += [f"{ob.name} {bone.name}" for bone in bones if not np.isfinite(np.array(bone.matrix_basis)).all()]
        if ob.type == "MESH" and not ob.data.is_editmode:
            weights = [group.weight for vertex in ob.data.vertices for group in vertex.groups]
            if not (np.isfinite(weights).all() and (np.array(weights) >= 0).all()):
                found.append(f"weights of {ob.name}")
    for action in bpy.data.actions:
        for curve in curves_of(action):
            if not np.isfinite(_read(curve.keyframe_points, "co", 2)).all():
                found.append(f"{action.name} {curve.data_path}")
    return found


def curves_of(action) -> list:
    """All curves of an action, in any version."""
    if not hasattr(action, "layers"):
        return list(action.fcurves)
    bags = [bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags]
    return [curve for bag in bags for curve in bag.fcurves]


def _collections() -> list[str]:
    properties = bpy.data.bl_rna.properties
    return [
        each.identifier for each in properties if each.type == "COLLECTION" and each.identifier not in NOT_OF_THE_FILE
    ]


def _ui() -> dict[str, object]:
    scene, view_layer = bpy.context.scene, bpy.context.view_layer
    active = view_layer.objects.active
    return {
        "frame": (scene.frame_current, scene.frame_subframe),
        "active": active and active.name,
        "mode": active and active.mode,
        "selected": sorted(ob.name for ob in view_layer.objects if ob.select_get()),
        "hidden": sorted(ob.name for ob in view_layer.objects if ob.hide_get()),
    }


def _content(block) -> dict[str, object]:
    parts: dict[str, object] = {"notes": _notes(block)}
    for prop in block.bl_rna.properties:
        if prop.identifier.startswith(RESERVED):
            parts[prop.identifier] = _group(getattr(block, prop.identifier))
    if getattr(block, "animation_data", None) is not None:
        data = block.animation_data
        parts["action"] = data.action and data.action.name
        parts["drivers"] = sorted(
            (curve.data_path, curve.array_index, curve.driver.expression) for curve in data.drivers
        )
        parts["tracks"] = [track.name for track in data.nla_tracks]
    reader = _READERS.get(type(block).__name__)
    if reader is not None:
        parts |= reader(block)
    # As text: a Blender value that an undo removes could no longer be compared.
    return {name: repr(value) for name, value in parts.items()}


def _object(ob) -> dict[str, object]:
    bones = ob.pose.bones if ob.pose else ()
    return {
        "data": ob.data and ob.data.name,
        "parent": (ob.parent and ob.parent.name, ob.parent_type, ob.parent_bone),
        "matrix": _hash(np.array(ob.matrix_basis)),
        "groups": [(group.name, group.lock_weight) for group in ob.vertex_groups],
        "modifiers": [(each.name, _settings(each)) for each in ob.modifiers],
        "constraints": [(each.name, _settings(each)) for each in ob.constraints],
        "poses": [(bone.name, _hash(np.array(bone.matrix_basis)), _notes(bone)) for bone in bones],
        "bone constraints": [(bone.name, each.name, _settings(each)) for bone in bones for each in bone.constraints],
        "collections": sorted(home.name for home in ob.users_collection),
        "shown": (ob.hide_viewport, ob.hide_render, ob.show_only_shape_key, ob.active_shape_key_index),
    }


def _mesh(mesh) -> dict[str, object]:
    if mesh.is_editmode:
        return {"edit mode": True}
    return {
        "positions": _hash(_read(mesh.vertices, "co", 3)),
        "faces": _hash(_read(mesh.loops, "vertex_index", 1, np.int32)),
        "weights": _hash(np.array([(v.index, g.group, g.weight) for v in mesh.vertices for g in v.groups], np.float32)),
        "attributes": sorted((each.name, each.domain, each.data_type) for each in mesh.attributes),
        "materials": [material and material.name for material in mesh.materials],
    }


def _shape_keys(keys) -> dict[str, object]:
    return {
        "blocks": [(k.name, k.value, k.mute, k.vertex_group, _hash(_read(k.data, "co", 3))) for k in keys.key_blocks]
    }


def _armature(armature) -> dict[str, object]:
    return {
        "bones": [
            (
                bone.name,
                bone.parent and bone.parent.name,
                bone.use_deform,
                _hash(np.array(bone.matrix_local)),
                _notes(bone),
            )
            for bone in armature.bones
        ],
        "collections": [(home.name, len(home.bones)) for home in armature.collections],
        "pose": armature.pose_position,
    }


def _action(action) -> dict[str, object]:
    keys = [(c.data_path, c.array_index, _hash(_read(c.keyframe_points, "co", 2))) for c in curves_of(action)]
    return {"curves": sorted(keys), "markers": [(each.name, each.frame) for each in action.pose_markers]}


def _nodes(tree) -> dict[str, object]:
    return {"nodes": sorted(node.name for node in tree.nodes), "links": len(tree.links)}


def _collection(collection) -> dict[str, object]:
    return {"objects": sorted(ob.name for ob in collection.objects), "children": sorted(collection.children.keys())}


def _scene(scene) -> dict[str, object]:
    return {"range": (scene.frame_start, scene.frame_end), "root": _collection(scene.collection)}


_READERS = {
    "Object": _object,
    "Mesh": _mesh,
    "Key": _shape_keys,
    "Armature": _armature,
    "Action": _action,
    "GeometryNodeTree": _nodes,
    "Collection": _collection,
    "Scene": _scene,
}


def _settings(thing) -> list[tuple[str, object]]:
    """The plain properties of a modifier or a constraint, and what it points at."""
    found = []
    for prop in thing.bl_rna.properties:
        if prop.identifier in NOT_OF_A_THING or prop.type == "COLLECTION" or getattr(prop, "is_array", False):
            continue
        value = getattr(thing, prop.identifier)
        found.append((prop.identifier, getattr(value, "name", "") if prop.type == "POINTER" else value))
    return found


def _group(group) -> object:
    """A property group's values, with those in it."""
    if isinstance(group, bpy.types.ID):
        return group.name
    if isinstance(group, bpy.types.bpy_prop_collection):
        return [_group(item) for item in group]
    if not hasattr(group, "bl_rna"):
        return group
    values = {}
    for prop in group.bl_rna.properties:
        if prop.identifier in NOT_OF_A_THING:
            continue
        value = getattr(group, prop.identifier)
        if prop.type == "COLLECTION":
            values[prop.identifier] = [_group(item) for item in value]
        elif prop.type == "POINTER":
            values[prop.identifier] = _group(value)
        else:
            values[prop.identifier] = list(value) if getattr(prop, "is_array", False) else value
    return values


def _notes(owner) -> dict[str, str]:
    """Custom properties. Before 5.0 the registered ones were among them, and came to be when they were looked at."""
    own = sorted(set(owner.keys()) - set(owner.bl_rna.properties.keys()))
    return {key: repr(_plain(owner[key])) for key in own}


def _plain(value):
    for change in ("to_dict", "to_list"):
        if hasattr(value, change):
            return getattr(value, change)()
    return value


def _read(items, name: str, width: int, dtype=np.float32) -> np.ndarray:
    values = np.empty(len(items) * width, dtype)
    items.foreach_get(name, values)
    return values


def _hash(values: np.ndarray) -> str:
    return hashlib.sha1(np.ascontiguousarray(values).tobytes(), usedforsecurity=False).hexdigest()[:12]
