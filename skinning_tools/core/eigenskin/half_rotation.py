# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones that take half of a joint's rotation, under the corrections: a better skin leaves less to correct.

Beyond EigenSkin. Linear blending of two bones that are φ apart shrinks what it blends in equal parts to cos(φ / 2); a
bone half-way between them leaves two blends of φ / 2 each. Where the share a of a vertex follows the joint, the helper
takes 1 − |1 − 2 a|, half of it from each side: the vertex turns as far as before, and only the larger share has weight
left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import quaternions
from ..binding.influence_rows import tidy_influences
from ..binding.links import link_matrices, link_shares
from .body_parts import body_parts, part_weights
from .pose_space import is_turned
from .types import Examples, Rig

# Radians. A joint that turns less hardly shrinks: two bones 30° apart blend to 0.97.
LEAST_TURN = np.radians(30.0)

# A helper with less weight than this at every vertex is not worth a bone.
_LEAST_WEIGHT = 0.01


def half_matrices(start: np.ndarray, end: np.ndarray, place: np.ndarray, stretch: np.ndarray) -> np.ndarray:
    """(..., 3, 4) from rest pose to pose, of a helper half-way between bones with the matrices ``start`` and ``end``
    (..., 3, 4), which meet at ``place`` (3,) at rest.

    stretch (3, 3): from the mesh's space, in which all these are, to the one in which bones turn without shear.
    """
    back = np.linalg.inv(stretch)
    start, end = (_in_space(matrices, stretch, back) for matrices in (start, end))
    return _in_space(link_matrices(start, end, stretch @ place, link_shares(1))[..., 0, :, :], back, stretch)


def _in_space(matrices: np.ndarray, to: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Matrices (..., 3, 4) in the space that ``to`` (3, 3), with the inverse ``back``, leads to."""
    return np.concatenate([to @ matrices[..., :3] @ back, to @ matrices[..., 3:]], axis=-1)


def far_turned(rotations: np.ndarray) -> np.ndarray:
    """(J,) bool: which joints the examples with ``rotations`` (E, J, 4) turn far enough for a helper."""
    return (quaternions.rotation_angles(rotations) > LEAST_TURN).any(axis=0)


@dataclass(frozen=True, eq=False)
class HalfRotations:
    """Helpers of some joints of a rig, and the weights that they take.

    starts, ends (H,): the two bones of each; places (H, 3): where these meet at rest, in the mesh's space. taken (H,
    N): the weight that a helper takes from each of its sides, the parts ``sides`` (H, 2). own (parts, N): the weights
    of the parts, part_of_bone (P,) of which bone. fixed (P,) bool: bones whose weights stay.
    """

    rig: Rig
    starts: np.ndarray
    ends: np.ndarray
    places: np.ndarray
    taken: np.ndarray
    sides: np.ndarray
    own: np.ndarray
    part_of_bone: np.ndarray
    fixed: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def rows(self, count: int, most: int) -> tuple[np.ndarray, np.ndarray]:
        """bones int32 and weights (N, K), K at most ``most``, with the first ``count`` helpers, which are the bones P,
        P + 1, …"""
        rig, taken = self.rig, self.taken[:count]
        gone = np.zeros_like(self.own)
        for amount, sides in zip(taken, self.sides, strict=False):
            gone[sides] += amount
        left = 1 - np.divide(gone, self.own, out=np.zeros_like(gone), where=self.own > 0)
        weights = rig.weights * np.maximum(left[self.part_of_bone[rig.bones], np.arange(len(rig.bones))[:, None]], 0.0)
        width = int(np.count_nonzero(taken, axis=0).max(initial=0))
        strongest = np.argsort(-taken, axis=0, kind="stable")[:width]
        return tidy_influences(
            np.hstack([rig.bones, len(rig.joint_of_bone) + strongest.T]),
            np.hstack([weights, 2 * np.take_along_axis(taken, strongest, axis=0).T]),
            most,
            np.append(self.fixed, np.zeros(count, bool)),
        )

    def applied(self, examples: Examples, most: int, stretch: np.ndarray | None = None) -> tuple[Rig, Examples]:
        """The rig and ``examples`` with all helpers, each counted to the joint of its start. stretch (3, 3): as in
        ``half_matrices``."""
        stretch = np.eye(3) if stretch is None else stretch
        bones, weights = self.rows(len(self), most)
        joint_of_bone = np.append(self.rig.joint_of_bone, self.rig.joint_of_bone[self.starts])
        added = [
            half_matrices(examples.matrices[:, start], examples.matrices[:, end], place, stretch)
            for start, end, place in zip(self.starts, self.ends, self.places, strict=True)
        ]
        matrices = np.concatenate([examples.matrices, *(each[:, None] for each in added)], axis=1)
        return (
            replace(self.rig, bones=bones, weights=weights, joint_of_bone=joint_of_bone),
            replace(examples, matrices=matrices),
        )


def half_rotations(
    rig: Rig, rotations: np.ndarray, joints: Sequence[tuple[int, int, np.ndarray]], fixed: np.ndarray | None = None
) -> HalfRotations:
    """Helpers of the ``joints`` (start, end, place): the two bones, and where they meet at rest, (3,). Those that would
    get no weights are left out.

    rotations (E, J, 4): of the examples. All joints that turn in these part the body, and a helper takes the same from
    the part that its joint moves and from the part above: so each of these joints moves a vertex as far as before. For
    joints that do not, the vertices of a helper follow its start. fixed (P,) bool: bones whose weights stay.
    """
    fixed = np.zeros(len(rig.joint_of_bone), bool) if fixed is None else fixed
    helped = np.array([rig.joint_of_bone[end] for _, end, _ in joints], int)
    connecting = np.union1d(np.flatnonzero(is_turned(rotations).any(axis=0)), helped).astype(int)
    parts, above = body_parts(rig.parents, connecting)
    count = len(connecting) + 1
    part_of_bone = np.where(fixed, count, parts[rig.joint_of_bone])
    own = part_weights(rig.bones, rig.weights, part_of_bone, count + 1)
    places = np.searchsorted(connecting, helped)
    sides = np.column_stack([above[places], places])
    taken = own[sides].min(axis=1)
    # Several helpers share what a part has.
    asked = np.zeros_like(own)
    for amount, pair in zip(taken, sides, strict=True):
        asked[pair] += amount
    taken *= np.divide(own, asked, out=np.ones_like(own), where=asked > own)[sides].min(axis=1)
    kept = np.flatnonzero(2 * taken.max(axis=1, initial=0.0) > _LEAST_WEIGHT)
    return HalfRotations(
        rig,
        np.array([joints[row][0] for row in kept], int),
        np.array([joints[row][1] for row in kept], int),
        np.array([joints[row][2] for row in kept]).reshape(-1, 3),
        taken[kept],
        sides[kept],
        own,
        part_of_bone,
        fixed,
    )
