# SPDX-License-Identifier: GPL-3.0-or-later
"""The components that a build would make, shown before anything is built: found once, then moved by a slider.

Nothing of this is written to the scene.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background
from ...blender.bodies import stretch_of
from ...blender.error_display import error_colors
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_unchanged
from ...core.geometry import transform_points
from ...core.progress import Progress
from .build import check_buildable, checked_settings
from .examples import read_examples, read_rig
from .half_rotation import check_kept, plan_bones
from .record import painted_masks

if TYPE_CHECKING:
    from ...core.eigenskin import EigenSkin
    from ...core.eigenskin.model import Support

COLOR_ITEMS = (
    ("AMOUNT", "Amount", "How far each vertex is displaced, from blue for not at all to red for the most"),
    ("DIRECTION", "Direction", "Red, green and blue stand for the displacement along X, Y and Z. Gray is none"),
)


@dataclass(frozen=True, eq=False)
class Components(Result):
    """What a build would make of the examples of a mesh object.

    name, uid: of the object; bone_names of its deforming bones; rest (N, 3), triangles (T, 3), bones and weights
    (N, K); stretch (3, 3): to the scene's units; model: with the components of each support.
    """

    name: str
    uid: int
    bone_names: tuple[str, ...]
    rest: np.ndarray
    triangles: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    stretch: np.ndarray
    model: "EigenSkin"

    @property
    def supports(self) -> dict[str, "Support"]:
        """By name."""
        return {support.name: support for support in self.model.supports}

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.name),
            Figure("Supports", len(self.model.supports)),
            Figure("Components", self.model.component_count),
        ]


@dataclass(frozen=True, eq=False)
class Surface:
    """A displaced mesh in the world: positions, normals and colors (N, 3). red: the length shown in red."""

    positions: np.ndarray
    normals: np.ndarray
    colors: np.ndarray
    red: float


def find_components(
    context: bpy.types.Context, active: bpy.types.Object | None, half_rotation: bool = False, **settings: Any
) -> background.Steps[Components]:
    """Generator: the components of the mesh for the active object, by a worker; yields (fraction, stage), returns
    Components. settings: of core.eigenskin.EigenSkinSettings. Raises SkinningError; changes nothing."""
    from ...core import eigenskin as core

    mesh_object = check_buildable(context, active)
    check_kept(mesh_object, half_rotation)
    chosen = checked_settings(**settings)
    skin, rig = read_rig(context, mesh_object)
    examples = read_examples(mesh_object, rig)
    painted, stretch = painted_masks(mesh_object), stretch_of(mesh_object)
    plan = plan_bones(mesh_object, skin, rig, examples.rotations) if half_rotation else None

    def work(progress: Progress) -> "EigenSkin":
        helped = plan.applied(examples) if plan is not None else (rig, examples)
        return core.build_eigenskin(*helped, chosen, painted=painted, progress=progress)

    model = yield from background.run_in_worker(work)
    check_unchanged(mesh_object, len(rig.rest))
    arrays = skin.rest, skin.triangles, skin.bones, skin.weights
    return Components(mesh_object.name, mesh_object.session_uid, skin.bone_names, *arrays, stretch, model)


def displaced_surface(
    found: Components,
    matrices: np.ndarray,
    to_world: np.ndarray,
    support: str,
    component: int,
    value: float,
    colors: str,
) -> Surface:
    """The mesh with one component of a support, counted from 0, at ``value``, in the pose of ``matrices`` (P, 3, 4) of
    ``found.bone_names`` in the mesh's space, which ``to_world`` (4, 4) is from.

    Value 1 is the largest of the examples. Full color is the largest displacement at that value, in the rest pose.
    """
    from ...core.deform import skin_frame, vertex_normals
    from ...core.eigenskin.component_view import component_displacements, direction_colors

    place = list(found.supports).index(support)
    whole = component_displacements(found.model, place, component)
    moved = skin_frame(found.rest + value * whole, found.bones, found.weights, matrices)
    positions = transform_points(moved, to_world)
    lengths = np.linalg.norm(whole @ found.stretch.T, axis=1)
    red = float(lengths.max(initial=0.0))
    if colors == "DIRECTION":
        largest = float(np.linalg.norm(whole, axis=1).max(initial=0.0))
        shown = direction_colors(value * whole, largest)
    else:
        shown = error_colors(abs(value) * lengths, red)[:, :3]
    return Surface(positions, vertex_normals(positions, found.triangles), shown, red)
