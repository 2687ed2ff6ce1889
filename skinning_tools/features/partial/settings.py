# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of solving for an existing rig, kept with the scene."""

import bpy
from bpy.props import PointerProperty

from ...core.solve_effort import POSABLE_SMOOTHNESS
from ...ui.settings import Settings, choice, count, factor, influences, name, smoothness, switch

_KINDS = (
    ("RIGID", "Rigid", "Bones that only move and rotate, which most rigs and all game engines support"),
    ("SCALED", "Scaled", "Bones that move, rotate and scale along their own axes"),
    (
        "AFFINE",
        "Affine",
        "Bones that can shear: the closest result. Each gets a parent at the same place, since a single bone cannot "
        "shear",
    ),
)
_OWN_WEIGHTS = (
    ("KEEP", "Keep", "The rig's own weights keep their ratios: they only shrink to make room for the helper bones"),
    (
        "ADAPT",
        "Adapt",
        "The rig's own weights may also change to lower the error. They stay near their present values",
    ),
)

_ACTIONS = (
    (
        "ALL",
        "All",
        "Every action with keys for bones of the armature in which the target moves along, each over its own frames. "
        "With a frame range of your own, the present animation alone",
    ),
    ("CURRENT", "Current", "The animation as it plays now, over the scene's frames or your own range"),
    ("SELECTED", "Selected", "The actions named in Action Names, each over its own frames"),
    ("NLA", "NLA Strips", "The action of each NLA strip of the armature, muted or not, over the strip's frames of it"),
)

_actions = choice(
    "Actions",
    _ACTIONS,
    "ALL",
    tip="The actions of the armature that the solve counts. Each counts by how much of its error is left, however long "
    "it is. Actions that are left out are measured, too",
    flag="--actions",
)
_action_names = name(
    "Action Names",
    tip="Names of actions, separated by commas, for Actions: Selected",
    flag="--action-names",
    metavar="NAME,NAME",
)
_locked_vertices = name(
    "Locked Vertices",
    tip="Vertex group whose vertices, with any weight above 0, keep all of their weights",
    flag="--locked-vertices",
    metavar="GROUP",
)


class PartialSettings(Settings, stored="skinning_partial", frames="read"):
    """The settings that all solves share."""

    armature = name(
        "Armature",
        tip="The armature whose bones deform the mesh. If empty, the selected one, or the mesh's own",
        flag="--armature",
        help="the armature with the bones (default: the mesh's own)",
    )
    target = name(
        "Target",
        tip="The object with the wanted animation and the same vertices. If empty, the other selected "
        "mesh, or the mesh's own animation by shape keys, caches and other modifiers",
        flag="--target",
        help="the object with the wanted animation and the same vertices (default: the mesh's own animation)",
    )


class WeightSettings(PartialSettings, stored="skinning_partial.weights"):
    actions = _actions
    action_names = _action_names
    max_influences = influences()
    smoothness = smoothness()
    hold = factor(
        "Hold",
        0.0,
        most=1.0,
        tip="How firmly the weights are held to the present ones: at 0 not at all, at 1 they do not change",
        flag="--hold",
        metavar="H",
    )
    locked_vertices = _locked_vertices

    random_poses = count(
        "Random Poses",
        0,
        least=0,
        soft_most=1000,
        tip="Poses that are mixed of frames of several actions and count like one more action, so that the weights "
        "hold in others, too. Only if the armature moves the target",
        flag="--random-poses",
    )
    rest_shape = switch(
        "Shift Rest Shape",
        False,
        tip="Also move the vertices of the rest pose, by up to 0.5 % of the mesh's diagonal, where that lowers the "
        "error. The shape key Rest for Weights holds the result; the mesh itself stays as it is",
        flag="--rest-shape",
        help="also move the vertices of the rest pose by up to 0.5 %% of the size, in a shape key",
    )


class MotionSettings(PartialSettings, stored="skinning_partial.transforms"):
    bone_kind = choice("Bone Kind", _KINDS, "RIGID", tip="Transformations that the bones can have", flag="--kind")
    rotation_only = switch(
        "Rotation Only",
        False,
        tip="Bones stay at their joints: the head of each bone follows its parent. Bones without a parent move "
        "freely. Connected bones always stay at their joints",
        flag="--rotation-only",
        help="bones with a parent stay at their joints and only rotate",
    )


