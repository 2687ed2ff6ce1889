# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Animation to Skinning: settings, the pipeline, what it writes, and its results."""

from ...ui.feature import Feature, menu_entry
from . import command, error_legend, error_plot, operators, panel, settings

FEATURE = Feature(
    group="Convert Animation",
    guide="convert_animation.md",
    settings=(settings, error_legend, error_plot),
    operators=(operators,),
    panels=(panel,),
    commands=(command,),
    menus={"VIEW3D_MT_object_animation": menu_entry("skinning.convert_animation")},
)
