# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a conversion's objects (sources, skinned meshes, rig) and its figures from any one of them, or all of a file."""

from collections.abc import Iterable
from dataclasses import dataclass

import bpy
from bpy.app.translations import pgettext_rpt as rpt_

from ...core.errors import BadScene
from .. import look_ups
from ..error_display import HIDDEN
from ..object_checks import object_label
from ..visibility import show_hidden
from .conversion import REPORT_PROPERTY
from .conversion_figures import figures_of, has_figures
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
    carrier = object if has_figures(object) else _last_mesh_made_from(object)
    if carrier is None:
        return None
    figures = figures_of(carrier)
    source, mesh = _source_named(figures, carrier), _named(figures["object"], carrier)
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
        *(ResultPart(_source_named(part, carrier), _named(part["object"], carrier)) for part in others),
    )
    return Result(source, mesh, rig, figures, parts)


def stands_for_conversion(object) -> bool:
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


def index_of_conversion(object) -> int:
    """Where in bpy.data.objects the conversion of ``object`` stands, -1 where it is not part of one."""
    result = result_of(object)
    carrier = result and (result.rig or result.mesh)
    return bpy.data.objects.find(carrier.name) if carrier is not None else -1


def other_results(result: Result) -> list[Result]:
    """The other conversions of its sources, which lie in the same place."""
    sources, meshes = set(result.sources), set(result.meshes)
    found = [result_of(ob) for ob in conversions()]
    return [other for other in found if sources & set(other.sources) and not meshes & set(other.meshes)]


def in_its_place(result: Result) -> list[bpy.types.Object]:
    """What lies where its meshes are, so that one shines through the other: its sources, and their other results."""
    made = (ob for other in other_results(result) for ob in objects_made(other))
    return [*result.sources, *(ob for ob in made if ob.type == "MESH")]


def sources_to_convert(result: Result) -> list[bpy.types.Object]:
    """The objects that the result was made from, the one that gave the armature its name first.

    Raises BadScene where one of them is gone or has another name by now.
    """
    figures = (result.rig and figures_of(result.rig)) or result.figures
    carrier = result.mesh or result.rig
    found = {part["source"]: _source_named(part, carrier) for part in (figures, *result.figures.get("parts", ()))}
    missing = [name for name, source in found.items() if source is None]
    if missing:
        raise BadScene(
            f'The source "{missing[0]}" of this conversion was renamed or deleted. Give it its name again, or make the '
            "mesh that moves the active object and convert that"
        )
    return list(found.values())


def objects_made(result: Result) -> list[bpy.types.Object]:
    """The objects that the conversion has made, and that go with it."""
    rig = result.rig
    if rig is None or REPORT_PROPERTY not in rig:
        return [ob for ob in result.meshes if REPORT_PROPERTY in ob]
    # By what moves them, not by name: a duplicate of the rig has its own meshes.
    return [
        *(ob for ob in bpy.data.objects if REPORT_PROPERTY in ob and ob.type == "MESH" and rig_of(ob) == rig),
        rig,
    ]


def notes_on_deleting(results: Iterable[Result]) -> list[str]:
    """What to say, before these are deleted, of each other conversion that was made from what goes."""
    results = list(results)
    gone = [ob for result in results for ob in objects_made(result)]
    text = rpt_("{other} was made from {source}, which is deleted: it stays, and cannot be converted again")
    return [
        text.format(other=ob.name, source=", ".join(source.name for source in sources))
        for ob in conversions()
        if ob not in gone and (sources := [source for source in result_of(ob).sources if source in gone])
    ]


def check_deletable(result: Result) -> None:
    """Raises BadScene where the result is linked from another file."""
    for ob in objects_made(result):
        if ob.library is not None or ob.override_library is not None:
            raise BadScene(f"The {object_label(ob)} is linked from another file. Delete the conversion there")


def delete_result(context, result: Result) -> list[str]:
    """Remove all that the conversion has made and nothing else uses; returns the names of the objects.

    Never a source. What its error colors have hidden is shown again. What the user has put into its collection, or has
    given its data to, stays. Raises BadScene where the result is linked from another file.
    """
    check_deletable(result)
    objects = objects_made(result)
    names, others = [ob.name for ob in objects], in_its_place(result)
    for ob in objects:
        if ob.type == "MESH":
            show_hidden(context, ob.data, HIDDEN, others)
    homes = {home for ob in objects for home in ob.users_collection}
    data = dict.fromkeys(ob.data for ob in objects)
    motions = dict.fromkeys(block.animation_data.action for ob in objects for block in _animated(ob))
    bpy.data.batch_remove(objects)
    # Shape keys go with their mesh, and only then is their action free.
    for blocks in (data, motions):
        bpy.data.batch_remove([block for block in blocks if block is not None and block.users == 0])
    ours = {result.figures.get("collection"), with_ending(result.figures["source"], "skinning")} - {None}
    empty = [home for home in homes if home.name in ours and not home.objects and not home.children]
    bpy.data.batch_remove([home for home in empty if home in bpy.data.collections.values()])
    return names


def frame_errors(figures: dict) -> tuple[list, list, list]:
    """Frame numbers, their E_RMS and their largest errors; empty for figures of an earlier version."""
    errors, largest = figures.get("frame_e_rms", []), figures.get("frame_max_error", [])
    if len(errors) != len(largest):
        return [], [], []
    start, step = figures["frame_start"], figures["frame_step"]
    return [start + step * row for row in range(len(errors))], list(errors), list(largest)


def worst_frame(figures: dict) -> float | None:
    """Where the largest distance in the world is; in files of older versions, that in the space of E_RMS."""
    frames, _, largest = frame_errors(figures)
    return figures.get("worst_frame", frames[largest.index(max(largest))]) if largest else None


def worst_vertex(result: Result) -> tuple[bpy.types.Object, int] | None:
    """The skinned mesh and the vertex of it that is farthest from the source in the worst frame; None where the meshes
    are not those that were measured any more."""
    figures = result.figures
    # Counted over all objects, in the order that they were converted in.
    names = [part["object"] for part in figures.get("parts", ())] or [figures["object"]]
    known = {figures["object"]: result.mesh} | {mesh.name: mesh for mesh in result.meshes}
    meshes, index = [known.get(name) for name in names], figures.get("worst_vertex")
    if index is None or None in meshes or sum(len(ob.data.vertices) for ob in meshes) != figures["vertex_count"]:
        return None
    for ob in meshes:
        if index < len(ob.data.vertices):
            return ob, index
        index -= len(ob.data.vertices)
    return None


def _animated(object) -> list:
    """The object, and its shape keys, where they are animated."""
    keys = object.data.shape_keys if object.type == "MESH" else None
    return [block for block in (object, keys) if block is not None and block.animation_data is not None]


def rig_of(mesh_object) -> bpy.types.Object | None:
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


def _source_named(part: dict, carrier) -> bpy.types.Object | None:
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
