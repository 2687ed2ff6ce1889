# SPDX-License-Identifier: GPL-3.0-or-later
"""Bind meshes to an armature: from their rest shape and its bones at rest to vertex groups and an Armature modifier."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import background
from ...blender.bodies import deforming_bones, other_triangles, read_body, read_skeleton, stretch_of
from ...blender.bone_weights import BoneWeights, locked_bones, write_bone_weights
from ...blender.center_records import native_modifier
from ...blender.preconditions import object_label
from ...blender.records import read_record, write_record
from ...blender.skin_reader import mesh_triangles, rest_positions
from ...blender.vertex_groups import read_weights
from ...blender.wording import counted, vertices_text
from ...core.errors import BadMesh, BadScene
from ...core.progress import span
from .rigid_objects import check_parentable, parent_to_bones
from .settings import BindSettings, binds_objects
from .targets import (
    Targets,
    ancestors,
    check_armature,
    check_mesh,
    check_skinnable,
    deforming_parent,
    find_targets,
    place_hidden,
)
from .volumes import read_volumes, write_volumes

if TYPE_CHECKING:
    from ...core.binding.types import Body, Skeleton

# A custom property of a bound object: a BindRecord.
RECORD = "skinning_bind"

# An Armature modifier goes before these: they refine, simulate or shade what it has moved.
_AFTER_ARMATURE = {
    *("SUBSURF", "MULTIRES", "SOLIDIFY", "BEVEL", "TRIANGULATE", "DECIMATE", "WIREFRAME", "EDGE_SPLIT", "REMESH"),
    *("SMOOTH", "CORRECTIVE_SMOOTH", "LAPLACIANSMOOTH", "DISPLACE", "WEIGHTED_NORMAL", "NORMAL_EDIT"),
    *("CLOTH", "SOFT_BODY", "COLLISION", "SURFACE", "DYNAMIC_PAINT", "EXPLODE", "OCEAN", "PARTICLE_SYSTEM"),
}


@dataclass(frozen=True)
class BindRecord:
    """What the panel shows of the last binding. bone_count: bones that move some vertex."""

    armature: str
    method: str
    vertex_count: int
    kept_count: int
    bone_count: int
    influences: int
    seconds: float


@dataclass(frozen=True)
class Bound:
    """A finished binding: a record per object, by its name. complete: names of those that had no vertex to bind, and
    keep their weights. bone_count: of all that were bound together."""

    armature_name: str
    records: dict[str, BindRecord]
    complete: tuple[str, ...]
    bone_count: int
    notes: tuple[str, ...]
    seconds: float

    @property
    def influences(self) -> int:
        """The most of a vertex."""
        return max(record.influences for record in self.records.values())

    def summary(self) -> str:
        """The result in one line."""
        names = list(self.records)
        vertices = sum(record.vertex_count for record in self.records.values())
        parts = [
            f"{names[0] if len(names) == 1 else f'{len(names)} meshes'}: "
            f"{vertices_text(vertices)} bound to {counted(self.bone_count, 'bone')}, "
            f"up to {counted(self.influences, 'bone')} a vertex, {self.seconds:.1f} s",
            *self.notes,
        ]
        return ". ".join(parts)


@dataclass(frozen=True, eq=False)
class _Task:
    """What one mesh is bound by. before: what the groups of all deforming bones (P) hold, as it is stored; fresh (N,)
    bool: the vertices to bind; skeleton: of the bones whose groups are not locked."""

    object: bpy.types.Object
    before: BoneWeights
    fresh: np.ndarray
    body: "Body"
    skeleton: "Skeleton"
    limits: np.ndarray | None
    volumes: list
    notes: list[str]


def check_bindable(context, armature_name: str = "", as_objects: bool = False) -> Targets:
    """What ``bind`` would bind. Raises BadScene with the reason why it cannot. Cheap enough for a panel."""
    targets = find_targets(context, armature_name, as_objects)
    (check_parentable if as_objects else check_skinnable)(context, targets)
    return targets


def bind_chosen(context, object, **given) -> background.Steps:
    """``bind`` of what the user means."""
    settings = BindSettings(**given)
    targets = find_targets(context, settings.armature, binds_objects(settings))
    return (yield from bind(context, targets, settings))


def bind(context, targets: Targets, settings: BindSettings) -> background.Steps:
    """Generator: bind the meshes, each by itself; yields (fraction, stage), returns a Bound, or the Parented of
    ``parent_to_bones`` where the settings ask for that.

    The bones' rest pose counts, whatever pose they are in, and where the objects stand now. Vertices that have weights
    of deforming bones keep them, unless ``settings.replace``; locked groups do in either case, and the limit of
    influences counts them. A mesh all of whose vertices have weights keeps them all; BadScene where that is so of every
    mesh. Every other mesh has groups of all deforming bones afterwards, one Armature modifier, placed
    before those that refine the mesh, and the armature as its parent where it had none. A modifier that is there
    already stays where it is, and is switched on.
    The computation runs in a worker; the scene is changed at the end, all or nothing. Raises SkinningError for all
    that the user can mend.
    """
    from ...core.binding import bind as core

    if binds_objects(settings):
        return (yield from parent_to_bones(context, targets))
    begin = time.perf_counter()
    settings.check()
    place_hidden(context, targets.armature)
    check_skinnable(context, targets)
    tasks, complete = [], []
    for object in targets.meshes:
        task = _read(object, targets.armature, settings)
        (complete if task is None else tasks).append(task or object)
    if not tasks:
        raise _all_complete(complete, targets.armature)

    def work(progress):
        found = []
        for index, task in enumerate(tasks):
            part = span(progress, index / len(tasks), (index + 1) / len(tasks))
            bones, weights = core.bind(
                task.body,
                task.skeleton,
                settings.method,
                max_influences=settings.max_influences,
                whole_parts=settings.whole_parts,
                distance_limits=task.limits,
                volumes=task.volumes or None,
                progress=part,
            )
            found.append(_with_locked(task, bones, weights, settings.max_influences))
        return found

    found = yield from background.run_in_worker(work)
    for task in tasks:
        if len(task.object.data.vertices) != len(task.fresh):
            raise BadScene(f"The {object_label(task.object)} was edited while it was being bound. Start again")
    used, records, notes = set(), {}, []
    for task, (bones, weights) in zip(tasks, found, strict=True):
        own = [*task.notes, *_attach(task.object, targets.armature)]
        _write(task, targets.armature, bones, weights)
        notes += [f"{task.object.name}: {note}" if len(tasks) > 1 else note for note in own]
        moving = {task.before.names[bone] for bone in np.unique(bones[weights > 0])}
        used |= moving
        count = int(task.fresh.sum())
        records[task.object.name] = BindRecord(
            targets.armature.name,
            settings.method,
            count,
            len(task.fresh) - count,
            len(moving),
            int((weights > 0).sum(axis=1).max()),
            time.perf_counter() - begin,
        )
    for task in tasks:
        write_record(task.object, RECORD, records[task.object.name])
    for object in complete:
        notes.append(f"{object.name}: all {len(object.data.vertices):,} vertices have weights and keep them")
        notes += [f"{object.name}: {note}" for note in _attach(object, targets.armature)]
    names = tuple(object.name for object in complete)
    return Bound(targets.armature.name, records, names, len(used), tuple(notes), time.perf_counter() - begin)


def bind_record(object) -> BindRecord | None:
    """What is known of the last binding of an object."""
    return read_record(object, RECORD, BindRecord)


def generate_volumes(context, object, kind: str, armature: str) -> background.Steps:
    """Generator: volumes around the bones of the armature that the user means, as wide as its meshes are there, in
    place of those that it has; yields (fraction, stage), returns the armature's name and their number. kind: of
    core.binding.containment.

    Raises SkinningError for all that the user can mend.
    """
    targets = find_targets(context, armature)
    place_hidden(context, targets.armature)
    check_armature(targets.armature)
    for object in targets.meshes:
        check_mesh(context, object)
    first = targets.meshes[0]
    body = _joined(targets.meshes)
    skeleton = read_skeleton(first, targets.armature)

    def work(progress):
        from ...core.binding.containment import fitted_volumes
        from ...core.binding.distances import BoneDistances

        return fitted_volumes(body, BoneDistances(body, skeleton, progress), skeleton, kind)

    volumes = yield from background.run_in_worker(work)
    count = write_volumes(context, targets.meshes, targets.armature, skeleton, volumes)
    return targets.armature.name, count


def _all_complete(objects, armature) -> BadScene:
    """What is said where no mesh has a vertex to bind."""
    count = sum(len(object.data.vertices) for object in objects)
    place = object_label(objects[0]) if len(objects) == 1 else f"the {len(objects)} meshes"
    where = f'All {count:,} vertices of {place} have weights of bones of "{armature.name}"'
    return BadScene(f"{where}. Enable Replace to make them anew")


def _read(object, armature, settings: BindSettings) -> _Task | None:
    """None where all vertices have weights that are to be kept."""
    from ...core.deform.influences import LEAST_TOTAL_WEIGHT

    label = object_label(object)
    names = deforming_bones(armature)
    locked = locked_bones(object, names)
    stored = read_weights(object, names)
    # With totals of 1 locked weights stay what they are, and the others share what these leave.
    before = BoneWeights(names, *stored, np.ones(len(stored[0])), locked)
    fresh = ~(stored[1].sum(axis=1) > LEAST_TOTAL_WEIGHT)
    notes = []
    if settings.replace:
        fresh[:] = True
    elif not fresh.any():
        return None
    elif not fresh.all():
        notes.append(f"{len(fresh) - fresh.sum():,} that had weights keep them")
    free = tuple(name for name, is_locked in zip(names, locked, strict=True) if not is_locked)
    if not free:
        raise BadScene(f'The vertex groups of all bones of "{armature.name}" are locked in {label}. Unlock some')
    if locked.any():
        notes.append(f"{counted(int(locked.sum()), 'locked group')} kept")
    skeleton = read_skeleton(object, armature, free)
    volumes = []
    if settings.method == "CONTAINMENT":
        volumes, found = read_volumes(object, armature, free)
        notes += found
    limits = _limits(armature, free, settings)
    return _Task(object, before, fresh, _body(object), skeleton, limits, volumes, notes)


def _body(object) -> "Body":
    try:
        return read_body(object)
    except BadMesh as error:
        raise BadMesh(f"The {object_label(object)} cannot be bound. {error}") from None


def _joined(objects) -> "Body":
    """All meshes as one body, in the space that the first one is bound in."""
    from ...core.binding.types import Body

    first = objects[0]
    if len(objects) == 1:
        return _body(first)
    stretch, world = stretch_of(first), np.array(first.matrix_world, dtype=np.float64)
    points, triangles, others, count = [], [], [], 0
    for ob in objects:
        to_first = np.linalg.solve(world, np.array(ob.matrix_world, dtype=np.float64))
        points.append((rest_positions(ob.data) @ to_first[:3, :3].T + to_first[:3, 3]) @ stretch.T)
        own = mesh_triangles(ob.data)
        triangles.append(own + count)
        others.append(other_triangles(ob.data, own, points[-1]) + count)
        count += len(points[-1])
    return Body(np.concatenate(points), np.concatenate(triangles), np.zeros((0, 2), int), np.concatenate(others))


def _limits(armature, names, settings: BindSettings) -> np.ndarray | None:
    """(P,) how far each bone reaches, in scene units; None without limits. Of two limits the smaller one counts."""
    limits = np.full(len(names), settings.distance_limit or np.inf)
    if settings.use_envelopes:
        scale = np.abs(np.linalg.det(np.array(armature.matrix_world, dtype=np.float64)[:3, :3])) ** (1 / 3)
        bones = [armature.data.bones[name] for name in names]
        reach = [bone.envelope_distance + max(bone.head_radius, bone.tail_radius) for bone in bones]
        limits = np.minimum(limits, scale * np.array(reach))
    return None if np.isinf(limits).all() else limits


def _with_locked(task: _Task, bones, weights, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, K) of all deforming bones for the vertices to bind, beside the weights of their locked groups."""
    from ...core.binding.influence_rows import tidy_influences

    locked = task.before.locked
    bones, weights = np.flatnonzero(~locked)[bones[task.fresh]], weights[task.fresh]
    if not locked.any():
        return bones, weights
    stored_bones, stored_weights = task.before.bones[task.fresh], task.before.weights[task.fresh]
    held = np.where(locked[stored_bones], stored_weights, 0.0)
    return tidy_influences(np.hstack([bones, stored_bones]), np.hstack([weights, held]), most, locked)


