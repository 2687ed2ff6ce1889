# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones and weights of a mesh as a packed binary file, for custom engines."""

from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np

from ...blender.bone_weights import read_bone_weights
from ...blender.character import character_of
from ...blender.figures import Figure, Result
from ...blender.skin_reader import armature_of
from ...blender.written_files import Kind, begins_with, claim_named

# The first bytes of ``core.binding.packing.MAGIC``, which needs scipy to be imported.
TABLE = Kind("weight table", lambda path: begins_with(path, b"SKINWGT"))


@dataclass(frozen=True)
class SavedWeights(Result):
    """path: of the file. largest_error: the largest rounding of a weight; byte_count: for each vertex."""

    name: str
    path: Path
    vertex_count: int
    bone_count: int
    bits: int
    influences: int
    byte_count: int
    largest_error: float

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.name),
            Figure("File", str(self.path)),
            Figure("Vertices", self.vertex_count),
            Figure("Bones", self.bone_count),
            Figure("Bits", self.bits),
            Figure("Influences", self.influences),
            Figure("Bytes per vertex", self.byte_count),
            Figure("Largest rounding", self.largest_error, "{:.3%}"),
        ]


def save_weight_table(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    filepath: str,
    bits: int = 8,
    max_influences: int = 4,
    threshold: float = 0.0,
) -> SavedWeights:
    """Write the weights of the active mesh, rounded as *Compress* rounds them, to ``filepath``; the mesh itself does
    not change. Raises BadScene, BadPath."""
    from ...core.binding.compression import bytes_per_vertex, compress_weights
    from ...core.binding.packing import packed_table, used_slots

    mesh_object = character_of(context, active)
    target = claim_named(filepath, TABLE, ".bin")
    read = read_bone_weights(mesh_object, armature_of(mesh_object))
    rounded = compress_weights(read.bones, read.weights, bits=bits, max_influences=max_influences, threshold=threshold)
    influences = used_slots(rounded)
    # A vertex that no bone moves needs an index of its own.
    index_count = len(read.names) + int(not np.all(read.bound))
    target.save(packed_table(rounded, read.names))
    return SavedWeights(
        mesh_object.name,
        target.path,
        len(rounded.bones),
        len(read.names),
        bits,
        influences,
        bytes_per_vertex(influences, bits, index_count),
        rounded.largest_error,
    )
