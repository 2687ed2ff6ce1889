# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights that helper bones take from a mesh's bones, and how these have them back when a helper goes.

What a helper changes is kept as attributes of the mesh, which follow its vertices through edits, with a checksum of
what was written: a vertex that still has that gets its former weights back exactly. Where somebody has painted since,
the helper's weights go to the bones that it stood between.
"""

from dataclasses import dataclass, replace

import bmesh
import bpy
import numpy as np

from ...blender.armatures import deformed_meshes
from ...blender.bodies import deforming_bones
from ...blender.bone_weights import read_bone_weights
from ...blender.records import has_eigenskin, read_record, write_record
from ...blender.vertex_groups import active_group_kept, put_weights
from ...core.errors import BadScene
from .rig import LINKS, Helper

# On the mesh: a record for each helper, by its number.
RECORD = "skinning_helpers"
ATTRIBUTE = ".skinning_helper_"

# Rows keep to so many bones unless they have more already.
_MOST_INFLUENCES = 4

# Smaller changes of a weight are rounding.
_NO_CHANGE = 1e-6

# Of a vertex that is not in a group.
_ABSENT = -1.0


@dataclass(frozen=True)
class WeightRecord:
    """groups: those whose weights changed, the helper's own ones after the first ``others``; made: those of the former
    that the mesh had not."""

    groups: tuple[str, ...]
    others: int
    made: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Change:
    """Groups of a helper on a mesh: before and after (G, N) float32, −1 at vertices that are not in the group."""

    groups: tuple[str, ...]
    others: int
    before: np.ndarray
    after: np.ndarray


class SharedWeights:
    """A mesh object's weights while helpers take their shares, one after the other, until ``write``.

    names: the deforming bones, then the helpers' bones in the order in which they came. bones (N, K) indices into them;
    weights (N, K) with rows that sum to 1, or to 0 where no bone moves the vertex. changed (N,) bool: rows that differ
    from the stored ones.
    """

    def __init__(self, object, armature):
        read = read_bone_weights(object, armature)
        self.object = object
        self.names = list(deforming_bones(armature))
        self.bones, self.weights = read.bones, read.weights
        self.locked = read.locked
        self.changes: dict[int, Change] = {}
        self.changed = np.zeros(len(self.bones), bool)
        self._totals = read.totals
        self._columns: dict[str, np.ndarray] = {}
        self.max_influences = max(_MOST_INFLUENCES, int(np.count_nonzero(self.weights, axis=1).max(initial=0)))

    def index(self, name: str) -> int:
        return self.names.index(name)

    def has_weights(self, names) -> bool:
        """Whether one of the bones moves a vertex."""
        return bool((np.isin(self.bones, [self.index(name) for name in names]) & (self.weights > 0)).any())

    def add_names(self, names) -> list[int]:
        """Make room for new bones; their indices."""
        first = len(self.names)
        self.names += names
        self.locked = np.append(self.locked, np.zeros(len(names), bool))
        return list(range(first, len(self.names)))

    def take(self, number: int, own: list[int], ends: list[int], bones: np.ndarray, weights: np.ndarray) -> None:
        """Rows ``bones`` and ``weights`` that sum to 1 in place of the present ones, for the helper ``number``.

        own: the helper's bones; ends: those that its weights go back to. All other bones that change are found.
        """
        rows = np.diff(_changes(self.bones, self.weights, bones, weights, len(self.names)).indptr) > 0
        if not rows.any():
            return
        # Blender takes weights up to 1: where stored ones would be above, the row is brought to a sum of 1.
        scale = np.where(rows & (weights.max(axis=1) * self._totals > 1), 1.0, self._totals)
        changes = _changes(
            self.bones, self.weights * self._totals[:, None], bones, weights * scale[:, None], len(self.names)
        )
        others = [*ends, *(int(bone) for bone in np.unique(changes.indices) if bone not in {*ends, *own})]
        groups = tuple(self.names[bone] for bone in [*others, *own])
        former = np.array([self._column(name) for name in groups])
        latter = former.copy()
        for slot, bone in enumerate([*others, *own]):
            column = (np.where(bones == bone, weights, 0.0).sum(axis=1) * scale).astype(np.float32)
            latter[slot] = np.where(rows, column, former[slot])
        # A weight of zero is not written.
        latter[latter <= 0] = _ABSENT
        for name, column in zip(groups, latter, strict=True):
            self._columns[name] = column
        self._totals, self.bones, self.weights = scale, bones, weights
        self.changed |= rows
        self.changes[number] = Change(groups, len(others), former, latter)

    def write(self) -> None:
        """Write the weights, and what they were, into the mesh."""
        if not self.changes:
            return
        mesh, groups = self.object.data, self.object.vertex_groups
        made = {name for change in self.changes.values() for name in change.groups if name not in groups}
        _put_columns(
            self.object, {name: self._columns[name] for change in self.changes.values() for name in change.groups}
        )
        for number, change in self.changes.items():
            others = change.groups[: change.others]
            record = WeightRecord(change.groups, change.others, tuple(name for name in others if name in made))
            _write_note(mesh, number, record, change.before[: change.others], _checksums(change.after))

    def _column(self, name: str) -> np.ndarray:
        if name not in self._columns:
            self._columns[name] = read_columns(self.object, [name])[0]
        return self._columns[name]


def meshes_to_share(armature) -> list:
    """The meshes whose weights helpers may share. Raises BadScene where there is none."""
    meshes = deformed_meshes(armature)
    if not meshes:
        raise BadScene(f'The armature "{armature.name}" deforms no mesh. Bind one to it first')
    return meshes


def shares_taken(armature, touched: list[SharedWeights], notes=()) -> dict:
    """What a rig.Added says of the meshes whose weights have changed."""
    corrected = [each.object.name for each in touched if has_eigenskin(each.object)]
    return {
        "armature_name": armature.name,
        "mesh_count": len(touched),
        "vertex_count": sum(int(each.changed.sum()) for each in touched),
        "notes": (*([f"build the EigenSkin of {', '.join(corrected)} anew"] if corrected else []), *notes),
    }


def concerned_meshes(meshes, helper: Helper) -> list:
    """Those of the mesh objects that have weights of a helper, or a note of it."""
    return [ob for ob in meshes if _record(ob, helper) or any(name in ob.vertex_groups for name in helper.skin)]


def give_back(object, helper: Helper, shares: dict[str, list[tuple[str, float]]], later: list[Helper]) -> int:
    """Take a helper's weights off a mesh object; the number of vertices whose weights were painted since.

    shares: for each of the helper's bones, what bones get which part of its weights where these were painted. later:
    the helpers that were made after it, in their order, and stay. What they have changed is taken back in thought, to
    find the weights as this one had left them, and their notes are corrected, so that they can go in any order.
    """
    mesh, groups = object.data, object.vertex_groups
    own = _Note.read(object, helper)
    notes = [note for note in (_Note.read(object, each) for each in reversed(later)) if note.record is not None]
    receivers = list(dict.fromkeys(name for bone in helper.skin for name, _ in shares[bone]))
    names = list(dict.fromkeys([*own.groups, *receivers, *(name for note in notes for name in note.groups)]))
    states = [dict(zip(names, read_columns(object, names), strict=True))]
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
            # Rounding aside, this is what the shares give, too.
            results[index][name] = np.where(
                same & (after[name] == before[name]), results[index + 1][name], results[index][name]
            )
    _put_columns(object, {name: results[0][name] for name in names if name not in helper.skin})
    with active_group_kept(object):
        for name in helper.skin:
            if name in groups:
                groups.remove(groups[name])
        for name in own.record.made if own.record is not None else ():
            if name in groups and not (results[0][name] >= 0).any():
                groups.remove(groups[name])
    forget(mesh, helper.number)
    for index, note in enumerate(notes):
        note.without(helper, receivers).write(results[index + 1], results[index], kept[index])
    return int(painted.sum())


def _without(state: dict[str, np.ndarray], helper: Helper, shares) -> dict[str, np.ndarray]:
    """Columns by their groups' names, with a helper's weights given to those that ``shares`` says."""
    result = dict(state)
    for bone in helper.skin:
        moved = np.maximum(state[bone], 0.0)
        for name, share in shares[bone]:
            sums = np.minimum(np.maximum(result[name], 0.0) + share * moved, 1.0)
            result[name] = np.where(moved > 0, sums, result[name]).astype(np.float32)
        result[bone] = np.full_like(moved, _ABSENT)
    return result


@dataclass(frozen=True, eq=False)
class _Note:
    """What a mesh object's mesh knows of a helper. others: the groups that it took weights of, by the present names of
    the bones that it stands between; before (S, N) float32: these as they were; checksums (N,), None where damaged."""

    object: bpy.types.Object
    helper: Helper
    record: WeightRecord | None
    others: tuple[str, ...]
    before: np.ndarray
    checksums: np.ndarray | None

    @classmethod
    def read(cls, object, helper: Helper) -> "_Note":
        mesh, record = object.data, _record(object, helper)
        if record is None:
            return cls(object, helper, None, (), np.zeros((0, len(mesh.vertices)), np.float32), None)
        ends = [name for name in ((helper.start, helper.end) if helper.kind == LINKS else (helper.start,)) if name]
        others = (*ends, *record.groups[len(ends) : record.others])
        before = [_stored(mesh, _attribute(helper.number, slot), np.float32) for slot in range(len(others))]
        checksums = _stored(mesh, _attribute(helper.number), np.int32)
        if any(column is None for column in before) or record.others + len(helper.skin) != len(record.groups):
            before, checksums = [np.full(len(mesh.vertices), _ABSENT, np.float32)] * len(others), None
        return cls(object, helper, record, others, np.array(before), checksums)

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.others, *self.helper.skin)

    def is_unchanged(self, state: dict[str, np.ndarray]) -> np.ndarray:
        """(N,) bool: vertices that have in ``state`` the weights that the helper wrote."""
        if self.checksums is None:
            return np.zeros(len(self.object.data.vertices), bool)
        return self.checksums == _checksums(np.array([state[name] for name in self.groups]))

    def undone(self, state: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, np.ndarray]:
        """``state`` with the ``rows`` (N,) as they were before the helper."""
        result = dict(state)
        for name, column in zip(self.others, self.before, strict=True):
            result[name] = np.where(rows, column, state[name])
        for name in self.helper.skin:
            result[name] = np.where(rows, np.float32(_ABSENT), state[name])
        return result

    def without(self, helper: Helper, receivers) -> "_Note":
        """The note where another helper's weights have gone to ``receivers``; its columns are to be written anew."""
        others = [name for name in self.others if name not in helper.skin]
        if len(others) < len(self.others):
            others += [name for name in receivers if name not in others]
        return replace(self, others=tuple(others))

    def write(self, before: dict[str, np.ndarray], after: dict[str, np.ndarray], rows: np.ndarray) -> None:
        """Note what was there before and after; rows (N,): where ``after`` is what the helper made."""
        checksums = _checksums(np.array([after[name] for name in self.groups]))
        # Elsewhere it is to be found different.
        checksums = np.where(rows, checksums, ~checksums)
        forget(self.object.data, self.helper.number)
        _write_note(
            self.object.data,
            self.helper.number,
            WeightRecord(self.groups, len(self.others), self.record.made),
            [before[name] for name in self.others],
            checksums,
        )


