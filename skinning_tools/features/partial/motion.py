# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Motion: keyframes for bones whose weights are there already."""

import time
from dataclasses import dataclass

import numpy as np

from ...blender import actions, background
from ...blender.armatures import check_armature
from ...blender.bone_weights import read_bone_weights
from ...blender.preconditions import object_label
from ...blender.skin_reader import armature_of, check_even_scale, rest_positions
from ...blender.wording import counted
from ...core.errors import BadScene, BadWeights
from .added_bones import chain_parents, missing_chains, moved_otherwise
from .bone_keys import WantedPoses
from .keyable_bones import check_followed, check_keyable
from .notes import bare_notes
from .parts import Parts, parts_of, plain_copy
from .settings import MotionSettings
from .steps import (
    Reading,
    apply_motion,
    error_of,
    finished,
    matrices_in_armature_space,
    new_motion,
    part_of,
    read_parts,
)

# Of the size of a matrix: changes up to this are rounding.
_STILL = 1e-5


def solve_transforms(context, object, **given) -> background.Steps:
    """Generator: keyframes with which the bones that have weights bring the mesh closest to the target, by the
    MotionSettings ``given``; returns a PartialResult, yields (fraction, stage).

    They are in a new action, which also has all curves of the old one but those of these bones' channels; the old one
    stays in the file. Bones without weights keep their own motion. Connected bones, and with ``rotation_only`` all that
    have a parent, stay at their joints. Raises SkinningError, and then has changed nothing.
    """
    from ...core.decomposition.partial_transforms import solve_transforms as solve

    begin, given = time.perf_counter(), MotionSettings(**given)
    parts = parts_of(context, object, given.armature, given.target, weighted=True, writes_weights=False)
    _check_target(parts)
    weights = read_bone_weights(parts.mesh, parts.armature)
    used = np.flatnonzero(np.bincount(weights.bones[weights.weights > 0], minlength=len(weights.names)))
    if not len(used):
        raise BadWeights(
            f'No vertex of {object_label(parts.mesh)} has weights of a deforming bone of "{parts.armature.name}". '
            "Assign weights, or solve for them"
        )
    names = [weights.names[index] for index in used]
    chains = chain_parents(parts.armature, names)
    missing = missing_chains(parts.armature, names) if given.bone_kind == "AFFINE" else []
    if missing:
        check_armature(parts.armature)
    check_keyable(parts.armature, [*names, *chains.values()])
    if given.bone_kind != "AFFINE" and armature_of(parts.mesh) == parts.armature:
        check_even_scale(parts.mesh)
    reading = yield from read_parts(context, parts, given, names, weights)
    place = np.zeros(len(weights.names), np.int32)
    place[used] = np.arange(len(used))
    problem = _joint_problem(parts, reading, names, chains, given.rotation_only)
    rest, bones = rest_positions(parts.mesh.data), place[weights.bones]
    rows = np.where(weights.weights > 0, bones, 0)
    solving = background.run_in_worker(
        lambda progress: solve(
            reading.animation,
            rest,
            rows,
            weights.weights,
            len(problem.names),
            given.bone_kind,
            bone_axes=problem.axes,
            unscaled=problem.unscaled,
            joints=problem.joints,
            given=problem.given,
            fixed=problem.fixed,
            progress=progress,
        )
    )
    transforms = (yield from part_of(solving, 0.4, 0.7, "Solving the motion"))[:, : len(names)]
    chains |= {spec.adopts: spec.name for spec in missing}
    wanted = WantedPoses(
        tuple(names),
        _in_armature_space(transforms, reading.motion, parts.armature, names),
        problem.held[: len(names)],
        chains,
        given.bone_kind == "AFFINE",
    )
    times = actions.key_times(context.scene, reading.animation.frame_numbers)
    turned = moved_otherwise(parts.armature, [spec.adopts for spec in missing])
    extents = _extents(parts, reading, names, rows, weights.weights)
    with new_motion(context, parts, missing, wanted, reading, times, extents, "solved") as (copy, action, made):
        poses, sheared = made
        checking = check_followed(context, copy, poses, reading.animation.frame_numbers, parts.armature.name)
        yield from part_of(checking, 0.7, 0.75, "Checking the keys")
        with plain_copy(parts) as probe:
            meter_before = yield from error_of(probe, parts, reading, 0.75, 0.85)
        with plain_copy(parts, copy) as probe:
            meter = yield from error_of(probe, parts, reading, 0.85, 1.0, armature=copy)
        apply_motion(context, parts.armature, missing, action)
    unscaled = problem.unscaled[: len(names)] if given.bone_kind == "SCALED" else np.zeros(0)
    notes = [
        *reading.notes,
        *bare_notes(parts.mesh, weights),
        *_notes(int(np.count_nonzero(unscaled)), bool(sheared), turned),
    ]
    done = f'motion of {counted(len(names), "bone")} over {counted(len(times), "frame")} in the action "{action.name}"'
    left_behind = _left_behind(parts, reading, problem)
    if left_behind:
        notes.append(f"{left_behind}, which bones that stay at their joints cannot follow")
    ways = _ways(parts, problem, len(names), given, bool(left_behind))
    return finished(parts, "Motion", done, reading, meter_before, meter, begin, notes, ways)


