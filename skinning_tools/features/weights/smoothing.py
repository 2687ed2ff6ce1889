# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of skinned meshes, smoothed over their surface."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np

from ...blender import background
from ...blender.attributes import has_attribute, read_attribute
from ...blender.bodies import read_body
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.character import check_one_character
from ...blender.control_points import point_count, points_of
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_unchanged, unmet
from ...blender.skin_reader import armature_of
from ...blender.weight_tools import forget_figures, group_mask, out_of_edit_mode, weighted_or_edited_mesh
from ...blender.wording import counted
from ...core.errors import BadSettings, SkinningError
from ...core.progress import Progress

if TYPE_CHECKING:
    from ...core.binding.types import Body

# The default limit of influences, unless the mesh has more.
USUAL_INFLUENCES = 4

# Edges with at least this crease stop smoothing.
CREASE = 0.5

# Weights that differ by less are equal: they are stored in single precision.
_SAME = 1e-7


@dataclass(frozen=True)
class Smoothed(Result):
    """largest: the largest change of a weight."""

    object_names: tuple[str, ...]
    changed: int
    largest: float
    notes: tuple[str, ...]
    seconds: float

    def figures(self) -> list[Figure]:
        return [
            Figure("Object", self.object_names[0] if len(self.object_names) == 1 else list(self.object_names)),
            Figure("Vertices smoothed", self.changed),
            Figure("Largest change", self.largest, "{:.4f}"),
        ]


def _read(ob: bpy.types.Object, first: bpy.types.Object, keep_creases: bool) -> tuple["Body", np.ndarray, BoneWeights]:
    """The body in the space of ``first``, its edges (E,) bool that stop smoothing, and its weights."""
    with out_of_edit_mode(ob):
        body = read_body(ob, first)
        creased = keep_creases and ob.type == "MESH"
        creases = creased_edges(ob.data) if creased else np.zeros(len(body.edges), bool)
        return body, creases, read_bone_weights(ob, armature_of(ob))


def check_smoothable(context: bpy.types.Context, meshes: Sequence[bpy.types.Object]) -> None:
    """Raise BadScene if the weights of the meshes cannot be smoothed together. Cheap enough for a panel."""
    for ob in meshes:
        weighted_or_edited_mesh(context, ob)
    check_one_character(list(meshes))


def smooth(
    context: bpy.types.Context,
    meshes: Sequence[bpy.types.Object],
    strength: float = 0.5,
    iterations: int = 5,
    max_influences: int = 0,
    vertex_group: str = "",
    invert_vertex_group: bool = False,
    use_selection: bool = False,
    keep_creases: bool = True,
) -> background.Steps:
    """Generator: smooth the bones' weights of ``meshes``; yields (fraction, stage), returns Smoothed.

    Meshes of one armature are one body: vertices of several of them at one place get the same weights, and weights pass
    from one mesh to the other there. max_influences: 0 means 4, or the meshes' present maximum if that is larger.
    Groups that are locked in one of them stay in all. The computation runs in a worker; the meshes are written at the
    end, all or nothing. Raises SkinningError for problems that the user can fix.
    """
    begin = time.perf_counter()
    check_smoothable(context, meshes)
    bodies, creases, stored = zip(*(_read(ob, meshes[0], keep_creases) for ob in meshes), strict=True)
    # If the group is only in one mesh, the rims would separate.
    locked = np.any([before.locked for before in stored], axis=0)
    befores = [replace(before, locked=locked) for before in stored]
    mask = _joint_mask(meshes, vertex_group, invert_vertex_group, use_selection)
    most = max_influences or max(
        *(int(np.count_nonzero(before.weights, axis=1).max(initial=0)) for before in befores), USUAL_INFLUENCES
    )

    options = {
        "strength": strength,
        "iterations": iterations,
        "mask": mask,
        "creases": np.concatenate(creases),
        "max_influences": most,
        "locked": locked,
    }
    smoothed = yield from background.run_in_worker(partial(_smoothed, bodies, befores, options))
    changed = [changes(before, *rows) for before, rows in zip(befores, smoothed, strict=True)]
    for ob, before in zip(meshes, befores, strict=True):
        check_unchanged(ob, len(before.bones))
    for ob, before, (bones, weights), change in zip(meshes, befores, smoothed, changed, strict=True):
        vertices = np.flatnonzero(change > _SAME)
        with out_of_edit_mode(ob):
            write_bone_weights(ob, before, bones[vertices], weights[vertices], vertices)
            forget_figures(ob)
    largest = np.concatenate(changed)
    names = tuple(ob.name for ob in meshes)
    seconds = time.perf_counter() - begin
    count, most_changed = int(np.count_nonzero(largest > _SAME)), float(largest.max(initial=0.0))
    return Smoothed(names, count, most_changed, _notes(stored), seconds)


