# SPDX-License-Identifier: GPL-3.0-or-later
"""How far joints turn: the limits of their bones, and the bones' motion in all actions of an armature."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from operator import itemgetter

import bpy
import numpy as np

from . import background
from .animation.clips import Clip, clips_of, playing
from .animation.omissions import Omissions, texts_of
from .armatures import rest_matrices
from .temporary_scene import evaluate_frame, temporary_scene

# Of each action, at least so many frames are looked at.
_LEAST_FRAMES = 12
# Frames that are looked at before the user's scene, which is evaluated for it, plays its own action again.
_TOGETHER = 10

# A clip and a time on its curves; or None, for what the armature plays now, and a frame of the scene.
Moment = tuple[Clip | None, float]


def rotation_limits(bone: bpy.types.PoseBone, locks_suffice: bool = True) -> np.ndarray | None:
    """(3, 2) the least and the most angle about each axis, of a Limit Rotation constraint in local space or else of
    inverse kinematics, NaN where there is none; None without limits. locks_suffice: axes that are locked for inverse
    kinematics are limits even where no other axis has any."""
    for constraint in bone.constraints:
        if constraint.type != "LIMIT_ROTATION" or not constraint.enabled or constraint.influence == 0:
            continue
        if constraint.owner_space == "LOCAL" and any(getattr(constraint, f"use_limit_{axis}") for axis in "xyz"):
            return np.array([
                (getattr(constraint, f"min_{axis}"), getattr(constraint, f"max_{axis}"))
                if getattr(constraint, f"use_limit_{axis}")
                else (np.nan, np.nan)
                for axis in "xyz"
            ])  # fmt: skip
    kinds = ("use_ik_limit", "lock_ik") if locks_suffice else ("use_ik_limit",)
    if not any(getattr(bone, f"{kind}_{axis}") for axis in "xyz" for kind in kinds):
        return None
    rows = []
    for axis in "xyz":
        if getattr(bone, f"lock_ik_{axis}"):
            rows.append((0.0, 0.0))
        elif getattr(bone, f"use_ik_limit_{axis}"):
            rows.append((getattr(bone, f"ik_min_{axis}"), getattr(bone, f"ik_max_{axis}")))
        else:
            rows.append((np.nan, np.nan))
    return np.array(rows)


def moments_of(armature: bpy.types.Object, most: int) -> list[Moment]:
    """Frames of all actions of the armature, up to about ``most``, and some of each."""
    clips = clips_of(armature)
    share = max(most // max(len(clips), 1), _LEAST_FRAMES)
    return [(clip, number) for clip in clips for number in spread(clip.numbers, share)]


def spread(numbers: range, most: int) -> list[int]:
    """Up to ``most`` of the frames, from the first to the last."""
    return [numbers[place] for place in np.unique(np.linspace(0, len(numbers) - 1, most).round().astype(int))]


def played_motion(
    context: bpy.types.Context, armature: bpy.types.Object, names: Sequence[str], moments: Sequence[Moment]
) -> background.Steps[tuple[np.ndarray, tuple[str, ...]]]:
    """Generator: the motion (F, P, 4, 4) of the bones ``names`` from rest, in the armature's space, at the ``moments``,
    all of clips or none; and notes on what Blender left out."""
    if not moments:
        return np.zeros((0, len(names), 4, 4)), ()
    keyed = sorted(frozenset().union(*(clip.bones for clip, _ in moments if clip is not None)))
    omissions = Omissions(context, [], sorted({round(number) for _, number in moments}), [armature])
    poses: list[list[np.ndarray]] = []
    with temporary_scene(context.scene, [armature], own_time=moments[0][0] is not None) as scene:
        for clip, numbers in _runs(moments):
            # Left before each yield: the user sees what the armature plays.
            with _shown(armature), playing(armature, clip, reset=keyed) if clip is not None else nullcontext():
                for number in numbers:
                    depsgraph = evaluate_frame(scene, number)
                    evaluated = armature.evaluated_get(depsgraph)
                    poses.append([np.array(evaluated.pose.bones[name].matrix) for name in names])
                if len(poses) == len(moments):
                    omissions.look_at_drivers(depsgraph)
            yield len(poses) / len(moments), "Looking at the actions"
    inverse = np.linalg.inv(rest_matrices(armature, names))
    return np.array(poses, dtype=np.float64) @ inverse, texts_of(omissions.finish())


def _runs(moments: Sequence[Moment]) -> Iterator[tuple[Clip | None, list[float]]]:
    """The moments by clip, a few frames at a time."""
    for clip, same in groupby(moments, key=itemgetter(0)):
        numbers = [number for _, number in same]
        for start in range(0, len(numbers), _TOGETHER):
            yield clip, numbers[start : start + _TOGETHER]


@contextmanager
def _shown(armature: bpy.types.Object) -> Iterator[None]:
    """Context in which Blender evaluates the armature, even if it is hidden in all viewports."""
    hidden = armature.hide_viewport
    if hidden:
        armature.hide_viewport = False
    try:
        yield
    finally:
        if hidden:
            armature.hide_viewport = True
