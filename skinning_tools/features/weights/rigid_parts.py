# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid parts of a skinned mesh: found, counted, and marked by a face attribute, by face sets, or made objects."""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...blender import background
from ...blender.bone_weights import read_bone_weights
from ...blender.character import character_of
from ...blender.preconditions import check_own_mesh, object_label
from ...blender.records import read_record, write_record
from ...blender.skin_reader import armature_of, face_corners
from ...blender.weight_tools import PARTITION_PROPERTY
from ...blender.wording import counted
from ...core.errors import BadScene
from ...core.progress import checkpoint
from .rigid_pieces import check_separable, make_objects, write_face_attribute

if TYPE_CHECKING:
    from ...core.binding.partition import Partition

# The attribute of the faces, and the mesh's custom property that lists the parts' bones.
PART_ATTRIBUTE = "skinning_rigid_part"
FACE_SETS = ".sculpt_face_set"

# Vertex groups hold single precision: weights that sum to 1 may miss it by this much.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class PartitionFigures:
    """What the panel shows. shares: of the vertices with 0, 1, 2 … influences; parts: how many are rigid; vertex_count:
    of the mesh that the figures are noted on."""

    shares: tuple[float, ...]
    parts: int
    rigid_faces: int
    skin_faces: int
    vertex_count: int

    @property
    def rigid_share(self) -> float:
        return self.rigid_faces / max(self.rigid_faces + self.skin_faces, 1)


@dataclass(frozen=True)
class Partitioned:
    object_name: str
    output: str
    figures: PartitionFigures
    notes: tuple[str, ...]
    seconds: float

    def summary(self) -> str:
        """The result in one line."""
        figures = self.figures
        rigid = f"{figures.rigid_faces:,} faces ({figures.rigid_share:.1%})"
        skin = f"{figures.skin_faces:,} faces of skin ({1 - figures.rigid_share:.1%})"
        parts = [
            f"{self.object_name}: {counted(figures.parts, 'rigid part')} with {rigid}, {skin}",
            ", ".join(f"{name} {share:.1%}" for name, share in share_rows(figures.shares)) + " of the vertices",
            *self.notes,
        ]
        return "; ".join(parts)


def share_rows(shares) -> list[tuple[str, float]]:
    """Names and shares of vertices by their number of bones, those that there are."""
    names = ["no bone", "one bone", "two bones", "three bones", "four bones"]
    rows = [(name, share) for name, share in zip(names, shares, strict=False) if share > 0]
    more = sum(shares[len(names) :])
    return [*rows, ("more bones", more)] if more > 0 else rows


def check_partitionable(context, object) -> None:
    """Raises BadScene with the reason why the active ``object`` cannot be partitioned. Cheap enough for a panel."""
    object = character_of(context, object)
    if not object.data.polygons:
        raise BadScene(f"The {object_label(object)} has no faces, so there is nothing to partition")


def partition(
    context, object, output: str = "ATTRIBUTE", tolerance: float = 0.0, least_faces: int = 1
) -> background.Steps:
    """Generator: find the rigid parts of ``object`` and make what ``output`` says; returns Partitioned.

    "ATTRIBUTE", "FACE_SETS", "OBJECTS" or "NONE", which only counts. Raises SkinningError for all that the user can
    mend; then, and where the generator is closed, nothing is left behind.
    """
    from ...core.binding.partition import influence_shares, partition_faces

    begin = time.perf_counter()
    check_partitionable(context, object)
    object = character_of(context, object)
    if output in ("ATTRIBUTE", "FACE_SETS"):
        check_own_mesh(object, "nothing can be stored in it")
    if output == "OBJECTS":
        check_separable(object)
    if 0 <= tolerance < _ROUNDING:
        tolerance = _ROUNDING
    mesh = object.data
    weights = read_bone_weights(object, armature_of(object))
    corners, starts = face_corners(mesh)

    def work(progress):
        checkpoint(progress, 0.1, "Finding rigid parts")
        found = partition_faces(
            corners, starts, weights.bones, weights.weights, tolerance=tolerance, least_faces=least_faces
        )
        return found, influence_shares(weights.weights, tolerance)

    found, shares = yield from background.run_in_worker(work)
    if len(mesh.polygons) != len(starts) or len(mesh.vertices) != len(weights.bones):
        raise BadScene(f"The {object_label(object)} was edited meanwhile. Start again")
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
        write_face_attribute(mesh, FACE_SETS, part_numbers(found) + 2)
        mesh.update()
    elif output == "OBJECTS":
        pieces, notes = yield from make_objects(context, object, part_numbers(found), names, tolerance)
    for noted in (object, *pieces):
        write_record(noted, PARTITION_PROPERTY, replace(figures, vertex_count=len(noted.data.vertices)))
    return Partitioned(object.name, output, figures, notes, time.perf_counter() - begin)


def partition_figures(object) -> PartitionFigures | None:
    """Of the last partition, None where the mesh, or its weights by these tools, were changed since."""
    figures = read_record(object, PARTITION_PROPERTY, PartitionFigures)
    return figures if figures is not None and figures.vertex_count == len(object.data.vertices) else None


def part_numbers(found: "Partition") -> np.ndarray:
    """(M,) int32 the rigid part of each face, 0 …, or −1 for skin."""
    parts = np.searchsorted(found.bones, found.face_bones)
    return np.where(found.face_bones < 0, -1, parts).astype(np.int32)


def write_part_attribute(mesh, numbers: np.ndarray, names: list[str]) -> None:
    """Store parts (M,) in ``PART_ATTRIBUTE``, and their bones' names as the mesh's property of that name."""
    write_face_attribute(mesh, PART_ATTRIBUTE, numbers)
    mesh[PART_ATTRIBUTE] = names
    mesh.update()