def _smoothed(
    bodies: "Sequence[Body]", befores: Sequence[BoneWeights], options: dict[str, Any], progress: Progress
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bones and weights of each mesh, smoothed as one body. options: of core.binding.smoothing.smooth_weights."""
    from ...core.binding.influence_rows import padded_influences
    from ...core.binding.smoothing import smooth_weights
    from ...core.binding.types import joined

    width = max(before.bones.shape[1] for before in befores)
    rows = [padded_influences(before.bones, before.weights, width) for before in befores]
    bones, weights = map(np.concatenate, zip(*rows, strict=True))
    found = smooth_weights(joined(*bodies), bones, weights, len(befores[0].names), **options, progress=progress)
    ends = np.cumsum([len(before.bones) for before in befores])[:-1]
    return list(zip(*(np.split(each, ends) for each in found), strict=True))


def _notes(stored: Sequence[BoneWeights]) -> tuple[str, ...]:
    """What to say of groups that are locked in some of the meshes only."""
    locked = np.array([before.locked for before in stored])
    partly = int(np.count_nonzero(locked.any(axis=0) & ~locked.all(axis=0)))
    return (f"{counted(partly, 'group')} locked in some of the meshes kept in all",) if partly else ()


def _joint_mask(
    meshes: Sequence[bpy.types.Object], vertex_group: str, invert: bool, use_selection: bool
) -> np.ndarray | None:
    """(N,) ``smoothing_mask`` of all meshes. Where it selects nothing in a mesh, such as without the vertex group, the
    vertices of that mesh stay; raises BadSettings, BadScene with the first reason if that is true of every mesh."""
    masks: list[np.ndarray] = []
    reasons: list[SkinningError] = []
    for ob in meshes:
        with out_of_edit_mode(ob):
            count = point_count(ob)
            try:
                mask = smoothing_mask(ob, vertex_group, invert, use_selection)
            except SkinningError as reason:
                mask = np.zeros(count)
                reasons.append(reason)
            masks.append(np.ones(count) if mask is None else mask)
    if len(reasons) == len(meshes):
        raise reasons[0]
    whole = np.concatenate(masks)
    return None if (whole == 1).all() else whole


def smoothing_mask(
    mesh_object: bpy.types.Object, vertex_group: str, invert: bool, use_selection: bool
) -> np.ndarray | None:
    """(N,) float64 from 0 to 1, or None for everywhere. Raises BadSettings with the reason if it selects nothing.

    Weight Paint's selection masks apply as they do to Blender's own tools.
    """
    mesh, points = mesh_object.data, points_of(mesh_object.data)
    mask = np.ones(len(points))
    if vertex_group:
        mask = group_mask(mesh_object, vertex_group, invert)
    painting = mesh_object.mode == "WEIGHT_PAINT"
    if painting and mesh.use_paint_mask:
        selected = vertices_of_selected_faces(mesh)
    elif use_selection or (painting and mesh.use_paint_mask_vertex):
        selected = np.empty(len(points), bool)
        points.foreach_get("select", selected)
    else:
        return mask if vertex_group else None
    if not selected.any():
        raise unmet("NO_VERTEX_SELECTED", object=mesh_object, remedy="Select some, or smooth everywhere")
    mask = mask * selected
    if not mask.any():
        raise BadSettings(f'No selected vertex has weight in the vertex group "{vertex_group}". Select other vertices')
    return mask


def vertices_of_selected_faces(mesh: bpy.types.Mesh) -> np.ndarray:
    """(N,) bool: the vertices of the selected faces."""
    chosen, totals = np.empty(len(mesh.polygons), bool), np.empty(len(mesh.polygons), np.int32)
    corners = np.empty(len(mesh.loops), np.int32)
    mesh.polygons.foreach_get("select", chosen)
    mesh.polygons.foreach_get("loop_total", totals)
    mesh.loops.foreach_get("vertex_index", corners)
    selected = np.zeros(len(mesh.vertices), bool)
    selected[corners[np.repeat(chosen, totals)]] = True
    return selected


def creased_edges(mesh: bpy.types.Mesh) -> np.ndarray:
    """(E,) bool: edges that are marked sharp, or have a crease of ``CREASE`` or more."""
    sharp = np.empty(len(mesh.edges), bool)
    mesh.edges.foreach_get("use_edge_sharp", sharp)
    if has_attribute(mesh, "crease_edge", "FLOAT", "EDGE"):
        sharp |= read_attribute(mesh, "crease_edge") >= CREASE
    return sharp


def changes(before: BoneWeights, bones: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(N,) the largest change of a weight of each vertex from ``before``."""
    from ...core.deform.influences import weight_matrix

    difference = weight_matrix(before.bones, before.weights, len(before.names))
    difference = abs(weight_matrix(bones, weights, len(before.names)) - difference)
    return np.asarray(difference.max(axis=1).todense()).ravel()
