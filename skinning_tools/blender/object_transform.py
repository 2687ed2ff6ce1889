# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives one object the animated transform of another, without a dependency between them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import bpy
import numpy as np

from ..core.affine_chain import scaled_channels
from ..core.errors import BadScene
from . import actions
from .animation.frame_guard import frame_kept
from .temporary_scene import evaluate_frame, temporary_scene

_VALUES = (
    "location",
    "rotation_euler",
    "rotation_quaternion",
    "rotation_axis_angle",
    "scale",
    "delta_location",
    "delta_rotation_euler",
    "delta_rotation_quaternion",
    "delta_scale",
)
_ROTATIONS = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
_PARENTING = ("parent_bone", "parent_vertices", "use_parent_final_indices", "matrix_parent_inverse")
_TOLERANCE = 1e-5
_DISTANCE_TOLERANCE = 1e-6


def inherit_transform(
    context: bpy.types.Context,
    source: bpy.types.Object,
    target: bpy.types.Object,
    action_name: str,
    frame_numbers: np.ndarray,
) -> bpy.types.Action:
    """Make ``target`` coincide with ``source`` in world space at every one of ``frame_numbers``.

    Copies parent, transform, constraints, drivers and the transform's curves, the curves into a new action
    ``action_name`` of ``target``, which is always made, and returned. Then compares both objects in Blender's
    evaluation. If they differ (NLA, drivers that read the source), keys the source's evaluated channels instead, and if
    this is not enough (rigid bodies), its world transform.
    Raises BadScene, naming object and frame, if a world transform with shear would have to be keyed; the action is then
    removed.
    """
    _copy_static(source, target)
    action = actions.copy_action(target, source, action_name, is_transform)
    if action is None:
        action = actions.new_action(target, action_name)
    try:
        _copy_drivers(source, target)
        _follow(context, source, target, frame_numbers)
    except BaseException:
        bpy.data.actions.remove(action)
        raise
    return action


def _follow(
    context: bpy.types.Context, source: bpy.types.Object, target: bpy.types.Object, frame_numbers: np.ndarray
) -> None:
    """Key the motion that the copied animation does not reproduce."""
    frames = frame_numbers if _may_move(source) else frame_numbers[:1]
    world, channels = _watch(context, source, frames)
    if _mismatch(context, target, frames, world) is None:
        return
    times = actions.key_times(context.scene, frames)
    _key_channels(source, target, times, channels)
    if _mismatch(context, target, frames, world) is None:
        return
    _key_world(target, times, world)
    row = _mismatch(context, target, frames, world)
    if row is not None:
        raise BadScene(
            f'The transform of object "{source.name}" cannot be keyed at frame {frames[row]:g}: it is sheared, '
            "or scaled to nothing. Apply the scale of its parents, or remove what moves it, and convert again"
        )


def world_matrices(context: bpy.types.Context, ob: bpy.types.Object, frame_numbers: np.ndarray) -> np.ndarray:
    """(F, 4, 4) world matrices of ``ob`` at the frames, evaluated outside the user's scene."""
    with temporary_scene(context.scene, [ob]) as scene:
        # A Matrix refers to the evaluated object, which the next frame changes: copy each at once.
        matrices = (ob.evaluated_get(evaluate_frame(scene, frame)).matrix_world.copy() for frame in frame_numbers)
        return np.array([np.array(matrix) for matrix in matrices], dtype=np.float64)


def set_parent_type(ob: bpy.types.Object, kind: str) -> None:
    """Change the object's parent type without moving it: Blender clears the parent inverse."""
    inverse = ob.matrix_parent_inverse.copy()
    ob.parent_type = kind
    ob.matrix_parent_inverse = inverse


def is_transform(data_path: str) -> bool:
    """Whether the property of an object moves it: its transform, or a constraint's."""
    return data_path in _VALUES or data_path.startswith("constraints[")


def _copy_static(source: bpy.types.Object, target: bpy.types.Object) -> None:
    """Copy the parent, the other transform values and the constraints in their present state."""
    target.rotation_mode = source.rotation_mode
    for name in _VALUES:
        setattr(target, name, getattr(source, name))
    if source.parent is not None:
        target.parent = source.parent
        # A deforming parent (armature, lattice) transforms its child like a parent of type Object.
        target.parent_type = "OBJECT" if source.parent_type in {"ARMATURE", "LATTICE"} else source.parent_type
        for name in _PARENTING:
            if hasattr(source, name):
                setattr(target, name, getattr(source, name))
    for constraint in source.constraints:
        target.constraints.copy(constraint)
    target.track_axis, target.up_axis = source.track_axis, source.up_axis


def _copy_drivers(source: bpy.types.Object, target: bpy.types.Object) -> None:
    """Copy the drivers of the transform; references to ``source`` become references to ``target``.

    Drivers that read the source's data are left out: their effect is keyed.
    """
    data = [block for block in (source.data, getattr(source.data, "shape_keys", None)) if block is not None]
    for curve in source.animation_data.drivers if source.animation_data else ():
        targets = [item for variable in curve.driver.variables for item in variable.targets]
        if not is_transform(curve.data_path) or any(item.id in data for item in targets):
            continue
        copy = target.animation_data.drivers.from_existing(src_driver=curve)
        for variable in copy.driver.variables:
            for item in variable.targets:
                if item.id == source:
                    item.id = target


def _may_move(mesh_object: bpy.types.Object) -> bool:
    """Whether the world transform may change over time."""
    return any(
        ob.animation_data is not None
        or len(ob.constraints) > 0
        or ob.rigid_body is not None
        or (ob.parent is not None and (ob.parent_type != "OBJECT" or ob.parent.type == "CURVE"))
        for ob in _related(mesh_object)
    )


