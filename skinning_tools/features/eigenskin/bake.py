# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of an EigenSkin's shape keys as keyframes, for players of morph targets without drivers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.actions import property_path, value_path
from ...blender.animation.frame_range import frame_range
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.character import character_of
from ...blender.preconditions import check_not_tweaked, foreign, object_label, unmet
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.wording import counted
from ...core.errors import BadScene
from .drivers import NORMALS, PREFIX
from .record import Record, own_drivers, own_keys, present_record, store_record

# The group of the curves in their action.
CURVE_GROUP = "EigenSkin"

# A suffix for the paths of an earlier bake's curves, until the new ones are finished.
_SET_ASIDE = ".earlier"


@dataclass(frozen=True)
class Baked:
    """A finished bake."""

    object_name: str
    shape_key_count: int
    frame_count: int
    action: bpy.types.Action
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """The result in one line."""
        text = (
            f'{self.object_name}: {counted(self.shape_key_count, "shape key")} keyed in action "{self.action.name}" at '
            f"{counted(self.frame_count, 'frame')}, drivers muted"
        )
        return "; ".join([text, *self.notes])


def check_bakeable(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raise BadScene with the reason if keyframes cannot be made. Cheap enough for a panel."""
    mesh_object = character_of(context, active)
    record = present_record(mesh_object)
    key = mesh_object.data.shape_keys
    animation = key.animation_data if key is not None else None
    if animation is None:
        return
    label = f"the shape keys of {object_label(mesh_object)}"
    check_not_tweaked(animation, label)
    action = animation.action
    if action is None:
        return
    if foreign(action):
        raise unmet("LINKED_ACTION", action=action.name, owner=label, work="nothing can be keyed in it")
    if hasattr(action, "slots") and animation.action_slot is None:
        raise BadScene(f'The action "{action.name}" of {label} has no slot for them. Choose one, or unlink the action')
    if record.baked:
        return
    taken = {value_path(block.name) for block in own_keys(mesh_object.data, record)}
    found = next((curve.data_path for curve in actions.existing_curves(key) if curve.data_path in taken), None)
    if found is not None:
        raise BadScene(
            f'The action "{action.name}" of {label} already has keyframes of {found}. Delete that channel: until now, '
            "the driver kept it from playing"
        )


def bake_to_keyframes(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    frame_start: int | None = None,
    frame_end: int | None = None,
    frame_step: int = 1,
) -> background.Steps:
    """Generator: key the corrections' shape keys at each frame and mute their drivers, until ``unbake``. The drivers of
    the normals, whose values have no keyframes, stay at work.

    Yields (fraction, stage), returns Baked. Frames: the scene's range if None, including the last one. Keyframes of
    an earlier bake are replaced. All or nothing. Raises BadScene, BadSettings.
    """
    check_bakeable(context, active)
    mesh_object = character_of(context, active)
    numbers = frame_range(context.scene, frame_start, frame_end, frame_step)
    mesh = mesh_object.data
    key, record = mesh.shape_keys, present_record(mesh_object)
    names = [block.name for block in own_keys(mesh, record)]
    if not names:
        raise BadScene(f"The corrections of {object_label(mesh_object)} have lost their shape keys. Build them again")
    rows = [key.key_blocks.find(name) for name in names]
    values = np.empty((len(numbers), len(names)), np.float32)
    every = np.empty(len(key.key_blocks), np.float32)
    # Except for drivers muted by an earlier bake.
    omissions = Omissions(context, [], numbers, [mesh_object])
    with _drivers_at_work(mesh_object, record), temporary_scene(context.scene, [mesh_object]) as scene:
        for row, number in enumerate(numbers):
            depsgraph = evaluate_frame(scene, number)
            evaluated = key.evaluated_get(depsgraph)
            evaluated.key_blocks.foreach_get("value", every)
            values[row] = every[rows]
            yield 0.95 * (row + 1) / len(numbers), f"Reading frame {number}"
        omissions.look_at_drivers(depsgraph)
    yield 0.95, "Writing keyframes"
    times = actions.key_times(context.scene, np.array(numbers, dtype=np.float64))
    try:
        with _earlier_set_aside(mesh, record):
            _write(mesh_object, record, names, values, times)
    finally:
        store_record(mesh, record)
    return Baked(mesh_object.name, len(names), len(numbers), key.animation_data.action, texts_of(omissions.finish()))


def unbake(mesh_object: bpy.types.Object) -> None:
    """Delete the keyframes and unmute the drivers. Raises BadScene if there are no keyframes."""
    record = present_record(mesh_object)
    if not record.baked:
        raise BadScene(f"The corrections of {object_label(mesh_object)} are not baked to keyframes")
    take_keyframes_away(mesh_object.data, record)
    store_record(mesh_object.data, record)


def take_keyframes_away(mesh: bpy.types.Mesh, record: Record) -> None:
    """Undo a bake, if there is one, and update ``record``."""
    key = mesh.shape_keys
    if not record.baked or key is None:
        return
    paths = {value_path(block.name) for block in own_keys(mesh, record)}
    container = actions.curve_container(key)
    if container is not None:
        for curve in [curve for curve in container.fcurves if curve.data_path in paths]:
            container.fcurves.remove(curve)
        group = container.groups.get(CURVE_GROUP)
        if group is not None and not len(group.channels):
            container.groups.remove(group)
        action = key.animation_data.action
        if record.made_action and not len(container.fcurves):
            key.animation_data.action = None
            if not action.users:
                bpy.data.actions.remove(action)
    _mute(own_drivers(mesh, record), False)
    record.baked = record.made_action = False


@contextmanager
def _earlier_set_aside(mesh: bpy.types.Mesh, record: Record) -> Iterator[None]:
    """Context in which an earlier bake's keyframes make room for new ones. They are removed at the end; after an
    exception, the new ones are removed and the earlier ones restored."""
    key = mesh.shape_keys
    paths = {value_path(block.name) for block in own_keys(mesh, record)}
    earlier = [curve for curve in actions.existing_curves(key) if curve.data_path in paths] if record.baked else []
    for curve in earlier:
        curve.data_path += _SET_ASIDE
    try:
        yield
    except BaseException:
        if earlier:
            container = actions.curve_container(key)
            assert container is not None
            for curve in [curve for curve in container.fcurves if curve.data_path in paths]:
                container.fcurves.remove(curve)
            for curve in earlier:
                curve.data_path = curve.data_path.removesuffix(_SET_ASIDE)
        else:
            record.baked = True
            take_keyframes_away(mesh, record)
        raise
    container = actions.curve_container(key)
    assert container is not None
    for curve in earlier:
        container.fcurves.remove(curve)


def _write(
    mesh_object: bpy.types.Object, record: Record, names: Sequence[str], values: np.ndarray, times: np.ndarray
) -> None:
    key = mesh_object.data.shape_keys
    if key.animation_data.action is None:
        record.made_action = True
        actions.new_action(key, f"{mesh_object.name} corrections")
    container = actions.curve_container(key)
    for name, column in zip(names, values.T, strict=True):
        actions.write_channels(container, value_path(name), column[:, None], times, CURVE_GROUP)
    _mute(_drivers_of_keys_alone(mesh_object.data, record), True)
    record.baked = True


def _drivers_of_keys_alone(mesh: bpy.types.Mesh, record: Record) -> list[bpy.types.FCurve]:
    """The drivers of the shape keys and of what they read, except those that the values of the normals read."""
    sources: dict[str, bpy.types.FCurve] = {}
    others = []
    for curve in own_drivers(mesh, record):
        if any(curve.data_path == property_path(name) for name in record.properties):
            sources[f"{curve.data_path}[{curve.array_index}]"] = curve
        else:
            others.append(curve)
    normals = tuple(property_path(name) for name in record.properties if name.startswith(PREFIX + NORMALS))
    open_paths = {path for path in sources if path.startswith(normals)}
    while open_paths:
        curve = sources.pop(open_paths.pop())
        read = {target.data_path for variable in curve.driver.variables for target in variable.targets}
        open_paths |= read & sources.keys()
    return [*others, *sources.values()]


@contextmanager
def _drivers_at_work(mesh_object: bpy.types.Object, record: Record) -> Iterator[None]:
    """Context in which the drivers are not muted."""
    drivers = own_drivers(mesh_object.data, record)
    muted = [curve for curve in drivers if curve.mute]
    _mute(muted, False)
    try:
        yield
    finally:
        _mute(muted, True)


def _mute(curves: Sequence[bpy.types.FCurve], mute: bool) -> None:
    for curve in curves:
        curve.mute = mute
