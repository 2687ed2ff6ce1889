# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions and their keyframes in bulk, in the layouts of all supported Blender versions.

Up to 4.3 an action holds its curves itself. Since 4.4 the channelbag of a slot holds them, in a layer's strip.
"""

import re
from collections.abc import Callable, Iterable

import bpy
import numpy as np

LINEAR = "LINEAR"
_BONE = re.compile(r'^pose\.bones\["((?:[^"\\]|\\.)*)"\]')
# The values of a keyframe point: names, sizes and types. Types of handles come before handles.
_KEY_VALUES = (
    *((name, 1, np.int32) for name in ("interpolation", "easing", "type", "handle_left_type", "handle_right_type")),
    *((name, 2, np.float32) for name in ("co", "handle_left", "handle_right")),
    *((name, 1, np.float32) for name in ("amplitude", "back", "period")),
)
_COLOR_MODES = {
    "location": "AUTO_RGB",
    "scale": "AUTO_RGB",
    "rotation_euler": "AUTO_RGB",
    "rotation_quaternion": "AUTO_YRGB",
}


def new_action(owner: bpy.types.ID, name: str) -> bpy.types.Action:
    """Make an action for the data-block ``owner`` and assign it; it has no curves yet."""
    action = bpy.data.actions.new(name)
    assign_action(owner, action)
    return action


def assign_action(owner: bpy.types.ID, action: bpy.types.Action) -> None:
    """Assign ``action`` to ``owner``, and its first slot where actions have slots; makes a slot if there is none."""
    animation = owner.animation_data or owner.animation_data_create()
    animation.action = action
    if hasattr(action, "slots"):
        slot = action.slots[0] if len(action.slots) else action.slots.new(id_type=owner.id_type, name=owner.name)
        slot.name_display = owner.name
        animation.action_slot = slot


def curve_container(owner: bpy.types.ID) -> "bpy.types.Action | bpy.types.ActionChannelbag | None":
    """The container of the curves and groups of the owner's action: it has ``.fcurves`` and ``.groups``.

    Makes the container if the action has none yet. None if the owner has no action, or an action without a slot for it.
    """
    animation = owner.animation_data
    action = animation.action if animation else None
    if action is None or not hasattr(action, "slots"):
        return action
    if animation.action_slot is None:
        return None
    layer = action.layers[0] if len(action.layers) else action.layers.new("Layer")
    strip = layer.strips[0] if len(layer.strips) else layer.strips.new(type="KEYFRAME")
    return strip.channelbag(animation.action_slot, ensure=True)


def existing_curves(owner: bpy.types.ID) -> list:
    """The curves that animate ``owner`` through its own action; makes nothing."""
    return [curve for container in existing_containers(owner) for curve in container.fcurves]


def existing_containers(owner: bpy.types.ID) -> list:
    """The containers of the curves that animate ``owner`` through its own action; makes none."""
    animation = owner.animation_data
    action = animation.action if animation else None
    if action is None:
        return []
    if not hasattr(action, "slots"):
        return [action]
    if animation.action_slot is None:
        return []
    return _bags(action, animation.action_slot)


def slot_curves(action: bpy.types.Action, slot: "bpy.types.ActionSlot") -> list:
    """The curves of a slot, in Blender 4.4 and newer."""
    return [curve for bag in _bags(action, slot) for curve in bag.fcurves]


def containers_by_slot(action: bpy.types.Action) -> list[tuple[int, list]]:
    """The handle of each slot, 0 in Blender before 4.4, and the containers of its curves."""
    if not hasattr(action, "slots"):
        return [(0, [action])]
    return [(int(slot.handle), _bags(action, slot)) for slot in action.slots]


def _bags(action: bpy.types.Action, slot: "bpy.types.ActionSlot") -> list:
    bags = (strip.channelbag(slot) for layer in action.layers for strip in layer.strips)
    return [bag for bag in bags if bag is not None]


def remove_curves(owner: bpy.types.ID, unwanted: Callable[[str], bool]) -> None:
    """Remove the curves that animate ``owner`` through its own action and whose data path ``unwanted`` accepts, and
    groups that become empty."""
    for container in existing_containers(owner):
        remove_curves_of(container, unwanted)


def remove_curves_of(
    container: "bpy.types.Action | bpy.types.ActionChannelbag", unwanted: Callable[[str], bool]
) -> None:
    """Remove the curves of a container whose data path ``unwanted`` accepts, and groups that become empty."""
    gone = [curve for curve in container.fcurves if unwanted(curve.data_path)]
    groups = {curve.group.name for curve in gone if curve.group is not None}
    for curve in gone:
        container.fcurves.remove(curve)
    for group in [group for group in container.groups if group.name in groups and not len(group.channels)]:
        container.groups.remove(group)


def copy_action(
    owner: bpy.types.ID, source: bpy.types.ID, name: str, keep: Callable[[str], bool]
) -> bpy.types.Action | None:
    """Give ``owner`` a copy of the action of ``source`` with the curves whose data path ``keep`` accepts.

    Keys, handles, modifiers and extrapolation stay as they are. Returns None, and copies nothing, if the source has no
    such curve. The copy of a linked action is local.
    """
    original = existing_curves(source)
    if not any(keep(curve.data_path) for curve in original):
        return None
    slot = source.animation_data.action_slot if hasattr(source.animation_data.action, "slots") else None
    action = source.animation_data.action.copy()
    try:
        action.name = name
        action.use_fake_user = False
        if action.asset_data is not None:
            action.asset_clear()
        if slot is not None:
            for other in [other for other in action.slots if other.handle != slot.handle]:
                action.slots.remove(other)
        assign_action(owner, action)
        remove_curves(owner, lambda path: not keep(path))
    except BaseException:
        bpy.data.actions.remove(action)
        raise
    return action


def bone_path(name: str) -> str:
    """The beginning of the data paths of a pose bone."""
    return f'pose.bones["{bpy.utils.escape_identifier(name)}"]'


def bone_paths(names: Iterable[str]) -> tuple[str, ...]:
    """The beginnings of the data paths of the pose bones ``names``."""
    return tuple(map(bone_path, names))


def bone_of(path: str) -> str | None:
    """The name of the pose bone that a data path is of, None if it is of none."""
    found = _BONE.match(path)
    return bpy.utils.unescape_identifier(found[1]) if found else None


def key_times(scene: bpy.types.Scene, frame_numbers: np.ndarray) -> np.ndarray:
    """The positions of the scene's frames (F,) on a curve, which differ from the frames only if the scene stretches
    time.

    Blender then evaluates all curves at the stretched time, but counts frames in the scene's time.
    """
    return frame_numbers * time_stretch(scene)


def time_stretch(scene: bpy.types.Scene) -> float:
    """How far a frame of the scene moves on a curve: 1 unless the scene stretches time."""
    return float(scene.render.frame_map_old / scene.render.frame_map_new)


def write_channels(
    container: "bpy.types.Action | bpy.types.ActionChannelbag",
    path: str,
    values: np.ndarray,
    times: np.ndarray,
    group: str,
) -> None:
    """Key the property ``path`` with ``values`` (F, D) at ``times`` (F,), see ``key_times``, linear in between.

    One curve per component; a component that never changes gets a single key. Names the curves' group ``group``.
    """
    channel_group = container.groups.get(group) or container.groups.new(group)
    color_mode = _COLOR_MODES.get(path.rpartition(".")[2], "AUTO_RAINBOW")
    # In Blender's precision, so that "never changes" refers to the stored keys.
    values = np.asarray(values, dtype=np.float32)
    for index, component in enumerate(values.T):
        curve = container.fcurves.new(path, index=index)
        curve.group = channel_group
        curve.color_mode = color_mode
        constant = np.all(component == component[0])
        count = 1 if constant else len(component)
        _set_keys(curve, times[:count], component[:count])


def copy_curve(
    container: "bpy.types.Action | bpy.types.ActionChannelbag", curve: bpy.types.FCurve, path: str, group: str
) -> bpy.types.FCurve:
    """A copy of a curve for the property ``path``, in the curves' group ``group``: keys, handles, extrapolation and
    modifiers stay as they are. Baked samples become linear keys."""
    copy = container.fcurves.new(path, index=curve.array_index)
    copy.group = container.groups.get(group) or container.groups.new(group)
    if len(curve.sampled_points):
        samples = np.array([point.co for point in curve.sampled_points])
        _set_keys(copy, samples[:, 0], samples[:, 1])
    elif len(curve.keyframe_points):
        points, copies = curve.keyframe_points, copy.keyframe_points
        copies.add(len(points))
        for name, width, kind in _KEY_VALUES:
            values = np.empty(width * len(points), kind)
            points.foreach_get(name, values)
            copies.foreach_set(name, values)
    for name in ("extrapolation", "auto_smoothing", "color_mode", "color"):
        setattr(copy, name, getattr(curve, name))
    for modifier in curve.modifiers:
        _copy_modifier(copy, modifier)
    copy.update()
    return copy


def _copy_modifier(curve: bpy.types.FCurve, modifier: bpy.types.FModifier) -> None:
    copy = curve.modifiers.new(modifier.type)
    # First what decides how many coefficients there are.
    names = [each.identifier for each in modifier.bl_rna.properties if not each.is_readonly]
    for name in sorted(names, key=lambda each: each != "poly_order"):
        setattr(copy, name, getattr(modifier, name))
    points = getattr(modifier, "control_points", ())
    for point in points:
        copy.control_points.add(point.frame)
    for name in ("min", "max") if len(points) else ():
        # Blender may crash where a single point's value is set: it takes the point for a modifier.
        copy.control_points.foreach_set(name, [getattr(point, name) for point in points])


def hold_curve(
    container: "bpy.types.Action | bpy.types.ActionChannelbag", curve: bpy.types.FCurve, time: float, at: float
) -> None:
    """Key the property of ``curve`` at ``time`` with the value that the curve has ``at`` another time."""
    held = container.fcurves.new(curve.data_path, index=curve.array_index)
    if curve.group is not None:
        held.group = container.groups.get(curve.group.name) or container.groups.new(curve.group.name)
    held.color_mode = curve.color_mode
    _set_keys(held, np.array([time]), np.array([curve.evaluate(at)]))


def strip_curves(animation: bpy.types.AnimData) -> list:
    """The curves of the ``playing_strips``."""
    containers = [container for strip in playing_strips(animation) for container in strip_containers(strip)]
    return [curve for container in containers for curve in container.fcurves]


def playing_strips(animation: bpy.types.AnimData) -> list[bpy.types.NlaStrip]:
    """The NLA strips of ``animation`` whose actions are played, in groups of strips, too; none if it plays no NLA."""
    if not animation.use_nla:
        return []
    tracks = [track for track in animation.nla_tracks if not track.mute]
    solo = [track for track in tracks if track.is_solo]
    return _action_strips(solo or tracks, lambda strip: not strip.mute)


def own_strips(owner: bpy.types.ID) -> list[bpy.types.NlaStrip]:
    """The NLA strips of ``owner`` that play an action, in groups of strips, too; not those of a library's tracks."""
    tracks = owner.animation_data.nla_tracks if owner.animation_data is not None else ()
    return _action_strips([track for track in tracks if not track.is_override_data], lambda strip: True)


