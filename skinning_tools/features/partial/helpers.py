# SPDX-License-Identifier: GPL-3.0-or-later
"""Add Helper Bones: extra bones for a rig, whose own bones do not change."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.animation.clips import Clip
from ...blender.armatures import NewBone, check_armature
from ...blender.bodies import deforming_bones
from ...blender.bone_weights import BoneWeights, write_bone_weights
from ...blender.data_blocks import free_name
from ...blender.helper_bones.bones import taken_names
from ...blender.helper_bones.shared_again import weights_beside
from ...blender.preconditions import check_unchanged, object_label
from ...blender.put_back import put_back_on_failure
from ...blender.skin_reader import armature_of, check_even_scale, rest_positions
from ...blender.weight_tools import forget_figures
from ...blender.wording import counted, vertices_text
from ...core.bone_placement import Placement
from ...core.errors import BadScene, BadSettings
from ...core.geometry import transform_points
from ...core.progress import Progress
from .added_bones import HELPER_PREFIX, MECHANISM_PREFIX
from .bone_keys import WantedPoses
from .clip_motion import ClipPoses, apply_clips, in_each, keyed_clips
from .driven_helpers import Drive, DrivenBones, drive_of
from .keyable_bones import check_keyable
from .motion_action import adding, armature_copy, matrices_in_armature_space, new_motion
from .notes import bare_notes, target_notes
from .other_actions import motion_elsewhere, without_keys_note
from .outcome import finished
from .parts import Parts, parts_of
from .readings import RigMotion, plain_copy
from .settings import HelperSettings
from .steps import Reading, errors_of, locked_by_group, read_parts

if TYPE_CHECKING:
    from ...core.decomposition.helper_bones import HelperBones
    from ...core.imitation.driven_helpers import DrivenHelper

# The smallest scale of a bone's pose divided by the largest: flatter bones carry no helpers.
_FLATTEST = 0.1


def add_helper_bones(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> background.Steps:
    """Generator: add helper bones that bring the mesh closer to the target, by the HelperSettings ``given``; returns a
    PartialResult, yields (fraction, stage).

    The rig's own bones and their action do not change: the parent of a helper is the bone that shares most vertices
    with it, and helpers are keyed in a copy of the action, or driven. Raises SkinningError, and then changes nothing.
    """
    begin, settings = time.perf_counter(), HelperSettings(**given)
    if settings.driven and settings.bone_kind != "RIGID":
        raise BadSettings("Driven helper bones only move and rotate. Set Bone Kind to Rigid")
    parts = parts_of(context, active, settings.armature, settings.target, weighted=True)
    _check(parts, settings)
    locked = locked_by_group(parts.mesh, settings.locked_vertices)
    reading = yield from read_parts(context, parts, settings, deforming_bones(parts.armature))
    before, rest = reading.weights, rest_positions(parts.mesh.data)
    steady = _steady_bones(reading.motion, before.names)
    drive = drive_of(parts, reading.motion, before.names, steady) if settings.driven else None
    importance = reading.importance(rest)
    solving = background.run_in_worker(partial(_solve, settings, reading, rest, locked, importance, drive))
    helpers, driven, of_free = yield from background.part_of(solving, 0.4, 0.6, "Solving for helper bones")
    if not helpers.e_rms < helpers.e_rms_before:
        raise _no_help(parts, settings.driven)
    kept, bones = _used_helpers(helpers, len(before.names), settings.bone_count)
    new: KeyedBones | DrivenBones
    if drive is not None:
        new = DrivenBones(context, parts, reading, drive, [driven[index] for index in kept.tolist()])
    else:
        placement = _placement(reading, rest, helpers, bones, kept, settings.bone_kind)
        specs, chains = _helper_specs(
            parts, before.names, steady, bones, helpers.weights, placement, settings.bone_kind
        )
        skin = bones, helpers.weights, settings.bone_kind, helpers.bone_axes[kept]
        elsewhere = yield from background.part_of(motion_elsewhere(context, parts, reading, *skin), 0.6, 0.7)
        moved = [(None, reading.motion, helpers.transforms[:, kept]), *elsewhere]
        new = KeyedBones(context, parts, reading, specs, chains, placement, moved)
    after = _with_helpers(before, new.names)
    rows = np.flatnonzero(helpers.changed)
    notes = [*reading.notes, *target_notes(parts, reading), *bare_notes(parts.mesh, before)]
    with ExitStack() as stack:
        copy, clips = stack.enter_context(new.shown())
        old_mesh, new_mesh = stack.enter_context(plain_copy(parts)), stack.enter_context(plain_copy(parts, copy))
        write_bone_weights(new_mesh, after, bones[rows], helpers.weights[rows], rows)
        measuring = errors_of(context, parts, reading, old_mesh, new_mesh, copy, [(copy, clips)])
        errors, meter_before, meter = yield from measuring
        if meter_before is None or not meter.e_rms < meter_before.e_rms:
            raise _no_help(parts, settings.driven)
        check_unchanged(parts.mesh, len(rest))
        with put_back_on_failure(context, [parts.mesh], parts.armature):
            notes += new.apply()
            write_bone_weights(parts.mesh, after, bones[rows], helpers.weights[rows], rows)
            forget_figures(parts.mesh)
            parts.mesh.data.update()
    if len(kept) < settings.bone_count:
        notes.append(f"{settings.bone_count - len(kept)} more would not lower the error")
    done = f"{counted(len(kept), 'driven helper bone' if settings.driven else 'helper bone')} added to "
    done += f'"{parts.armature.name}", {vertices_text(len(rows))} with new weights'
    return finished(
        parts, "Helper Bones", done, reading, meter_before.e_rms, meter, begin, notes, (), errors, of_free=of_free
    )


def _used_helpers(helpers: "HelperBones", own_count: int, bone_count: int) -> tuple[np.ndarray, np.ndarray]:
    """The helpers that have weights, (H,) of ``bone_count``, and the bones of the vertices numbered without the
    others."""
    place = np.zeros(own_count + bone_count, np.int64)
    kept = np.flatnonzero(np.bincount(helpers.bones[helpers.weights > 0], minlength=len(place))[own_count:])
    place[:own_count] = np.arange(own_count)
    place[own_count + kept] = own_count + np.arange(len(kept))
    return kept, place[helpers.bones]


def _check(parts: Parts, settings: HelperSettings) -> None:
    """Raises BadScene if the armature cannot get such helpers."""
    check_armature(parts.armature)
    if not settings.driven:
        check_keyable(parts.armature, ())
    if settings.bone_kind != "AFFINE" and armature_of(parts.mesh) == parts.armature:
        check_even_scale(parts.mesh)


def _solve(
    settings: HelperSettings,
    reading: Reading,
    rest: np.ndarray,
    locked: np.ndarray,
    importance: np.ndarray | None,
    drive: Drive | None,
    progress: Progress,
) -> "tuple[HelperBones, list[DrivenHelper], float]":
    """The helpers; with ``drive`` also as functions of the joints, and the share that they have of the gain of free
    helpers in the same frames and poses, else −1."""
    from ...core.decomposition.helper_bones import add_helper_bones as solve_free
    from ...core.imitation.driven_solve import add_driven_helper_bones as solve_driven

    weights = reading.weights
    skin = reading.animation, rest, reading.motion.matrices, weights.bones, weights.weights
    options: dict[str, Any] = {
        "max_influences": settings.max_influences,
        "own_weights": settings.own_weights,
        "locked_bones": weights.locked,
        "locked_vertices": locked,
        "importance": importance,
        "progress": progress,
    }
    if drive is None:
        return solve_free(*skin, settings.bone_count, bone_kind=settings.bone_kind, **options), [], -1.0
    found = solve_driven(*skin, drive.skeleton, drive.turns, drive.carriers, settings.bone_count, **options)
    before, after = found.found.e_rms_before, found.found.e_rms
    gain = before - found.e_rms_free
    return found.found, found.helpers, max((before - after) / gain, 0.0) if gain > 0 else 0.0


class KeyedBones:
    """Helpers to add with their keyframes. names: of the bones. moved: the present motion of all bones, and that of the
    helpers (F, H, 3, 4) in the mesh's space, first of what the solve has read, then of each other clip."""

    def __init__(
        self,
        context: bpy.types.Context,
        parts: Parts,
        reading: Reading,
        specs: list[NewBone],
        chains: dict[str, str],
        placement: Placement,
        moved: Sequence[tuple[Clip | None, RigMotion, np.ndarray]],
    ):
        self._context, self._parts, self._reading, self._specs = context, parts, reading, specs
        self.names = tuple(spec.name for spec in specs if spec.deforms)
        rest = np.tile(np.eye(4), (len(self.names), 1, 1))
        rest[:, :3, :3], rest[:, :3, 3] = placement.axes, placement.heads
        jointed = np.zeros(len(self.names), bool)
        poses = [
            WantedPoses(self.names, matrices_in_armature_space(each, motion) @ rest, jointed, chains, bool(chains))
            for _, motion, each in moved
        ]
        self._wanted = poses[0]
        others = zip(moved[1:], poses[1:], strict=True)
        self._keyed = [
            *in_each(reading.chosen.used, self._wanted, reading.motion),
            *(ClipPoses(clip, wanted, motion) for (clip, motion, _), wanted in others if clip is not None),
        ]
        self._clips: dict[Clip | None, Clip] = {}
        # Only if the solve has read the present animation instead of clips.
        self._action: bpy.types.Action | None = None

    @contextmanager
    def shown(self) -> Iterator[tuple[bpy.types.Object, dict[Clip | None, Clip]]]:
        """A copy of the armature with the helpers, in no scene and removed at the end, and what it plays in each clip.
        Their actions are removed if the body raises."""
        context, reading, armature = self._context, self._reading, self._parts.armature
        with ExitStack() as stack:
            if reading.chosen.used:
                copy = stack.enter_context(armature_copy(armature, adding(context, self._specs)))
            else:
                times = actions.key_times(context.scene, reading.animation.frame_numbers)
                given = context, self._parts, self._specs, self._wanted, reading, times, None, "helpers"
                copy, self._action, _ = stack.enter_context(new_motion(*given))
            self._clips = stack.enter_context(keyed_clips(copy, armature, self._keyed, "helpers"))
            if self._action is not None:
                actions.assign_action(copy, self._action)
            yield copy, self._clips

    def apply(self) -> list[str]:
        """Add them to the armature itself, with the actions that were shown; returns notes."""
        notes = apply_clips(self._context, self._parts.armature, self._specs, self._clips, self._action)
        return [*notes, *without_keys_note(self._reading)]


