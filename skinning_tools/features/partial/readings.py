# SPDX-License-Identifier: GPL-3.0-or-later
"""What solves read from a scene: the target's positions, the bones' motion, and the error as Blender evaluates it."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import bpy
import numpy as np

from ...blender.animation.animation_reader import read_animation
from ...blender.animation.omissions import Omissions
from ...blender.attributes import read_attribute
from ...blender.before_armature import rest_copy
from ...blender.data_blocks import is_alive
from ...blender.fit_poses import bare_skin
from ...blender.measure import measure_rig
from ...blender.object_transform import set_parent_type, world_matrices
from ...blender.preconditions import object_label, unmet
from ...blender.skin_reader import armature_of, bone_matrices, mesh_triangles, uses_envelopes
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.visibility import shown_meanwhile
from ...core.animation import Animation, ErrorMeter
from ...core.errors import BadAnimation, BadMesh
from ...core.geometry import diagonal, transform_points
from .parts import Parts

# Relative to the animation's size: in single precision, a vertex that moves by less stands still.
_STILL = 1e-6


class _Probe(NamedTuple):
    """What ``measure_rig`` compares."""

    objects: tuple[bpy.types.Object, ...]
    armature: bpy.types.Object


class _Positions(NamedTuple):
    """What ``measure_rig`` compares it with."""

    animation: Animation


@contextmanager
def plain_copy(parts: Parts, armature: bpy.types.Object | None = None) -> Iterator[bpy.types.Object]:
    """A copy of the mesh, in no scene and removed at the end, with its rest shape, weights and transform, and only an
    Armature modifier for ``armature`` (default: the one of ``parts``), to show what the bones alone do. Vertices
    without weights follow envelopes if those of the mesh do."""
    with rest_copy(parts.mesh) as copy:
        copy.modifiers.clear()
        modifier = copy.modifiers.new("Armature", "ARMATURE")
        modifier.object = armature or parts.armature
        modifier.use_vertex_groups = True
        modifier.use_bone_envelopes = armature_of(parts.mesh) == parts.armature and uses_envelopes(parts.mesh)
        yield copy


def read_target(
    context: bpy.types.Context, parts: Parts, span: tuple[int | None, int | None, int], omissions: Omissions
) -> Generator[float, None, Animation]:
    """Generator: the target positions of the mesh's vertices, in its object space; returns an Animation, yields
    fractions.

    The mesh's own animation is its evaluation without the Armature modifiers of the armature.
    Raises SkinningError (see ``read_animation``), BadMesh if the number of vertices differs, BadAnimation if nothing
    moves.
    """
    with without_armature(parts), shown_meanwhile(context, [parts.target]):
        source = yield from read_animation(context, parts.target, *span, omissions=omissions)
    bpy.data.meshes.remove(source.mesh)
    animation, mesh = source.animation, parts.mesh.data
    _check_vertex_count(parts, animation.vertex_count)
    frames = animation.frames
    if not parts.own:
        frames = _in_space_of(context, parts, animation)
    if parts.own and still(frames, frames[0]):
        raise BadAnimation(
            f"The {object_label(parts.mesh)} does not move from frame {animation.frame_label(0)} to "
            f"{animation.frame_label(len(frames) - 1)} without its armature. Also select the object with the wanted "
            "animation, or choose it as Target"
        )
    return Animation(frames, mesh_triangles(mesh), animation.frame_numbers, object_label(parts.target))


@contextmanager
def without_armature(parts: Parts) -> Iterator[None]:
    """Context in which the armature does not deform the mesh, if the mesh is the target itself."""
    mesh = parts.mesh
    disabled = []
    if parts.own:
        disabled = [
            modifier.name
            for modifier in mesh.modifiers
            if modifier.type == "ARMATURE" and modifier.object == parts.armature and modifier.show_viewport
        ]
    deforming_parent = parts.own and mesh.parent == parts.armature and mesh.parent_type == "ARMATURE"
    try:
        for name in disabled:
            mesh.modifiers[name].show_viewport = False
        if deforming_parent:
            set_parent_type(mesh, "OBJECT")
        yield
    finally:
        if is_alive(mesh):
            for name in disabled:
                if name in mesh.modifiers:
                    mesh.modifiers[name].show_viewport = True
            if deforming_parent:
                set_parent_type(mesh, "ARMATURE")


def target_positions(parts: Parts, evaluated: bpy.types.Object, where: str) -> np.ndarray:
    """(N, 3) float32 of the evaluated target, in its own space. Raises BadMesh if it has other vertices. where: words
    for when that is, or ""."""
    _check_vertex_count(parts, len(evaluated.data.vertices), where)
    return read_attribute(evaluated.data, "position")


def _in_space_of(context: bpy.types.Context, parts: Parts, animation: Animation) -> np.ndarray:
    """(F, N, 3) the target's positions, from world space to the space of the mesh object."""
    numbers = animation.frame_numbers
    own, other = (world_matrices(context, ob, numbers) for ob in (parts.mesh, parts.target))
    try:
        to_mesh = np.linalg.solve(own, other)
    except np.linalg.LinAlgError:
        raise unmet("NO_SCALE", object=parts.mesh) from None
    if np.array_equal(to_mesh, np.broadcast_to(np.eye(4), to_mesh.shape)):
        return animation.frames
    frames = np.empty_like(animation.frames)
    for row, (positions, matrix) in enumerate(zip(animation.frames, to_mesh, strict=True)):
        frames[row] = transform_points(positions, matrix)
    return frames


