# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit weights to the target positions of vertices in a pose: the inputs, the fit and its result.

Lengths are in scene units, whatever the scale of the objects: the fit works in the space of ``bodies.stretch_of``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import write_attribute
from ...blender.bodies import named_parents, stretch_of
from ...blender.bone_selection import selected_bones
from ...blender.bone_weights import BoneWeights, notes_on_users, read_bone_weights, write_bone_weights
from ...blender.figures import Figure, Result
from ...blender.fit_poses import SAME_PLACE, check_fittable, check_shown, differ
from ...blender.lengths import length_text
from ...blender.object_checks import check_object
from ...blender.preconditions import check_bone_deforms, object_label, unmet
from ...blender.shapes import shape_key_block
from ...blender.skin_reader import armature_of
from ...blender.wording import listed, vertices_text
from ...core.errors import BadScene
from ...core.geometry import diagonal
from . import posed_copies
from .posed_copies import copies_of, fit_target
from .settings import CANDIDATES, FitSettings
from .sources import Wanted, read_wanted, target_object

# The distance of each fitted vertex from its target, in scene units; 0 for the others.
ERROR_ATTRIBUTE = "skinning_fit_error"

# A vertex up to this far away was not moved: relative to the mesh's diagonal or, for world positions, to the distance
# from the world's origin, as positions are in single precision.
_ROUNDING = 2e-6

# Relative to the mesh's diagonal: a vertex that ends farther from its target has not reached it.
_REACHED = 1e-4


@dataclass(frozen=True)
class FitResult(Result):
    """count: number of fitted vertices; poses: number of poses; mean, largest: remaining distance in scene units, the
    largest at vertex ``worst``; missed: number of vertices that do not reach their targets."""

    object_name: str
    count: int
    poses: int
    mean: float
    largest: float
    worst: int
    missed: int
    notes: tuple[str, ...]

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.object_name),
            Figure("Poses", self.poses),
            Figure("Vertices fitted", self.count),
            Figure(
                "Out of reach",
                self.missed,
                line=f"{self.missed:,} of {self.count:,} cannot reach their targets with these bones",
                if_any=True,
            ),
            Figure("Mean distance left", self.mean, "{:.6g}", length=True),
            Figure("Largest distance left", self.largest, f"{{:.6g}}, vertex {self.worst}", length=True),
            Figure("Worst vertex", self.worst, line=f"worst vertex {self.worst}"),
        ]


def check_ready(context: bpy.types.Context, active: bpy.types.Object | None, settings: FitSettings) -> None:
    """Raise SkinningError with the reason if nothing can be fitted for the active object. Cheap enough for a panel."""
    original = fit_target(context, active)
    check_fittable(context, original)
    copies = copies_of(original, context.scene)
    if settings.source == "COPIES":
        if not copies:
            raise BadScene(
                f"There is no posed copy of {object_label(original)} yet. Pose the armature, press Start, and move "
                "vertices of the copy to their target positions"
            )
        return
    if not copies:
        check_shown(context, original)
    if settings.source == "OBJECT":
        check_object(context, target_object(context, settings))
    else:
        shape_key_block(original, settings.shape_key)


def fit(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    bones: tuple[str, ...] = (),
    frames: tuple[int, ...] = (),
    **given: Any,
) -> background.Steps:
    """Generator: fit the weights of the mesh that belongs to the active object; returns a FitResult.

    bones: names that override the setting ``candidates``; frames: poses for the sources OBJECT and SHAPE_KEY, with
    equal weight, instead of the present one. Raises SkinningError, and then changes nothing.
    """
    from ...core.binding.fit import fit_weights

    settings = FitSettings(**given)
    check_ready(context, active, settings)
    original = fit_target(context, active)
    armature = armature_of(original)
    copies = copies_of(original, context.scene) if settings.source == "COPIES" else []
    yield 0.0, "Reading the mesh"
    before = read_bone_weights(original, armature)
    wanted, omitted = read_wanted(context, original, before, settings, frames, copies)
    chosen = _chosen(context, original, wanted, settings, copies)
    candidates = candidates_of(original, before, chosen, settings.candidates, bones)
    left_alone = chosen[:0]
    if candidates is None:
        chosen, left_alone = _bound(original, before, chosen)
    _check_poses(original, wanted, chosen)
    stretch = stretch_of(original)
    matrices, rest, targets = _in_scene_units(wanted, chosen, stretch)
    rows = before.bones[chosen], before.weights[chosen]
    _check_free(original, before, rows, candidates)
    _check_spread(original, before, rows, matrices, rest, candidates)
    most = settings.max_influences or int(np.count_nonzero(before.weights, axis=1).max(initial=1))
    options: dict[str, Any] = {"candidates": candidates, "max_influences": most, "locked": before.locked}
    result = yield from background.run_in_worker(
        lambda progress: fit_weights(rest, *rows, matrices, targets, **options, progress=progress)
    )
    write_bone_weights(original, before, result.bones, result.weights, chosen)
    original.data.update()
    notes = _after_writing(original, wanted, left_alone)
    residuals = _residuals(original, before.names, chosen, matrices, rest, targets)
    _store_errors(original, chosen, residuals)
    if copies and not settings.keep_copies:
        posed_copies.remove(context, copies)
    size = diagonal(wanted[0].pose.rest @ stretch.T)
    worst = int(np.argmax(residuals.max(axis=0)))
    return FitResult(
        original.name,
        len(chosen),
        len(wanted),
        float(residuals.mean()),
        float(residuals.max()),
        int(chosen[worst]),
        int((residuals > _REACHED * size).any(axis=0).sum()),
        (*notes, *omitted),
    )


