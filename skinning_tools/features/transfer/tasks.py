# SPDX-License-Identifier: GPL-3.0-or-later
"""What a transfer reads from the scene, and the computation on plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.bodies import read_body, stretch_of
from ...blender.bone_weights import BoneWeights, read_bone_weights
from ...blender.preconditions import object_label, unmet
from ...blender.skin_reader import armature_of
from ...blender.weight_tools import group_mask
from ...core.errors import BadMesh, BadScene
from ...core.geometry import MIRROR_X
from ...core.progress import Progress
from .poses import check_posed, posed_points
from .settings import TransferSettings
from .targets import Targets

if TYPE_CHECKING:
    from scipy import sparse

    from ...core.binding.types import Body

# As a share of the diagonal: vertices nearer to the mirror plane are in the middle.
_MIDDLE = 1e-4


@dataclass(frozen=True, eq=False)
class Source:
    """What weights come from. body: in ``bodies.stretch_of``, posed if the settings ask for it; posed (N, 3): where the
    bones take its vertices now, or None; weights (N, P); partners (P,): the bones whose weights are taken for each;
    chosen (P,) bool: the bones that are transferred; most: influences of a vertex."""

    object: bpy.types.Object
    armature: bpy.types.Object
    body: "Body"
    posed: np.ndarray | None
    names: Sequence[str]
    weights: "sparse.csr_matrix"
    partners: np.ndarray
    chosen: np.ndarray
    most: int


@dataclass(frozen=True, eq=False)
class Task:
    """One mesh that gets weights. body: in the source's space, with the middles of large faces; before: its weights;
    shares (N,): how far they move; middle (N,) bool: vertices that become symmetric."""

    object: bpy.types.Object
    body: "Body"
    before: BoneWeights
    shares: np.ndarray
    middle: np.ndarray


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows (n,) of vertices that change, their bones and weights (n, K) that sum to 1, the sums to store (n,); of all
    vertices (N,) bool matched: found on the source, not filled in."""

    rows: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    matched: np.ndarray

    @property
    def moving(self) -> set[int]:
        """The bones with weights."""
        return set(np.unique(self.bones[self.weights > 0]).tolist())


def read_source(context: bpy.types.Context, targets: Targets, settings: TransferSettings) -> Source:
    from ...core.deform.influences import weight_matrix

    armature = armature_of(targets.source)
    assert armature is not None
    given = read_bone_weights(targets.source, armature)
    if not given.weights.any():
        raise BadScene(f"The {object_label(targets.source)} has no weights of bones to transfer. Bind it first")
    chosen = _chosen(targets.source, given.names, settings.groups)
    body = _body(targets.source)
    posed = posed_points(context, targets.source)
    if posed is not None:
        posed = posed @ stretch_of(targets.source).T
    if settings.use_pose:
        body = replace(body, rest=check_posed(posed, targets.source))
    partners = _partners(given) if settings.mirror != "NONE" else np.arange(len(given.names))
    weights = weight_matrix(given.bones, given.weights, len(given.names))
    most = settings.max_influences or int(np.count_nonzero(given.weights, axis=1).max())
    return Source(targets.source, armature, body, posed, given.names, weights, partners, chosen, most)


def read_task(
    source: bpy.types.Object, mesh_object: bpy.types.Object, armature: bpy.types.Object, settings: TransferSettings
) -> Task:
    before = read_bone_weights(mesh_object, armature)
    shares = np.full(len(before.bones), float(settings.factor))
    if settings.vertex_group:
        shares *= group_mask(mesh_object, settings.vertex_group, settings.invert_vertex_group)
    if not settings.replace:
        shares[before.bound] = 0.0
    body = _body(mesh_object, source)
    rest = body.rest
    middle = np.zeros(len(shares), bool)
    if settings.mirror != "NONE":
        across = (rest[:, 0] if settings.mirror == "NEGATIVE_X" else -rest[:, 0])[: len(shares)]
        middle = np.abs(across) <= _MIDDLE * body.diagonal
        shares[(across < 0) & ~middle] = 0.0
        rest = rest * MIRROR_X
    if not shares.any():
        raise BadScene(_nothing_to_do(mesh_object, settings))
    return Task(mesh_object, replace(body, rest=rest), before, shares, middle)