def _check_target(parts: Parts) -> None:
    """Raises BadScene where the new keys would move the target, too."""
    target, armature = parts.target, parts.armature
    if target != parts.mesh and (
        armature_of(target) == armature
        or any(modifier.type == "ARMATURE" and modifier.object == armature for modifier in target.modifiers)
    ):
        raise BadScene(
            f'The target {object_label(target)} is deformed by "{armature.name}" itself, whose new keys would move it, '
            "too. Give the target an armature of its own: select both, and duplicate them"
        )


def _left_behind(parts: Parts, reading: Reading, problem: "_JointProblem") -> str:
    """Where the mesh object moves in its armature's space and bones stay at their joints, that it does."""
    matrices = reading.motion.to_armature
    moves = np.abs(matrices - matrices[0]).max() > _STILL * np.abs(matrices[0]).max()
    if not (moves and problem.held.any()):
        return ""
    return f'{object_label(parts.mesh)} moves as a whole against "{parts.armature.name}"'


def _ways(parts: Parts, problem: "_JointProblem", count: int, given: MotionSettings, left_behind: bool) -> list[str]:
    """What brings the mesh closer where the error has grown, ``count`` bones being solved for."""
    held, ways = problem.held[:count], []
    if left_behind:
        ways.append(f'parent {object_label(parts.mesh)} to "{parts.armature.name}"')
    elif held.all():
        ways.append(f'move "{problem.names[count]}", which has no weights and carries the others, with the target')
    if held.any():
        ways.append(
            "solve without Rotation Only" if given.rotation_only else "disconnect its bones in Edit Mode (Alt P)"
        )
    if given.bone_kind == "RIGID" and not given.rotation_only:
        ways.append("solve with another Bone Kind")
    return ways


def _notes(unscaled: int, sheared: bool, turned: list[str]) -> list[str]:
    """What the user ought to know of ``unscaled`` bones that might have been scaled, of shear that was lost, and of
    the bones ``turned`` that got new parents."""
    notes = []
    if unscaled:
        notes.append(
            f"{counted(unscaled, 'bone')} not scaled, as that would shear the bones below: set Inherit Scale of those "
            "to None where this is wanted"
        )
    if sheared:
        notes.append("parents that scale shear bones below, which these cannot undo: set Inherit Scale to None there")
    if turned:
        notes.append(
            f'{counted(len(turned), "bone")} (the first: "{turned[0]}") did not inherit rotation, or had Local '
            "Location off, and hangs from a new parent now: where other actions key its location, they play otherwise"
        )
    return notes


