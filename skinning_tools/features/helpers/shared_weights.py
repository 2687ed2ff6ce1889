# SPDX-License-Identifier: GPL-3.0-or-later
"""The meshes whose weights links and bulges share, and the figures of that."""

from collections.abc import Sequence
from dataclasses import dataclass

import bpy

from ...blender.armatures import deformed_meshes
from ...blender.figures import Figure, Result
from ...blender.helper_bones.shared_weights import SharedWeights
from ...blender.preconditions import unmet
from ...blender.records import has_eigenskin


@dataclass(frozen=True)
class Added(Result):
    """The meshes and vertices whose weights the added helpers share, and notes for the user."""

    armature_name: str
    mesh_count: int
    vertex_count: int
    notes: tuple[str, ...]

    def figures(self) -> list[Figure]:
        return [
            Figure("Armature", self.armature_name),
            *self.added(),
            Figure("Meshes", self.mesh_count),
            Figure("Vertices", self.vertex_count),
        ]

    def added(self) -> list[Figure]:
        """The figures of the bones themselves."""
        raise NotImplementedError


def meshes_to_share(armature: bpy.types.Object) -> list:
    """The meshes whose weights helpers may share. Raises BadScene if there is none."""
    meshes = deformed_meshes(armature)
    if not meshes:
        raise unmet("NO_DEFORMED_MESH", armature=armature, remedy="Bind one first")
    return meshes


def shares_taken(armature: bpy.types.Object, touched: list[SharedWeights], notes: Sequence[str]) -> dict:
    """The arguments of an Added for the meshes whose weights have changed."""
    corrected = [each.mesh_object.name for each in touched if has_eigenskin(each.mesh_object)]
    return {
        "armature_name": armature.name,
        "mesh_count": len(touched),
        "vertex_count": sum(int(each.changed.sum()) for each in touched),
        "notes": (*([f"rebuild the EigenSkin of {', '.join(corrected)}"] if corrected else []), *notes),
    }
