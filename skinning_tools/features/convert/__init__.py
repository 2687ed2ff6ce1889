# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Animation to Skinning: settings, the pipeline, what it writes, and its results."""

from ...ui.feature import Feature
from ...ui.menus import ANIMATION
from . import command, error_legend, error_plot, operators, panel, settings

FEATURE = Feature(
    group="Convert Animation",
    guide="convert_animation.md",
    settings=(settings, error_legend, error_plot),
    operators=(operators,),
    panels=(panel,),
    commands=(command,),
    menus={
        "VIEW3D_MT_object_animation": ("skinning.convert_animation",),
        ANIMATION: (
            "skinning.convert_animation",
            "skinning.convert_again",
            "skinning.compare_result",
            "skinning.show_error",
            "skinning.show_worst_frame",
            "skinning.delete_result",
        ),
    },
)
