# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights from where an artist wants vertices to be in a pose: what is asked for, the fit, and what came of it.

Lengths are the scene's, whatever scale the objects have: the fit works in the space of ``bodies.stretch_of``.
"""

from dataclasses import dataclass

import numpy as np

from ...blender import background
from ...blender.bodies import named_parents, stretch_of
from ...blender.bone_selection import selected_bones
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.fit_poses import SAME_PLACE, check_fittable, check_shown, differ
from ...blender.lengths import length_text
from ...blender.object_checks import check_object
from ...blender.preconditions import object_label
from ...blender.shapes import shape_key_block
from ...blender.skin_reader import armature_of
from ...blender.wording import listed, vertices_text
from ...core.errors import BadScene
from . import posed_copies
from .posed_copies import copies_of, fit_target
from .settings import CANDIDATES, FitSettings
from .sources import Wanted, read_wanted, target_object

# Of each fitted vertex, how far from its place it is; 0 at the others. In the scene's units.
ERROR_ATTRIBUTE = "skinning_fit_error"

# A vertex that is no farther away was not moved: of the mesh's diagonal, or where world positions are compared, of the
# distance from the world's origin, as positions come in single precision.
_ROUNDING = 2e-6

# Of the mesh's diagonal: a vertex that ends farther from its place has not reached it.
_REACHED = 1e-4


@dataclass(frozen=True)
class FitResult:
    """count: vertices that were to get new weights; poses: in how many poses; mean, largest: distance left, in the
    scene's units, at vertex ``worst``; missed: how many do not reach their place."""

    object_name: str
    count: int
    poses: int
    mean: float
    largest: float
    worst: int
    missed: int
    notes: tuple[str, ...]

    def summary(self, scene) -> str:
        """The result in one line."""
        mean, largest = (length_text(scene, value) for value in (self.mean, self.largest))
        in_poses = f" to {self.poses} poses" if self.poses > 1 else ""
        parts = [f"{self.object_name}: weights of {vertices_text(self.count)} fitted{in_poses}"]
        parts.append(f"{mean} left on average, {largest} at most (vertex {self.worst})")
        if self.missed:
            verb = "cannot reach their places" if self.missed > 1 else "cannot reach its place"
            parts.append(f"{self.missed:,} of {self.count:,} {verb} with these bones")
        return "; ".join([*parts, *self.notes])


def check_ready(context, object, settings: FitSettings) -> None:
    """Raises SkinningError with the reason why nothing can be fitted with ``object`` active. Cheap: for panels."""
    original = fit_target(context, object)
    check_fittable(context, original)
    copies = copies_of(original, context.scene)
    if settings.source == "COPIES":
        if not copies:
            raise BadScene(
                f"There is no posed copy of {object_label(original)} yet. Pose the armature, press Start, and move "
                "vertices of the copy to where they should be"
            )
        return
    if not copies:
        check_shown(context, original)
    if settings.source == "OBJECT":
        check_object(context, target_object(context, settings))
    else:
        shape_key_block(original, settings.shape_key)


