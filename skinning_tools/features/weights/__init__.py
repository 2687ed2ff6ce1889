# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of a skinned mesh: found, cleaned, smoothed, compressed, cut into rigid parts and shown."""

from ...ui.feature import Feature
from . import menu, weight_tool_settings, weight_view, weight_view_refresh
from .commands import compress_weights, remove_rogue_weights, smooth_weights
from .commands import partition_rigid as partition_rigid_command
from .operators import clean, partition_rigid
from .operators import weight_view as weight_view_operator
from .panels import tools
from .panels import weight_view as weight_view_panel

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(weight_tool_settings, weight_view, weight_view_refresh),
    operators=(clean, partition_rigid, weight_view_operator),
    panels=(menu, tools, weight_view_panel),
    commands=(remove_rogue_weights, smooth_weights, compress_weights, partition_rigid_command),
    # Weights in Weight Paint Mode, and the arrow beside a mesh's vertex groups.
    menus={"VIEW3D_MT_paint_weight": menu.draw_entry, "MESH_MT_vertex_group_context_menu": menu.draw_entry},
)
