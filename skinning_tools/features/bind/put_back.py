# SPDX-License-Identifier: GPL-3.0-or-later
"""All or nothing: what a binding writes to objects is put back if one of its writes fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Matrix

from ...blender.control_points import read_positions, stored_shapes
from ...blender.data_blocks import is_alive
from ...blender.vertex_groups import Memberships, put_columns, remove_groups


@dataclass(frozen=True, eq=False)
class _Before:
    """An object before it is bound. modifiers: which there are, and what of them is turned on; shapes: in the order of
    ``stored_shapes``."""

    object: bpy.types.Object
    groups: Memberships
    active: int
    modifiers: dict[str, tuple[bool, bool, bool | None]]
    parent: bpy.types.Object | None
    parent_inverse: Matrix
    shapes: list[np.ndarray]
    properties: frozenset[str]

    @classmethod
    def of(cls, ob: bpy.types.Object) -> "_Before":
        return cls(
            ob,
            Memberships.read(ob),
            ob.vertex_groups.active_index,
            {m.name: (m.show_viewport, m.show_render, getattr(m, "use_vertex_groups", None)) for m in ob.modifiers},
            ob.parent,
            ob.matrix_parent_inverse.copy(),
            [read_positions(points, name) for points, name in stored_shapes(ob.data)],
            frozenset(ob.keys()),
        )

    def put_back(self) -> None:
        ob, names = self.object, self.groups.names
        for modifier in list(ob.modifiers):
            if modifier.name not in self.modifiers:
                ob.modifiers.remove(modifier)
                continue
            modifier.show_viewport, modifier.show_render, by_groups = self.modifiers[modifier.name]
            if by_groups is not None:
                modifier.use_vertex_groups = by_groups
        if ob.parent != self.parent:
            ob.parent = self.parent
            ob.matrix_parent_inverse = self.parent_inverse
        remove_groups(ob, [group.name for group in ob.vertex_groups if group.name not in names])
        put_columns(ob, dict(zip(names, self.groups.columns(names), strict=True)))
        ob.vertex_groups.active_index = self.active
        for (points, name), shape in zip(stored_shapes(ob.data), self.shapes, strict=True):
            points.foreach_set(name, shape.astype(np.float32).ravel())
        for key in set(ob.keys()) - self.properties:
            del ob[key]
        if isinstance(ob.data, bpy.types.Mesh):
            ob.data.update()
        ob.data.update_tag()


@contextmanager
def put_back_on_failure(objects: Sequence[bpy.types.Object]) -> Iterator[None]:
    """Objects with vertex groups are left as they were where the block raises."""
    before = [_Before.of(ob) for ob in objects]
    try:
        yield
    except BaseException:
        for each in before:
            if is_alive(each.object):
                each.put_back()
        raise
