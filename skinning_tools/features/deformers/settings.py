# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of baking deformers, kept with the scene."""

import bpy

from ...ui.settings import Settings, count, influences


class PoseSettings(Settings, stored="skinning_deformers"):
    """The poses that are made."""

    pose_count = count(
        "Poses",
        260,
        least=8,
        soft_most=1000,
        tip="Number of random poses of the skeleton whose deformed shapes weights are fitted to, or are saved",
        flag="--poses",
    )
    seed = count("Seed", 0, least=0, tip="Another number makes other random poses", flag="--seed")


class TrainingSettings(PoseSettings, stored="skinning_deformers"):
    pass


class DeformerSettings(PoseSettings, stored="skinning_deformers"):
    helper_bones = count(
        "Helper Bones",
        0,
        least=0,
        soft_most=60,
        tip="Number of helper bones to add, which joints move by drivers. Weights alone imitate little",
        flag="--helper-bones",
    )
    max_influences = influences()


class RestoreSettings(Settings):
    pass


class SkinningDeformers(bpy.types.PropertyGroup):
    """Settings of the panel's button."""

    __annotations__ = DeformerSettings.group_annotations()


registry = [SkinningDeformers]
pointers = {"Scene.skinning_deformers": SkinningDeformers}
