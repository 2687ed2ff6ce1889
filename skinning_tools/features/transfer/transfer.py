# SPDX-License-Identifier: GPL-3.0-or-later
"""Transfer weights from one mesh to others: from their shapes at rest, placed as in the scene, to vertex groups and an
Armature modifier."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import has_attribute, read_attribute, write_attribute
from ...blender.bodies import read_body, stretch_of
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.character import mesh_meant
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_mode, check_own_mesh, check_type, check_unchanged, object_label, unmet
from ...blender.records import read_record, write_record
from ...blender.skin_reader import armature_of
from ...blender.skinnable import attach
from ...blender.weight_tools import edit_vertices, forget_figures, group_mask
from ...blender.wording import counted, vertices_text
from ...core.errors import BadMesh, BadScene
from ...core.progress import Progress, span
from .poses import MOVED_AGAIN, check_posed, notes_on_fit, posed_points
from .settings import TransferSettings
from .targets import Targets, find_targets

if TYPE_CHECKING:
    from scipy import sparse

    from ...core.binding.types import Body

# A custom property of the object: a TransferRecord. And an attribute of its mesh: a number of STATES for each vertex.
RECORD = "skinning_transfer"
ATTRIBUTE = "skinning_transfer"
STATES = {"KEPT": 0, "MATCHED": 1, "FILLED": 2}

# As a share of the diagonal: vertices nearer to the mirror plane are in the middle.
_MIDDLE = 1e-4


@dataclass(frozen=True)
class TransferRecord:
    """The figures of the last transfer to an object, for the panel. bone_count: bones with weights."""

    source: str
    matched: int
    filled: int
    kept: int
    bone_count: int
    influences: int

    def figures(self) -> list[Figure]:
        return [
            Figure("Source", self.source, line=f'weights of "{self.source}"'),
            Figure("Vertices matched", self.matched),
            Figure("Vertices filled in", self.filled),
            Figure("Vertices kept", self.kept, if_any=True),
            Figure("Bones", self.bone_count),
            Figure(
                "Bones a vertex", self.influences, "up to {}", line=f"up to {counted(self.influences, 'bone')} a vertex"
            ),
        ]


@dataclass(frozen=True)
class Transfers(Result):
    """A finished transfer: a record per object, by its name."""

    source_name: str
    records: dict[str, TransferRecord]
    bone_count: int
    notes: tuple[str, ...]
    seconds: float

    def figures(self) -> list[Figure]:
        records = self.records.values()
        whole = TransferRecord(
            self.source_name,
            sum(record.matched for record in records),
            sum(record.filled for record in records),
            sum(record.kept for record in records),
            self.bone_count,
            max(record.influences for record in records),
        )
        return [
            Figure("Object", list(self.records)),
            *whole.figures(),
        ]


@dataclass(frozen=True, eq=False)
class _Task:
    """One mesh that gets weights. body: in the source's space, with the middles of large faces; before: its weights;
    shares (N,): how far they move; middle (N,) bool: vertices that become symmetric."""

    object: bpy.types.Object
    body: "Body"
    before: BoneWeights
    shares: np.ndarray
    middle: np.ndarray


def transfer_chosen(
    context: bpy.types.Context, active: bpy.types.Object | None, **given: Any
) -> background.Steps[Transfers]:
    """``transfer`` between the objects that name and selection give."""
    settings = TransferSettings(**given)
    targets = find_targets(context, active, settings.source, settings.mirror != "NONE")
    return (yield from transfer(context, targets, settings))


def transfer(context: bpy.types.Context, targets: Targets, settings: TransferSettings) -> background.Steps[Transfers]:
    """Generator: give the meshes weights of the source; yields (fraction, stage), returns Transfers.

    Shapes count before their modifiers, at the objects' present places; the source as its bones pose it if the settings
    ask for that. Locked groups stay. The meshes get the source's armature as modifier, and as parent if they have none.
    The computation runs in a worker; the scene is changed at the end, all or nothing. Raises SkinningError for problems
    that the user can fix.
    """
    from ...core.binding.influence_rows import matrix_influences
    from ...core.deform.influences import weight_matrix
    from ...core.transfer import merged_weights, transfer_weights

    begin = time.perf_counter()
    armature = armature_of(targets.source)
    assert armature is not None
    given = read_bone_weights(targets.source, armature)
    if not given.weights.any():
        raise BadScene(f"The {object_label(targets.source)} has no weights of bones to transfer. Bind it first")
    chosen = _chosen(targets.source, given.names, settings.groups)
    source = _body(targets.source)
    posed = posed_points(context, targets.source)
    if posed is not None:
        posed = posed @ stretch_of(targets.source).T
    if settings.use_pose:
        source = replace(source, rest=check_posed(posed, targets.source))
    partners = _partners(given) if settings.mirror != "NONE" else np.arange(len(given.names))
    tasks = [_read(targets.source, mesh_object, armature, settings) for mesh_object in targets.meshes]
    weights = weight_matrix(given.bones, given.weights, len(given.names))
    most = settings.max_influences or int(np.count_nonzero(given.weights, axis=1).max())

    def work(progress: Progress) -> list[tuple]:
        found = []
        for index, task in enumerate(tasks):
            after = transfer_weights(
                source,
                weights[:, partners],
                task.body,
                distance=settings.distance,
                angle=settings.angle,
                lock_rim=settings.lock_rim,
                progress=span(progress, index / len(tasks), (index + 1) / len(tasks)),
            ).first(len(task.shares))
            if task.middle.any():
                symmetric = 0.5 * (after.weights + after.weights[:, partners])
                after = replace(after, weights=_rows_of(task.middle, symmetric, after.weights))
            rows = np.flatnonzero(task.shares > 0)
            shares = np.where(after.rim, 1.0, task.shares)[rows]
            before = weight_matrix(task.before.bones, task.before.weights, len(given.names))
            merged = merged_weights(before[rows], after.weights[rows], shares, chosen, task.before.locked)
            totals = np.asarray(merged.sum(axis=1)).ravel()
            found.append((rows, *matrix_influences(merged, most, task.before.locked), totals, after.matched))
        return found

    found = yield from background.run_in_worker(work)
    for task in tasks:
        check_unchanged(task.object, len(task.shares))
    records, notes, used = {}, [], set()
    for task, (rows, bones, weights, totals, matched) in zip(tasks, found, strict=True):
        unused = None if settings.use_pose else posed
        share = float(matched[rows].mean())
        notes += notes_on_fit(targets.source, task.object, source.rest, unused, task.body.rest, share)
        own = attach(task.object, armature) if task.object != targets.source else []
        own += [MOVED_AGAIN] if settings.use_pose and task.object != targets.source else []
        notes += [f"{task.object.name}: {note}" if len(tasks) > 1 else note for note in own]
        _write(task, rows, bones, weights, totals)
        states = np.full(len(task.shares), STATES["KEPT"])
        states[rows] = np.where(matched[rows], STATES["MATCHED"], STATES["FILLED"])
        write_attribute(task.object.data, ATTRIBUTE, "INT", states)
        moving = set(np.unique(bones[weights > 0]).tolist())
        used |= moving
        counts = np.bincount(states, minlength=len(STATES)).tolist()
        influences = int(np.count_nonzero(weights, axis=1).max(initial=0))
        record = TransferRecord(targets.source.name, counts[1], counts[2], counts[0], len(moving), influences)
        write_record(task.object, RECORD, record)
        records[task.object.name] = record
    return Transfers(targets.source.name, records, len(used), tuple(notes), time.perf_counter() - begin)


def transfer_record(mesh_object: bpy.types.Object) -> TransferRecord | None:
    """The record of the last transfer to an object."""
    return read_record(mesh_object, RECORD, TransferRecord)


def transferred_mesh(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The mesh with transferred weights whose vertices can be selected. Raises BadScene. Cheap enough for a panel."""
    mesh_object = mesh_meant(context, active)
    check_type(mesh_object, "Choose a mesh with transferred weights")
    assert mesh_object is not None
    check_mode(mesh_object)
    check_own_mesh(mesh_object, "its vertices cannot be selected")
    if not has_attribute(mesh_object.data, ATTRIBUTE, "INT", "POINT"):
        raise BadScene(f"The {object_label(mesh_object)} has no transferred weights. Transfer some first")
    return mesh_object