def _write_note(mesh, number: int, record: WeightRecord, before, checksums: np.ndarray) -> None:
    if not hasattr(mesh.get(RECORD), "keys"):
        # There is none, or somebody has changed it.
        mesh[RECORD] = {}
    write_record(mesh[RECORD], str(number), record)
    for slot, column in enumerate(before):
        attribute = mesh.attributes.new(_attribute(number, slot), "FLOAT", "POINT")
        attribute.data.foreach_set("value", np.ascontiguousarray(column, np.float32))
    attribute = mesh.attributes.new(_attribute(number), "INT", "POINT")
    attribute.data.foreach_set("value", np.ascontiguousarray(checksums, np.int32))


def forget(mesh, number: int) -> None:
    """Remove what a mesh knows of a helper."""
    # By name: removing one moves the others.
    for name in [attribute.name for attribute in mesh.attributes if _belongs(attribute.name, number)]:
        mesh.attributes.remove(mesh.attributes[name])
    stored = mesh.get(RECORD)
    if hasattr(stored, "keys"):
        if str(number) in stored:
            del stored[str(number)]
        if not len(stored.keys()):
            del mesh[RECORD]


def read_columns(object, names) -> np.ndarray:
    """(G, N) float32 weights in the vertex groups ``names``, −1 where a vertex is not in the group."""
    groups = object.vertex_groups
    slots = {groups[name].index: slot for slot, name in enumerate(names) if name in groups}
    columns = np.full((len(names), len(object.data.vertices)), _ABSENT, np.float32)
    mesh = bmesh.new()
    try:
        mesh.from_mesh(object.data, face_normals=False)
        layer = mesh.verts.layers.deform.active
        rows = [vertex[layer].items() for vertex in mesh.verts] if layer is not None and slots else []
    finally:
        mesh.free()
    found = [
        (slots[group], vertex, weight) for vertex, row in enumerate(rows) for group, weight in row if group in slots
    ]
    if found:
        slot, vertex, weight = (np.array(part) for part in zip(*found, strict=True))
        columns[slot, vertex] = weight
    return columns


