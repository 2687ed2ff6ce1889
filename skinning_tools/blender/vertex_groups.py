# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and writes vertex groups in bulk, since Blender has no call that takes arrays."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np

from ..core.errors import BadWeights
from .background import Steps, drain, part_of, run_in_worker
from .control_points import point_count, points_of

# Vertices whose weights are read or written in one step: a few hundredths of a second.
_PART = 4000

# The fraction of the time to write weights after which they are sorted by group.
_SORTED = 0.1

# In a column of weights: the vertex is not in the group.
ABSENT = -1.0


@contextmanager
def active_group_kept(mesh_object: bpy.types.Object) -> Iterator[None]:
    """Keep the active group if it still exists after the block, although Blender activates each new group."""
    groups = mesh_object.vertex_groups
    active = groups.active.name if groups.active is not None else ""
    yield
    if active in groups:
        groups.active_index = groups[active].index


def write_weights(mesh_object: bpy.types.Object, names: Sequence[str], bones: np.ndarray, weights: np.ndarray) -> None:
    """Make one new vertex group per name and fill it.

    bones (N, K) indices into ``names``, weights (N, K): influences of weight 0 are not written; weights of a bone that
    occurs twice at a vertex are added.
    """
    _check_shapes(mesh_object, bones, weights)
    for name, vertices, values in _columns(names, bones, weights):
        fill_group(mesh_object.vertex_groups.new(name=name), vertices, values)


def write_weights_in_parts(
    mesh_object: bpy.types.Object, names: Sequence[str], bones: np.ndarray, weights: np.ndarray, unused: bool
) -> Steps[None]:
    """Generator: ``write_weights`` in steps. unused: make groups without vertices, too."""
    _check_shapes(mesh_object, bones, weights)
    columns = yield from part_of(run_in_worker(lambda _: list(_columns(names, bones, weights))), 0.0, _SORTED)
    done, total = 0, sum(len(vertices) for _, vertices, _ in columns)
    for name, vertices, values in columns:
        if unused or len(vertices):
            group = mesh_object.vertex_groups.new(name=name)
        for start in range(0, len(vertices), _PART):
            part = slice(start, start + _PART)
            fill_group(group, vertices[part], values[part])
            done += len(vertices[part])
            # Never the same twice: a job takes that for waiting, and pauses.
            yield _SORTED + (1.0 - _SORTED) * done / total, ""


def put_weights(mesh_object: bpy.types.Object, names: Sequence[str], bones: np.ndarray, weights: np.ndarray) -> None:
    """As ``write_weights``, but into existing groups, whose weights are replaced; makes missing groups if needed."""
    _check_shapes(mesh_object, bones, weights)
    everything = list(range(point_count(mesh_object)))
    with active_group_kept(mesh_object):
        for name, vertices, values in _columns(names, bones, weights):
            group = mesh_object.vertex_groups.get(name)
            if group is not None:
                group.remove(everything)
            elif len(vertices):
                group = mesh_object.vertex_groups.new(name=name)
            if len(vertices):
                fill_group(group, vertices, values)


def _check_shapes(mesh_object: bpy.types.Object, bones: np.ndarray, weights: np.ndarray) -> None:
    """Raises BadWeights."""
    if bones.shape != weights.shape or len(bones) != point_count(mesh_object):
        raise BadWeights(
            f'Object "{mesh_object.name}" has {point_count(mesh_object)} vertices, but there are '
            f"{bones.shape} bone indices and {weights.shape} weights"
        )