def _action_strips(
    tracks: Iterable[bpy.types.NlaTrack], counts: Callable[[bpy.types.NlaStrip], bool]
) -> list[bpy.types.NlaStrip]:
    """The strips of an action that ``counts``, in groups that count, too."""
    waiting, found = [strip for track in tracks for strip in track.strips], []
    while waiting:
        strip = waiting.pop(0)
        if counts(strip):
            waiting += strip.strips
            found += [strip] if strip.action is not None else []
    return found


def played_slots(owner: bpy.types.ID) -> set[tuple[bpy.types.Action, int]]:
    """What ``owner`` plays by its action and the strips of its own tracks: actions and handles as in ``strip_slot``."""
    found = {(strip.action, strip_slot(strip)) for strip in own_strips(owner)}
    animation = owner.animation_data
    if animation is not None and animation.action is not None:
        found.add((animation.action, animation.action_slot_handle if hasattr(animation.action, "slots") else 0))
    return found


def strip_slot(strip: bpy.types.NlaStrip) -> int:
    """The handle of the slot that the strip plays; 0 in Blender before 4.4, and without a slot."""
    slot = getattr(strip, "action_slot", None)
    return int(slot.handle) if slot is not None else 0


def set_strip_action(strip: bpy.types.NlaStrip, action: bpy.types.Action, slot: int) -> None:
    """Let the strip play the action's slot of that handle, if any, in the same place."""
    strip.action = action
    if slot:
        strip.action_slot = next(each for each in action.slots if each.handle == slot)


