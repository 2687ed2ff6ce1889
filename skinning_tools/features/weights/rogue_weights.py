# SPDX-License-Identifier: GPL-3.0-or-later
"""Rogue weights of a mesh: listing the islands, selecting their vertices, and removing the weights."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import background
from ...blender.bodies import read_body, read_skeleton
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.figures import Figure, Result
from ...blender.preconditions import check_unchanged, object_label
from ...blender.records import checksum
from ...blender.skin_reader import armature_of
from ...blender.weight_tools import (
    edit_vertices,
    forget_figures,
    out_of_edit_mode,
    weighted_or_edited_mesh,
)
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene
from ...core.progress import Progress, checkpoint
from .settings import SkinningRogueIsland

if TYPE_CHECKING:
    from ...core.binding.rogue import CleanWeights, Island
    from ...core.binding.types import Body, Skeleton

_FOUND, _CORRECTED = "found", "corrected"


@dataclass(frozen=True)
class Rogues(Result):
    """Islands that were found or corrected, their vertices and bones; locked: islands that stay because the vertex
    groups of their bones are locked; doubtful: islands that may be intentional, which are not checked or stay."""

    object_name: str
    done: str
    islands: int
    vertices: int
    bones: int
    locked: int
    doubtful: int
    seconds: float

    def figures(self) -> list[Figure]:
        left = "not checked" if self.done == _FOUND else "left"
        which = f"rogue weights of {vertices_text(self.vertices)}" if self.islands else "no rogue weights"
        return [
            Figure("Object", self.object_name),
            Figure(f"Vertices {self.done}", self.vertices, line=f"{which} {self.done}"),
            Figure("Islands", self.islands, if_any=True),
            Figure("Bones", self.bones, if_any=True),
            Figure("Locked islands", self.locked, if_any=True),
            Figure(f"Doubtful islands {left}", self.doubtful, if_any=True),
        ]


def find(context: bpy.types.Context, active: bpy.types.Object | None) -> background.Steps:
    """Generator: list the rogue weights of ``active``, with those checked that are certain and not locked; returns
    Rogues.

    Nothing else changes. Raises SkinningError for problems that the user can fix.
    """
    from ...core.binding.rogue import rogue_islands

    begin = time.perf_counter()
    mesh_object = weighted_or_edited_mesh(context, active)
    body, skeleton, weights = _read(mesh_object)

    def work(progress: Progress) -> "tuple[list[Island], str]":
        checkpoint(progress, 0.1, "Finding rogue weights")
        return rogue_islands(body, skeleton, weights.bones, weights.weights), _fingerprint(body, weights)

    islands, mark = yield from background.run_in_worker(work)
    shown = mesh_object.skinning_rogue_weights
    shown.islands.clear()
    shown.active_index = 0
    shown.fingerprint = mark
    for island in islands:
        item = shown.islands.add()
        item.name = item.bone = weights.names[island.bone]
        item.vertex_count, item.strength = island.size, island.strength
        item.checked = island.certain and not weights.locked[island.bone]
        item.vertices = " ".join(map(str, island.vertices.tolist()))
    count = len(np.unique(np.concatenate([island.vertices for island in islands]))) if islands else 0
    doubtful = [island for island in islands if not island.certain]
    return _result(mesh_object, _FOUND, islands, count, islands, doubtful, weights.locked, begin)


def remove(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    only_checked: bool = False,
    include_doubtful: bool = False,
) -> background.Steps:
    """Generator: give the certain rogue weights of ``active`` to the bones of valid neighbors; returns Rogues.

    only_checked: use the weights checked in the list, which must match the present mesh. include_doubtful: correct all
    that are found. Locked groups stay. Corrected weights leave the list; an unused list is cleared once weights
    change. Raises SkinningError for problems that the user can fix.
    """
    from ...core.binding.rogue import Island, remove_rogue_weights, rogue_islands

    begin = time.perf_counter()
    mesh_object = weighted_or_edited_mesh(context, active)
    shown = mesh_object.skinning_rogue_weights
    rows = [row for row, item in enumerate(shown.islands) if item.checked] if only_checked else []
    if only_checked and not rows:
        raise BadScene(
            f"No rogue weights of {object_label(mesh_object)} are checked. Find them, then check the ones to correct"
        )
    body, skeleton, weights = _read(mesh_object)
    given = [(item.bone, indices(item), item.strength) for item in (shown.islands[row] for row in rows)]
    mark, stale = shown.fingerprint, _stale(mesh_object)

    def work(progress: Progress) -> "tuple[list[Island], list[Island], CleanWeights]":
        checkpoint(progress, 0.1, "Removing rogue weights")
        if only_checked:
            if _fingerprint(body, weights) != mark:
                raise stale
            order = {name: index for index, name in enumerate(weights.names)}
            named = [Island(order[name], vertices, strength) for name, vertices, strength in given]
        else:
            named = rogue_islands(body, skeleton, weights.bones, weights.weights)
        doubtful = [] if only_checked or include_doubtful else [island for island in named if not island.certain]
        islands = [island for island in named if island.certain] if doubtful else named
        checkpoint(progress, 0.5, "Removing rogue weights")
        clean = remove_rogue_weights(body, skeleton, weights.bones, weights.weights, islands, weights.locked)
        return islands, doubtful, clean

    islands, doubtful, clean = yield from background.run_in_worker(work)
    check_unchanged(mesh_object, len(weights.bones))
    changed = clean.changed
    if len(changed):
        with out_of_edit_mode(mesh_object):
            write_bone_weights(mesh_object, weights, clean.bones[changed], clean.weights[changed], changed)
            forget_figures(mesh_object)
    free = [not weights.locked[island.bone] for island in islands]
    if only_checked:
        _take_off(mesh_object, [row for row, gone in zip(rows, free, strict=True) if gone])
    elif len(changed):
        shown.islands.clear()
        shown.fingerprint = ""
    corrected = [island for island, gone in zip(islands, free, strict=True) if gone]
    return _result(
        mesh_object, _CORRECTED, corrected, len(changed), islands + doubtful, doubtful, weights.locked, begin
    )


def _take_off(mesh_object: bpy.types.Object, rows: Sequence[int]) -> None:
    """Remove the corrected weights, ``rows`` of the list."""
    shown = mesh_object.skinning_rogue_weights
    for row in sorted(rows, reverse=True):
        shown.islands.remove(row)
    shown.active_index = min(shown.active_index, max(len(shown.islands) - 1, 0))
    # As stored now: rounding counts.
    shown.fingerprint = fingerprint(mesh_object) if shown.islands else ""


def select(context: bpy.types.Context, active: bpy.types.Object | None, index: int = -1) -> str:
    """Select the vertices of one row of the list, or of all checked rows (−1), in Edit Mode with vertex selection.

    Activates the mesh and the vertex group of the (first) row's bone. Returns the line to report. Raises BadScene if
    there is no such row, or if the mesh has changed since the list was made.
    """
    mesh_object = weighted_or_edited_mesh(context, active)
    islands = mesh_object.skinning_rogue_weights.islands
    label = object_label(mesh_object)
    if not islands:
        raise BadScene(f"There are no rogue weights in the list of {label}. Find them first")
    if index < -1 or index >= len(islands):
        raise BadScene(f"There is no row {index} in the list of {label}, which has {len(islands)}. Choose another row")
    chosen = [islands[index]] if index >= 0 else [item for item in islands if item.checked]
    if not chosen:
        raise BadScene(f"No row in the list of {label} is checked. Check some, or choose one")
    if fingerprint(mesh_object) != mesh_object.skinning_rogue_weights.fingerprint:
        raise _stale(mesh_object)
    vertices = np.unique(np.concatenate([indices(item) for item in chosen]))
    bones = list(dict.fromkeys(item.bone for item in chosen))
    edit_vertices(context, {mesh_object: vertices})
    mesh_object.vertex_groups.active_index = mesh_object.vertex_groups[bones[0]].index
    what = f'bone "{bones[0]}"' if len(bones) == 1 else counted(len(bones), "bone")
    return f"{mesh_object.name}: {vertices_text(len(vertices))} of {what} selected"


def check_all(context: bpy.types.Context, active: bpy.types.Object | None, checked: bool = True) -> None:
    """Check or uncheck all rows of the list."""
    for item in weighted_or_edited_mesh(context, active).skinning_rogue_weights.islands:
        item.checked = checked


def fingerprint(mesh_object: bpy.types.Object) -> str:
    """Text that changes with the mesh's edges, bone names and weights, on which the list depends. Reads them all."""
    with out_of_edit_mode(mesh_object):
        return _fingerprint(read_body(mesh_object), read_bone_weights(mesh_object, armature_of(mesh_object)))


