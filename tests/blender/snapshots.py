# SPDX-License-Identifier: GPL-3.0-or-later
"""All data of a mesh object that writing to it and removing this again must not change."""

import bpy

from skinning_tools.blender import actions
from tests.blender import refusals, scenes


def snapshot(ob) -> dict:
    """Everything that writing and removing must not change."""
    mesh = ob.data
    key = mesh.shape_keys
    return {
        "file": scenes.data_blocks(),
        "user": scenes.ui_state(),
        "properties": [sorted(block.keys()) for block in (ob, mesh, *([key] if key else []))],
        "groups": [(group.name, group.lock_weight) for group in ob.vertex_groups],
        "active group": ob.vertex_groups.active_index,
        "weights": [[(entry.group, entry.weight) for entry in vertex.groups] for vertex in mesh.vertices],
        "attributes": [(attribute.name, attribute.data_type) for attribute in mesh.attributes],
        "positions": [tuple(vertex.co) for vertex in mesh.vertices],
        "modifiers": [(modifier.name, modifier.show_viewport) for modifier in ob.modifiers],
        "volume": [modifier.use_deform_preserve_volume for modifier in ob.modifiers if modifier.type == "ARMATURE"],
        "active key": ob.active_shape_key_index,
        "keys": [_settings(block) for block in key.key_blocks] if key else None,
        "animation": _animation(key) if key and key.animation_data else None,
    }


def _settings(block) -> tuple:
    return (
        block.name, block.value, block.mute, block.vertex_group, block.slider_min, block.slider_max, block.lock_shape,
        block.relative_key.name, [tuple(point.co) for point in block.points],
    )  # fmt: skip


def _animation(key) -> tuple:
    animation = key.animation_data
    drivers = [
        (curve.data_path, curve.driver.expression, curve.mute, [variable.name for variable in curve.driver.variables])
        for curve in animation.drivers
    ]
    container = actions.curve_container(key)
    curves = [(curve.data_path, len(curve.keyframe_points)) for curve in container.fcurves] if container else []
    groups = container.groups.keys() if container else []
    return animation.action, curves, groups, [track.name for track in animation.nla_tracks], drivers


def artists_keys(ob, rig) -> None:
    """Shape keys with a driver, an action and a strip."""
    smile, frown, other = scenes.shape_keys(ob)
    smile.name, frown.name, other.name = "Smile", "upper 1", "Other"
    frown.vertex_group, other.relative_key, other.slider_max = "upper", smile, 2.0
    key = ob.data.shape_keys
    driver = key.driver_add('key_blocks["Smile"].value').driver
    variable = driver.variables.new()
    variable.type, variable.name = "TRANSFORMS", "turn"
    target = variable.targets[0]
    target.id, target.bone_target, target.transform_type, target.transform_space = rig, "lower", "ROT_X", "LOCAL_SPACE"
    driver.expression = "0.5 * turn"
    frown.value = 0.2
    frown.keyframe_insert("value", frame=1)
    frown.value = 0.9
    frown.keyframe_insert("value", frame=9)
    action = key.animation_data.action
    key.animation_data.nla_tracks.new().strips.new("Strip", 20, action)
    key["note"] = "mine"
    bpy.context.scene.frame_set(5)
    ob.active_shape_key_index = 2


def without_properties(ob) -> dict:
    """The snapshot but for the properties: Blender keeps lists of the tools' panels among these in some versions."""
    return {name: value for name, value in snapshot(ob).items() if name != "properties"}


def refused(ob, operator, *parts: str, **given) -> None:
    """``refusals.refused`` for a tool that works on one mesh object: nothing of it is changed."""
    refusals.refused(operator, *parts, state=lambda: without_properties(ob), **given)
