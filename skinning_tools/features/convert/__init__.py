# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Animation to Skinning: settings, the pipeline, what it writes, and its results."""

from ...ui.feature import Feature, menu_entry
from . import command, error_legend, error_plot, settings
from .operators import convert, presets, results, show_result, suggest_bones
from .panels import convert as convert_panel
from .panels import results as results_panel

FEATURE = Feature(
    group="Convert Animation",
    guide="convert_animation.md",
    settings=(settings, error_legend, error_plot),
    operators=(convert, suggest_bones, presets, show_result, results),
    panels=(convert_panel, results_panel),
    commands=(command,),
    menus={"VIEW3D_MT_object_animation": menu_entry("skinning.convert_animation")},
)
