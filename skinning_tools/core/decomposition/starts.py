# SPDX-License-Identifier: GPL-3.0-or-later
"""One bone for each vertex, to begin with: regions grown over the mesh, bones moved from where they gain little to
where they are needed, and in between vertices assigned to the bone that predicts them best."""

import numpy as np

from ..progress import Progress, checkpoint, span
from ..threads import for_each
from .bone_kinds import AffineBones
from .bone_model import BoneModel, homogeneous
from .error_seeds import parts_of, regions_by_error
from .prepared import Prepared
from .segmentation import fill_empty_regions, grow_regions
from .split_merge import Cloud, move_bones, squared_error
from .sweeps import vertex_blocks
from .transforms import NormalEquations
from .vertex_step import best_single_bones

_MOVE_ROUNDS = 6


def segmentations(prepared: Prepared, bone_count: int, progress: Progress) -> list[np.ndarray]:
    """Several starts, each the bone (N,) of every vertex, the one with the least error first: it usually ends lowest
    after the sweeps, too, and no single start does so on all meshes. Raises Cancelled."""
    matrix, reduction, triangles = prepared.matrix, prepared.reduction, prepared.triangles
    rest = matrix.rest_pose()
    cloud = Cloud(homogeneous(rest), reduction, prepared.importance)
    affine = AffineBones(matrix, reduction, bone_count)
    given = matrix, reduction, rest, triangles
    starts = [
        lambda progress: grow_regions(*given, bone_count, progress),
        lambda progress: grow_regions(*given, bone_count, progress, outermost_first=True),
    ]
    parts = parts_of(triangles, len(rest))
    if parts is not None:
        starts.append(lambda progress: regions_by_error(*given, parts, bone_count, progress))
    found = []
    for number, start in enumerate(starts):
        part = span(progress, number / len(starts), (number + 1) / len(starts))
        labels = start(span(part, 0.0, 0.4))
        found.append(_moved(cloud, affine, labels, bone_count, span(part, 0.4, 1.0)))
    return sorted(found, key=lambda each: squared_error(cloud, each, bone_count))


def _moved(cloud: Cloud, affine: AffineBones, labels: np.ndarray, bone_count: int, progress: Progress) -> np.ndarray:
    labels = _reassigned(cloud, affine, labels, bone_count, 2, progress)
    for i in range(_MOVE_ROUNDS if bone_count > 2 else 0):
        part = span(progress, i / _MOVE_ROUNDS, 1.0)
        checkpoint(part, 0.0, "Segmenting")
        labels, moves = move_bones(cloud, labels, bone_count)
        if not moves:
            break
        labels = _reassigned(cloud, affine, labels, bone_count, 1, part)
    return _reassigned(cloud, affine, labels, bone_count, 2, span(progress, 1.0, 1.0))


def _reassigned(
    cloud: Cloud, affine: AffineBones, labels: np.ndarray, bone_count: int, rounds: int, progress: Progress
) -> np.ndarray:
    points, source = cloud.points, cloud.source
    for _ in range(rounds):
        model = affine.model(affine.start(NormalEquations.of_regions(points, source, labels, bone_count)))

        def best(part: slice, model: BoneModel = model) -> np.ndarray:
            return best_single_bones(model, source.rows(part), points[part])

        def take(part: slice, found: np.ndarray, labels: np.ndarray = labels) -> None:
            labels[part] = found
            checkpoint(progress, 0.0, "Segmenting")

        for_each(best, vertex_blocks(len(points)), take)
        labels = fill_empty_regions(labels, points[:, :3], bone_count)
    return labels
