# SPDX-License-Identifier: GPL-3.0-or-later
"""CONTAINMENT: a capsule, ellipsoid, box or closed mesh around each bone, and a score of how deep inside a vertex is.

Source: the smooth skinning chapter, containment binding (Weber 2000).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import BadSettings
from ..geometry import transform_points
from ..progress import Progress, ignore
from ..smooth_step import smooth_step
from .assignment import Assignment, Request, assigned, nearly_best
from .distances import BoneDistances
from .types import Body, Skeleton

# The shapes that are generated. A ``mesh_volume.MeshVolume`` is of kind MESH.
KINDS = ("CAPSULE", "ELLIPSOID", "BOX")

# A volume reaches this quantile of the vertices around its bone, to either side: vertices that are wrongly nearest to
# this bone, such as those at a shoulder, do not widen it.
_QUANTILE = 0.75

# Volumes that are worse by this share still hold a part.
_MARGIN = 0.1

# With fewer vertices, the thickness of the limb around a bone is unknown.
_FEWEST = 4

# Widths are at least this share of each other: a body's cross-section is not a line, even if the vertices are in a row.
_FLATTEST = 0.5

# A ratio of spreads across a bone: rounder cross-sections have no axes of their own.
_ROUND = 0.9


@dataclass(frozen=True)
class Falloff:
    """How a volume's hold on vertices ends, as shares of the way from its axis to its surface: it is whole up to
    ``inside`` before the surface, and falls to nothing ``outside`` beyond it. Vertices take weights of all volumes in
    proportion to their holds, or of the best one where none holds them. Both 0: the best volume alone holds a vertex.

    Raises BadSettings on values below 0, infinite ones, and ``inside`` above 1.
    """

    inside: float = 0.0
    outside: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.inside <= 1 and 0 <= self.outside < np.inf):
            raise BadSettings(
                "The falloff of volumes must be from 0 to 1 inside, and at least 0 outside, not "
                f"{self.inside:g} and {self.outside:g}"
            )

    def shares(self, depths: np.ndarray) -> np.ndarray:
        """(n, P) of any sum, from ``depths`` (n, P)."""
        best = nearly_best(depths, _MARGIN)
        width = self.inside + self.outside
        if width == 0:
            return best
        holds = smooth_step((1 + self.outside - depths) / width)
        return np.where(holds.any(axis=1, keepdims=True), holds, best)


@dataclass(frozen=True, eq=False)
class Volume:
    """A region that belongs to a bone.

    matrix (4, 4): from the volume's own space to the mesh's; y runs along the bone, and the middle is the origin.
    radii (3,): half the extent along x, y and z, caps included. bone: its index in the skeleton.
    """

    bone: int
    kind: str
    matrix: np.ndarray
    radii: np.ndarray

    @property
    def width(self) -> float:
        """Mean radius across the bone, in the mesh's space."""
        stretch = np.linalg.norm(np.asarray(self.matrix, float)[:3, :3], axis=0)
        return float(np.sqrt(np.prod((stretch * self.radii)[[0, 2]])))

    def depth(self, points: np.ndarray) -> np.ndarray:
        """(n,) 0 on the axis, 1 on the surface, and in proportion inside and outside; points (n, 3)."""
        inverse = np.linalg.inv(np.asarray(self.matrix, dtype=np.float64))
        local = np.abs(transform_points(points, inverse))
        x, y, z = (local / self.radii).T
        if self.kind == "BOX":
            return np.max([x, y, z], axis=0)
        if self.kind == "CAPSULE":
            cap = min(np.sqrt(self.radii[0] * self.radii[2]), self.radii[1])
            y = np.maximum(local[:, 1] - (self.radii[1] - cap), 0) / cap
        return np.sqrt(x * x + y * y + z * z)


def containment_volumes(body: Body, skeleton: Skeleton, kind: str = "CAPSULE") -> list[Volume]:
    """A volume for each bone, as wide as the body is around it.

    kind: one of ``KINDS``. Around bones that no vertex is nearest to, they are too thin to hold any.
    Raises BadSettings on an unknown kind.
    """
    if kind not in KINDS:
        raise BadSettings(f"The kind of volume must be one of {', '.join(KINDS)}, not {kind}")
    return fitted_volumes(body, BoneDistances(body, skeleton), skeleton, kind)


