# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the T-intersections of meshes, where they open when they bend, and select them in Edit Mode."""

from dataclasses import dataclass

import bpy

from ...blender.bodies import read_body
from ...blender.preconditions import check_own_mesh, check_visible
from ...blender.weight_tools import edit_vertices
from ...blender.wording import counted
from ...core.errors import BadScene
from .targets import find_targets


@dataclass(frozen=True)
class Tears:
    """counts: T-intersections by the name of the mesh."""

    counts: dict[str, int]

    def summary(self) -> str:
        """The result in one line."""
        found = {name: count for name, count in self.counts.items() if count}
        if not found:
            return f"{', '.join(self.counts)}: no T-intersection"
        told = ", ".join(f"{name} {counted(count, 'T-intersection')}" for name, count in found.items())
        return f"{told} selected. Add each vertex to the long edge on which it lies, or move it away from that edge"


def find_tears(context: bpy.types.Context, active: bpy.types.Object | None, armature: str) -> Tears:
    """Select the T-intersections of the meshes that Bind would bind; change nothing if there is none. Raises
    BadScene."""
    from ...core.binding.tears import t_intersections

    found = {}
    meshes = [ob for ob in find_targets(context, armature).meshes if ob.type == "MESH"]
    if not meshes:
        raise BadScene("Only meshes have T-intersections: lattices and curves have no faces. Select a mesh")
    for ob in meshes:
        check_visible(context.scene, context.view_layer, ob)
        check_own_mesh(ob, "its vertices cannot be selected")
        found[ob] = t_intersections(read_body(ob))
    chosen = {ob: vertices for ob, vertices in found.items() if len(vertices)}
    if chosen:
        edit_vertices(context, chosen)
    return Tears({ob.name: len(vertices) for ob, vertices in found.items()})
