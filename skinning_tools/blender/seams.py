# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes on meshes that are split along seams, whose surface tears where it should be whole."""

import bpy
import numpy as np

from ..core.seams import torn_seams
from .preconditions import object_label
from .skin_reader import mesh_edges, rest_positions
from .wording import counted


def seam_notes(mesh: bpy.types.Object, frames: np.ndarray) -> list[str]:
    """A note if vertices of the mesh that lie at one place move apart in the ``frames`` (F, N, 3) that weights are to
    reach, as Corrective Smooth and similar modifiers treat each side of a seam as a border."""
    torn = torn_seams(rest_positions(mesh.data), mesh_edges(mesh.data), frames)
    if not torn:
        return []
    pairs = counted(torn, "pair")
    return [
        f"{object_label(mesh)} is split, and its target tears it open at {pairs} of vertices that lie at one place: "
        "unless that is wanted, first merge its vertices by distance in Edit Mode (M)"
    ]
