# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings that an artist keeps per scene, and the definitions they share with the operator.

The panel shows the scene's settings; the operator takes from them whatever its caller did not give when it is invoked
from the interface. From Python (`EXEC_DEFAULT`) only the arguments and the defaults below count.
"""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, PointerProperty

from ...ui.common_settings import frame_annotations, influences_property, scene_range_property, smoothness_property

BONE_KIND_ITEMS = (
    (
        "AFFINE",
        "Affine",
        "Bones that may shear: the closest result. Each is a chain of two bones, since one alone cannot shear",
    ),
    (
        "SCALED",
        "Scaled",
        "Bones that move, rotate and scale: for engines whose transforms cannot shear",
    ),
    (
        "RIGID",
        "Rigid",
        "Bones that move and rotate only: works everywhere, and needs more bones for the same error",
    ),
)

METHOD_ITEMS = (
    ("STANDARD", "Standard", "The closest result"),
    (
        "KAVAN2010",
        "Kavan et al. 2010",
        "The published algorithm as it is written, to compare with. Affine bones only",
    ),
)

ON_RESULT_ITEMS = (
    ("KEEP", "Keep", "Convert the source of the result anew, beside the earlier result"),
    ("REPLACE", "Replace", "Convert the source of the result anew, and delete the earlier result"),
    (
        "CONVERT",
        "Convert It",
        "Convert the result itself, as any other mesh: errors are those against it, not against its source",
    ),
)

# Where a function of these settings is named in the contract, so is its default: scripts rely on them.
SETTING_NAMES = (
    *("bone_count", "bone_kind", "max_influences", "iterations", "target_error", "optimize_rest_pose"),
    *("residual_shapes", "method", "smoothness"),
)
# What the panel has beside them that is not of the shot, of features.convert.conversion_settings.ConversionOptions.
RIG_OPTION_NAMES = "root_bone", "joint_hierarchy", "key_tolerance"
# What is converted.
CHOICE_NAMES = "selected_objects", "on_result"


def setting_annotations(limit: str) -> dict:
    """The properties of a conversion's settings.

    limit: see ``common_settings``.
    """
    return {
        "bone_count": IntProperty(
            name="Bones",
            description="Number of bones. Start with 20, and double it until the error is small enough",
            default=20,
            soft_max=200,
            options={"SKIP_SAVE"},
            **{limit: 1},
        ),
        "bone_kind": EnumProperty(
            name="Bone Kind",
            description="What the bones may do",
            items=BONE_KIND_ITEMS,
            default="AFFINE",
            options={"SKIP_SAVE"},
        ),
        "max_influences": influences_property(limit),
        "iterations": IntProperty(
            name="Iterations",
            description="Rounds of improving bones, rest pose and weights in turn. More take longer and come closer",
            default=15,
            soft_max=200,
            options={"SKIP_SAVE"},
            **{limit: 1},
        ),
        "target_error": FloatProperty(
            name="Target Error",
            description="Error (E_RMS, per mille of the mesh's size) to reach with as few bones as possible, at "
            "most as many as are given. 0 always uses that number. Residual shapes come on top",
            default=0.0,
            soft_max=20.0,
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "optimize_rest_pose": BoolProperty(
            name="Optimize Rest Pose",
            description="Let the rest pose differ from the first frame where that lowers the error",
            default=True,
            options={"SKIP_SAVE"},
        ),
        "residual_shapes": IntProperty(
            name="Residual Shapes",
            description="Number of keyed shape keys that correct what the bones leave over. "
            "Each takes as much memory as the mesh; 10 often halve the error",
            default=0,
            soft_max=20,
            options={"SKIP_SAVE"},
            **{limit: 0},
        ),
        "method": EnumProperty(
            name="Method",
            description="How the bones are found",
            items=METHOD_ITEMS,
            default="STANDARD",
            options={"SKIP_SAVE"},
        ),
        "smoothness": smoothness_property(limit),
        "selected_objects": BoolProperty(
            name="Selected Objects",
            description="Convert all selected meshes to one armature, at the place of the active one",
            default=False,
            options={"SKIP_SAVE"},
        ),
        "on_result": EnumProperty(
            name="Earlier Result",
            description="What to do with an earlier result that is chosen in place of the mesh it was made from",
            items=ON_RESULT_ITEMS,
            default="KEEP",
            options={"SKIP_SAVE"},
        ),
        "root_bone": BoolProperty(
            name="Root Bone",
            description="Put all bones under one at the object's origin, to move the result as a whole",
            default=False,
            options={"SKIP_SAVE"},
        ),
        "joint_hierarchy": BoolProperty(
            name="Joint Hierarchy",
            description="Parent bones to those that they turn about, so that the result can be posed by hand. "
            "It plays the same. Bones that turn about no other stay free",
            default=False,
            options={"SKIP_SAVE"},
        ),
        "key_tolerance": FloatProperty(
            name="Key Tolerance",
            description="Leave out keyframes as long as no vertex moves by more than this, in per mille of the mesh's "
            "size as the errors are. 0 keeps a key at every frame",
            default=0.0,
            soft_max=10.0,
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        **frame_annotations("convert", limit),
    }


class SkinningConversionSettings(bpy.types.PropertyGroup):
    """How the panel's button converts an animation, kept with the scene."""

    __annotations__ = setting_annotations("min") | {
        "use_scene_range": scene_range_property("convert"),
    }


registry = [SkinningConversionSettings]


def register() -> None:
    bpy.types.Scene.skinning_conversion = PointerProperty(type=SkinningConversionSettings)


def unregister() -> None:
    del bpy.types.Scene.skinning_conversion
