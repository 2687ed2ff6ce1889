# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples for an EigenSkin of the human rig: poses of its joints, with the shapes of dual quaternion skinning.

Arrays only, for the pictures of the documentation and for the benchmark.
"""

from dataclasses import dataclass

import numpy as np
from human_rig import read_human
from scipy.spatial.transform import Rotation

from skinning_tools.core import quaternions
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.eigenskin import EigenSkin, Examples, Rig, rest_displacements
from tests.core.skinned_shapes import about

STEPS = (-100, -66, -33, 33, 66, 100)

HINGES = {"elbow": "lowerarm01.L", "knee": "lowerleg01.L"}
BALLS = {"shoulder": "upperarm01.L", "hip": "upperleg01.L"}

_LIMBS = "clavicle", "upperarm01", "lowerarm01", "wrist", "finger2-1", "upperleg01", "lowerleg01", "foot"

# Twenty joints all over the body.
MANY = (
    *("spine03", "spine01", "neck01", "head"),
    *(f"{name}.{side}" for name in _LIMBS for side in "LR"),
)

# A turn of one joint: its name and the vector that it turns about, as long as the angle in radians.
Turn = tuple[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Character:
    """A body to pose. rig: of all its bones; triangles (T, 3); heads and tails (J, 3) of the bones."""

    rig: Rig
    triangles: np.ndarray
    heads: np.ndarray
    tails: np.ndarray

    @classmethod
    def read(cls) -> "Character":
        """The human rig, whose Y points up. Raises FileNotFoundError if it is not next to the checkout."""
        human = read_human()
        joints = np.arange(len(human.names))
        rig = Rig(human.rest, human.bones, human.weights, human.names, human.parents, joints)
        return cls(rig, human.triangles, human.heads, human.tails)

    def axes(self, name: str) -> np.ndarray:
        """(3, 3) unit vectors of a joint: its bending axis at rest, the axis across it, and the axis along its bone."""
        joint = self.rig.joint_names.index(name)
        along = _unit(self.tails[joint] - self.heads[joint])
        parent = self.rig.parents[joint]
        bend = np.cross(_unit(self.tails[parent] - self.heads[parent]), along)
        if np.linalg.norm(bend) < 0.1:
            bend = np.cross(along, [0.0, 0.0, 1.0])
        bend = _unit(bend)
        return np.array([bend, np.cross(along, bend), along])

    def examples(self, turns: list[Turn]) -> Examples:
        """Each turns one joint and leaves the others at rest; the shapes are those of dual quaternion skinning."""
        rotations = np.tile([1.0, 0.0, 0.0, 0.0], (len(turns), len(self.rig.joint_names), 1))
        for row, (name, vector) in enumerate(turns):
            rotations[row, self.rig.joint_names.index(name)] = np.roll(Rotation.from_rotvec(vector).as_quat(), 1)
        matrices = np.array([self.matrices(local) for local in rotations])
        rig = self.rig
        shapes = np.array([skin_frame(rig.rest, rig.bones, rig.weights, posed, "DQS") for posed in matrices])
        names = tuple(f"{name} {np.degrees(np.linalg.norm(vector)):.0f}°" for name, vector in turns)
        return Examples(names, rotations, matrices, shapes)

    def plain_shapes(self, examples: Examples) -> np.ndarray:
        """(E, N, 3) linear blending in the examples' poses."""
        rig = self.rig
        return np.array([skin_frame(rig.rest, rig.bones, rig.weights, posed) for posed in examples.matrices])

    def matrices(self, local: np.ndarray) -> np.ndarray:
        """(J, 3, 4) from rest pose to pose, of joints that turn by ``local`` (J, 4) against their parents."""
        moved = np.zeros((len(local), 4, 4))
        moved[:, 3, 3] = 1.0
        for joint, turned in enumerate(quaternions.to_matrices(local)):
            moved[joint, :3] = about(turned, self.heads[joint])
            if self.rig.parents[joint] >= 0:
                moved[joint] = moved[self.rig.parents[joint]] @ moved[joint]
        return moved[:, :3]


def turns_about(name: str, axes, degrees=STEPS) -> list[Turn]:
    """Turns of a joint by each of ``degrees`` about each of ``axes``."""
    return [(name, np.radians(angle) * _unit(axis)) for axis in axes for angle in degrees]


def between(axes: np.ndarray) -> np.ndarray:
    """(6, 3) the directions half-way between two of three ``axes``, either of them with both signs."""
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    return np.concatenate([axes[first] + axes[second], axes[first] - axes[second]]) / np.sqrt(2)


def unseen_turns(name: str, axes: np.ndarray, count: int = 25, largest: float = 100.0, seed: int = 0) -> list[Turn]:
    """Random turns of a joint by up to ``largest`` degrees about any of ``axes``."""
    random = np.random.default_rng(seed)
    angles = np.radians(random.uniform(-largest, largest, count))
    return [
        (name, angle * axes[index]) for angle, index in zip(angles, random.integers(len(axes), size=count), strict=True)
    ]


def random_directions(count: int = 25, seed: int = 1) -> np.ndarray:
    """(count, 3) unit vectors."""
    directions = np.random.default_rng(seed).normal(size=(count, 3))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def rest_error(rig: Rig, examples: Examples, model: EigenSkin) -> float:
    """‖remaining error‖ / ‖displacement‖ over all examples, in the rest pose, in which components are added."""
    displacements = mapped_to_rest(rig, examples)
    left = displacements - np.array([model.displacements(values) for values in model.values(examples.rotations)])
    return float(np.linalg.norm(left) / np.linalg.norm(displacements))


def optimum(rig: Rig, examples: Examples) -> np.ndarray:
    """(E + 1,) the least relative error in the rest pose that so many components of the whole mesh can have."""
    displacements = mapped_to_rest(rig, examples)
    squares = np.linalg.svd(displacements.reshape(len(displacements), -1), compute_uv=False) ** 2
    return np.sqrt(np.clip(np.append(squares.sum(), squares.sum() - np.cumsum(squares)), 0, None) / squares.sum())


def mapped_to_rest(rig: Rig, examples: Examples) -> np.ndarray:
    """(E, N, 3) displacements of the rest pose that give the examples' shapes."""
    return rest_displacements(rig.rest, rig.bones, rig.weights, examples.matrices, examples.shapes).values.astype(float)


def _unit(vector) -> np.ndarray:
    return np.asarray(vector, float) / np.linalg.norm(vector)
