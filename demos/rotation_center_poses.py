# SPDX-License-Identifier: GPL-3.0-or-later
"""Poses that show the differences between skinning methods: the cuboid of the evaluation of 2019, and a human arm.

Arrays only, for the pictures of the documentation and for the benchmark.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from human_rig import read_human
from scipy.spatial.transform import Rotation

from skinning_tools.core.deform import METHODS, skin_frame
from skinning_tools.core.rotation_centers import bake_rotation_centers
from tests.core.skinned_shapes import about, chain_weights, cuboid, volume

TWIST, BEND = 180.0, 120.0
LENGTH, WIDTH = 6.0, 1.0
TWISTED, BENT = np.array([2.0, 0, 0]), np.array([4.0, 0, 0])


@dataclass(frozen=True, eq=False)
class Pose:
    """rest (N, 3), triangles (T, 3), bones and weights (N, K), matrices (P, 3, 4)."""

    rest: np.ndarray
    triangles: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    matrices: np.ndarray

    @cached_property
    def centers(self) -> np.ndarray:
        return bake_rotation_centers(self.rest, self.triangles, self.bones, self.weights)[0]

    @cached_property
    def points(self) -> dict[str, np.ndarray]:
        """Positions (N, 3) by method."""
        return {
            method: skin_frame(self.rest, self.bones, self.weights, self.matrices, method, self.centers)
            for method in METHODS
        }

    def kept_volume(self, method: str, chosen=slice(None)) -> float:
        """The volume in percent of that at rest; ``chosen``: triangles that enclose it."""
        triangles = self.triangles[chosen]
        return 100 * volume(self.points[method], triangles) / volume(self.rest, triangles)


def bar(twist: float = 0.0, bend: float = 0.0) -> Pose:
    """A closed cuboid along x with three bones, twisted at the first joint and bent at the second, in degrees."""
    rest, triangles = cuboid(length=LENGTH)
    bones, weights = chain_weights(rest[:, 0], [TWISTED[0], BENT[0]])
    twisted = about(Rotation.from_euler("x", twist, degrees=True).as_matrix(), TWISTED)
    # The bend is about the twisted second bone's own axis that lies in the picture's depth.
    bent = about(Rotation.from_euler("y", -bend, degrees=True).as_matrix(), BENT)
    return Pose(rest, triangles, bones, weights, np.stack([np.eye(3, 4), twisted, _after(bent, twisted)]))


def bulge(pose: Pose, method: str, bend: float) -> float:
    """How far the outside of the bend stands out of a bar that is bent about its middle line, in percent of its width.

    Distance of the outer side's middle from the two bones, less half a width; as a bar at rest has it, 0.
    """
    moved = pose.points[method]
    along = np.abs(pose.rest[:, 0] - BENT[0]) < 1
    stop = BENT + LENGTH / 3 * Rotation.from_euler("y", -bend, degrees=True).apply([1, 0, 0])
    flat = moved[along] * [1, 0, 1]
    distances = np.minimum(_to_segment(flat, TWISTED, BENT), _to_segment(flat, BENT, stop))
    outside = np.isclose(np.abs(pose.rest[along, 2]), WIDTH / 2)
    # Of the two sides the outer one: it is on the other side of the joint than both bones' ends.
    outwards = 2 * BENT - TWISTED - stop
    outside &= (flat - BENT) @ outwards > 0
    return 100 * (distances[outside].max() - WIDTH / 2) / WIDTH


def waist(pose: Pose, method: str) -> float:
    """The remaining widest diagonal of the vertex ring at the twisted joint, in percent."""
    ring = np.isclose(pose.rest[:, 0], TWISTED[0])
    radii = [np.linalg.norm(points[ring, 1:], axis=1).max() for points in (pose.points[method], pose.rest)]
    return 100 * radii[0] / radii[1]


def human_arm(twist: float = 160.0, bend: float = 75.0) -> tuple[Pose, np.ndarray]:
    """The human rig, its left elbow bent further and the hand twisted about the forearm; (T,) the arm's triangles.

    Raises FileNotFoundError if the rig is not next to the checkout.
    """
    human = read_human()
    names, heads, parents = human.names, human.heads, human.parents
    upper, elbow, hand = (names.index(name) for name in ("upperarm02.L", "lowerarm01.L", "wrist.L"))
    forearm, above = heads[hand] - heads[elbow], heads[elbow] - heads[upper]
    axis = np.cross(above, [0.0, 0.0, 1.0])
    bent = _about_axis(axis, bend, heads[elbow])
    twisted = _after(bent, _about_axis(forearm, twist, heads[hand]))
    matrices = np.tile(np.eye(3, 4), (len(names), 1, 1))
    matrices[_below(parents, elbow)] = bent
    matrices[_below(parents, hand)] = twisted
    on_arm = (human.weights * np.isin(human.bones, _below(parents, upper))).sum(axis=1) > 0.5
    triangles = human.triangles
    return Pose(human.rest, triangles, human.bones, human.weights, matrices), on_arm[triangles].all(axis=1)


def _after(second: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(3, 4) ``first``, then ``second``."""
    moved = second[:, :3] @ first
    moved[:, 3] += second[:, 3]
    return moved


def _about_axis(axis: np.ndarray, degrees: float, point: np.ndarray) -> np.ndarray:
    return about(Rotation.from_rotvec(np.radians(degrees) * axis / np.linalg.norm(axis)).as_matrix(), point)


def _below(parents: np.ndarray, top: int) -> np.ndarray:
    """A bone and all its descendants."""
    found = np.arange(len(parents)) == top
    while True:
        more = found | np.where(parents >= 0, found[parents], False)
        if (more == found).all():
            return np.flatnonzero(found)
        found = more


def _to_segment(points: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    along = np.clip((points - start) @ (stop - start) / ((stop - start) @ (stop - start)), 0, 1)
    return np.linalg.norm(points - start - along[:, None] * (stop - start), axis=1)