def _no_help(parts: Parts, driven: bool) -> BadScene:
    if driven:
        return BadScene(
            f"No helper bone that follows the pose brings {object_label(parts.mesh)} closer to its target: what "
            f'is left to correct does not depend on the pose of "{parts.armature.name}". Add helper bones without '
            "Driven"
        )
    return BadScene(
        f'No helper bone brings {object_label(parts.mesh)} closer to its target: "{parts.armature.name}" already '
        "follows it as closely as possible"
    )


def _with_helpers(before: BoneWeights, names: Sequence[str]) -> BoneWeights:
    return BoneWeights(
        (*before.names, *names),
        before.bones,
        before.weights,
        before.totals,
        np.concatenate([before.locked, np.zeros(len(names), bool)]),
    )


def _placement(
    reading: Reading, rest: np.ndarray, helpers: "HelperBones", bones: np.ndarray, kept: np.ndarray, bone_kind: str
) -> Placement:
    """The rest placement, in the armature's space, of the ``kept`` among ``helpers`` (a core HelperBones); bones (N,
    K): the rig's own, then these."""
    from ...core.bone_placement import place_bones

    to_armature, own_count = reading.motion.to_armature[0], len(reading.weights.names)
    in_armature = transform_points(rest, to_armature)
    axes = _turned_axes(to_armature, helpers.bone_axes[kept]) if bone_kind == "SCALED" else None
    weights = np.where(bones >= own_count, helpers.weights, 0.0)
    return place_bones(in_armature, np.maximum(bones - own_count, 0), weights, len(kept), axes)


