# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be closest: a vertex group of the sources as a factor of each vertex's error."""

from collections.abc import Sequence

import bpy
import numpy as np

from ...blender.animation.animation_reader import SourceAnimation
from ...blender.preconditions import check_vertex_group
from ...blender.vertex_groups import Memberships

# How often a vertex of weight 1 counts beside one of weight 0.
_MOST = 10.0


def check_importance(objects: Sequence[bpy.types.Object], group: str) -> None:
    """Raise BadSettings if no object has the vertex group; "" stands for none."""
    if group and not any(group in ob.vertex_groups for ob in objects):
        check_vertex_group(objects[0], group)


def importance_of(context: bpy.types.Context, source: SourceAnimation, group: str) -> np.ndarray | None:
    """(N,) for the vertices of ``source`` as modifiers leave them; None without a group. Those of an object without
    the group have weight 0."""
    if not group:
        return None
    depsgraph = context.evaluated_depsgraph_get()
    weights = np.zeros(source.animation.vertex_count)
    for part in source.parts:
        own, ob = weights[part.vertices], part.object
        if group in ob.vertex_groups:
            # Shape keys are read from the mesh itself, anything else as evaluated.
            read = ob if len(ob.data.vertices) == len(own) else ob.evaluated_get(depsgraph)
            own[:] = np.maximum(Memberships.read(read).columns([group])[0], 0.0)
    return 1.0 + (_MOST - 1.0) * weights
