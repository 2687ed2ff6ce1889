# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of partial solves that an artist keeps per scene, and the definitions they share with the operators.

An operator takes from the scene's settings what its caller did not give when it is invoked from the interface; from
Python only the arguments and the defaults below count.
"""

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, PointerProperty, StringProperty

from ...ui.common_settings import frame_annotations, influences_property, scene_range_property, smoothness_property

_KINDS = (
    ("RIGID", "Rigid", "Bones that move and rotate only, as most rigs and all game engines have them"),
    ("SCALED", "Scaled", "Bones that move, rotate and scale along their own axes"),
    (
        "AFFINE",
        "Affine",
        "Bones that may shear: the closest result. Each gets a parent at the same place, since one alone cannot shear",
    ),
)
OWN_WEIGHT_ITEMS = (
    ("KEEP", "Keep", "The rig's own weights keep their ratios: they are only scaled by what the helper bones take"),
    (
        "ADAPT",
        "Adapt",
        "The rig's own weights may change, too, where that lowers the error. They stay near what they are",
    ),
)

COMMON_NAMES = ("armature", "target", "frame_step")
WEIGHT_NAMES = ("max_influences", "smoothness", "locked_vertices")
TRANSFORM_NAMES = ("bone_kind", "rotation_only")
HELPER_NAMES = ("bone_count", "bone_kind", "max_influences", "own_weights", "locked_vertices")

_SKIP = {"options": {"SKIP_SAVE"}}


def common_annotations(limit: str) -> dict:
    """What all three share. limit: "min" for the panel, "soft_min" for operators, which refuse with a message."""
    return {
        "armature": StringProperty(
            name="Armature",
            description="The armature whose bones move the mesh. Empty stands for the selected one, or the mesh's own",
            **_SKIP,
        ),
        "target": StringProperty(
            name="Target",
            description="The object that moves as the mesh should, with the same vertices. Empty stands for the other "
            "selected mesh, or for the mesh's own animation by shape keys, caches and other modifiers",
            **_SKIP,
        ),
        **frame_annotations("read", limit),
    }


def _locked_vertices():
    return StringProperty(
        name="Locked Vertices",
        description="Vertex group whose vertices, of any weight above 0, keep all of their weights",
        **_SKIP,
    )


def weight_annotations(limit: str) -> dict:
    """Those of Solve Weights."""
    return {
        "max_influences": influences_property(limit),
        "smoothness": smoothness_property(limit),
        "locked_vertices": _locked_vertices(),
    }


def transform_annotations(_limit: str) -> dict:
    """Those of Solve Motion."""
    return {
        "bone_kind": EnumProperty(
            name="Bone Kind", description="What the bones may do", items=_KINDS, default="RIGID", **_SKIP
        ),
        "rotation_only": BoolProperty(
            name="Rotation Only",
            description="Bones stay at their joints: each one's head goes where its parent takes it. Bones without a "
            "parent move freely. Connected bones always stay at their joints",
            default=False,
            **_SKIP,
        ),
    }


def helper_annotations(limit: str) -> dict:
    """Those of Add Helper Bones."""
    return {
        "bone_count": IntProperty(
            name="Bones", description="Number of helper bones to add", default=4, soft_max=50, **_SKIP, **{limit: 1}
        ),
        "bone_kind": EnumProperty(
            name="Bone Kind", description="What the helper bones may do", items=_KINDS, default="RIGID", **_SKIP
        ),
        "max_influences": influences_property(
            limit, "Most bones that may move one vertex, its own included. A vertex that has as many gets no helper", 8
        ),
        "own_weights": EnumProperty(
            name="Own Weights",
            description="What becomes of the weights that the rig has",
            items=OWN_WEIGHT_ITEMS,
            default="KEEP",
            **_SKIP,
        ),
        "locked_vertices": _locked_vertices(),
    }


class SkinningPartialWeights(bpy.types.PropertyGroup):
    """How the panel's button solves weights."""

    __annotations__ = weight_annotations("min")


class SkinningPartialTransforms(bpy.types.PropertyGroup):
    """How the panel's button solves motion."""

    __annotations__ = transform_annotations("min")


class SkinningPartialHelpers(bpy.types.PropertyGroup):
    """How the panel's button adds helper bones."""

    __annotations__ = helper_annotations("min")


class SkinningPartialSettings(bpy.types.PropertyGroup):
    """What the panel's buttons of partial solves take, kept with the scene."""

    __annotations__ = common_annotations("min") | {
        "use_scene_range": scene_range_property("read"),
        "weights": PointerProperty(type=SkinningPartialWeights),
        "transforms": PointerProperty(type=SkinningPartialTransforms),
        "helpers": PointerProperty(type=SkinningPartialHelpers),
    }


registry = [
    SkinningPartialWeights,
    SkinningPartialTransforms,
    SkinningPartialHelpers,
    SkinningPartialSettings,
]


def register() -> None:
    bpy.types.Scene.skinning_partial = PointerProperty(type=SkinningPartialSettings)


def unregister() -> None:
    del bpy.types.Scene.skinning_partial
