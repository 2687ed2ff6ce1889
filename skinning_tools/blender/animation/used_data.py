# SPDX-License-Identifier: GPL-3.0-or-later
"""The data-blocks that the shape of an object depends on, directly or through others."""

import bpy

# An object does not depend on what these use.
_CONTAINERS = (bpy.types.Scene, bpy.types.WindowManager, bpy.types.WorkSpace, bpy.types.Screen, bpy.types.Library)
# They color a shape and do not change it.
_LOOKS = (bpy.types.Material, bpy.types.World, bpy.types.FreestyleLineStyle)


def dependencies(*objects: bpy.types.Object) -> dict:
    """The objects and all data-blocks that they use, directly or through others, each with its user (None for the
    objects themselves).

    Left out: what only disabled modifiers and muted constraints use, what a library override replaces, custom shapes of
    bones, and materials.
    """
    uses: dict = {}
    for used, users in bpy.data.user_map().items():
        if not isinstance(used, (*_CONTAINERS, *_LOOKS)):
            for user in users:
                uses.setdefault(user, []).append(used)
    found: dict = dict.fromkeys(objects)
    waiting = list(found)
    while waiting:
        user = waiting.pop()
        unused = _unused(user)
        for used in uses.get(user, ()):
            if used not in found and used not in unused:
                found[used] = user
                waiting.append(used)
    return found


def _unused(block: bpy.types.ID) -> set:
    """The data-blocks that ``block`` refers to, but its shape does not depend on."""
    unused = set()
    override = block.override_library
    if override is not None:
        unused |= {override.reference, override.hierarchy_root}
    if not isinstance(block, bpy.types.Object):
        return unused
    parts = [*block.modifiers, *block.constraints]
    if block.pose is not None:
        parts += [constraint for bone in block.pose.bones for constraint in bone.constraints]
        unused |= {bone.custom_shape for bone in block.pose.bones} - {None}
    for part in parts:
        if not _is_on(part):
            unused |= _pointers(part)
    if not unused:
        return unused
    used = {block.data, block.parent}
    for part in parts:
        if _is_on(part):
            used |= _pointers(part)
    if block.animation_data is not None:
        targets = (item for each in block.animation_data.drivers for v in each.driver.variables for item in v.targets)
        used |= {target.id for target in targets}
    return unused - used


def _is_on(part: bpy.types.Modifier | bpy.types.Constraint) -> bool:
    return part.show_viewport if isinstance(part, bpy.types.Modifier) else not part.mute


def _pointers(part: bpy.types.bpy_struct, depth: int = 3) -> set:
    """The data-blocks that a modifier or a constraint refers to, including its nested settings."""
    found = set()
    for name in [each.identifier for each in part.bl_rna.properties if each.type == "POINTER"]:
        value = getattr(part, name) if name != "rna_type" else None
        if isinstance(value, bpy.types.ID):
            found.add(value)
        elif value is not None and depth:
            found |= _pointers(value, depth - 1)
    if isinstance(part, bpy.types.ArmatureConstraint):
        found |= {item.target for item in part.targets} - {None}
    if isinstance(part, bpy.types.NodesModifier) and not hasattr(part, "properties"):
        # Blender before 5.2 stores the group's inputs as custom properties.
        found |= {part[key] for key in tuple(part.keys()) if isinstance(part[key], bpy.types.ID)}
    return found
