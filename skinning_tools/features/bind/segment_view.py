# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws the segments that a binding takes for the bones over the 3D views. While off, no handler draws anything.

Between redraws it keeps no reference to Blender's data, only the session-wide number of the armature object.
"""

from dataclasses import dataclass
from typing import Any

import bpy
import gpu
import numpy as np

from ...blender import background
from ...blender.bodies import stretch_of, to_mesh
from ...blender.data_blocks import object_again
from ...blender.figures import Figure, Result
from ...blender.skinnable import check_skinnable
from ...blender.translation import translated
from ...blender.wording import counted
from ...core.errors import BadScene
from ...core.geometry import transform_points
from ...core.progress import Progress, checkpoint
from ...ui.drawn_view import DrawnView
from ...ui.view_drawing import OUTLINE_COLOR, View, draw_discs, draw_lines, draw_note
from .settings import BindSettings
from .targets import find_targets
from .tasks import read_tasks

SEGMENT_COLOR, LEFT_OUT_COLOR = (0.2, 0.9, 1.0, 1.0), (0.6, 0.6, 0.6, 1.0)
LINE_WIDTH, JOINT_RADIUS = 2.5, 4.0


@dataclass(frozen=True, eq=False)
class ShownSegments(Result):
    """ends (Q, 2, 3): head and tail of each bone that gets weights, in the space of the armature object; left_out
    (R, 2, 3): of those that stand for nothing in the body, as the armature has them, and left_names their names.
    name, uid: of the armature object."""

    name: str
    uid: int
    ends: np.ndarray
    left_out: np.ndarray
    left_names: tuple[str, ...]

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.name),
            Figure("Segments", len(self.ends)),
            Figure("Bones left out", list(self.left_names), if_any=True),
        ]


def find_segments(
    context: bpy.types.Context, active: bpy.types.Object | None, **given: Any
) -> background.Steps[ShownSegments]:
    """Generator: the segments that a binding with these settings would take; yields (fraction, stage). Raises
    SkinningError for problems that the user can fix."""
    # Those of all vertices, whether they have weights or not.
    settings = BindSettings(**given | {"replace": True})
    targets = find_targets(context, settings.armature)
    armature = targets.armature
    check_skinnable(context, targets.meshes, armature)
    tasks, _ = read_tasks(context, targets, settings)
    to_armature = [
        np.linalg.inv(to_mesh(task.meshes[0].object, armature)) @ _unstretched(task.meshes[0].object) for task in tasks
    ]

    def work(progress: Progress) -> ShownSegments:
        checkpoint(progress, 0.0, "Reading the skeleton")
        kept: dict[str, np.ndarray] = {}
        others: dict[str, np.ndarray] = {}
        for task, matrix in zip(tasks, to_armature, strict=True):
            for skeleton, into in ((task.segments.skeleton, kept), (task.skeleton, others)):
                ends = transform_points(np.stack([skeleton.heads, skeleton.tails], axis=1), matrix)
                into.update(zip(skeleton.names, ends, strict=True))
        left = tuple(dict.fromkeys(name for task in tasks for name in task.left_out if name not in kept))
        rows = np.array([others[name] for name in left]).reshape(-1, 2, 3)
        return ShownSegments(armature.name, armature.session_uid, np.array([*kept.values()]), rows, left)

    return (yield from background.run_in_worker(work))


def _unstretched(mesh_object: bpy.types.Object) -> np.ndarray:
    """(4, 4) from the space of ``stretch_of`` a mesh object to the object's."""
    matrix = np.eye(4)
    matrix[:3, :3] = np.linalg.inv(stretch_of(mesh_object))
    return matrix


def places(context: bpy.types.Context, found: ShownSegments) -> tuple[np.ndarray, np.ndarray] | None:
    """The ends of the segments and of the bones left out, in the world; None where the armature is hidden.

    Raises BadScene if the armature is gone."""
    armature = object_again(found.name, found.uid)
    if armature is None:
        raise BadScene(f'The segments are no longer shown: "{found.name}" was deleted')
    if context.view_layer.objects.get(armature.name) != armature or not armature.visible_get(
        view_layer=context.view_layer
    ):
        return None
    world = np.array(armature.matrix_world, dtype=np.float64)
    segments, left_out = (transform_points(ends, world) for ends in (found.ends, found.left_out))
    return segments, left_out


def _draw(context: bpy.types.Context) -> None:
    found = display.subject
    if found is None or not context.space_data.overlay.show_overlays:
        return
    ends_of_bones = places(context, found)
    if ends_of_bones is None:
        return
    scale, size = context.preferences.system.ui_scale, (context.region.width, context.region.height)
    view = View.of(context.region_data)
    gpu.state.blend_set("ALPHA")
    try:
        for ends, color in zip(ends_of_bones[::-1], (LEFT_OUT_COLOR, SEGMENT_COLOR), strict=True):
            pixels = view.on_screen(ends.reshape(-1, 3), size).reshape(-1, 2, 2)
            pixels = pixels[np.isfinite(pixels).all(axis=(1, 2))]
            draw_lines(pixels.reshape(-1, 2), OUTLINE_COLOR, (LINE_WIDTH + 2) * scale, size)
            draw_lines(pixels.reshape(-1, 2), color, LINE_WIDTH * scale, size)
            draw_discs(pixels[:, 0], JOINT_RADIUS * scale, color, scale)
    finally:
        # The rest of the viewport drawing expects this.
        gpu.state.blend_set("NONE")
    left = translated(f", {counted(len(found.left_names), 'bone')} left out in gray") if found.left_names else ""
    draw_note(context, f"{found.name}: {translated(counted(len(found.ends), 'segment'))}{left}")


display: DrawnView[ShownSegments] = DrawnView("The segments could not be drawn", POST_PIXEL=_draw)

handlers, unregister = display.handlers, display.stop