def _columns(
    names: Sequence[str], bones: np.ndarray, weights: np.ndarray
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """For each name the vertices that have a weight above zero, in order, and the weights."""
    vertex = np.repeat(np.arange(len(bones)), bones.shape[1])
    # A key per influence sorts by bone and vertex, and finds duplicates.
    key, inverse = np.unique(bones.ravel().astype(np.int64) * len(bones) + vertex, return_inverse=True)
    total = np.bincount(inverse.ravel(), weights=weights.ravel(), minlength=len(key)).astype(np.float32)
    key, total = key[total > 0], total[total > 0]
    bone, vertex = np.divmod(key, max(len(bones), 1))
    starts = np.searchsorted(bone, np.arange(len(names) + 1))
    for name, start, end in zip(names, starts[:-1], starts[1:], strict=True):
        yield name, vertex[start:end], total[start:end]


def read_weights(mesh_object: bpy.types.Object, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the groups ``names`` as bones (N, K) int32, indices into ``names``, and weights (N, K) float64.

    K is the most influences of a vertex, at least 1; unused slots repeat a vertex's first bone (0 if it has none) with
    weight 0. Not normalized: rows may have any sum. A name without a group has no weights.
    """
    return drain(read_weights_in_parts(mesh_object, names))


def read_weights_in_parts(
    mesh_object: bpy.types.Object, names: Sequence[str]
) -> Generator[float, None, tuple[np.ndarray, np.ndarray]]:
    """Generator: ``read_weights`` in steps; yields fractions. The mesh must not change meanwhile."""
    position = {name: index for index, name in enumerate(names)}
    bone_of = np.array([position.get(group.name, -1) for group in mesh_object.vertex_groups] or [-1])
    vertex_count = point_count(mesh_object)
    parts = [np.zeros((0, 3))]
    for part in _memberships(mesh_object):
        parts.append(part)
        yield min((len(parts) - 1) * _PART / vertex_count, 1.0)
    found = np.concatenate(parts)
    # What is left of a group that was removed counts for none.
    bone = bone_of[np.minimum(found[:, 1].astype(np.int64), len(bone_of) - 1)]
    kept = (bone >= 0) & (found[:, 1] < len(mesh_object.vertex_groups))
    vertex, bone, weight = found[kept, 0].astype(np.int64), bone[kept], found[kept, 2]
    if not len(vertex):
        return np.zeros((vertex_count, 1), np.int32), np.zeros((vertex_count, 1))
    counts = np.bincount(vertex, minlength=vertex_count)
    starts = np.cumsum(counts) - counts
    slot = np.arange(len(vertex)) - starts[vertex]
    bones = np.zeros((vertex_count, counts.max()), np.int32)
    weights = np.zeros(bones.shape)
    bones[:] = np.where(counts > 0, bone[np.minimum(starts, len(bone) - 1)], 0)[:, None]
    bones[vertex, slot], weights[vertex, slot] = bone, weight
    return bones, weights


def _memberships(mesh_object: bpy.types.Object) -> Iterator[np.ndarray]:
    """(M, 3) vertex, index of the group, and weight, for a block of vertices at a time."""
    for start in range(0, point_count(mesh_object), _PART):
        # A flat list of numbers: so many tuples would trigger Python's garbage collector.
        numbers = [
            number
            for vertex, members in enumerate(points_of(mesh_object.data)[start : start + _PART], start)
            for element in members.groups
            for number in (vertex, element.group, element.weight)
        ]
        yield np.reshape(np.array(numbers, dtype=np.float64), (-1, 3))


@dataclass(frozen=True)
class KeptWeights:
    """All weights of some vertices, to be put back exactly. groups: names of the object's groups; members: by vertex
    the indices of its groups, in its own order, with the weights."""

    groups: tuple[str, ...]
    members: dict[int, tuple[tuple[int, float], ...]]

    @classmethod
    def of(cls, mesh_object: bpy.types.Object, vertices: Iterable[int]) -> "KeptWeights":
        return cls(
            tuple(mesh_object.vertex_groups.keys()), {int(vertex): _members(mesh_object, vertex) for vertex in vertices}
        )

    def put_back(self, mesh_object: bpy.types.Object) -> None:
        """Give the vertices their weights back, in their order, and remove groups that were added meanwhile."""
        remove_groups(mesh_object, [group.name for group in mesh_object.vertex_groups if group.name not in self.groups])
        groups = mesh_object.vertex_groups
        for vertex, members in self.members.items():
            present = _members(mesh_object, vertex)
            if present == members:
                continue
            for group, _ in present:
                groups[group].remove([vertex])
            for group, weight in members:
                groups[group].add([vertex], weight, "REPLACE")


def _members(mesh_object: bpy.types.Object, vertex: int) -> tuple[tuple[int, float], ...]:
    count = len(mesh_object.vertex_groups)
    # What is left of a group that was removed counts for none.
    return tuple(
        (each.group, each.weight) for each in mesh_object.data.vertices[int(vertex)].groups if each.group < count
    )


@dataclass(frozen=True, eq=False)
class Memberships:
    """The vertex group memberships of an object: found (M, 3) vertex, index of the group, and weight. names: of the
    groups."""

    found: np.ndarray
    names: tuple[str, ...]
    vertex_count: int

    @classmethod
    def read(cls, mesh_object: bpy.types.Object) -> "Memberships":
        found = np.concatenate([np.zeros((0, 3)), *_memberships(mesh_object)])
        return cls(found, tuple(mesh_object.vertex_groups.keys()), point_count(mesh_object))

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """(G, N) float32 weights in the groups ``names``, ``ABSENT`` where a vertex is not in the group."""
        slots = {name: slot for slot, name in enumerate(names)}
        # What is left of a group that was removed counts for none.
        slot_of = np.array([*(slots.get(name, -1) for name in self.names), -1])
        vertex, group = self.found[:, :2].astype(np.int64).T
        slot = slot_of[np.minimum(group, len(self.names))]
        columns = np.full((len(names), self.vertex_count), ABSENT, np.float32)
        columns[slot[slot >= 0], vertex[slot >= 0]] = self.found[slot >= 0, 2]
        return columns


def read_columns(mesh_object: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(G, N) float32 weights in the vertex groups ``names``, as from ``Memberships.columns``."""
    return Memberships.read(mesh_object).columns(names)


def put_columns(mesh_object: bpy.types.Object, columns: dict[str, np.ndarray]) -> None:
    """Write whole groups, by their names, from columns (N,); vertices with ``ABSENT`` are not in the group."""
    if not columns:
        return
    values = np.array(list(columns.values()))
    bones = np.broadcast_to(np.arange(len(columns)), (values.shape[1], len(columns)))
    put_weights(mesh_object, list(columns), bones, np.maximum(values.T, 0.0))
    with active_group_kept(mesh_object):
        for name, column in columns.items():
            empty = np.flatnonzero(column == 0).tolist()
            if not empty:
                continue
            (mesh_object.vertex_groups.get(name) or mesh_object.vertex_groups.new(name=name)).add(empty, 0.0, "REPLACE")


def remove_groups(mesh_object: bpy.types.Object, names: Sequence[str]) -> None:
    """Remove the vertex groups ``names`` that exist."""
    groups = mesh_object.vertex_groups
    with active_group_kept(mesh_object):
        for name in names:
            if name in groups:
                groups.remove(groups[name])


def fill_group(group: bpy.types.VertexGroup, vertices: np.ndarray, weights: np.ndarray) -> None:
    """Set ``weights`` (n,) of ``vertices`` (n,) in a vertex group, with one call per distinct weight."""
    order = np.argsort(weights, kind="stable")
    distinct, starts = np.unique(weights[order], return_index=True)
    members, bounds = vertices[order].tolist(), [*starts.tolist(), len(order)]
    for weight, start, end in zip(distinct.tolist(), bounds[:-1], bounds[1:], strict=True):
        group.add(members[start:end], weight, "REPLACE")