def _related(mesh_object: bpy.types.Object) -> set:
    """The object and all objects that its transform depends on through parents, constraints and drivers."""
    found, waiting = set(), [mesh_object]
    while waiting:
        ob = waiting.pop()
        if ob is None or ob in found:
            continue
        found.add(ob)
        waiting.append(ob.parent)
        for constraint in ob.constraints:
            waiting.append(getattr(constraint, "target", None))
            waiting += [item.target for item in getattr(constraint, "targets", ())]
        waiting += [item.id for item in _driver_targets(ob) if isinstance(item.id, bpy.types.Object)]
    return found


def _driver_targets(ob: bpy.types.Object) -> list:
    curves = ob.animation_data.drivers if ob.animation_data else ()
    return [item for curve in curves for variable in curve.driver.variables for item in variable.targets]


def _watch(
    context: bpy.types.Context, source: bpy.types.Object, frame_numbers: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """World matrices (F, 4, 4) of ``source`` and the values (F, D) of its evaluated channels, by name."""
    world = []
    channels: dict[str, list[tuple[float, ...]]] = {name: [] for name in _VALUES}
    with _stand_in(context, source) as (ob, view_layer, scene):
        for frame in _frames_to_play(scene, frame_numbers):
            evaluate_frame(scene, frame)
            if frame not in frame_numbers:
                continue
            evaluated = ob.evaluated_get(view_layer.depsgraph)
            world.append(np.array(evaluated.matrix_world, dtype=np.float64))
            for name, values in channels.items():
                values.append(tuple(getattr(evaluated, name)))
    return np.array(world), {name: np.array(values) for name, values in channels.items()}


@contextmanager
def _stand_in(context: bpy.types.Context, source: bpy.types.Object) -> Iterator[tuple]:
    """An object that moves like ``source``, with the view layer and scene in which to evaluate it.

    A copy without shape or modifiers in a temporary scene: its caches and simulations stay untouched. But rigid bodies
    move only in their own scene, and drivers may read the scene's properties: in these cases it is the source itself.
    """
    scene = context.scene
    related = _related(source)
    if any(ob.rigid_body is not None or any(item.id_type == "SCENE" for item in _driver_targets(ob)) for ob in related):
        with frame_kept(scene):
            yield source, context.view_layer, scene
        return
    empty = bpy.data.meshes.new("skinning_tools")
    copy = source.copy()
    try:
        copy.modifiers.clear()
        copy.data = empty
        with temporary_scene(scene, [copy]) as temporary:
            yield copy, temporary.view_layers[0], temporary
    finally:
        bpy.data.batch_remove([copy, empty])


def _frames_to_play(scene: bpy.types.Scene, frame_numbers: np.ndarray) -> list:
    """The frames, and with rigid bodies all frames since their simulation's start."""
    world = scene.rigidbody_world
    if world is None or world.point_cache.is_baked or world.point_cache.frame_start > frame_numbers[0]:
        return list(frame_numbers)
    skipped = range(world.point_cache.frame_start, int(frame_numbers[-1]))
    return sorted({*map(float, skipped), *frame_numbers})


def _mismatch(
    context: bpy.types.Context, target: bpy.types.Object, frame_numbers: np.ndarray, world: np.ndarray
) -> int | None:
    """The row of the first frame at which ``target`` does not match ``world`` (F, 4, 4), or None."""
    difference = np.abs(world_matrices(context, target, frame_numbers) - world)
    size = np.abs(world[:, :3, :3]).max(axis=(1, 2))
    distance = np.abs(world[:, :3, 3]).max(axis=1)
    wrong = ~(difference[:, :3, :3].max(axis=(1, 2)) <= _TOLERANCE * size)
    wrong |= ~(difference[:, :3, 3].max(axis=1) <= _TOLERANCE * size + _DISTANCE_TOLERANCE * distance)
    return int(np.argmax(wrong)) if wrong.any() else None


def _key_channels(
    source: bpy.types.Object, target: bpy.types.Object, times: np.ndarray, channels: dict[str, np.ndarray]
) -> None:
    """Replace the curves and drivers of the transform with keys of the source's evaluated channels."""
    _clear_animation(target, _VALUES.__contains__)
    container = actions.curve_container(target)
    unused = {"rotation_euler", "rotation_quaternion", "rotation_axis_angle"}
    unused -= {_ROTATIONS.get(source.rotation_mode, "rotation_euler")}
    unused |= {"delta_rotation_euler" if source.rotation_mode == "QUATERNION" else "delta_rotation_quaternion"}
    for name, values in channels.items():
        setattr(target, name, values[0])
        if name not in unused and np.any(values != values[0]):
            actions.write_channels(container, name, values, times, "Object Transforms")


def _key_world(target: bpy.types.Object, times: np.ndarray, world: np.ndarray) -> None:
    """Key the world transform itself, without parent and constraints."""
    _clear_animation(target, is_transform)
    target.constraints.clear()
    target.parent = None
    target.rotation_mode = "QUATERNION"
    target.delta_location = target.delta_rotation_euler = (0.0, 0.0, 0.0)
    target.delta_rotation_quaternion, target.delta_scale = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    location, rotation, scale = scaled_channels(world[:, None, :3])
    container = actions.curve_container(target)
    for name, values in (("location", location), ("rotation_quaternion", rotation), ("scale", scale)):
        setattr(target, name, values[0, 0])
        actions.write_channels(container, name, values[:, 0], times, "Object Transforms")


def _clear_animation(target: bpy.types.Object, which: Callable[[str], bool]) -> None:
    """Remove the curves and drivers whose data path ``which`` accepts."""
    container = actions.curve_container(target)
    assert container is not None
    for curves in (target.animation_data.drivers, container.fcurves):
        for curve in [curve for curve in curves if which(curve.data_path)]:
            curves.remove(curve)
