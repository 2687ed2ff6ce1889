# SPDX-License-Identifier: GPL-3.0-or-later
"""Rogue weights of a mesh: the list of islands that it keeps, selecting their vertices, and removing the weights."""

import hashlib
import time
from dataclasses import dataclass

import numpy as np

from ...blender import background
from ...blender.bodies import read_body, read_skeleton
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.preconditions import object_label
from ...blender.skin_reader import armature_of
from ...blender.weight_tools import (
    check_unchanged,
    edit_vertices,
    forget_figures,
    out_of_edit_mode,
    weighted_or_edited_mesh,
)
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene
from ...core.progress import checkpoint

_FOUND, _CORRECTED = "found", "corrected"


@dataclass(frozen=True)
class Rogues:
    """Islands that were found or corrected, their vertices and bones; locked: islands that stay, as the vertex groups
    of their bones are locked; doubtful: others that may be meant, and are not checked or stay."""

    object_name: str
    done: str
    islands: int
    vertices: int
    bones: int
    locked: int
    doubtful: int
    seconds: float

    def summary(self) -> str:
        """The result in one line."""
        text = f"{self.object_name}: no rogue weights {self.done if self.locked or self.doubtful else 'found'}"
        if self.islands:
            text = (
                f"{self.object_name}: rogue weights of {vertices_text(self.vertices)} {self.done}, in "
                f"{counted(self.islands, 'island')} of {counted(self.bones, 'bone')}"
            )
        if self.locked:
            text += f"; {counted(self.locked, 'island')} of locked vertex groups stay"
        if self.doubtful:
            left = "not checked" if self.done == _FOUND else "left as they are"
            text += f"; {counted(self.doubtful, 'doubtful island')} {left}"
        return text


def find(context, object) -> background.Steps:
    """Generator: list the rogue weights of ``object``, those checked that are certain and not of locked groups; returns
    Rogues.

    Nothing else changes. Raises SkinningError for all that the user can mend.
    """
    from ...core.binding.rogue import rogue_islands

    begin = time.perf_counter()
    object = weighted_or_edited_mesh(context, object)
    body, skeleton, weights = _read(object)

    def work(progress):
        checkpoint(progress, 0.1, "Finding rogue weights")
        return rogue_islands(body, skeleton, weights.bones, weights.weights), _fingerprint(body, weights)

    islands, mark = yield from background.run_in_worker(work)
    shown = object.skinning_rogue_weights
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
    return _result(object, _FOUND, islands, count, islands, doubtful, weights.locked, begin)


def remove(context, object, only_checked: bool = False, include_doubtful: bool = False) -> background.Steps:
    """Generator: give the certain rogue weights of ``object`` to the bones of valid neighbors; returns Rogues.

    only_checked: those that are checked in the list instead, which must be of the mesh as it is. include_doubtful: all
    that are found. Locked groups stay. What is corrected leaves the list; a list that was not used is cleared once
    weights change. Raises SkinningError for all that the user can mend.
    """
    from ...core.binding.rogue import Island, remove_rogue_weights, rogue_islands

    begin = time.perf_counter()
    object = weighted_or_edited_mesh(context, object)
    shown = object.skinning_rogue_weights
    rows = [row for row, item in enumerate(shown.islands) if item.checked] if only_checked else []
    if only_checked and not rows:
        raise BadScene(
            f"No rogue weights of {object_label(object)} are checked. Find them, then check those to correct"
        )
    body, skeleton, weights = _read(object)
    given = [(item.bone, indices(item), item.strength) for item in (shown.islands[row] for row in rows)]
    mark, stale = shown.fingerprint, _stale(object)

    def work(progress):
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
    check_unchanged(object, len(weights.bones))
    changed = clean.changed
    if len(changed):
        with out_of_edit_mode(object):
            write_bone_weights(object, weights, clean.bones[changed], clean.weights[changed], changed)
            forget_figures(object)
    free = [not weights.locked[island.bone] for island in islands]
    if only_checked:
        for row in reversed([row for row, gone in zip(rows, free, strict=True) if gone]):
            shown.islands.remove(row)
        shown.active_index = min(shown.active_index, max(len(shown.islands) - 1, 0))
        # As they are stored now: rounding counts.
        shown.fingerprint = fingerprint(object) if shown.islands else ""
    elif len(changed):
        shown.islands.clear()
        shown.fingerprint = ""
    corrected = [island for island, gone in zip(islands, free, strict=True) if gone]
    return _result(object, _CORRECTED, corrected, len(changed), islands + doubtful, doubtful, weights.locked, begin)


def select(context, object, index: int = -1) -> str:
    """Select the vertices of one row of the list, or of all that are checked (−1), in Edit Mode with vertex selection.

    Makes the mesh active, and the vertex group of the row's bone (of the first one). Returns the line to report.
    Raises BadScene where there is no such row, or the list is older than the mesh.
    """
    object = weighted_or_edited_mesh(context, object)
    islands = object.skinning_rogue_weights.islands
    label = object_label(object)
    if not islands:
        raise BadScene(f"There are no rogue weights in the list of {label}. Find them first")
    if index < -1 or index >= len(islands):
        raise BadScene(f"There is no row {index} in the list of {label}, which has {len(islands)}. Choose another")
    chosen = [islands[index]] if index >= 0 else [item for item in islands if item.checked]
    if not chosen:
        raise BadScene(f"No row in the list of {label} is checked. Check some, or choose one")
    if fingerprint(object) != object.skinning_rogue_weights.fingerprint:
        raise _stale(object)
    vertices = np.unique(np.concatenate([indices(item) for item in chosen]))
    bones = list(dict.fromkeys(item.bone for item in chosen))
    edit_vertices(context, {object: vertices})
    object.vertex_groups.active_index = object.vertex_groups[bones[0]].index
    what = f'bone "{bones[0]}"' if len(bones) == 1 else counted(len(bones), "bone")
    return f"{object.name}: {vertices_text(len(vertices))} of {what} selected"


def fingerprint(object) -> str:
    """Text that changes with the mesh's edges, and its bones' names and weights, which the list is of. Reads all."""
    with out_of_edit_mode(object):
        return _fingerprint(read_body(object), read_bone_weights(object, armature_of(object)))


def indices(item) -> np.ndarray:
    """(n,) int64 the vertices of a row of the list."""
    return np.array(item.vertices.split(), dtype=np.int64)


def _read(object):
    armature = armature_of(object)
    with out_of_edit_mode(object):
        return read_body(object), read_skeleton(object, armature), read_bone_weights(object, armature)


def _fingerprint(body, weights: BoneWeights) -> str:
    from ...core import rotation_centers as core

    # Not the positions: islands are of vertices and weights, and where the mesh stands its rounding differs.
    nowhere = np.zeros((len(weights.bones), 0))
    names = hashlib.sha256("\n".join(weights.names).encode()).hexdigest()
    return core.fingerprint(nowhere, body.edges, weights.bones, weights.weights) + names


def _stale(object) -> BadScene:
    return BadScene(
        f"The mesh or the weights of {object_label(object)} were changed since its rogue weights were found. "
        "Find them again"
    )


def _result(object, done: str, islands, vertex_count: int, named, doubtful, locked, begin: float) -> Rogues:
    bones = {island.bone for island in islands}
    held, left = sum(locked[island.bone] for island in named), sum(not locked[island.bone] for island in doubtful)
    seconds = time.perf_counter() - begin
    return Rogues(object.name, done, len(islands), vertex_count, len(bones), int(held), left, seconds)
