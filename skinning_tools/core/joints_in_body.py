# SPDX-License-Identifier: GPL-3.0-or-later
"""Joints outside the body, drawn into it as far as the motion allows."""

import numpy as np

from .body_surface import BodySurface
from .pair_motion import PairMotion
from .skeleton_symmetry import symmetric_joints

# Radians (root mean square) of relative rotation below which the place where two bones meet decides such a joint, in
# turn until it lies inside; and the share of the mesh's diagonal by which it may slip more than at its best place.
_TURNS, _MORE_SLIP = (0.12, 0.24, 0.48, 0.96), 0.005
# Of the diagonal: joints this near to each other's mirror images mirror each other.
_ROUNDING = 1e-9


def into_body(
    motion: PairMotion,
    joints: np.ndarray,
    meeting: np.ndarray,
    middles: np.ndarray,
    image: np.ndarray,
    plane: float,
    surface: BodySurface,
    more: float | np.ndarray = _MORE_SLIP,
) -> np.ndarray:
    """Joints (C, 3), those outside the body drawn toward where the bones meet until they are inside.

    So are those on the other side of a symmetric body, such as crossed hips. They move first along directions in which
    the bones hardly turn, and as long as that adds little slip.
    meeting, middles (C, 3): where the bones of a joint meet, and the middle of both.
    image (C,): the joints that mirror these in x = ``plane``, −1 without one; where they do, they still do in the end.
    more, or (C,): how much more a joint may slip than at its best place. By default all is in shares of the mesh's
    diagonal.
    """
    joints = joints.copy()
    exact = np.abs(symmetric_joints(joints, image, plane, np.inf) - joints).max(axis=1) < _ROUNDING
    image = np.where(exact, image, -1)
    most = with_image(motion.slips(joints), image) + more
    sides = np.where((image >= 0) & (image != np.arange(len(image))), middles[:, 0] - plane, 0.0)
    # Thighs may meet the hip in the middle of it.
    aims = meeting.copy()
    aims[:, 0] = np.where((meeting[:, 0] - plane) * sides < 0, middles[:, 0], meeting[:, 0])
    outside = ~surface.inside(joints) | ((joints[:, 0] - plane) * sides < 0)
    outside |= outside[image] & (image >= 0)
    for turn in _TURNS:
        trial = joints.copy()
        trial[outside] = motion.of(outside).joints(aims[outside], turn)
        trial = symmetric_joints(trial, image, plane, np.inf)
        better = outside & (with_image(motion.slips(trial), image) <= most)
        better &= (trial[:, 0] - plane) * sides >= 0
        better[better] = surface.inside(trial[better])
        better &= better[image] | (image < 0)
        joints[better] = trial[better]
        outside &= ~better
    return joints


def with_image(values: np.ndarray, image: np.ndarray) -> np.ndarray:
    """``values`` (C,), the larger of each and that of its ``image`` (C,), −1 without one: a joint must hold on both
    sides."""
    return np.where(image >= 0, np.maximum(values, values[image]), values)
