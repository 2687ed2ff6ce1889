# SPDX-License-Identifier: GPL-3.0-or-later
"""What binding reads: the meshes of a character as one body, and the bones that its armature has for them."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.bodies import deforming_bones, read_body, read_skeleton
from ...blender.bone_selection import selected_bones
from ...blender.bone_weights import BoneWeights, locked_bones
from ...blender.preconditions import object_label, unmet
from ...blender.skin_reader import meshes_of
from ...blender.vertex_groups import read_weights
from ...blender.wording import counted, vertices_text
from ...core.errors import BadMesh, BadScene
from ...core.progress import Progress, checkpoint, span
from .in_pose import Stand, read_stand
from .settings import BindSettings
from .targets import Targets
from .volumes import read_volumes

if TYPE_CHECKING:
    from ...core.binding.binding_pose import PosedBinding
    from ...core.binding.segments import Segments
    from ...core.binding.types import Body, Skeleton

# A body that is this many times larger or smaller than its skeleton has other units.
_OTHER_UNITS = 20.0


@dataclass(frozen=True, eq=False)
class BoundMesh:
    """A mesh to bind. before: the stored weights of all deforming bones (P); free (P,) bool: the bones that may get
    weights; fresh (N,) bool: the vertices to bind; stand: in the pose in which it is bound, None at rest."""

    object: bpy.types.Object
    before: BoneWeights
    free: np.ndarray
    fresh: np.ndarray
    notes: list[str]
    stand: Stand | None = None

    def with_locked(self, bones: np.ndarray, weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows (n, K) for the vertices to bind, of those (N, K) of the whole mesh, merged with the weights of locked
        groups."""
        from ...core.binding.influence_rows import tidy_influences

        locked = self.before.locked
        bones, weights = bones[self.fresh], weights[self.fresh]
        if not locked.any():
            return bones, weights
        stored_bones, stored_weights = self.before.bones[self.fresh], self.before.weights[self.fresh]
        held = np.where(locked[stored_bones], stored_weights, 0.0)
        return tidy_influences(np.hstack([bones, stored_bones]), np.hstack([weights, held]), most, locked)

    def posed(self, bones: np.ndarray, weights: np.ndarray) -> "PosedBinding":
        """The binding of the whole mesh in its pose, with rows (n, K) for the vertices to bind."""
        from ...core.binding.binding_pose import bind_posed
        from ...core.binding.influence_rows import padded_influences
        from ...core.deform import convex_influences

        assert self.stand is not None
        width = max(bones.shape[1], self.before.bones.shape[1])
        all_bones, all_weights = padded_influences(self.before.bones, self.before.weights, width)
        # As they will be stored: in single precision.
        given_bones, given = padded_influences(bones, weights.astype(np.float32).astype(np.float64), width)
        all_bones[self.fresh], all_weights[self.fresh] = given_bones, given
        all_bones, all_weights = convex_influences(all_bones, all_weights, len(self.fresh))
        held = ~self.fresh | (self.before.locked[all_bones] & (all_weights > 0)).any(axis=1)
        return bind_posed(all_bones, all_weights, self.stand.matrices, self.stand.before, held)


