# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a conversion: declared, kept with the scene, and read back from the figures of a result."""

import math
from typing import TYPE_CHECKING

import bpy

from ...blender.conversion_figures import CONVERTED_FRAMES, FRAMES
from ...blender.rotation_limits import MARGIN
from ...core.errors import BadSettings
from ...core.solve_effort import POSABLE_SMOOTHNESS
from ...ui.presets import Presets
from ...ui.settings import (
    RANGE_NAMES,
    Settings,
    angle,
    choice,
    count,
    factor,
    influences,
    name,
    number,
    smoothness,
    surface,
    switch,
)

if TYPE_CHECKING:
    from ...core import decomposition

BONE_KINDS = (
    (
        "AFFINE",
        "Affine",
        "Bones that can shear: the closest result. Each is a chain of two bones, since a single bone cannot shear",
    ),
    ("SCALED", "Scaled", "Bones that move, rotate and scale: for game engines without shear"),
    ("RIGID", "Rigid", "Bones that only move and rotate: works everywhere, but needs more bones for the same error"),
)
QUALITIES = (
    ("DRAFT", "Draft", "A first look, in half the time"),
    ("STANDARD", "Standard", "A close result"),
    ("BEST", "Best", "The closest result: bones are tried in many places. Twenty to forty times as long as Standard"),
)
METHODS = (
    ("STANDARD", "Standard", "The closest result"),
    ("KAVAN2010", "Kavan et al. 2010", "The algorithm exactly as published, for comparison. Affine bones only"),
)
KEEP, REPLACE, CONVERT = "KEEP", "REPLACE", "CONVERT"
ON_RESULT = (
    (KEEP, "Keep", "Convert the source of the result again and keep the earlier result"),
    (REPLACE, "Replace", "Convert the source of the result again and delete the earlier result"),
    (
        CONVERT,
        "Convert It",
        "Convert the result itself like any other mesh: errors are measured against it, not against its source",
    ),
)


class SolverSettings(Settings):
    """The settings of core.decomposition.Settings. The defaults are part of the contract: scripts rely on them."""

    quality = choice("Quality", QUALITIES, "STANDARD", tip="How much time to spend on a close result", flag="--quality")
    bone_count = count(
        "Bones",
        20,
        least=1,
        soft_most=200,
        tip="Number of bones. Start with 20, and double it until the error is small enough",
        flag="--bones",
    )
    bone_kind = choice("Bone Kind", BONE_KINDS, "AFFINE", tip="Transformations that the bones can have", flag="--kind")
    max_influences = influences()
    iterations = count(
        "Iterations",
        15,
        least=1,
        soft_most=200,
        tip="Rounds of improving bones, rest pose and weights in turn. More rounds take longer and lower the error",
        flag="--iterations",
    )
    target_error = number(
        "Target Error",
        0.0,
        least=0.0,
        soft_max=20.0,
        tip="Error (E_RMS, per mille of the mesh's size) to reach with as few bones as possible, up to the number "
        "of bones above. 0 always uses that number. Residual shapes are added to it",
        flag="--target-error",
        metavar="E",
    )
    optimize_rest_pose = switch(
        "Optimize Rest Pose",
        True,
        tip="Let the rest pose differ from the first frame if that lowers the error",
        flag="--no-rest-pose",
        help="keep the first frame as the rest pose",
    )
    residual_shapes = count(
        "Residual Shapes",
        0,
        least=0,
        soft_most=20,
        tip="Number of keyed shape keys that correct the error of the bones. Each takes as much memory as the mesh; "
        "10 often halve the error",
        flag="--residual-shapes",
    )
    emphasis = factor(
        "Emphasis",
        0.0,
        most=1.0,
        tip="What to keep small: 0 the mean of all errors, 1 also the largest one, which is about halved",
        flag="--emphasis",
        metavar="E",
    )
    surface = surface(0.0)
    method = choice(
        "Method",
        METHODS,
        "STANDARD",
        tip="How bones are computed",
        flag="--method",
        help="KAVAN2010 is the algorithm exactly as published, for comparison",
    )
    smoothness = smoothness()


class PresetSettings(SolverSettings):
    """The settings that a preset stores: all except frames and objects, which belong to the shot."""

    root_bone = switch(
        "Root Bone",
        False,
        tip="Parent all bones to one at the object's origin, to move the result as a whole",
        flag="--root-bone",
    )
    joint_hierarchy = switch(
        "Joint Hierarchy",
        False,
        tip="Parent each bone to the bone that it turns about, so that you can pose the result by hand. The "
        "animation stays. Bones that turn about no other bone have no parent. With Rigid, there are only as many bones "
        "as parts move on their own, up to the number of bones above",
        flag="--joint-hierarchy",
    )
    rotation_only = switch(
        "Rotation Only",
        False,
        tip="With Rigid bones in a joint hierarchy, every bone but the root only rotates about its joint, so that no "
        "joint slips when you pose. The error is larger than that of bones that move freely; the result shows both",
        flag="--rotation-only",
    )
    joint_slip = number(
        "Joint Slip",
        0.0,
        least=0.0,
        soft_max=5.0,
        tip="With Rotation Only, how far a bone may leave its joint, in percent of the mesh's size, where that lowers "
        "the error: cloth and skin slide. 0: joints do not slip at all",
        flag="--joint-slip",
        metavar="S",
    )
    rotation_limits = switch(
        "Rotation Limits",
        False,
        tip="With Joint Hierarchy, limit each bone that has a parent to the rotations of its keyframes and the margin, "
        "with a Limit Rotation constraint and limits for inverse kinematics",
        flag="--rotation-limits",
    )
    limit_margin = angle(
        "Limit Margin",
        MARGIN,
        least=0.0,
        most=math.pi,
        tip="How much farther than in its keyframes a bone can turn about each axis, with Rotation Limits",
        flag="--limit-margin",
    )
    key_tolerance = number(
        "Key Tolerance",
        0.0,
        least=0.0,
        soft_max=10.0,
        tip="Remove keyframes as long as no vertex moves by more than this, in per mille of the mesh's size like the "
        "errors. 0 keeps a key at every frame",
        flag="--key-tolerance",
        metavar="T",
    )


