# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes for the user after a successful solve."""

from collections.abc import Collection
from itertools import pairwise
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import actions
from ...blender.bone_weights import BoneWeights
from ...blender.preconditions import object_label
from ...blender.seams import seam_notes
from ...blender.skin_reader import rest_positions, uses_envelopes
from ...blender.wording import counted, listed, vertices_text
from ...core.geometry import diagonal
from ...core.grouping import members
from ...core.strongest import strongest_bones
from .parts import Parts

if TYPE_CHECKING:
    from .steps import Reading

# Motion below this fraction of the size is rounding; a standstill of fewer steps than this is not reported.
_STILL, _LONGEST_REST = 1e-5, 2
# Relative to the target's size: a target farther than this from the deformed mesh in all frames lies beside it.
_ASIDE = 0.15
# A note is made of parts of a target that differ in size by more than this share, measured in so many frames.
_OTHER_SIZE, _MEASURED = 0.1, 5


def scene_notes(
    context: bpy.types.Context, parts: Parts, numbers: np.ndarray, solved: Collection[str] = ()
) -> tuple[str, ...]:
    """Notes on the scene, before the solve. solved: see ``besides_notes``."""
    return (*_range_notes(context, parts.armature, numbers), *besides_notes(parts, solved))


def _range_notes(context: bpy.types.Context, armature: bpy.types.Object, numbers: np.ndarray) -> list[str]:
    """A note if the armature's action does not cover all the frames."""
    ranges = np.array([curve.range() for curve in actions.existing_curves(armature)])
    if not len(ranges) or not len(numbers):
        return []
    stretch = actions.time_stretch(context.scene)
    start, end = ranges[:, 0].min() / stretch, ranges[:, 1].max() / stretch
    if start <= numbers[0] + 0.5 and end >= numbers[-1] - 0.5:
        return []
    return [f'the action "{armature.animation_data.action.name}" has keys from frame {start:g} to {end:g} only']


def besides_notes(parts: Parts, solved: Collection[str] = ()) -> list[str]:
    """Notes on what deforms the mesh besides the solved bones and shape keys."""
    notes, keys = [], parts.mesh.data.shape_keys
    if keys is not None and not parts.own:
        animated = keys.animation_data is not None
        others = [block for block in keys.key_blocks if block != keys.reference_key and not block.mute]
        blocks = [block for block in others if block.name not in solved]
        if any(animated or block.value for block in blocks):
            notes.append(
                f"the shape keys of {object_label(parts.mesh)} deform it too, which neither the bones nor "
                "the errors include: mute them if you do not want them"
            )
    bendy = sum(bone.use_deform and bone.bbone_segments > 1 for bone in parts.armature.data.bones)
    if bendy:
        notes.append(f"{counted(bendy, 'bendy bone')} treated as straight: bones with one segment would come closer")
    return notes


def bare_notes(mesh: bpy.types.Object, weights: BoneWeights) -> list[str]:
    """A note if vertices have no weights."""
    missed = int(np.count_nonzero(~weights.bound))
    if not missed:
        return []
    verb = "have" if missed > 1 else "has"
    first = int(np.argmin(weights.bound))
    which = f"{vertices_text(missed)} (the first: {first}) {verb}"
    if uses_envelopes(mesh):
        return [f"{which} no weights, so only bone envelopes move them"]
    return [f"{which} no weights, so no bone moves them"]


def target_notes(parts: Parts, reading: "Reading") -> list[str]:
    """Notes on a target that armature and mesh cannot follow well. reading: the steps.Reading."""
    standstill = [] if reading.chosen.used else _standstill_notes(parts, reading)
    torn = seam_notes(parts.mesh, reading.animation.frames)
    return [*standstill, *_aside_notes(parts, reading), *_taught_notes(parts, reading), *torn]


def size_notes(parts: Parts, reading: "Reading", bones: np.ndarray, weights: np.ndarray) -> list[str]:
    """A note on a target whose parts are of another size than those of the mesh, as when one was scaled since: rigid
    bones do not. bones, weights (N, K): the vertices that move together."""
    frames, of_bone = reading.animation.frames, strongest_bones(bones, weights)
    groups = [group for group in members(of_bone, int(of_bone.max()) + 1) if len(group)]
    few = frames[np.linspace(0, len(frames) - 1, min(len(frames), _MEASURED)).astype(int)]
    own, wanted = (
        np.sqrt(np.mean([places[:, group].var(axis=1).sum(axis=1) * len(group) for group in groups]))
        for places in (rest_positions(parts.mesh.data)[None], few)
    )
    if not own or abs(wanted - own) <= _OTHER_SIZE * own:
        return []
    return [
        f"{object_label(parts.target)} is {wanted / own:.2g} times as large as {object_label(parts.mesh)}, which bones "
        "that only turn and move cannot follow: scale one of them"
    ]


def _taught_notes(parts: Parts, reading: "Reading") -> list[str]:
    """A note if the target was what modifiers of the mesh itself do after the armature."""
    if not reading.chosen.taught:
        return []
    shown = [modifier for modifier in parts.mesh.modifiers if modifier.show_viewport]
    place = next(n for n, each in enumerate(shown) if each.type == "ARMATURE" and each.object == parts.armature)
    names = listed([modifier.name for modifier in shown[place + 1 :]])
    return [f"the target was the mesh with its own modifiers: to see what the weights do, disable {names}"]


def _aside_notes(parts: Parts, reading: "Reading") -> list[str]:
    """A note if the target is another object beside the mesh, as for viewing both: no weights reach it there."""
    if parts.own:
        return []
    frames, matrices = reading.animation.frames, reading.motion.matrices
    middle = rest_positions(parts.mesh.data).mean(axis=0)
    # Where most bones move the center; limbs may turn it far away.
    taken = np.median(matrices[..., :3] @ middle + matrices[..., 3], axis=1)
    distance = np.linalg.norm(frames.mean(axis=1) - taken, axis=1).min()
    if distance <= _ASIDE * diagonal(frames[0]):
        return []
    return [
        f"{object_label(parts.target)} is beside {object_label(parts.mesh)}, and was followed there: if you do not "
        "want that, move it to the same place and solve again"
    ]


def _standstill_notes(parts: Parts, reading: "Reading") -> list[str]:
    """Notes if the target stands still at an end of the frames and the armature does not: one animation may be shorter
    than the other."""
    frames, matrices = reading.animation.frames, reading.motion.matrices
    numbers, moves = reading.animation.frame_numbers, _steps(frames)
    if not moves.any():
        return []
    first, last = int(np.argmax(moves)), len(moves) - int(np.argmax(moves[::-1]))
    armature_moves, name = _steps(matrices.reshape(len(matrices), -1, 4)), object_label(parts.target)
    notes = []
    if first >= _LONGEST_REST and armature_moves[:first].any():
        notes.append(f"{name} stands still up to frame {numbers[first]:g}, while the armature moves")
    if len(moves) - last >= _LONGEST_REST and armature_moves[last:].any():
        notes.append(f"{name} stands still from frame {numbers[last]:g} on, while the armature moves")
    return notes


def _steps(frames: np.ndarray) -> np.ndarray:
    """(F − 1,) bool: whether anything in ``frames`` (F, ...) moves to the next frame by more than rounding."""
    size = np.ptp(frames[0], axis=0).max()
    return np.array([np.abs(after - before).max() > _STILL * size for before, after in pairwise(frames)])
