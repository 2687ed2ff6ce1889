# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview's settings, on the window manager: that is neither undone nor what a file is about, as is right for
something that only looks."""

from dataclasses import replace

import bpy
from bpy.props import PointerProperty

from ...blender.areas import redraw_views
from ...ui.settings import HARD, Settings, choice, factor, number, switch

METHOD_ITEMS = (
    ("LBS", "Linear Blend", "Blended matrices, as the Armature modifier does"),
    ("DQS", "Dual Quaternion", "Blended dual quaternions, as the Armature modifier does with Preserve Volume"),
    ("CRS", "Centers of Rotation", "Blended rotations about the baked centers"),
)
LABELS = {method: label for method, label, _ in METHOD_ITEMS}

COLOR_ITEMS = (
    ("METHOD", "Method", "A color for each method"),
    ("DISTANCE", "Distance", "How far each vertex is from where another method has it"),
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
        tip="Distance of what is shown from the mesh itself, to the right, in widths of the mesh at rest",
    )
    colors = choice("Color", COLOR_ITEMS, "METHOD", tip="What the color of the preview tells")
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
        tip="Distance that is shown in red, in percent of the diagonal of the mesh at rest",
    )
    opacity = factor("Opacity", 1.0, most=1.0, tip="Lower it to see bones through the preview")
    in_front = switch(
        "In Front", True, tip="Draw the preview in front of everything, so that the mesh itself does not cover it"
    )
    show_centers = switch(
        "Show Centers", False, tip="Draw the centers of rotation, and lines from them to their vertices"
    )


def _redraw(settings, context) -> None:
    redraw_views()


class SkinningPreviewSettings(bpy.types.PropertyGroup):
    """What the window manager remembers."""

    __annotations__ = {
        name: replace(setting, more=setting.more | {"update": _redraw}).as_property(HARD)
        for name, setting in PreviewSettings.declared.items()
    }


registry = [SkinningPreviewSettings]


def register() -> None:
    bpy.types.WindowManager.skinning_preview = PointerProperty(type=SkinningPreviewSettings)


def unregister() -> None:
    del bpy.types.WindowManager.skinning_preview
