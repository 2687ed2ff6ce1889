# SPDX-License-Identifier: GPL-3.0-or-later
"""What a panel shows of a bake: whether it still fits, without reading the mesh at each redraw."""

import time
from dataclasses import dataclass

import bpy

from ...core.errors import BadScene, SkinningError
from ..app_handlers import add_handlers, remove_handlers
from ..skin_reader import armature_of, bone_names, check_rig
from . import rotation_centers
from .rotation_centers import MISSING, UNKNOWN, bake_record

# A mesh that was edited is read again after this many times as long as it took the last time, not sooner.
_REST_FACTOR = 10.0

# A redraw does not wait longer than this for a mesh to be read: a timer reads it, and then asks for another redraw.
_LONGEST_WAIT = 0.05

# What a vertex takes, to tell the first reading's time.
_SECONDS_PER_VERTEX = 5e-6


def shown_bake_state(object) -> str:
    """``bake_state`` for a panel's draw: read again only after the mesh was edited, and not too often even then.

    Where nothing can be read, as in Edit Mode, it is as it was before, UNKNOWN where nothing was known. So it is while
    a large mesh waits for a timer to read it.
    """
    record = bake_record(object)
    if record is None:
        return MISSING
    known = _known_states.get(object.session_uid)
    mesh = object.data
    try:
        if mesh.is_editmode:
            raise BadScene
        check_rig(object)
    except SkinningError:
        return known.state if known is not None and known.mesh_uid == mesh.session_uid else UNKNOWN
    key = (record.fingerprint, mesh.session_uid, len(mesh.vertices), bone_names(object, armature_of(object)))
    if known is None:
        _forget_all_but({ob.session_uid for ob in bpy.data.objects})
    if known is None or known.key != key:
        seconds = _SECONDS_PER_VERTEX * len(mesh.vertices) if known is None else known.seconds
        known = _known_states[object.session_uid] = _KnownState(key, mesh.session_uid, UNKNOWN, seconds)
    if known.edited:
        wait = known.rest_until - time.perf_counter()
        if wait <= 0 and (known.seconds <= _LONGEST_WAIT or not _can_wait()):
            _read(object, known)
        elif not bpy.app.timers.is_registered(_read_edited) and not known.unreadable:
            bpy.app.timers.register(_read_edited, first_interval=max(wait, 0.0))
    return known.state


def _can_wait() -> bool:
    """Whether there are redraws to come; without a window timers do not run."""
    return not bpy.app.background


@dataclass
class _KnownState:
    """key: what the state was read of. seconds: what a reading takes. edited: whether one is due, but not before
    ``rest_until`` of the performance counter."""

    key: tuple
    mesh_uid: int
    state: str
    seconds: float
    rest_until: float = 0.0
    edited: bool = True

    @property
    def unreadable(self) -> bool:
        """Whether a reading has failed: then each redraw may try again, but none is asked for."""
        return self.state == UNKNOWN and self.rest_until > 0


# By the objects' session-wide numbers: of two that share a mesh, each has bones of its own.
_known_states: dict[int, _KnownState] = {}


def _read(object, known: _KnownState) -> None:
    start = time.perf_counter()
    known.state = rotation_centers.bake_state(object)
    end = time.perf_counter()
    known.seconds = end - start
    known.rest_until = end + _REST_FACTOR * known.seconds
    # What could not be read may be readable without any edit of the mesh.
    known.edited = known.state == UNKNOWN


def _read_edited() -> None:
    """Timer: read what was edited and has rested enough, and have the sidebars redrawn."""
    objects = {object.session_uid: object for object in bpy.data.objects}
    _forget_all_but(objects.keys())
    for uid, known in _known_states.items():
        if known.edited and time.perf_counter() >= known.rest_until and _is_readable(objects[uid], known):
            _read(objects[uid], known)
    for manager in bpy.data.window_managers:
        for window in manager.windows:
            for area in window.screen.areas:
                if area.type == "VIEW_3D":
                    area.tag_redraw()


def _forget_all_but(uids) -> None:
    for uid in _known_states.keys() - uids:
        del _known_states[uid]


def _is_readable(object, known: _KnownState) -> bool:
    """Whether ``known`` is of the mesh that the object has, and that is not being edited."""
    return object.type == "MESH" and object.data.session_uid == known.mesh_uid and not object.data.is_editmode


@bpy.app.handlers.persistent
def _note_edits(_scene, depsgraph) -> None:
    """Remember which meshes were edited. Only looks, changes nothing."""
    if not _known_states or not depsgraph.id_type_updated("MESH"):
        return
    edited = {update.id.original.session_uid for update in depsgraph.updates if isinstance(update.id, bpy.types.Mesh)}
    for known in _known_states.values():
        known.edited |= known.mesh_uid in edited


def _handlers():
    return ((bpy.app.handlers.depsgraph_update_post, _note_edits),)


def register() -> None:
    add_handlers(_handlers())


def unregister() -> None:
    remove_handlers(_handlers())
    if bpy.app.timers.is_registered(_read_edited):
        bpy.app.timers.unregister(_read_edited)
    _known_states.clear()