def _turned_axes(to_armature: np.ndarray, axes: np.ndarray) -> np.ndarray:
    turned = to_armature[:3, :3] @ axes
    return turned / np.linalg.norm(turned, axis=1, keepdims=True)


def _steady_bones(motion: RigMotion, names: Sequence[str]) -> np.ndarray:
    """(P,) bool: the bones that may be parents: children cannot undo a parent that flattens or mirrors."""
    linear = motion.pose[:, [motion.place[name] for name in names], :3, :3]
    sizes = np.linalg.svd(linear, compute_uv=False)
    upright = np.linalg.det(linear) > 0
    return (upright & (sizes[..., 2] > _FLATTEST * sizes[..., 0])).all(axis=0)


def _helper_specs(
    parts: Parts,
    own_names: Sequence[str],
    steady: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    placement: Placement,
    bone_kind: str,
) -> tuple[list[NewBone], dict[str, str]]:
    """The bones to add, with a parent before each bone that may shear, and the helpers' names."""
    own_count, taken = len(own_names), taken_names(parts.armature, [parts.mesh])
    digits = max(2, len(str(len(placement.heads))))
    specs, chains = [], {}
    for helper in range(len(placement.heads)):
        common = weights_beside(bones, weights, own_count, own_count + helper)
        parent = own_names[int(np.argmax(common))]
        hangs = steady[int(np.argmax(common))]
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = placement.axes[helper], placement.heads[helper]
        length = float(placement.lengths[helper])
        name = free_name(taken, f"{HELPER_PREFIX}{parent.removeprefix(HELPER_PREFIX)}_{helper + 1:0{digits}}")
        # A parent's scale would shear helpers that cannot shear themselves; the others can compensate.
        inherit = "FULL" if bone_kind == "AFFINE" else "NONE"
        if bone_kind == "AFFINE":
            upper = free_name(taken, f"{MECHANISM_PREFIX}{name}")
            specs.append(NewBone(upper, parent if hangs else "", matrix, length, False))
            chains[name] = parent = upper
        hangs = hangs or name in chains
        specs.append(NewBone(name, parent if hangs else "", matrix, length, True, inherit_scale=inherit))
    return specs, chains
