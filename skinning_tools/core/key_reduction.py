# SPDX-License-Identifier: GPL-3.0-or-later
"""Fewer keys on the same motion: temporal coherence, which Kavan et al. 2010 name as future work.

Each channel of each bone keeps the frames between which straight lines stay close to its values. The error is measured
at the vertices: keys are chosen by how far the corners of the bone's region move; then all channels of all bones are
checked together, whether all vertices stay within the tolerance in every frame. Bones whose vertices stay well within
get more leeway, other bones get less, and so on for some rounds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .bone_channels import JOINT_CHANNELS, BoneChannels, joint_frame_matrices, rest_frame_matrices
from .deform import skin_frame
from .grouping import ranges
from .progress import Progress, checkpoint, ignore, span

if TYPE_CHECKING:
    from .decomposition import Decomposition

# (n,) how far members move between two rows: of (members, rows, first, last, share).
Distances = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

_STAGE = "Reducing keys"
# Vertices that follow a bone by less than this do not count for its region, unless it has no others.
_LEAST_WEIGHT = 0.05
# The share of the tolerance that residual shapes get at first.
_SHARE_OF_SHAPES = 0.3
_EXTREME_VERTICES = 16
# Rounds of choosing; in the first ones leeway grows where there is room.
_ROUNDS, _GROWING_ROUNDS = 12, 5
_LARGEST_RAISE = 1.7
_AIM = 0.95
# Components of each channel, which have one curve each.
_CURVES = {"location": 3, "rotation": 4, "scale": 3, "child_rotation": 4, "joint_location": 3, "joint_rotation": 4}


@dataclass(frozen=True, eq=False)
class KeyChoice:
    """Rows of the frames with keys, ascending, the first and the last among them: bones: of each channel (names as in
    BoneChannels) and bone; shapes: of all residual shapes together, or None."""

    bones: dict[str, tuple[np.ndarray, ...]]
    shapes: np.ndarray | None = None
    shape_count: int = 0

    def key_count(self) -> int:
        """Keys on all curves."""
        count = sum(_CURVES[name] * sum(map(len, rows)) for name, rows in self.bones.items())
        return count + (0 if self.shapes is None else self.shape_count * len(self.shapes))


def reduce_keys(
    decomposition: "Decomposition",
    channels: BoneChannels,
    bone_rest: np.ndarray,
    times: np.ndarray,
    tolerance: float,
    progress: Progress = ignore,
) -> KeyChoice:
    """The frames at which bones and residual shapes need keys for no vertex to move by more than ``tolerance``.

    decomposition: a core.decomposition.Decomposition; channels: its ``bone_channels`` on bones at rest at ``bone_rest``
    (P, 4, 4); times (F,): where the frames are; tolerance > 0: a distance in object space, at the given frames.
    Raises Cancelled.
    """
    motion = _Motion(decomposition, channels, bone_rest, np.asarray(times, dtype=np.float64))
    best = motion.all_keys()
    leeways = [np.where(layer.has_vertices(), tolerance / len(channels.moving()), np.inf) for layer in motion.layers]
    for_shapes = _SHARE_OF_SHAPES * tolerance
    for number in range(_ROUNDS):
        part = span(progress, number / _ROUNDS, (number + 1) / _ROUNDS)
        choice = motion.choose(leeways, for_shapes, span(part, 0.0, 0.6))
        errors = motion.changes(choice, span(part, 0.6, 1.0))
        if errors.max() <= tolerance:
            best = min(best, choice, key=KeyChoice.key_count)
            if number >= _GROWING_ROUNDS:
                break
        raised = _LARGEST_RAISE if number < _GROWING_ROUNDS else 1.0

        def factor(error: np.ndarray, raised: float = raised) -> np.ndarray:
            return np.minimum(_AIM * tolerance / np.maximum(error, _AIM * tolerance / _LARGEST_RAISE), raised)

        for leeway, layer in zip(leeways, motion.layers, strict=True):
            leeway *= factor(layer.by_bone(errors))
        for_shapes *= float(factor(errors.max()))
    return best


class _Layer:
    """One or several channels of each bone whose effect is measured at the corners of one region: the bone's own
    vertices, or for the channels of a joint those of all bones below it. Its ancestors are rigid, and do not change the
    distances."""

    def __init__(
        self,
        channels: dict,
        matrices: Callable[..., np.ndarray],
        rest: np.ndarray,
        members: tuple[np.ndarray, np.ndarray],
        frames: np.ndarray,
    ):
        """matrices(bones, **channels) in the rest frames ``frames`` (P, 4, 4); members: see ``_members``."""
        self.names, self._channels, self._matrices = tuple(channels), channels, matrices
        self._members = members
        self._corners = _corners(rest, members, np.linalg.inv(frames))
        self._places = _applied(matrices(slice(None), **channels), self._corners)

    def distances_of(self, name: str) -> Distances:
        def distances(
            members: np.ndarray, rows: np.ndarray, first: np.ndarray, last: np.ndarray, share: np.ndarray
        ) -> np.ndarray:
            here = {other: values[rows, members] for other, values in self._channels.items() if other != name}
            here[name] = _mixed(self._channels[name][first, members], self._channels[name][last, members], share)
            places = _applied(self._matrices(members, **here), self._corners[members])
            return np.linalg.norm(places - self._places[rows, members], axis=-1).max(axis=1)

        return distances

    def has_vertices(self) -> np.ndarray:
        """(P,) bool."""
        return np.bincount(self._members[0], minlength=len(self._corners)) > 0

    def by_bone(self, errors: np.ndarray) -> np.ndarray:
        """(P,) the largest of ``errors`` (N,) among each bone's vertices; 0 without any."""
        bones, vertices = self._members
        largest = np.zeros(len(self._corners))
        np.maximum.at(largest, bones, errors[vertices])
        return largest


