# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking through all objects of a file, which the panels and polls of a redraw do once, and together.

A scene may have thousands of objects, and a redraw asks dozens of times which of them an armature deforms, or which are
posed copies. So what was found is remembered, as numbers and never as objects, until Blender says that something has
changed. Only what merely shows something shares it (``sharing``): operators look anew when they work, and so does all
where Blender would not tell, as in background mode.
"""

import functools
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

import bpy
import numpy as np

from .app_handlers import add_handlers, remove_handlers

# How many calls that share what they find are under way, one inside the other.
_depth = 0
# What the outermost of them has found; objects live no longer than that.
_kept: dict[Hashable, object] = {}


@dataclass
class _Memory:
    """What earlier calls have found among so many objects: by index and key, the places in bpy.data.objects with the
    session-wide numbers of what was there; and the places of names, -1 for those that there are not."""

    object_count: int = 0
    places: dict[str, int] = field(default_factory=dict)
    tables: dict["Index", dict[Hashable, list[tuple[int, int]]]] = field(default_factory=dict)


_memory = _Memory()


@contextmanager
def sharing() -> Iterator[None]:
    """For what changes nothing, as a panel's draw and a poll: what is looked up inside is looked up once."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _kept.clear()


def shares(method):
    """Decorator of a method ``draw`` or ``poll`` of a panel or an operator: all inside is ``sharing``."""

    @functools.wraps(method)
    def shared(self, context):
        with sharing():
            return method(self, context)

    return shared


class Index:
    """The objects of the file, or those of some types, by what ``key`` says of each: None for those that do not count.

    A key is a number or a text, such as the session_uid of another object: data-blocks do not outlive an undo.
    """

    def __init__(self, key: Callable[[bpy.types.Object], Hashable], *types: str):
        self._key, self._types = key, types

    def at(
        self, key: Hashable, within: bpy.types.Scene | bpy.types.ViewLayer | None = None, most: int | None = None
    ) -> list[bpy.types.Object]:
        """The objects with the key by their names, those of a scene or view layer ``within``, no more than ``most``."""
        if not _depth:
            return list(islice((ob for ob in bpy.data.objects if self._fits(ob, key, within)), most))
        found = self._confirmed(key, within, most)
        if found is None:
            _forget()
            found = self._confirmed(key, within, most)
            assert found is not None
        return found

    def places(self, key: Hashable) -> list[int]:
        """Where in bpy.data.objects the objects with the key are."""
        with sharing():
            return [place for place, _ in self._table().get(key, ())]

    def _fits(self, object, key: Hashable, within) -> bool:
        if self._types and object.type not in self._types:
            return False
        return self._key(object) == key and (within is None or is_in(within, object))

    def _confirmed(self, key: Hashable, within, most: int | None) -> list | None:
        """As ``at``; None where others stand in the remembered places by now."""
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
    """As ``bpy.data.objects.get``, which goes through all names, too. library: only one that is linked from there."""
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


def users_of(data: bpy.types.ID) -> list[bpy.types.Object]:
    """The objects that show a mesh, or pose an armature's bones."""
    return _by_data.at(data.session_uid)


def armatures_in(place: bpy.types.Scene | bpy.types.ViewLayer, most: int | None = None) -> list[bpy.types.Object]:
    """The armature objects of a scene or view layer."""
    return _armatures.at(True, place, most)


def selected_in(view_layer: bpy.types.ViewLayer) -> list[bpy.types.Object]:
    return kept(("selected", view_layer.as_pointer()), lambda: view_layer.objects.selected[:])


def is_in(place: bpy.types.Scene | bpy.types.ViewLayer, object: bpy.types.Object) -> bool:
    """Whether a scene or a view layer has the object, shown or not."""
    layers = place.view_layers if isinstance(place, bpy.types.Scene) else (place,)
    if any(object.visible_get(view_layer=layer) for layer in layers):
        return True
    return object in kept(place.as_pointer(), lambda: frozenset(place.objects))


def is_in_some_scene(object: bpy.types.Object) -> bool:
    return any(is_in(scene, object) for scene in bpy.data.scenes)


def kept(key: Hashable, find: Callable):
    """What ``find`` returns, which is called once while sharing."""
    if not _depth:
        return find()
    if key not in _kept:
        _kept[key] = find()
    return _kept[key]


def _places_of(types: tuple[str, ...]) -> list[int]:
    """Where in bpy.data.objects those of the types are: all of them are asked at once."""
    found = np.empty(len(_all_objects()), np.int32)
    bpy.data.objects.foreach_get("type", found)
    items = bpy.types.Object.bl_rna.properties["type"].enum_items
    return np.flatnonzero(np.isin(found, [items[each].value for each in types])).tolist()


def _all_objects() -> list[bpy.types.Object]:
    return kept("objects", lambda: bpy.data.objects[:])


def _is_told_of_changes() -> bool:
    """Whether what is found may be remembered: somebody may have cleared the lists of handlers."""
    return _has_redraws() and all(callback in handlers for handlers, callback in _handlers())


def _has_redraws() -> bool:
    return not bpy.app.background


@bpy.app.handlers.persistent
def _forget(*_) -> None:
    """Anything has changed. Costs next to nothing, and looks at nothing."""
    _memory.tables.clear()
    _memory.places.clear()


def _handlers():
    handlers = bpy.app.handlers
    return tuple(
        (each, _forget)
        for each in (handlers.depsgraph_update_post, handlers.undo_post, handlers.redo_post, handlers.load_post)
    )


def register() -> None:
    add_handlers(_handlers())


def unregister() -> None:
    remove_handlers(_handlers())
    _forget()
