# SPDX-License-Identifier: GPL-3.0-or-later
"""Callbacks on Blender's lists of handlers, as pairs of a list and a callback."""


def add_handlers(pairs) -> None:
    for handlers, callback in pairs:
        handlers.append(callback)


def remove_handlers(pairs) -> None:
    """Others may have cleared the lists. Not to be called by a callback for itself: while Blender goes through a list,
    it would pass over the next one, which may be another add-on's."""
    for handlers, callback in pairs:
        if callback in handlers:
            handlers.remove(callback)
