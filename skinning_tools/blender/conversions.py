# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a conversion's objects (sources, skinned meshes, rig) from any one of them, or all conversions of a file."""

from dataclasses import dataclass

import bpy

from . import look_ups
from .conversion_figures import REPORT_PROPERTY, figures_of, has_figures
from .data_blocks import with_ending


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


def result_of(object: bpy.types.Object | None) -> Result | None:
    """The conversion that ``object`` is a skinned mesh or the rig of, else the last that it is a source of.

    Cheap enough for a panel's draw.
    """
    if object is None:
        return None
    carrier = object if has_figures(object) else _last_mesh_made_from(object)
    if carrier is None:
        return None
    figures = figures_of(carrier)
    assert figures is not None
    source, mesh = source_named(figures, carrier), _named(figures["object"], carrier)
    rig = _named(figures["armature"], carrier, "ARMATURE")
    if carrier.type == "ARMATURE":
        rig = carrier
    else:
        mesh = carrier
        rig = rig_of(carrier) or rig
    # The carrier itself may have another name by now.
    others = [part for part in figures.get("parts", ()) if part["object"] != figures["object"]]
    parts = (
        ResultPart(source, mesh),
        *(ResultPart(source_named(part, carrier), _named(part["object"], carrier)) for part in others),
    )
    return Result(source, mesh, rig, figures, parts)


def stands_for_conversion(object: bpy.types.Object) -> bool:
    """Whether it is the one object by which a list shows a conversion: its rig, or its skinned mesh where that is gone.

    Cheap enough to ask of all objects in a panel's draw.
    """
    if not has_figures(object):
        return False
    if object.type == "ARMATURE":
        return True
    rig = rig_of(object)
    return rig is None or not has_figures(rig)


_standing = look_ups.Index(lambda ob: stands_for_conversion(ob) or None, "MESH", "ARMATURE")


def conversions() -> list[bpy.types.Object]:
    """The objects of the file that stand for a conversion each. Cheap enough for a panel."""
    return _standing.at(True)


def places_of_conversions() -> list[int]:
    """Where ``conversions`` are in bpy.data.objects."""
    return _standing.places(True)


def index_of_conversion(object: bpy.types.Object | None) -> int:
    """Where in bpy.data.objects the conversion of ``object`` stands, -1 where it is not part of one."""
    result = result_of(object)
    carrier = (result.rig or result.mesh) if result is not None else None
    return bpy.data.objects.find(carrier.name) if carrier is not None else -1


def rig_of(mesh_object: bpy.types.Object) -> bpy.types.Object | None:
    """What its armature modifier follows."""
    return next((modifier.object for modifier in mesh_object.modifiers if modifier.type == "ARMATURE"), None)


def _last_mesh_made_from(source) -> bpy.types.Object | None:
    """The skinned mesh with the highest number."""
    if source.type != "MESH":
        return None
    first = with_ending(source.name, "skinned")
    made = [ob for ob in _by_source.at(source.name) if ob.name.startswith(first) and _is_source(source, ob)]
    return max(made, key=lambda ob: ob.name, default=None)


def _source_of_mesh(object) -> str | None:
    """The name of what a skinned mesh was made from."""
    if not has_figures(object):
        return None
    figures = object[REPORT_PROPERTY]
    # A duplicate has the figures of the original, and its name in them.
    return figures["source"] if figures["object"] == object.name else None


_by_source = look_ups.Index(_source_of_mesh, "MESH")


def _is_source(object, made) -> bool:
    return not _is_another(object, made[REPORT_PROPERTY].get("source_data"))


def source_named(part: dict, carrier: bpy.types.Object) -> bpy.types.Object | None:
    """The source that a conversion's figures, or a part of them, name; None where another object has its name now."""
    found = _named(part["source"], carrier)
    return None if found is None or _is_another(found, part.get("source_data")) else found


def _is_another(object, data_name: str | None) -> bool:
    """Whether the source that had a mesh of that name is there still, under another name than ``object`` has.

    Earlier versions have noted no name. One that is imported again in place of the old one is the source, as is one
    that was edited or has another mesh by now.
    """
    if data_name is None or object.data.name == data_name:
        return False
    key = (data_name, object.library.filepath) if object.library is not None else data_name
    mesh = bpy.data.meshes.get(key)
    return mesh is not None and bool(look_ups.users_of(mesh))


def _named(name: str, carrier, kind: str = "MESH") -> bpy.types.Object | None:
    """The object of that name, of the same file as ``carrier``, or else any; another thing may have got it since."""
    found = look_ups.named(name, carrier.library) or look_ups.named(name)
    return found if found is not None and found.type == kind else None
