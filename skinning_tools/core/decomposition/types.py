# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings and the result of a decomposition."""

import math
from dataclasses import dataclass, field

import numpy as np

from ..errors import BadSettings
from ..solve_effort import QUALITIES, Effort
from .residual import ResidualShapes
from .target_error import CurvePoint

BONE_KINDS = ("AFFINE", "SCALED", "RIGID")
METHODS = ("STANDARD", "KAVAN2010")


@dataclass(frozen=True)
class Settings:
    """How to decompose. Raises BadSettings on values that no animation allows."""

    bone_count: int = 20
    bone_kind: str = "AFFINE"
    """AFFINE bones also shear, SCALED ones stretch along axes of their own, RIGID ones only move and turn."""
    max_influences: int = 4
    """Most bones that move one vertex."""
    iterations: int = 15
    """Sweeps over transforms, rest pose and weights in turn."""
    optimize_rest_pose: bool = True
    """False: the first frame is the rest pose."""
    target_error: float = 0.0
    """E_RMS at which fewer bones than ``bone_count`` are enough; 0: use exactly ``bone_count``."""
    method: str = "STANDARD"
    """KAVAN2010: the paper's algorithm as it is written, for comparison. Affine bones only."""
    residual_shapes: int = 0
    """Shapes that correct the error that the bones leave; the target error does not include them."""
    smoothness: float = 0.0
    """From 0 to 1: how much error is allowed for smoother weights; the target error does not include it."""

    quality: str = "STANDARD"
    """DRAFT: a first look. BEST: bones are searched for, many times as long. ``iterations`` count beside it."""

    emphasis: float = 0.0
    """From 0 to 1: how far largest errors are lowered, at 1 to half; the target error does not include it."""

    surface: float = 0.0
    """From 0 to 1: how much normals count beside distances; the target error does not include it."""

    prune: bool = False
    """Remove bones that others can replace: ``bone_count`` is the most. Rigid bones without a target error only."""

    effort: Effort | None = None
    """How much to compute, in place of what quality and iterations say."""

    def __post_init__(self) -> None:
        if self.bone_kind not in BONE_KINDS:
            raise BadSettings(f"Bone kind must be one of {', '.join(BONE_KINDS)}, not {self.bone_kind}")
        if self.method not in METHODS:
            raise BadSettings(f"Method must be one of {', '.join(METHODS)}, not {self.method}")
        if self.quality not in QUALITIES:
            raise BadSettings(f"Quality must be one of {', '.join(QUALITIES)}, not {self.quality}")
        if self.method == "KAVAN2010" and self.bone_kind != "AFFINE":
            raise BadSettings(
                f"The method of Kavan et al. 2010 has affine bones, not {self.bone_kind.lower()} ones. "
                "Choose the bone kind Affine or the standard method"
            )
        if self.prune and (self.bone_kind != "RIGID" or self.target_error):
            raise BadSettings("Only rigid bones can be pruned, and only without a target error")
        for name, least in (("bone_count", 1), ("max_influences", 1), ("iterations", 1)):
            if getattr(self, name) < least:
                raise BadSettings(
                    f"{name.replace('_', ' ').capitalize()} must be at least {least}, not {getattr(self, name)}"
                )
        if self.residual_shapes < 0:
            raise BadSettings(f"Residual shapes must be at least 0, not {self.residual_shapes}")
        for name in ("smoothness", "emphasis", "surface"):
            if not 0 <= getattr(self, name) <= 1:
                raise BadSettings(f"{name.capitalize()} must be from 0 to 1, not {getattr(self, name):g}")
        if not 0 <= self.target_error < math.inf:
            raise BadSettings(f"Target error must be a number of at least 0, not {self.target_error:g}")

    @property
    def influences(self) -> int:
        """``max_influences``, at most the number of bones."""
        return min(self.max_influences, self.bone_count)


@dataclass(frozen=True)
class Decomposition:
    """The skinning v' = Σ_k weights[:, k] · transforms[f, bones[:, k]] · [rest; 1] that comes closest to an animation.

    rest (N, 3) float64 and transforms (F, P, 3, 4) float64 in object space; bones (N, K) int32, unused slots repeat
    a used index with weight 0; weights (N, K) float64, convex.
    bone_axes (P, 3, 3) float64: each bone's own axes in the rest pose, as columns; SCALED bones stretch along them,
    M = R · diag(s) · axesᵀ with a translation; for the other kinds they are the object's axes.
    residual: with residual shapes, the offsets from ``rest`` in each frame.
    e_rms, max_error: per mille of the unit ball, of the whole reconstruction against the animation itself.
    history: E_RMS of the bones alone, in reduced coordinates, after each sweep over all vertices, in which vertices
    count by their importance; without the sweeps of an emphasis or a surface. It never rises, except where bones have
    been pruned or, for the best quality, moved, and where the last sweeps begin (one, or two after a sample), which are
    in the unreduced animation: there affine bones are held to rigid motions where the data say little, as in the thin
    direction of cloth, which may at most double the error and add 1; for other bones, the rise is no more than the
    reduction had lost.
    seconds: stage to seconds.
    curve: where a target error was given, the bone counts tried, in order, with their E_RMS.
    surface_unchanged: whether a surface changed nothing, as none of its sweeps brought normals closer within the error
    that it allows.
    """

    rest: np.ndarray
    transforms: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    bone_kind: str
    bone_axes: np.ndarray
    e_rms: float
    max_error: float
    history: tuple[float, ...]
    dimension: int
    seconds: dict[str, float] = field(default_factory=dict)
    curve: tuple[CurvePoint, ...] = ()
    residual: ResidualShapes | None = None
    surface_unchanged: bool = False

    def rest_at(self, frame: int) -> np.ndarray:
        """The rest pose (N, 3) that is skinned in a frame: with the correction by residual shapes."""
        return self.rest if self.residual is None else self.residual.rest(self.rest, frame)

    @property
    def bone_count(self) -> int:
        return self.transforms.shape[1]
