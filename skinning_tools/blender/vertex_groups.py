# SPDX-License-Identifier: GPL-3.0-or-later
"""Vertex groups in bulk: Blender has no call that takes arrays."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import bpy
import numpy as np

from ..core.errors import BadWeights
from .background import drain

# Vertices whose weights are read at once: a hundredth of a second.
_PART = 4000


@contextmanager
def active_group_kept(object: bpy.types.Object) -> Iterator[None]:
    """Groups are made and removed, and the active one, which Blender lets each new one be, stays so if it is there."""
    groups = object.vertex_groups
    active = groups.active.name if groups.active is not None else ""
    yield
    if active in groups:
        groups.active_index = groups[active].index


def write_weights(object: bpy.types.Object, names: Sequence[str], bones: np.ndarray, weights: np.ndarray) -> None:
    """Make one new vertex group per name and fill it.

    bones (N, K) indices into ``names``, weights (N, K): an influence of weight 0 is not written; of a bone named twice
    at a vertex the weights add up.
    """
    for name, vertices, values in _columns(object, names, bones, weights):
        fill_group(object.vertex_groups.new(name=name), vertices, values)


def put_weights(
    object: bpy.types.Object,
    names: Sequence[str],
    bones: np.ndarray,
    weights: np.ndarray,
    kept: np.ndarray | None = None,
) -> None:
    """As ``write_weights``, but into the groups that are there: they get these weights in place of those they have.

    A group that is missing is made where it is needed. Groups of the names that ``kept`` (P,) marks are not touched.
    """
    everything = list(range(len(object.data.vertices)))
    with active_group_kept(object):
        for index, (name, vertices, values) in enumerate(_columns(object, names, bones, weights)):
            if kept is not None and kept[index]:
                continue
            group = object.vertex_groups.get(name)
            if group is not None:
                group.remove(everything)
            elif len(vertices):
                group = object.vertex_groups.new(name=name)
            if len(vertices):
                fill_group(group, vertices, values)


def _columns(object, names, bones, weights) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """For each name the vertices that have a weight above zero, in order, and the weights. Raises BadWeights."""
    bones, weights = np.asarray(bones), np.asarray(weights, dtype=np.float64)
    if bones.shape != weights.shape or len(bones) != len(object.data.vertices):
        raise BadWeights(
            f'Object "{object.name}" has {len(object.data.vertices)} vertices, but there are '
            f"{bones.shape} bone indices and {weights.shape} weights"
        )
    vertex = np.repeat(np.arange(len(bones)), bones.shape[1])
    # A key per influence sorts them by bone and vertex, and finds those named twice.
    key, inverse = np.unique(bones.ravel().astype(np.int64) * len(bones) + vertex, return_inverse=True)
    total = np.bincount(inverse.ravel(), weights=weights.ravel(), minlength=len(key)).astype(np.float32)
    key, total = key[total > 0], total[total > 0]
    bone, vertex = np.divmod(key, max(len(bones), 1))
    starts = np.searchsorted(bone, np.arange(len(names) + 1))
    for name, start, end in zip(names, starts[:-1], starts[1:], strict=True):
        yield name, vertex[start:end], total[start:end]


def read_weights(object: bpy.types.Object, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the groups ``names`` as bones (N, K) int32, indices into ``names``, and weights (N, K) float64.

    K is the most influences of a vertex, at least 1; unused slots repeat a vertex's first bone (0 where it has none)
    with weight 0. Not normalised: rows may sum to anything. A name without a group has no weights.
    """
    return drain(read_weights_in_parts(object, names))


def read_weights_in_parts(
    object: bpy.types.Object, names: Sequence[str]
) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
    """Generator: ``read_weights``, that gives the caller time in between. The mesh must stay as it is meanwhile."""
    position = {name: index for index, name in enumerate(names)}
    bone_of = np.array([position.get(group.name, -1) for group in object.vertex_groups] or [-1])
    vertex_count = len(object.data.vertices)
    parts = [np.zeros((0, 3))]
    for start in range(0, vertex_count, _PART):
        # Numbers one after the other: as tuples they would be so many that Python looks through all that it holds.
        numbers = [
            number
            for vertex, members in enumerate(object.data.vertices[start : start + _PART], start)
            for element in members.groups
            for number in (vertex, element.group, element.weight)
        ]
        parts.append(np.reshape(np.array(numbers, dtype=np.float64), (-1, 3)))
        yield
    found = np.concatenate(parts)
    # What is left of a group that was removed counts for none.
    bone = bone_of[np.minimum(found[:, 1].astype(np.int64), len(bone_of) - 1)]
    kept = (bone >= 0) & (found[:, 1] < len(object.vertex_groups))
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


def fill_group(group: bpy.types.VertexGroup, vertices: np.ndarray, weights: np.ndarray) -> None:
    """Set ``weights`` (n,) of ``vertices`` (n,) in a vertex group; all of equal weight go in one call."""
    order = np.argsort(weights, kind="stable")
    distinct, starts = np.unique(weights[order], return_index=True)
    for weight, members in zip(distinct.tolist(), np.split(vertices[order], starts)[1:], strict=True):
        group.add(members.tolist(), weight, "REPLACE")
