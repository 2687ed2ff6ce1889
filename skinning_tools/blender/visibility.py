# SPDX-License-Identifier: GPL-3.0-or-later
"""The active object, and hiding objects in the view layer, like the outliner's eye."""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import bpy

from .data_blocks import is_alive
from .records import read_record, write_record


def make_active(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Make the object the active and only selected one, if the view layer has it.

    The previously active object leaves its mode.
    """
    if mesh_object not in context.view_layer.objects.values():
        return
    if mesh_object != context.view_layer.objects.active:
        leave_mode(context)
    for ob in context.selected_objects:
        ob.select_set(False)
    mesh_object.select_set(True)
    context.view_layer.objects.active = mesh_object


def leave_mode(context: bpy.types.Context) -> None:
    """Go to Object Mode."""
    active = context.view_layer.objects.active
    if active is not None and active.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")


@contextmanager
def shown_for_good(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Show the ``objects`` that the eye hides; hide them again if the block fails or is closed."""
    hidden = _unhidden(context, objects)
    try:
        yield
    except BaseException:
        _hide_again(context, hidden)
        raise


@contextmanager
def shown_meanwhile(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> Iterator[None]:
    """Context in which the ``objects`` that the eye hides are shown, so that Blender evaluates them."""
    hidden = _unhidden(context, objects)
    try:
        yield
    finally:
        _hide_again(context, hidden)


def _unhidden(context: bpy.types.Context, objects: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    """Show those of the ``objects`` that the eye hides; returns them."""
    hidden = [ob for ob in objects if ob.hide_get(view_layer=context.view_layer)]
    for ob in hidden:
        set_hidden(context, ob, False)
    return hidden


def _hide_again(context: bpy.types.Context, hidden: Iterable[bpy.types.Object]) -> None:
    for ob in filter(is_alive, hidden):
        set_hidden(context, ob, True)


# session_uid numbers are valid for this session only.
_SESSION = uuid.uuid4().hex


@dataclass(frozen=True)
class _Hidden:
    """Names of the hidden objects, of those that were selected, and of the one that was active, with its mode.
    stand_in: the object that became active instead, and whether it was selected before. uids: the session_uid of each
    object, which finds renamed objects in the session of that text."""

    objects: tuple[str, ...]
    selected: tuple[str, ...]
    active: str
    mode: str
    stand_in: str
    stand_in_selected: bool
    uids: tuple[int, ...] = ()
    session: str = ""


def hide_for(
    context: bpy.types.Context,
    owner: bpy.types.ID,
    key: str,
    objects: Iterable[bpy.types.Object],
    stand_in: bpy.types.Object,
) -> None:
    """Hide the visible ones of ``objects``, as something on the data-block ``owner`` is shown instead.

    Stores a note for ``show_again`` there under ``key``, even if nothing was visible: a file without a note is from an
    earlier version. stand_in: becomes active if the active object is hidden.
    """
    hidden = [ob for ob in objects if ob.visible_get()]
    active = context.view_layer.objects.active
    before: tuple[str, str, str, bool] = (
        (active.name, active.mode, stand_in.name, stand_in.select_get()) if active in hidden else ("", "", "", False)
    )
    selected = tuple(ob.name for ob in hidden if ob.select_get())
    names, uids = tuple(ob.name for ob in hidden), tuple(ob.session_uid for ob in hidden)
    write_record(owner, key, _Hidden(names, selected, *before, uids, _SESSION))
    if active in hidden:
        leave_mode(context)
        stand_in.select_set(True)
        context.view_layer.objects.active = stand_in
    for ob in hidden:
        set_hidden(context, ob, True)


def show_hidden(
    context: bpy.types.Context, owner: bpy.types.ID, key: str, related: Iterable[bpy.types.Object]
) -> dict[str, bpy.types.Object] | None:
    """Show the objects that ``hide_for`` has hidden, and remove the note; returns the objects by their former names,
    None if there is no note. related: objects to show as well if the note names one that is not found."""
    note = read_record(owner, key, _Hidden)
    owner.pop(key, None)
    if note is None:
        return None
    found = _found(context.view_layer.objects, note)
    for ob in found.values():
        ob.hide_set(False)
    if len(found) < len(note.objects):
        for ob in related:
            set_hidden(context, ob, False)
    return found


def _found(objects: bpy.types.bpy_prop_collection, note: _Hidden) -> dict[str, bpy.types.Object]:
    # A reopened file has other numbers.
    by_uid = {ob.session_uid: ob for ob in objects} if note.session == _SESSION else {}
    uids = note.uids if len(note.uids) == len(note.objects) else (0,) * len(note.objects)
    found = {name: by_uid.get(uid) or objects.get(name) for name, uid in zip(note.objects, uids, strict=True)}
    return {name: ob for name, ob in found.items() if ob is not None}


def show_again(context: bpy.types.Context, owner: bpy.types.ID, key: str, related: Iterable[bpy.types.Object]) -> bool:
    """As ``show_hidden``, and restore the active object and mode, unless the user has changed them since. False if
    there is no note."""
    note, objects = read_record(owner, key, _Hidden), context.view_layer.objects
    hidden = show_hidden(context, owner, key, related)
    if note is None or hidden is None:
        return False
    for name in note.selected:
        if name in hidden:
            hidden[name].select_set(True)
    active, stand_in = hidden.get(note.active), objects.active
    if active is not None and active.visible_get() and stand_in is not None and stand_in.name == note.stand_in:
        leave_mode(context)
        stand_in.select_set(note.stand_in_selected)
        objects.active = active
        if active.mode != note.mode:
            bpy.ops.object.mode_set(mode=note.mode)
    return True


def set_hidden(context: bpy.types.Context, ob: bpy.types.Object, hidden: bool) -> None:
    if ob.name in context.view_layer.objects:
        ob.hide_set(hidden)
