# SPDX-License-Identifier: GPL-3.0-or-later
"""Bind meshes to an armature: from their rest shape and its bones at rest to vertex groups and an Armature modifier."""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background
from ...blender.bodies import read_skeleton
from ...blender.bone_weights import write_bone_weights
from ...blender.control_points import SKIN_TYPES, point_count
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_type, check_unchanged, object_label
from ...blender.put_back import put_back_on_failure
from ...blender.records import read_record, write_record
from ...blender.skinnable import attach, check_armature, check_mesh, check_skinnable, place_hidden
from ...blender.weight_tools import forget_lost_vertices
from ...blender.wording import counted
from ...core.errors import BadScene
from ...core.progress import Progress, checkpoint, span
from .hooks import bind_to_hooks, check_hookable, is_hooked
from .in_pose import (
    check_in_pose,
    check_same_pose,
    collapsed,
    mended_note,
    movements_since,
    seen_before,
    stretch_notes,
    write_rest,
)
from .rigid_objects import check_parentable, parent_to_bones
from .settings import BindSettings, binds_objects
from .targets import Targets, find_targets
from .tasks import BoundMesh, Task, read_bodies, read_tasks
from .volumes import write_volumes

if TYPE_CHECKING:
    from ...core.binding.binding_pose import PosedBinding
    from ...core.binding.containment import Volume
    from ...core.binding.types import Skeleton

# A custom property of a bound object: a BindRecord.
RECORD = "skinning_bind"


@dataclass(frozen=True)
class BindRecord:
    """The figures of the last binding for the panel. bone_count: bones with weights on this object; left_out, idle:
    names of bones that stand for nothing in the body, and of the others that move no mesh of the binding; moved: where
    bound in a pose, how far any vertex moved there at most, by Blender's evaluation, in scene units."""

    armature: str
    method: str
    vertex_count: int
    kept_count: int
    bone_count: int
    influences: int
    seconds: float
    left_out: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    moved: tuple[float, ...] = ()

    def figures(self) -> list[Figure]:
        most = f"up to {counted(self.influences, 'bone')} a vertex"
        return [
            Figure("Vertices bound", self.vertex_count),
            Figure("Vertices kept", self.kept_count, if_any=True),
            Figure("Bones", self.bone_count),
            Figure("Bones a vertex", self.influences, "up to {}", line=most),
            Figure("Bones left out", list(self.left_out), if_any=True),
            Figure("Bones without weights", list(self.idle), if_any=True),
            *([Figure("Largest movement in the pose", max(self.moved), "{:.3g}", length=True)] if self.moved else []),
        ]


@dataclass(frozen=True)
class Bound(Result):
    """A finished binding: a record per object, by its name. complete: names of the objects without a vertex to bind,
    which keep their weights. bone_count: over all bound meshes."""

    armature_name: str
    records: dict[str, BindRecord]
    complete: tuple[str, ...]
    bone_count: int
    notes: tuple[str, ...]
    seconds: float

    def figures(self) -> list[Figure]:
        records = list(self.records.values())
        together = replace(
            records[0],
            vertex_count=sum(record.vertex_count for record in records),
            kept_count=sum(record.kept_count for record in records),
            bone_count=self.bone_count,
            influences=max(record.influences for record in records),
            moved=tuple(distance for record in records for distance in record.moved),
        )
        return [
            Figure("Object", list(self.records)),
            Figure("Armature", self.armature_name, line=""),
            *together.figures(),
            Figure("Nothing to bind", list(self.complete), if_any=True),
        ]


def check_bindable(
    context: bpy.types.Context, armature_name: str = "", settings: BindSettings | None = None
) -> Targets:
    """The targets that ``bind`` would bind. Raises BadScene with the reason if it cannot. Cheap enough for a panel.

    settings: the scene's, or those of ``bind``; None: the defaults."""
    settings = BindSettings() if settings is None else settings
    targets = find_targets(context, armature_name, binds_objects(settings))
    _check(context, targets, settings)
    return targets


def _check(context: bpy.types.Context, targets: Targets, settings: BindSettings) -> None:
    if is_hooked(targets):
        check_hookable(context, targets, settings.method, settings.as_objects, settings.in_pose)
    elif binds_objects(settings):
        check_parentable(context, targets, settings.in_pose)
    else:
        check_skinnable(context, targets.meshes, targets.armature)
        if settings.in_pose:
            check_in_pose(context, targets)


def bind_chosen(context: bpy.types.Context, active: bpy.types.Object | None, **given: Any) -> background.Steps:
    """``bind`` for the targets that name and selection give."""
    settings = BindSettings(**given)
    targets = find_targets(context, settings.armature, binds_objects(settings))
    return (yield from bind(context, targets, settings))


