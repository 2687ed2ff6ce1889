# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes into turning shapes into bones, and what comes out."""

from dataclasses import dataclass, field

import numpy as np

from ..animation import check_triangles
from ..errors import BadAnimation, BadMesh, BadSettings
from .motion import motions

BONE_KINDS = ("RIGID",)
QUALITIES = ("DRAFT", "STANDARD")


@dataclass(frozen=True)
class Shapes:
    """A mesh and what each of its sliders adds to it at 1.

    rest (N, 3), deltas (S, N, 3) float32, triangles (T, 3) int32, which may be empty. name: what messages call it.
    """

    rest: np.ndarray
    deltas: np.ndarray
    triangles: np.ndarray
    name: str = "the mesh"


@dataclass(frozen=True)
class Settings:
    """How to solve. Raises BadSettings on values that make no sense whatever the shapes."""

    bone_count: int = 40
    bone_kind: str = "RIGID"
    """The only kind so far: bones that move and turn."""
    max_influences: int = 8
    """Most bones that move one vertex."""
    surface: float = 0.5
    """From 0, the least distance, to 1: how much the surface counts beside it."""
    sparsity: float = 0.0
    """From 0 to 1: how much error, as a share of it, is allowed so that shapes move only the bones that they need."""
    symmetric: bool = False
    """Left and right bones mirror each other, where the face and its shapes do."""
    quality: str = "STANDARD"
    """DRAFT takes less time."""

    def __post_init__(self) -> None:
        if self.bone_kind not in BONE_KINDS:
            raise BadSettings(f"Bone kind must be RIGID for shape keys, not {self.bone_kind}")
        if self.quality not in QUALITIES:
            raise BadSettings(f"Quality must be one of {', '.join(QUALITIES)}, not {self.quality}")
        for name in ("bone_count", "max_influences"):
            if getattr(self, name) < 1:
                raise BadSettings(
                    f"{name.replace('_', ' ').capitalize()} must be at least 1, not {getattr(self, name)}"
                )
        if not 0 <= self.surface <= 1:
            raise BadSettings(f"Surface must be from 0 to 1, not {self.surface:g}")
        if not 0 <= self.sparsity <= 1:
            raise BadSettings(f"Sparsity must be from 0 to 1, not {self.sparsity:g}")


@dataclass(frozen=True)
class ShapeRig:
    """Bones and weights whose motions add up as shapes do.

    bones (N, K) int32, weights (N, K): convex, unused slots repeat a used bone with weight 0. pivots (P, 3): what each
    bone turns about at rest. turns, moves (S, P, 3): tan(θ/2) times the axis, and the distance, of each shape at 1; of
    several shapes, they are added up. seconds: stage to seconds. partners (P,): where the face is symmetric in x, the
    bone that mirrors each, itself in the middle; None where it is not.
    """

    bones: np.ndarray
    weights: np.ndarray
    pivots: np.ndarray
    turns: np.ndarray
    moves: np.ndarray
    seconds: dict[str, float] = field(default_factory=dict)
    partners: np.ndarray | None = None

    @property
    def bone_count(self) -> int:
        return len(self.pivots)

    @property
    def motion_share(self) -> float:
        """The share of all motions, of every bone by every shape, that are not zero."""
        return self.motion_count / (len(self.turns) * self.bone_count)

    @property
    def motion_count(self) -> int:
        """How many motions, of every bone by every shape, are not zero."""
        return int(np.sum(np.any(self.turns, axis=2) | np.any(self.moves, axis=2)))

    def transforms(self, values: np.ndarray) -> np.ndarray:
        """(P, 3, 4) of the bones, rest pose to sliders at ``values`` (S,)."""
        added = motions(np.tensordot(values, self.turns, 1), np.tensordot(values, self.moves, 1))
        linear = added[..., :3] + np.eye(3)
        places = added[..., 3] + self.pivots - np.einsum("pij,pj->pi", linear, self.pivots)
        return np.concatenate([linear, places[..., None]], axis=-1)


def check_shapes(shapes: Shapes, settings: Settings) -> None:
    """Raises BadMesh, BadAnimation and BadSettings for what cannot be solved."""
    name, count = shapes.name, len(shapes.rest)
    if not count:
        raise BadMesh(f"{name} has no vertices. Choose a mesh that has some")
    check_triangles(shapes.triangles, count, name)
    if not np.isfinite(shapes.rest).all() or not np.isfinite(shapes.deltas).all():
        raise BadMesh(f"{name} has a position that is not a number in one of its shapes. Correct or delete it")
    if not len(shapes.deltas) or not np.any(shapes.deltas):
        raise BadAnimation(f"Nothing moves: no shape of {name} moves a vertex. Choose a mesh whose shapes do")
    if settings.bone_count > count:
        raise BadSettings(
            f"{name} has {count} vertices, too few for {settings.bone_count} bones. Ask for at most one bone per vertex"
        )
