# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the colors of weights up to date while weights are painted or computed anew.

Edits of a mesh are only noted; a timer reads the weights when the mesh has been left in peace for a while.
"""

import time

import bpy

from ...blender.app_handlers import add_handlers, remove_handlers
from ...blender.areas import all_areas
from ...blender.skin_reader import check_rig
from ...core.errors import SkinningError
from .weight_view import is_stale, show_weights, shows_weights

QUIET_SECONDS = 0.3
# So many times as long as reading took the last time, the mesh has to be left in peace.
_PATIENCE = 3.0

_quiet_seconds = QUIET_SECONDS
_last_edit = 0.0


def refresh_all() -> bool:
    """Bring the colors of all meshes up to date that show their weights and can be read; whether any has changed."""
    changed, done = False, set()
    for object in bpy.data.objects:
        if not shows_weights(object) or object.data in done or object.data.is_editmode:
            continue
        group = object.data.skinning_weight_view
        if group.mode == "OFF":
            continue
        try:
            check_rig(object)
            if is_stale(object):
                show_weights(object, group.mode, group.most)
                changed = True
        except SkinningError:
            # The panel says why when the user looks.
            continue
        done.add(object.data)
    return changed


@bpy.app.handlers.persistent
def _note_edits(_scene, depsgraph) -> None:
    if not depsgraph.id_type_updated("MESH"):
        return
    for update in depsgraph.updates:
        if isinstance(update.id, bpy.types.Object) and update.is_updated_geometry and shows_weights(update.id):
            _refresh_soon()
            return


@bpy.app.handlers.persistent
def _note_undo(*_) -> None:
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


def _handlers():
    handlers = bpy.app.handlers
    return (
        (handlers.depsgraph_update_post, _note_edits),
        (handlers.undo_post, _note_undo),
        (handlers.redo_post, _note_undo),
    )


def register() -> None:
    add_handlers(_handlers())


def unregister() -> None:
    remove_handlers(_handlers())
    if bpy.app.timers.is_registered(_refresh):
        bpy.app.timers.unregister(_refresh)
