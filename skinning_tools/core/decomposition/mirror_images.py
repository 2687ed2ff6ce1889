# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that one side of a symmetric body has and the other lacks: their mirror images, where these explain motion."""

from dataclasses import replace

import numpy as np

from ..binding.influence_rows import tidy_influences
from ..progress import Progress
from ..skeleton_symmetry import lone_bones, mirror_symmetry, mirrored_bones
from ..strongest import strongest_bones
from .bone_model import BoneModel
from .prepared import Prepared
from .reduction import AnimationMatrix
from .removals import Removal, mean_frame_errors, measured_removals, sharing_bones, without_bones
from .skin import Skin

# Sweeps in which the new bones and those around them come together.
_SWEEPS = 2
# A mirror image stays if it is needed so much, where any other bone must be needed by 1: that the body has such a part
# is known. What is needed less moves with its neighbors: weights would be arbitrary.
_TELLS = 0.25


def with_mirror_images(skin: Skin, prepared: Prepared, most: int, optimize_rest_pose: bool, progress: Progress) -> Skin:
    """``skin`` with the mirror image in x of each rigid bone that has none, where it moves on its own.

    The largest come first, up to ``most`` bones. The same skin on a body without symmetry, and where no bone lacks an
    image. Raises Cancelled.
    """
    state, count, matrix = skin.state, skin.bone_count, prepared.matrix
    rest = matrix.rest_pose()
    pairs = mirror_symmetry(rest)[1]
    if pairs is None:
        return skin
    partners = mirrored_bones(rest, pairs, state.bones, state.weights, count, prepared.triangles)
    lone, carriers = lone_bones(pairs, partners, state.bones, state.weights)
    # Where both lack an image, each would get the other's vertices.
    alone = ~np.isin(carriers, lone)
    lone, carriers = lone[alone][: max(most - count, 0)], carriers[alone][: max(most - count, 0)]
    if not len(lone):
        return skin
    names = partners.copy()
    names[lone] = count + np.arange(len(lone))
    bones, weights = state.bones.copy(), state.weights.copy()
    # The bone that leads the mirror image of each vertex, −1 without one.
    led = np.where(pairs >= 0, strongest_bones(state.bones, state.weights)[pairs], -1)
    for bone in lone[::-1]:
        mine = led == bone
        image, shares = state.bones[pairs[mine]], state.weights[pairs[mine]]
        named = np.where(names[image] >= 0, names[image], names[bone])
        bones[mine], weights[mine] = tidy_influences(named, shares, bones.shape[1])
    begin = skin.rows.reshape(count, 4, -1)[np.append(np.arange(count), carriers)]
    grown = replace(skin, rows=begin.reshape(4 * len(begin), -1))
    grown = grown.fitted_to(replace(state, bones=bones, weights=weights))
    grown = grown.improved(range(1, 1 + _SWEEPS), optimize_rest_pose, progress)
    idle = _idle(grown, matrix, mean_frame_errors(matrix, BoneModel(skin.rows), state), carriers)
    if len(idle) == len(lone):
        return skin
    if idle:
        rows, state = without_bones(grown.rows, grown.state, idle)
        grown = replace(grown, rows=rows).fitted_to(state)
    return grown if grown.squared_error() <= skin.squared_error() else skin


def _idle(skin: Skin, matrix: AnimationMatrix, noise: np.ndarray, carriers: np.ndarray) -> dict[int, Removal]:
    """The removals of the last bones, the images, that are needed less than _TELLS; noise (N, 1): see
    ``measured_removals``; carriers (n,): what led the vertices of each image before."""
    count, first = skin.bone_count, skin.bone_count - len(carriers)
    near = sharing_bones(skin.state, count)
    near[np.arange(first, count), carriers] = True
    # None takes over from another, as that may go, too.
    near[:, first:] = False
    given = matrix, BoneModel(skin.rows), skin.state, noise, near, np.zeros(count)
    images = list(range(first, count))
    removals = zip(images, measured_removals(*given, images), strict=True)
    return {bone: each for bone, each in removals if each.need < _TELLS}
