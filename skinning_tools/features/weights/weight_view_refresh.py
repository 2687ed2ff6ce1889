# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep the colors of weights up to date while weights are painted or computed.

Edits of a mesh are only recorded; a timer reads the weights once the mesh has not been edited for a while.
"""

import time
from typing import Any

import bpy

from ...blender.areas import all_areas
from ...blender.skin_reader import check_rig
from ...core.errors import SkinningError
from .weight_view import is_stale, show_weights, shows_weights

QUIET_SECONDS = 0.3
# The mesh must be unedited for this many times as long as the last reading took.
_PATIENCE = 3.0

_quiet_seconds = QUIET_SECONDS
_last_edit = 0.0


def refresh_all() -> bool:
    """Update the colors of all readable meshes that show their weights; returns whether any has changed."""
    changed, done = False, set()
    for mesh_object in bpy.data.objects:
        if not shows_weights(mesh_object) or mesh_object.data in done or mesh_object.data.is_editmode:
            continue
        group = mesh_object.data.skinning_weight_view
        if group.mode == "OFF":
            continue
        try:
            check_rig(mesh_object)
            if is_stale(mesh_object):
                show_weights(mesh_object, group.mode, group.most, group.palette)
                changed = True
        except SkinningError:
            # The panel shows the reason.
            continue
        done.add(mesh_object.data)
    return changed


@bpy.app.handlers.persistent
def _note_edits(_scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    if not depsgraph.id_type_updated("MESH"):
        return
    for update in depsgraph.updates:
        if isinstance(update.id, bpy.types.Object) and update.is_updated_geometry and shows_weights(update.id):
            _refresh_soon()
            return


@bpy.app.handlers.persistent
def _note_undo(*_: Any) -> None:
    if any(mesh.skinning_weight_view.mode != "OFF" for mesh in bpy.data.meshes):
        _refresh_soon()


def _refresh_soon() -> None:
    global _last_edit
    _last_edit = time.perf_counter()
    # Without a window timers do not run.
    if not bpy.app.background and not bpy.app.timers.is_registered(_refresh):
        bpy.app.timers.register(_refresh, first_interval=_quiet_seconds)


def _refresh() -> float | None:
    """Timer."""
    global _quiet_seconds
    start = time.perf_counter()
    left = _last_edit + _quiet_seconds - start
    if left > 0:
        return left
    if refresh_all():
        for area in all_areas():
            area.tag_redraw()
    _quiet_seconds = max(QUIET_SECONDS, _PATIENCE * (time.perf_counter() - start))
    return None


handlers = {"depsgraph_update_post": _note_edits, "undo_post": _note_undo, "redo_post": _note_undo}


def unregister() -> None:
    if bpy.app.timers.is_registered(_refresh):
        bpy.app.timers.unregister(_refresh)
