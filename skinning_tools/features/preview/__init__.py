# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning on the GPU, drawn over the 3D views: linear blend, dual quaternion, centers of rotation."""

from ...ui.feature import Feature
from ...ui.menus import DEFORMATION, POSE, WEIGHTS
from . import operators, panel, session, settings

FEATURE = Feature(
    group="Centers of Rotation",
    guide="centers_of_rotation.md",
    settings=(settings, session),
    operators=(operators,),
    panels=(panel,),
    menus={
        DEFORMATION: ("skinning.preview",),
        POSE: ("skinning.preview",),
        WEIGHTS: ("skinning.preview",),
    },
)