@dataclass(frozen=True, eq=False)
class _JointProblem:
    """names: the bones that are solved for, then those given, ``fixed`` (P,) with the motion ``given`` (F, P, 3, 4).
    axes (P, 3, 3), joints: see the core's solve_transforms; held (P,): bones whose heads stay at their joints;
    unscaled (P,): bones whose scale would shear other bones that are solved for."""

    names: tuple[str, ...]
    axes: np.ndarray
    joints: object
    given: np.ndarray
    fixed: np.ndarray
    held: np.ndarray
    unscaled: np.ndarray


def _joint_problem(parts: Parts, reading: Reading, names, chains, rotation_only: bool) -> _JointProblem:
    from ...core.decomposition.partial_transforms import Joints

    bones, motion = parts.armature.data.bones, reading.motion
    order = {name: index for index, name in enumerate(names)}
    upper = {parent: name for name, parent in chains.items()}
    all_names, parents, held = list(names), [], []
    for name in names:
        bone = bones[chains.get(name, name)]
        parent = bone.parent
        stays = bone.use_connect or (rotation_only and parent is not None)
        held.append(stays)
        if not stays:
            parents.append(-1)
            continue
        # The nearest ancestor that is solved for takes the joint along, and where there is none the parent itself.
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
    heads = heads @ to_mesh[:3, :3].T + to_mesh[:3, 3]
    axes = to_mesh[:3, :3] @ np.array([bones[name].matrix_local.to_3x3() for name in all_names], dtype=np.float64)
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    # Which way an axis points does not matter for what stretches along it, but where the mesh is mirrored against the
    # armature they would not be those of any rotation.
    axes[:, :, 2] *= np.sign(np.linalg.det(axes))[:, None]
    given = np.tile(np.eye(3, 4), (len(motion.matrices), len(all_names), 1, 1))
    for index in range(len(names), len(all_names)):
        pose = motion.pose[:, motion.place[all_names[index]]]
        rest = np.array(bones[all_names[index]].matrix_local, dtype=np.float64)
        moved = np.linalg.inv(motion.to_armature) @ pose @ np.linalg.inv(rest) @ motion.to_armature
        given[:, index] = moved[:, :3]
    return _JointProblem(
        tuple(all_names),
        axes,
        Joints(heads, np.array(parents + [-1] * extra)),
        given,
        np.arange(len(all_names)) >= len(names),
        np.array(held + [False] * extra),
        np.array([_shears_others(bones[chains.get(name, name)], order, name) for name in all_names]),
    )


def _shears_others(bone, solved, name: str) -> bool:
    """Whether what a bone scales is inherited by another one that is ``solved`` for."""
    waiting = list(bone.children)
    while waiting:
        child = waiting.pop()
        if child.inherit_scale.startswith("NONE"):
            continue
        if child.name in solved and child.name != name:
            return True
        waiting += child.children
    return False


def _in_armature_space(transforms: np.ndarray, motion, armature, names) -> np.ndarray:
    """Poses (F, P, 4, 4) of bones, in the armature's space, that do ``transforms`` (F, P, 3, 4) to the mesh at rest."""
    rest = np.array([armature.data.bones[name].matrix_local for name in names], dtype=np.float64)
    return matrices_in_armature_space(transforms, motion) @ rest


def _extents(parts: Parts, reading: Reading, names, bones, weights) -> np.ndarray:
    """(P, 3): how far the vertices of each bone reach along its axes."""
    from ...core.bone_placement import extents_along

    matrix = reading.motion.to_armature[0]
    rest = rest_positions(parts.mesh.data) @ matrix[:3, :3].T + matrix[:3, 3]
    axes = np.array([parts.armature.data.bones[name].matrix_local.to_3x3() for name in names], dtype=np.float64)
    return extents_along(axes, rest, bones, weights, len(names))
