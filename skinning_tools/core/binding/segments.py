# SPDX-License-Identifier: GPL-3.0-or-later
"""The skeleton as its body suggests: segments from joint to joint, and none for controls.

Skeletons that come from other programs have tails that mean nothing: very short, or pointing anywhere. And they have
bones that the animator holds on to, such as the root, poles and targets, which deform nothing.
"""

from dataclasses import dataclass

import numpy as np

from ..bone_order import parents_first
from ..geometry import unit
from ..segments import segment_distances
from .distances import TIE, blocks
from .skeleton import lineage
from .solid import Solid
from .types import Body, Skeleton

# Tails are trusted where the median gap from a tail to the nearest child's head is a smaller share of the way there.
_TRUSTED_GAP = 0.25

# Bones shorter than this share of the body have no direction: where there is no bone with a child to judge by.
_NO_LENGTH = 0.01

# A child lies along an axis within 25° of it (a cosine), and a detached head within 18°.
_ALONG = 0.9
_NEAR_RAY = 0.95

# An axis is believed in where this share of the single children lies along it: nearly all of them where a program
# exports its own bones, a third by chance.
_BELIEVED = 0.6

# A detached head may be this much further than the body reaches, or the parent is long: across the gap of a joint.
_BEYOND = 2.0

# This share of a limb's length lies before its end: what lies beyond it, such as an ear on a head, does not count.
_END = 0.9

# A joint this share of the way from its parent's joint off the parent's segment is beside it.
_BESIDE = 0.5

# Most of a segment.
_MOSTLY = 0.75

# At least this share of a segment lies inside the body if the segment can be trusted.
_REACHES_IN = 0.25

# With fewer bones that have children, nothing is known about tails unless bones have hardly any length.
_FEWEST = 3

# Joints farther outside of the body than this share of its diagonal do not belong to it.
_OFF = 0.03


@dataclass(frozen=True, eq=False)
class Segments:
    """The bones that count for a body. kept (Q,): which of the P given ones; skeleton: these Q; solid: of the body.
    farther (Q,) ≥ 1: the factors by which distances to bones count as longer."""

    skeleton: Skeleton
    kept: np.ndarray
    solid: Solid
    farther: np.ndarray


def segments_of(
    body: Body, skeleton: Skeleton, *, all_bones: bool = False, among: np.ndarray | None = None
) -> Segments:
    """What of a skeleton counts for a body, all meshes of a character together.

    Tails that mean nothing are put where the body has them. all_bones: those that stand for nothing count, too. among
    (P,) bool: the bones that may count, at least one; all by default.
    """
    solid = Solid(body)
    trust = trusted(skeleton, body.diagonal)
    if not trust:
        skeleton = repaired(skeleton, solid, body.diagonal)
    keep = np.ones(len(skeleton), dtype=bool) if all_bones else standing(skeleton, solid, body.diagonal, trust)
    if among is not None:
        keep = keep & among if (keep & among).any() else among
    skeleton, kept = without(skeleton, keep)
    return Segments(skeleton, kept, solid, np.ones(len(kept)) if trust else farther(skeleton, solid))


def repaired(skeleton: Skeleton, solid: Solid, diagonal: float) -> Skeleton:
    """``skeleton`` with tails that lie where the body has them.

    A tail lies at the child along the axis that is believed in; without one, at the child with the most descendants.
    Where there is no such child, the bone runs along that axis, or to the middle of its limb, which is what of the body
    its joint is nearest to: to a detached head near its way, else to where the limb ends; less by the limb's thickness
    where the bone is beside its parent.
    """
    heads, parents, children = skeleton.heads, skeleton.parents, _children(skeleton)
    axis = _believed_axis(skeleton, children)
    tails, ends = heads.copy(), np.ones(len(skeleton), dtype=bool)
    sizes = lineage(skeleton).sum(axis=0)
    for bone, own in enumerate(children):
        reached = own[sizes[own] == sizes[own].max(initial=0)]
        if axis is not None:
            reached = _along(heads, bone, own, axis[bone], _ALONG)
        if len(reached):
            # Halfway between equals, as left and right are.
            tails[bone], ends[bone] = heads[reached].mean(axis=0), False
    limbs = _limbs(heads, tails, ends, solid)
    ways = axis
    if ways is None:
        ways = unit(np.array([limb.mean(axis=0) if len(limb) else np.zeros(3) for limb in limbs]))
    ways_out = solid.ways_out(heads, ways)
    # Bones that belong to the body although their parents do not, such as feet that follow their targets.
    placed = _placed(skeleton, solid, _fits(skeleton, solid, diagonal), solid.holds(heads))
    detached = placed & ((parents < 0) | ~placed[parents])
    related = lineage(skeleton) | lineage(skeleton).T
    lengths = np.where(parents >= 0, np.linalg.norm(heads - heads[parents], axis=1), 0)
    for bone in (bone for bone in parents_first(parents) if ends[bone]):
        others = np.flatnonzero(detached & ~related[bone] & ~detached[bone])
        offsets = np.linalg.norm(heads[others] - heads[bone], axis=1)
        others = others[offsets <= _BEYOND * max(ways_out[bone], lengths[bone])]
        reached = _along(heads, bone, others, ways[bone], _NEAR_RAY, nearest=True)
        length = np.clip(_reach(limbs[bone], ways[bone]), 0, ways_out[bone])
        tails[bone] = heads[reached[0]] if len(reached) else heads[bone] + length * ways[bone]
        ends[bone] = not len(reached)
    for bone in np.flatnonzero(offshoots(Skeleton(heads, tails, parents)) & ends):
        length = np.linalg.norm(tails[bone] - heads[bone]) - _thickness(limbs[bone], ways[bone])
        tails[bone] = heads[bone] + max(length, 0) * ways[bone]
    return Skeleton(heads, tails, parents, skeleton.names, skeleton.local_axes)


