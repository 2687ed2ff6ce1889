# SPDX-License-Identifier: GPL-3.0-or-later
"""What a panel shows of a bake: whether it still fits, without reading the mesh at each redraw.

A mesh is read by a timer, in parts, so that the window stays at hand; an edit or an undo meanwhile begins it anew.
"""

import logging
import time
from collections.abc import Generator
from dataclasses import dataclass

import bpy

from ...blender.app_handlers import add_handlers, remove_handlers
from ...blender.areas import redraw_views
from ...blender.skin_reader import armature_of, bone_names, check_rig
from ...core.errors import BadScene, SkinningError
from . import baking
from .baking import MISSING, UNKNOWN, bake_record

logger = logging.getLogger(__name__)

# A mesh that was edited is read again after this many times as long as it took the last time, not sooner.
_REST_FACTOR = 10.0

# A redraw does not wait longer than this for a mesh to be read: a timer reads it, and then asks for another redraw.
_LONGEST_WAIT = 0.01

# What the timer takes of the main thread at a time, and how long it then leaves it to Blender.
_TICK_SECONDS, _PAUSE_SECONDS = 0.015, 0.01

# An edit in the midst of a reading ends it: the next one begins when there was none for so long.
_QUIET_SECONDS = 0.3

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


def is_being_checked(object) -> bool:
    """Whether what ``shown_bake_state`` has told was so before an edit, and a timer is going to look."""
    known = _known_states.get(object.session_uid)
    if known is None or not _can_wait() or not bpy.app.timers.is_registered(_read_edited):
        return False
    reads = _reading is not None and _reading.known is known
    return reads or (known.edited and not known.unreadable)


def _can_wait() -> bool:
    """Whether there are redraws to come; without a window timers do not run."""
    return not bpy.app.background


@dataclass
class _KnownState:
    """key: what the state was read of. seconds: what a reading takes. edited: whether one is due, but not before
    ``rest_until`` of the performance counter. unreadable: one has failed: each redraw may try again, but none is asked
    for before the next edit. fault: what went wrong that nobody had foreseen, when that was last logged."""

    key: tuple
    mesh_uid: int
    state: str
    seconds: float
    rest_until: float = 0.0
    edited: bool = True
    unreadable: bool = False
    fault: str = ""


# By the objects' session-wide numbers: of two that share a mesh, each has bones of its own.
_known_states: dict[int, _KnownState] = {}


def _read(object, known: _KnownState) -> None:
    start = time.perf_counter()
    try:
        state = baking.bake_state(object)
    except Exception as error:  # noqa: BLE001 - its traceback is logged
        state = _failed(known, error)
    _note(known, state, time.perf_counter() - start, _REST_FACTOR)


def _failed(known: _KnownState, error: Exception) -> str:
    """The state where a reading ended by a fault of its own: one that ended a redraw or the timer would come again
    at each redraw, or leave the panel waiting. The developer gets the traceback once, not after each edit."""
    text = f"{type(error).__name__}: {error}"
    if known.fault != text:
        known.fault = text
        logger.error("Whether a bake of centers of rotation still fits could not be checked", exc_info=error)
    return UNKNOWN


def _note(known: _KnownState, state: str, seconds: float, rest: float) -> None:
    """rest: how many times as long as the reading has taken there is none."""
    known.state, known.seconds = state, seconds
    known.rest_until = time.perf_counter() + rest * seconds
    # What could not be read may be readable without any edit of the mesh.
    known.edited = known.unreadable = state == UNKNOWN


@dataclass
class _Reading:
    """A mesh that the timer is at. seconds: that it has taken so far."""

    uid: int
    known: _KnownState
    parts: Generator
    seconds: float = 0.0


_reading: _Reading | None = None


def _read_edited() -> float | None:
    """Timer: read what was edited and has rested enough, a part at a time, and have the sidebars redrawn."""
    global _reading
    objects = {object.session_uid: object for object in bpy.data.objects}
    _forget_all_but(objects.keys())
    if _reading is not None and not _goes_on(objects):
        # Whoever edits goes on doing so.
        _reading.known.rest_until = time.perf_counter() + _QUIET_SECONDS
        _stop_reading()
    if _reading is None:
        # One in Edit Mode comes with a redraw after it.
        waiting = [(known.rest_until, uid) for uid, known in _known_states.items() if _waits(objects[uid], known)]
        if not waiting:
            return None
        rest_until, uid = min(waiting)
        if rest_until > time.perf_counter():
            return rest_until - time.perf_counter()
        known = _known_states[uid]
        known.edited = False
        _reading = _Reading(uid, known, baking.bake_state_in_parts(objects[uid]))
    start = time.perf_counter()
    try:
        next(_reading.parts)
        while time.perf_counter() < start + _TICK_SECONDS:
            next(_reading.parts)
    except StopIteration as end:
        _end_reading(end.value, start)
    except Exception as error:  # noqa: BLE001 - its traceback is logged
        _end_reading(_failed(_reading.known, error), start)
    else:
        _reading.seconds += time.perf_counter() - start
    return _PAUSE_SECONDS


def _end_reading(state: str, start: float) -> None:
    """start: of the last part, by the performance counter."""
    global _reading
    _note(_reading.known, state, _reading.seconds + time.perf_counter() - start, 1.0)
    _reading = None
    redraw_views()


def _goes_on(objects) -> bool:
    """Whether the mesh that is being read is as it was."""
    known = _known_states.get(_reading.uid)
    return known is _reading.known and not known.edited and _is_readable(objects[_reading.uid], known)


def _waits(object, known: _KnownState) -> bool:
    return known.edited and not known.unreadable and _is_readable(object, known)


@bpy.app.handlers.persistent
def _stop_reading(*_) -> None:
    """An undo or another file takes away what is being read."""
    global _reading
    if _reading is not None:
        _reading.known.edited = True
        _reading.parts.close()
        _reading = None


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
        if known.mesh_uid in edited:
            known.edited, known.unreadable = True, False


def _handlers():
    handlers = bpy.app.handlers
    return (
        (handlers.depsgraph_update_post, _note_edits),
        (handlers.undo_pre, _stop_reading),
        (handlers.redo_pre, _stop_reading),
        (handlers.load_pre, _stop_reading),
    )


def register() -> None:
    add_handlers(_handlers())


def unregister() -> None:
    remove_handlers(_handlers())
    if bpy.app.timers.is_registered(_read_edited):
        bpy.app.timers.unregister(_read_edited)
    _stop_reading()
    _known_states.clear()