def transferred(source: Source, task: Task, settings: TransferSettings, progress: Progress) -> Rows:
    """The new weights of one mesh; plain arrays, for a worker."""
    from ...core.binding.influence_rows import matrix_influences
    from ...core.deform.influences import weight_matrix
    from ...core.transfer import merged_weights, transfer_weights

    after = transfer_weights(
        source.body,
        source.weights[:, source.partners],
        task.body,
        distance=settings.distance,
        angle=settings.angle,
        lock_rim=settings.lock_rim,
        progress=progress,
    ).first(len(task.shares))
    if task.middle.any():
        symmetric = 0.5 * (after.weights + after.weights[:, source.partners])
        after = replace(after, weights=_rows_of(task.middle, symmetric, after.weights))
    rows = np.flatnonzero(task.shares > 0)
    shares = np.where(after.rim, 1.0, task.shares)[rows]
    before = weight_matrix(task.before.bones, task.before.weights, len(source.names))
    merged = merged_weights(before[rows], after.weights[rows], shares, source.chosen, task.before.locked)
    totals = np.asarray(merged.sum(axis=1)).ravel()
    return Rows(rows, *matrix_influences(merged, source.most, task.before.locked), totals, after.matched)


def _rows_of(chosen: np.ndarray, first: "sparse.csr_matrix", second: "sparse.csr_matrix") -> "sparse.csr_matrix":
    """The rows ``chosen`` (N,) bool of ``first`` and all others of ``second``."""
    from ...core.sparse_rows import scaled_rows

    return (scaled_rows(first, chosen.astype(float)) + scaled_rows(second, (~chosen).astype(float))).tocsr()


def _nothing_to_do(mesh_object: bpy.types.Object, settings: TransferSettings) -> str:
    label = object_label(mesh_object)
    if not settings.factor:
        return "With a factor of 0 no weight changes. Choose a larger one"
    if settings.mirror != "NONE":
        return f"No vertex of {label} to be changed is on the side that mirrored weights are for. Mirror the other way"
    return f"All vertices of {label} that could be changed have weights of bones. Enable Replace to replace them"


def _body(mesh_object: bpy.types.Object, source: bpy.types.Object | None = None) -> "Body":
    """At rest, in the space of ``bodies.stretch_of`` itself, or of the source and then with the middles of large
    faces."""
    try:
        return read_body(mesh_object, source, middles=source is not None)
    except BadMesh as error:
        raise BadMesh(f"The {object_label(mesh_object)} cannot be used. {error}") from None


def _chosen(source: bpy.types.Object, names: Sequence[str], text: str) -> np.ndarray:
    """(P,) bool: the bones that ``text`` names, separated by commas; all if it is empty."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in names or name not in source.vertex_groups:
            raise BadScene(
                f'"{name}" is no vertex group of {object_label(source)} with a deforming bone. Choose others'
            )
    return np.isin(names, wanted) if wanted else np.ones(len(names), bool)


def _partners(given: BoneWeights) -> np.ndarray:
    """(P,) the bone of the other side of each bone, by its name; itself for one in the middle."""
    order = {name: index for index, name in enumerate(given.names)}
    flipped = [bpy.utils.flip_name(name) for name in given.names]
    for index in np.unique(given.bones[given.weights > 0]):
        if flipped[index] not in order:
            raise unmet(
                "NO_COUNTERPART",
                bone=given.names[index],
                other=flipped[index],
                does="deforms",
                remedy="Rename bones, or add it (Armature > Symmetrize)",
            )
    return np.array([order.get(name, index) for index, name in enumerate(flipped)])