def _layers(skin: "Decomposition", channels: BoneChannels, bone_rest: np.ndarray) -> list[_Layer]:
    """The bones' own channels, then those of the joints; either may be missing."""
    moving, members = channels.moving(), _members(skin)
    joints = {name: moving.pop(name) for name in JOINT_CHANNELS if name in moving}
    child_scale = channels.child_scale
    layers = []
    if moving:

        def own(bones: np.ndarray | slice, **here: np.ndarray) -> np.ndarray:
            return rest_frame_matrices(None if child_scale is None else child_scale[bones], **here)

        layers.append(_Layer(moving, own, skin.rest, members, bone_rest))
    if joints:
        assert channels.tree is not None
        parents = channels.tree.hierarchy.parents
        above = _with_ancestors(members, parents)
        layers.append(
            _Layer(joints, lambda _, **here: joint_frame_matrices(**here), skin.rest, above, channels.tree.rest)
        )
    return layers


class _Motion:
    """The motion to keep."""

    def __init__(
        self, decomposition: "Decomposition", channels: BoneChannels, bone_rest: np.ndarray, times: np.ndarray
    ):
        self._skin, self._channels, self._times = decomposition, channels, times
        self._bone_rest = bone_rest
        self.layers = _layers(decomposition, channels, bone_rest)
        self._matrices = channels.object_matrices(bone_rest)
        residual = decomposition.residual
        if residual is not None:
            effects = np.linalg.norm(residual.shapes, axis=2)
            order = np.argsort(-np.vstack([effects, np.square(effects).sum(axis=0)]), axis=1, kind="stable")
            self._extremes = residual.shapes[:, np.unique(order[:, :_EXTREME_VERTICES])]

    def all_keys(self) -> KeyChoice:
        every = np.arange(len(self._times))
        bones = {name: (every,) * len(self._bone_rest) for name in self._channels.moving()}
        return self._choice(bones, None if self._skin.residual is None else every)

    def choose(self, leeways: list[np.ndarray], for_shapes: float, progress: Progress) -> KeyChoice:
        """Keys by which no corner of a bone's region moves by more than its layer's leeway (P,) where one channel alone
        is interpolated, and no vertex by more than ``for_shapes`` at rest by the residual shapes."""
        pairs = zip(self.layers, leeways, strict=True)
        channels = [(name, layer, leeway) for layer, leeway in pairs for name in layer.names]
        bones = {}
        for number, (name, layer, leeway) in enumerate(channels):
            part = span(progress, 0.8 * number / len(channels), 0.8 * (number + 1) / len(channels))
            bones[name] = _longest_spans(layer.distances_of(name), leeway, self._times, part)
        if self._skin.residual is None:
            return self._choice(bones, None)
        values = self._skin.residual.values

        def distances(
            _members: np.ndarray, rows: np.ndarray, first: np.ndarray, last: np.ndarray, share: np.ndarray
        ) -> np.ndarray:
            change = _mixed(values[first], values[last], share) - values[rows]
            return np.linalg.norm(np.tensordot(change, self._extremes, axes=1), axis=-1).max(axis=1)

        (shapes,) = _longest_spans(distances, np.array([for_shapes]), self._times, span(progress, 0.8, 1.0))
        return self._choice(bones, shapes)

    def _choice(self, bones: dict[str, tuple[np.ndarray, ...]], shapes: np.ndarray | None) -> KeyChoice:
        residual = self._skin.residual
        return KeyChoice(bones, shapes, 0 if shapes is None or residual is None else len(residual.shapes))

    def changes(self, choice: KeyChoice, progress: Progress) -> np.ndarray:
        """(N,) the largest distance of each vertex in any frame from where it was with all keys."""
        skin, largest = self._skin, np.zeros(len(self._skin.rest))
        matrices = self._channels.at_keys(choice.bones, self._times).object_matrices(self._bone_rest)
        for frame, (reduced, full) in enumerate(zip(matrices, self._matrices, strict=True)):
            if choice.shapes is None or skin.residual is None:
                change = skin_frame(skin.rest, skin.bones, skin.weights, reduced - full)
            else:
                values = self._values_at(choice.shapes, frame)
                corrected = skin.rest + np.tensordot(values, skin.residual.shapes, axes=1)
                change = skin_frame(corrected, skin.bones, skin.weights, reduced)
                change -= skin_frame(skin.rest_at(frame), skin.bones, skin.weights, full)
            np.maximum(largest, np.linalg.norm(change, axis=1), out=largest)
            checkpoint(progress, (frame + 1) / len(matrices), _STAGE)
        return largest

    def _values_at(self, rows: np.ndarray, frame: int) -> np.ndarray:
        assert self._skin.residual is not None
        times, values = self._times, self._skin.residual.values
        return np.array([np.interp(times[frame], times[rows], column[rows]) for column in values.T])


