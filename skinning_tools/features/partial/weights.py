# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Weights: weights for animated bones."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background
from ...blender.bodies import deforming_bones, named_parents, to_mesh
from ...blender.bone_weights import BoneWeights, write_bone_weights
from ...blender.fit_poses import differ
from ...blender.preconditions import check_unchanged
from ...blender.put_back import put_back_on_failure
from ...blender.skin_reader import mesh_edges, rest_positions
from ...blender.weight_tools import forget_figures
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene
from ...core.geometry import transform_points
from ...core.progress import Progress
from .motion_action import attach
from .notes import target_notes
from .outcome import finished
from .part_checks import all_locked
from .parts import Parts, parts_of
from .readings import plain_copy
from .rest_key import MOST_SHIFT, NAME, check_can_have_key, mute_key, present_rest, set_rest, write_key
from .settings import WeightSettings
from .steps import Reading, errors_of, locked_by_group, read_parts

if TYPE_CHECKING:
    from ...core.decomposition.partial import SolvedSkin


def solve_weights(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> background.Steps:
    """Generator: solve for the weights with which the armature's present motion brings the mesh closest to the target,
    by the WeightSettings ``given``; returns a PartialResult, yields (fraction, stage).

    Locked vertex groups do not change, nor do the weights of vertices in the group ``locked_vertices``.
    Raises SkinningError, and then changes nothing.
    """
    begin, settings = time.perf_counter(), WeightSettings(**given)
    parts = parts_of(context, active, settings.armature, settings.target, weighted=False)
    if settings.rest_shape:
        check_can_have_key(parts.mesh)
    locked = locked_by_group(parts.mesh, settings.locked_vertices)
    reading = yield from read_parts(context, parts, settings, deforming_bones(parts.armature))
    _check_motion(parts, reading)
    before, notes = reading.weights, [*reading.notes, *target_notes(parts, reading)]
    if before.locked.all() or locked.all():
        raise all_locked(parts.mesh)
    solving = background.run_in_worker(_solve(parts, settings, reading, locked))
    solved = yield from background.part_of(solving, 0.4, 0.7, "Solving the weights")
    bones, weights = solved.bones, solved.weights
    free = np.flatnonzero(~locked & weights.any(axis=1))
    with plain_copy(parts) as old, plain_copy(parts) as new:
        set_rest(old, present_rest(parts.mesh))
        set_rest(new, solved.rest)
        write_bone_weights(new, before, bones[free], weights[free], free)
        errors, meter_before, meter = yield from errors_of(
            context, parts, reading, old if before.bound.any() else None, new
        )
    check_unchanged(parts.mesh, len(before.bones))
    with put_back_on_failure(context, [parts.mesh]):
        write_bone_weights(parts.mesh, before, bones[free], weights[free], free)
        if settings.rest_shape:
            write_key(parts.mesh, solved.rest)
            notes.append(f'the shape key "{NAME}" shifts the rest shape')
        else:
            notes += mute_key(parts.mesh)
        forget_figures(parts.mesh)
        notes += attach(parts, reading.chosen.taught)
        parts.mesh.data.update()
    used = len(np.unique(bones[weights > 0]))
    most = int(np.count_nonzero(weights, axis=1).max(initial=1))
    done = f"weights of {vertices_text(len(free))} for {counted(used, 'bone')}, "
    done += f"up to {counted(most, 'influence')}"
    ways = _ways(before, settings)
    present = None if meter_before is None else meter_before.e_rms
    return finished(parts, "Weights", done, reading, present, meter, begin, notes, ways, errors)


def _solve(
    parts: Parts, settings: WeightSettings, reading: Reading, locked: np.ndarray
) -> "Callable[[Progress], SolvedSkin]":
    """The solve of what was read, for a worker: without Blender, once it has begun."""
    from ...core.decomposition.partial import Given, Joints, solve_skin

    before, names = reading.weights, reading.motion.names
    rest = rest_positions(parts.mesh.data)
    return partial(
        solve_skin,
        reading.animation,
        rest,
        reading.motion.matrices,
        settings.max_influences,
        smoothness=settings.smoothness,
        hold=settings.hold,
        given=Given(before.bones, before.weights, before.locked, locked),
        joints=Joints(_heads(parts, names), named_parents(parts.armature, names)),
        edges=mesh_edges(parts.mesh.data),
        importance=reading.importance(rest),
        most_shift=MOST_SHIFT if settings.rest_shape else 0.0,
    )


def _heads(parts: Parts, names: Sequence[str]) -> np.ndarray:
    """(P, 3) the heads of the bones at rest, in the mesh's space."""
    bones, placed = parts.armature.data.bones, to_mesh(parts.mesh, parts.armature)
    heads = np.array([bones[name].head_local for name in names], dtype=np.float64)
    return transform_points(heads, placed)


def _ways(before: BoneWeights, settings: WeightSettings) -> list[str]:
    """Advice to lower the error if it has grown."""
    ways = ["solve with less Smoothness"] if settings.smoothness > 0 else []
    if np.count_nonzero(before.weights, axis=1).max(initial=0) > settings.max_influences:
        ways.append("with more Influences" if ways else "solve with more Influences")
    return ways


def _check_motion(parts: Parts, reading: Reading) -> None:
    """Raise BadScene if all bones move alike: then weights have no effect."""
    rest, matrices = rest_positions(parts.mesh.data), reading.motion.matrices
    if matrices.shape[1] > 1 and not any(differ(frame, rest) for frame in matrices):
        numbers = reading.animation.frame_numbers
        raise BadScene(
            f'All bones of the armature "{parts.armature.name}" move alike from frame {numbers[0]:g} to '
            f"{numbers[-1]:g}, so weights have no effect. Choose an armature that is animated there, or other "
            "frames"
        )