def strip_containers(strip: bpy.types.NlaStrip) -> list:
    """The containers of the curves that an NLA strip plays."""
    action = strip.action
    if action is None or not hasattr(action, "slots"):
        return [] if action is None else [action]
    return _bags(action, strip.action_slot) if strip.action_slot is not None else []


def keep_keys(curve: bpy.types.FCurve, rows: np.ndarray) -> None:
    """Remove all keys of a curve except those at the indices ``rows``, ascending; linear as in ``write_channels``."""
    points = curve.keyframe_points
    keys = np.empty((len(points), 2), dtype=np.float32)
    points.foreach_get("co", keys.ravel())
    points.clear()
    _set_keys(curve, keys[rows, 0], keys[rows, 1])


def _set_keys(curve: bpy.types.FCurve, times: np.ndarray, values: np.ndarray) -> None:
    points = curve.keyframe_points
    points.add(len(times))
    points.foreach_set("co", np.column_stack([times, values]).astype(np.float32).ravel())
    # Keys made in bulk are constant and have free handles of length zero, useless if someone makes them Bézier later.
    for name, identifier in (
        ("interpolation", LINEAR),
        ("handle_left_type", "AUTO_CLAMPED"),
        ("handle_right_type", "AUTO_CLAMPED"),
    ):
        value = bpy.types.Keyframe.bl_rna.properties[name].enum_items[identifier].value
        points.foreach_set(name, np.full(len(times), value, dtype=np.int32))
    curve.update()


def property_path(name: str) -> str:
    """The data path of a custom property."""
    return f'["{bpy.utils.escape_identifier(name)}"]'


def value_path(name: str) -> str:
    """The data path of a shape key's value."""
    return f'key_blocks["{bpy.utils.escape_identifier(name)}"].value'
