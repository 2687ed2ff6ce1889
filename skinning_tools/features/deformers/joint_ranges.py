# SPDX-License-Identifier: GPL-3.0-or-later
"""How far the joints of an armature's deforming bones turn: by their limits, else in the armature's actions, else by
their proportions."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...blender import background
from ...blender.animation.clips import clips_of, playing
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.fit_poses import bare_skin
from ...blender.skeletons import copied_bones
from ...blender.skin_reader import bone_matrices
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...core.imitation.skeleton import Ranges, Skeleton, relative_turns, to_vectors, usual_ranges

# Frames that are looked at, of all actions together, but of each at least so many.
_MOST_FRAMES, _LEAST_FRAMES = 60, 12
# A joint that stands still in the actions still turns by this, in radians: else nothing would tell its bones apart.
_LEAST = np.radians(10.0)


def joint_ranges(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    names: Sequence[str],
    skeleton: Skeleton,
    skin: tuple[np.ndarray, np.ndarray, np.ndarray],
    probe: bpy.types.Object,
) -> background.Steps[tuple[Ranges, np.ndarray, tuple[str, ...]]]:
    """Generator: the ranges of the joints; the motion (F, P, 3, 4) of the bones in the armature's actions, in the space
    of ``probe``, or none of it; and notes. skin: points, bones and weights."""
    usual = usual_ranges(skeleton, *skin)
    low, high, euler = usual.low.copy(), usual.high.copy(), usual.euler.copy()
    motion, notes = yield from _played(context, armature, names, probe)
    if len(motion):
        turned = _turns(skeleton, motion)
        low, high = np.minimum(turned.min(axis=0), -_LEAST), np.maximum(turned.max(axis=0), _LEAST)
    aside = []
    for place, name in enumerate(names):
        for owner in (name, *copied_bones(armature, name)):
            limits = _limits(armature.pose.bones[owner])
            if limits is not None:
                given = np.isfinite(limits)
                low[place] = np.where(given[:, 0], limits[:, 0], low[place])
                high[place] = np.where(given[:, 1], limits[:, 1], high[place])
                euler[place] = True
                if (low[place] > 1e-3).any() or (high[place] < -1e-3).any():
                    aside.append(name)
                break
    if aside:
        notes += (f'the limits of "{aside[0]}" exclude its rest pose, so that no pose has it at rest',)
    return Ranges(low, np.maximum(high, low), euler), motion, notes


def _limits(bone: bpy.types.PoseBone) -> np.ndarray | None:
    """(3, 2) least and most angle about each axis, NaN where there is none; None without limits."""
    for constraint in bone.constraints:
        if constraint.type != "LIMIT_ROTATION" or not constraint.enabled or constraint.influence == 0:
            continue
        if constraint.owner_space != "LOCAL" or not any(getattr(constraint, f"use_limit_{axis}") for axis in "xyz"):
            continue
        return np.array([
            (getattr(constraint, f"min_{axis}"), getattr(constraint, f"max_{axis}"))
            if getattr(constraint, f"use_limit_{axis}")
            else (np.nan, np.nan)
            for axis in "xyz"
        ])  # fmt: skip
    if not any(getattr(bone, f"{kind}_{axis}") for axis in "xyz" for kind in ("lock_ik", "use_ik_limit")):
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


def _played(
    context: bpy.types.Context, armature: bpy.types.Object, names: Sequence[str], probe: bpy.types.Object
) -> background.Steps[tuple[np.ndarray, tuple[str, ...]]]:
    """Generator: the bones' motion at some frames of the armature's actions; and notes on what Blender left out."""
    clips = clips_of(armature)
    if not clips:
        return np.zeros((0, len(names), 3, 4)), ()
    most = max(_MOST_FRAMES // len(clips), _LEAST_FRAMES)
    frames = [(clip, number) for clip in clips for number in _spread(clip.numbers, most)]
    keyed = sorted(frozenset().union(*(clip.bones for clip in clips)))
    omissions = Omissions(context, [], sorted({number for _, number in frames}), [armature])
    skin, motion = bare_skin(probe, armature, names), []
    with temporary_scene(context.scene, [probe, armature]) as scene:
        for done, (clip, number) in enumerate(frames):
            # Left before each yield: the user sees what the armature plays.
            with playing(armature, clip, reset=keyed):
                depsgraph = evaluate_frame(scene, number)
                motion.append(bone_matrices(skin, depsgraph))
                if done + 1 == len(frames):
                    omissions.look_at_drivers(depsgraph)
            yield done / len(frames), "Looking at the actions"
    return np.array(motion), texts_of(omissions.finish())


def _spread(numbers: range, most: int) -> list[int]:
    """Up to ``most`` of the frames, from the first to the last."""
    return [numbers[place] for place in np.unique(np.linspace(0, len(numbers) - 1, most).round().astype(int))]


def _turns(skeleton: Skeleton, motion: np.ndarray) -> np.ndarray:
    vectors = to_vectors(relative_turns(skeleton, motion))
    # A bone without a parent moves the whole character.
    vectors[:, skeleton.parents < 0] = 0.0
    return vectors
