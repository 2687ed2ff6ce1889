# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays the chosen clips: the positions of the target, and the motion of the bones."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import bpy
import numpy as np
from mathutils import Matrix

from ...blender.animation.clips import Clip, playing
from ...blender.animation.omissions import Omissions
from ...blender.preconditions import object_label, unmet
from ...blender.skin_reader import mesh_triangles
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...blender.wording import listed
from ...core.animation import Animation, check_finite
from ...core.errors import BadAnimation
from ...core.geometry import transform_points
from ...core.memory import check_available
from .chosen_clips import Chosen
from .parts import Parts
from .readings import MotionReader, RigMotion, still, target_positions, without_armature
from .rest_key import key_muted

# Further armatures, each with what it plays in each clip.
Added = Sequence[tuple[bpy.types.Object, dict[Clip | None, Clip]]]

_Step = Callable[[bpy.types.Scene], None]

# Blender gets a turn after so many seconds.
_TURN = 0.2


class Player:
    """Plays clips in a temporary scene. extra: further armatures, each with what it plays in each clip."""

    def __init__(
        self,
        context: bpy.types.Context,
        parts: Parts,
        chosen: Chosen,
        probe: bpy.types.Object,
        extra: Added = (),
    ):
        self._context, self._parts, self._chosen, self._probe, self._extra = context, parts, chosen, probe, extra

    @contextmanager
    def _playing(self, clip: Clip | None) -> Iterator[None]:
        chosen, parts = self._chosen, self._parts
        with ExitStack() as stack:
            stack.enter_context(key_muted(parts.mesh) if chosen.taught else without_armature(parts))
            stack.enter_context(playing(parts.armature, clip, chosen.companions.get(clip, ()), chosen.reset))
            for armature, clips in self._extra:
                stack.enter_context(playing(armature, clips.get(clip), (), chosen.reset))
            yield

    def play(
        self,
        clips: Sequence[Clip],
        objects: Sequence[bpy.types.Object],
        visit: Callable[[Clip, int, bpy.types.Depsgraph, np.ndarray], None],
    ) -> Generator[float, None, None]:
        """Generator: call ``visit(clip, row, depsgraph, target positions in the mesh's space)`` for each frame of the
        clips; yields fractions. Between two turns everything is as the user left it."""
        pieces: list[tuple[Clip | None, list[_Step]]] = [
            (clip, [partial(self._visit, visit, clip, row) for row in range(len(clip.numbers))]) for clip in clips
        ]
        yield from self._play(pieces, objects)

    def play_poses(
        self, poses: np.ndarray, visit: Callable[[int, bpy.types.Depsgraph, np.ndarray], None]
    ) -> Generator[float, None, None]:
        """Generator: call ``visit(row, depsgraph, target positions)`` for each of the ``poses`` (n, B, 4, 4), the own
        channels of all bones; yields fractions. Nothing plays meanwhile."""
        bones = self._parts.armature.pose.bones

        def take(row: int, scene: bpy.types.Scene) -> None:
            for bone, matrix in zip(bones, poses[row], strict=True):
                bone.matrix_basis = Matrix(matrix)
            depsgraph = evaluate_frame(scene, scene.frame_current)
            visit(row, depsgraph, self._target(depsgraph, "a random pose"))

        yield from self._play([(None, [partial(take, row) for row in range(len(poses))])], ())

    def _visit(
        self,
        visit: Callable[[Clip, int, bpy.types.Depsgraph, np.ndarray], None],
        clip: Clip,
        row: int,
        scene: bpy.types.Scene,
    ) -> None:
        depsgraph = evaluate_frame(scene, clip.numbers[row])
        visit(clip, row, depsgraph, self._target(depsgraph, f'frame {clip.numbers[row]} of the action "{clip.name}"'))

    def _play(
        self,
        pieces: Sequence[tuple[Clip | None, list[_Step]]],
        objects: Sequence[bpy.types.Object],
    ) -> Generator[float, None, None]:
        """Take the steps of each piece, in turns between which the user's state is restored."""
        shown = dict.fromkeys([self._probe, self._parts.target, self._parts.armature, *objects])
        for armature, _ in self._extra:
            shown[armature] = None
        total, done = sum(len(steps) for _, steps in pieces), 0
        try:
            with temporary_scene(self._context.scene, shown, own_time=True) as scene:
                for clip, steps in pieces:
                    waiting = steps[::-1]
                    while waiting:
                        begin = time.perf_counter()
                        with self._playing(clip):
                            while waiting and time.perf_counter() - begin < _TURN:
                                waiting.pop()(scene)
                                done += 1
                        yield done / total
        except ReferenceError as error:
            raise unmet("REMOVED", object="mesh, its armature or an action") from error

    def _target(self, depsgraph: bpy.types.Depsgraph, where: str) -> np.ndarray:
        parts = self._parts
        evaluated = parts.target.evaluated_get(depsgraph)
        positions = target_positions(parts, evaluated, f" at {where}")
        check_finite(positions, where.removeprefix("frame "), object_label(parts.target))
        if parts.own:
            return positions
        own = np.array(self._probe.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
        try:
            to_mesh = np.linalg.solve(own, np.array(evaluated.matrix_world, dtype=np.float64))
        except np.linalg.LinAlgError:
            raise unmet("NO_SCALE", object=parts.mesh) from None
        if np.array_equal(to_mesh, np.eye(4)):
            return positions
        return transform_points(positions, to_mesh)


def read_clips(
    context: bpy.types.Context,
    parts: Parts,
    chosen: Chosen,
    probe: bpy.types.Object,
    names: Sequence[str],
    omissions: Omissions,
    pose_count: int = 0,
) -> Generator[float, None, tuple[Animation, RigMotion]]:
    """Generator: the target's positions and the motion of the bones ``names``, of all used clips one after the other,
    then of ``pose_count`` random poses mixed of their frames; yields fractions.

    Raises NotEnoughMemory.
    """
    count, vertices = sum(chosen.lengths) + pose_count, len(parts.mesh.data.vertices)
    bones, label = len(parts.armature.pose.bones), object_label(parts.mesh)
    what = f"The frames of {len(chosen.used)} actions of {label} ({vertices} vertices, {count} frames)"
    check_available(count * (12 * vertices + 96 * len(names) + 256 * bones), what)
    frames = np.empty((count, vertices, 3), np.float32)
    found = MotionReader(parts.armature, probe, names)

    def visit(clip: Clip, row: int, depsgraph: bpy.types.Depsgraph, positions: np.ndarray) -> None:
        frames[found.count] = positions
        found.read(depsgraph)
        if row == len(clip.numbers) - 1:
            omissions.look_at_drivers(depsgraph)

    def visit_pose(row: int, depsgraph: bpy.types.Depsgraph, positions: np.ndarray) -> None:
        frames[found.count] = positions
        found.read(depsgraph)

    player = Player(context, parts, chosen, probe)
    yield from player.play(chosen.used, (), visit)
    if pose_count:
        from ...core.decomposition.clip_importance import mixed_poses

        yield from player.play_poses(mixed_poses(found.basis, pose_count), visit_pose)
    numbers = [number for clip in chosen.used for number in clip.numbers] + [chosen.used[0].numbers[0]] * pose_count
    triangles = mesh_triangles(parts.mesh.data)
    return Animation(frames, triangles, np.array(numbers, float), object_label(parts.target)), found.motion()


def check_moving(parts: Parts, chosen: Chosen, frames: np.ndarray) -> None:
    """Raise BadAnimation if the mesh is its own target and stands still in the ``frames`` of all used clips."""
    if parts.own and all(still(positions, frames[0]) for positions in frames[1 : sum(chosen.lengths)]):
        raise BadAnimation(
            f"The {object_label(parts.mesh)} does not move in the actions "
            f"{listed([clip.name for clip in chosen.used])}. Also select the object with the wanted animation, or "
            "choose it as Target"
        )