def bind(context: bpy.types.Context, targets: Targets, settings: BindSettings) -> background.Steps:
    """Generator: bind the meshes, as one body; yields (fraction, stage), returns a Bound, or the Parented of
    ``parent_to_bones`` where the settings ask for that, or the Hooked of ``bind_to_hooks`` for curves and surfaces.

    Binding uses the bones' rest pose, whatever their present pose, and the present places of the objects; or with
    ``settings.in_pose`` the present pose, in which nothing moves: the meshes then get new shapes at rest. Vertices
    with weights of deforming bones keep them, unless ``settings.replace``; locked groups always keep them and count
    toward the limit of influences. A mesh whose vertices all have weights is left as it is; raises BadScene if that is
    true of every mesh. Every other mesh gets groups of all deforming bones, one Armature modifier before the modifiers
    that refine the mesh, and the armature as its parent if it had none. An existing modifier stays in its place and is
    turned on.
    The computation runs in a worker; the scene is changed at the end, all or nothing. Raises SkinningError for problems
    that the user can fix.
    """
    begin = time.perf_counter()
    place_hidden(context, targets.armature)
    _check(context, targets, settings)
    if is_hooked(targets):
        return (yield from bind_to_hooks(context, targets, settings))
    if binds_objects(settings):
        return (yield from parent_to_bones(context, targets, settings.in_pose))
    tasks, complete = read_tasks(context, targets, settings)
    if not tasks:
        raise _all_complete([mesh.object for mesh in complete], targets.armature)
    meshes = [mesh for task in tasks for mesh in task.meshes]
    stands = {mesh.object: mesh.stand for mesh in (*meshes, *complete) if mesh.stand is not None}
    seen = seen_before(context, stands) if stands else []
    found, posed = yield from background.run_in_worker(partial(_computed, tasks, complete))
    for mesh in (*meshes, *complete):
        check_unchanged(mesh.object, len(mesh.fresh))
    for (mesh_object, stand), each in zip(stands.items(), posed, strict=True):
        check_same_pose(context, mesh_object, targets.armature, meshes[0].before.names, stand)
        if len(each.stuck):
            raise collapsed(mesh_object, each.stuck)
    with put_back_on_failure(context, [mesh.object for mesh in (*meshes, *complete)]):
        bound = _stored(context, targets, settings, begin, tasks, complete, found, posed, seen)
    for mesh in meshes:
        forget_lost_vertices(mesh.object, np.flatnonzero(mesh.fresh))
    return bound


def _stored(
    context: bpy.types.Context,
    targets: Targets,
    settings: BindSettings,
    begin: float,
    tasks: Sequence[Task],
    complete: Sequence[BoundMesh],
    found: Sequence[tuple[np.ndarray, np.ndarray]],
    posed: "Sequence[PosedBinding]",
    seen: Sequence[np.ndarray],
) -> Bound:
    """Write what was ``_computed``. seen: the ``seen_positions`` before; begin: when the binding began."""
    meshes = [mesh for task in tasks for mesh in task.meshes]
    every = [*meshes, *complete]
    fits: Sequence[PosedBinding | None] = posed or [None] * len(every)
    notes = [note for task in tasks for note in task.notes]
    used: dict[str, set[str]] = {}
    for mesh, (bones, weights), fitted in zip(meshes, found, fits, strict=False):
        own = [*mesh.notes, *attach(mesh.object, targets.armature)]
        _write(mesh, targets.armature, bones, weights)
        if fitted is not None:
            write_rest(mesh.object, fitted.to_rest)
            own += [mended_note(fitted.mended)] if len(fitted.mended) else []
            own += stretch_notes(mesh.object, mesh.stand)
        notes += [f"{mesh.object.name}: {note}" if len(meshes) > 1 else note for note in own]
        used[mesh.object.name] = {mesh.before.names[bone] for bone in np.unique(bones[weights > 0])}
    for mesh, fitted in zip(complete, fits[len(meshes) :], strict=True):
        count = len(mesh.fresh)
        notes.append(f"{mesh.object.name}: all {count:,} vertices have weights and keep them")
        notes += [f"{mesh.object.name}: {note}" for note in attach(mesh.object, targets.armature)]
        if fitted is not None:
            write_rest(mesh.object, fitted.to_rest)
    moved, unmeasured = movements_since(context, seen, [mesh.object for mesh in every if mesh.stand is not None])
    moving = set().union(*used.values())
    left_out = _idle((name for task in tasks for name in task.left_out), moving)
    idle = _idle((name for task in tasks for name in task.free), moving.union(left_out))
    records = {}
    for index, (mesh, (_, weights)) in enumerate(zip(meshes, found, strict=True)):
        name, count = mesh.object.name, int(mesh.fresh.sum())
        records[name] = BindRecord(
            targets.armature.name,
            settings.method,
            count,
            len(mesh.fresh) - count,
            len(used[name]),
            int((weights > 0).sum(axis=1).max()),
            time.perf_counter() - begin,
            left_out,
            idle,
            tuple(moved[index : index + 1]),
        )
        write_record(mesh.object, RECORD, records[name])
    return Bound(
        targets.armature.name,
        records,
        tuple(mesh.object.name for mesh in complete),
        len(moving),
        (*notes, *unmeasured),
        time.perf_counter() - begin,
    )


