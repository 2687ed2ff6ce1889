# SPDX-License-Identifier: GPL-3.0-or-later
"""How centers of rotation are baked and played."""

import bpy
from bpy.props import PointerProperty

from ...ui.settings import HARD, Setting, Settings, name, number, switch
from .baking import DEFAULT_ATTRIBUTE

# Blender before 4.5 has no such option, and accepts such paths without it.
_RELATIVE = {"PATH_SUPPORTS_BLEND_RELATIVE"} if bpy.app.version >= (4, 5, 0) else set()


class BakeSettings(Settings, stored="skinning_rotation_centers"):
    sigma = number(
        "Sigma",
        0.1,
        least=0.0001,
        soft_max=1.0,
        precision=4,
        step=1,
        tip="How alike the weights of two places must be to share a center. Smaller follows the weights more closely, "
        "larger gives smoother centers",
        flag="--sigma",
        metavar="S",
    )
    subdivision_epsilon = number(
        "Subdivision",
        0.1,
        least=0.0,
        soft_max=1.0,
        precision=3,
        step=1,
        tip="Faces whose corners' weights differ by more than this are summed in finer pieces, without a change to the "
        "mesh. 0 takes each face as it is, 0.001 is the least otherwise",
        flag="--subdivision-epsilon",
        metavar="E",
    )
    symmetrize = switch(
        "Symmetrize",
        False,
        tip="Give vertices that mirror each other across X centers that do so too",
        flag="--symmetrize",
    )
    attribute_name = name(
        "Attribute", DEFAULT_ATTRIBUTE, tip="Name of the attribute that the centers are stored in", flag="--attribute"
    )


class BakeAndPlaySettings(BakeSettings):
    """Of the command line, which has no second command for the modifier."""

    add_modifier = switch(
        "Add Modifier", False, tip="Deform by the centers: Blender 5.1 or newer", flag="--add-modifier"
    )


class PlaybackSettings(Settings, stored="skinning_rotation_centers", frames="play"):
    """Of the copy with a shape key per frame."""


def _path(label: str) -> Setting:
    return name(
        label,
        tip="The point cache to write. Where empty, beside the .blend file and named after it and the mesh",
        subtype="FILE_PATH",
        options=_RELATIVE,
    )


class PointCacheSettings(PlaybackSettings):
    filepath = _path("File")


class SkinningRotationCenterSettings(bpy.types.PropertyGroup):
    """What the scene remembers."""

    __annotations__ = (
        BakeSettings.group_annotations()
        | PlaybackSettings.group_annotations()
        | {"cache_path": _path("Cache").as_property(HARD)}
    )

    @property
    def filepath(self) -> str:
        """As the operator calls it."""
        return self.cache_path


registry = [SkinningRotationCenterSettings]


def register() -> None:
    bpy.types.Scene.skinning_rotation_centers = PointerProperty(type=SkinningRotationCenterSettings)


def unregister() -> None:
    del bpy.types.Scene.skinning_rotation_centers
