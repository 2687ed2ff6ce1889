# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake Deformers: weights, and driven helper bones, that imitate the modifiers after the armature."""

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background
from ...blender.armatures import check_armature
from ...blender.bone_weights import BoneWeights, locked_bones, notes_on_users, write_bone_weights
from ...blender.helper_bones.driven import DrivenPlan, make_driven_bones, plan_driven_bones, rounded
from ...blender.preconditions import check_unchanged, object_label
from ...blender.put_back import put_back_on_failure
from ...blender.records import write_record
from ...blender.seams import seam_notes
from ...blender.skin_reader import mesh_edges
from ...blender.weight_tools import forget_figures
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene
from ...core.geometry import diagonal
from ...core.progress import Progress
from .earlier_weights import note_weights, store
from .figures import FIGURES, BakedDeformers, BakeFigures
from .posed_rig import plain, posed_rig
from .settings import DeformerSettings
from .subject import Poses, Subject, check_bakeable, poses_of, subject_of

if TYPE_CHECKING:
    from ...core.imitation.driven_helpers import DrivenHelper
    from ...core.imitation.imitate import Imitation

# Test poses, beside those that weights are fitted to: their share, and at least so many.
_TEST_SHARE, _LEAST_TESTS = 6, 10
# Less than this share of the mesh's diagonal (root mean square) is no effect.
_NO_EFFECT = 1e-6
# The share of the deformers' effect below which it is hardly worth the loss of the rest.
_LITTLE = 0.1


@dataclass(frozen=True, eq=False)
class _Solution:
    """What a bake writes: the plan of its helpers; and for the vertices ``rows`` (n,) bones and weights (n, K), which
    are those of ``skin``."""

    helpers: "list[DrivenHelper]"
    plan: DrivenPlan
    skin: BoneWeights
    rows: np.ndarray
    bones: np.ndarray
    weights: np.ndarray

    def write(self, mesh_object: bpy.types.Object) -> None:
        write_bone_weights(mesh_object, self.skin, self.bones, self.weights, self.rows)


