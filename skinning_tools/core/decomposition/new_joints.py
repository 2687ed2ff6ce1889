# SPDX-License-Identifier: GPL-3.0-or-later
"""Joints of an edited skeleton that nobody has placed: found from the motion, as those of a conversion."""

from dataclasses import replace

import numpy as np

from ..animation import Animation
from ..body_surface import BodySurface
from ..dense import one_blas_thread
from ..geometry import diagonal
from ..joints_in_body import into_body
from ..pair_motion import pair_motion
from ..progress import Progress, span
from .bone_model import homogeneous
from .moving_joints import MovingJoints
from .partial_transforms import Joints, skin_equations, solve_transforms
from .reduction import AnimationMatrix

# Radians (root mean square) of turning below which a joint stays near its present place.
_FAINT_TURN = 0.06
# Steps of all bones together with the joints that move.
_STEPS = 12


class NewJoints:
    """``joints`` (of all bones, held or not) of which some move to where the error is least.

    They begin where their bones slip least about the bones above while these bones, with all that hangs from them, move
    freely. As far as the bones do not turn they stay where they are, and inside the body if the motion allows it.
    """

    def __init__(
        self,
        animation: Animation,
        rest: np.ndarray,
        skin: tuple[np.ndarray, np.ndarray],
        joints: Joints,
        above: np.ndarray,
        movable: np.ndarray,
        given: np.ndarray,
        fixed: np.ndarray,
        importance: np.ndarray | None,
        progress: Progress,
    ):
        """above: the bone that each bone hangs from, whether its joint holds or not, and movable, bool: those whose
        joints move, both (P,) of the bones that are not ``fixed``; skin: bones and weights (N, K). The others as for
        ``solve_transforms``."""
        self._rest, self._fixed, self._matrix = rest, fixed, AnimationMatrix(animation.frames)
        self._importance = importance
        self._movable = np.zeros(len(fixed), bool)
        self._children = children = np.flatnonzero(movable)
        self._movable[children] = True
        free = Joints(joints.heads, np.where(self._movable, -1, joints.parents))
        motion = solve_transforms(
            animation,
            rest,
            *skin,
            len(fixed),
            "RIGID",
            joints=free,
            given=given,
            fixed=fixed,
            importance=importance,
            progress=progress,
        )
        self._center, self._size = rest.mean(axis=0), diagonal(rest) or 1.0
        self._surface = BodySurface((rest - self._center) / self._size, animation.triangles)
        self._meeting = (joints.heads[children] - self._center) / self._size
        self._pairs = pair_motion(motion, self._center, self._size, children, above[children])
        self.joints = self._found = self._inside(joints, self._pairs.joints(self._meeting, _FAINT_TURN))

    @one_blas_thread()
    def moved(self, skin: tuple[np.ndarray, np.ndarray], motion: np.ndarray, progress: Progress) -> Joints:
        """The joints after some steps from ``motion`` (F, P, 3, 4), for ``skin``. Raises Cancelled."""
        matrix, fixed = self._matrix, self._fixed
        points, start = matrix.from_object_space(self._rest, motion)
        part = span(progress, 0.0, 0.3)
        equations = skin_equations(matrix, homogeneous(points), *skin, len(fixed), part, self._importance)
        heads, found = (matrix.points_from_object_space(each.heads) for each in (self.joints, self._found))
        parents = np.where(fixed, -1, self.joints.parents)
        skeleton = MovingJoints(heads, parents, found, self._movable, ~fixed)
        skeleton.moved(equations, start, _STEPS, span(progress, 0.3, 1.0))
        heads = matrix.points_to_object_space(skeleton.heads[self._children])
        self.joints = self._inside(self.joints, (heads - self._center) / self._size)
        return self.joints

    def _inside(self, joints: Joints, heads: np.ndarray) -> Joints:
        """``joints`` with the movable ones at ``heads`` (n, 3), in shares of the size, or near there in the body."""
        no_mirror = self._meeting, np.full(len(heads), -1), 0.0
        heads = into_body(self._pairs, heads, self._meeting, *no_mirror, self._surface)
        moved = joints.heads.copy()
        moved[self._children] = heads * self._size + self._center
        return replace(joints, heads=moved)
