# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes of the weights that helper bones have taken from a mesh's bones, to return them when a helper is removed.

The former weights are attributes of the mesh, which follow its vertices through edits, with a checksum of the new
weights: a vertex that still has these gets its former weights back exactly. If they were painted since, the helper's
weights go to the bones on either side of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..attributes import has_attribute, read_attribute, remove_attributes, write_attribute
from ..records import read_record, write_record
from ..vertex_groups import ABSENT, put_columns, read_columns, remove_groups
from .records import BETWEEN, WEIGHT_RECORDS, Helper

ATTRIBUTE = ".skinning_helper_"


@dataclass(frozen=True)
class WeightRecord:
    """groups: the vertex groups that changed, the helper's own after the first ``others``; made: those of the others
    that were new."""

    groups: tuple[str, ...]
    others: int
    made: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Change:
    """Vertex groups changed by a helper, its own after the first ``others``. before (G, N) float32, of which only the
    others count, after (G, N): ``ABSENT`` at vertices that are not in the group."""

    groups: tuple[str, ...]
    others: int
    before: np.ndarray
    after: np.ndarray


def note_change(
    mesh: bpy.types.Mesh, number: int, change: Change, made: Iterable[str], kept: np.ndarray | bool = True
) -> None:
    """Note the changes by the helper ``number``, replacing an earlier note. made: as in the record; kept (N,): the
    vertices that still have the weights that the helper wrote."""
    _forget(mesh, number)
    if not hasattr(mesh.get(WEIGHT_RECORDS), "keys"):
        # There is none, or it was changed.
        mesh[WEIGHT_RECORDS] = {}
    write_record(mesh[WEIGHT_RECORDS], str(number), WeightRecord(change.groups, change.others, tuple(made)))
    for slot, column in enumerate(change.before[: change.others]):
        write_attribute(mesh, _attribute(number, slot), "FLOAT", column)
    checksums = _checksums(change.after)
    # Otherwise the vertex counts as painted.
    write_attribute(mesh, _attribute(number), "INT", np.where(kept, checksums, ~checksums))


def concerned_meshes(meshes: Iterable[bpy.types.Object], helper: Helper) -> list[bpy.types.Object]:
    """The mesh objects that have weights of a helper, or a note of it."""
    return [ob for ob in meshes if _record(ob, helper) or any(name in ob.vertex_groups for name in helper.skin)]


def give_back(mesh_object: bpy.types.Object, helper: Helper, later: Sequence[Helper]) -> int:
    """Remove a helper's weights from a mesh object; the number of vertices whose weights were painted since.

    later: the helpers that were made after it, in order, and stay. Undoes their changes in memory, to find the weights
    that this helper wrote, and corrects their notes, so that helpers can be removed in any order.
    """
    shares = _shares(helper)
    own = _Note.read(mesh_object, helper)
    notes = [note for note in (_Note.read(mesh_object, each) for each in reversed(later)) if note.record is not None]
    receivers = list(dict.fromkeys(name for bone in helper.skin for name, _ in shares[bone]))
    names = list(dict.fromkeys([*own.groups, *receivers, *(name for note in notes for name in note.groups)]))
    states = [dict(zip(names, read_columns(mesh_object, names), strict=True))]
    kept = []
    for note in notes:
        kept.append(note.is_unchanged(states[-1]))
        states.append(note.undone(states[-1], kept[-1]))
    unchanged = own.is_unchanged(states[-1])
    painted = ~unchanged & np.any([states[-1][name] > 0 for name in helper.skin], axis=0)
    results = [_without(state, helper, shares) for state in states]
    results[-1] = own.undone(results[-1], unchanged)
    for index in reversed(range(len(notes))):
        after, before = states[index], states[index + 1]
        same = np.all([after[name] == before[name] for name in helper.skin], axis=0)
        for name in names:
            # Apart from rounding, the shares give the same.
            results[index][name] = np.where(
                same & (after[name] == before[name]), results[index + 1][name], results[index][name]
            )
    put_columns(mesh_object, {name: results[0][name] for name in names if name not in helper.skin})
    made = own.record.made if own.record is not None else ()
    empty = [name for name in made if name in results[0] and not (results[0][name] >= 0).any()]
    remove_groups(mesh_object, [*helper.skin, *empty])
    _forget(mesh_object.data, helper.number)
    for index, note in enumerate(notes):
        before, after = results[index + 1], results[index]
        # Without this helper, the later one has also changed what this one had taken away before.
        changed = [name for name in names if name not in helper.skin and (before[name] != after[name]).any()]
        note.without(helper, receivers, changed).write(before, after, kept[index])
    return int(painted.sum())


def _shares(helper: Helper) -> dict[str, list[tuple[str, float]]]:
    """For each of the helper's bones, the bones that get its painted weights, with their shares."""
    shares = {}
    for place, (name, carrier) in enumerate(zip(helper.skin, helper.carriers, strict=True), 1):
        part = place / (len(helper.skin) + 1) if helper.kind in BETWEEN and helper.end else 0.0
        shares[name] = [(bone, share) for bone, share in ((carrier, 1 - part), (helper.end, part)) if bone and share]
    return shares