def _put_columns(object, columns: dict[str, np.ndarray]) -> None:
    """Write whole groups; vertices with −1 are in none of them."""
    names, values = list(columns), np.array(list(columns.values()))
    bones = np.broadcast_to(np.arange(len(names)), (values.shape[1], len(names)))
    put_weights(object, names, bones, np.maximum(values.T, 0.0))
    with active_group_kept(object):
        for name, column in columns.items():
            empty = np.flatnonzero(column == 0).tolist()
            if not empty:
                continue
            (object.vertex_groups.get(name) or object.vertex_groups.new(name=name)).add(empty, 0.0, "REPLACE")


def _stored(mesh, name: str, kind) -> np.ndarray | None:
    """The values (N,) of an attribute; None where it is not there as it was made."""
    attribute = mesh.attributes.get(name)
    types = {np.float32: "FLOAT", np.int32: "INT"}
    if attribute is None or attribute.domain != "POINT" or attribute.data_type != types[kind]:
        return None
    values = np.empty(len(mesh.vertices), kind)
    attribute.data.foreach_get("value", values)
    return values


def _record(object, helper: Helper) -> WeightRecord | None:
    stored = object.data.get(RECORD)
    return read_record(stored, str(helper.number), WeightRecord) if hasattr(stored, "keys") else None