def _bound(original: bpy.types.Object, before: BoneWeights, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the vertices ``chosen``, those with weights, which bones of their own can move, and the others. Raises
    BadScene."""
    bound = before.bound[chosen]
    if not bound.any():
        raise BadScene(
            f"No bone moves the {vertices_text(len(chosen))} to fit in {object_label(original)}. "
            f"Choose other bones than {CANDIDATES[0][1]}"
        )
    return chosen[bound], chosen[~bound]


def _chosen(
    context: bpy.types.Context,
    original: bpy.types.Object,
    wanted: list[Wanted],
    settings: FitSettings,
    copies: Sequence[bpy.types.Object],
) -> np.ndarray:
    """Indices of the vertices to fit. Raises BadScene if there are none."""
    if settings.vertices == "SELECTED":
        chosen = np.any([each.selected for each in wanted], axis=0)
        if not chosen.any():
            where = "the posed copies" if copies else object_label(original)
            remedy = "Select those to fit in Edit Mode, or choose Moved"
            raise unmet("NO_VERTEX_SELECTED", object=where, remedy=remedy)
        return np.flatnonzero(chosen)
    stretch = stretch_of(original)
    extent = diagonal(wanted[0].pose.rest @ stretch.T)
    if settings.source == "OBJECT":
        extent = max(extent, original.matrix_world.translation.length)
    threshold = max(settings.threshold, _ROUNDING * extent)
    moved = [np.linalg.norm((each.targets - each.pose.shape) @ stretch.T, axis=1) for each in wanted]
    chosen = np.flatnonzero(np.max(moved, axis=0) > threshold)
    if len(chosen):
        return chosen
    least = length_text(context.scene, threshold)
    if settings.source == "COPIES":
        names = listed(f'"{copy.name}"' for copy in copies)
        raise BadScene(f"No vertex of {names} was moved by more than {least}. Move some in Edit Mode or Sculpt Mode")
    raise BadScene(f"No vertex has to move by more than {least}. The weights already reach the targets")


def candidates_of(
    original: bpy.types.Object, before: BoneWeights, chosen: np.ndarray, which: str, bones: tuple[str, ...] = ()
) -> np.ndarray | None:
    """Indices of the bones that may get weights of the vertices ``chosen``; None for each vertex's own bones. bones:
    names, in place of the setting ``which``. Raises BadScene."""
    armature = armature_of(original)
    if bones:
        for name in bones:
            check_bone_deforms(armature, name)
        return np.unique([before.names.index(name) for name in bones])
    moving = np.unique(before.bones[chosen][before.weights[chosen] > 0])
    found = candidate_bones(armature, before.names, moving, which)
    if found is not None and not len(found):
        remedy = "Select bones that deform in Pose Mode, or choose other Bones to fit"
        raise unmet("NO_BONE_SELECTED", armature=armature, remedy=remedy)
    return found


def candidate_bones(
    armature: bpy.types.Object, names: Sequence[str], moving: np.ndarray, which: str
) -> np.ndarray | None:
    """Indices into the deforming bones ``names`` of the bones that may get weights; None for each vertex's own bones.

    moving: the bones that move the vertices. NEAR adds the bones next to them: their nearest deforming ancestors, and
    the bones whose nearest deforming ancestors they are.
    """
    if which == "OWN":
        return None
    if which == "ALL":
        return np.arange(len(names))
    if which == "SELECTED":
        return np.flatnonzero(np.isin(names, selected_bones(armature)))
    above = named_parents(armature, names)
    parents = above[moving]
    found = [moving, parents[parents >= 0], np.flatnonzero(np.isin(above, moving))]
    return np.unique(np.concatenate(found).astype(int))


def _check_poses(original: bpy.types.Object, wanted: list[Wanted], chosen: np.ndarray) -> None:
    """Raise BadScene if the chosen vertices have different positions before the armature in the poses."""
    rest = [each.pose.rest[chosen] for each in wanted]
    size = diagonal(wanted[0].pose.rest)
    if max(np.abs(each - rest[0]).max() for each in rest) > SAME_PLACE * size:
        raise BadScene(
            f"Shape keys or modifiers above the armature shape {object_label(original)} differently in the "
            f"{len(wanted)} poses, so they cannot be fitted together. Fit them one by one, or disable those"
        )


def _in_scene_units(
    wanted: list[Wanted], chosen: np.ndarray, stretch: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """matrices (F, P, 3, 4), rest (n, 3) and targets (F, n, 3) of the chosen vertices in the space of ``stretch``."""
    matrices = np.array([each.pose.matrices for each in wanted])
    linear = stretch @ matrices[..., :3] @ np.linalg.inv(stretch)
    matrices = np.concatenate([linear, stretch @ matrices[..., 3:]], axis=-1)
    targets = np.array([each.targets[chosen] @ stretch.T for each in wanted])
    return matrices, wanted[0].pose.rest[chosen] @ stretch.T, targets


def _check_free(
    original: bpy.types.Object, before: BoneWeights, rows: tuple[np.ndarray, np.ndarray], candidates: np.ndarray | None
) -> None:
    """Raise BadScene if locked groups leave nothing to fit."""
    bones, weights = rows
    open_bones = ~before.locked[bones] & (weights > 0) if candidates is None else ~before.locked[candidates]
    if not open_bones.any():
        raise BadScene(
            f"All vertex groups to fit of {object_label(original)} are locked. Unlock some in the mesh's "
            "vertex groups, or choose other Bones"
        )


def _check_spread(
    original: bpy.types.Object,
    before: BoneWeights,
    rows: tuple[np.ndarray, np.ndarray],
    matrices: np.ndarray,
    rest: np.ndarray,
    candidates: np.ndarray | None,
) -> None:
    """Raise BadScene if all bones move each vertex to the same place: then weights have no effect."""
    bones, weights = rows
    if candidates is None and (np.count_nonzero(weights, axis=1) < 2).all():
        raise BadScene(
            f"The {vertices_text(len(bones))} of {object_label(original)} to fit: only one bone moves each of them, "
            f"so there is nothing to fit. Choose other bones than {CANDIDATES[0][1]}"
        )
    bones = np.unique(bones[weights > 0]) if candidates is None else candidates
    if not any(differ(frame[bones], rest) for frame in matrices):
        names = listed(f'"{before.names[bone]}"' for bone in bones)
        raise BadScene(
            f"The bones that may be fitted, {names}, put the vertices of {object_label(original)} in the same "
            "place in this pose, so their weights have no effect. Choose other Bones, or another pose"
        )


def _after_writing(original: bpy.types.Object, wanted: list[Wanted], left_alone: np.ndarray) -> tuple[str, ...]:
    """Apply the changes that go with the new weights; returns notes for the user."""
    notes = []
    for name in {each.key for each in wanted} - {""}:
        block = original.data.shape_keys.key_blocks[name]
        if not block.mute and abs(block.value) > 0:
            block.mute = True
            notes.append(f'shape key "{name}" muted, since the weights now replace it')
    if len(left_alone):
        notes.append(f"{vertices_text(len(left_alone))} without weights unchanged")
    return (*notes, *notes_on_users(original))


def _residuals(
    original: bpy.types.Object,
    names: Sequence[str],
    chosen: np.ndarray,
    matrices: np.ndarray,
    rest: np.ndarray,
    targets: np.ndarray,
) -> np.ndarray:
    """(F, n) distances from the targets with the weights that Blender has stored."""
    from ...core.deform import skin_frame

    after = read_bone_weights(original, armature_of(original), names)
    shapes = [skin_frame(rest, after.bones[chosen], after.weights[chosen], frame) for frame in matrices]
    return np.linalg.norm(np.array(shapes) - targets, axis=-1)


def _store_errors(original: bpy.types.Object, chosen: np.ndarray, residuals: np.ndarray) -> None:
    mesh = original.data
    errors = np.zeros(len(mesh.vertices), np.float32)
    errors[chosen] = residuals.max(axis=0)
    write_attribute(mesh, ERROR_ATTRIBUTE, "FLOAT", errors)
