# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers that Blender computes without Python: sums, and simple expressions of properties and bones' rotations."""

import bpy


def new_driver(owner: bpy.types.bpy_struct, path: str, index: int = -1, kind: str = "SCRIPTED") -> bpy.types.Driver:
    """A driver of the property ``path`` of ``owner``, without the curve that Blender adds by default."""
    curve = owner.driver_add(path, index)
    for modifier in list(curve.modifiers):
        curve.modifiers.remove(modifier)
    curve.keyframe_points.clear()
    curve.driver.type = kind
    return curve.driver


def read_property(driver: bpy.types.Driver, name: str, source: bpy.types.ID, path: str) -> None:
    """Give the driver a variable for the property ``path`` of a data-block."""
    variable = driver.variables.new()
    variable.name, variable.type = name, "SINGLE_PROP"
    target = variable.targets[0]
    target.id_type, target.id, target.data_path = source.id_type, source, path


def read_rotation(driver: bpy.types.Driver, name: str, armature: bpy.types.Object, bone: str, channel: str) -> None:
    """Give the driver a variable for a channel, W X Y Z, of a bone's rotation against its parent, in the pose after
    constraints: independent of rotation mode and Euler limits."""
    variable = driver.variables.new()
    variable.name, variable.type = name, "TRANSFORMS"
    target = variable.targets[0]
    target.id, target.bone_target = armature, bone
    target.transform_type, target.rotation_mode = f"ROT_{channel}", "QUATERNION"
    target.transform_space = "LOCAL_SPACE"


def follow_property(owner: bpy.types.bpy_struct, path: str, source: bpy.types.ID, source_path: str) -> None:
    """Drive the property ``path`` of ``owner`` by that of a data-block."""
    read_property(new_driver(owner, path, kind="SUM"), "var", source, source_path)