class AgainSettings(PartialSettings, stored="skinning_partial.again"):
    max_influences = influences()
    smoothness = smoothness(POSABLE_SMOOTHNESS)
    rotation_only = switch(
        "Rotation Only",
        False,
        tip="Each bone only rotates about its joint, where you placed it, but for bones without a parent that deforms. "
        "Off: only connected bones do, and all if the conversion had Rotation Only without Joint Slip",
        flag="--rotation-only",
    )
    find_joints = switch(
        "Find New Joints",
        True,
        tip="Move the heads of bones that have another parent than before, or were cut by subdividing, to where the "
        "motion shows the joint, unless you have moved them. Off: all bones turn about their heads as they are",
        flag="--keep-joints",
        help="let all bones turn about their heads as they are, also those that have another parent than before",
    )


class HelperSettings(PartialSettings, stored="skinning_partial.helpers"):
    actions = _actions
    action_names = _action_names
    bone_count = count("Bones", 4, least=1, soft_most=50, tip="Number of helper bones to add", flag="--bones")
    bone_kind = choice(
        "Bone Kind", _KINDS, "RIGID", tip="Transformations that the helper bones can have", flag="--kind"
    )
    max_influences = influences(
        8,
        tip="Most bones that may move one vertex, including the rig's own. A vertex at this limit gets no helper",
    )
    own_weights = choice(
        "Own Weights",
        _OWN_WEIGHTS,
        "KEEP",
        tip="How the solve may change the rig's own weights",
        flag="--own-weights",
    )
    driven = switch(
        "Driven",
        False,
        tip="Drivers let the helper bones follow the rotations of the rig's own bones in every animation, instead of "
        "keyframes that replay these. Less accurate in these. Rigid bones only",
        flag="--driven",
        help="drivers let the helper bones follow the rig's own bones in every animation, instead of keyframes",
    )
    random_poses = count(
        "Random Poses",
        60,
        least=0,
        soft_most=1000,
        tip="For Driven: poses that are mixed of frames of the actions and count like one more action, to learn what "
        "each joint does on its own. Only if the armature moves the target",
        flag="--random-poses",
    )
    locked_vertices = _locked_vertices


class RootSettings(Settings):
    armature = name(
        "Armature",
        tip="The armature with the bone. If empty, the active or selected one, or the active mesh's own",
    )
    bone = name(
        "Bone",
        tip="The bone that becomes the root. If empty, the armature's active bone",
        flag="--bone",
        help="the bone that becomes the root (default: the armature's active bone)",
    )


class RemovalSettings(Settings):
    armature = name(
        "Armature",
        tip="The armature with the helper bones. If empty, the active or selected one, or the active mesh's own",
    )


class SkinningPartialWeights(bpy.types.PropertyGroup):
    """Settings of the panel's button for weights."""

    __annotations__ = WeightSettings.group_annotations()


class SkinningPartialTransforms(bpy.types.PropertyGroup):
    """Settings of the panel's button for motion."""

    __annotations__ = MotionSettings.group_annotations()


class SkinningPartialAgain(bpy.types.PropertyGroup):
    """Settings of the panel's button for an edited skeleton."""

    __annotations__ = AgainSettings.group_annotations()


class SkinningPartialHelpers(bpy.types.PropertyGroup):
    """Settings of the panel's button for helper bones."""

    __annotations__ = HelperSettings.group_annotations()


class SkinningPartialSettings(bpy.types.PropertyGroup):
    """The settings of the panel's buttons, kept with the scene."""

    __annotations__ = PartialSettings.group_annotations() | {
        "weights": PointerProperty(type=SkinningPartialWeights),
        "transforms": PointerProperty(type=SkinningPartialTransforms),
        "again": PointerProperty(type=SkinningPartialAgain),
        "helpers": PointerProperty(type=SkinningPartialHelpers),
    }


registry = [
    SkinningPartialWeights,
    SkinningPartialTransforms,
    SkinningPartialAgain,
    SkinningPartialHelpers,
    SkinningPartialSettings,
]
pointers = {"Scene.skinning_partial": SkinningPartialSettings}
