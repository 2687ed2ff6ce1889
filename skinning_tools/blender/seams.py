# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes that are split along seams: which vertices are the sides of one place, and notes where the surface tears."""

from collections.abc import Iterable

import bmesh
import bpy
import numpy as np

from ..core.seams import torn_seams
from .bone_weights import BoneWeights
from .preconditions import object_label
from .skin_reader import mesh_edges, rest_positions
from .wording import counted


def sewn_places(mesh: bpy.types.Mesh, weights: BoneWeights) -> tuple[np.ndarray, np.ndarray]:
    """The places (W,) where the mesh has vertices, by the first of them, ascending, and the place of each vertex (N,).
    The sides of a seam share one if bones move them alike, by ``weights``."""
    from ..core.deform.influences import weight_matrix
    from ..core.seams import sewn_vertices

    edges, faces = mesh_edges(mesh), np.empty(len(mesh.loops), np.int32)
    mesh.loops.foreach_get("edge_index", faces)
    border = np.zeros(len(mesh.vertices), bool)
    border[edges[np.bincount(faces, minlength=len(edges)) < 2]] = True
    matrix = weight_matrix(weights.bones, weights.weights, len(weights.names))
    places, place = np.unique(sewn_vertices(rest_positions(mesh), border, matrix), return_inverse=True)
    return places, place.reshape(-1)


def sew(mesh: bpy.types.Mesh, places: np.ndarray, place: np.ndarray) -> None:
    """Merge the vertices of a mesh without shape keys that share a place, as of ``sewn_places``."""
    edited = bmesh.new()
    try:
        edited.from_mesh(mesh)
        vertices = list(edited.verts)
        merged = np.flatnonzero(places[place] != np.arange(len(place))).tolist()
        bmesh.ops.weld_verts(edited, targetmap={vertices[each]: vertices[places[place[each]]] for each in merged})
        edited.to_mesh(mesh)
    finally:
        edited.free()


def seam_notes(mesh: bpy.types.Object, frames: Iterable[np.ndarray]) -> list[str]:
    """A note if vertices of the mesh that lie at one place move apart in the ``frames``, each (N, 3), that weights are
    to reach, as Corrective Smooth and similar modifiers treat each side of a seam as a border."""
    torn = torn_seams(rest_positions(mesh.data), mesh_edges(mesh.data), frames)
    if not torn:
        return []
    pairs = counted(torn, "pair")
    return [
        f"{object_label(mesh)} is split, and its target tears it open at {pairs} of vertices that lie at one place: "
        "unless that is wanted, first merge its vertices by distance in Edit Mode (M)"
    ]
