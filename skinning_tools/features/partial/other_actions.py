# SPDX-License-Identifier: GPL-3.0-or-later
"""Motion of helper bones in the actions that their solve has not used: without keys there, the weights that they took
would follow their parents."""

from dataclasses import replace
from functools import partial

import bpy
import numpy as np

from ...blender import background
from ...blender.animation.clips import Clip
from ...blender.skin_reader import rest_positions
from ...blender.wording import listed
from ...core.animation import Animation
from ...core.progress import Progress
from .parts import Parts
from .readings import RigMotion
from .steps import Reading, read_actions


def motion_elsewhere(
    context: bpy.types.Context,
    parts: Parts,
    reading: Reading,
    bones: np.ndarray,
    weights: np.ndarray,
    bone_kind: str,
    bone_axes: np.ndarray,
) -> background.Steps[list[tuple[Clip, RigMotion, np.ndarray]]]:
    """Generator: for each clip that was not used, the present motion of all bones, and that of the helpers (F, H, 3, 4)
    in the mesh's space which brings the mesh closest to the target there.

    bones and weights (N, K): of the rig's own bones, then of the helpers, along whose ``bone_axes`` (H, 3, 3) SCALED
    ones stretch.
    """
    chosen, names, rest = reading.chosen, reading.weights.names, rest_positions(parts.mesh.data)
    found = []
    for number, clip in enumerate(chosen.others):
        start, size = number / len(chosen.others), 1.0 / len(chosen.others)
        other = yield from background.part_of(
            read_actions(context, parts, replace(chosen, used=(clip,), others=()), names), start, start + 0.6 * size
        )
        skin = rest, other.motion.matrices, bones, weights, len(bone_axes), bone_kind, bone_axes
        solving = background.run_in_worker(partial(_moved, other.animation, skin))
        transforms = yield from background.part_of(
            solving, start + 0.6 * size, start + size, "Solving for helper bones"
        )
        found.append((clip, other.motion, transforms))
    return found


def _moved(animation: Animation, skin: tuple, progress: Progress) -> np.ndarray:
    from ...core.decomposition.helper_motion import move_helpers

    return move_helpers(animation, *skin, progress=progress)


def without_keys_note(reading: Reading) -> list[str]:
    """A note if there are actions in which nothing shows how helpers should move."""
    names = [clip.name for clip in reading.chosen.unmoved]
    if not names:
        return []
    return [
        f"no keys of the helpers in {listed(names)}, where the target does not move: there they follow their parents"
    ]
