# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid binding of the control points of curves and surfaces: a hook for each bone holds the points nearest to it.

Blender gives these points no vertex groups. Two hooks on one point act one after the other, which is no blend of the
two; so a point follows one bone, and the spline itself blends between its points. The matrix of a hook is the inverse
of the bone in the binding pose, as the smooth skinning chapter stores it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np
from mathutils import Matrix

from ...blender import background
from ...blender.bodies import deforming_bones, read_body, read_skeleton, stretch_of
from ...blender.bone_selection import selected_bones
from ...blender.control_points import HOOKED_TYPES
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_mode, check_movable, check_posed, check_visible, object_label, unmet
from ...blender.skin_reader import meshes_of
from ...blender.skinnable import check_armature, deforming_modifiers, deforming_parent, parent_to_armature
from ...core.errors import BadMesh, BadScene
from ...core.progress import Progress, checkpoint, span
from .in_pose import present_matrices, read_stand
from .settings import BindSettings

if TYPE_CHECKING:
    from ...core.binding.types import Body
    from .targets import Targets


@dataclass(frozen=True)
class Hooked(Result):
    """Curves and surfaces whose control points hooks hold. held, kept: numbers of points; bones: that hold points."""

    armature_name: str
    objects: tuple[str, ...]
    held: int
    kept: int
    bones: int
    notes: tuple[str, ...]
    seconds: float

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", list(self.objects)),
            Figure("Armature", self.armature_name, line=""),
            Figure("Control points held", self.held),
            Figure("Control points kept", self.kept, if_any=True),
            Figure("Bones", self.bones),
        ]


@dataclass(frozen=True, eq=False)
class _Task:
    """A curve or surface. slots: for each control point, its indices as hooks count them; fresh (N,) bool: points to
    hold; matrices (P, 4, 4): of the bones, from the rest pose to the pose that is bound, in the object's space."""

    object: bpy.types.Object
    body: "Body"
    others: "tuple[Body, ...]"
    skeleton: object
    slots: list[range]
    fresh: np.ndarray
    matrices: np.ndarray


def is_hooked(targets: "Targets") -> bool:
    """Whether hooks bind the targets, and not weights."""
    return any(ob.type in HOOKED_TYPES for ob in targets.meshes)


def check_hookable(
    context: bpy.types.Context, targets: "Targets", method: str, as_objects: bool, in_pose: bool
) -> None:
    """Raise BadScene if hooks cannot bind the targets to the armature. Cheap enough for a panel."""
    armature = targets.armature
    check_armature(armature)
    if in_pose:
        check_posed(armature)
        check_visible(context.scene, context.view_layer, armature)
    for ob in targets.meshes:
        label = object_label(ob)
        if ob.type not in HOOKED_TYPES:
            raise BadScene(f"Curves and surfaces are bound apart from meshes. Bind the {label} by itself")
        if method != "RIGID" or as_objects:
            raise BadScene(
                f"Blender has no weights for the control points of curves and surfaces, as of {label}. Choose the "
                "method Rigid without As Objects, with which a hook holds each of them to its nearest bone, or convert "
                "the object to a mesh (Object > Convert > Mesh)"
            )
        check_mode(ob)
        check_visible(context.scene, context.view_layer, ob)
        check_movable(ob, label, "it can get no hooks")
        stretch_of(ob)
        movers = [f'the modifier "{modifier.name}"' for modifier in deforming_modifiers(ob)]
        movers += ["its parent of type Armature"] * (deforming_parent(ob) is not None)
        movers += [f'its parent, the bone "{ob.parent_bone}"'] * (ob.parent is not None and ob.parent_type == "BONE")
        if movers:
            raise BadScene(f"The {label} is already moved by {movers[0]}. Remove that first, or it would move twice")


def bind_to_hooks(context: bpy.types.Context, targets: "Targets", settings: BindSettings) -> background.Steps["Hooked"]:
    """Generator: hold each control point of curves and surfaces to the bone nearest to it; yields (fraction, stage),
    returns a Hooked.

    Points that a hook of the armature's bones holds already stay so, unless ``settings.replace``. The objects get the
    armature as parent if they have none. After ``check_hookable``; raises SkinningError for problems that the user can
    fix.
    """
    begin = time.perf_counter()
    armature = targets.armature
    names = deforming_bones(armature)
    free = np.isin(names, selected_bones(armature)) if settings.selected_bones else np.ones(len(names), bool)
    if not free.any():
        raise unmet("NO_BONE_SELECTED", armature=armature, remedy="Select deforming bones in Pose Mode")
    tasks = [_read(context, ob, armature, names, settings) for ob in targets.meshes]
    if not any(task.fresh.any() for task in tasks):
        raise BadScene(
            f'Hooks of "{armature.name}" hold all control points of {object_label(targets.meshes[0])}. Enable Replace '
            "to replace them"
        )

    def work(progress: Progress) -> list[np.ndarray]:
        from ...core.binding import bind as core
        from ...core.binding.segments import segments_of
        from ...core.binding.types import joined

        found = []
        for index, task in enumerate(tasks):
            part = span(progress, index / len(tasks), (index + 1) / len(tasks))
            checkpoint(part, 0.0, "Finding the nearest bones")
            whole = joined(task.body, *task.others)
            segments = segments_of(whole, task.skeleton, all_bones=settings.all_bones, among=free)
            rows = core.bind(
                task.body, task.skeleton, "RIGID", segments=segments, whole_parts=settings.whole_parts, progress=part
            )
            found.append(rows[0][:, 0])
        return found

    found = yield from background.run_in_worker(work)
    for task in tasks:
        if [len(slots) for slots in _slots(task.object)] != [len(slots) for slots in task.slots]:
            raise unmet("EDITED", object=task.object)
    notes, used = [], set()
    for task, bones in zip(tasks, found, strict=True):
        used |= _write(task, armature, names, bones, settings.replace)
        parent_to_armature(task.object, armature)
        if task.object.type == "CURVE" and task.object.data.dimensions == "2D":
            notes.append(f"{task.object.name} is a 2D curve and stays in its plane: set its Shape to 3D")
    return Hooked(
        armature.name,
        tuple(task.object.name for task in tasks),
        sum(int(task.fresh.sum()) for task in tasks),
        sum(int((~task.fresh).sum()) for task in tasks),
        len(used),
        tuple(notes),
        time.perf_counter() - begin,
    )


