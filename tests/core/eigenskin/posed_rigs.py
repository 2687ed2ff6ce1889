# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs posed by forward kinematics on arrays, and examples made from other deformers than linear blending."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from skinning_tools.core import quaternions
from skinning_tools.core.deform import convex_influences, skin_frame
from skinning_tools.core.eigenskin import Examples, Rig

from ..skinned_shapes import about, chain_weights, cuboid

# The poses of the figures: 33°, 66°, 100°, both ways.
STEPS = np.radians([-100, -66, -33, 33, 66, 100])


@dataclass(frozen=True, eq=False)
class PosedRig:
    """heads (J, 3); frames (J, 3, 3): the bones' axes at rest, as columns. A pose is a rotation vector in the bone's
    own axes by the joint's name."""

    rig: Rig
    heads: np.ndarray
    frames: np.ndarray

    def rotations(self, pose: dict[str, np.ndarray]) -> np.ndarray:
        """(J, 4)."""
        result = np.tile([1.0, 0.0, 0.0, 0.0], (len(self.heads), 1))
        for name, vector in pose.items():
            result[self.rig.joint_names.index(name)] = quaternion(vector)
        return result

    def matrices(self, rotations: np.ndarray) -> np.ndarray:
        """(P, 3, 4) from rest pose to pose of the bones, by ``rotations`` (J, 4) of the joints."""
        local = self.frames @ quaternions.to_matrices(rotations) @ np.swapaxes(self.frames, 1, 2)
        result = np.empty((len(local), 3, 4))
        for joint, parent in enumerate(self.rig.parents):
            result[joint] = about(local[joint], self.heads[joint])
            if parent >= 0:
                above = result[parent]
                moved = above[:, :3] @ result[joint]
                moved[:, 3] += above[:, 3]
                result[joint] = moved
        return result[self.rig.joint_of_bone]

    def examples(self, poses, method="DQS", displaced=None) -> Examples:
        """The shapes of another deformer at ``poses``; with ``displaced``, a function from rotations (J, 4) to
        displacements (N, 3) of the rest pose, those of linear blending with these."""
        rotations = np.array([self.rotations(pose) for pose in poses])
        matrices = np.array([self.matrices(turned) for turned in rotations])
        rest, bones, weights = self.rig.rest, self.rig.bones, self.rig.weights
        if displaced is None:
            shapes = [skin_frame(rest, bones, weights, moved, method) for moved in matrices]
        else:
            shapes = [
                skin_frame(rest + displaced(turned), bones, weights, moved)
                for turned, moved in zip(rotations, matrices, strict=True)
            ]
        return Examples(tuple(f"Pose {row + 1}" for row in range(len(poses))), rotations, matrices, np.array(shapes))


def quaternion(vector) -> np.ndarray:
    """(4,) w first, of a rotation vector."""
    return np.roll(Rotation.from_rotvec(vector).as_quat(), 1)


def limb(joints=(2.0, 4.0), columns=24, rows=3, length=6.0) -> PosedRig:
    """A bar along x with bones "bone 0", "bone 1" …, the first from its end, the others from ``joints`` on."""
    rest, _ = cuboid(columns, rows, length)
    bones, weights = chain_weights(rest[:, 0], list(joints))
    count = len(joints) + 1
    names = tuple(f"bone {bone}" for bone in range(count))
    rig = Rig(rest, bones, weights, names, np.arange(-1, count - 1), np.arange(count))
    heads = np.array([[x, 0.0, 0.0] for x in (0.0, *joints)])
    return PosedRig(rig, heads, np.tile(np.eye(3), (count, 1, 1)))


def human(shared_data) -> PosedRig:
    data = np.load(shared_data("human_rig.npz"))
    names, rest = tuple(str(name) for name in data["bone_names"]), data["rest"].astype(float)
    bones, weights = convex_influences(
        data["influence_bones"], data["influence_weights"].astype(float), len(rest), len(names)
    )
    rig = Rig(rest, bones, weights, names, data["parents"], np.arange(len(names)))
    # The first axis is along the bone; which the others are hardly matters.
    along = data["tails"] - data["heads"]
    frames = np.array([np.linalg.svd(direction[None])[2].T for direction in along])
    frames[..., 0] *= np.linalg.det(frames)[:, None]
    return PosedRig(rig, data["heads"].astype(float), frames)


def hinge_poses(name: str, axis=1, steps=STEPS) -> list[dict[str, np.ndarray]]:
    """A pose for each of ``steps``, radians, about the bone's own axis of that number."""
    return [{name: step * np.eye(3)[axis]} for step in steps]


def ball_poses(name: str, steps=STEPS) -> list[dict[str, np.ndarray]]:
    return [pose for axis in range(3) for pose in hinge_poses(name, axis, steps)]


def random_turns(seed: int, count: int, largest: float) -> np.ndarray:
    """(count, 3) rotation vectors up to ``largest`` radians, all directions alike."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True) * random.uniform(0.05, largest, (count, 1))


def rest_metric_error(displacements: np.ndarray, model, rotations: np.ndarray) -> float:
    """‖what is left‖ / ‖displacement‖ of rest displacements (E, N, 3) at poses with ``rotations`` (E, J, 4)."""
    left = [
        part - model.displacements(values) for part, values in zip(displacements, model.values(rotations), strict=True)
    ]
    return float(np.linalg.norm(left) / np.linalg.norm(displacements))


def components_per_vertex(model) -> np.ndarray:
    """(N,) how many components each vertex is in."""
    return sum(len(support.components) * (support.mask > 0) for support in model.supports)
