# SPDX-License-Identifier: GPL-3.0-or-later
"""A finished face: its figures, which the skinned object keeps, and the objects that belong together."""

from dataclasses import dataclass

import bpy

from ...blender import look_ups
from ...blender.figures import Figure
from ...blender.preconditions import object_label, unmet
from ...blender.records import FACE, read_record
from ...blender.skin_reader import armature_of


@dataclass(frozen=True)
class FaceRecord:
    """The result against the shape keys, each at 1, as Blender plays it: distances in the world, normals in degrees.

    normals: what 90 % of the vertices stay within, the mean of all sliders. neutral: largest distance with all at 0.
    share: of the motions of all bones by all sliders, those that are not zero. source, made: the names of source and
    skinned object; library: the name of the source's, whose path changes with the file's, "" for the skinned object's
    own file. Of a face of several meshes, each skinned object has the figures of all; part: its place among them;
    worst_mesh: the source that has the largest error.
    """

    bone_count: int
    slider_count: int
    vertex_count: int
    mean: float
    largest: float
    worst_slider: str
    normals: float
    neutral: float
    share: float = 1.0
    source: str = ""
    made: str = ""
    part: int = 0
    mesh_count: int = 1
    worst_mesh: str = ""
    library: str = ""

    def figures(self) -> list[Figure]:
        return [
            *([Figure("Meshes", self.mesh_count)] if self.mesh_count > 1 else []),
            Figure("Bones", self.bone_count),
            Figure("Sliders", self.slider_count),
            Figure("Vertices", self.vertex_count, panel=""),
            Figure("Mean error", self.mean, "{:.6g}", length=True),
            Figure("Largest error", self.largest, "{:.6g}", length=True),
            Figure("Worst slider", self.worst_slider),
            *([Figure("Worst mesh", self.worst_mesh)] if self.worst_mesh else []),
            Figure("Normals within", self.normals, "{:.2f}°"),
            Figure("Motions", self.share, "{:.0%}"),
            Figure("Error at rest", self.neutral, "{:.6g}", length=True, line="", panel=""),
        ]


@dataclass(frozen=True)
class Face:
    """mesh: a skinned object; source: the mesh with its shape keys, None if that was renamed or deleted. pairs: source
    and skinned object of all meshes of the face, in the order in which they were converted."""

    mesh: bpy.types.Object
    source: bpy.types.Object | None
    record: FaceRecord
    pairs: tuple[tuple[bpy.types.Object | None, bpy.types.Object], ...]


def face_of(ob: bpy.types.Object | None) -> Face | None:
    """The face with ``ob`` as a skinned object or its armature, else the last that was made from it. Cheap enough for
    a panel."""
    if ob is None:
        return None
    made = [ob] if FACE in ob else _meshes_on(ob)[:1] or _made_from(ob)
    if not made:
        return None
    mesh = made[-1]
    record = _record(mesh)
    if record is None:
        return None
    armature = armature_of(mesh)
    meshes = _meshes_on(armature) if armature is not None else [mesh]
    pairs = tuple((_source_of(_record(each), each), each) for each in meshes)
    return Face(mesh, _source_of(record, mesh), record, pairs)


def _meshes_on(armature: bpy.types.Object) -> list[bpy.types.Object]:
    """The skinned objects of the face on an armature, in the order in which they were converted."""
    found = [(record.part, ob) for ob in _by_armature.at(armature.session_uid) if (record := _record(ob)) is not None]
    return [ob for _, ob in sorted(found, key=lambda each: each[0])]


def active_label(ob: bpy.types.Object | None) -> str:
    """What messages call the active object. Raises BadScene if there is none."""
    if ob is None:
        raise unmet("NO_ACTIVE_OBJECT", remedy="Select a face that was converted from shape keys")
    return object_label(ob)


def other_faces(face: Face) -> list[bpy.types.Object]:
    """The other skinned objects of the same sources, which lie in the same place."""
    own = [mesh for _, mesh in face.pairs]
    sources = dict.fromkeys(source for source, _ in face.pairs if source is not None)
    return [ob for source in sources for ob in _made_from(source) if ob not in own]


def _record(ob: bpy.types.Object) -> FaceRecord | None:
    return read_record(ob, FACE, FaceRecord) if FACE in ob else None


def _made_from(source: bpy.types.Object) -> list[bpy.types.Object]:
    """The skinned objects made from the object, and not from one of its name in another file."""
    return [ob for ob in _by_source.at(source.name) if _source_of(_record(ob), ob) in (source, None)]


def _source_of(record: FaceRecord | None, made: bpy.types.Object) -> bpy.types.Object | None:
    if record is None:
        return None
    library = bpy.data.libraries.get(record.library) if record.library else made.library
    # A linked source may have become local since.
    source = look_ups.named_in(record.source, library) or look_ups.named_in(record.source, None)
    return source if source is not None and source.type == "MESH" and source.data.shape_keys is not None else None


def _source_name(ob: bpy.types.Object) -> str | None:
    """The name of the source of a skinned face; a duplicate has the record of its original."""
    record = _record(ob)
    return record.source if record is not None and record.source and record.made == ob.name else None


def _armature_uid(ob: bpy.types.Object) -> int | None:
    armature = armature_of(ob) if FACE in ob else None
    return armature.session_uid if armature is not None else None


_by_source = look_ups.Index(_source_name, "MESH")
_by_armature = look_ups.Index(_armature_uid, "MESH")
