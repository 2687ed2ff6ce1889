# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Again: weights and keyframes for a skeleton whose bones the user has edited."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from mathutils import Vector

from ...blender import actions, background
from ...blender.armatures import deformed_meshes, lock_locations, place_heads
from ...blender.bodies import deforming_bones, named_parents
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.conversions import Result
from ...blender.joint_records import note_joints
from ...blender.preconditions import check_unchanged, object_label
from ...blender.put_back import put_back_on_failure
from ...blender.residual_keys import (
    OFFSET,
    assign_residual_action,
    key_residual_values,
    play_residual_keys,
    put_residual_keys,
    residual_names,
)
from ...blender.rotation_limits import MARGIN, freed, limit_of, limit_rotations, remove_limits
from ...blender.skin_reader import mesh_edges, rest_positions
from ...blender.vertex_groups import read_weights, remove_groups
from ...blender.weight_tools import forget_figures, lost_vertices, note_lost_vertices
from ...blender.wording import counted, listed
from ...core import quaternions
from ...core.errors import BadWeights
from ...core.geometry import transform_points
from ...core.progress import Progress, span
from ...core.solve_effort import POSABLE_SMOOTHNESS
from .bone_keys import WantedPoses, local_poses
from .converted import (
    conversion_importance,
    conversion_of,
    holds_joints,
    importance_notes,
    known_error,
    left_behind,
    shorter_notes,
    update_record,
)
from .keyable_bones import check_followed, check_keyable
from .motion import JointProblem, check_target, in_armature_space, joint_problem
from .motion_action import apply_motion, armature_copy, attach, new_action, remove_action
from .notes import size_notes, target_notes
from .outcome import finished
from .part_checks import all_locked
from .parts import Parts, parts_of
from .readings import plain_copy
from .settings import AgainSettings
from .skeleton import Skeleton
from .steps import Reading, error_of, read_parts

if TYPE_CHECKING:
    from ...core.decomposition.again import SolvedAgain
    from ...core.decomposition.residual import ResidualShapes