def fit(context, object, bones: tuple[str, ...] = (), frames: tuple[int, ...] = (), **given) -> background.Steps:
    """Generator: fit the weights of the mesh that is meant where ``object`` is active; returns a FitResult.

    bones: names, in place of the setting ``candidates``; frames: poses for the sources OBJECT and SHAPE_KEY, all alike,
    in place of the present one. Raises SkinningError, and then has changed nothing.
    """
    from ...core.binding.fit import fit_weights

    settings = FitSettings(**given)
    settings.check()
    check_ready(context, object, settings)
    original = fit_target(context, object)
    armature = armature_of(original)
    copies = copies_of(original, context.scene) if settings.source == "COPIES" else []
    yield 0.0, "Reading the mesh"
    before = read_bone_weights(original, armature)
    wanted, omitted = read_wanted(context, original, before, settings, frames, copies)
    chosen = _chosen(context, original, wanted, settings, copies)
    candidates = _candidates(original, before, chosen, settings.candidates, bones)
    if candidates is None:
        chosen, left_alone = chosen[before.bound[chosen]], chosen[~before.bound[chosen]]
        if not len(chosen):
            raise BadScene(
                f"No bone moves {vertices_text(len(left_alone))} that are to be fitted in {object_label(original)}. "
                f"Choose other bones than {CANDIDATES[0][1]}"
            )
    else:
        left_alone = chosen[:0]
    _check_poses(original, wanted, chosen)
    stretch = stretch_of(original)
    matrices, rest, targets = _in_scene_units(wanted, chosen, stretch)
    rows = before.bones[chosen], before.weights[chosen]
    _check_free(original, before, rows, candidates)
    _check_spread(original, before, rows, matrices, rest, candidates)
    most = settings.max_influences or int(np.count_nonzero(before.weights, axis=1).max(initial=1))
    result = yield from background.run_in_worker(
        lambda progress: fit_weights(
            rest,
            *rows,
            matrices,
            targets,
            candidates=candidates,
            max_influences=most,
            locked=before.locked,
            progress=progress,
        )
    )
    write_bone_weights(original, before, result.bones, result.weights, chosen)
    original.data.update()
    notes = _after_writing(context, original, wanted, settings, left_alone)
    residuals = _residuals(original, before.names, chosen, matrices, rest, targets)
    _store_errors(original, chosen, residuals)
    if copies and not settings.keep_copies:
        posed_copies.remove(context, copies)
    size = np.linalg.norm(np.ptp(wanted[0].pose.rest @ stretch.T, axis=0))
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


def _chosen(context, original, wanted: list[Wanted], settings: FitSettings, copies) -> np.ndarray:
    """Indices of the vertices to fit. Raises BadScene where there are none."""
    if settings.vertices == "SELECTED":
        chosen = np.any([each.selected for each in wanted], axis=0)
        if not chosen.any():
            where = "the posed copies" if copies else object_label(original)
            raise BadScene(f"No vertex of {where} is selected. Select those to fit in Edit Mode, or choose Moved")
        return np.flatnonzero(chosen)
    stretch = stretch_of(original)
    extent = np.linalg.norm(np.ptp(wanted[0].pose.rest @ stretch.T, axis=0))
    if settings.source == "OBJECT":
        extent = max(extent, np.linalg.norm(original.matrix_world.translation))
    threshold = max(settings.threshold, _ROUNDING * extent)
    moved = [np.linalg.norm((each.targets - each.pose.shape) @ stretch.T, axis=1) for each in wanted]
    chosen = np.flatnonzero(np.max(moved, axis=0) > threshold)
    if len(chosen):
        return chosen
    least = length_text(context.scene, threshold)
    if settings.source == "COPIES":
        names = listed(f'"{copy.name}"' for copy in copies)
        what = f"No vertex of {names} was moved by more than"
        advice = "Move some in Edit Mode or Sculpt Mode"
    else:
        what, advice = "No vertex has to go farther than", "The weights give what is asked for already"
    raise BadScene(f"{what} {least}. {advice}")


def _candidates(
    original, before: BoneWeights, chosen: np.ndarray, which: str, bones: tuple[str, ...]
) -> np.ndarray | None:
    """Indices of the bones that may get weights; None leaves each vertex to its own. Raises BadScene."""
    armature = armature_of(original)
    if bones:
        unknown = [name for name in bones if name not in before.names]
        if unknown:
            raise BadScene(f'The armature "{armature.name}" has no deforming bone "{unknown[0]}"')
        return np.unique([before.names.index(name) for name in bones])
    moving = np.unique(before.bones[chosen][before.weights[chosen] > 0])
    found = candidate_bones(armature, before.names, moving, which)
    if found is not None and not len(found):
        raise BadScene(
            f'No bone of "{armature.name}" that deforms is selected. Select bones in Pose Mode, or choose other Bones '
            "to fit"
        )
    return found