def bake_deformers(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> background.Steps:
    """Generator: bake the deformers of the mesh by the DeformerSettings ``given``; returns a BakedDeformers, yields
    (fraction, stage). Raises SkinningError, and then changes nothing."""
    begin, settings = time.perf_counter(), DeformerSettings(**given)
    teacher = check_bakeable(context, active)
    if settings.helper_bones:
        check_armature(teacher.armature)
    tests = max(settings.pose_count // _TEST_SHARE, _LEAST_TESTS)
    subject = subject_of(teacher, settings.pose_count + tests)
    mesh = subject.mesh
    posing = poses_of(context, subject, settings.pose_count + tests, settings.seed)
    poses = yield from background.part_of(posing, 0.0, 0.3)
    _check_effect(subject, poses)
    locked, edges = locked_bones(mesh, subject.names), subject.place[mesh_edges(mesh.data)]
    solving = background.run_in_worker(partial(_imitation, subject, poses, settings, edges, locked))
    found = yield from background.part_of(solving, 0.3, 0.9)
    solution = _solution(subject, poses, found)
    measuring = _imitated(context, subject, poses, solution, settings.pose_count)
    share, trained = yield from background.part_of(measuring, 0.9, 1.0, "Measuring")
    if share <= 0:
        raise BadScene(
            f"No weights bring {object_label(mesh)} closer to what {teacher.what} makes of it. Allow more influences, "
            "or add helper bones"
        )
    check_unchanged(mesh, len(subject.place))
    record = BakeFigures(
        what=teacher.what,
        armature=subject.armature.name,
        imitated=share,
        at_training=trained,
        poses=settings.pose_count,
        tests=tests,
        helpers=len(solution.helpers),
        influences=int(np.count_nonzero(solution.weights, axis=1).max(initial=1)),
        shrunk=poses.shrunk,
    )
    with put_back_on_failure(context, [mesh], subject.armature):
        _write(context, subject, solution, record)
    torn = seam_notes(mesh, (shape[subject.place] for shape in poses.frames))
    notes = (*_notes(subject, record, settings), *torn, *poses.notes, *notes_on_users(mesh))
    return BakedDeformers(mesh.name, len(solution.rows), record, notes, time.perf_counter() - begin)


def _imitation(
    subject: Subject,
    poses: Poses,
    settings: DeformerSettings,
    edges: np.ndarray,
    locked: np.ndarray,
    progress: Progress,
) -> "Imitation":
    from ...core.imitation.imitate import imitate

    return imitate(
        poses.rest,
        edges,
        poses.frames[: settings.pose_count],
        poses.skeleton,
        poses.turns[: settings.pose_count],
        *subject.influences,
        max_influences=settings.max_influences,
        helper_count=settings.helper_bones,
        locked_bones=locked,
        progress=progress,
    )


def _solution(subject: Subject, poses: Poses, found: "Imitation") -> _Solution:
    """The helpers that move vertices, and the weights with these alone."""
    own, before = len(subject.names), subject.weights
    used = np.bincount(found.bones[found.weights > 0], minlength=own + len(found.helpers))[own:]
    kept = np.flatnonzero(used)
    place = np.zeros(own + len(found.helpers), np.int64)
    place[:own] = np.arange(own)
    place[own + kept] = own + np.arange(len(kept))
    helpers = rounded([found.helpers[index] for index in kept.tolist()])
    plan = plan_driven_bones(subject.armature, [subject.mesh], subject.names, poses.skeleton.parents, helpers)
    skin = replace(
        before,
        names=(*subject.names, *plan.names),
        locked=np.concatenate([before.locked, np.zeros(len(plan.names), bool)]),
    )
    rows = np.flatnonzero(found.changed[subject.place])
    solved = subject.place[rows]
    return _Solution(helpers, plan, skin, rows, place[found.bones[solved]], found.weights[solved])


def _write(context: bpy.types.Context, subject: Subject, solution: _Solution, record: BakeFigures) -> None:
    mesh, plan = subject.mesh, solution.plan
    earlier = note_weights(mesh, subject.names)
    make_driven_bones(context, subject.armature, plan)
    solution.write(mesh)
    made = tuple(name for name in solution.skin.names if name in mesh.vertex_groups and name not in earlier.groups)
    switches = subject.teacher.switch_off()
    store(mesh, replace(earlier, made=made, helpers=plan.names), switches)
    forget_figures(mesh)
    write_record(mesh.data, FIGURES, record)
    mesh.data.update()


def _notes(subject: Subject, record: BakeFigures, settings: DeformerSettings) -> list[str]:
    notes = [f"{record.what} off, earlier weights kept for Restore Weights"]
    if record.imitated < _LITTLE:
        notes.insert(0, "almost nothing is imitated: use Restore Weights, or add helper bones")
    unbound = int(np.count_nonzero(~subject.weights.bound))
    if unbound:
        notes.append(f"still no weights for {vertices_text(unbound)}")
    if record.helpers < settings.helper_bones:
        notes.append(f"{counted(settings.helper_bones - record.helpers, 'further helper bone')} would not help")
    return notes


def _check_effect(subject: Subject, poses: Poses) -> None:
    from ...core.deform import skin_frame
    from ...core.imitation.skeleton import posed

    size = diagonal(poses.rest)
    for turns, wanted in zip(poses.turns, poses.frames, strict=True):
        motion = posed(poses.skeleton, turns[None])[0]
        apart = skin_frame(poses.rest, *subject.influences, motion) - wanted
        if np.sqrt((apart**2).sum(axis=1).mean()) > _NO_EFFECT * size:
            return
    raise BadScene(
        f"{subject.teacher.what} moves no vertex of {object_label(subject.mesh)} in any pose, so there is nothing to "
        "bake. Check the settings of the modifiers"
    )


def _imitated(
    context: bpy.types.Context, subject: Subject, poses: Poses, solution: _Solution, pose_count: int
) -> "background.Steps[tuple[float, float]]":
    """Generator: the share of the effect that the rig's plain mesh has, at the test poses and at the others."""
    from ...core.deform import skin_frame
    from ...core.imitation.driven_helpers import helper_motion
    from ...core.imitation.skeleton import posed

    plan, sums = solution.plan, np.zeros((2, 2))
    added = [(spec.name, np.asarray(spec.matrix)) for spec, _ in plan.specs if spec.name in plan.names]
    motion = posed(poses.skeleton, poses.turns)
    everything = np.concatenate([motion, helper_motion(solution.helpers, poses.turns, motion)], axis=1)
    with posed_rig(context, subject.teacher, subject.names, added) as rig, plain(rig) as probe:
        solution.write(probe)
        for row, (each, wanted) in enumerate(zip(motion, poses.frames, strict=True)):
            part = int(row < pose_count)
            sums[part, 0] += ((rig.shape(everything[row])[subject.places] - wanted) ** 2).sum()
            sums[part, 1] += ((skin_frame(poses.rest, *subject.influences, each) - wanted) ** 2).sum()
            yield (row + 1) / len(motion), ""
    left = np.sqrt(sums[:, 0] / np.maximum(sums[:, 1], 1e-300))
    return float(1.0 - left[0]), float(1.0 - left[1])
