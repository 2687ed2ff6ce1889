# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Motion: keyframes for bones that have weights."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.armatures import check_armature, rest_matrices
from ...blender.bone_weights import BoneWeights, read_bone_weights
from ...blender.clip_tracks import put_on_track
from ...blender.preconditions import object_label
from ...blender.put_back import put_back_on_failure
from ...blender.skin_reader import armature_of, check_even_scale, rest_positions
from ...blender.wording import counted
from ...core.errors import BadScene, BadWeights
from ...core.geometry import transform_points
from ...core.rotations import right_handed
from .added_bones import chain_parents, missing_chains, moved_otherwise
from .bone_keys import WantedPoses
from .keyable_bones import check_followed, check_keyable
from .motion_action import apply_motion, matrices_in_armature_space, new_motion
from .notes import bare_notes
from .outcome import finished
from .parts import Parts, parts_of
from .readings import RigMotion, plain_copy
from .settings import MotionSettings
from .steps import Reading, error_of, read_parts

if TYPE_CHECKING:
    from ...core.decomposition.partial_transforms import Joints

# Relative to a matrix: changes up to this are rounding.
_STILL = 1e-5


def solve_transforms(
    context: bpy.types.Context, active: bpy.types.Object | None, clip: str = "", **given: Any
) -> background.Steps:
    """Generator: key the bones that have weights to bring the mesh closest to the target, by the MotionSettings
    ``given``; returns a PartialResult, yields (fraction, stage).

    The keyframes are in a new action, which also has the old action's curves for other channels; the old one stays in
    the file. Bones without weights keep their motion. Connected bones, and with ``rotation_only`` all bones with a
    parent, stay at their joints. clip: call the action so, and keep it on a track of that name. Raises SkinningError,
    and then changes nothing.
    """
    begin, settings = time.perf_counter(), MotionSettings(**given)
    parts = parts_of(context, active, settings.armature, settings.target, weighted=True, writes_weights=False)
    check_target(parts)
    weights = read_bone_weights(parts.mesh, parts.armature)
    names, rows = _used_bones(parts, weights)
    chains = chain_parents(parts.armature, names)
    missing = missing_chains(parts.armature, names) if settings.bone_kind == "AFFINE" else []
    if missing:
        check_armature(parts.armature)
    check_keyable(parts.armature, [*names, *chains.values()])
    if settings.bone_kind != "AFFINE" and armature_of(parts.mesh) == parts.armature:
        check_even_scale(parts.mesh)
    reading = yield from read_parts(context, parts, settings, names, weights)
    held = [_stays(parts.armature.data.bones[chains.get(name, name)], settings.rotation_only) for name in names]
    problem = joint_problem(parts, reading, names, chains, held)
    solving = _solving(reading, rest_positions(parts.mesh.data), rows, weights.weights, problem, settings.bone_kind)
    transforms = (yield from background.part_of(solving, 0.4, 0.7, "Solving the motion"))[:, : len(names)]
    chains |= {spec.adopts: spec.name for spec in missing}
    wanted = WantedPoses(
        tuple(names),
        in_armature_space(transforms, reading.motion, parts.armature, names),
        problem.held[: len(names)],
        chains,
        settings.bone_kind == "AFFINE",
    )
    times = actions.key_times(context.scene, reading.animation.frame_numbers)
    turned = moved_otherwise(parts.armature, [spec.adopts for spec in missing])
    extents = _extents(parts, reading, names, rows, weights.weights)
    with new_motion(context, parts, missing, wanted, reading, times, extents, "solved") as (copy, action, made):
        poses, sheared = made
        checking = check_followed(context, copy, poses, reading.animation.frame_numbers, parts.armature.name)
        yield from background.part_of(checking, 0.7, 0.75, "Checking the keys")
        with plain_copy(parts) as probe:
            meter_before = yield from error_of(probe, parts, reading, 0.75, 0.85)
        with plain_copy(parts, copy) as probe:
            meter = yield from error_of(probe, parts, reading, 0.85, 1.0, armature=copy)
        with put_back_on_failure(context, [], parts.armature):
            apply_motion(context, parts.armature, missing, action)
            if clip:
                put_on_track(parts.armature, parts.mesh, clip)
    unscaled = int(np.count_nonzero(problem.unscaled[: len(names)])) if settings.bone_kind == "SCALED" else 0
    notes = [*reading.notes, *bare_notes(parts.mesh, weights), *_notes(unscaled, bool(sheared), turned)]
    left_behind = _left_behind(parts, reading, problem)
    if left_behind:
        notes.append(f"{left_behind}, which bones at their joints cannot follow")
    done = f'motion of {counted(len(names), "bone")} over {counted(len(times), "frame")} in the action "{action.name}"'
    ways = _ways(parts, problem, len(names), settings, bool(left_behind))
    return finished(parts, "Motion", done, reading, meter_before.e_rms, meter, begin, notes, ways)


