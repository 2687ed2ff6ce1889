# SPDX-License-Identifier: GPL-3.0-or-later
"""Which object is the active one, and which are hidden in the view layer, as the outliner's eye does it."""

from collections.abc import Iterator
from contextlib import contextmanager

import bpy

from .data_blocks import is_alive


def make_active(context, object) -> None:
    """The only selected object, too, where the view layer has it; nothing happens where it has not.

    The one that was active leaves its mode.
    """
    if object not in context.view_layer.objects.values():
        return
    if object != context.view_layer.objects.active:
        leave_mode(context)
    for ob in context.selected_objects:
        ob.select_set(False)
    object.select_set(True)
    context.view_layer.objects.active = object


def leave_mode(context) -> None:
    """Go to Object Mode."""
    active = context.view_layer.objects.active
    if active is not None and active.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")


@contextmanager
def shown_for_good(context, objects) -> Iterator[None]:
    """Show those of ``objects`` that the eye hides; where the work fails or is closed, it hides them again."""
    hidden = [ob for ob in objects if ob.hide_get(view_layer=context.view_layer)]
    for ob in hidden:
        set_hidden(context, ob, False)
    try:
        yield
    except BaseException:
        for ob in filter(is_alive, hidden):
            set_hidden(context, ob, True)
        raise


def set_hidden(context, object, hidden: bool) -> None:
    if object.name in context.view_layer.objects:
        object.hide_set(hidden)
