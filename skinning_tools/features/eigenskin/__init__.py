# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin: examples, corrective shape keys and their drivers."""

from ...ui.feature import Feature
from . import command, eigenskin_settings, panel
from .operators import build_eigenskin, eigenskin_examples, eigenskin_poses

FEATURE = Feature(
    group="EigenSkin",
    guide="eigenskin.md",
    settings=(eigenskin_settings,),
    operators=(eigenskin_examples, eigenskin_poses, build_eigenskin),
    panels=(panel,),
    commands=(command,),
)
