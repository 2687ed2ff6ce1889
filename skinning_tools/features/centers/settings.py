# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of baking and playing centers of rotation."""

import bpy

from ...blender.center_records import BASIS, CURRENT
from ...ui.settings import HARD, Setting, Settings, choice, name, number, switch
from .baking import DEFAULT_ATTRIBUTE

# Blender before 4.5 does not have this option, and accepts such paths without it.
_RELATIVE = {"PATH_SUPPORTS_BLEND_RELATIVE"} if bpy.app.version >= (4, 5, 0) else set()


class BakeSettings(Settings, stored="skinning_rotation_centers"):
    sigma = number(
        "Sigma",
        0.1,
        least=0.0001,
        soft_max=1.0,
        precision=4,
        step=1,
        tip="How similar the weights of two points must be to share a center. Smaller values follow the weights more "
        "closely, larger values give smoother centers",
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
        tip="Faces whose corners' weights differ by more than this are summed in finer pieces, without changing the "
        "mesh. 0 turns this off, otherwise the minimum is 0.001",
        flag="--subdivision-epsilon",
        metavar="E",
    )
    rest_shape = choice(
        "Rest Shape",
        (
            (BASIS, "Basis", "The mesh itself, before shape keys and modifiers"),
            (CURRENT, "Current", "With shape keys and the modifiers above the armature, as at the current frame"),
        ),
        BASIS,
        tip="The shape that fits the armature at rest, which the centers are taken from",
        flag="--rest-shape",
    )
    symmetrize = switch(
        "Symmetrize",
        False,
        tip="Give vertices that mirror each other across X mirrored centers",
        flag="--symmetrize",
    )
    attribute_name = name(
        "Attribute", DEFAULT_ATTRIBUTE, tip="Name of the attribute that stores the centers", flag="--attribute"
    )


class BakeAndPlaySettings(BakeSettings):
    """The settings of the command line, which has no separate command for the modifier."""

    add_modifier = switch(
        "Add Modifier", False, tip="Deform by the centers: Blender 5.1 or newer", flag="--add-modifier"
    )


class PlaybackSettings(Settings, stored="skinning_rotation_centers", frames="play"):
    """The settings of the copy with a shape key per frame."""


def _path(label: str) -> Setting:
    return name(
        label,
        tip="The point cache to write. If empty, it goes beside the .blend file and is named after it and the mesh",
        subtype="FILE_PATH",
        options=_RELATIVE,
    )


class PointCacheSettings(PlaybackSettings):
    filepath = _path("File")


class ExportSettings(Settings):
    y_up = switch("+Y Up", True, tip="Convert the centers to glTF's axes, like the exporter's option of that name")


class SkinningRotationCenterSettings(bpy.types.PropertyGroup):
    """The settings kept with the scene."""

    __annotations__ = (
        BakeSettings.group_annotations()
        | PlaybackSettings.group_annotations()
        | {"cache_path": _path("Cache").as_property(HARD)}
    )

    @property
    def filepath(self) -> str:
        """The path under the operator's name for it."""
        return self.cache_path


registry = [SkinningRotationCenterSettings]
pointers = {"Scene.skinning_rotation_centers": SkinningRotationCenterSettings}
