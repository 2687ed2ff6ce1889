# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake Deformers: weights, and driven helper bones, that imitate the modifiers after the armature."""

import time
from dataclasses import replace
from typing import Any

import bpy
import numpy as np

from ...blender import background
from ...blender.armatures import check_armature
from ...blender.bodies import deforming_bones
from ...blender.bone_weights import BoneWeights, locked_bones, notes_on_users, read_bone_weights, write_bone_weights
from ...blender.character import mesh_meant
from ...blender.helper_bones.driven import make_driven_bones, plan_driven_bones, rounded
from ...blender.preconditions import check_unchanged, object_label, unmet
from ...blender.records import write_record
from ...blender.skeletons import skeleton_of
from ...blender.skin_reader import mesh_edges, rest_positions
from ...blender.weight_tools import forget_figures
from ...blender.wording import vertices_text
from ...core.errors import BadScene
from .earlier_weights import note_weights, store
from .figures import FIGURES, BakedDeformers, BakeFigures
from .joint_ranges import joint_ranges
from .made_poses import made_poses
from .posed_rig import PosedRig, check_memory, plain, posed_rig
from .settings import DeformerSettings
from .teacher import Teacher, teacher_of

# Test poses, beside those that weights are fitted to: their share, and at least so many.
_TEST_SHARE, _LEAST_TESTS = 6, 10
# Less than this share of the mesh's diagonal (root mean square) is no effect.
_NO_EFFECT = 1e-6
# The share of the deformers' effect below which it is hardly worth the loss of the rest.
_LITTLE = 0.1


