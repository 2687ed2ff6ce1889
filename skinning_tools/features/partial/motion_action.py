# SPDX-License-Identifier: GPL-3.0-or-later
"""Solved motion as a new action: tried on a copy of the armature first, then given to the armature itself."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import bpy
import numpy as np

from ...blender import actions
from ...blender.animation.clips import EARLIER, EARLIER_NAME, without_endings
from ...blender.armatures import NewBone
from ...blender.data_blocks import is_alive
from ...blender.skin_reader import armature_modifier, armature_of
from .added_bones import add_new_bones
from .bone_keys import WantedPoses, transform_paths, write_poses
from .parts import Parts
from .readings import RigMotion
from .steps import Reading


def matrices_in_armature_space(transforms: np.ndarray, motion: RigMotion) -> np.ndarray:
    """Convert ``transforms`` (F, P, 3, 4) from the mesh object's space to the armature's, (F, P, 4, 4), by a
    RigMotion."""
    full = np.zeros((*transforms.shape[:2], 4, 4))
    full[..., :3, :] = transforms
    full[..., 3, 3] = 1.0
    to_armature = motion.to_armature[:, None]
    return to_armature @ full @ np.linalg.inv(to_armature)


@contextmanager
def new_motion(
    context: bpy.types.Context,
    parts: Parts,
    added: Sequence[NewBone],
    wanted: WantedPoses,
    reading: Reading,
    times: np.ndarray,
    extents: np.ndarray | None,
    ending: str,
) -> Iterator[tuple[bpy.types.Object, bpy.types.Action, tuple[dict[str, np.ndarray], float]]]:
    """A copy of the armature, in no scene and removed at the end, with the bones ``added`` and the ``wanted`` motion;
    its new action, which is removed if the body raises; and the result of ``write_poses``."""
    with armature_copy(parts.armature, adding(context, added)) as copy:
        action, made = new_action(copy, parts.armature, wanted, reading.motion, times, extents, ending)
        try:
            yield copy, action, made
        except BaseException:
            remove_action(action)
            raise


@contextmanager
def armature_copy(
    armature: bpy.types.Object, add: Callable[[bpy.types.Object], None] | None
) -> Iterator[bpy.types.Object]:
    """A copy of the armature, in no scene and removed at the end. add: adds bones to it."""
    with ExitStack() as undo:
        copy = armature.copy()
        undo.callback(_remove_armature, copy, keep_data=add is None)
        if add is not None:
            copy.data = armature.data.copy()
            add(copy)
        yield copy


def adding(context: bpy.types.Context, added: Sequence[NewBone]) -> Callable[[bpy.types.Object], None] | None:
    """For ``armature_copy``: adds the bones; None if there are none."""
    return partial(add_new_bones, context, specs=added) if added else None


def new_action(
    copy: bpy.types.Object,
    armature: bpy.types.Object,
    wanted: WantedPoses,
    motion: RigMotion,
    times: np.ndarray,
    extents: np.ndarray | None,
    ending: str,
) -> tuple[bpy.types.Action, tuple[dict[str, np.ndarray], float]]:
    """The armature's present action as a copy with the ``wanted`` motion, assigned to ``copy``, and the result of
    ``write_poses``."""
    keyed = {path for name in [*wanted.bones, *wanted.chains.values()] for path in transform_paths(name)}
    old = armature.animation_data.action if armature.animation_data else None
    name = f"{without_endings(old.name) if old is not None else armature.name}_{ending}"
    action = actions.copy_action(copy, armature, name, lambda path: path not in keyed)
    action = action or actions.new_action(copy, name)
    if old is not None:
        action[EARLIER], action[EARLIER_NAME] = old, "" if old.use_fake_user else old.name
    try:
        return action, write_poses(copy, actions.curve_container(copy), wanted, motion, times, extents)
    except BaseException:
        remove_action(action)
        raise


def remove_action(action: bpy.types.Action) -> None:
    """Remove the action from the file, if it is still there."""
    if is_alive(action):
        bpy.data.actions.remove(action)


def _remove_armature(copy: bpy.types.Object, keep_data: bool) -> None:
    if not is_alive(copy):
        return
    data = copy.data
    bpy.data.objects.remove(copy)
    if not keep_data and is_alive(data):
        bpy.data.armatures.remove(data)


def apply_motion(
    context: bpy.types.Context, armature: bpy.types.Object, added: Sequence[NewBone], action: bpy.types.Action
) -> None:
    """Add the bones and assign the action to the armature itself; its present action stays in the file."""
    add_new_bones(context, armature, added)
    old = armature.animation_data.action if armature.animation_data else None
    if old is not None and old.library is None:
        old.use_fake_user = True
    actions.assign_action(armature, action)


def attach(parts: Parts, taught: bool) -> list[str]:
    """Add an Armature modifier if the mesh has none and no animation of its own; returns a note."""
    mesh = parts.mesh
    if armature_of(mesh) is not None and armature_of(mesh) != parts.armature:
        return [f'"{parts.armature.name}" does not deform it yet: choose it in the Armature modifier']
    if parts.own and not taught:
        return ["its own animation still plays: to see what the bones do, remove it or bind a copy"]
    if armature_of(mesh) is None:
        modifier = mesh.modifiers.new("Armature", "ARMATURE")
        modifier.object = parts.armature
        return ["Armature modifier added"]
    own = armature_modifier(mesh)
    if own is not None and not own.show_viewport:
        return [f'the modifier "{own.name}" is disabled in the viewport, so the mesh does not follow: enable it']
    return []
