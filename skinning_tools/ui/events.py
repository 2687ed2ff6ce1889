# SPDX-License-Identifier: GPL-3.0-or-later
"""What a modal operator asks about an event: whether it only moves a view, and where it happens."""

from collections.abc import Iterable
from typing import TypeVar

import bpy

from ..blender.wording import TAB

Place = TypeVar("Place", bpy.types.Area, bpy.types.Region)

# Events that move a view and edit nothing.
NAVIGATION = {"MIDDLEMOUSE", "WHEELUPMOUSE", "WHEELDOWNMOUSE", "WHEELINMOUSE", "WHEELOUTMOUSE", "TRACKPADPAN"} | {
    "TRACKPADZOOM", "MOUSEROTATE", "MOUSESMARTZOOM", "NDOF_MOTION", "MOUSEMOVE", "INBETWEEN_MOUSEMOVE"
}  # fmt: skip
VIEW_KEYS = {f"NUMPAD_{digit}" for digit in range(10)} | {"NUMPAD_PERIOD", "NUMPAD_PLUS", "NUMPAD_MINUS", "HOME"}


def navigates(context: bpy.types.Context, event: bpy.types.Event) -> bool:
    """Whether an event only moves a view: the rest would edit what the job works on."""
    if event.type in NAVIGATION:
        # Ctrl+wheel over a field changes its value; Alt+wheel over the timeline changes the frame.
        return not (event.type.startswith("WHEEL") and (event.ctrl or event.alt))
    return event.type in VIEW_KEYS and _area_type(context, event) == "VIEW_3D"


def clicks_in_own_tab(context: bpy.types.Context, event: bpy.types.Event) -> bool:
    """Whether a click is in a region where only the cancel button works while a job runs."""
    if event.type != "LEFTMOUSE":
        return False
    area = at_pointer(context.screen.areas, event)
    if area is None or area.type != "VIEW_3D":
        return False
    # The region overlaps the view itself.
    sidebar = at_pointer([region for region in area.regions if region.type == "UI"], event)
    return sidebar is not None and sidebar.active_panel_category == TAB


def _area_type(context: bpy.types.Context, event: bpy.types.Event) -> str:
    area = at_pointer(context.screen.areas, event)
    return area.type if area is not None else ""


def at_pointer(places: Iterable[Place], event: bpy.types.Event) -> Place | None:
    """The area or region under the pointer, or None."""
    for place in places:
        if place.x <= event.mouse_x < place.x + place.width and place.y <= event.mouse_y < place.y + place.height:
            return place
    return None
