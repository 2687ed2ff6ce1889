# SPDX-License-Identifier: GPL-3.0-or-later
"""Searches all objects of a file once for all panels and polls of a redraw.

A scene may have thousands of objects, and a redraw asks dozens of times which of them an armature deforms, or which are
posed copies. So the results are remembered, as numbers and never as objects, until Blender reports a change. Only code
that displays something shares them (``sharing``): operators search again when they work, and so does everything if
Blender reports no changes, as in background mode.
"""

import functools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import bpy
import numpy as np

from .app_handlers import have_handlers

# The number of nested calls that share results.
_depth = 0
# The results of the outermost call; references to objects are kept no longer.
_kept: dict[Hashable, Any] = {}


@dataclass
class _Memory:
    """The results of earlier calls for a number of objects: by index and key, the positions in bpy.data.objects with
    the session_uid of each object; and the positions of names, -1 for missing ones."""

    object_count: int = 0
    places: dict[str, int] = field(default_factory=dict)
    tables: dict["Index", dict[Hashable, list[tuple[int, int]]]] = field(default_factory=dict)


_memory = _Memory()


@contextmanager
def sharing() -> Iterator[None]:
    """Share look-ups inside the block, which must change nothing, like a panel's draw and a poll."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _kept.clear()


def shares(method: Callable) -> Callable:
    """Decorator for a method ``draw`` or ``poll`` of a panel or an operator: runs it while ``sharing``."""

    @functools.wraps(method)
    def shared(self: Any, context: bpy.types.Context) -> Any:
        with sharing():
            return method(self, context)

    return shared


class Index:
    """The objects of the file, or of some types, by the ``key`` of each: None for objects that do not count.

    A key is a number or a text, such as the session_uid of another object: data-blocks do not outlive an undo.
    """

    def __init__(self, key: Callable[[bpy.types.Object], Hashable], *types: str):
        self._key, self._types = key, types

    def at(
        self, key: Hashable, within: bpy.types.Scene | bpy.types.ViewLayer | None = None, most: int | None = None
    ) -> list[bpy.types.Object]:
        """The objects with the key in order of their names, only in a scene or view layer ``within``, at most
        ``most``."""
        if not _depth:
            return list(islice((ob for ob in bpy.data.objects if self._fits(ob, key, within)), most))
        found = self._confirmed(key, within, most)
        if found is None:
            _forget()
            found = self._confirmed(key, within, most)
            assert found is not None
        return found

    def places(self, key: Hashable) -> list[int]:
        """The positions of the objects with the key in bpy.data.objects."""
        with sharing():
            return [place for place, _ in self._table().get(key, ())]

    def _fits(self, ob: bpy.types.Object, key: Hashable, within: bpy.types.Scene | bpy.types.ViewLayer | None) -> bool:
        if self._types and ob.type not in self._types:
            return False
        return self._key(ob) == key and (within is None or is_in(within, ob))

    def _confirmed(
        self, key: Hashable, within: bpy.types.Scene | bpy.types.ViewLayer | None, most: int | None
    ) -> list | None:
        """As ``at``; None if the remembered positions now have other objects."""
        objects, found = _all_objects(), []
        for place, uid in self._table().get(key, ()):
            if objects[place].session_uid != uid:
                return None
            if self._fits(objects[place], key, within):
                found.append(objects[place])
                if len(found) == most:
                    break
        return found

    def _table(self) -> dict[Hashable, list[tuple[int, int]]]:
        if not _is_told_of_changes():
            return kept(self, self._tabulated)
        count = len(_all_objects())
        if _memory.object_count != count:
            _forget()
            _memory.object_count = count
        if self not in _memory.tables:
            _memory.tables[self] = self._tabulated()
        return _memory.tables[self]

    def _tabulated(self) -> dict[Hashable, list[tuple[int, int]]]:
        table: dict[Hashable, list[tuple[int, int]]] = {}
        objects = _all_objects()
        for place in _places_of(self._types) if self._types else range(len(objects)):
            key = self._key(objects[place])
            if key is not None:
                table.setdefault(key, []).append((place, objects[place].session_uid))
        return table


_by_data = Index(lambda ob: ob.data.session_uid if ob.data is not None else None)
_armatures = Index(lambda ob: True, "ARMATURE")


def named(name: str, library: bpy.types.Library | None = None) -> bpy.types.Object | None:
    """As ``bpy.data.objects.get``, which also searches all names. library: find only objects linked from it."""
    if library is not None:
        path = library.filepath
        return kept(("named", name, path), lambda: bpy.data.objects.get((name, path)))
    if not _depth or not _is_told_of_changes():
        return kept(("named", name), lambda: bpy.data.objects.get(name))
    place = _memory.places.get(name, -1)
    objects = _all_objects()
    if not (0 <= place < len(objects) and objects[place].name == name):
        place = _memory.places[name] = bpy.data.objects.find(name)
    return objects[place] if place >= 0 else None


def named_in(name: str, library: bpy.types.Library | None) -> bpy.types.Object | None:
    """The object of that name that is linked from the library, the file's own for None."""
    path = library.filepath if library is not None else ""
    return kept(("named", name, path), lambda: bpy.data.objects.get((name, path or None)))


def users_of(data: bpy.types.ID) -> list[bpy.types.Object]:
    """The objects that use this mesh or armature data."""
    return _by_data.at(data.session_uid)


def armatures_in(place: bpy.types.Scene | bpy.types.ViewLayer, most: int | None = None) -> list[bpy.types.Object]:
    """The armature objects of a scene or view layer."""
    return _armatures.at(True, place, most)


def selected_in(view_layer: bpy.types.ViewLayer) -> list[bpy.types.Object]:
    return kept(("selected", view_layer.as_pointer()), lambda: view_layer.objects.selected[:])


def is_in(place: bpy.types.Scene | bpy.types.ViewLayer, ob: bpy.types.Object) -> bool:
    """Whether a scene or a view layer contains the object, shown or not."""
    layers = place.view_layers if isinstance(place, bpy.types.Scene) else (place,)
    if any(ob.visible_get(view_layer=layer) for layer in layers):
        return True
    return ob in kept(place.as_pointer(), lambda: frozenset(place.objects))


def is_in_some_scene(ob: bpy.types.Object) -> bool:
    return any(is_in(scene, ob) for scene in bpy.data.scenes)


def kept(key: Hashable, find: Callable) -> Any:
    """The result of ``find``, which is called once while sharing."""
    if not _depth:
        return find()
    if key not in _kept:
        _kept[key] = find()
    return _kept[key]


def _places_of(types: tuple[str, ...]) -> list[int]:
    """The positions of the objects of the types in bpy.data.objects, from one bulk query."""
    found = np.empty(len(_all_objects()), np.int32)
    bpy.data.objects.foreach_get("type", found)
    items = bpy.types.Object.bl_rna.properties["type"].enum_items
    return np.flatnonzero(np.isin(found, [items[each].value for each in types])).tolist()


def _all_objects() -> list[bpy.types.Object]:
    return kept("objects", lambda: bpy.data.objects[:])


def _is_told_of_changes() -> bool:
    """Whether results may be remembered: the handlers may have been cleared."""
    return _has_redraws() and have_handlers(handlers)


def _has_redraws() -> bool:
    return not bpy.app.background


@bpy.app.handlers.persistent
def _forget(*_: Any) -> None:
    """Forget all results after any change. Costs next to nothing."""
    _memory.tables.clear()
    _memory.places.clear()


handlers = dict.fromkeys(("depsgraph_update_post", "undo_post", "redo_post", "load_post"), _forget)


def unregister() -> None:
    _forget()