def _solving(
    reading: Reading, rest: np.ndarray, rows: np.ndarray, weights: np.ndarray, problem: "JointProblem", bone_kind: str
) -> background.Steps:
    """Generator: the core's solve_transforms in a worker; rows, weights (N, K): of the vertices ``rest`` (N, 3)."""
    from ...core.decomposition.partial_transforms import solve_transforms as solve

    return background.run_in_worker(
        lambda progress: solve(
            reading.animation,
            rest,
            rows,
            weights,
            len(problem.names),
            bone_kind,
            bone_axes=problem.axes,
            unscaled=problem.unscaled,
            joints=problem.joints,
            given=problem.given,
            fixed=problem.fixed,
            progress=progress,
        )
    )


def _used_bones(parts: Parts, weights: BoneWeights) -> tuple[list[str], np.ndarray]:
    """The bones with weights, and the indices of ``weights.bones`` among them, 0 in unused slots. Raises BadWeights."""
    used = np.unique(weights.bones[weights.weights > 0])
    if not len(used):
        raise BadWeights(
            f'No vertex of {object_label(parts.mesh)} has weights of a deforming bone of "{parts.armature.name}". '
            "Assign weights, or solve for them"
        )
    rows = np.where(weights.weights > 0, np.searchsorted(used, weights.bones), 0).astype(np.int32)
    return [weights.names[index] for index in used], rows


def check_target(parts: Parts) -> None:
    """Raise BadScene if the new keys would also move the target."""
    target, armature = parts.target, parts.armature
    if target != parts.mesh and (
        armature_of(target) == armature
        or any(modifier.type == "ARMATURE" and modifier.object == armature for modifier in target.modifiers)
    ):
        raise BadScene(
            f'The target {object_label(target)} is deformed by "{armature.name}" itself, whose new keys would move it '
            "too. Give the target its own armature: select both and duplicate them"
        )


def _left_behind(parts: Parts, reading: Reading, problem: "JointProblem") -> str:
    """A note if the mesh object moves in its armature's space while bones stay at their joints, else ""."""
    matrices = reading.motion.to_armature
    moves = np.abs(matrices - matrices[0]).max() > _STILL * np.abs(matrices[0]).max()
    if not (moves and problem.held.any()):
        return ""
    return f'{object_label(parts.mesh)} moves as a whole relative to "{parts.armature.name}"'


def _ways(parts: Parts, problem: "JointProblem", count: int, settings: MotionSettings, left_behind: bool) -> list[str]:
    """Advice to lower the error if it has grown; ``count``: the number of bones solved for."""
    held, ways = problem.held[:count], []
    if left_behind:
        ways.append(f'parent {object_label(parts.mesh)} to "{parts.armature.name}"')
    elif held.all():
        ways.append(f'move "{problem.names[count]}", which has no weights and carries the others, with the target')
    if held.any():
        ways.append(
            "solve without Rotation Only" if settings.rotation_only else "disconnect its bones in Edit Mode (Alt P)"
        )
    if settings.bone_kind == "RIGID" and not settings.rotation_only:
        ways.append("solve with another Bone Kind")
    return ways


def _notes(unscaled: int, sheared: bool, turned: list[str]) -> list[str]:
    """Notes on ``unscaled`` bones that could have been scaled, on lost shear, and on the bones ``turned`` that got new
    parents."""
    notes = []
    if unscaled:
        notes.append(
            f"{counted(unscaled, 'bone')} not scaled, because the children would be sheared: to scale all, set Inherit "
            "Scale of the children to None"
        )
    if sheared:
        notes.append(
            "scaled parents shear their children, which cannot undo it: set Inherit Scale of the children to None"
        )
    if turned:
        notes.append(
            f'{counted(len(turned), "bone")} (the first: "{turned[0]}") with a new parent and without Inherit Rotation '
            "or Local Location before: other actions that key the location play differently"
        )
    return notes


