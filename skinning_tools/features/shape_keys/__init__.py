# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape keys turned into bones: settings, the pipeline, what it writes, and the sliders of the result."""

from ...ui.feature import Feature
from ...ui.menus import ANIMATION
from . import operators, panel, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Shape keys to bones",
    guide="shape_keys.md",
    settings=(settings,),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        "MESH_MT_shape_key_context_menu": ("skinning.convert_shape_keys",),
        ANIMATION: (
            "skinning.convert_shape_keys",
            "skinning.compare_face",
            "skinning.add_slider_poses",
            "skinning.save_slider_table",
        ),
    },
)
