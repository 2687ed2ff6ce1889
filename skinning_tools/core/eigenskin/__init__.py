# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin (Kry, James, Pai 2002): compact corrections of linear blend skinning, driven by the pose. Arrays only."""

from ..quaternions import rotation_angles
from .build import build_eigenskin
from .checks import check_examples
from .displacements import rest_displacements
from .half_rotation import HalfRotations, far_turned, half_matrices, half_rotations
from .left_out import LeftOut, left_out_errors
from .mirror import mirrored_examples
from .model import EigenSkin, ExampleErrors, NormalBasis, Support, example_errors
from .pose_space import PoseSpace, hinge_angles, hinge_middle, is_turned, rotation_distances
from .shells import shell_turns
from .skin_weights import corrected_weights
from .types import BadExamples, EigenSkinSettings, Examples, Rig

__all__ = [
    "BadExamples",
    "EigenSkin",
    "EigenSkinSettings",
    "ExampleErrors",
    "Examples",
    "HalfRotations",
    "LeftOut",
    "NormalBasis",
    "PoseSpace",
    "Rig",
    "Support",
    "build_eigenskin",
    "check_examples",
    "corrected_weights",
    "example_errors",
    "far_turned",
    "half_matrices",
    "half_rotations",
    "hinge_angles",
    "hinge_middle",
    "is_turned",
    "left_out_errors",
    "mirrored_examples",
    "rest_displacements",
    "rotation_angles",
    "rotation_distances",
    "shell_turns",
]
