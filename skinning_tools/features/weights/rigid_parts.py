# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid parts of a skinned mesh: find and count them, and write them as a face attribute, face sets or objects."""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import write_attribute
from ...blender.bone_weights import read_bone_weights
from ...blender.character import character_of
from ...blender.figures import Figure, Result, each
from ...blender.preconditions import check_own_mesh, object_label, unmet
from ...blender.records import read_record, write_record
from ...blender.skin_reader import armature_of, face_corners
from ...blender.weight_tools import PARTITION_PROPERTY
from ...core.errors import BadScene
from ...core.progress import Progress, checkpoint
from .rigid_pieces import check_separable, make_objects

if TYPE_CHECKING:
    from ...core.binding.partition import Partition

# The attribute of the faces, and the mesh's custom property that lists the parts' bones.
PART_ATTRIBUTE = "skinning_rigid_part"
FACE_SETS = ".sculpt_face_set"

# Vertex groups hold single precision: weights that sum to 1 may miss it by this much.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class PartitionFigures:
    """The figures in the panel. shares: of the vertices with 0, 1, 2 … influences; parts: number of rigid parts;
    vertex_count: of the mesh that stores the figures."""

    shares: tuple[float, ...]
    parts: int
    rigid_faces: int
    skin_faces: int
    vertex_count: int

    @property
    def rigid_share(self) -> float:
        return self.rigid_faces / max(self.rigid_faces + self.skin_faces, 1)

    def figures(self) -> list[Figure]:
        return [
            *each("Vertices with {}", dict(share_rows(self.shares)), "vertex_shares", "{:.1%}"),
            Figure("Rigid parts", self.parts),
            Figure("Rigid faces", self.rigid_faces, f"{{}} ({self.rigid_share:.1%})"),
            Figure("Skin faces", self.skin_faces, f"{{}} ({1 - self.rigid_share:.1%})"),
        ]


@dataclass(frozen=True)
class Partitioned(Result):
    object_name: str
    output: str
    record: PartitionFigures
    notes: tuple[str, ...]
    seconds: float

    def figures(self) -> list[Figure]:
        return [Figure("Object", self.object_name), *self.record.figures()]


def share_rows(shares: tuple[float, ...]) -> list[tuple[str, float]]:
    """Names and shares of vertices by their number of bones, without empty rows."""
    names = ["no bone", "one bone", "two bones", "three bones", "four bones"]
    rows = [(name, share) for name, share in zip(names, shares, strict=False) if share > 0]
    more = sum(shares[len(names) :])
    return [*rows, ("more bones", more)] if more > 0 else rows


def check_partitionable(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raise BadScene with the reason if the active object cannot be partitioned. Cheap enough for a panel."""
    mesh_object = character_of(context, active)
    if not mesh_object.data.polygons:
        raise BadScene(f"The {object_label(mesh_object)} has no faces, so there is nothing to partition")


def partition(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    output: str = "ATTRIBUTE",
    tolerance: float = 0.0,
    least_faces: int = 1,
) -> background.Steps:
    """Generator: find the rigid parts of ``active`` and write them as ``output``; returns Partitioned.

    output: "ATTRIBUTE", "FACE_SETS", "OBJECTS" or "NONE", which only counts. Raises SkinningError for problems that the
    user can fix; then, and if the generator is closed, nothing is left behind.
    """
    from ...core.binding.partition import influence_shares, partition_faces

    begin = time.perf_counter()
    check_partitionable(context, active)
    mesh_object = character_of(context, active)
    if output in ("ATTRIBUTE", "FACE_SETS"):
        check_own_mesh(mesh_object, "nothing can be stored in it")
    if output == "OBJECTS":
        check_separable(mesh_object)
    if 0 <= tolerance < _ROUNDING:
        tolerance = _ROUNDING
    mesh = mesh_object.data
    weights = read_bone_weights(mesh_object, armature_of(mesh_object))
    corners, starts = face_corners(mesh)

    def work(progress: Progress) -> "tuple[Partition, np.ndarray]":
        checkpoint(progress, 0.1, "Finding rigid parts")
        found = partition_faces(
            corners, starts, weights.bones, weights.weights, tolerance=tolerance, least_faces=least_faces
        )
        return found, influence_shares(weights.weights, tolerance)

    found, shares = yield from background.run_in_worker(work)
    if len(mesh.polygons) != len(starts) or len(mesh.vertices) != len(weights.bones):
        raise unmet("EDITED", object=mesh_object)
    figures = PartitionFigures(
        shares=tuple(float(share) for share in shares),
        parts=len(found.bones),
        rigid_faces=int(found.face_counts.sum()),
        skin_faces=found.skin_faces,
        vertex_count=len(weights.bones),
    )
    pieces, notes = [], ()
    names = [weights.names[bone] for bone in found.bones]
    if output == "ATTRIBUTE":
        write_part_attribute(mesh, part_numbers(found), names)
    elif output == "FACE_SETS":
        write_attribute(mesh, FACE_SETS, "INT", part_numbers(found) + 2, "FACE")
        mesh.update()
    elif output == "OBJECTS":
        pieces, notes = yield from make_objects(context, mesh_object, part_numbers(found), names, tolerance)
    for noted in (mesh_object, *pieces):
        write_record(noted, PARTITION_PROPERTY, replace(figures, vertex_count=len(noted.data.vertices)))
    return Partitioned(mesh_object.name, output, figures, notes, time.perf_counter() - begin)


def partition_figures(mesh_object: bpy.types.Object) -> PartitionFigures | None:
    """The figures of the last partition, None if the mesh, or its weights by these tools, have changed since."""
    figures = read_record(mesh_object, PARTITION_PROPERTY, PartitionFigures)
    return figures if figures is not None and figures.vertex_count == len(mesh_object.data.vertices) else None


def part_numbers(found: "Partition") -> np.ndarray:
    """(M,) int32 the rigid part of each face, from 0, or −1 for skin."""
    parts = np.searchsorted(found.bones, found.face_bones)
    return np.where(found.face_bones < 0, -1, parts).astype(np.int32)


def write_part_attribute(mesh: bpy.types.Mesh, numbers: np.ndarray, names: list[str]) -> None:
    """Store parts (M,) in ``PART_ATTRIBUTE``, and their bones' names as the mesh's property of the same name."""
    write_attribute(mesh, PART_ATTRIBUTE, "INT", numbers, "FACE")
    mesh[PART_ATTRIBUTE] = names
    mesh.update()