def select_transferred(context: bpy.types.Context, active: bpy.types.Object | None, kind: str) -> str:
    """Select the vertices of one of STATES in Edit Mode; returns the line to report."""
    mesh_object = transferred_mesh(context, active)
    vertices = np.flatnonzero(read_attribute(mesh_object.data, ATTRIBUTE) == STATES[kind])
    if not len(vertices):
        raise BadScene(
            f"No vertex of {object_label(mesh_object)} was {'matched' if kind == 'MATCHED' else 'filled in'}"
        )
    edit_vertices(context, {mesh_object: vertices})
    return f"{mesh_object.name}: {vertices_text(len(vertices))} selected"


def _read(
    source: bpy.types.Object, mesh_object: bpy.types.Object, armature: bpy.types.Object, settings: TransferSettings
) -> _Task:
    before = read_bone_weights(mesh_object, armature)
    shares = np.full(len(before.bones), float(settings.factor))
    if settings.vertex_group:
        shares *= group_mask(mesh_object, settings.vertex_group, settings.invert_vertex_group)
    if not settings.replace:
        shares[before.bound] = 0.0
    body = _body(mesh_object, source)
    rest = body.rest
    middle = np.zeros(len(shares), bool)
    if settings.mirror != "NONE":
        across = (rest[:, 0] if settings.mirror == "NEGATIVE_X" else -rest[:, 0])[: len(shares)]
        middle = np.abs(across) <= _MIDDLE * body.diagonal
        shares[(across < 0) & ~middle] = 0.0
        rest = rest * [-1.0, 1.0, 1.0]
    if not shares.any():
        raise BadScene(_nothing_to_do(mesh_object, settings))
    return _Task(mesh_object, replace(body, rest=rest), before, shares, middle)


