# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones, weights and motions on their way to a solution, and the normal equations of the motions."""

from dataclasses import dataclass, replace

import numpy as np

from ..dense import half_self_product, mirrored, product, self_product
from .mirror import Mirror
from .motion import about, drop_motions, fit_motions, motions
from .surface import SurfaceError
from .types import ShapeRig

_BLOCK = 2048


@dataclass
class State:
    """points (N, 4) and target (N, 3, S) in solver units; bones, weights, pivots, turns and moves as in a ShapeRig;
    active (S, P): which bones a shape moves; importance (S,): of its errors where bones compete for that; mirror: by
    which the right of a face follows its left."""

    points: np.ndarray
    target: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    pivots: np.ndarray
    turns: np.ndarray
    moves: np.ndarray
    active: np.ndarray
    importance: np.ndarray
    mirror: Mirror | None = None

    @property
    def solved(self) -> np.ndarray:
        """The vertices (n,) that others follow, or all."""
        return np.arange(len(self.points)) if self.mirror is None else self.mirror.solved

    @property
    def bone_count(self) -> int:
        return len(self.pivots)

    def transforms(self) -> np.ndarray:
        """(4P, 3S): what the bones add to points, for all shapes."""
        added = motions(self.turns, self.moves)
        added[..., 3] -= np.einsum("spij,pj->spi", added[..., :3], self.pivots)
        return np.ascontiguousarray(added.transpose(1, 3, 2, 0).reshape(4 * self.bone_count, -1))

    def errors(self, transforms: np.ndarray) -> np.ndarray:
        """(N, 3, S)."""
        result, solved = np.empty(self.target.shape), self.solved
        for start in range(0, len(solved), _BLOCK):
            part = solved[start : start + _BLOCK]
            weights = self.dense_weights(part)
            design = (weights[:, :, None] * self.points[part, None]).reshape(len(weights), -1)
            result[part] = product(design, transforms).reshape(self.target[part].shape) - self.target[part]
        if self.mirror is not None:
            self.mirror.follow(self.mirror.solved, self.bones, self.weights, result)
        return result

    def dense_weights(self, part: slice | np.ndarray = slice(None)) -> np.ndarray:
        """(n, P)."""
        bones = self.bones[part]
        weights = np.zeros((len(bones), self.bone_count))
        np.add.at(weights, (np.arange(len(bones))[:, None], bones), self.weights[part])
        return weights

    def center_pivots(self) -> None:
        """Put each pivot in the middle of what its bone moves, by squared weights; no shape changes."""
        squared = self.dense_weights() ** 2
        mass = squared.sum(axis=0)
        centers = product(np.ascontiguousarray(squared.T), self.points[:, :3]) / np.where(mass > 0, mass, 1.0)[:, None]
        centers[mass <= 0] = self.pivots[mass <= 0]
        if self.mirror is not None:
            centers = self.mirror.pivots(centers)
        self.moves = about(self.turns, self.moves, centers - self.pivots)
        self.pivots = centers

    def fit_motions(self, surface: SurfaceError, hold: float, allowed: float = 0.0) -> None:
        """The best motions for the present weights. hold: how firmly bones are held at rest, as a share of their
        spread. allowed: how much error dropped motions may cost."""
        normal, right, spread = self._equations(surface)
        self._fit(normal, right, hold * spread)
        if allowed > 0:
            found = self.turns, self.moves, self.active
            self.active = drop_motions(normal, hold * spread, *found, self.importance, allowed)
            if self.mirror is not None:
                self.active |= self.active[self.mirror.sliders][:, self.mirror.bones]
            self._fit(normal, right, hold * spread)

    def _fit(self, normal: np.ndarray, right: np.ndarray, hold: np.ndarray) -> None:
        if self.mirror is None:
            self.turns, self.moves, _ = fit_motions(normal, right, hold, self.turns, self.moves, self.active)
            return
        sliders = self.mirror.sliders
        own = np.flatnonzero(sliders >= np.arange(len(sliders)))
        turns, moves = self.turns.copy(), self.moves.copy()
        turns[own], moves[own], _ = fit_motions(normal, right[own], hold, turns[own], moves[own], self.active[own])
        turned, moved = self.mirror.motions(turns, moves)
        # The sliders of the other side follow; in the middle, rounding is taken out.
        share = np.where(sliders > np.arange(len(sliders)), 1.0, np.where(sliders < np.arange(len(sliders)), 0.0, 0.5))
        share = share[:, None, None]
        self.turns, self.moves = share * turns + (1 - share) * turned, share * moves + (1 - share) * moved

    def _equations(self, surface: SurfaceError) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The normal equations for [R − I | t] of all bones (12P,): the matrix (12P, 12P), the right sides (S, 12P),
        and the bones' spread (P,)."""
        bone_count, shape_count = self.bone_count, self.target.shape[2]
        rows, share = self.solved, 1.0 if self.mirror is None else self.mirror.shares
        weights = self.dense_weights()
        local = self.points[:, None, :3] - self.pivots
        design = np.concatenate([local, np.ones((*weights.shape, 1))], axis=2) * weights[:, :, None]
        importance = share * surface.importance[rows]
        spread = np.einsum("n,npi,npi->p", importance, design[rows, :, :3], design[rows, :, :3])
        design = design.reshape(len(weights), -1)
        flat = self.target.reshape(len(weights), -1)
        weighed = np.ascontiguousarray((importance[:, None] * design[rows]).T)
        plain, plain_right = product(weighed, design[rows]), product(weighed, flat[rows])
        tilted = np.zeros((12 * bone_count, 12 * bone_count))
        tilted_right = np.zeros((12 * bone_count, shape_count))
        root = np.sqrt(share * surface.surface_importance[rows])[:, None]
        normals = surface.normals[rows]
        for gradient, turn in zip(surface.gradients, surface.turns, strict=True):
            gradient, turn = gradient[rows], turn[rows]
            along = root * (gradient @ design)
            if surface.plain:
                plain += surface.plain**2 * self_product(along)
                wanted = surface.plain**2 * root * (gradient @ flat)
                plain_right += product(np.ascontiguousarray(along.T), wanted)
            if surface.normal:
                wanted = root * (turn @ self.target.reshape(-1, shape_count))
                for start in range(0, len(along), _BLOCK):
                    part = slice(start, start + _BLOCK)
                    tilt = normals[part, :, None] * along[part, None]
                    tilt = tilt.reshape(len(tilt), -1)
                    tilted += half_self_product(tilt)
                    tilted_right += product(np.ascontiguousarray(tilt.T), wanted[part])
        tilted = surface.normal**2 * mirrored(tilted)
        tilted_right *= surface.normal**2
        # From (coordinate, bone, entry) to (bone, coordinate, entry), which is how [R − I | t] is laid out.
        sides = 3, bone_count, 4
        normal = tilted.reshape(*sides, *sides)
        for axis in range(3):
            normal[axis, :, :, axis] += plain.reshape(bone_count, 4, bone_count, 4)
        normal = normal.transpose(1, 0, 2, 4, 3, 5).reshape(tilted.shape)
        right = tilted_right.reshape(*sides, -1) + plain_right.reshape(bone_count, 4, 3, -1).transpose(2, 0, 1, 3)
        right = right.transpose(3, 1, 0, 2).reshape(shape_count, -1)
        return (normal, right, spread) if self.mirror is None else self.mirror.equations(normal, right, spread)

    def copy(self) -> "State":
        own = ("bones", "weights", "pivots", "turns", "moves", "active")
        return replace(self, **{name: getattr(self, name).copy() for name in own})

    def take(self, other: "State") -> None:
        """The weights and motions of another state."""
        self.bones, self.weights = other.bones, other.weights
        self.pivots, self.turns, self.moves = other.pivots, other.turns, other.moves

    def make_symmetric(self) -> None:
        """Vertices in the middle get the same weights on both sides, and those of the right the weights of the left."""
        assert self.mirror is not None
        middle, influences = np.flatnonzero(self.mirror.middle), self.bones.shape[1]
        set_weights(self.bones, self.weights, middle, self.mirror.balanced(self.dense_weights(middle), influences))
        self.mirror.follow(self.mirror.solved, self.bones, self.weights, None)

    def extrapolated(self, before: "State", factor: float) -> "State":
        """A state that goes on from ``before`` over this one, with the bones of each vertex as they are here."""
        now, then = self.dense_weights(), before.dense_weights()
        weights = np.where(now > 0, np.maximum(now + factor * (now - then), 0.0), 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
        # A bone may be in several slots of a vertex, of which one has its weight.
        chosen = np.where(self.weights > 0, np.take_along_axis(weights, self.bones, axis=1), 0.0)
        earlier = about(before.turns, before.moves, self.pivots - before.pivots)
        return replace(
            self,
            weights=chosen / chosen.sum(axis=1, keepdims=True),
            turns=np.where(self.active[..., None], self.turns + factor * (self.turns - before.turns), 0.0),
            moves=np.where(self.active[..., None], self.moves + factor * (self.moves - earlier), 0.0),
        )

    def result(self, scale: float, center: np.ndarray, seconds: dict[str, float]) -> ShapeRig:
        """The ShapeRig, in the units of the shapes."""
        return ShapeRig(
            self.bones.astype(np.int32),
            self.weights,
            self.pivots / scale + center,
            self.turns,
            self.moves / scale,
            seconds,
            None if self.mirror is None else self.mirror.bones,
        )


def set_weights(bones: np.ndarray, weights: np.ndarray, rows: np.ndarray, dense: np.ndarray) -> None:
    """Write the strongest of weights ``dense`` (n, P) of vertices ``rows`` (n,) into bones and weights (N, K)."""
    influences = bones.shape[1]
    strongest = np.argpartition(-dense, influences - 1, axis=1)[:, :influences]
    order = np.argsort(-np.take_along_axis(dense, strongest, axis=1), axis=1, kind="stable")
    strongest = np.take_along_axis(strongest, order, axis=1)
    kept = np.take_along_axis(dense, strongest, axis=1)
    bones[rows] = np.where(kept > 0, strongest, strongest[:, :1])
    weights[rows] = kept / kept.sum(axis=1, keepdims=True)
