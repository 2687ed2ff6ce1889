# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a conversion's three objects (source, skinned mesh, rig) and its figures from any one of them."""

from dataclasses import dataclass

import bpy

from .conversion import REPORT_PROPERTY, SKINNED_SUFFIX


@dataclass(frozen=True)
class Result:
    """The objects of a conversion, None where renamed or deleted, and the figures as plain values."""

    source: bpy.types.Object | None
    mesh: bpy.types.Object | None
    rig: bpy.types.Object | None
    figures: dict


def result_of(object) -> Result | None:
    """The conversion that ``object`` is the source, the skinned mesh or the rig of. Cheap enough for a panel's draw."""
    if object is None:
        return None
    if REPORT_PROPERTY in object:
        carrier = object
    else:
        carrier = bpy.data.objects.get(f"{object.name}{SKINNED_SUFFIX}")
        if carrier is None or REPORT_PROPERTY not in carrier or carrier[REPORT_PROPERTY]["source"] != object.name:
            return None
    figures = carrier[REPORT_PROPERTY].to_dict()
    source, mesh, rig = (bpy.data.objects.get(figures[key]) for key in ("source", "object", "armature"))
    if carrier.type == "ARMATURE":
        rig = carrier
    else:
        mesh = carrier
        rig = next((modifier.object for modifier in carrier.modifiers if modifier.type == "ARMATURE"), rig)
    return Result(source, mesh, rig, figures)
