# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of partial solves, kept with the scene."""

import bpy
from bpy.props import PointerProperty

from ...ui.settings import Settings, choice, count, influences, name, smoothness, switch

_KINDS = (
    ("RIGID", "Rigid", "Bones that move and rotate only, as most rigs and all game engines have them"),
    ("SCALED", "Scaled", "Bones that move, rotate and scale along their own axes"),
    (
        "AFFINE",
        "Affine",
        "Bones that may shear: the closest result. Each gets a parent at the same place, since one alone cannot shear",
    ),
)
_OWN_WEIGHTS = (
    ("KEEP", "Keep", "The rig's own weights keep their ratios: they are only scaled by what the helper bones take"),
    (
        "ADAPT",
        "Adapt",
        "The rig's own weights may change, too, where that lowers the error. They stay near what they are",
    ),
)

_locked_vertices = name(
    "Locked Vertices",
    tip="Vertex group whose vertices, of any weight above 0, keep all of their weights",
    flag="--locked-vertices",
    metavar="GROUP",
    help="a vertex group whose vertices keep all of their weights",
)


class PartialSettings(Settings, stored="skinning_partial", frames="read"):
    """Those that all solves share."""

    armature = name(
        "Armature",
        tip="The armature whose bones move the mesh. Empty stands for the selected one, or the mesh's own",
        flag="--armature",
        help="the armature whose bones do (default: the mesh's own)",
    )
    target = name(
        "Target",
        tip="The object that moves as the mesh should, with the same vertices. Empty stands for the other selected "
        "mesh, or for the mesh's own animation by shape keys, caches and other modifiers",
        flag="--target",
        help="an object with the same vertices that moves as the mesh should (default: the mesh's own animation)",
    )


class WeightSettings(PartialSettings, stored="skinning_partial.weights"):
    max_influences = influences()
    smoothness = smoothness()
    locked_vertices = _locked_vertices


class MotionSettings(PartialSettings, stored="skinning_partial.transforms"):
    bone_kind = choice("Bone Kind", _KINDS, "RIGID", tip="What the bones may do", flag="--kind")
    rotation_only = switch(
        "Rotation Only",
        False,
        tip="Bones stay at their joints: each one's head goes where its parent takes it. Bones without a parent move "
        "freely. Connected bones always stay at their joints",
        flag="--rotation-only",
        help="bones with a parent stay at their joints, and only turn there",
    )


class HelperSettings(PartialSettings, stored="skinning_partial.helpers"):
    bone_count = count("Bones", 4, least=1, soft_most=50, tip="Number of helper bones to add", flag="--bones")
    bone_kind = choice("Bone Kind", _KINDS, "RIGID", tip="What the helper bones may do", flag="--kind")
    max_influences = influences(
        8,
        tip="Most bones that may move one vertex, its own included. A vertex that has as many gets no helper",
        help="most bones of a vertex, its own included",
    )
    own_weights = choice(
        "Own Weights",
        _OWN_WEIGHTS,
        "KEEP",
        tip="What becomes of the weights that the rig has",
        flag="--own-weights",
        help="whether the rig's own weights are only scaled or may change",
    )
    locked_vertices = _locked_vertices


class RemovalSettings(Settings):
    armature = name(
        "Armature",
        tip="The armature that has them. Empty stands for the active or selected one, or the active mesh's",
    )


class SkinningPartialWeights(bpy.types.PropertyGroup):
    """How the panel's button solves weights."""

    __annotations__ = WeightSettings.group_annotations()


class SkinningPartialTransforms(bpy.types.PropertyGroup):
    """How the panel's button solves motion."""

    __annotations__ = MotionSettings.group_annotations()


class SkinningPartialHelpers(bpy.types.PropertyGroup):
    """How the panel's button adds helper bones."""

    __annotations__ = HelperSettings.group_annotations()


class SkinningPartialSettings(bpy.types.PropertyGroup):
    """What the panel's buttons of partial solves take, kept with the scene."""

    __annotations__ = PartialSettings.group_annotations() | {
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
