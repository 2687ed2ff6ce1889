# SPDX-License-Identifier: GPL-3.0-or-later
"""Take keys from a written rig that its motion does not need."""

from typing import NamedTuple

import numpy as np

from ..core.animation import unit_scale
from ..core.errors import BadSettings
from . import actions, background
from .residual_keys import value_curves
from .rig_writer import BONE_PROPERTIES, bone_path, rest_matrices


class KeyCounts(NamedTuple):
    """Keys on all curves of bones and residual shapes."""

    before: int
    after: int


def check_tolerance(tolerance: float) -> None:
    """Raises BadSettings on a tolerance that makes no sense."""
    if not 0 <= tolerance < np.inf:
        raise BadSettings(f"Key tolerance must be a number from 0 on, not {tolerance:g}")


def reduce_rig_keys(rig, source, decomposition, tolerance: float) -> background.Steps:
    """Generator: reduce the keys of ``rig`` (a Rig) just written for ``decomposition``; returns KeyCounts.

    tolerance > 0: how far any vertex may move in any frame, in per mille of the unit ball as the largest error is.
    Yields (fraction, stage).
    """
    from ..core.bone_channels import bone_channels
    from ..core.key_reduction import reduce_keys

    rest = rest_matrices(rig.armature, rig.bone_names)
    times = np.asarray(source.animation.frame_numbers, dtype=np.float64)
    distance = tolerance / 1000.0 / unit_scale(source.animation.frames)

    def choose(progress):
        return reduce_keys(decomposition, bone_channels(decomposition, rest), rest, times, distance, progress)

    choice = yield from background.run_in_worker(choose)
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
            actions.keep_keys(curve, choice.shapes)
    return KeyCounts(before, _key_count(curves) + _key_count(shape_curves))


def _rows_by_path(rig, choice):
    """Yield (data path, rows to keep) of all of the bones' curves."""
    bones = rig.armature.data.bones
    chained = "child_rotation" in choice.bones
    for name, rows in choice.bones.items():
        for bone_name, kept in zip(rig.bone_names, rows, strict=True):
            owner = bones[bone_name].parent.name if chained and name != "child_rotation" else bone_name
            yield bone_path(owner, BONE_PROPERTIES[name]), kept


def _key_count(curves) -> int:
    return sum(len(curve.keyframe_points) for curve in curves)
