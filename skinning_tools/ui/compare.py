# SPDX-License-Identifier: GPL-3.0-or-later
"""Source and result in the same place: which of them is shown. For every feature that makes a result beside its
source."""

from collections.abc import Iterable, Sequence

import bpy

from ..blender.visibility import make_active, set_hidden
from .drawing import named_row

SHOWN = (
    ("OTHER", "Other", "The source if the result is shown, else the result"),
    ("SOURCE", "Source", "Only the source"),
    ("RESULT", "Result", "Only the result"),
    ("BOTH", "Both", "Source and result in the same place"),
)
# A source and the mesh made from it, None if renamed or deleted.
Pair = tuple[bpy.types.Object | None, bpy.types.Object | None]


def show_only(context: bpy.types.Context, pairs: Sequence[Pair], show: str, others: Iterable[bpy.types.Object]) -> None:
    """Show the sources or the results of ``pairs`` as the entry ``show`` of SHOWN says, and hide ``others``.

    What is shown in place of the active object becomes active.
    """
    sources, meshes = (_existing(each) for each in zip(*pairs, strict=True))
    if show == "OTHER":
        show = "SOURCE" if any(mesh.visible_get() for mesh in meshes) else "RESULT"
    active = context.view_layer.objects.active
    if show == "SOURCE" and active in meshes:
        make_active(context, next(source for source, mesh in pairs if mesh == active) or active)
    if show == "RESULT" and active in sources:
        make_active(context, next(mesh for source, mesh in pairs if source == active) or active)
    for source in sources:
        set_hidden(context, source, show == "RESULT")
    for mesh in meshes:
        set_hidden(context, mesh, show == "SOURCE")
    for other in others:
        set_hidden(context, other, True)


def draw_shown(layout: bpy.types.UILayout, operator: str, pairs: Sequence[Pair]) -> None:
    """Draw the buttons that show source, result or both; ``operator`` has SHOWN as its property ``show``."""
    shown = shown_of(pairs)
    row = named_row(layout, "Show")
    for show, label in (("SOURCE", "Source"), ("RESULT", "Result"), ("BOTH", "Both")):
        row.operator(operator, text=label, depress=shown == show).show = show


def shown_of(pairs: Sequence[Pair]) -> str:
    """The entry of SHOWN that matches the view layer, "" if none does."""
    sources, meshes = (any(ob.visible_get() for ob in _existing(each)) for each in zip(*pairs, strict=True))
    return {(True, True): "BOTH", (True, False): "SOURCE", (False, True): "RESULT"}.get((sources, meshes), "")


def _existing(objects: Iterable[bpy.types.Object | None]) -> list[bpy.types.Object]:
    return [ob for ob in objects if ob is not None]
