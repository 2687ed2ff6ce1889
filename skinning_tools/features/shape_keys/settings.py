# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of turning shape keys into bones, kept with the scene."""

import bpy

from ...ui.settings import Settings, choice, count, factor, influences, surface, switch

BONE_KINDS = (("RIGID", "Rigid", "Bones that move and rotate only: works in every engine"),)

QUALITIES = (
    ("DRAFT", "Draft", "For a first look: takes less time, with a larger error"),
    ("STANDARD", "Standard", "As close as the bones come"),
)

POSE_KINDS = (
    (
        "TIMELINE",
        "One Action",
        "One action with one pose per frame, the neutral at frame 0, and a marker with the name of each",
    ),
    ("CLIPS", "Action for Each", "An action for each pose, for exporters that make clips of them"),
    ("ASSETS", "Pose Assets", "A pose asset for each slider, and one for the neutral, for the asset library"),
)


class ShapeKeySettings(Settings, stored="skinning_shape_keys"):
    selected_objects = switch(
        "Selected Objects",
        False,
        tip="Convert all selected meshes that have shape keys to one armature: a slider moves all that have its key",
    )
    bone_count = count(
        "Bones",
        40,
        least=1,
        soft_most=200,
        tip="Number of bones. A whole face needs about 40; more come closer",
        flag="--bones",
    )
    max_influences = influences(8)
    bone_kind = choice("Bone Kind", BONE_KINDS, "RIGID", tip="Transformations that the bones can have", flag="--kind")
    surface = surface(0.5)
    sparsity = factor(
        "Sparsity",
        0.0,
        most=1.0,
        tip="How much error is allowed so that a slider moves only the bones that it needs. 0 lets it move all bones",
        flag="--sparsity",
        metavar="S",
    )
    symmetric = switch(
        "Symmetric",
        False,
        tip="Where the mesh and its shape keys are symmetric in X, left and right bones mirror each other, at the "
        "cost of a somewhat larger error",
        flag="--symmetric",
        help="let left and right bones mirror each other where the mesh and its shape keys do",
    )
    quality = choice("Quality", QUALITIES, "STANDARD", tip="How long to look for the best bones", flag="--quality")
    animation = switch(
        "Animation",
        True,
        tip="Animate the sliders as the shape keys are: copy keyframes and drivers",
        flag="--no-animation",
        help="do not copy the animation of the shape keys to the sliders",
    )


class PoseSettings(Settings):
    """How the poses of sliders are written."""

    kind = choice("Poses", POSE_KINDS, "TIMELINE", tip="How the poses are stored")


class SkinningShapeKeySettings(bpy.types.PropertyGroup):
    """How the panel's button turns shape keys into bones, kept with the scene."""

    __annotations__ = ShapeKeySettings.group_annotations()


registry = [SkinningShapeKeySettings]
pointers = {"Scene.skinning_shape_keys": SkinningShapeKeySettings}
