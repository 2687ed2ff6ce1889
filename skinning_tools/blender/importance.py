# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be closest: a vertex group of the sources as a factor of each vertex's error."""

from collections.abc import Sequence

import bpy
import numpy as np

from .preconditions import check_vertex_group
from .vertex_groups import Memberships

# How often a vertex of weight 1 counts beside one of weight 0.
_MOST = 10.0


def check_importance(objects: Sequence[bpy.types.Object], group: str) -> None:
    """Raise BadSettings if no object has the vertex group; "" stands for none."""
    if group and not any(group in ob.vertex_groups for ob in objects):
        check_vertex_group(objects[0], group)


def importance_of(context: bpy.types.Context, source: bpy.types.Object, count: int, group: str) -> np.ndarray | None:
    """(N,) how often each of the ``count`` vertices counts that modifiers leave of an object; None if it has no such
    vertex group, or another number of vertices."""
    if group not in source.vertex_groups:
        return None
    # Shape keys are read from the mesh itself, anything else as evaluated.
    same = len(source.data.vertices) == count
    found = Memberships.read(source if same else source.evaluated_get(context.evaluated_depsgraph_get()))
    if found.vertex_count != count:
        return None
    return 1.0 + (_MOST - 1.0) * np.maximum(found.columns([group])[0], 0.0)
