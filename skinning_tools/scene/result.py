# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a conversion's three objects (source, skinned mesh, rig) and its figures from any one of them."""

from dataclasses import dataclass

import bpy

from .conversion import REPORT_PROPERTY
from .result_names import with_ending


@dataclass(frozen=True)
class Result:
    """The objects of a conversion, None where renamed or deleted, and the figures as plain values."""

    source: bpy.types.Object | None
    mesh: bpy.types.Object | None
    rig: bpy.types.Object | None
    figures: dict


def result_of(object) -> Result | None:
    """The conversion that ``object`` is the skinned mesh or the rig of, else the last that it is the source of.

    Cheap enough for a panel's draw.
    """
    if object is None:
        return None
    carrier = object if REPORT_PROPERTY in object else _last_mesh_made_from(object)
    if carrier is None:
        return None
    figures = carrier[REPORT_PROPERTY].to_dict()
    source, mesh, rig = (bpy.data.objects.get(figures[key]) for key in ("source", "object", "armature"))
    if carrier.type == "ARMATURE":
        rig = carrier
    else:
        mesh = carrier
        rig = next((modifier.object for modifier in carrier.modifiers if modifier.type == "ARMATURE"), rig)
    return Result(source, mesh, rig, figures)


def _last_mesh_made_from(source) -> bpy.types.Object | None:
    """The skinned mesh with the highest number."""
    if source.type != "MESH":
        return None
    first = with_ending(source.name, "skinned")
    # One pass over the names, which is what a single look-up by name takes too.
    for name in sorted((name for name in bpy.data.objects.keys() if name.startswith(first)), reverse=True):  # noqa: SIM118
        figures = bpy.data.objects[name].get(REPORT_PROPERTY)
        # A duplicate has the figures of the original, and its name in them.
        if figures is not None and (figures["source"], figures["object"]) == (source.name, name):
            return bpy.data.objects[name]
    return None
