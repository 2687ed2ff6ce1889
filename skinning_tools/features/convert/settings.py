# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a conversion: declared, kept with the scene, and read back from the figures of a result."""

import math

import bpy
from bpy.props import PointerProperty

from ...core.errors import BadSettings
from ...ui.settings import RANGE_NAMES, Settings, choice, count, influences, number, smoothness, switch

BONE_KINDS = (
    (
        "AFFINE",
        "Affine",
        "Bones that may shear: the closest result. Each is a chain of two bones, since one alone cannot shear",
    ),
    ("SCALED", "Scaled", "Bones that move, rotate and scale: for engines whose transforms cannot shear"),
    ("RIGID", "Rigid", "Bones that move and rotate only: works everywhere, and needs more bones for the same error"),
)
METHODS = (
    ("STANDARD", "Standard", "The closest result"),
    ("KAVAN2010", "Kavan et al. 2010", "The published algorithm as it is written, to compare with. Affine bones only"),
)
KEEP, REPLACE, CONVERT = "KEEP", "REPLACE", "CONVERT"
ON_RESULT = (
    (KEEP, "Keep", "Convert the source of the result anew, beside the earlier result"),
    (REPLACE, "Replace", "Convert the source of the result anew, and delete the earlier result"),
    (
        CONVERT,
        "Convert It",
        "Convert the result itself, as any other mesh: errors are those against it, not against its source",
    ),
)


class SolverSettings(Settings):
    """Those of core.decomposition.Settings. Their defaults are the contract's: scripts rely on them."""

    bone_count = count(
        "Bones",
        20,
        least=1,
        soft_most=200,
        tip="Number of bones. Start with 20, and double it until the error is small enough",
        flag="--bones",
    )
    bone_kind = choice("Bone Kind", BONE_KINDS, "AFFINE", tip="What the bones may do", flag="--kind")
    max_influences = influences()
    iterations = count(
        "Iterations",
        15,
        least=1,
        soft_most=200,
        tip="Rounds of improving bones, rest pose and weights in turn. More take longer and come closer",
        flag="--iterations",
    )
    target_error = number(
        "Target Error",
        0.0,
        least=0.0,
        soft_max=20.0,
        tip="Error (E_RMS, per mille of the mesh's size) to reach with as few bones as possible, at most as many as "
        "are given. 0 always uses that number. Residual shapes come on top",
        flag="--target-error",
        metavar="E",
    )
    optimize_rest_pose = switch(
        "Optimize Rest Pose",
        True,
        tip="Let the rest pose differ from the first frame where that lowers the error",
        flag="--no-rest-pose",
        help="keep the first frame as the rest pose",
    )
    residual_shapes = count(
        "Residual Shapes",
        0,
        least=0,
        soft_most=20,
        tip="Number of keyed shape keys that correct what the bones leave over. Each takes as much memory as the mesh; "
        "10 often halve the error",
        flag="--residual-shapes",
    )
    method = choice(
        "Method",
        METHODS,
        "STANDARD",
        tip="How the bones are found",
        flag="--method",
        help="KAVAN2010 is the published algorithm as it is written, to compare with",
    )
    smoothness = smoothness()


class PresetSettings(SolverSettings):
    """What a preset says: all but what is of the shot, its frames and objects."""

    root_bone = switch(
        "Root Bone",
        False,
        tip="Put all bones under one at the object's origin, to move the result as a whole",
        flag="--root-bone",
    )
    joint_hierarchy = switch(
        "Joint Hierarchy",
        False,
        tip="Parent bones to those that they turn about, so that the result can be posed by hand. It plays the same. "
        "Bones that turn about no other stay free",
        flag="--joint-hierarchy",
    )
    key_tolerance = number(
        "Key Tolerance",
        0.0,
        least=0.0,
        soft_max=10.0,
        tip="Leave out keyframes as long as no vertex moves by more than this, in per mille of the mesh's size as the "
        "errors are. 0 keeps a key at every frame",
        flag="--key-tolerance",
        metavar="T",
    )


class ConvertSettings(PresetSettings, stored="skinning_conversion", frames="convert"):
    selected_objects = switch(
        "Selected Objects", False, tip="Convert all selected meshes to one armature, at the place of the active one"
    )
    on_result = choice(
        "Earlier Result",
        ON_RESULT,
        KEEP,
        tip="What to do with an earlier result that is chosen in place of the mesh it was made from",
        flag="--on-result",
        help="where --object names a result of an earlier conversion: KEEP it and convert its source anew, REPLACE it "
        "by that, or CONVERT the result itself",
    )

    def for_solver(self):
        """The core.decomposition.Settings. Raises BadSettings where these or the others make no sense."""
        from ...core import decomposition

        if not 0 <= self.key_tolerance < math.inf:
            raise BadSettings(f"Key tolerance must be a number from 0 on, not {self.key_tolerance:g}")
        return decomposition.Settings(**{name: getattr(self, name) for name in SolverSettings.declared})


class ConvertAgainSettings(Settings):
    replace = switch("Replace", False, tip="Delete the earlier result once the new one is there")


def settings_of(figures: dict) -> ConvertSettings:
    """Those that ``figures`` were reached with. Earlier versions have not noted all of them."""
    noted = {name: value for name, value in figures["settings"].items() if name in SolverSettings.declared}
    values = {
        **noted,
        "optimize_rest_pose": bool(noted.get("optimize_rest_pose", True)),
        "frame_start": round(figures["frame_start"]),
        "frame_end": round(figures["frame_end"]),
        "frame_step": figures["frame_step"],
        "key_tolerance": figures["keys"]["tolerance"] if "keys" in figures else figures.get("key_tolerance", 0.0),
        "root_bone": bool(figures.get("root_bone", False)),
        "joint_hierarchy": "joint_count" in figures or bool(figures.get("joint_hierarchy", False)),
        "selected_objects": len(figures.get("parts", ())) > 1,
    }
    return ConvertSettings(**values)


def take_settings(scene, figures: dict) -> None:
    """Set the scene's settings to those of a conversion; its range is set where it is not the scene's.

    Raises BadSettings where no conversion can have had them; then nothing is changed.
    """
    settings = settings_of(figures)
    settings.for_solver()
    chosen = scene.skinning_conversion
    for name in (*PresetSettings.declared, *RANGE_NAMES, "frame_step", "selected_objects"):
        setattr(chosen, name, getattr(settings, name))
    last = range(scene.frame_start, scene.frame_end + 1, settings.frame_step)[-1:]
    frames = settings.frame_start, [settings.frame_end]
    chosen.use_scene_range = frames == (scene.frame_start, list(last))


class SkinningConversionSettings(bpy.types.PropertyGroup):
    """How the panel's button converts an animation, kept with the scene."""

    __annotations__ = ConvertSettings.group_annotations()


registry = [SkinningConversionSettings]


def register() -> None:
    bpy.types.Scene.skinning_conversion = PointerProperty(type=SkinningConversionSettings)


def unregister() -> None:
    del bpy.types.Scene.skinning_conversion
