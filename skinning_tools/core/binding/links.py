# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links: bones at a joint that share its turn, so that the skin does not collapse (Weber 2000; smooth skinning
chapter, on bone links and the forearm).

A joint joins a parent and a child bone. Its links turn about the same point, or about points near it, each by a share
of the turn, and do not change the two bones; the skin is blended along the chain of parent, links and child. Twist
links take only the turn about the bone itself, along its whole length. Linear blending of two neighbors in the chain
that are φ apart shrinks a twisted cross-section to cos²(φ / 2) of its area: 0.854 for three links in half a turn,
against 0 without any.
"""

import numpy as np
from numpy.typing import ArrayLike

from .. import quaternions
from ..errors import BadSettings
from ..geometry import unit
from ..rotations import polar_decomposition
from ..smooth_step import smooth_step
from .influence_rows import tidy_influences

DEFAULT_THRESHOLD = np.pi / 3
MOST_LINKS = 3

_LIMIT_SAMPLES = 9

# Radii of the limb: vertices up to the first from the joint's axis are its own, beyond the second other limbs begin.
_OWN, _OTHER = 1.5, 2.5
_FEWEST_AROUND = 8


def link_count(turn_range: float, threshold: float = DEFAULT_THRESHOLD, most: int = MOST_LINKS) -> int:
    """How many links a joint needs that moves through ``turn_range`` radians: none up to ``threshold``, above it one
    for each threshold begun, at most ``most``. So the chapter has it: three for half a turn at 60°.

    With even shares, no step between neighbors then exceeds the threshold, unless ``most`` limits them. Raises
    BadSettings.
    """
    if not (threshold > 0 and turn_range >= 0 and most >= 0):
        raise BadSettings(
            f"A joint's range ({turn_range:g}), threshold ({threshold:g}) and most links ({most}) must be positive"
        )
    if turn_range <= threshold + 1e-9:
        return 0
    return min(int(np.ceil(turn_range / threshold - 1e-9)), most)


def range_of_turns(rotations: np.ndarray) -> float:
    """The largest angle, radians from 0 to π, between two of the unit quaternions ``rotations`` (..., 4), of which the
    rest pose, to which the skin is bound, always counts as one; 0 for none."""
    flat = np.asarray(rotations, dtype=np.float64).reshape(-1, 4)
    flat = np.concatenate([[[1.0, 0.0, 0.0, 0.0]], flat])
    return float(2 * np.arccos(np.clip(np.abs(flat @ flat.T).min(), 0.0, 1.0)))


def range_of_limits(lowest: np.ndarray, highest: np.ndarray) -> float:
    """The range of a joint, radians, whose Euler angles (XYZ) run from ``lowest`` (3,) to ``highest``: the difference
    of the limits about one axis, or what several together allow between two poses, if that is more.

    Limits that leave the rest pose out are widened to it, since the skin is bound there. Raises BadSettings where a
    lowest angle is above its highest.
    """
    lowest, highest = np.asarray(lowest, dtype=np.float64), np.asarray(highest, dtype=np.float64)
    if (lowest > highest).any():
        raise BadSettings("A joint's lowest angle is above its highest. Check its rotation limits")
    lowest, highest = np.minimum(lowest, 0.0), np.maximum(highest, 0.0)
    half = np.array([np.linspace(a, b, _LIMIT_SAMPLES) for a, b in zip(lowest, highest, strict=True)]) / 2
    x, y, z = (_about(axis, half[i]) for i, axis in enumerate(np.eye(3)))
    together = range_of_turns(quaternions.product(z[:, None, None], quaternions.product(y[:, None], x)))
    return max(float((highest - lowest).max()), together)


def link_shares(count: int, bias: float = 0.0, ease: float = 0.0) -> np.ndarray:
    """(n,) the shares of the joint's turn that n links take, from the parent to the child: i / (n + 1), in even steps.

    bias, between −1 and 1: above 0 the links follow the child more, so that most of the turn is at the parent, below 0
    less. ease, from 0 and below 1: the steps in the middle are larger, those at both ends smaller. The curves are the
    bias and the gain of Schlick 1994 (Graphics Gems IV). Raises BadSettings.
    """
    if not (abs(bias) < 1 and 0 <= ease < 1):
        raise BadSettings(f"The bias of shares ({bias:g}) and their ease ({ease:g}) must be below 1, the ease from 0")
    even = np.arange(1, count + 1) / (count + 1)
    beginning = _biased(1 - np.abs(2 * even - 1), (1 - ease) / 2) / 2
    return _biased(np.where(even < 0.5, beginning, 1 - beginning), (1 + bias) / 2)


def swing_and_twist(rotations: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit quaternions ``rotations`` (..., 4) as swing · twist, (..., 4) each: first the twist about ``axis`` (3,),
    then the swing about an axis across it. A half turn across has no twist."""
    axis = unit(axis)
    along = rotations[..., 1:] @ axis
    twist = np.concatenate([rotations[..., :1], along[..., None] * axis], axis=-1)
    length = np.linalg.norm(twist, axis=-1, keepdims=True)
    twist = np.where(length > 1e-9, twist / np.where(length > 1e-9, length, 1.0), [1.0, 0.0, 0.0, 0.0])
    twist = quaternions.canonical(twist)
    return quaternions.product(rotations, quaternions.conjugate(twist)), twist


