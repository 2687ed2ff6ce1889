# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview's settings, on the window manager, which undo and files do not affect: they only concern the display."""

from dataclasses import replace

import bpy

from ...blender.areas import redraw_views
from ...ui.settings import HARD, Settings, choice, factor, number, switch

METHOD_ITEMS = (
    ("LBS", "Linear Blend", "Blended matrices, as in the Armature modifier"),
    ("DQS", "Dual Quaternion", "Blended dual quaternions, as in the Armature modifier with Preserve Volume"),
    ("CRS", "Centers of Rotation", "Blended rotations about the baked centers"),
)
LABELS = {method: label for method, label, _ in METHOD_ITEMS}

COLOR_ITEMS = (
    ("METHOD", "Method", "A color for each method"),
    ("DISTANCE", "Distance", "Distance of each vertex from its place with another method"),
)


class PreviewSettings(Settings):
    side_by_side = switch("Side by Side", False, tip="Show all methods next to each other, around the mesh")
    spacing = number(
        "Spacing",
        1.2,
        least=0.0,
        soft_max=5.0,
        tip="Distance from one method to the next, in widths of the mesh at rest",
    )
    offset = number(
        "Offset",
        0.0,
        soft_min=-5.0,
        soft_max=5.0,
        tip="Distance of the preview from the mesh itself, to the right, in widths of the mesh at rest",
    )
    colors = choice("Color", COLOR_ITEMS, "METHOD", tip="What the colors of the preview show")
    compared = choice("Distance To", METHOD_ITEMS, "LBS", tip="The method to compare with")
    color_range = number(
        "Range",
        5.0,
        least=0.001,
        soft_min=0.1,
        most=1000.0,
        soft_max=25.0,
        subtype="PERCENTAGE",
        precision=2,
        tip="Distance shown in red, in percent of the diagonal of the mesh at rest",
    )
    opacity = factor("Opacity", 1.0, most=1.0, tip="Lower it to see bones through the preview")
    in_front = switch(
        "In Front", True, tip="Draw the preview in front of everything, so that the mesh itself does not cover it"
    )
    show_centers = switch(
        "Show Centers", False, tip="Draw the centers of rotation, and lines from them to their vertices"
    )


class ShowSettings(Settings):
    """What the operator shows."""

    mode = choice(
        "Mode", (*METHOD_ITEMS, ("OFF", "Off", "End the preview")), "LBS", tip="The method that deforms the drawn mesh"
    )
    side_by_side = replace(
        PreviewSettings.side_by_side, tip=f"{PreviewSettings.side_by_side.tip}. Unchanged if not given", optional=True
    )


def _redraw(settings: "SkinningPreviewSettings", context: bpy.types.Context) -> None:
    redraw_views()


class SkinningPreviewSettings(bpy.types.PropertyGroup):
    """The settings kept on the window manager."""

    __annotations__ = {
        name: replace(setting, more=setting.more | {"update": _redraw}).as_property(HARD)
        for name, setting in PreviewSettings.declared.items()
    }


registry = [SkinningPreviewSettings]
pointers = {"WindowManager.skinning_preview": SkinningPreviewSettings}