def _idle(names: Iterable[str], busy: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name not in busy))


def _computed(
    tasks: Sequence[Task], complete: Sequence[BoundMesh], progress: Progress
) -> "tuple[list[tuple[np.ndarray, np.ndarray]], list[PosedBinding]]":
    """bones and weights (n, K) of the vertices to bind, for each mesh of the tasks; and the binding of each of these
    meshes and of the complete ones in its pose, none at rest."""
    parts = [span(progress, index / len(tasks), (index + 1) / len(tasks)) for index in range(len(tasks))]
    found = [rows for task, part in zip(tasks, parts, strict=True) for rows in task.weights(part)]
    meshes = [mesh for task in tasks for mesh in task.meshes]
    if meshes[0].stand is None:
        return found, []
    nothing = np.zeros((0, 1), int), np.zeros((0, 1))
    rows = [*found, *[nothing] * len(complete)]
    posed = [mesh.posed(*each) for mesh, each in zip((*meshes, *complete), rows, strict=True)]
    # Where a blend collapses, a vertex follows one bone.
    mended = zip(meshes, posed, strict=False)
    return [(each.bones[mesh.fresh], each.weights[mesh.fresh]) for mesh, each in mended], posed


def bind_record(mesh_object: bpy.types.Object) -> BindRecord | None:
    """The record of the last binding of an object."""
    return read_record(mesh_object, RECORD, BindRecord)


def generate_volumes(
    context: bpy.types.Context, active: bpy.types.Object | None, kind: str, armature: str
) -> background.Steps:
    """Generator: replace the volumes around the bones of the chosen armature, as wide as its meshes are there; yields
    (fraction, stage), returns the armature's name and the number of volumes. kind: of core.binding.containment.

    Raises SkinningError for problems that the user can fix.
    """
    from ...core.binding.types import joined

    targets = find_targets(context, armature)
    place_hidden(context, targets.armature)
    check_armature(targets.armature)
    for mesh_object in targets.meshes:
        check_type(mesh_object, "Select the mesh that the volumes should fit", SKIN_TYPES)
        check_mesh(context, mesh_object)
    first = targets.meshes[0]
    body = joined(*read_bodies(targets.meshes))
    given = read_skeleton(first, targets.armature)

    def work(progress: Progress) -> "tuple[Skeleton, list[Volume]]":
        from ...core.binding.containment import fitted_volumes
        from ...core.binding.distances import BoneDistances
        from ...core.binding.segments import segments_of

        checkpoint(progress, 0.0, "Reading the skeleton")
        skeleton = segments_of(body, given).skeleton
        distances = BoneDistances(body, skeleton, span(progress, 0.5, 1.0))
        return skeleton, fitted_volumes(body, distances, skeleton, kind)

    skeleton, volumes = yield from background.run_in_worker(work)
    count = write_volumes(context, targets.meshes, targets.armature, skeleton, volumes)
    return targets.armature.name, count


def _all_complete(objects: Sequence[bpy.types.Object], armature: bpy.types.Object) -> BadScene:
    """The error if no mesh has a vertex to bind."""
    count = sum(point_count(mesh_object) for mesh_object in objects)
    place = object_label(objects[0]) if len(objects) == 1 else f"the {len(objects)} meshes"
    where = f'All {count:,} vertices of {place} have weights of bones of "{armature.name}"'
    return BadScene(f"{where}. Enable Replace to replace them")


def _write(mesh: BoundMesh, armature: bpy.types.Object, bones: np.ndarray, weights: np.ndarray) -> None:
    """Store the weights, with groups of all deforming bones. The active group stays active."""
    groups = mesh.object.vertex_groups
    active = groups.active.name if groups.active is not None else _first_name(armature, mesh.before.names)
    for name in mesh.before.names:
        if name not in groups:
            groups.new(name=name)
    write_bone_weights(mesh.object, mesh.before, bones, weights, np.flatnonzero(mesh.fresh))
    groups.active = groups[active]
    if mesh.object.type == "MESH":
        mesh.object.data.update()


def _first_name(armature: bpy.types.Object, names: Sequence[str]) -> str:
    active = armature.data.bones.active
    return active.name if active is not None and active.name in names else names[0]