def indices(item: SkinningRogueIsland) -> np.ndarray:
    """(n,) int64: the vertices of a row of the list."""
    return np.array(item.vertices.split(), dtype=np.int64)


def _read(mesh_object: bpy.types.Object) -> "tuple[Body, Skeleton, BoneWeights]":
    armature = armature_of(mesh_object)
    with out_of_edit_mode(mesh_object):
        return read_body(mesh_object), read_skeleton(mesh_object, armature), read_bone_weights(mesh_object, armature)


def _fingerprint(body: "Body", weights: BoneWeights) -> str:
    from ...core import rotation_centers as core

    # Not the positions: islands do not depend on them, and rounding differs with the object's place.
    nowhere = np.zeros((len(weights.bones), 0))
    return core.fingerprint(nowhere, body.edges, weights.bones, weights.weights) + checksum("\n".join(weights.names))


def _stale(mesh_object: bpy.types.Object) -> BadScene:
    return BadScene(
        f"The mesh or the weights of {object_label(mesh_object)} were changed since its rogue weights were found. "
        "Find them again"
    )


def _result(
    mesh_object: bpy.types.Object,
    done: str,
    islands: "Sequence[Island]",
    vertex_count: int,
    named: "Sequence[Island]",
    doubtful: "Sequence[Island]",
    locked: np.ndarray,
    begin: float,
) -> Rogues:
    bones = {island.bone for island in islands}
    held, left = sum(locked[island.bone] for island in named), sum(not locked[island.bone] for island in doubtful)
    seconds = time.perf_counter() - begin
    return Rogues(mesh_object.name, done, len(islands), vertex_count, len(bones), int(held), left, seconds)
