# SPDX-License-Identifier: GPL-3.0-or-later
"""Bind a skin to a skeleton: for each vertex, bones and their weights. It always gives a result.

First, the segments of the skeleton that count for the body are found, and the body's loose parts. Then each vertex is
assigned to one bone or a few, which is where the methods differ, and heat that flows over the surface smooths the
weights. Sources: the smooth skinning chapter, "Skin Binding"; Baran & Popović 2007.
"""

from collections.abc import Sequence
from importlib import import_module

import numpy as np
from numpy.typing import ArrayLike

from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore, span
from ..strongest import strongest_first
from . import methods
from .assignment import Assignment, Limits, Request
from .containment import Falloff, Volume, check_volumes
from .diffusion import SPARE, diffuse, limited
from .distances import BoneDistances
from .influence_rows import matrix_influences
from .loose_parts import attached
from .parts import contacts, with_parts
from .rigid import nearest_bones
from .segments import Segments, segments_of
from .skeleton import hops
from .types import Body, Skeleton

METHODS = tuple(method.identifier for method in methods.METHODS)
_MODULES = {method.identifier: method.module for method in methods.METHODS}


def bind(
    body: Body,
    skeleton: Skeleton,
    method: str = "AUTOMATIC",
    *,
    segments: Segments | None = None,
    owners: np.ndarray | None = None,
    max_influences: int = 4,
    whole_parts: bool = False,
    distance_limits: float | Sequence[float] | np.ndarray | None = None,
    volumes: Sequence[Volume] | None = None,
    falloff: Falloff | None = None,
    smooth: bool = True,
    progress: Progress = ignore,
) -> tuple[np.ndarray, np.ndarray]:
    """bones (N, K) int32 and weights (N, K) float64 of the body's vertices, rows summing to 1, strongest first.

    method: one of ``METHODS``. RIGID gives each vertex its nearest bone (of several equally near ones, their nearest
    common ancestor), K = 1, or with ``whole_parts`` each connected part one bone. CONTAINMENT uses ``volumes``, or
    capsules that it generates, and their ``falloff``, by default none. The others: see their modules.
    segments: what of the ``skeleton`` counts for the character that the body belongs to; by default for the body alone.
    Where there are volumes, all bones count, and loose parts do as the volumes say.
    owners (N,) int: of a body of several meshes, which one each vertex belongs to. Where these overlap they bend alike.
    max_influences: K at most; K is smaller where no vertex has as many. Unused slots repeat a used bone with weight 0.
    distance_limits: one for all bones, or one for each (P,), in the mesh's units; no bone has a weight beyond its
    limit, but a vertex beyond all limits belongs to its nearest bone.
    smooth: False: the weights of the first stage, which the methods other than CONTAINMENT do not make for use alone.
    Vertices at one place get the same weights; a symmetric body and skeleton get symmetric weights.
    Raises BadSettings on an unknown method and on unusable limits and volumes; Cancelled.
    """
    if method not in METHODS:
        raise BadSettings(f"The method must be one of {', '.join(METHODS)}, not {method}")
    if max_influences < 1:
        raise BadSettings(f"Max influences must be at least 1, not {max_influences}")
    reach = _reach(distance_limits, skeleton)
    if method == "CONTAINMENT" and volumes is not None:
        check_volumes(volumes, skeleton)
    if segments is None:
        checkpoint(progress, 0.0, "Reading the skeleton")
        segments = segments_of(body, skeleton, all_bones=volumes is not None)
    skeleton, kept = segments.skeleton, segments.kept.astype(np.int32)
    distances = BoneDistances(body, skeleton, span(progress, 0.15, 0.25), farther=segments.farther)
    limits = Limits(distances, reach[kept])
    module = import_module(f".{_MODULES[method]}", __package__)
    request = Request(body, skeleton, distances, limits, segments.solid, volumes, whole_parts, falloff)
    assignment = module.assign(request, span(progress, 0.25, 0.7))
    if not isinstance(assignment, Assignment):
        return kept[assignment[body.place]][:, None], np.ones((len(body.rest), 1))
    bones, weights = _influences(request, assignment, owners, max_influences, smooth, span(progress, 0.7, 1.0))
    width = int((weights > 0).sum(axis=1).max())
    return kept[bones[body.place, :width]], weights[body.place, :width]


def _influences(
    request: Request,
    assignment: Assignment,
    owners: np.ndarray | None,
    max_influences: int,
    smooth: bool,
    progress: Progress,
) -> tuple[np.ndarray, np.ndarray]:
    """bones and weights (V, K) of the body's places: the assignment, spread over the surface if ``smooth``, within the
    limits of distance and of influences."""
    body, skeleton, distances, limits = request.body, request.skeleton, request.distances, request.limits
    by_parts = smooth and request.volumes is None
    if by_parts:
        assignment = with_parts(assignment, request)
    if smooth:
        met = None
        if by_parts and owners is not None:
            met = contacts(body, request.parts, owners[body.first_vertices])
        bones, weights = diffuse(body, assignment, max_influences + SPARE, progress, contacts=met)
    else:
        bones, weights = matrix_influences(assignment.shares, max_influences + SPARE)
    weights = limits.faded(bones, weights)
    bones, weights = strongest_first(bones, weights)
    lost = ~weights.any(axis=1)
    if lost.any():
        weights[lost, 0] = 1
        bones[lost] = nearest_bones(distances, skeleton)[lost, None]
    bones, weights = limited(bones, weights, max_influences, hops(skeleton))
    return attached(body, request.parts, bones, weights) if by_parts else (bones, weights)


def _reach(limits: ArrayLike | None, skeleton: Skeleton) -> np.ndarray:
    if limits is None:
        return np.full(len(skeleton), np.inf)
    reach = np.asarray(limits, dtype=np.float64)
    if reach.ndim > 1 or (reach.ndim == 1 and len(reach) != len(skeleton)):
        raise BadSettings(f"There must be one distance limit, or one for each of the {len(skeleton)} bones")
    reach = np.broadcast_to(reach, len(skeleton))
    wrong = ~(reach >= 0)
    if wrong.any():
        raise BadSettings(f"The distance limit of bone {skeleton.names[int(np.argmax(wrong))]} must not be negative")
    return reach