def candidate_bones(armature, names, moving: np.ndarray, which: str) -> np.ndarray | None:
    """Indices into the deforming bones ``names`` of those that may get weights; None for each vertex's own.

    moving: the bones that move the vertices. NEAR adds those next to them: their nearest deforming ancestors, and the
    bones that these are of.
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


def _check_poses(original, wanted: list[Wanted], chosen: np.ndarray) -> None:
    """Raises BadScene where the chosen vertices come to the armature from different places in the poses."""
    rest = [each.pose.rest[chosen] for each in wanted]
    size = np.linalg.norm(np.ptp(wanted[0].pose.rest, axis=0))
    if max(np.abs(each - rest[0]).max() for each in rest) > SAME_PLACE * size:
        raise BadScene(
            f"Shape keys or modifiers above the armature shape {object_label(original)} differently in the "
            f"{len(wanted)} poses, so that they cannot be fitted together. Fit them one by one, or disable those"
        )


def _in_scene_units(wanted: list[Wanted], chosen: np.ndarray, stretch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """matrices (F, P, 3, 4), rest (n, 3) and targets (F, n, 3) of the chosen vertices in the space of ``stretch``."""
    matrices = np.array([each.pose.matrices for each in wanted])
    linear = stretch @ matrices[..., :3] @ np.linalg.inv(stretch)
    matrices = np.concatenate([linear, stretch @ matrices[..., 3:]], axis=-1)
    targets = np.array([each.targets[chosen] @ stretch.T for each in wanted])
    return matrices, wanted[0].pose.rest[chosen] @ stretch.T, targets


def _check_free(original, before: BoneWeights, rows, candidates) -> None:
    """Raises BadScene where locked groups leave nothing to fit."""
    bones, weights = rows
    open_bones = ~before.locked[bones] & (weights > 0) if candidates is None else ~before.locked[candidates]
    if not open_bones.any():
        raise BadScene(
            f"All vertex groups of {object_label(original)} that could be fitted are locked. Unlock some in the mesh's "
            "vertex groups, or choose other Bones"
        )


def _check_spread(original, before: BoneWeights, rows, matrices, rest, candidates) -> None:
    """Raises BadScene where the bones put every vertex in one place: then weights do nothing."""
    bones, weights = rows
    if candidates is None and (np.count_nonzero(weights, axis=1) < 2).all():
        raise BadScene(
            f"{vertices_text(len(bones))} of {object_label(original)} to fit: one bone each moves them, which leaves "
            f"no choice. Choose other bones than {CANDIDATES[0][1]}"
        )
    bones = np.unique(bones[weights > 0]) if candidates is None else candidates
    if not any(differ(frame[bones], rest) for frame in matrices):
        names = listed(f'"{before.names[bone]}"' for bone in bones)
        raise BadScene(
            f"The bones that may be fitted, {names}, put the vertices of {object_label(original)} in the same "
            "place in this pose, so that weights among them change nothing. Choose other Bones, or another pose"
        )


def _after_writing(context, original, wanted: list[Wanted], settings: FitSettings, left_alone) -> tuple[str, ...]:
    """What else has to change with the weights, and what the user ought to know."""
    notes = []
    for name in {each.key for each in wanted} - {""}:
        block = original.data.shape_keys.key_blocks[name]
        if not block.mute and abs(block.value) > 0:
            block.mute = True
            notes.append(f'shape key "{name}" muted, as the weights do its work now')
    if len(left_alone):
        notes.append(f"{vertices_text(len(left_alone))} without weights left alone")
    if original.data.users > 1:
        notes.append(f"the mesh is shared by {original.data.users} users, all of which have the new weights")
    return tuple(notes)


def _residuals(original, names, chosen: np.ndarray, matrices, rest, targets) -> np.ndarray:
    """(F, n) distances from the targets with the weights that Blender has stored."""
    from ...core.deform import skin_frame

    after = read_bone_weights(original, armature_of(original), names)
    shapes = [skin_frame(rest, after.bones[chosen], after.weights[chosen], frame) for frame in matrices]
    return np.linalg.norm(np.array(shapes) - targets, axis=-1)


def _store_errors(original, chosen: np.ndarray, residuals: np.ndarray) -> None:
    mesh = original.data
    errors = np.zeros(len(mesh.vertices), np.float32)
    errors[chosen] = residuals.max(axis=0)
    attribute = mesh.attributes.get(ERROR_ATTRIBUTE) or mesh.attributes.new(ERROR_ATTRIBUTE, "FLOAT", "POINT")
    attribute.data.foreach_set("value", errors)