@dataclass(frozen=True, eq=False)
class JointProblem:
    """names: the bones to solve for, then the given ones, ``fixed`` (P,) with the motion ``given`` (F, P, 3, 4).
    axes (P, 3, 3), joints: see the core's solve_transforms. held (P,): bones whose heads stay at their joints.
    unscaled (P,): bones whose scale would shear other solved bones."""

    names: tuple[str, ...]
    axes: np.ndarray
    joints: "Joints"
    given: np.ndarray
    fixed: np.ndarray
    held: np.ndarray
    unscaled: np.ndarray


def _stays(bone: bpy.types.Bone, rotation_only: bool) -> bool:
    """Whether a bone stays at its joint."""
    return bone.use_connect or (rotation_only and bone.parent is not None)


def joint_problem(
    parts: Parts, reading: Reading, names: Sequence[str], chains: dict[str, str], held: Sequence[bool]
) -> JointProblem:
    """The problem of the bones ``names``, of which the ``held`` ones stay at their joints. chains: parents, by the name
    of their child, that are keyed instead of it."""
    from ...core.decomposition.partial_transforms import Joints

    bones, motion = parts.armature.data.bones, reading.motion
    order = {name: index for index, name in enumerate(names)}
    upper = {parent: name for name, parent in chains.items()}
    all_names, parents = list(names), []
    for name, stays in zip(names, held, strict=True):
        bone = bones[chains.get(name, name)]
        parent = bone.parent
        if not stays:
            parents.append(-1)
            continue
        # The joint moves with the nearest solved ancestor or, without one, with the parent.
        above = [ancestor.name for ancestor in bone.parent_recursive]
        solved = next((upper.get(each, each) for each in above if upper.get(each, each) in order), None)
        if solved is None:
            solved = parent.name
            if solved not in order:
                order[solved] = len(all_names)
                all_names.append(solved)
        parents.append(order[solved])
    extra = len(all_names) - len(names)
    to_mesh = np.linalg.inv(reading.motion.to_armature[0])
    heads = np.array([bones[name].head_local for name in all_names], dtype=np.float64)
    heads = transform_points(heads, to_mesh)
    axes = to_mesh[:3, :3] @ np.array([bones[name].matrix_local.to_3x3() for name in all_names], dtype=np.float64)
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    # The direction of an axis does not matter for stretching, but axes mirrored by the mesh's transform would not form
    # a rotation.
    axes = right_handed(axes)
    given = np.tile(np.eye(3, 4), (len(motion.matrices), len(all_names), 1, 1))
    for index in range(len(names), len(all_names)):
        pose = motion.pose[:, motion.place[all_names[index]]]
        rest = np.array(bones[all_names[index]].matrix_local, dtype=np.float64)
        moved = np.linalg.inv(motion.to_armature) @ pose @ np.linalg.inv(rest) @ motion.to_armature
        given[:, index] = moved[:, :3]
    return JointProblem(
        tuple(all_names),
        axes,
        Joints(heads, np.array(parents + [-1] * extra)),
        given,
        np.arange(len(all_names)) >= len(names),
        np.array([*held, *[False] * extra]),
        np.array([_shears_others(bones[chains.get(name, name)], order, name) for name in all_names]),
    )


def _shears_others(bone: bpy.types.Bone, solved: dict[str, int], name: str) -> bool:
    """Whether another ``solved`` bone inherits the bone's scale."""
    waiting = list(bone.children)
    while waiting:
        child = waiting.pop()
        if child.inherit_scale.startswith("NONE"):
            continue
        if child.name in solved and child.name != name:
            return True
        waiting += child.children
    return False


def in_armature_space(
    transforms: np.ndarray, motion: RigMotion, armature: bpy.types.Object, names: Sequence[str]
) -> np.ndarray:
    """Poses (F, P, 4, 4) of bones, in the armature's space, that apply ``transforms`` (F, P, 3, 4) to the rest mesh."""
    return matrices_in_armature_space(transforms, motion) @ rest_matrices(armature, names)


def _extents(
    parts: Parts, reading: Reading, names: Sequence[str], bones: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """(P, 3): how far the vertices of each bone reach along its axes."""
    from ...core.bone_placement import extents_along

    matrix = reading.motion.to_armature[0]
    rest = transform_points(rest_positions(parts.mesh.data), matrix)
    axes = np.array([parts.armature.data.bones[name].matrix_local.to_3x3() for name in names], dtype=np.float64)
    return extents_along(axes, rest, bones, weights, len(names))