def _attribute(number: int, slot: int | None = None) -> str:
    return f"{ATTRIBUTE}{number}" if slot is None else f"{ATTRIBUTE}{number}_{slot}"


def _belongs(name: str, number: int) -> bool:
    return name == _attribute(number) or name.startswith(f"{_attribute(number)}_")


def _checksums(columns: np.ndarray) -> np.ndarray:
    """(N,) int32 of columns (G, N) float32: FNV-1a over the bits of each vertex."""
    result = np.full(columns.shape[1], 2166136261, np.uint32)
    for column in np.ascontiguousarray(columns, np.float32).view(np.uint32):
        result = (result ^ column) * np.uint32(16777619)
    return result.view(np.int32)


def _changes(bones, weights, new_bones, new_weights, bone_count: int):
    """(N, P) sparse: by how much each bone's weight changes, without what is rounding."""
    from scipy import sparse

    def matrix(bones, weights):
        rows = np.repeat(np.arange(len(bones)), bones.shape[1])
        return sparse.coo_matrix((weights.ravel(), (rows, bones.ravel())), shape=(len(bones), bone_count)).tocsr()

    difference = abs(matrix(new_bones, new_weights) - matrix(bones, weights))
    difference.data[difference.data <= _NO_CHANGE] = 0.0
    difference.eliminate_zeros()
    return difference