def _nothing_to_do(mesh_object: bpy.types.Object, settings: TransferSettings) -> str:
    label = object_label(mesh_object)
    if not settings.factor:
        return "With a factor of 0 no weight changes. Choose a larger one"
    if settings.mirror != "NONE":
        return f"No vertex of {label} to be changed is on the side that mirrored weights are for. Mirror the other way"
    return f"All vertices of {label} that could be changed have weights of bones. Enable Replace to replace them"


def _body(mesh_object: bpy.types.Object, source: bpy.types.Object | None = None) -> "Body":
    """At rest, in the space of ``bodies.stretch_of`` itself, or of the source and then with the middles of large
    faces."""
    try:
        return read_body(mesh_object, source, middles=source is not None)
    except BadMesh as error:
        raise BadMesh(f"The {object_label(mesh_object)} cannot be used. {error}") from None


def _chosen(source: bpy.types.Object, names: Sequence[str], text: str) -> np.ndarray:
    """(P,) bool: the bones that ``text`` names, separated by commas; all if it is empty."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in names or name not in source.vertex_groups:
            raise BadScene(
                f'"{name}" is no vertex group of {object_label(source)} with a deforming bone. Choose others'
            )
    return np.isin(names, wanted) if wanted else np.ones(len(names), bool)


def _partners(given: BoneWeights) -> np.ndarray:
    """(P,) the bone of the other side of each bone, by its name; itself for one in the middle."""
    order = {name: index for index, name in enumerate(given.names)}
    flipped = [bpy.utils.flip_name(name) for name in given.names]
    for index in np.unique(given.bones[given.weights > 0]):
        if flipped[index] not in order:
            raise unmet(
                "NO_COUNTERPART",
                bone=given.names[index],
                other=flipped[index],
                does="deforms",
                remedy="Rename bones, or add it (Armature > Symmetrize)",
            )
    return np.array([order.get(name, index) for index, name in enumerate(flipped)])


def _rows_of(chosen: np.ndarray, first: "sparse.csr_matrix", second: "sparse.csr_matrix") -> "sparse.csr_matrix":
    """The rows ``chosen`` (N,) bool of ``first`` and all others of ``second``."""
    from ...core.sparse_rows import scaled_rows

    return (scaled_rows(first, chosen.astype(float)) + scaled_rows(second, (~chosen).astype(float))).tocsr()


def _write(task: _Task, rows: np.ndarray, bones: np.ndarray, weights: np.ndarray, totals: np.ndarray) -> None:
    """Store rows (n, K) that sum to 1 with their ``totals`` (n,)."""
    sums = task.before.totals.copy()
    sums[rows] = totals
    before = replace(task.before, totals=sums)
    write_bone_weights(task.object, before, bones, weights, rows, keep_totals=True)
    forget_figures(task.object)
    task.object.data.update()