@dataclass(frozen=True, eq=False)
class Task:
    """Meshes that are bound together, as their free bones are the same ones.

    bodies: one for each mesh, with the middles of its large faces; others: of what else the armature deforms; skeleton,
    limits: of all P deforming bones;
    volumes: of the free ones, by their rank among these; is_cage: the one mesh is a lattice.
    All in the space of ``bodies.stretch_of`` the first mesh.
    """

    meshes: tuple[BoundMesh, ...]
    bodies: "tuple[Body, ...]"
    others: "tuple[Body, ...]"
    skeleton: "Skeleton"
    limits: np.ndarray | None
    volumes: list
    settings: BindSettings
    notes: list[str]
    is_cage: bool

    @cached_property
    def segments(self) -> "Segments":
        """What of the skeleton counts, judged on all meshes of the armature."""
        from ...core.binding.segments import segments_of
        from ...core.binding.types import joined

        character = joined(*self.bodies, *self.others)
        all_bones = self.settings.all_bones or bool(self.volumes)
        return segments_of(character, self.skeleton, all_bones=all_bones, among=self.meshes[0].free)

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the free bones."""
        return tuple(self.skeleton.names[bone] for bone in np.flatnonzero(self.meshes[0].free))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the free bones that stand for nothing in the body."""
        return tuple(name for name in self.free if name not in self.segments.skeleton.names)

    def weights(self, progress: Progress) -> list[tuple[np.ndarray, np.ndarray]]:
        """bones and weights (n, K) of each mesh's vertices to bind; the bones are all deforming ones.

        The meshes are one body, so that they agree where they meet. With RIGID each is one alone: its parts end with
        it.
        """
        from ...core.binding import bind as core
        from ...core.binding.containment import Falloff
        from ...core.binding.tears import t_intersections
        from ...core.binding.types import joined

        if self.settings.method != "RIGID" and not self.is_cage:
            for mesh, body in zip(self.meshes, self.bodies, strict=True):
                count = len(t_intersections(body))
                if count:
                    mesh.notes.append(f"opens at {counted(count, 'T-intersection')} when it bends")
        falloff = Falloff(self.settings.falloff_inside, self.settings.falloff_outside)
        checkpoint(progress, 0.0, "Reading the skeleton")
        segments, most = self.segments, self.settings.max_influences
        wholes = self.bodies if self.settings.method == "RIGID" else (joined(*self.bodies),)
        owners = np.repeat(np.arange(len(self.bodies)), [len(body.rest) for body in self.bodies])
        found = []
        for index, whole in enumerate(wholes):
            found.append(
                core.bind(
                    whole,
                    self.skeleton,
                    self.settings.method,
                    segments=segments,
                    owners=owners if len(wholes) == 1 else None,
                    max_influences=most,
                    whole_parts=self.settings.whole_parts,
                    distance_limits=self.limits,
                    volumes=self.volumes or None,
                    falloff=falloff,
                    smooth=self.settings.smooth or self.settings.method != "CONTAINMENT",
                    progress=span(span(progress, 0.2, 1.0), index / len(wholes), (index + 1) / len(wholes)),
                )
            )
        if len(found) < len(self.bodies):
            ends = np.cumsum([len(body.rest) for body in self.bodies])[:-1]
            found = list(zip(*(np.split(rows, ends) for rows in found[0]), strict=True))
        counts = [len(mesh.fresh) for mesh in self.meshes]
        return [
            mesh.with_locked(bones[:count], weights[:count], most)
            for mesh, count, (bones, weights) in zip(self.meshes, counts, found, strict=True)
        ]


def read_tasks(
    context: bpy.types.Context, targets: Targets, settings: BindSettings
) -> tuple[list[Task], list[BoundMesh]]:
    """The tasks of a binding, and the meshes whose vertices all keep their weights. Raises BadScene, BadMesh."""
    complete: list[BoundMesh] = []
    together: dict[tuple, list[BoundMesh]] = {}
    for mesh_object in targets.meshes:
        mesh = _read_mesh(context, mesh_object, targets.armature, settings)
        if not mesh.fresh.any():
            complete.append(mesh)
        else:
            # A lattice is no part of a body's surface, but a cage around it.
            alone = mesh_object.name_full if mesh_object.type == "LATTICE" else ""
            together.setdefault((mesh.free.tobytes(), alone), []).append(mesh)
    return [_task(context, meshes, targets, settings) for meshes in together.values()], complete


def read_bodies(objects: Sequence[bpy.types.Object], standing: Sequence[np.ndarray | None] = ()) -> "tuple[Body, ...]":
    """Each mesh, in the space of ``bodies.stretch_of`` the first one; standing: where the vertices of each are instead
    of at rest, or None. Raises BadScene, BadMesh."""
    found = []
    for ob, points in zip_longest(objects, standing):
        try:
            found.append(read_body(ob, objects[0], points, middles=True))
        except BadMesh as error:
            raise BadMesh(f"The {object_label(ob)} cannot be bound. {error}") from None
    return tuple(found)


