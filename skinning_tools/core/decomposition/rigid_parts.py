# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid parts that several bones share, though one moves them as well.

A blend of bones may move a part as exactly as the one bone that it has: nothing in the error tells them apart, and
where each bone is needed by the blends of the others, none can go alone. So they become one at once.
"""

from dataclasses import replace

import numpy as np

from ..binding.influence_rows import tidy_influences
from ..grouping import members
from ..strongest import strongest_bones
from . import rigid
from .bone_model import homogeneous
from .reduction import AnimationMatrix
from .removals import sharing_bones
from .skin import Skin
from .transforms import NormalEquations, to_rows

# Most bones that are no part are told by so many frames.
_FEW_FRAMES = 16
# The share of the vertices that a rigid part has at least. The others blend it with its neighbors: bones are fitted to
# those that are closest, once and again, but to so many, since few do not tell a motion.
_LEAST, _TRIMS, _FEWEST = 0.5, 2, 8


def with_whole_parts(matrix: AnimationMatrix, skin: Skin, allowed: np.ndarray) -> Skin:
    """``skin``, in which one bone takes the place of those that share vertices where it moves what they lead as well as
    all of them do; the same where there are none.

    allowed (N, F): the squared error that each vertex of ``matrix`` may have in each frame. Most vertices of each
    region, which are those that a bone leads, keep to it from the first frame's rest position on: what a blend has made
    of that need not be rigid.
    """
    first = homogeneous(matrix.rest_pose())
    leading = strongest_bones(skin.state.bones, skin.state.weights)
    regions = _Regions(matrix, first, members(leading, skin.bone_count), allowed)
    names = _names(regions, sharing_bones(skin.state, skin.bone_count))
    kept, counts = np.unique(names, return_counts=True)
    if len(kept) == skin.bone_count:
        return skin
    places = np.searchsorted(kept, names)
    bones, weights, points = places[skin.state.bones], skin.state.weights.copy(), skin.state.points.copy()
    rows = skin.rows.reshape(skin.bone_count, 4, -1)[kept]
    for place in np.flatnonzero(counts > 1):
        vertices, motion = regions.moved_by_one(np.flatnonzero(places == place))
        rows[place] = matrix.weigh(motion)
        bones[vertices], weights[vertices], points[vertices] = place, np.eye(1, weights.shape[1]), first[vertices]
    bones, weights = tidy_influences(bones, weights, min(weights.shape[1], len(kept)))
    state = replace(skin.state, points=points, bones=bones, weights=weights)
    return replace(skin, rows=rows.reshape(4 * len(kept), -1), state=state)


def _names(regions: "_Regions", near: np.ndarray) -> np.ndarray:
    """(P,) for each bone the one whose part it belongs to, itself for most; near (P, P) bool: those that may share."""
    names = np.arange(len(near))
    # What is not rigid alone is not with others, and a bone that leads nothing belongs to no part.
    left = np.array([regions.are_one_part(np.array([bone])) for bone in names])
    for first in np.argsort(-regions.counts, kind="stable"):
        if not left[first]:
            continue
        part, tried = [first], ~left
        tried[first] = True
        while (reached := near[part].any(axis=0) & ~tried).any():
            bone = int(reached.argmax())
            tried[bone] = True
            if regions.are_one_part(np.array([*part, bone])):
                part.append(bone)
        names[part], left[part] = first, False
    return names


class _Regions:
    """The vertices that each of P bones leads, ``counts`` (P,) of them, and how one bone moves them."""

    def __init__(self, matrix: AnimationMatrix, points: np.ndarray, own: list[np.ndarray], allowed: np.ndarray):
        self.counts = np.array([len(mine) for mine in own])
        self._matrix, self._points, self._own, self._allowed = matrix, points, own, allowed
        frames = slice(None, None, max(1, allowed.shape[1] // _FEW_FRAMES))
        data = matrix.unweigh(matrix.rows(slice(None))).reshape(len(points), -1, 3)[:, frames]
        self._few = data.reshape(len(points), -1), allowed[:, frames]

    def are_one_part(self, bones: np.ndarray) -> bool:
        """Whether one rigid bone moves most vertices of each of ``bones`` (n,) within what they are allowed."""
        return bool(self.counts[bones].all()) and all(self._hold(bones, few) for few in (True, False))

    def moved_by_one(self, bones: np.ndarray, few: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (n,) of ``bones`` that one rigid bone moves within what they are allowed, and its Tᵀ (4, 3F), of no
        frame's weight; or those of a ``few`` frames."""
        mine = np.concatenate([self._own[bone] for bone in bones])
        if few:
            data, allowed = (each[mine] for each in self._few)
        else:
            data, allowed = self._matrix.unweigh(self._matrix.rows(mine)), self._allowed[mine]
        points, close = self._points[mine], np.arange(len(mine))
        count = max(int(np.ceil(_LEAST * len(mine))), min(_FEWEST, len(mine)))
        for _ in range(_TRIMS + 1):
            alone = NormalEquations.of_one_bone(points[close], data[close])
            motion = to_rows(rigid.fit_alone(alone.products, alone.moments[None]))
            errors = np.square(points @ motion - data).reshape(len(mine), -1, 3).sum(axis=2)
            close = np.argsort(errors.sum(axis=1), kind="stable")[:count]
        return mine[(errors <= allowed).all(axis=1)], motion

    def _hold(self, bones: np.ndarray, few: bool) -> bool:
        held = self.moved_by_one(bones, few)[0]
        return all(np.isin(self._own[bone], held).mean() >= _LEAST for bone in bones)