def solve_again(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> background.Steps:
    """Generator: solve for the weights and keyframes of a skeleton as it is now, by the AgainSettings ``given``;
    returns a PartialResult, yields (fraction, stage).

    Bones, names and parents stay, and so do joints but for those that the user has left undecided; the groups that the
    conversion made for bones that are gone are removed. Deforming bones are rigid, and turn about their joints where
    the Skeleton holds them. Residual shapes of the conversion are solved, too. Raises SkinningError, and then changes
    nothing.
    """
    begin, settings = time.perf_counter(), AgainSettings(**given)
    edited: _Edited = yield from _read(context, active, settings)
    parts, result, reading, before, shapes = edited.parts, edited.result, edited.reading, edited.before, edited.shapes
    names, numbers = edited.skeleton.names, reading.animation.frame_numbers
    solving = background.run_in_worker(_work(edited, settings))
    solution: _Solution = yield from background.part_of(solving, 0.4, 0.8, "Solving weights and motion")
    solved, place = solution.solved, _placing(context, edited, solution.solved)
    gone, known = left_behind(parts, result), known_error(result, parts, reading.animation, settings.frame_step)
    times = actions.key_times(context.scene, numbers)
    with armature_copy(parts.armature, place) as copy, ExitStack() as undo:
        poses = in_armature_space(solved.transforms, reading.motion, copy, names)
        wanted = WantedPoses(names, poses, edited.problem.held[: len(names)], {}, False)
        action, made = new_action(copy, parts.armature, wanted, reading.motion, times, None, "solved")
        undo.callback(remove_action, action)
        limited = remove_limits(copy)
        actions.remove_curves(copy, lambda path: _is_of_no_bone(copy, path))
        checking = check_followed(context, copy, made[0], numbers, parts.armature.name)
        yield from background.part_of(checking, 0.8, 0.85, "Checking the keys")
        with plain_copy(parts, copy) as probe:
            write_bone_weights(probe, before, solved.bones, solved.weights)
            shape_action = _put_shapes(probe, shapes, solution.shapes, action, times)
            if shape_action != action:
                undo.callback(remove_action, shape_action)
            meter = yield from error_of(probe, parts, reading, 0.85, 1.0, armature=copy)
            check_unchanged(parts.mesh, len(before.bones))
            tried = _Tried(probe, copy, action, made[0] if limited else None, place)
            notes = _write(context, edited, settings, solved, tried, gone)
        undo.pop_all()
    if result is not None:
        update_record(result, parts, meter, reading.animation, settings.frame_step, names)
    note_lost_vertices(parts.mesh.data, solved.lost)
    parts.mesh.data.update()
    done = f"weights and motion of {counted(len(names), 'bone')} over {counted(len(numbers), 'frame')}"
    done = f'{done} in the action "{action.name}"'
    return finished(parts, "Again", done, reading, known, meter, begin, notes, _ways(edited, settings, gone))


@dataclass(frozen=True, eq=False)
class _Edited:
    """A skeleton as its user has edited it, and all that was read with it. result: the conversion that made it, if any;
    before: the present weights; shapes: the names of its residual shape keys; importance (N,): how often each vertex
    counts, None for once."""

    parts: Parts
    result: Result | None
    skeleton: Skeleton
    before: BoneWeights
    shapes: tuple[str, ...]
    reading: Reading
    problem: JointProblem
    importance: np.ndarray | None


def _read(
    context: bpy.types.Context, active: bpy.types.Object | None, settings: AgainSettings
) -> background.Steps[_Edited]:
    parts = parts_of(context, active, settings.armature, settings.target, weighted=False)
    result = conversion_of(parts)
    check_target(parts)
    names = deforming_bones(parts.armature)
    check_keyable(parts.armature, names, but=limit_of)
    before = read_bone_weights(parts.mesh, parts.armature)
    _check_weights(parts, before)
    shapes = residual_names(parts.mesh) if result is not None else ()
    reading = yield from read_parts(context, parts, settings, names, before, (OFFSET, *shapes))
    rotation_only = settings.rotation_only or holds_joints(result)
    skeleton = Skeleton.of(parts.armature, names, rotation_only=rotation_only, find_joints=settings.find_joints)
    problem = joint_problem(parts, reading, names, {}, skeleton.held)
    importance = conversion_importance(context, result, len(before.bones))
    return _Edited(parts, result, skeleton, before, shapes, reading, problem, importance)


@dataclass(frozen=True, eq=False)
class _Solution:
    """solved: in the mesh object's space. shapes: the residual shapes from zero to one and their offset, None if there
    are none."""

    solved: "SolvedAgain"
    shapes: "tuple[ResidualShapes, np.ndarray | None] | None"


def _work(edited: _Edited, settings: AgainSettings) -> Callable[[Progress], _Solution]:
    """The solve, for a worker: what it needs of the scene is read now."""
    from ...core.decomposition.again import EditedSkeleton, solve_again
    from ...core.decomposition.partial import Given
    from ...core.decomposition.residual import fit_residual_shapes

    parts, reading, problem, names = edited.parts, edited.reading, edited.problem, edited.skeleton.names
    rest, edges = rest_positions(parts.mesh.data), mesh_edges(parts.mesh.data)
    # The bones start from what they do now, if the joints allow it: so that the solve makes nothing worse.
    given = problem.given.copy()
    given[:, ~problem.fixed] = reading.motion.matrices
    given_weights = *read_weights(parts.mesh, names), reading.weights.locked, np.zeros(len(rest), bool)
    skeleton = EditedSkeleton(
        problem.joints,
        named_parents(parts.armature, names),
        _ends(parts, reading.motion.to_armature[0], names),
        given,
        problem.fixed,
        edited.skeleton.movable,
        edited.skeleton.known,
    )
    lost = lost_vertices(parts.mesh.data)
    count = min(len(edited.shapes), len(reading.animation.frames))

    def solve(progress: Progress) -> _Solution:
        found = solve_again(
            reading.animation,
            rest,
            edges,
            Given(*given_weights),
            skeleton,
            settings.max_influences,
            span(progress, 0.0, 0.8 if count else 1.0),
            smoothness=settings.smoothness,
            lost=lost,
            importance=edited.importance,
        )
        skin = rest, found.bones, found.weights, found.transforms
        frames, part = reading.animation.frames, span(progress, 0.8, 1.0)
        shapes = fit_residual_shapes(frames, *skin, count, part).from_zero_to_one() if count else None
        return _Solution(found, shapes)

    return solve


@dataclass(frozen=True, eq=False)
class _Tried:
    """What becomes of the mesh and its armature, as copies of them show it: ``probe`` and ``copy``, which plays
    ``action``. limited: the poses of the bones by their names, None if none has limits; place: as from ``_placing``."""

    probe: bpy.types.Object
    copy: bpy.types.Object
    action: bpy.types.Action
    limited: dict[str, np.ndarray] | None
    place: Callable[[bpy.types.Object], None] | None


def _write(
    context: bpy.types.Context,
    edited: _Edited,
    settings: AgainSettings,
    solved: "SolvedAgain",
    tried: _Tried,
    gone: Sequence[str],
) -> list[str]:
    """Give the mesh and its armature what was ``tried``, or nothing if that fails; returns notes for the user. gone:
    the groups of deleted bones."""
    parts, skeleton = edited.parts, edited.skeleton
    mesh, armature = parts.mesh, parts.armature
    with put_back_on_failure(context, [mesh], armature):
        apply_motion(context, armature, (), tried.action)
        write_bone_weights(mesh, edited.before, solved.bones, solved.weights)
        remove_groups(mesh, gone)
        forget_figures(mesh)
        attached = attach(parts, edited.reading.chosen.taught)
        notes = _notes(edited, solved, attached)
        if edited.shapes:
            play_residual_keys(mesh, tried.probe, edited.shapes)
        # At the end, as limits, locks and joints are not put back.
        if tried.limited is not None:
            _limit_again(armature, tried.copy.data.bones, skeleton.names, tried.limited, edited.result)
        if tried.place is not None:
            tried.place(armature)
        if settings.find_joints:
            note_joints(armature, skeleton.names)
        lock_locations(armature, dict(zip(skeleton.names, skeleton.held, strict=True)))
    return notes


def _put_shapes(
    probe: bpy.types.Object,
    names: tuple[str, ...],
    found: "tuple[ResidualShapes, np.ndarray | None] | None",
    action: bpy.types.Action,
    times: np.ndarray,
) -> bpy.types.Action:
    """Give the ``probe`` the shape keys ``names`` and their motion; returns their action."""
    if found is None:
        return action
    residual, offset = found
    count = len(residual.shapes)
    # There are no more shapes than frames; of the others nothing is left.
    shapes = np.concatenate([residual.shapes, np.zeros((len(names) - count, *residual.shapes.shape[1:]))])
    put_residual_keys(probe, shapes, offset, names)
    made = assign_residual_action([probe], action, f"{action.name}_shapes")
    key_residual_values(probe, names[:count], residual.values, times)
    return made


def _placing(
    context: bpy.types.Context, edited: _Edited, solved: "SolvedAgain"
) -> Callable[[bpy.types.Object], None] | None:
    """Moves the heads of an armature's bones to the joints that were found; None if there are none."""
    skeleton, heads = edited.skeleton, transform_points(solved.heads, edited.reading.motion.to_armature[0])
    moved = zip(skeleton.names, heads, skeleton.movable, strict=True)
    placed = {name: Vector(head) for name, head, moves in moved if moves}
    return partial(place_heads, context, heads=placed) if placed else None


def _notes(edited: _Edited, solved: "SolvedAgain", attached: Sequence[str]) -> list[str]:
    """Notes for the user. attached: those of ``attach``."""
    parts, reading, skeleton = edited.parts, edited.reading, edited.skeleton
    follow = np.bincount(solved.bones[solved.weights > 0], minlength=len(skeleton.names))
    notes = [*reading.notes, *target_notes(parts, reading), *attached, *_other_meshes(parts)]
    notes += size_notes(parts, reading, solved.bones, solved.weights)
    notes += skeleton.notes(follow, solved.new, solved.kept_small)
    notes += shorter_notes(edited.result, reading.animation.frame_numbers)
    notes += importance_notes(edited.result, edited.importance)
    if edited.shapes:
        notes.append(f"{counted(len(edited.shapes), 'residual shape')} solved again")
    return notes


def _ways(edited: _Edited, settings: AgainSettings, gone: Sequence[str]) -> list[str]:
    """What may make the error smaller. gone: the groups of deleted bones."""
    ways = edited.skeleton.ways_to_less_error()
    if settings.rotation_only and not holds_joints(edited.result):
        ways.append("solve without Rotation Only")
    # A property has the default in single precision.
    if settings.smoothness > POSABLE_SMOOTHNESS + 1e-6:
        ways.append("lower Smoothness")
    if gone:
        # Vertices that have lost their bone begin with that of a neighbor, from which one solve may lead too little.
        ways += ["solve again once more", "subdivide bones where Show Error is red"]
    return ways


def _other_meshes(parts: Parts) -> list[str]:
    others = [mesh.name for mesh in deformed_meshes(parts.armature) if mesh.data != parts.mesh.data]
    if not others:
        return []
    return [
        f'"{parts.armature.name}" moves {listed(others)}, too, whose weights are as before: transfer them from '
        f'"{parts.mesh.name}" (Transfer Weights)'
    ]


def _check_weights(parts: Parts, before: BoneWeights) -> None:
    if not before.bound.any():
        raise BadWeights(
            f'{object_label(parts.mesh)} has no weights of a bone of "{parts.armature.name}" to start from. '
            "Bind it, or undo what was done to its vertex groups"
        )
    if before.locked.all():
        raise all_locked(parts.mesh)


def _ends(parts: Parts, to_armature: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """(P, 2, 3) heads and tails at rest, in the mesh object's space."""
    bones, to_mesh = parts.armature.data.bones, np.linalg.inv(to_armature)
    ends = np.array([(bones[name].head_local, bones[name].tail_local) for name in names], dtype=np.float64)
    return transform_points(ends, to_mesh)


def _limit_again(
    armature: bpy.types.Object,
    bones: bpy.types.ArmatureBones,
    names: tuple[str, ...],
    poses: dict[str, np.ndarray],
    result: Result | None,
) -> None:
    """Give the bones that hang from deforming ones limits with the range of their new ``poses``, but for those whose
    limits the user has deleted. bones: those of the armature, or of a copy with its new joints."""
    turns, without = {}, freed(armature)
    for name, parent in zip(names, named_parents(armature, names), strict=True):
        bone = bones[name]
        if parent >= 0 and bone.parent.name in poses and name not in without:
            local = local_poses(bone, poses[name], poses[bone.parent.name])
            turns[name] = quaternions.from_matrices(local[:, :3, :3])
    remove_limits(armature)
    limit_rotations(armature, turns, MARGIN if result is None else result.figures.get("limit_margin", MARGIN))


def _is_of_no_bone(armature: bpy.types.Object, path: str) -> bool:
    """Whether an animated path is of a bone that was removed."""
    return path.startswith("pose.bones[") and not path.startswith(actions.bone_paths(armature.data.bones.keys()))
