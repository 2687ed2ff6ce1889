# SPDX-License-Identifier: GPL-3.0-or-later
"""Transfer weights from one mesh to others: from their shapes at rest, placed as in the scene, to vertex groups and an
Armature modifier."""

import time
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import has_attribute, read_attribute, write_attribute
from ...blender.bone_weights import write_bone_weights
from ...blender.character import mesh_meant
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_mode, check_own_mesh, check_type, check_unchanged, object_label
from ...blender.records import read_record, write_record
from ...blender.skinnable import attach
from ...blender.weight_tools import edit_vertices, forget_figures, forget_lost_vertices
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene
from ...core.progress import Progress, span
from .poses import MOVED_AGAIN, notes_on_fit
from .settings import TransferSettings
from .targets import Targets, find_targets
from .tasks import Rows, Source, Task, read_source, read_task, transferred

# A custom property of the object: a TransferRecord. And an attribute of its mesh: a number of STATES for each vertex.
RECORD = "skinning_transfer"
ATTRIBUTE = "skinning_transfer"
STATES = {"KEPT": 0, "MATCHED": 1, "FILLED": 2}


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
    begin = time.perf_counter()
    source = read_source(context, targets, settings)
    tasks = [read_task(targets.source, mesh_object, source.armature, settings) for mesh_object in targets.meshes]

    def work(progress: Progress) -> list[Rows]:
        count = len(tasks)
        return [
            transferred(source, task, settings, span(progress, index / count, (index + 1) / count))
            for index, task in enumerate(tasks)
        ]

    found = yield from background.run_in_worker(work)
    for task in tasks:
        check_unchanged(task.object, len(task.shares))
    records, notes, used = {}, [], set()
    for task, rows in zip(tasks, found, strict=True):
        own = _attach(source, task, rows, settings)
        notes += [f"{task.object.name}: {note}" if len(tasks) > 1 else note for note in own]
        _write(task, rows)
        used |= rows.moving
        records[task.object.name] = _record(targets.source, task, rows)
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


def _attach(source: Source, task: Task, found: Rows, settings: TransferSettings) -> list[str]:
    """Give the mesh its Armature modifier and parent; returns what the user should check."""
    unused = None if settings.use_pose else source.posed
    share = float(found.matched[found.rows].mean())
    notes = list(notes_on_fit(source.object, task.object, source.body.rest, unused, task.body.rest, share))
    if task.object != source.object:
        notes += attach(task.object, source.armature)
        notes += [MOVED_AGAIN] if settings.use_pose else []
    return notes


def _write(task: Task, found: Rows) -> None:
    sums = task.before.totals.copy()
    sums[found.rows] = found.totals
    before = replace(task.before, totals=sums)
    write_bone_weights(task.object, before, found.bones, found.weights, found.rows, keep_totals=True)
    forget_figures(task.object)
    forget_lost_vertices(task.object, found.rows)
    task.object.data.update()


def _record(source: bpy.types.Object, task: Task, found: Rows) -> TransferRecord:
    """Store how each vertex got its weights, and the figures of one mesh."""
    states = np.full(len(task.shares), STATES["KEPT"])
    states[found.rows] = np.where(found.matched[found.rows], STATES["MATCHED"], STATES["FILLED"])
    write_attribute(task.object.data, ATTRIBUTE, "INT", states)
    counts = np.bincount(states, minlength=len(STATES)).tolist()
    influences = int(np.count_nonzero(found.weights, axis=1).max(initial=0))
    record = TransferRecord(source.name, counts[1], counts[2], counts[0], len(found.moving), influences)
    write_record(task.object, RECORD, record)
    return record
