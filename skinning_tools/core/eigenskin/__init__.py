# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin (Kry, James, Pai 2002): compact corrections of linear blend skinning, driven by the pose. Arrays only."""

from .build import build_eigenskin
from .checks import check_examples
from .displacements import rest_displacements
from .mirror import mirrored_examples
from .model import EigenSkin, ExampleErrors, Support, example_errors
from .pose_space import PoseSpace, hinge_angles, hinge_middle, is_turned, rotation_angles, rotation_distances
from .types import BadExamples, EigenSkinSettings, Examples, Rig

__all__ = [
    "BadExamples",
    "EigenSkin",
    "EigenSkinSettings",
    "ExampleErrors",
    "Examples",
    "PoseSpace",
    "Rig",
    "Support",
    "build_eigenskin",
    "check_examples",
    "example_errors",
    "hinge_angles",
    "hinge_middle",
    "is_turned",
    "mirrored_examples",
    "rest_displacements",
    "rotation_angles",
    "rotation_distances",
]