def still(positions: np.ndarray, shape: np.ndarray) -> bool:
    """Whether ``positions`` (..., N, 3) are those of the ``shape`` (N, 3), but for rounding."""
    return bool(np.abs(positions - shape).max() <= _STILL * diagonal(shape))


def _check_vertex_count(parts: Parts, count: int, where: str = "") -> None:
    expected = len(parts.mesh.data.vertices)
    if count == expected:
        return
    if parts.own:
        raise BadMesh(
            f"The modifiers of {object_label(parts.mesh)} change its vertices from {expected:,} to {count:,}{where}. "
            "Disable in the viewport the modifiers that add or remove vertices"
        )
    or_action = ", or leave that action out" if where else ""
    remedy = f"Choose a target with the same vertices in the same order{or_action}"
    other = f"target {object_label(parts.target)}{where}"
    raise unmet("OTHER_VERTEX_COUNT", other=other, count=count, object=parts.mesh, expected=expected, remedy=remedy)


@dataclass(frozen=True, eq=False)
class RigMotion:
    """How an armature moves over F frames.

    names: the requested bones; matrices (F, P, 3, 4): their deformation of the rest mesh, in its object's space.
    pose, basis (F, B, 4, 4): poses in the armature's space and own channels of all bones ``all_names``. to_armature
    (F, 4, 4): from the mesh object's space to the armature's.
    """

    names: tuple[str, ...]
    matrices: np.ndarray
    all_names: tuple[str, ...]
    pose: np.ndarray
    basis: np.ndarray
    to_armature: np.ndarray

    @property
    def place(self) -> dict[str, int]:
        """The index of each bone in ``all_names``."""
        return {name: index for index, name in enumerate(self.all_names)}


def read_motion(
    context: bpy.types.Context,
    probe: bpy.types.Object,
    armature: bpy.types.Object,
    names: Sequence[str],
    numbers: np.ndarray,
    omissions: Omissions,
) -> Generator[float, None, RigMotion]:
    """Generator: the motion of the bones ``names`` of ``armature`` at the frames; returns a RigMotion, yields
    fractions.

    probe: a stand-in for the deformed mesh object, of which only the transform counts. omissions: records what Blender
    leaves out.
    """
    found = MotionReader(armature, probe, names)
    try:
        with temporary_scene(context.scene, [probe, armature]) as scene:
            for row, number in enumerate(numbers):
                depsgraph = evaluate_frame(scene, number)
                found.read(depsgraph)
                yield (row + 1) / len(numbers)
            omissions.look_at_drivers(depsgraph)
    except ReferenceError as error:
        raise unmet("REMOVED", object="mesh or its armature") from error
    return found.motion()


class MotionReader:
    """Collects a RigMotion frame by frame; arguments as those of ``read_motion``."""

    def __init__(self, armature: bpy.types.Object, probe: bpy.types.Object, names: Sequence[str]):
        self._armature, self._probe, self._names = armature, probe, tuple(names)
        self._skin = bare_skin(probe, armature, names)
        self._matrices: list[np.ndarray] = []
        self._pose: list[np.ndarray] = []
        self._basis: list[np.ndarray] = []
        self._to_armature: list[np.ndarray] = []

    @property
    def count(self) -> int:
        """The number of frames so far."""
        return len(self._pose)

    @property
    def basis(self) -> np.ndarray:
        """(F, B, 4, 4) the own channels of all bones so far."""
        return np.array(self._basis)

    def read(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Take the depsgraph's current state as the next frame."""
        self._matrices.append(bone_matrices(self._skin, depsgraph))
        evaluated = self._armature.evaluated_get(depsgraph)
        self._pose.append(_of_bones(evaluated, "matrix"))
        self._basis.append(_of_bones(evaluated, "matrix_basis"))
        own = np.array(self._probe.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
        self._to_armature.append(np.linalg.solve(np.array(evaluated.matrix_world, dtype=np.float64), own))

    def motion(self) -> RigMotion:
        """All frames."""
        all_names = tuple(bone.name for bone in self._armature.pose.bones)
        matrices, pose, to_armature = map(np.array, (self._matrices, self._pose, self._to_armature))
        return RigMotion(self._names, matrices, all_names, pose, self.basis, to_armature)


def _of_bones(armature: bpy.types.Object, name: str) -> np.ndarray:
    values = np.empty((len(armature.pose.bones), 4, 4), np.float32)
    armature.pose.bones.foreach_get(name, values.ravel())
    return values.swapaxes(1, 2).astype(np.float64)


def measured(
    probe: bpy.types.Object, armature: bpy.types.Object, animation: Animation
) -> Generator[float, None, ErrorMeter]:
    """Generator: the error of ``probe`` against the animation as Blender evaluates it; returns an ErrorMeter."""
    meter: ErrorMeter = yield from measure_rig(_Probe((probe,), armature), _Positions(animation))
    return meter
