# SPDX-License-Identifier: GPL-3.0-or-later
"""Which object is the active one, and which are hidden in the view layer, as the outliner's eye does it."""


def make_active(context, object) -> None:
    """The only selected object, too, where the view layer has it; nothing happens where it has not."""
    if object.name not in context.view_layer.objects:
        return
    for ob in context.selected_objects:
        ob.select_set(False)
    object.select_set(True)
    context.view_layer.objects.active = object


def set_hidden(context, object, hidden: bool) -> None:
    if object.name in context.view_layer.objects:
        object.hide_set(hidden)
