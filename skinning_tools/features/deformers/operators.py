# SPDX-License-Identifier: GPL-3.0-or-later
"""The operators that bake deformers to weights, and bring the earlier weights back."""

from typing import Any

import bpy

from ...blender import background
from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SavesFile, SkinningJob
from . import bake, earlier_weights, training
from .settings import DeformerSettings, RestoreSettings, TrainingSettings
from .subject import check_bakeable


class SKINNING_OT_bake_deformers(Checked, SkinningJob, bpy.types.Operator):
    """Solve for weights, and helper bones if asked for, that imitate Preserve Volume and the modifiers after the \
armature at random poses. These are then off, and the earlier weights are kept"""

    bl_idname = "skinning.bake_deformers"
    bl_label = "Bake Deformers"

    settings = DeformerSettings
    work = staticmethod(bake.bake_deformers)
    require = staticmethod(check_bakeable)


class SKINNING_OT_restore_weights(Checked, AtOnce, bpy.types.Operator):
    """Bring back the weights and modifiers from before Bake Deformers, and remove its helper bones"""

    bl_idname = "skinning.restore_weights"
    bl_label = "Restore Weights"

    settings = RestoreSettings
    work = staticmethod(earlier_weights.restore_weights)
    require = staticmethod(earlier_weights.check_restorable)


class SKINNING_OT_save_training_set(Checked, SavesFile, bpy.types.Operator):
    """Save random poses of the skeleton as an action, and the mesh with its deformers in each pose as a PC2 point \
cache, to train a learned deformer"""

    bl_idname = "skinning.save_training_set"
    bl_label = "Save Training Set"
    # The action stays in the scene.
    bl_options = {"REGISTER", "UNDO"}

    filename_ext = ".pc2"
    settings = TrainingSettings
    require = staticmethod(check_bakeable)

    @staticmethod
    def work(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> training.TrainingSet:
        return background.drain(training.save_training_set(context, active, **given))


registry = [SKINNING_OT_bake_deformers, SKINNING_OT_restore_weights, SKINNING_OT_save_training_set]
