# SPDX-License-Identifier: GPL-3.0-or-later
"""How centers of rotation are baked and played: the settings that an artist keeps per scene, and the operators'.

As with the settings of a conversion, the operator takes from the scene what its caller did not give when it is invoked
from the interface; from Python only the arguments and the defaults below count.
"""

import bpy
from bpy.props import BoolProperty, FloatProperty, PointerProperty, StringProperty

from ...ui.common_settings import frame_annotations, scene_range_property
from .rotation_centers import DEFAULT_ATTRIBUTE

# Blender before 4.5 knows no such option, and takes such paths without it.
_RELATIVE = {"PATH_SUPPORTS_BLEND_RELATIVE"} if bpy.app.version >= (4, 5, 0) else set()

SETTING_NAMES = ("sigma", "subdivision_epsilon", "attribute_name", "symmetrize")


def setting_annotations(limit: str) -> dict:
    """The properties. limit: "min" for the panel, "soft_min" for the operator, which refuses with a message."""
    return {
        "sigma": FloatProperty(
            name="Sigma",
            description="How alike the weights of two places must be to share a center. "
            "Smaller follows the weights more closely, larger gives smoother centers",
            default=0.1,
            soft_max=1.0,
            precision=4,
            step=1,
            options={"SKIP_SAVE"},
            **{limit: 0.0001 if limit == "min" else 0.0},
        ),
        "subdivision_epsilon": FloatProperty(
            name="Subdivision",
            description="Faces whose corners' weights differ by more than this are summed in finer pieces, "
            "without a change to the mesh. 0 takes each face as it is, 0.001 is the least otherwise",
            default=0.1,
            soft_max=1.0,
            precision=3,
            step=1,
            options={"SKIP_SAVE"},
            **{limit: 0.0},
        ),
        "attribute_name": StringProperty(
            name="Attribute",
            description="Name of the attribute that the centers are stored in",
            default=DEFAULT_ATTRIBUTE,
            options={"SKIP_SAVE"},
        ),
        "symmetrize": BoolProperty(
            name="Symmetrize",
            description="Give vertices that mirror each other across X centers that do so too",
            default=False,
            options={"SKIP_SAVE"},
        ),
    }


def path_property(name: str):
    return StringProperty(
        name=name,
        description="The point cache to write. Where empty, beside the .blend file and named after it and the mesh",
        subtype="FILE_PATH",
        default="",
        options={"SKIP_SAVE"} | _RELATIVE,
    )


class SkinningRotationCenterSettings(bpy.types.PropertyGroup):
    """How the panel's buttons bake centers of rotation and play them, kept with the scene."""

    __annotations__ = (
        setting_annotations("min")
        | frame_annotations("play", "min")
        | {
            "use_scene_range": scene_range_property("play"),
            "cache_path": path_property("Cache"),
        }
    )


registry = [SkinningRotationCenterSettings]


def register() -> None:
    bpy.types.Scene.skinning_rotation_centers = PointerProperty(type=SkinningRotationCenterSettings)


def unregister() -> None:
    del bpy.types.Scene.skinning_rotation_centers
