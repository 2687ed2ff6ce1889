# SPDX-License-Identifier: GPL-3.0-or-later
"""The region in world space that weights alone let the selected vertex reach."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ...blender.active_vertex import active_vertex, stored_vertex
from ...blender.bodies import deforming_bones
from ...blender.bone_weights import locked_bones
from ...blender.character import armature_at
from ...blender.fit_poses import bare_skin
from ...blender.skin_reader import armature_of, bone_matrices, meshes_of
from ...core.bone_channels import square
from .fit import candidate_bones
from .posed_copies import INDEX_ATTRIBUTE, REST_ATTRIBUTE, copies_in, is_copy, original_of, stored_bones
from .settings import FitSettings

# The closest convex combination of points in space never needs more points than this.
_ENOUGH_INFLUENCES = 4


@dataclass(frozen=True, eq=False)
class Region:
    """The reachable region of one vertex, in world space.

    bones: names, with colors (M, 3) and predictions (M, 3), where each bone alone would put the vertex within what
    locked groups allow; corners (C, 3) and edges (E, 2) of the region in between; place (3,): the vertex's position;
    landing (3,): the closest place that it can reach, None unless it is being moved.
    """

    bones: tuple[str, ...]
    colors: np.ndarray
    predictions: np.ndarray
    corners: np.ndarray
    edges: np.ndarray
    place: np.ndarray
    landing: np.ndarray | None


def shown_mesh(context: bpy.types.Context) -> bpy.types.Object | None:
    """The object with the vertex: the active one or, for an armature, a visible posed copy of a mesh that it deforms,
    or else a visible mesh. None if there is none. Raises nothing."""
    active = context.view_layer.objects.active
    if active is None or active.type != "ARMATURE":
        return active
    copies = [ob for ob in copies_in(context.scene) if armature_at(original_of(ob)) == active and ob.visible_get()]
    meshes = [ob for ob in meshes_of(active, context.view_layer) if not is_copy(ob) and ob.visible_get()]
    return next(iter(copies or meshes), None)


def read_region(context: bpy.types.Context, settings: FitSettings) -> Region | None:
    """The region of the selected vertex, None if there is none. Raises BadScene if a bone has no matrix."""
    mesh_object = shown_mesh(context)
    if mesh_object is None or mesh_object.type != "MESH":
        return None
    found = _of_copy(mesh_object) if is_copy(mesh_object) else _of_mesh(context, mesh_object)
    return _region(settings, *found) if found is not None else None


def _of_copy(copy: bpy.types.Object) -> tuple | None:
    """The arguments for ``_region``, from the stored pose of a copy."""
    original = original_of(copy)
    vertex = active_vertex(copy, (REST_ATTRIBUTE,), (INDEX_ATTRIBUTE,))
    if original is None or armature_of(original) is None or vertex is None or not (vertex.vectors and vertex.numbers):
        return None
    index = vertex.numbers[INDEX_ATTRIBUTE]
    names, matrices = stored_bones(copy)
    if not names or not 0 <= index < len(original.data.vertices):
        return None
    position = vertex.position
    if copy.mode != "EDIT":
        position = np.array(copy.data.vertices[vertex.index].co)
    world = np.array(copy.matrix_world, dtype=np.float64)
    place = world[:3, :3] @ position + world[:3, 3]
    to_world = world @ np.linalg.inv(np.array(copy.skinning_fit_copy.to_mesh, dtype=np.float64))
    groups = stored_vertex(original, index).groups
    return original, names, matrices, vertex.vectors[REST_ATTRIBUTE], groups, to_world, place


def _of_mesh(context: bpy.types.Context, mesh_object: bpy.types.Object) -> tuple | None:
    """The arguments for ``_region``, from the present pose."""
    armature = armature_of(mesh_object)
    vertex = active_vertex(mesh_object) if armature is not None else None
    if vertex is None:
        return None
    depsgraph = context.evaluated_depsgraph_get()
    names = deforming_bones(armature)
    matrices = bone_matrices(bare_skin(mesh_object, armature, names), depsgraph)
    to_world = np.array(mesh_object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
    return mesh_object, names, matrices, vertex.position, vertex.groups, to_world, None


# The latest region and its inputs: most redraws only turn the view.
_latest: list = [None, None]


def _region(
    settings: FitSettings,
    original: bpy.types.Object,
    names: Sequence[str],
    matrices: np.ndarray,
    rest: np.ndarray,
    groups: dict[str, float],
    to_world: np.ndarray,
    place: np.ndarray | None,
) -> Region | None:
    """matrices (P, 3, 4) of the bones ``names`` and rest (3,) in the space that ``to_world`` (4, 4) is from; groups:
    weights by name; place (3,): the vertex's position in the world, None to compute it from its weights."""
    from ...core.deform.influences import LEAST_TOTAL_WEIGHT

    armature = armature_of(original)
    weights = np.array([groups.get(name, 0.0) for name in names])
    total = weights.sum()
    weights = weights / total if total > LEAST_TOTAL_WEIGHT else np.zeros(len(names))
    locked = locked_bones(original, names)
    own = np.flatnonzero(weights)
    candidates = candidate_bones(armature, names, own, settings.candidates)
    candidates = own if candidates is None else candidates
    arrays = (matrices, rest, to_world, () if place is None else place, weights, locked, candidates)
    key = (names, settings.max_influences, *(np.asarray(array).tobytes() for array in arrays))
    if key != _latest[0]:
        _latest[:] = key, _found(names, matrices, rest, weights, locked, candidates, to_world, place, settings)
    return _latest[1]