def _write(task: _Task, armature, bones, weights) -> None:
    """Store the weights, with groups of all deforming bones. The active group stays the active one."""
    groups = task.object.vertex_groups
    active = groups.active.name if groups.active is not None else _first_name(armature, task.before.names)
    for name in task.before.names:
        if name not in groups:
            groups.new(name=name)
    write_bone_weights(task.object, task.before, bones, weights, np.flatnonzero(task.fresh))
    groups.active = groups[active]
    task.object.data.update()


def _first_name(armature, names) -> str:
    active = armature.data.bones.active
    return active.name if active is not None and active.name in names else names[0]


def _attach(object, armature) -> list[str]:
    """Let the armature deform the object by its vertex groups, and be its parent; returns notes for the user."""
    notes = []
    if deforming_parent(object) != armature:
        own = [m for m in object.modifiers if m.type == "ARMATURE" and m.object == armature]
        modifier = next((m for m in own if m.show_viewport), own[0] if own else None)
        if modifier is None:
            modifier = _new_modifier(object, armature)
        elif not (modifier.show_viewport and modifier.show_render) and native_modifier(object) is None:
            modifier.show_viewport = modifier.show_render = True
            notes.append(f'the modifier "{modifier.name}" was switched on')
        if not modifier.use_vertex_groups:
            modifier.use_vertex_groups = True
            notes.append(f'the modifier "{modifier.name}" uses vertex groups now')
    if object.parent is None and object not in ancestors(armature):
        object.parent = armature
        object.matrix_parent_inverse = armature.matrix_world.inverted()
    others = sum(ob.data == object.data for ob in bpy.data.objects) - 1
    if others:
        notes.append(f"{counted(others, 'other object')} with the same mesh got the weights, too")
    return notes


def _new_modifier(object, armature):
    modifier = object.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature
    modifier.use_vertex_groups, modifier.use_bone_envelopes = True, False
    place = next((i for i, m in enumerate(object.modifiers) if m.type in _AFTER_ARMATURE), None)
    if place is not None:
        # Modifiers that are pinned to the end, such as Smooth by Angle, stay behind a new one.
        name = modifier.name
        object.modifiers.move(object.modifiers.find(name), place)
        modifier = object.modifiers[name]
    return modifier
