# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of a skinned mesh: cleanup, smoothing, compression, rigid parts and display."""

from ...ui.feature import Feature
from . import menu, operators, panel, settings, weight_view, weight_view_panel, weight_view_refresh
from .command import COMMANDS
from .gltf_weights import GltfWeights

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(settings, weight_view, weight_view_refresh),
    operators=(operators,),
    panels=(menu, panel, weight_view_panel),
    commands=COMMANDS,
    gltf_extensions=(GltfWeights,),
    # Weights in Weight Paint Mode, and the arrow beside a mesh's vertex groups.
    menus={"VIEW3D_MT_paint_weight": menu.draw_entry, "MESH_MT_vertex_group_context_menu": menu.draw_entry},
)
