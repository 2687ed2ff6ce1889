# SPDX-License-Identifier: GPL-3.0-or-later
"""What an EigenSkin is made from, and how."""

from dataclasses import dataclass

import numpy as np

from ..errors import BadSettings, SkinningError

LARGEST_SLIDER = 10.0


class BadExamples(SkinningError):
    """The examples cannot be used: there are none, they are of another mesh, or none poses a joint."""


@dataclass(frozen=True, eq=False)
class Rig:
    """A skinned mesh at rest, and its joints.

    rest (N, 3); bones and weights (N, K), P bones; joint_names of J joints, those whose rotations drive corrections,
    each after its parent; parents (J,) −1 for roots; joint_of_bone (P,) the joint that each bone is.
    """

    rest: np.ndarray
    bones: np.ndarray
    weights: np.ndarray
    joint_names: tuple[str, ...]
    parents: np.ndarray
    joint_of_bone: np.ndarray


@dataclass(frozen=True, eq=False)
class Examples:
    """Poses with their correct shapes.

    names of E examples; rotations (E, J, 4) unit quaternions of each joint against its parent, relative to the rest
    pose; matrices (E, P, 3, 4) of the bones from rest pose to pose, in the mesh's space; shapes (E, N, 3) posed, in the
    mesh's space; normals (E, N, 3) of the shapes, or None where no normal corrections are wanted.
    """

    names: tuple[str, ...]
    rotations: np.ndarray
    matrices: np.ndarray
    shapes: np.ndarray
    normals: np.ndarray | None = None


@dataclass(frozen=True)
class EigenSkinSettings:
    """components: of each support, 0 for as many as its joint needs: three for a hinge, ten for a ball.
    support_threshold: displaced vertices belong to a support from this share of the joint's largest displacement on.
    max_per_vertex: components that a vertex may be in. radius: of the radial functions, radians, 0 for the usual one.
    budget: components of all supports together, the most important ones; 0 gives each support ``components``.
    joint_pairs: look for pairs of joints that act together, at most this many. max_centers: rotations that a joint
    interpolates from where examples pose several joints at once. basis_functions: of a joint, at most, of the examples
    that are worth most, by least squares; 0 for one for each example.
    """

    components: int = 0
    support_threshold: float = 0.04
    max_per_vertex: int = 30
    radius: float = 0.0
    budget: int = 0
    joint_pairs: int = 0
    max_centers: int = 24
    basis_functions: int = 0

    def check(self) -> None:
        """Raises BadSettings."""
        if self.components < 0:
            raise BadSettings(f"Components must not be negative (0 chooses them), not {self.components}")
        if not 0 <= self.support_threshold < 1:
            raise BadSettings(f"The support threshold must be from 0 to below 1, not {self.support_threshold:g}")
        if self.max_per_vertex < 1:
            raise BadSettings(f"Max per Vertex must be at least 1, not {self.max_per_vertex}")
        if not (self.radius >= 0 and np.isfinite(self.radius)):
            raise BadSettings(f"The radius must not be negative (0 stands for the usual one), not {self.radius:g}")
        if self.budget < 0 or self.joint_pairs < 0:
            raise BadSettings("The shape key budget and the number of joint pairs must not be negative")
        if self.basis_functions < 0:
            raise BadSettings(f"Basis Functions must not be negative (0: all examples), not {self.basis_functions}")
        if self.max_centers < 2:
            raise BadSettings(f"The centers of a joint must be at least 2, not {self.max_centers}")
