# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones added to a rig, as by ``decomposition.helper_bones``, whose motion is a function of the rig's joints.

The helpers first move freely in each frame. Then their motion, as a function of the joints' rotations, and the weights
take turns.
"""

from dataclasses import dataclass

import numpy as np

from ..animation import Animation
from ..decomposition.helper_bones import helper_solver
from ..decomposition.helper_solver import HelperBones, HelperSolver
from ..decomposition.transforms import NormalEquations, from_rows, to_rows
from ..deform.influences import weight_matrix
from ..dense import one_blas_thread
from ..errors import BadSettings
from ..progress import Progress, checkpoint, ignore, span
from .driven_helpers import DrivenHelper, fit_in_turn, helper_motion
from .skeleton import Skeleton

_ROUNDS = 8
# In these rounds helpers choose their variables, each of which must save this share of the squared error. Clips have
# few poses that differ: more variables would learn from chance.
_CHOOSING, _WORTH = (0, 2, 4), 1e-4


@dataclass(frozen=True)
class DrivenBones:
    """found: the HelperBones, with the motion that the joints give them. helpers: H, in object space; e_rms_free: what
    helpers that move freely in each frame would leave."""

    found: HelperBones
    helpers: list[DrivenHelper]
    e_rms_free: float


@one_blas_thread()
def add_driven_helper_bones(
    animation: Animation,
    rest: np.ndarray,
    transforms: np.ndarray,
    bones: np.ndarray,
    weights: np.ndarray,
    skeleton: Skeleton,
    turns: np.ndarray,
    carriers: np.ndarray,
    bone_count: int = 4,
    *,
    max_influences: int = 8,
    own_weights: str = "KEEP",
    iterations: int = 20,
    locked_bones: np.ndarray | None = None,
    locked_vertices: np.ndarray | None = None,
    importance: np.ndarray | None = None,
    progress: Progress = ignore,
) -> DrivenBones:
    """``bone_count`` rigid helpers that joints drive and with which a rig of P bones follows ``animation`` better.

    skeleton: the P bones; only those with a parent drive helpers. turns (F, P, 4): quaternions of the bones against
    their parents, about their own axes. carriers (P,) bool: the bones that may carry helpers. The rest, and the errors
    raised: see ``decomposition.helper_bones.add_helper_bones``. Raises BadSettings, too, where shapes do not fit, or if
    no bone may carry or drive a helper.
    """
    own_count = transforms.shape[1]
    if turns.shape != (len(transforms), own_count, 4) or len(skeleton) != own_count or len(carriers) != own_count:
        raise BadSettings("Turns, skeleton and carriers do not belong to the same bones and frames")
    if not carriers.any() or not (skeleton.parents >= 0).any():
        raise BadSettings("No bone can carry or drive helper bones")
    solver = helper_solver(
        _DrivenSolver,
        animation,
        rest,
        transforms,
        bones,
        weights,
        bone_count,
        bone_kind="RIGID",
        max_influences=max_influences,
        own_weights=own_weights,
        locked_bones=locked_bones,
        locked_vertices=locked_vertices,
        importance=importance,
    )
    adapts = own_weights == "ADAPT"
    solver.seed(bone_count, "RIGID", span(progress, 0.0, 0.2))
    solver.solve(iterations, span(progress, 0.2, 0.4))
    if adapts:
        solver.adapt(iterations, span(progress, 0.4, 0.5))
    free = solver.result(span(progress, 0.5, 0.55))
    solver.drive(skeleton, turns, carriers, span(progress, 0.55, 0.8 if adapts else 0.95))
    if adapts:
        solver.adapt(iterations, span(progress, 0.8, 0.95))
    found = solver.result(span(progress, 0.95, 1.0))
    return DrivenBones(found, solver.driven_helpers(), free.e_rms)


class _DrivenSolver(HelperSolver):
    """A HelperSolver whose helpers move freely until ``drive``."""

    _driven: list[DrivenHelper] | None = None
    _choosing = False

    def drive(self, skeleton: Skeleton, turns: np.ndarray, carriers: np.ndarray, progress: Progress) -> None:
        """From here on the joints move the helpers; motion and weights in turn."""
        self._skeleton, self._turns = skeleton, turns
        self._own = from_rows(self._targets.own_rows / self._scale)
        self._driven = [DrivenHelper(carrier) for carrier in self._carriers(carriers)]
        self._adapted = None
        self._least_gain = _WORTH * float(self._targets.left().sum())
        for number in range(_ROUNDS):
            self._choosing = number in _CHOOSING
            self.motion_step(self.weights_step()[0])
            checkpoint(progress, (number + 1) / _ROUNDS, "Fitting drivers")
        self._choosing = False
        # Those that never had enough weight for a function of the joints stay beside their carriers.
        self.rows = self._scale * to_rows(helper_motion(self._driven, turns, self._own))
        self.weights_step()

    def _carriers(self, allowed: np.ndarray) -> list[int]:
        """For each helper the allowed bone with which it shares most weight."""
        own_count = len(self._targets.locked)
        bones, weights, _ = self.whole()
        matrix = weight_matrix(bones, weights, own_count + self.shares.shape[1])
        shared = (matrix[:, :own_count].T @ matrix[:, own_count:]).toarray()
        carriers: list[int] = np.argmax(np.where(allowed[:, None], shared, -1.0), axis=0).tolist()
        return carriers

    def motion_step(self, equations: NormalEquations) -> None:
        """Each helper's function of the joints in turn, once there are any."""
        if self._driven is None:
            super().motion_step(equations)
            return
        self._driven, motion = fit_in_turn(
            self._skeleton,
            self._turns,
            self._driven,
            self._own,
            from_rows(self.rows / self._scale),
            equations.divided(self._scale),
            choose=self._choosing,
            least_gain=self._least_gain,
            importance=self._scale[::3],
        )
        self.rows = self._scale * to_rows(motion)

    def adapted_motion_step(self, equations: NormalEquations) -> None:
        before, rows = self._driven, self.rows
        super().adapted_motion_step(equations)
        if self.rows is rows:
            self._driven = before

    def driven_helpers(self) -> list[DrivenHelper]:
        """The helpers in object space."""
        assert self._driven is not None
        return [helper.scaled(self._matrix.radius, self._matrix.means[0]) for helper in self._driven]
