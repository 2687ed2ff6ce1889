# SPDX-License-Identifier: GPL-3.0-or-later
"""A suggested number of bones for the animation of mesh objects."""

from collections.abc import Sequence
from typing import NamedTuple

import bpy
import numpy as np

from ...blender import background
from ...blender.animation.animation_reader import read_animation
from ...blender.animation.frame_range import frame_range
from ...blender.animation.simulations import own_simulation_start
from ...blender.object_checks import check_object
from ...blender.preconditions import object_label
from .clips import check_clips
from .estimate import vertex_count

_FRAMES = 16
# For a simulation, which cannot be sampled in a few frames: bones by the size of the mesh, within this range.
_FEWEST, _MOST = 20, 80


class Suggestion(NamedTuple):
    """reason: the basis of the suggestion, as part of a sentence."""

    bone_count: int
    reason: str


def suggest_bones(
    context: bpy.types.Context,
    groups: Sequence[Sequence[bpy.types.Object]],
    bone_kind: str,
    frame_start: int,
    frame_end: int,
) -> Suggestion:
    """Suggest a number of bones from about sixteen frames of the range or, for a simulation, from the mesh's size.

    groups: the objects that are converted together; several groups are clips of one mesh, whose frames all count.

    The scene is unchanged, including the current frame. Raises SkinningError if an object cannot be read.
    """
    from ...core.bone_suggestion import LEAST, suggest_bone_count

    objects = [ob for group in groups for ob in group]
    for ob in objects:
        check_object(context, ob)
    if len(groups) > 1:
        check_clips(context, objects)
    most = sum(vertex_count(context.view_layer, ob) for ob in groups[0])
    numbers = frame_range(context.scene, frame_start, frame_end, 1, object_label(objects[0]))
    if any(own_simulation_start(context.scene, ob) is not None for ob in objects):
        count = min(max(round(0.5 * most**0.5), _FEWEST), _MOST)
        return Suggestion(min(count, most), f"a simulation of {most:,} vertices")
    step = max(1, (len(numbers) - 1) // (_FRAMES - 1))
    read = []
    for first, *others in groups:
        source = background.drain(read_animation(context, first, numbers[0], numbers[-1], step, tuple(others)))
        bpy.data.batch_remove([part.mesh for part in source.parts])
        read.append(source.animation.frames)
    frames = np.concatenate(read)
    count = suggest_bone_count(frames, bone_kind)
    return Suggestion(min(max(count, LEAST), most), f"the motions in {len(frames)} of its frames")
