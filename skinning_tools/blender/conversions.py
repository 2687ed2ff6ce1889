# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a conversion's objects (sources, skinned meshes, rig) from any one of them, or all conversions of a file."""

from dataclasses import dataclass

import bpy

from . import look_ups
from .conversion_figures import REPORT_PROPERTY, figures_of, has_figures
from .data_blocks import with_ending
from .result_objects import name_for_results


@dataclass(frozen=True)
class ResultPart:
    """A source and the skinned mesh made from it, None if renamed or deleted. Clips share a mesh."""

    source: bpy.types.Object | None
    mesh: bpy.types.Object | None


@dataclass(frozen=True)
class Result:
    """The objects of a conversion, None if renamed or deleted, and the figures as plain values.

    source, mesh: of the requested part, or of the active part for the rig. parts: all sources with their meshes.
    """

    source: bpy.types.Object | None
    mesh: bpy.types.Object | None
    rig: bpy.types.Object | None
    figures: dict
    parts: tuple[ResultPart, ...]

    @property
    def sources(self) -> list[bpy.types.Object]:
        """All existing sources."""
        return [part.source for part in self.parts if part.source is not None]

    @property
    def meshes(self) -> list[bpy.types.Object]:
        """All existing skinned meshes."""
        return list(dict.fromkeys(part.mesh for part in self.parts if part.mesh is not None))


def result_of(ob: bpy.types.Object | None) -> Result | None:
    """The conversion with ``ob`` as a skinned mesh or the rig, else the last with it as a source.

    Cheap enough for a panel's draw.
    """
    if ob is None:
        return None
    carrier = ob if has_figures(ob) else _last_mesh_made_from(ob)
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
    # The carrier itself may have been renamed.
    others = [part for part in figures.get("parts", ()) if part["object"] != figures["object"]]
    parts = (
        ResultPart(source, mesh),
        *(ResultPart(source_named(part, carrier), _named(part["object"], carrier)) for part in others),
        *(ResultPart(source_named(clip, carrier), mesh) for clip in figures.get("clips", ())[1:]),
    )
    return Result(source, mesh, rig, figures, parts)


def stands_for_conversion(ob: bpy.types.Object) -> bool:
    """Whether the object represents a conversion in a list: its rig, or its skinned mesh if the rig is gone.

    Cheap enough for all objects in a panel's draw.
    """
    if not has_figures(ob):
        return False
    if ob.type == "ARMATURE":
        return True
    rig = rig_of(ob)
    return rig is None or not has_figures(rig)


_standing = look_ups.Index(lambda ob: stands_for_conversion(ob) or None, "MESH", "ARMATURE")


def conversions() -> list[bpy.types.Object]:
    """The objects in the file that each represent a conversion. Cheap enough for a panel."""
    return _standing.at(True)


def places_of_conversions() -> list[int]:
    """The indices of ``conversions`` in bpy.data.objects."""
    return _standing.places(True)


def index_of_conversion(ob: bpy.types.Object | None) -> int:
    """The index in bpy.data.objects of the object that represents the conversion of ``ob``, -1 if it has none."""
    result = result_of(ob)
    carrier = (result.rig or result.mesh) if result is not None else None
    return bpy.data.objects.find(carrier.name) if carrier is not None else -1


def rig_of(mesh_object: bpy.types.Object) -> bpy.types.Object | None:
    """The armature of its Armature modifier."""
    return next((modifier.object for modifier in mesh_object.modifiers if modifier.type == "ARMATURE"), None)


def _last_mesh_made_from(source: bpy.types.Object) -> bpy.types.Object | None:
    """The skinned mesh with the highest number; one with the name that the user gave to what it replaced comes
    after."""
    if source.type != "MESH":
        return None
    first = with_ending(name_for_results(source), "skinned")
    made = [ob for ob in _by_source.at(source.name) if _is_source(source, ob)]
    return max(made, key=lambda ob: (ob.name.startswith(first), ob.name), default=None)


def _source_of_mesh(ob: bpy.types.Object) -> str | None:
    """The name of the source of a skinned mesh."""
    if not has_figures(ob):
        return None
    figures = ob[REPORT_PROPERTY]
    # A duplicate has the figures of the original, which contain its name.
    return figures["source"] if figures["object"] == ob.name else None


_by_source = look_ups.Index(_source_of_mesh, "MESH")


def _is_source(ob: bpy.types.Object, made: bpy.types.Object) -> bool:
    return not _is_another(ob, made[REPORT_PROPERTY].get("source_data"))


def source_named(part: dict, carrier: bpy.types.Object) -> bpy.types.Object | None:
    """The source named by the figures of a conversion or a part; None if another object has its name now."""
    found = _named(part["source"], carrier)
    return None if found is None or _is_another(found, part.get("source_data")) else found


def _is_another(ob: bpy.types.Object, data_name: str | None) -> bool:
    """Whether the source, which had a mesh of that name, still exists under another name than that of ``ob``.

    Earlier versions stored no name. A reimported source counts as the source, as does one that was edited or has
    another mesh.
    """
    if data_name is None or ob.data.name == data_name:
        return False
    key = (data_name, ob.library.filepath) if ob.library is not None else data_name
    mesh = bpy.data.meshes.get(key)
    return mesh is not None and bool(look_ups.users_of(mesh))


def _named(name: str, carrier: bpy.types.Object, kind: str = "MESH") -> bpy.types.Object | None:
    """The object of that name and kind, preferably from the same file as ``carrier``; None if there is none."""
    found = look_ups.named(name, carrier.library) or look_ups.named(name)
    return found if found is not None and found.type == kind else None
