# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds and removes Blender's application handlers, given as callbacks by the names of their lists in bpy.app.handlers.

A module that Blender should call while the extension is registered has such callbacks as ``handlers``. They stay in the
lists all the time, or as those of the preview until an operator ends it: a callback that removes itself makes Blender,
which iterates over the list, skip the next one, perhaps another add-on's.
"""

from collections.abc import Callable, Mapping

import bpy

Handlers = Mapping[str, Callable]


def add_handlers(handlers: Handlers) -> None:
    for name, callback in handlers.items():
        getattr(bpy.app.handlers, name).append(callback)


def remove_handlers(handlers: Handlers) -> None:
    """Remove the callbacks that are still in the lists."""
    for name, callback in handlers.items():
        if callback in getattr(bpy.app.handlers, name):
            getattr(bpy.app.handlers, name).remove(callback)


def have_handlers(handlers: Handlers) -> bool:
    """Whether all the callbacks are in the lists, which other add-ons may have cleared."""
    return all(callback in getattr(bpy.app.handlers, name) for name, callback in handlers.items())