def _mixed(first: np.ndarray, last: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(L, D): from ``first`` to ``last`` by ``share`` (L,)."""
    return first + share[:, None] * (last - first)


def _applied(matrices: np.ndarray, points: np.ndarray) -> np.ndarray:
    """``points`` (..., n, 3) moved by ``matrices`` (..., 3, 4)."""
    return points @ np.swapaxes(matrices[..., :3], -1, -2) + matrices[..., None, :, 3]


def _members(skin: "Decomposition") -> tuple[np.ndarray, np.ndarray]:
    """Bones (L,), ascending, and vertices (L,) that follow them noticeably."""
    strongest = np.zeros(skin.transforms.shape[1])
    np.maximum.at(strongest, skin.bones, skin.weights)
    chosen = (skin.weights > 0) & (skin.weights >= np.minimum(_LEAST_WEIGHT, strongest[skin.bones]))
    bones = skin.bones[chosen]
    vertices = np.broadcast_to(np.arange(len(skin.rest))[:, None], skin.bones.shape)[chosen]
    order = np.argsort(bones, kind="stable")
    return bones[order], vertices[order]


def _with_ancestors(members: tuple[np.ndarray, np.ndarray], parents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``members`` with the vertices of each bone repeated for all of its ancestors."""
    bone_parts, vertex_parts = [members[0]], [members[1]]
    while len(bone_parts[-1]):
        above = parents[bone_parts[-1]]
        bone_parts.append(above[above >= 0])
        vertex_parts.append(vertex_parts[-1][above >= 0])
    bones, vertices = np.concatenate(bone_parts), np.concatenate(vertex_parts)
    order = np.argsort(bones, kind="stable")
    return bones[order], vertices[order]


def _corners(rest: np.ndarray, members: tuple[np.ndarray, np.ndarray], to_bone: np.ndarray) -> np.ndarray:
    """(P, 8, 3): corners of the box around each bone's vertices, in its rest frame; all zero without vertices."""
    bones, vertices = members
    local = np.einsum("nij,nj->ni", to_bone[bones, :3, :3], rest[vertices]) + to_bone[bones, :3, 3]
    boxes = np.zeros((len(to_bone), 2, 3))
    used, starts = np.unique(bones, return_index=True)
    boxes[used, 0] = np.minimum.reduceat(local, starts, axis=0)
    boxes[used, 1] = np.maximum.reduceat(local, starts, axis=0)
    x, y, z = np.indices((2, 2, 2)).reshape(3, -1)
    return np.stack([boxes[:, x, 0], boxes[:, y, 1], boxes[:, z, 2]], axis=-1)


def _longest_spans(
    distances: Distances, allowed: np.ndarray, times: np.ndarray, progress: Progress
) -> tuple[np.ndarray, ...]:
    """Rows of the keys of each of P members: from each key on, the farthest next one by which ``allowed`` (P,) holds.

    distances(members, rows, first, last, share) (L,): how far member m is off at a row where it is interpolated between
    the rows first and last. All members advance together, each by doubling its span and then halving the step.
    """
    count, last_row = len(allowed), len(times) - 1
    keys = [[0] for _ in range(count)]
    start = np.zeros(count, dtype=int)
    good = np.minimum(start + 1, last_row)
    bad = np.full(count, last_row + 1)
    active = np.nonzero(start < last_row)[0]
    while len(active):
        unknown = bad[active] > last_row
        doubled = np.minimum(start[active] + 2 * (good[active] - start[active]), last_row)
        probe = np.where(unknown, doubled, (good[active] + bad[active]) // 2)
        holds = _holds(distances, active, start[active], probe, allowed[active], times)
        good[active] = np.where(holds, probe, good[active])
        bad[active] = np.where(holds, bad[active], probe)
        settled = active[(good[active] == last_row) | (bad[active] - good[active] <= 1)]
        for member in settled:
            keys[member].append(int(good[member]))
        start[settled] = good[settled]
        good[settled] = np.minimum(start[settled] + 1, last_row)
        bad[settled] = last_row + 1
        active = active[start[active] < last_row]
        checkpoint(progress, float(start.mean() / last_row), _STAGE)
    return tuple(np.array(rows) for rows in keys)


def _holds(
    distances: Distances,
    members: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    allowed: np.ndarray,
    times: np.ndarray,
) -> np.ndarray:
    """(n,) bool: whether each member, interpolated between two rows, is near enough at all rows in between."""
    inner = last - first - 1
    holds = np.ones(len(members), dtype=bool)
    busy = np.nonzero(inner > 0)[0]
    if not len(busy):
        return holds
    lengths = inner[busy]
    starts = np.cumsum(lengths) - lengths
    rows = ranges(first[busy] + 1, lengths)
    begin, end = np.repeat(first[busy], lengths), np.repeat(last[busy], lengths)
    share = (times[rows] - times[begin]) / (times[end] - times[begin])
    off = distances(np.repeat(members[busy], lengths), rows, begin, end, share)
    holds[busy] = np.maximum.reduceat(off, starts) <= allowed[busy]
    return holds
