# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds and removes Blender's application handlers, given as pairs of a list and a callback."""

from collections.abc import Callable, Iterable


def add_handlers(pairs: Iterable[tuple[list, Callable]]) -> None:
    for handlers, callback in pairs:
        handlers.append(callback)


def remove_handlers(pairs: Iterable[tuple[list, Callable]]) -> None:
    """Remove the callbacks that are still in the lists. A callback must not remove itself: Blender, which iterates over
    the list, would skip the next one, perhaps another add-on's."""
    for handlers, callback in pairs:
        if callback in handlers:
            handlers.remove(callback)
