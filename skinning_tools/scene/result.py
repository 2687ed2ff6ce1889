# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a conversion's objects (sources, skinned meshes, rig) and its figures from any one of them."""

from dataclasses import dataclass

import bpy

from .conversion import REPORT_PROPERTY
from .result_names import with_ending


@dataclass(frozen=True)
class ResultPart:
    """A source and the skinned mesh that was made from it, None where renamed or deleted."""

    source: bpy.types.Object | None
    mesh: bpy.types.Object | None


@dataclass(frozen=True)
class Result:
    """The objects of a conversion, None where renamed or deleted, and the figures as plain values.

    source, mesh: what the result was asked for by, the active one's where that was the rig. parts: all of them, where
    several were converted together.
    """

    source: bpy.types.Object | None
    mesh: bpy.types.Object | None
    rig: bpy.types.Object | None
    figures: dict
    parts: tuple[ResultPart, ...]

    @property
    def sources(self) -> list[bpy.types.Object]:
        """All sources that are there."""
        return [part.source for part in self.parts if part.source is not None]

    @property
    def meshes(self) -> list[bpy.types.Object]:
        """All skinned meshes that are there."""
        return [part.mesh for part in self.parts if part.mesh is not None]


def result_of(object) -> Result | None:
    """The conversion that ``object`` is a skinned mesh or the rig of, else the last that it is a source of.

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
    # The carrier itself may have another name by now.
    others = [part for part in figures.get("parts", ()) if part["object"] != figures["object"]]
    parts = (
        ResultPart(source, mesh),
        *(ResultPart(*(bpy.data.objects.get(part[key]) for key in ("source", "object"))) for part in others),
    )
    return Result(source, mesh, rig, figures, parts)


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