def shared_rotations(rotations: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(..., n, 4): ``rotations`` (..., 4) about their own axes by ``shares`` (n,) of their angles, the shorter way; of
    an exact half turn the way that ``quaternions.canonical`` takes."""
    rotations = quaternions.canonical(np.asarray(rotations, dtype=np.float64))
    vector = rotations[..., 1:]
    sine = np.linalg.norm(vector, axis=-1, keepdims=True)
    axis = np.divide(vector, sine, out=np.zeros_like(vector), where=sine > 0)
    half = np.arctan2(sine, rotations[..., :1]) * shares
    return np.concatenate([np.cos(half)[..., None], np.sin(half)[..., None] * axis[..., None, :]], axis=-1)


def link_matrices(parent: np.ndarray, child: np.ndarray, joint: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """(..., n, 3, 4) the links' matrices from rest pose to pose, from those of their joint's bones (..., 3, 4).

    joint (3,): where the bones meet at rest; or (n, 3): where each link stands. Rotation, stretch and the link's place
    go from the parent's to the child's by ``shares`` (n,).
    """
    (turn, stretch), (child_turn, child_stretch) = (polar_decomposition(m[..., :3]) for m in (parent, child))
    steps = quaternions.to_matrices(
        shared_rotations(quaternions.from_matrices(np.swapaxes(turn, -1, -2) @ child_turn), shares)
    )
    share = np.asarray(shares, dtype=np.float64)[:, None, None]
    stretches = (1 - share) * stretch[..., None, :, :] + share * child_stretch[..., None, :, :]
    joints = np.broadcast_to(joint, (len(share), 3))
    at, child_at = (np.einsum("...ij,nj->...ni", m[..., :3], joints) + m[..., None, :, 3] for m in (parent, child))
    place = (1 - share[..., 0]) * at + share[..., 0] * child_at
    linear = turn[..., None, :, :] @ steps @ stretches
    return np.concatenate([linear, (place - np.einsum("...ij,...j->...i", linear, joints))[..., None]], axis=-1)


def joint_radius(
    rest: np.ndarray, bones: np.ndarray, weights: np.ndarray, child: int, joint: np.ndarray, direction: np.ndarray
) -> float:
    """How thick the limb is at its joint: the median distance from the axis of the ``child``'s vertices next to it.

    joint (3,), direction (3,) along the limb. 0 where the child moves no vertex.
    """
    share = np.where(bones == child, weights, 0.0).sum(axis=1)
    own = rest[share >= 0.5 * share.max(initial=0.0)] if (share > 0).any() else rest[:0]
    if len(own) == 0:
        return 0.0
    along, away = _along_and_away(own, joint, direction)
    return float(np.median(away[np.argsort(np.abs(along), kind="stable")[: max(len(own) // 10, _FEWEST_AROUND)]]))


def link_weights(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    chain: np.ndarray,
    *,
    joint: np.ndarray | None = None,
    direction: np.ndarray | None = None,
    reach: float = 0.0,
    radius: float = 0.0,
    max_influences: int = 4,
    locked: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """bones int32 and weights (N, K) with the weights of parent and child spread along the chain of their links.

    chain (n + 2,): indices of parent, links and child. The two weights of a vertex give its place between parent and
    child: there it follows the two neighbors in the chain, so that it turns as far as before and the blend keeps its
    shape. A ``reach`` above 0 replaces the blend, for blends that are narrower than the links need: the new one is
    linear, from this distance before the ``joint`` (3,) to this distance behind it along ``direction`` (3,), from
    parent to child. It applies to vertices up to 1.5 times the limb's ``radius`` from the axis, and fades out to 2.5
    times; to all vertices where the radius is 0. Other bones keep their weights but for ``max_influences``; those of
    bones ``locked`` (P,) stay in any case. Raises BadSettings where the chain has no links or a bone twice, parent or
    child are locked, or reach lacks a joint.
    """
    chain = _checked_chain(chain, 3)
    _check_unlocked(locked, (chain[0], chain[-1]))
    first, last = (np.where(bones == bone, weights, 0.0).sum(axis=1) for bone in (chain[0], chain[-1]))
    total = first + last
    place = np.divide(last, total, out=np.zeros_like(total), where=total > 0)
    if reach > 0:
        if joint is None or direction is None:
            raise BadSettings("A blend over a distance needs the joint's position and direction")
        along, away = _along_and_away(rest, joint, direction)
        even = np.clip((along + reach) / (2 * reach), 0.0, 1.0)
        near = smooth_step((_OTHER - away / radius) / (_OTHER - _OWN)) if radius > 0 else 1.0
        place = place + near * (even - place)
    others = np.where((bones == chain[0]) | (bones == chain[-1]), 0.0, weights)
    return _with_chain(bones, others, chain, place * (len(chain) - 1), total, max_influences, locked)


def twist_weights(
    rest: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    chain: np.ndarray,
    head: np.ndarray,
    tail: np.ndarray,
    *,
    max_influences: int = 4,
    locked: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """bones int32 and weights (N, K) with a bone's weight spread along it over its twist links.

    chain (n + 1,): indices of the bone (the forearm) and its links; head and tail (3,) of the bone. Link i of n has its
    whole weight at i / n of the length, the bone itself at its head and before. With the links' shares i / (n + 1) of
    the twist, the skin turns evenly along the bone, and the blend with the end bone (the hand) takes the last step.
    Else as ``link_weights``. Raises BadSettings where the chain has no links or a bone twice, or the bone is locked.
    """
    chain = _checked_chain(chain, 2)
    _check_unlocked(locked, chain[:1])
    axis = np.asarray(tail, dtype=np.float64) - head
    length = float(np.linalg.norm(axis))
    if length == 0:
        raise BadSettings("A bone without length has no room for twist links")
    place = np.clip(_along_and_away(rest, head, axis)[0] / length, 0.0, 1.0)
    total = np.where(bones == chain[0], weights, 0.0).sum(axis=1)
    others = np.where(bones == chain[0], 0.0, weights)
    return _with_chain(bones, others, chain, place * (len(chain) - 1), total, max_influences, locked)


def _with_chain(
    bones: np.ndarray,
    others: np.ndarray,
    chain: np.ndarray,
    place: np.ndarray,
    total: np.ndarray,
    most: int,
    locked: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """``others`` (N, K) beside ``total`` (N,) split between the two bones of ``chain`` around ``place`` (N,)."""
    before = np.minimum(place.astype(np.int64), len(chain) - 2)
    share = place - before
    new_bones = np.column_stack([bones, chain[before], chain[before + 1]])
    new_weights = np.column_stack([others, total * (1 - share), total * share])
    return tidy_influences(new_bones, new_weights, most, locked)


def _checked_chain(chain: ArrayLike, least: int) -> np.ndarray:
    chain = np.asarray(chain, dtype=np.int64)
    if len(chain) < least or len(np.unique(chain)) < len(chain):
        raise BadSettings("Bone links need at least one link, and each bone only once")
    return chain


def _check_unlocked(locked: np.ndarray | None, changing: np.ndarray | tuple[np.ndarray, ...]) -> None:
    if locked is not None and np.asarray(locked)[list(changing)].any():
        raise BadSettings(
            "The vertex groups of a joint's bones are locked. Unlock them to share their weights with links"
        )


def _along_and_away(points: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances (N,) of points (N, 3) from ``origin`` (3,) along ``direction`` (3,), and from that line."""
    axis = unit(direction)
    offsets = points - np.asarray(origin, dtype=np.float64)
    along = offsets @ axis
    return along, np.linalg.norm(offsets - along[:, None] * axis, axis=1)


def _biased(values: np.ndarray, bias: float) -> np.ndarray:
    """Schlick's bias of values from 0 to 1: 0.5 leaves them, more raises those between the ends."""
    return values / ((1 / bias - 2) * (1 - values) + 1)


def _about(axis: np.ndarray, half_angles: np.ndarray) -> np.ndarray:
    return np.concatenate([np.cos(half_angles)[:, None], np.sin(half_angles)[:, None] * axis], axis=-1)