def _without(
    state: dict[str, np.ndarray], helper: Helper, shares: dict[str, list[tuple[str, float]]]
) -> dict[str, np.ndarray]:
    """Columns by their groups' names, with a helper's weights distributed according to ``shares``."""
    result = dict(state)
    for bone in helper.skin:
        moved = np.maximum(state[bone], 0.0)
        for name, share in shares[bone]:
            sums = np.minimum(np.maximum(result[name], 0.0) + share * moved, 1.0)
            result[name] = np.where(moved > 0, sums, result[name]).astype(np.float32)
        result[bone] = np.full_like(moved, ABSENT)
    return result


@dataclass(frozen=True, eq=False)
class _Note:
    """The note of a helper on a mesh. others: the groups that it took weights from, by the present names of the bones
    on either side; before (S, N) float32: their former weights; checksums (N,), None if damaged."""

    mesh_object: bpy.types.Object
    helper: Helper
    record: WeightRecord | None
    others: tuple[str, ...]
    before: np.ndarray
    checksums: np.ndarray | None

    @classmethod
    def read(cls, mesh_object: bpy.types.Object, helper: Helper) -> "_Note":
        mesh, record = mesh_object.data, _record(mesh_object, helper)
        if record is None:
            return cls(mesh_object, helper, None, (), np.zeros((0, len(mesh.vertices)), np.float32), None)
        ends = [name for name in helper.givers if name]
        others = (*ends, *record.groups[len(ends) : record.others])
        own, slots = _attribute(helper.number), [_attribute(helper.number, slot) for slot in range(len(others))]
        whole = has_attribute(mesh, own, "INT") and all(has_attribute(mesh, slot, "FLOAT") for slot in slots)
        if not whole or record.others + len(helper.skin) != len(record.groups):
            absent = np.full((len(others), len(mesh.vertices)), ABSENT, np.float32)
            return cls(mesh_object, helper, record, others, absent, None)
        before = np.array([read_attribute(mesh, slot) for slot in slots])
        return cls(mesh_object, helper, record, others, before, read_attribute(mesh, own))

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.others, *self.helper.skin)

    def is_unchanged(self, state: dict[str, np.ndarray]) -> np.ndarray:
        """(N,) bool: vertices that have in ``state`` the weights that the helper wrote."""
        if self.checksums is None:
            return np.zeros(len(self.mesh_object.data.vertices), bool)
        return self.checksums == _checksums(np.array([state[name] for name in self.groups]))

    def undone(self, state: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
        """``state`` with the weights from before the helper at the ``rows`` (N,)."""
        result = dict(state)
        for name, column in zip(self.others, self.before, strict=True):
            result[name] = np.where(rows, column, state[name])
        for name in self.helper.skin:
            result[name] = np.where(rows, np.float32(ABSENT), state[name])
        return result

    def without(self, helper: Helper, receivers: Sequence[str], changed: Sequence[str]) -> "_Note":
        """The note after another helper's weights went to ``receivers``, with all groups that this one has ``changed``;
        the caller must write its columns again."""
        others = [name for name in self.others if name not in helper.skin]
        if len(others) < len(self.others):
            others += [name for name in receivers if name not in others]
        others += [name for name in changed if name not in others and name not in self.helper.skin]
        return replace(self, others=tuple(others))

    def write(self, before: dict[str, np.ndarray], after: dict[str, np.ndarray], rows: np.ndarray) -> None:
        """Store the columns before and after; rows (N,): where ``after`` has the weights that the helper wrote."""
        assert self.record is not None
        columns = (np.array([state[name] for name in self.groups]) for state in (before, after))
        change = Change(self.groups, len(self.others), *columns)
        note_change(self.mesh_object.data, self.helper.number, change, self.record.made, rows)


def _forget(mesh: bpy.types.Mesh, number: int) -> None:
    """Remove the note of a helper from a mesh."""
    own, slots = _attribute(number), f"{_attribute(number)}_"
    names = [attribute.name for attribute in mesh.attributes]
    remove_attributes(mesh, [name for name in names if name == own or name.startswith(slots)])
    stored = mesh.get(WEIGHT_RECORDS)
    if hasattr(stored, "keys"):
        if str(number) in stored:
            del stored[str(number)]
        if not len(stored.keys()):
            del mesh[WEIGHT_RECORDS]


def _record(mesh_object: bpy.types.Object, helper: Helper) -> WeightRecord | None:
    stored = mesh_object.data.get(WEIGHT_RECORDS)
    return read_record(stored, str(helper.number), WeightRecord) if hasattr(stored, "keys") else None


def _attribute(number: int, slot: int | None = None) -> str:
    return f"{ATTRIBUTE}{number}" if slot is None else f"{ATTRIBUTE}{number}_{slot}"


def _checksums(columns: np.ndarray) -> np.ndarray:
    """(N,) int32 of columns (G, N) float32: FNV-1a over the bits of each vertex."""
    result = np.full(columns.shape[1], 2166136261, np.uint32)
    for column in np.ascontiguousarray(columns, np.float32).view(np.uint32):
        result = (result ^ column) * np.uint32(16777619)
    return result.view(np.int32)