def offshoots(skeleton: Skeleton) -> np.ndarray:
    """(P,) bool: bones without children beside their parents, as those of a jaw or an eye are: no other bone is nearer
    to their joints, and these joints are off the parents' segments.

    A bone that its parent leads to continues a limb. One beside it stands at the skin of its parent's limb.
    """
    heads, axes, parents = skeleton.heads, skeleton.axes, skeleton.parents
    result = np.zeros(len(skeleton), dtype=bool)
    for bone, own in enumerate(_children(skeleton)):
        parent = parents[bone]
        if parent < 0 or len(own) or not skeleton.lengths[parent]:
            continue
        gaps = segment_distances(heads[bone], heads, axes)
        gaps[bone] = np.inf
        off = gaps[parent] > _BESIDE * np.linalg.norm(heads[bone] - heads[parent])
        result[bone] = off and gaps[parent] <= gaps.min() * (1 + TIE)
    return result


def farther(skeleton: Skeleton, solid: Solid) -> np.ndarray:
    """(P,) ≥ 1: the factors by which distances to the bones count as longer.

    A bone beside its parent is near the skin, and its parent is deep inside; so it is the nearest bone of much that its
    parent moves, such as the upper teeth above a jaw. In units of how deep the bones are, both would be as far from the
    skin above them, and the bone would move nothing alone: halfway between, the factor is the root of how many times
    deeper the parent is, where it is deepest, than the bone on average.
    """
    beside = np.flatnonzero(offshoots(skeleton))
    result = np.ones(len(skeleton))
    if len(beside):
        depths = solid.depths(skeleton.heads, skeleton.tails)
        ratios = depths[:, skeleton.parents[beside]].max(axis=0) / depths[:, beside].mean(axis=0)
        result[beside] = np.sqrt(np.maximum(ratios, 1))
    return result


def standing(skeleton: Skeleton, solid: Solid, diagonal: float, trust: bool) -> np.ndarray:
    """(P,) bool: the bones that stand for something in the body; all where none does.

    Where tails can be trusted, all that reach into the body. Where they were guessed, joints decide: a joint is inside.
    One that is not may be ill placed, where it is near, its parent stands for something and most of its segment is
    inside; otherwise it is a control. So is one that has no parent, unless it is well inside or a child's joint is
    inside: where the body meets the ground, the skin may touch a root by chance.
    """
    shares = solid.shares(skeleton.heads, skeleton.tails)
    if trust:
        result = solid.holds(skeleton.heads) | (shares >= _REACHES_IN)
        return result if result.any() else ~result
    fits = _fits(skeleton, solid, diagonal, shares >= _MOSTLY)
    leads_in = solid.holds(skeleton.heads) & (skeleton.parents >= 0)
    leads_on = np.bincount(skeleton.parents[leads_in], minlength=len(skeleton)) > 0
    result = _placed(skeleton, solid, fits, solid.deep(skeleton.heads) | leads_on)
    return result if result.any() else ~result


def _fits(skeleton: Skeleton, solid: Solid, diagonal: float, off: np.ndarray | bool = True) -> np.ndarray:
    """(P,) bool: bones with their joints in the body, or near it where they may be ``off``."""
    return solid.holds(skeleton.heads) | ((solid.distances(skeleton.heads) <= _OFF * diagonal) & off)


