# SPDX-License-Identifier: GPL-3.0-or-later
"""The areas of all windows, and redraws that no change of the scene triggers."""

from collections.abc import Iterator

import bpy


def all_areas() -> Iterator[bpy.types.Area]:
    """All areas of all windows; none in background mode."""
    for manager in bpy.data.window_managers:
        for window in manager.windows:
            yield from window.screen.areas


def redraw_views() -> None:
    """Redraw every 3D view."""
    for area in all_areas():
        if area.type == "VIEW_3D":
            area.tag_redraw()


def redraw_sidebars() -> None:
    """Redraw only the sidebar of every 3D view."""
    for area in all_areas():
        if area.type == "VIEW_3D":
            for region in area.regions:
                if region.type == "UI":
                    region.tag_redraw()