def _found(
    names: Sequence[str],
    matrices: np.ndarray,
    rest: np.ndarray,
    weights: np.ndarray,
    locked: np.ndarray,
    candidates: np.ndarray,
    to_world: np.ndarray,
    place: np.ndarray | None,
    settings: FitSettings,
) -> Region | None:
    """``_region`` from arrays."""
    from ...core.binding.fit import fit_weights

    if np.linalg.matrix_rank(to_world) < 4:
        return None
    moving, rest = in_world(matrices, to_world), to_world[:3, :3] @ rest + to_world[:3, 3]
    region = vertex_region(names, moving, rest, weights, locked, candidates)
    if region is None or place is None:
        return region
    own = np.flatnonzero(weights)
    bones = own if len(own) else np.zeros(1, int)
    landing = fit_weights(
        rest[None],
        bones[None],
        weights[None, bones],
        moving,
        place[None],
        candidates=candidates,
        max_influences=settings.max_influences or max(_ENOUGH_INFLUENCES, len(own)),
        locked=locked,
    ).positions[0, 0]
    return replace(region, place=place, landing=landing)


def in_world(matrices: np.ndarray, to_world: np.ndarray) -> np.ndarray:
    """(P, 3, 4) in the world, of ``matrices`` (P, 3, 4) in the space that ``to_world`` (4, 4) is from."""
    return (to_world @ square(matrices) @ np.linalg.inv(to_world))[:, :3]


def vertex_region(
    names: Sequence[str],
    matrices: np.ndarray,
    rest: np.ndarray,
    weights: np.ndarray,
    locked: np.ndarray,
    candidates: np.ndarray,
) -> Region | None:
    """The region of a vertex at the place that its weights give it, None if all its bones are locked.

    matrices (P, 3, 4) of the bones ``names``, and rest (3,), in the world; weights (P,) and locked (P,) of the bones;
    candidates: indices of the bones that may get weights.
    """
    from ...core.binding.fit import bone_predictions, reachable_hull
    from ...core.binding.weight_view import bone_colors

    free_bones = candidates[~locked[candidates]]
    if not len(free_bones):
        return None
    single = bone_predictions(rest, np.arange(len(names)), matrices)
    held = np.where(locked, weights, 0.0)
    predictions = held @ single + max(1 - held.sum(), 0.0) * single[free_bones]
    corners, edges = reachable_hull(predictions)
    shown = tuple(names[bone] for bone in free_bones)
    # Any two of them show side by side.
    colors = bone_colors(shown, np.ones((len(shown), len(shown))))
    place = weights @ single if weights.any() else rest
    return Region(shown, colors, predictions, corners, edges, place, None)