def check_bakeable(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raises SkinningError if nothing can be baked for the active object. Cheap enough for a panel."""
    mesh = mesh_meant(context, active)
    if mesh is None or mesh.type != "MESH":
        raise (
            unmet("NOT_SKINNED", object=mesh)
            if mesh is not None
            else unmet("NO_ACTIVE_OBJECT", remedy="Select the mesh that an armature deforms")
        )
    teacher_of(context, mesh)


def bake_deformers(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> background.Steps:
    """Generator: bake the deformers of the mesh by the DeformerSettings ``given``; returns a BakedDeformers, yields
    (fraction, stage). Raises SkinningError, and then changes nothing."""
    from ...core.imitation.driven_helpers import helper_motion
    from ...core.imitation.imitate import imitate
    from ...core.imitation.skeleton import posed

    begin, settings = time.perf_counter(), DeformerSettings(**given)
    check_bakeable(context, active)
    mesh = mesh_meant(context, active)
    assert mesh is not None
    teacher = teacher_of(context, mesh)
    armature = teacher.armature
    if settings.helper_bones:
        check_armature(armature)
    names = deforming_bones(armature)
    if not names:
        raise unmet("NO_DEFORMING_BONE", armature=armature)
    tests = max(settings.pose_count // _TEST_SHARE, _LEAST_TESTS)
    check_memory(mesh, settings.pose_count + tests)
    before = read_bone_weights(mesh, armature, names)
    if not before.bound.any():
        raise unmet("NO_GROUP_OF_A_BONE", object=mesh, armature=armature)
    skeleton = skeleton_of(armature, names)
    earlier = note_weights(mesh, names)
    with posed_rig(context, teacher, names) as rig:
        rest = rig.in_armature(rest_positions(mesh.data))
        skin = rest, before.bones, before.weights
        looking = joint_ranges(context, armature, names, skeleton, skin, rig.mesh)
        ranges, played, notes = yield from background.part_of(looking, 0.0, 0.05)
        posing = made_poses(rig, skeleton, ranges, played, settings.pose_count + tests, settings.seed, before)
        turns, frames, shrunk = yield from background.part_of(posing, 0.05, 0.3, "Posing")
    motion = posed(skeleton, turns)
    fitted = slice(0, settings.pose_count)
    _check_effect(teacher, rest, before, motion, frames)
    edges = mesh_edges(mesh.data)
    locked = locked_bones(mesh, names)
    solving = background.run_in_worker(
        lambda progress: imitate(
            rest,
            edges,
            frames[fitted],
            skeleton,
            turns[fitted],
            before.bones,
            before.weights,
            max_influences=settings.max_influences,
            helper_count=settings.helper_bones,
            locked_bones=locked,
            progress=progress,
        )
    )
    found = yield from background.part_of(solving, 0.3, 0.9)
    used = np.flatnonzero(np.bincount(found.bones[found.weights > 0], minlength=len(names) + len(found.helpers)))
    kept = [place - len(names) for place in used.tolist() if place >= len(names)]
    place = np.zeros(len(names) + len(found.helpers), np.int64)
    place[: len(names)] = np.arange(len(names))
    place[[len(names) + index for index in kept]] = len(names) + np.arange(len(kept))
    helpers = rounded([found.helpers[index] for index in kept])
    plan = plan_driven_bones(armature, [mesh], names, skeleton.parents, helpers)
    after = BoneWeights(
        (*names, *plan.names),
        before.bones,
        before.weights,
        before.totals,
        np.concatenate([before.locked, np.zeros(len(plan.names), bool)]),
    )
    rows = np.flatnonzero(found.changed)
    bones, weights = place[found.bones], found.weights
    added = [(spec.name, np.asarray(spec.matrix)) for spec, _ in plan.specs if spec.name in plan.names]
    everything = np.concatenate([motion, helper_motion(helpers, turns, motion)], axis=1)
    with posed_rig(context, teacher, names, added) as rig, plain(rig) as probe:
        write_bone_weights(probe, after, bones[rows], weights[rows], rows)
        measuring = _imitated(rig, rest, before, motion, frames, everything, settings.pose_count)
        share, trained = yield from background.part_of(measuring, 0.9, 1.0, "Measuring")
    if share <= 0:
        raise BadScene(
            f"No weights bring {object_label(mesh)} closer to what {teacher.what} makes of it. Allow more influences, "
            "or add helper bones"
        )
    check_unchanged(mesh, len(rest))
    make_driven_bones(context, armature, plan)
    write_bone_weights(mesh, after, bones[rows], weights[rows], rows)
    made = tuple(name for name in after.names if name in mesh.vertex_groups and name not in earlier.groups)
    switches = teacher.switch_off()
    store(mesh, replace(earlier, made=made, helpers=plan.names), switches)
    forget_figures(mesh)
    mesh.data.update()
    record = BakeFigures(
        what=teacher.what,
        armature=armature.name,
        imitated=share,
        at_training=trained,
        poses=settings.pose_count,
        tests=tests,
        helpers=len(helpers),
        influences=int(np.count_nonzero(weights, axis=1).max(initial=1)),
        shrunk=shrunk,
    )
    write_record(mesh.data, FIGURES, record)
    remarks = [*notes, *notes_on_users(mesh), f"{teacher.what} off, earlier weights kept for Restore Weights"]
    if share < _LITTLE:
        remarks.insert(0, "almost nothing is imitated: use Restore Weights, or add helper bones")
    unbound = int(np.count_nonzero(~before.bound))
    if unbound:
        remarks.append(f"{vertices_text(unbound)} without weights stay so")
    if len(helpers) < settings.helper_bones:
        remarks.append(f"{settings.helper_bones - len(helpers)} more helper bones would not help")
    return BakedDeformers(mesh.name, len(rows), record, tuple(remarks), time.perf_counter() - begin)


def _check_effect(
    teacher: Teacher, rest: np.ndarray, before: BoneWeights, motion: np.ndarray, frames: np.ndarray
) -> None:
    from ...core.deform import skin_frame

    size = np.linalg.norm(np.ptp(rest, axis=0))
    for each, wanted in zip(motion, frames, strict=True):
        apart = skin_frame(rest, before.bones, before.weights, each) - wanted
        if np.sqrt((apart**2).sum(axis=1).mean()) > _NO_EFFECT * size:
            return
    raise BadScene(
        f"{teacher.what} moves no vertex of {object_label(teacher.mesh)} in any pose, so there is nothing to bake. "
        "Check the settings of the modifiers"
    )


def _imitated(
    rig: PosedRig,
    rest: np.ndarray,
    before: BoneWeights,
    motion: np.ndarray,
    frames: np.ndarray,
    everything: np.ndarray,
    pose_count: int,
) -> "background.Steps[tuple[float, float]]":
    """Generator: the share of the effect that the rig's plain mesh has, at the test poses and at the others."""
    from ...core.deform import skin_frame

    sums = np.zeros((2, 2))
    for row, (each, wanted) in enumerate(zip(motion, frames, strict=True)):
        part = int(row < pose_count)
        sums[part, 0] += ((rig.shape(everything[row]) - wanted) ** 2).sum()
        sums[part, 1] += ((skin_frame(rest, before.bones, before.weights, each) - wanted) ** 2).sum()
        yield (row + 1) / len(frames), ""
    left = np.sqrt(sums[:, 0] / np.maximum(sums[:, 1], 1e-300))
    return float(1.0 - left[0]), float(1.0 - left[1])
