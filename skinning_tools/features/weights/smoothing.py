# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of a skinned mesh, smoothed over its surface."""

import time
from dataclasses import dataclass

import numpy as np

from ...blender import background
from ...blender.bodies import read_body
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.preconditions import object_label
from ...blender.skin_reader import armature_of
from ...blender.vertex_groups import read_weights
from ...blender.weight_tools import check_unchanged, forget_figures, out_of_edit_mode, weighted_or_edited_mesh
from ...blender.wording import counted, vertices_text
from ...core.errors import BadSettings

# What smoothing may blend where the mesh has no more already.
USUAL_INFLUENCES = 4

# From this edge crease on, weights do not pass.
CREASE = 0.5

# Weights that differ by less are the same: they are stored in single precision.
_SAME = 1e-7


@dataclass(frozen=True)
class Smoothed:
    """largest: the largest change of a weight."""

    object_name: str
    changed: int
    iterations: int
    largest: float
    seconds: float

    def summary(self) -> str:
        """The result in one line."""
        if not self.changed:
            return f"{self.object_name}: nothing to smooth, the weights stay as they are"
        return (
            f"{self.object_name}: weights of {vertices_text(self.changed)} smoothed in "
            f"{counted(self.iterations, 'iteration')}, by up to {self.largest:.3f}"
        )


def smooth(
    context,
    object,
    strength: float = 0.5,
    iterations: int = 5,
    max_influences: int = 0,
    vertex_group: str = "",
    invert_vertex_group: bool = False,
    use_selection: bool = False,
    keep_creases: bool = True,
) -> background.Steps:
    """Generator: smooth the bones' weights of ``object``; yields (fraction, stage), returns Smoothed.

    max_influences: 0 stands for 4, or for as many as the mesh has where that is more. Locked groups stay. The
    computation runs in a worker, the mesh is written at the end, all or nothing. Raises SkinningError for all that the
    user can mend.
    """
    from ...core.binding.smoothing import smooth_weights

    begin = time.perf_counter()
    object = weighted_or_edited_mesh(context, object)
    if iterations < 1:
        raise BadSettings(f"Smoothing takes at least 1 iteration, not {iterations}")
    if max_influences < 0:
        raise BadSettings(f"The influence limit must be at least 1, or 0 for the mesh's own, not {max_influences}")
    with out_of_edit_mode(object):
        mask = smoothing_mask(object, vertex_group, invert_vertex_group, use_selection)
        creases = creased_edges(object.data) if keep_creases else None
        body = read_body(object)
        before = read_bone_weights(object, armature_of(object))
    most = max_influences or max(int(np.count_nonzero(before.weights, axis=1).max(initial=0)), USUAL_INFLUENCES)

    def work(progress):
        bones, weights = smooth_weights(
            body,
            before.bones,
            before.weights,
            len(before.names),
            strength=strength,
            iterations=iterations,
            mask=mask,
            creases=creases,
            max_influences=most,
            locked=before.locked,
            progress=progress,
        )
        return bones, weights, changes(before, bones, weights)

    bones, weights, changed = yield from background.run_in_worker(work)
    check_unchanged(object, len(before.bones))
    vertices = np.flatnonzero(changed > _SAME)
    with out_of_edit_mode(object):
        write_bone_weights(object, before, bones[vertices], weights[vertices], vertices)
        forget_figures(object)
    seconds = time.perf_counter() - begin
    return Smoothed(object.name, len(vertices), iterations, float(changed.max(initial=0.0)), seconds)


def smoothing_mask(object, vertex_group: str, invert: bool, use_selection: bool) -> np.ndarray | None:
    """(N,) float64 from 0 to 1, or None for everywhere. Raises BadSettings where it selects nothing, naming why.

    Weight Paint's selection masks count as they do for Blender's own tools there.
    """
    mesh = object.data
    mask = np.ones(len(mesh.vertices))
    if vertex_group:
        if vertex_group not in object.vertex_groups:
            raise BadSettings(f'The {object_label(object)} has no vertex group "{vertex_group}". Choose another')
        _, weights = read_weights(object, [vertex_group])
        mask = np.clip(weights.sum(axis=1), 0, 1)
        if invert:
            mask = 1 - mask
        if not mask.any():
            whole = "weight 1 everywhere, so its inverse" if invert else "no weights, so it"
            raise BadSettings(f'The vertex group "{vertex_group}" has {whole} selects no vertex. Choose another')
    painting = object.mode == "WEIGHT_PAINT"
    if painting and mesh.use_paint_mask:
        selected = vertices_of_selected_faces(mesh)
    elif use_selection or (painting and mesh.use_paint_mask_vertex):
        selected = np.empty(len(mesh.vertices), bool)
        mesh.vertices.foreach_get("select", selected)
    else:
        return mask if vertex_group else None
    if not selected.any():
        raise BadSettings(f"No vertex of {object_label(object)} is selected. Select some, or smooth everywhere")
    mask = mask * selected
    if not mask.any():
        raise BadSettings(f'No selected vertex has weight in the vertex group "{vertex_group}". Select others')
    return mask


def vertices_of_selected_faces(mesh) -> np.ndarray:
    """(N,) bool"""
    chosen, totals = np.empty(len(mesh.polygons), bool), np.empty(len(mesh.polygons), np.int32)
    corners = np.empty(len(mesh.loops), np.int32)
    mesh.polygons.foreach_get("select", chosen)
    mesh.polygons.foreach_get("loop_total", totals)
    mesh.loops.foreach_get("vertex_index", corners)
    selected = np.zeros(len(mesh.vertices), bool)
    selected[corners[np.repeat(chosen, totals)]] = True
    return selected


def creased_edges(mesh) -> np.ndarray:
    """(E,) bool: edges that are marked sharp, or have a crease of ``CREASE`` or more."""
    sharp = np.empty(len(mesh.edges), bool)
    mesh.edges.foreach_get("use_edge_sharp", sharp)
    crease = mesh.attributes.get("crease_edge")
    if crease is not None and (crease.domain, crease.data_type) == ("EDGE", "FLOAT"):
        values = np.empty(len(mesh.edges), np.float32)
        crease.data.foreach_get("value", values)
        sharp |= values >= CREASE
    return sharp


def changes(before: BoneWeights, bones, weights) -> np.ndarray:
    """(N,) the largest difference of a weight of each vertex from ``before``."""
    from ...core.deform.influences import weight_matrix

    difference = weight_matrix(before.bones, before.weights, len(before.names))
    difference = abs(weight_matrix(bones, weights, len(before.names)) - difference)
    return np.asarray(difference.max(axis=1).todense()).ravel()