PRESETS = Presets(
    "conversion",
    "convert_animation",
    PresetSettings,
    lambda context: context.scene.skinning_conversion,
    "bpy.context.scene.skinning_conversion",
)


class ConvertSettings(PresetSettings, stored="skinning_conversion", frames="convert"):
    importance = name(
        "Importance",
        tip="Vertex group of what has to be closest, such as a face or hands: a vertex of weight 1 counts as ten. "
        "Empty: all count alike",
        flag="--importance",
        metavar="GROUP",
    )
    selected_objects = switch(
        "Selected Objects", False, tip="Convert all selected meshes to one armature at the location of the active mesh"
    )
    as_clips = switch(
        "As Clips",
        False,
        tip="The selected meshes are clips of one mesh: they become one skinned mesh and one armature, with an action "
        "for each. They need the same vertices in the same order; the active one gives name, place and materials",
        flag="--as-clips",
        help="the objects are clips of one mesh, with the same vertices: make one skinned mesh and one armature, with "
        "an action for each object",
    )
    on_result = choice(
        "Earlier Result",
        ON_RESULT,
        KEEP,
        tip="What to do if the mesh to convert is the result of an earlier conversion",
        flag="--on-result",
        help="if --object names a result of an earlier conversion: KEEP it and convert its source again, REPLACE it "
        "with a new conversion of its source, or CONVERT the result itself",
    )

    @property
    def prune(self) -> bool:
        """Whether to make only as many bones as parts move: a skeleton, unless a target error decides their number."""
        return self.joint_hierarchy and self.bone_kind == "RIGID" and not self.target_error

    def for_solver(self) -> "decomposition.Settings":
        """The core.decomposition.Settings. Raises BadSettings if a setting is invalid."""
        from ...core import decomposition

        if self.rotation_only and not (self.joint_hierarchy and self.bone_kind == "RIGID"):
            raise BadSettings(
                "Rotation Only needs a skeleton of rigid bones. Switch on Joint Hierarchy and choose the bone kind "
                "Rigid, or switch off Rotation Only"
            )
        if self.joint_slip and not self.rotation_only:
            raise BadSettings(
                "Joint Slip is for joints that Rotation Only holds. Switch on Rotation Only or set Joint Slip to 0"
            )
        if self.rotation_limits and not self.joint_hierarchy:
            raise BadSettings(
                "Rotation Limits need bones that turn about joints. Switch on Joint Hierarchy, or switch off Rotation "
                "Limits"
            )
        solver = {each: getattr(self, each) for each in SolverSettings.declared}
        if self.joint_hierarchy and self.bone_kind == "RIGID":
            solver["smoothness"] = max(self.smoothness, POSABLE_SMOOTHNESS)
        return decomposition.Settings(**solver, prune=self.prune)


class ConvertAgainSettings(Settings):
    replace = switch("Replace", False, tip="Delete the earlier result once the new one is finished")


def settings_of(figures: dict) -> ConvertSettings:
    """The settings stored in ``figures``. Earlier versions did not store all of them."""
    noted = {key: value for key, value in figures["settings"].items() if key in SolverSettings.declared}
    frames = figures.get(CONVERTED_FRAMES, figures)
    values = {
        **noted,
        "optimize_rest_pose": bool(noted.get("optimize_rest_pose", True)),
        **{name: round(frames[name]) for name in FRAMES},
        "key_tolerance": figures["keys"]["tolerance"] if "keys" in figures else figures.get("key_tolerance", 0.0),
        "root_bone": bool(figures.get("root_bone", False)),
        "joint_hierarchy": bool(figures.get("joint_hierarchy", "joint_count" in figures)),
        "rotation_only": bool(figures.get("rotation_only", False)),
        "joint_slip": float(figures.get("joint_slip", 0.0)),
        "rotation_limits": "limit_margin" in figures,
        "limit_margin": figures.get("limit_margin", MARGIN),
        "selected_objects": len(figures.get("parts", ())) > 1,
        "as_clips": bool(figures.get("clips")),
        "importance": str(figures.get("importance", "")),
    }
    return ConvertSettings(**values)


def take_settings(scene: bpy.types.Scene, figures: dict) -> None:
    """Set the scene's settings to those of a conversion; the frame range too if it is not the scene's.

    Raises BadSettings, and changes nothing, if the stored settings are invalid.
    """
    settings = settings_of(figures)
    settings.for_solver()
    chosen = scene.skinning_conversion
    for each in (*PresetSettings.declared, *RANGE_NAMES, "frame_step", "selected_objects", "as_clips", "importance"):
        setattr(chosen, each, getattr(settings, each))
    last = range(scene.frame_start, scene.frame_end + 1, settings.frame_step)[-1:]
    frames = settings.frame_start, [settings.frame_end]
    chosen.use_scene_range = frames == (scene.frame_start, list(last))


class SkinningConversionSettings(bpy.types.PropertyGroup):
    """How the panel's button converts an animation, kept with the scene."""

    __annotations__ = ConvertSettings.group_annotations()


registry = [SkinningConversionSettings]
pointers = {"Scene.skinning_conversion": SkinningConversionSettings}
