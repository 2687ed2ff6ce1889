# SPDX-License-Identifier: GPL-3.0-or-later
"""A pull of solved weights to the present ones, as strong as the motion leaves them open.

Weights w of a vertex v differ from the present ones w₀ in how v follows a joint that turns by a small angle: by
angle · |v − head| · |Σ (w − w₀)|, with the sum over all bones that the joint moves. The solve counts such turns of each
joint as if they were further frames, in which the present weights are right. A joint that moves in the frames given
tells by itself what its weights have to be, and needs no such turns. One that stands still tells nothing: without them,
its weights would go wherever rounding, or the least gain elsewhere, takes them, and show it in the next animation.
"""

import numpy as np

from ..bone_order import subtrees
from .partial_transforms import Joints

# Radians, root mean square over the frames: joints that move by more are held only as far as the user asks.
_TELLING = 0.1
# Radians by which a joint that stands still counts as turned in each frame.
_STILL = 0.02
# The same with half of what the user may ask for.
_HALF_HELD = 0.1
# In the unit ball: a vertex counts as at least so far from each joint, as joints also move.
_LEAST_DISTANCE = 0.05
# 1 − amount is at least this.
_FIRMEST = 1e-8


def turns(joints: Joints, transforms: np.ndarray) -> np.ndarray:
    """(P,) by how many radians each joint moves: how far, at a distance of 1 from it, its bone leaves the way of its
    parent, or of all bones without a parent together. Root mean square over the frames.

    joints and ``transforms`` (F, P, 3, 4) in solver units, each frame scaled by its importance.
    """
    roots = joints.parents < 0
    others = np.where(roots[:, None, None], transforms[:, roots].mean(axis=1)[:, None], transforms[:, joints.parents])
    apart = transforms - others
    shifts = np.einsum("fpij,pj->fpi", apart[..., :3], joints.heads) + apart[..., 3]
    squares = 0.5 * np.square(apart[..., :3]).sum(axis=(2, 3)) + np.square(shifts).sum(axis=2)
    return np.sqrt(squares.mean(axis=0))


def hold_rows(joints: Joints, transforms: np.ndarray, amount: float) -> np.ndarray:
    """(4P, 4P): the joints' turns as further columns of Tᵀ; arguments as of ``turns``.

    amount h from 0 to 1: by how much all joints are held beyond what the motion leaves open. At 0.5, each counts as if
    it turned by 0.1 radians in every frame, at 1 without end.
    """
    open_part = np.maximum(1.0 - np.square(turns(joints, transforms) / _TELLING), 0.0)
    squares = _STILL**2 * open_part + amount / max(1.0 - amount, _FIRMEST) * _HALF_HELD**2
    count = len(joints.parents)
    # Turns about three axes move v by the same as v − head itself, but for the factor √2.
    blocks = np.zeros((count, 4, 4))
    blocks[:, :3, :3] = np.eye(3)
    blocks[:, 3, :3] = -joints.heads
    blocks[:, 3, 3] = _LEAST_DISTANCE
    blocks *= np.sqrt(len(transforms) * squares)[:, None, None]
    rows = subtrees(joints.parents).T[:, None, :, None] * blocks.transpose(1, 0, 2)
    return rows.reshape(4 * count, 4 * count)
