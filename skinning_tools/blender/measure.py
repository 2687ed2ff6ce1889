# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures the error of a written rig in Blender's own evaluation."""

from collections.abc import Generator, Sequence
from typing import Any, Protocol

import bpy
import numpy as np

from ..core.animation import Animation, ErrorMeter, unit_scale
from .attributes import read_attribute
from .background import Steps, part_of, run_in_worker
from .preconditions import unmet
from .temporary_scene import evaluate_frame, temporary_scene

# Relative to the largest singular value of a world matrix; below this, Blender's inverse is not usable.
_SINGULAR = 1e-7
# Normals take twenty times as long to compare as positions: in so many frames at most, and fewer of large meshes.
_MOST_FRAMES, _FEWEST_FRAMES, _POSITIONS = 16, 2, 200_000


class Rig(Protocol):
    """What is measured: mesh objects that bones of the armature object move."""

    @property
    def armature(self) -> bpy.types.Object: ...

    @property
    def objects(self) -> Sequence[bpy.types.Object]: ...


class Source(Protocol):
    """What has the positions to compare with."""

    @property
    def animation(self) -> Animation: ...


class RigMeter(ErrorMeter):
    """The error of all vertices together; ``parts`` has the error of each object, in the same scale.

    normals: whether to measure those, too, which takes longer; in some frames only.
    """

    def __init__(self, scale: float, vertex_counts: list[int], normals: bool = False):
        super().__init__(scale, sum(vertex_counts))
        self._angles: list[np.ndarray] | None = [] if normals else None
        self.parts = [ErrorMeter(scale, count) for count in vertex_counts] if len(vertex_counts) > 1 else [self]
        self._counts = vertex_counts

    def add(self, expected: np.ndarray, actual: np.ndarray, to_world: np.ndarray | None = None) -> None:
        super().add(expected, actual, to_world)
        start = 0
        for part, count in zip(self.parts, self._counts, strict=True):
            if part is not self:
                part.add(expected[start : start + count], actual[start : start + count], to_world)
            start += count

    def adding_normals(self, expected: np.ndarray, actual: np.ndarray, triangles: np.ndarray) -> Steps[None]:
        """Generator: compare the normals of one frame: both (N, 3), object space."""
        from ..core.deform.surface import normal_errors

        angles = yield from run_in_worker(lambda _: normal_errors(actual, expected, triangles))
        if self._angles is not None:
            self._angles.append(angles.astype(np.float32))

    def frames_for_normals(self, count: int) -> set[int]:
        """Those of ``count`` frames in which to compare normals, spread evenly."""
        if self._angles is None:
            return set()
        most = min(_MOST_FRAMES, max(_FEWEST_FRAMES, _POSITIONS // len(self.vertex_error)), count)
        return {(2 * number + 1) * count // (2 * most) for number in range(most)}

    @property
    def normals(self) -> dict[str, float] | None:
        """The mean angle between normals in degrees, and what 90 % are within; None where none were compared."""
        angles = np.concatenate(self._angles) if self._angles else np.zeros(0)
        if not len(angles):
            return None
        return {"mean": float(angles.mean(dtype=np.float64)), "within": float(np.quantile(angles, 0.9))}


def measure_rig(rig: Rig, source: Source, meter: RigMeter | None = None) -> Generator[Any, None, RigMeter]:
    """Generator: compare ``rig`` (a Rig) with ``source`` (a SourceAnimation) at every frame; returns a RigMeter.

    meter: the one to continue with, with the same rig playing another clip.

    Yields the fraction done, or (fraction, stage). The rig is evaluated in a scene of its own, so that the source, with
    its caches and simulations, is not evaluated again and the user's frame stays; the scene is removed when the
    generator ends or is closed. At a frame where the object is scaled to nothing, Blender cannot deform it in its own
    space: there only the visible error in world space counts. E_RMS is in the object's own space, the vertices' errors
    are distances in world space.
    Raises BadScene if the rig, or one of its parts, was removed meanwhile.
    """
    animation = source.animation
    actual = np.empty((animation.vertex_count, 3), dtype=np.float32)
    try:
        counts = [len(ob.data.vertices) for ob in rig.objects]
        if meter is None:
            meter = RigMeter(unit_scale(animation.frames), counts)
        with temporary_scene(bpy.context.scene, [rig.armature, *rig.objects]) as scene:
            with_normals = meter.frames_for_normals(len(animation.frame_numbers))
            for row, frame in enumerate(animation.frame_numbers):
                depsgraph, start = evaluate_frame(scene, frame), 0
                for ob, count in zip(rig.objects, counts, strict=True):
                    evaluated = ob.evaluated_get(depsgraph)
                    read_attribute(evaluated.data, "position", actual[start : start + count])
                    start += count
                expected = animation.frames[row]
                linear = np.array(evaluated.matrix_world, dtype=np.float64)[:3, :3]
                meter.add(expected, _visible_part(actual, expected, linear), linear)
                if row in with_normals:
                    comparing = meter.adding_normals(expected, actual, animation.triangles)
                    yield from part_of(comparing, row / len(animation.frames), row / len(animation.frames))
                yield (row + 1) / len(animation.frames)
    except ReferenceError as error:
        raise unmet("REMOVED", object="rig") from error
    return meter


def _visible_part(actual: np.ndarray, expected: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """``actual`` (N, 3) itself, or with its error projected to the visible directions if the world matrix's ``linear``
    part is singular."""
    _, values, directions = np.linalg.svd(linear)
    if values[2] > _SINGULAR * values[0]:
        return actual
    shown = directions[values > _SINGULAR * values[0]]
    return expected + (actual - expected.astype(np.float64)) @ shown.T @ shown
