# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a bake for a panel: whether it still fits, without reading the mesh at each redraw.

A timer reads the mesh in parts, so that the window stays responsive; an edit or an undo restarts the reading.
"""

import logging
import time
from collections.abc import Collection, Generator
from dataclasses import dataclass
from typing import Any

import bpy

from ...blender.areas import redraw_views
from ...blender.skin_reader import armature_of, bone_names, check_rig
from ...core.errors import BadScene, SkinningError
from . import baking
from .baking import MISSING, UNKNOWN, bake_record

logger = logging.getLogger(__name__)

# An edited mesh is read again after this many times the duration of the last reading, not sooner.
_REST_FACTOR = 10.0

# A redraw waits at most this long for a mesh to be read; else a timer reads it and triggers another redraw.
_LONGEST_WAIT = 0.01

# Seconds that the timer uses the main thread at a time, and seconds that it then leaves to Blender.
_TICK_SECONDS, _PAUSE_SECONDS = 0.015, 0.01

# An edit ends a reading; the next one begins after this many seconds without edits.
_QUIET_SECONDS = 0.3

# Seconds per vertex, to estimate the first reading.
_SECONDS_PER_VERTEX = 5e-6


def shown_bake_state(mesh_object: bpy.types.Object) -> str:
    """``bake_state`` for a panel's draw: read again only after the mesh was edited, and not too often even then.

    If nothing can be read, as in Edit Mode, or while a large mesh waits for the timer, it is the previous state,
    UNKNOWN if there is none.
    """
    record = bake_record(mesh_object)
    if record is None:
        return MISSING
    known = _known_states.get(mesh_object.session_uid)
    mesh = mesh_object.data
    try:
        if mesh.is_editmode:
            raise BadScene
        check_rig(mesh_object)
    except SkinningError:
        return known.state if known is not None and known.mesh_uid == mesh.session_uid else UNKNOWN
    key = (record.fingerprint, mesh.session_uid, len(mesh.vertices), bone_names(mesh_object, armature_of(mesh_object)))
    if known is None:
        _forget_all_but({ob.session_uid for ob in bpy.data.objects})
    if known is None or known.key != key:
        seconds = _SECONDS_PER_VERTEX * len(mesh.vertices) if known is None else known.seconds
        known = _known_states[mesh_object.session_uid] = _KnownState(key, mesh.session_uid, UNKNOWN, seconds)
    if known.edited:
        wait = known.rest_until - time.perf_counter()
        if wait <= 0 and (known.seconds <= _LONGEST_WAIT or not _can_wait()):
            _read(mesh_object, known)
        elif not bpy.app.timers.is_registered(_read_edited) and not known.unreadable:
            bpy.app.timers.register(_read_edited, first_interval=max(wait, 0.0))
    return known.state


def is_being_checked(mesh_object: bpy.types.Object) -> bool:
    """Whether the state from ``shown_bake_state`` is from before an edit, and a timer will check it."""
    known = _known_states.get(mesh_object.session_uid)
    if known is None or not _can_wait() or not bpy.app.timers.is_registered(_read_edited):
        return False
    reads = _reading is not None and _reading.known is known
    return reads or (known.edited and not known.unreadable)


def _can_wait() -> bool:
    """Whether redraws will follow; without a window timers do not run."""
    return not bpy.app.background


@dataclass
class _KnownState:
    """key: identifies what was read. seconds: of a reading. edited: whether a reading is due, but not before
    ``rest_until`` of the performance counter. unreadable: the last reading failed: each redraw may try again, but none
    is requested before the next edit. fault: the unexpected error that was last logged."""

    key: tuple
    mesh_uid: int
    state: str
    seconds: float
    rest_until: float = 0.0
    edited: bool = True
    unreadable: bool = False
    fault: str = ""


# By the objects' session-wide numbers: objects that share a mesh may have different bones.
_known_states: dict[int, _KnownState] = {}


def _read(mesh_object: bpy.types.Object, known: _KnownState) -> None:
    start = time.perf_counter()
    try:
        state = baking.bake_state(mesh_object)
    except Exception as error:  # noqa: BLE001 - its traceback is logged
        state = _failed(known, error)
    _note(known, state, time.perf_counter() - start, _REST_FACTOR)


def _failed(known: _KnownState, error: Exception) -> str:
    """The state after an unexpected error in a reading, which must not end the redraw or the timer: it would recur at
    each redraw, or leave the panel waiting. The traceback is logged once, not after each edit."""
    text = f"{type(error).__name__}: {error}"
    if known.fault != text:
        known.fault = text
        logger.error("Whether a bake of centers of rotation still fits could not be checked", exc_info=error)
    return UNKNOWN


def _note(known: _KnownState, state: str, seconds: float, rest: float) -> None:
    """Store a state. rest: the pause before the next reading, as a multiple of ``seconds``."""
    known.state, known.seconds = state, seconds
    known.rest_until = time.perf_counter() + rest * seconds
    # An unreadable mesh may become readable without an edit.
    known.edited = known.unreadable = state == UNKNOWN


@dataclass
class _Reading:
    """The mesh that the timer is reading. seconds: used so far."""

    uid: int
    known: _KnownState
    parts: Generator[float | tuple[float, str], None, str]
    seconds: float = 0.0


_reading: _Reading | None = None


def _read_edited() -> float | None:
    """Timer: read edited meshes whose pause is over, a part at a time, and redraw the sidebars."""
    global _reading
    objects = {mesh_object.session_uid: mesh_object for mesh_object in bpy.data.objects}
    _forget_all_but(objects.keys())
    if _reading is not None and not _goes_on(_reading, objects):
        # The user is likely to continue editing.
        _reading.known.rest_until = time.perf_counter() + _QUIET_SECONDS
        _stop_reading()
    if _reading is None:
        # Leaving Edit Mode causes a redraw.
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
        _end_reading(_reading, end.value, start)
    except Exception as error:  # noqa: BLE001 - its traceback is logged
        _end_reading(_reading, _failed(_reading.known, error), start)
    else:
        _reading.seconds += time.perf_counter() - start
    return _PAUSE_SECONDS


def _end_reading(reading: _Reading, state: str, start: float) -> None:
    """start: of the last part, by the performance counter."""
    global _reading
    _note(reading.known, state, reading.seconds + time.perf_counter() - start, 1.0)
    _reading = None
    redraw_views()


def _goes_on(reading: _Reading, objects: dict[int, bpy.types.Object]) -> bool:
    """Whether the mesh being read is unchanged."""
    known = _known_states.get(reading.uid)
    return known is reading.known and not known.edited and _is_readable(objects[reading.uid], known)


def _waits(mesh_object: bpy.types.Object, known: _KnownState) -> bool:
    return known.edited and not known.unreadable and _is_readable(mesh_object, known)


@bpy.app.handlers.persistent
def _stop_reading(*_: Any) -> None:
    """Stop reading: an undo or another file removes the mesh being read."""
    global _reading
    if _reading is not None:
        _reading.known.edited = True
        _reading.parts.close()
        _reading = None


def _forget_all_but(uids: Collection[int]) -> None:
    for uid in _known_states.keys() - uids:
        del _known_states[uid]


def _is_readable(mesh_object: bpy.types.Object, known: _KnownState) -> bool:
    """Whether ``known`` belongs to the object's present mesh, and the mesh is not being edited."""
    return (
        mesh_object.type == "MESH"
        and mesh_object.data.session_uid == known.mesh_uid
        and not mesh_object.data.is_editmode
    )


@bpy.app.handlers.persistent
def _note_edits(_scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    """Record which meshes were edited. Changes nothing in the scene."""
    if not _known_states or not depsgraph.id_type_updated("MESH"):
        return
    edited = {update.id.original.session_uid for update in depsgraph.updates if isinstance(update.id, bpy.types.Mesh)}
    for known in _known_states.values():
        if known.mesh_uid in edited:
            known.edited, known.unreadable = True, False


handlers = {"depsgraph_update_post": _note_edits} | dict.fromkeys(("undo_pre", "redo_pre", "load_pre"), _stop_reading)


def unregister() -> None:
    if bpy.app.timers.is_registered(_read_edited):
        bpy.app.timers.unregister(_read_edited)
    _stop_reading()
    _known_states.clear()