def _read(
    context: bpy.types.Context,
    ob: bpy.types.Object,
    armature: bpy.types.Object,
    names: Sequence[str],
    settings: BindSettings,
) -> _Task:
    from ...core.binding.types import Body

    points, edges, triangles = _control_net(ob)
    if not len(points):
        raise BadScene(f"The {object_label(ob)} has no control points. Choose a curve that has some")
    slots = _slots(ob)
    fresh = np.ones(len(points), bool)
    if not settings.replace:
        held = {index for hook in bone_hooks(ob, armature) for index in hook.vertex_indices}
        fresh = np.array([held.isdisjoint(own) for own in slots])
    matrices = np.tile(np.eye(3, 4), (len(names), 1, 1))
    if settings.in_pose:
        if settings.replace and bone_hooks(ob, armature):
            raise BadScene(
                f'Hooks of "{armature.name}" already move the {object_label(ob)}, so that it would jump if they were '
                "replaced in this pose. Apply these modifiers first, or bind without Bind in Current Pose"
            )
        matrices = present_matrices(context, ob, armature, names)
    others = []
    for mesh in meshes_of(armature, context.view_layer):
        there = read_stand(context, mesh, armature, names).points if settings.in_pose else None
        try:
            others.append(read_body(mesh, ob, there))
        except BadMesh:
            # It is not to be bound.
            continue
    body = Body(points @ stretch_of(ob).T, triangles, edges)
    skeleton = read_skeleton(ob, armature, names, matrices)
    return _Task(ob, body, tuple(others), skeleton, slots, fresh, matrices)


def bone_hooks(ob: bpy.types.Object, armature: bpy.types.Object) -> list[bpy.types.HookModifier]:
    """The hooks of an object whose targets are bones of the armature."""
    return [m for m in ob.modifiers if m.type == "HOOK" and m.object == armature and m.subtarget in armature.data.bones]


def _write(task: _Task, armature: bpy.types.Object, names: Sequence[str], bones: np.ndarray, replace: bool) -> set[str]:
    """Make a hook for each bone that holds points of the object; returns the names of these bones."""
    ob = task.object
    for hook in bone_hooks(ob, armature) if replace else ():
        ob.modifiers.remove(hook)
    # After a modifier that makes geometry, hooks would no longer move control points.
    place = next((i for i, modifier in enumerate(ob.modifiers) if modifier.type != "HOOK"), len(ob.modifiers))
    world, rig = (np.array(each.matrix_world, dtype=np.float64) for each in (ob, armature))
    used = set()
    for bone in np.unique(bones[task.fresh]).tolist():
        name = names[bone]
        hook = ob.modifiers.new(name, "HOOK")
        made = hook.name
        hook.object, hook.subtarget = armature, name
        hook.vertex_indices_set(
            [slot for point in np.flatnonzero(task.fresh & (bones == bone)) for slot in task.slots[point]]
        )
        rest = np.array(armature.data.bones[name].matrix_local, dtype=np.float64)
        moved = np.vstack([task.matrices[bone], [0, 0, 0, 1]])
        # From the bone where it is bound, M A R in the world, to the object.
        bound = world @ moved @ np.linalg.solve(world, rig @ rest)
        hook.matrix_inverse = Matrix(np.linalg.solve(bound, world).tolist())
        ob.modifiers.move(ob.modifiers.find(made), place)
        place += 1
        used.add(name)
    return used


def _slots(ob: bpy.types.Object) -> list[range]:
    """For each control point, the indices by which hooks know it: three with the handles of a Bézier curve."""
    found, start = [], 0
    for spline in ob.data.splines:
        width, count = (3, len(spline.bezier_points)) if spline.type == "BEZIER" else (1, len(spline.points))
        found += [range(start + width * each, start + width * (each + 1)) for each in range(count)]
        start += width * count
    return found


def _control_net(ob: bpy.types.Object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """points (N, 3) float64, edges (E, 2) along each spline, and triangles (T, 3) of the nets of surfaces."""
    points, edges, triangles, start = [np.zeros((0, 3))], [np.zeros((0, 2), int)], [np.zeros((0, 3), int)], 0
    for spline in ob.data.splines:
        own = spline.bezier_points if spline.type == "BEZIER" else spline.points
        points.append(np.array([each.co[:3] for each in own], dtype=np.float64).reshape(-1, 3))
        across = spline.point_count_v if ob.type == "SURFACE" else 1
        net = start + np.arange(len(own)).reshape(across, -1)
        for axis, closes in ((1, spline.use_cyclic_u), (0, spline.use_cyclic_v and ob.type == "SURFACE")):
            following = np.roll(net, -1, axis)
            pairs = np.stack([net, following], axis=-1)
            edges.append((pairs if closes else np.delete(pairs, -1, axis)).reshape(-1, 2))
        quads = np.stack([net[:-1, :-1], net[:-1, 1:], net[1:, 1:], net[1:, :-1]], axis=-1).reshape(-1, 4)
        triangles += [quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]
        start += len(own)
    return np.concatenate(points), np.concatenate(edges), np.concatenate(triangles)
