# SPDX-License-Identifier: GPL-3.0-or-later
"""The areas of all windows, and having them drawn anew where nothing of the scene changes by which Blender would."""

from collections.abc import Iterator

import bpy


def all_areas() -> Iterator[bpy.types.Area]:
    """None in background mode."""
    for manager in bpy.data.window_managers:
        for window in manager.windows:
            yield from window.screen.areas


def redraw_views() -> None:
    """Have every 3D view drawn anew."""
    for area in all_areas():
        if area.type == "VIEW_3D":
            area.tag_redraw()
