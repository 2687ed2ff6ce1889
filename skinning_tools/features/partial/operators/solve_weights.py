# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Weights: weights for a skeleton that moves already."""

import bpy

from .. import partial_settings, partial_weights
from .solve import PartialSolve


class SKINNING_OT_solve_weights(PartialSolve, bpy.types.Operator):
    """Solve for the weights with which the armature's motion brings the mesh closest to its target's animation"""

    bl_idname = "skinning.solve_weights"
    bl_label = "Solve Weights"

    __annotations__ = partial_settings.common_annotations("soft_min") | partial_settings.weight_annotations("soft_min")
    weighted = False
    names = partial_settings.WEIGHT_NAMES
    group = "weights"
    solve = staticmethod(partial_weights.solve_weights)


registry = [SKINNING_OT_solve_weights]
