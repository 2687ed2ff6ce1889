# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove keys from a written rig that its motion does not need."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.animation.animation_reader import SourceAnimation
from ...blender.armatures import rest_matrices
from ...blender.residual_keys import value_curves
from ...core.progress import Progress
from .rig_motion import channel_path, keyed_on, rig_channels
from .rig_writer import Rig

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition
    from ...core.key_reduction import KeyChoice


# The fraction of the time to reduce keys after which the channels are known.
_FACTORED = 0.1


class KeyCounts(NamedTuple):
    """Keys on all curves of bones and residual shapes."""

    before: int
    after: int


def reduce_rig_keys(
    rig: Rig, source: SourceAnimation, decomposition: "Decomposition", tolerance: float, scale: float
) -> background.Steps:
    """Generator: reduce the keys of ``rig`` (a Rig) just written for ``decomposition``; returns KeyCounts.

    tolerance > 0: the most that a vertex may move in any frame, in per mille of the unit ball, like the largest error;
    scale: of lengths to those of the unit ball. The rig plays the action that is reduced.
    Yields (fraction, stage).
    """
    from ...core.key_reduction import reduce_keys

    rest = rest_matrices(rig.armature, rig.bone_names)
    channels = yield from background.part_of(rig_channels(rig.armature, rig.bones, decomposition), 0.0, _FACTORED)
    times = np.asarray(source.animation.frame_numbers, dtype=np.float64)
    distance = tolerance / 1000.0 / scale

    def choose(progress: Progress) -> "KeyChoice":
        return reduce_keys(decomposition, channels, rest, times, distance, progress)

    choice = yield from background.part_of(background.run_in_worker(choose), _FACTORED, 1.0)
    curves = actions.existing_curves(rig.armature)
    shape_curves = value_curves(rig.object, rig.shape_names)
    before = _key_count(curves) + _key_count(shape_curves)
    kept = dict(_rows_by_path(rig, choice))
    # A curve that does not change has one key already.
    for curve in curves:
        if curve.data_path in kept and len(curve.keyframe_points) == len(times):
            actions.keep_keys(curve, kept[curve.data_path])
    for curve in shape_curves:
        if len(curve.keyframe_points) == len(times):
            assert choice.shapes is not None
            actions.keep_keys(curve, choice.shapes)
    return KeyCounts(before, _key_count(curves) + _key_count(shape_curves))


def _rows_by_path(rig: Rig, choice: "KeyChoice") -> Iterator[tuple[str, np.ndarray]]:
    """Yield (data path, rows to keep) for all curves of the bones."""
    for channel, rows in choice.bones.items():
        owners, property_name = keyed_on(rig.bones, channel)
        for bone_name, kept in zip(owners, rows, strict=True):
            yield channel_path(bone_name, property_name), kept


def _key_count(curves: Sequence[bpy.types.FCurve]) -> int:
    return sum(len(curve.keyframe_points) for curve in curves)