def fitted_volumes(body: Body, distances: BoneDistances, skeleton: Skeleton, kind: str) -> list[Volume]:
    """As ``containment_volumes``, from known distances."""
    nearest = np.min([distances.plain(rows).min(axis=0) for rows in distances.blocks()], axis=0)
    return [
        _fitted(skeleton, bone, kind, body.points[places], nearest[bone])
        for bone, (places, _) in enumerate(distances.owned(distances.facing))
    ]


def check_volumes(volumes: Sequence[Volume], skeleton: Skeleton) -> None:
    """Raises BadSettings where there are none, or one is unusable."""
    if not volumes:
        raise BadSettings("There are no volumes to bind with. Generate them first")
    for volume in volumes:
        if not 0 <= volume.bone < len(skeleton):
            raise BadSettings("There is a volume for a bone that the armature does not have. Generate them again")
        numbers = np.concatenate([np.ravel(volume.matrix), np.ravel(volume.radii)])
        usable = volume.kind in (*KINDS, "MESH") and numbers.shape == (19,) and np.isfinite(numbers).all()
        if not (usable and np.min(volume.radii) > 0 and np.linalg.det(np.asarray(volume.matrix, float)[:3, :3]) != 0):
            raise BadSettings(f"The volume of bone {skeleton.names[volume.bone]} has no extent. Give it a size")


def assign(request: Request, progress: Progress = ignore) -> Assignment:
    """Shares by how deep places are inside of the volumes. A bone may have several volumes.

    Raises BadSettings on unusable volumes.
    """
    body, distances, skeleton, limits = request.body, request.distances, request.skeleton, request.limits
    volumes = request.volumes
    if volumes is None:
        volumes = fitted_volumes(body, distances, skeleton, "CAPSULE")
    check_volumes(volumes, skeleton)
    widths = np.array([volume.width for volume in volumes])
    owners = np.array([volume.bone for volume in volumes])

    def block(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        points = body.points[rows]
        depths, radii = np.full((len(points), len(skeleton)), np.inf), np.ones((len(points), len(skeleton)))
        for volume, width, owner in zip(volumes, widths, owners, strict=True):
            depth = np.maximum(volume.depth(points), 1e-6)
            deeper = depth < depths[:, owner]
            depths[deeper, owner], radii[deeper, owner] = depth[deeper], width
        depths = limits.applied(rows, depths)
        best = depths.argmin(axis=1)[:, None]
        reach = (np.take_along_axis(depths, best, axis=1) * np.take_along_axis(radii, best, axis=1))[:, 0]
        return (request.falloff or Falloff()).shares(depths), reach

    return assigned(distances, block, progress, "Measuring depth in the volumes")


def _fitted(skeleton: Skeleton, bone: int, kind: str, points: np.ndarray, nearest: float) -> Volume:
    """Around the bone's middle, in the directions in which ``points`` (n, 3) spread across it most and least."""
    head, tail = skeleton.heads[bone], skeleton.tails[bone]
    middle, half = 0.5 * (head + tail), 0.5 * skeleton.lengths[bone]
    along = (tail - head) / (2 * half) if half > 0 else np.array([0.0, 1.0, 0.0])
    # Across the bone, beside the coordinate axis that it is furthest from.
    first = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    first /= np.linalg.norm(first)
    across = np.stack([first, np.cross(first, along)])
    if len(points) < _FEWEST:
        radii = np.array([1, 1, 1]) * 0.5 * nearest + np.array([0, half, 0])
    else:
        flat = (points - middle) @ across.T
        spread, axes = np.linalg.eigh(flat.T @ flat)
        if spread[0] < _ROUND * spread[1]:
            across = axes.T @ across
            # No mirrored volumes.
            across[1] *= np.sign(np.dot(np.cross(across[0], along), across[1]))
        offsets = np.abs((points - middle) @ np.stack([across[0], along, across[1]]).T)
        radii = np.quantile(offsets, _QUANTILE, axis=0)
        radii[[0, 2]] = np.maximum(radii[[0, 2]], _FLATTEST * radii[[0, 2]].max())
        radii[1] = max(radii[1], half)
    smallest = 1e-6 * max(float(radii.max()), 1e-30)
    matrix = np.eye(4)
    matrix[:3, :3] = np.stack([across[0], along, across[1]], axis=1)
    matrix[:3, 3] = middle
    return Volume(bone, kind, matrix, np.maximum(radii, smallest))
