# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and bulge bones: helpers that keep twisted and bent joints in shape."""

from ...ui.feature import Feature
from . import joint_helper_settings, panel
from .commands import add_bone_links, add_bulge_bone, remove_bone_links, remove_bulge_bone
from .operators import bone_links, bulge_bones

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(joint_helper_settings,),
    operators=(bone_links, bulge_bones),
    panels=(panel,),
    commands=(add_bone_links, remove_bone_links, add_bulge_bone, remove_bulge_bone),
)
