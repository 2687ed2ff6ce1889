# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview's settings, and its front door.

Operators and panels do not import this package: they reach it through `window_manager.skinning_preview`. The window
manager is neither undone nor what a file is about, as is right for something that only looks.
"""

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, PointerProperty

from ...blender.areas import redraw_views
from . import session
from .methods import METHOD_ITEMS


def _redraw(settings, context) -> None:
    redraw_views()


class SkinningPreviewSettings(bpy.types.PropertyGroup):
    """Settings of the preview, and the way to start and stop it"""

    side_by_side: BoolProperty(
        name="Side by Side",
        description="Show all methods next to each other, around the mesh",
        default=False,
        update=_redraw,
    )
    spacing: FloatProperty(
        name="Spacing",
        description="Distance from one method to the next, in widths of the mesh at rest",
        default=1.2,
        min=0.0,
        soft_max=5.0,
        update=_redraw,
    )
    offset: FloatProperty(
        name="Offset",
        description="Distance of what is shown from the mesh itself, to the right, in widths of the mesh at rest",
        default=0.0,
        soft_min=-5.0,
        soft_max=5.0,
        update=_redraw,
    )
    colors: EnumProperty(
        name="Color",
        description="What the color of the preview tells",
        items=(
            ("METHOD", "Method", "A color for each method"),
            ("DISTANCE", "Distance", "How far each vertex is from where another method has it"),
        ),
        default="METHOD",
        update=_redraw,
    )
    compared: EnumProperty(
        name="Distance To",
        description="The method to compare with",
        items=METHOD_ITEMS,
        default="LBS",
        update=_redraw,
    )
    color_range: FloatProperty(
        name="Range",
        description="Distance that is shown in red, in percent of the diagonal of the mesh at rest",
        subtype="PERCENTAGE",
        default=5.0,
        min=0.001,
        soft_min=0.1,
        max=1000.0,
        soft_max=25.0,
        precision=2,
        update=_redraw,
    )
    opacity: FloatProperty(
        name="Opacity",
        description="Lower it to see bones through the preview",
        subtype="FACTOR",
        default=1.0,
        min=0.0,
        max=1.0,
        update=_redraw,
    )
    in_front: BoolProperty(
        name="In Front",
        description="Draw the preview in front of everything, so that the mesh itself does not cover it",
        default=True,
        update=_redraw,
    )
    show_centers: BoolProperty(
        name="Show Centers",
        description="Draw the centers of rotation, and lines from them to their vertices",
        default=False,
        update=_redraw,
    )

    def show(self, context, object, mode: str) -> None:
        """Start the preview, or change its mode. Raises SkinningError."""
        session.start(context, object, mode)

    def stop(self) -> None:
        session.stop()

    @property
    def shown(self):
        """The preview that runs (a skin_view.SkinView), or None."""
        return session.running()

    @property
    def failure(self) -> str:
        """Why the last preview ended by itself, or an empty text."""
        return session.failure()


registry = [SkinningPreviewSettings]


def register() -> None:
    bpy.types.WindowManager.skinning_preview = PointerProperty(type=SkinningPreviewSettings)
    session.register()


def unregister() -> None:
    session.unregister()
    del bpy.types.WindowManager.skinning_preview