def _read_mesh(
    context: bpy.types.Context, mesh_object: bpy.types.Object, armature: bpy.types.Object, settings: BindSettings
) -> BoundMesh:
    """Read one mesh for binding."""
    from ...core.deform.influences import LEAST_TOTAL_WEIGHT

    label = object_label(mesh_object)
    names = deforming_bones(armature)
    locked = locked_bones(mesh_object, names)
    stored = read_weights(mesh_object, names)
    # With totals of 1, locked weights keep their values, and the others share the rest.
    before = BoneWeights(names, *stored, np.ones(len(stored[0])), locked)
    fresh = ~(stored[1].sum(axis=1) > LEAST_TOTAL_WEIGHT)
    notes = []
    if settings.replace:
        fresh[:] = True
    elif fresh.any() and not fresh.all():
        notes.append(f"earlier weights of {vertices_text(int(len(fresh) - fresh.sum()))} kept")
    if fresh.any() and locked.all():
        raise BadScene(f'The vertex groups of all bones of "{armature.name}" are locked in {label}. Unlock some')
    if locked.any():
        notes.append(f"{counted(int(locked.sum()), 'locked group')} kept")
    free = ~locked
    if fresh.any() and settings.selected_bones:
        free &= np.isin(names, selected_bones(armature))
        if not free.any():
            remedy = "Select deforming bones in Pose Mode whose vertex groups are not locked"
            raise unmet("NO_BONE_SELECTED", armature=armature, remedy=remedy)
    stand = read_stand(context, mesh_object, armature, names) if settings.in_pose else None
    return BoundMesh(mesh_object, before, free, fresh, notes, stand)


def _task(context: bpy.types.Context, meshes: list[BoundMesh], targets: Targets, settings: BindSettings) -> Task:
    armature, first, names = targets.armature, meshes[0].object, meshes[0].before.names
    objects = [mesh.object for mesh in meshes]
    stands = [mesh.stand for mesh in meshes]
    bodies = read_bodies(objects, [stand.points if stand is not None else None for stand in stands])
    others = []
    for ob in dict.fromkeys([*targets.meshes, *meshes_of(armature, context.view_layer)]):
        if ob not in objects and ob.type == "MESH":
            with suppress(BadMesh):  # it is not to be bound
                there = read_stand(context, ob, armature, names).points if settings.in_pose else None
                others.append(read_body(ob, first, there))
    matrices = stands[0].matrices if stands[0] is not None else None
    skeleton = read_skeleton(first, armature, names, matrices)
    free = np.flatnonzero(meshes[0].free)
    volumes: list = []
    notes: list[str] = []
    if settings.method == "CONTAINMENT":
        moved = None if matrices is None else matrices[free]
        volumes, notes = read_volumes(first, armature, [names[bone] for bone in free], moved)
    notes += _size_notes((*bodies, *others), skeleton)
    limits = _limits(armature, names, settings)
    return Task(
        tuple(meshes), bodies, tuple(others), skeleton, limits, volumes, settings, notes, first.type == "LATTICE"
    )


def _size_notes(bodies: "tuple[Body, ...]", skeleton: "Skeleton") -> list[str]:
    """What to say where the meshes and the skeleton have other units."""
    mesh = np.ptp(np.concatenate([body.rest for body in bodies]), axis=0).max()
    # Not their tails: importers of files without tails draw bones of any length.
    joints = np.ptp(skeleton.heads, axis=0).max()
    if 0 < _OTHER_UNITS * mesh < joints:
        times = f"{joints / mesh:,.0f}"
        return [f"the skeleton is {times} times as large as the mesh: apply their scales, or check the units"]
    bones = np.ptp(np.concatenate([skeleton.heads, skeleton.tails]), axis=0).max()
    if 0 < _OTHER_UNITS * bones < mesh:
        times = f"{mesh / bones:,.0f}"
        return [f"the mesh is {times} times as large as the skeleton: apply their scales, or check the units"]
    return []


def _limits(armature: bpy.types.Object, names: Sequence[str], settings: BindSettings) -> np.ndarray | None:
    """(P,) the reach of each bone in scene units; None without limits. The smaller of two limits counts."""
    limits = np.full(len(names), settings.distance_limit or np.inf)
    if settings.use_envelopes:
        scale = np.abs(np.linalg.det(np.array(armature.matrix_world, dtype=np.float64)[:3, :3])) ** (1 / 3)
        bones = [armature.data.bones[name] for name in names]
        reach = [bone.envelope_distance + max(bone.head_radius, bone.tail_radius) for bone in bones]
        limits = np.minimum(limits, scale * np.array(reach))
    return None if np.isinf(limits).all() else limits