def _placed(skeleton: Skeleton, solid: Solid, fits: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """(P,) bool: bones that fit, where they have their joint in the body or a parent that is placed.

    begins (P,) bool: which of those without a parent are placed.
    """
    inside, result = solid.holds(skeleton.heads), np.zeros(len(skeleton), dtype=bool)
    for bone in np.argsort(lineage(skeleton).sum(axis=1), kind="stable"):  # parents first
        parent = skeleton.parents[bone]
        result[bone] = fits[bone] and (begins[bone] if parent < 0 else inside[bone] or result[parent])
    return result


def without(skeleton: Skeleton, keep: np.ndarray) -> tuple[Skeleton, np.ndarray]:
    """The bones ``keep`` (P,) bool alone, each the child of its nearest ancestor that is kept, and their indices."""
    kept = np.flatnonzero(keep)
    rank = np.cumsum(keep) - 1
    parents = skeleton.parents[kept]
    while True:
        lost = (parents >= 0) & ~keep[parents]
        if not lost.any():
            break
        parents[lost] = skeleton.parents[parents[lost]]
    parents = np.where(parents >= 0, rank[parents], -1)
    axes = None if skeleton.local_axes is None else skeleton.local_axes[kept]
    names = tuple(skeleton.names[bone] for bone in kept)
    return Skeleton(skeleton.heads[kept], skeleton.tails[kept], parents, names, axes), kept


def _children(skeleton: Skeleton) -> list[np.ndarray]:
    """For each bone its children elsewhere than at its own head."""
    apart = np.linalg.norm(skeleton.heads - skeleton.heads[skeleton.parents], axis=1)
    apart[skeleton.parents < 0] = 0
    real = apart > 1e-6 * max(float(apart.max(initial=0)), 1e-30)
    return [np.flatnonzero((skeleton.parents == bone) & real) for bone in range(len(skeleton))]


def trusted(skeleton: Skeleton, diagonal: float) -> bool:
    """Whether the tails mean something: most lie at the head of a child."""
    gaps = []
    for bone, own in enumerate(_children(skeleton)):
        if len(own):
            gap = np.linalg.norm(skeleton.heads[own] - skeleton.tails[bone], axis=1)
            nearest = int(gap.argmin())
            gaps.append(gap[nearest] / np.linalg.norm(skeleton.heads[own[nearest]] - skeleton.heads[bone]))
    if len(gaps) < _FEWEST:
        return bool(np.median(skeleton.lengths) >= _NO_LENGTH * diagonal)
    return bool(np.median(gaps) <= _TRUSTED_GAP)


def _believed_axis(skeleton: Skeleton, children: list[np.ndarray]) -> np.ndarray | None:
    """(P, 3) unit vectors: the local axis of each bone along which single children lie; None where there is none."""
    axes = _axes(skeleton)
    single = np.array([bone for bone, own in enumerate(children) if len(own) == 1], dtype=int)
    if not len(single):
        return None
    ways = unit(skeleton.heads[[children[bone][0] for bone in single]] - skeleton.heads[single])
    local = np.einsum("bij,bi->bj", axes[single], ways)
    votes = np.concatenate([(local > _ALONG).mean(axis=0), (local < -_ALONG).mean(axis=0)])
    best = int(votes.argmax())
    if votes[best] < _BELIEVED:
        return None
    return axes[:, :, best % 3] * (1 if best < 3 else -1)


def _axes(skeleton: Skeleton) -> np.ndarray:
    """(P, 3, 3) unit columns; if the skeleton has no local axes, the direction of each bone, and zeros."""
    if skeleton.local_axes is not None:
        return skeleton.local_axes
    axes = np.zeros((len(skeleton), 3, 3))
    axes[:, :, 1] = unit(skeleton.tails - skeleton.heads)
    return axes


def _along(
    heads: np.ndarray, bone: int, others: np.ndarray, way: np.ndarray, least: float, nearest: bool = False
) -> np.ndarray:
    """(1,) the head among ``others`` in the direction closest to ``way``, or with ``nearest`` the nearest one in about
    that direction; (0,) if there is none."""
    offsets = heads[others] - heads[bone]
    lengths = np.linalg.norm(offsets, axis=1)
    cosines = offsets @ way / np.maximum(lengths, 1e-30)
    fit = np.flatnonzero((cosines > least) & (lengths > 0))
    return others[fit[np.argsort(lengths[fit] if nearest else -cosines[fit], kind="stable")[:1]]]


def _reach(limb: np.ndarray, way: np.ndarray) -> float:
    """How far points (n, 3) of a bone's limb, from the bone's head, go along the unit vector ``way``."""
    return float(np.quantile(limb @ way, _END)) if len(limb) else 0.0


def _thickness(limb: np.ndarray, way: np.ndarray) -> float:
    """How far half of the points (n, 3) of a bone's limb are from the line along the unit vector ``way``."""
    return float(np.median(np.linalg.norm(limb - np.outer(limb @ way, way), axis=1))) if len(limb) else 0.0


def _limbs(heads: np.ndarray, tails: np.ndarray, ends: np.ndarray, solid: Solid) -> list[np.ndarray]:
    """For each segment points (n, 3), from its head, of the part of the solid that is nearest to it.

    What is as near to a bone of ``ends`` (P,) bool as to the one that leads to it belongs to the former.
    """
    points, favor = solid.samples(), np.where(ends, 1 - 1e-6, 1)
    nearest = np.zeros(len(points), dtype=int)
    for rows in blocks(len(points), 3 * len(heads)):
        nearest[rows] = (favor * segment_distances(points[rows, None], heads, tails - heads)).argmin(axis=1)
    order = np.argsort(nearest, kind="stable")
    starts = np.searchsorted(nearest[order], np.arange(1, len(heads)))
    return [limb - head for limb, head in zip(np.split(points[order], starts), heads, strict=True)]
