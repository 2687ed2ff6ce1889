# SPDX-License-Identifier: GPL-3.0-or-later
"""Bind a skin to a skeleton: for each vertex, bones and their weights. It always gives a result.

Two stages: each vertex is assigned to a bone, or to a few, which is where the methods differ; then heat flows over the
surface and makes smooth weights of that. Sources: the smooth skinning chapter, "Skin Binding"; Baran & Popović 2007.
"""

from collections.abc import Sequence
from importlib import import_module

import numpy as np

from ..errors import BadSettings
from ..progress import Progress, ignore, span
from . import methods
from .assignment import Assignment, Limits, Request
from .containment import Volume, check_volumes
from .diffusion import SPARE, diffuse, strongest
from .distances import BoneDistances
from .rigid import nearest_bones
from .skeleton import hops
from .types import Body, Skeleton

METHODS = tuple(method.identifier for method in methods.METHODS)
_MODULES = {method.identifier: method.module for method in methods.METHODS}


def bind(
    body: Body,
    skeleton: Skeleton,
    method: str = "DELAUNAY",
    *,
    max_influences: int = 4,
    whole_parts: bool = False,
    distance_limits: float | Sequence[float] | np.ndarray | None = None,
    volumes: Sequence[Volume] | None = None,
    progress: Progress = ignore,
) -> tuple[np.ndarray, np.ndarray]:
    """bones (N, K) int32 and weights (N, K) float64 of the body's vertices, rows summing to 1, strongest first.

    method: one of ``METHODS``. RIGID gives every vertex its nearest bone (where several are as near, the nearest one
    that they all hang from), K = 1, or, with ``whole_parts``, every connected part one bone. CONTAINMENT uses
    ``volumes``, or capsules that it generates. The others: see their modules.
    max_influences: K at most; K is smaller where no vertex has as many. Unused slots repeat a used bone with weight 0.
    distance_limits: one for all bones, or one for each (P,), in the mesh's units; no bone has a weight beyond its
    limit, but a vertex beyond all limits belongs to its nearest bone.
    Vertices at one place get the same weights; a body and skeleton that are their own mirror images get such weights.
    Raises BadSettings on an unknown method, and on limits and volumes that make no sense; Cancelled.
    """
    if method not in METHODS:
        raise BadSettings(f"The method must be one of {', '.join(METHODS)}, not {method}")
    if max_influences < 1:
        raise BadSettings(f"Max influences must be at least 1, not {max_influences}")
    reach = _reach(distance_limits, skeleton)
    if method == "CONTAINMENT" and volumes is not None:
        check_volumes(volumes, skeleton)
    distances = BoneDistances(body, skeleton, span(progress, 0.0, 0.2))
    limits = Limits(distances, reach)
    finding, flowing = span(progress, 0.2, 0.6), span(progress, 0.6, 1.0)
    module = import_module(f".{_MODULES[method]}", __package__)
    assignment = module.assign(Request(body, skeleton, distances, limits, volumes, whole_parts), finding)
    if not isinstance(assignment, Assignment):
        return assignment[body.place][:, None], np.ones((len(body.rest), 1))

    bones, weights = diffuse(body, assignment, max_influences + SPARE, flowing)
    weights = limits.faded(bones, weights)
    order = np.argsort(-weights, axis=1, kind="stable")
    bones, weights = np.take_along_axis(bones, order, axis=1), np.take_along_axis(weights, order, axis=1)
    lost = ~weights.any(axis=1)
    if lost.any():
        weights[lost, 0] = 1
        bones[lost] = nearest_bones(distances, skeleton)[lost, None]
    bones, weights = strongest(bones, weights, max_influences, hops(skeleton))
    width = int((weights > 0).sum(axis=1).max())
    return bones[body.place, :width], weights[body.place, :width]


def _reach(limits, skeleton: Skeleton) -> np.ndarray:
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
