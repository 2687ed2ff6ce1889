# SPDX-License-Identifier: GPL-3.0-or-later
"""The weights of a skinned mesh: cleanup, smoothing, compression, rigid parts and display."""

from ...ui.feature import Feature
from ...ui.menus import BINDING, WEIGHTS
from . import operators, panel, settings, weight_view, weight_view_panel, weight_view_refresh
from .command import COMMANDS
from .gltf_weights import GltfWeights

FEATURE = Feature(
    group="Binding and weights",
    guide="weights.md",
    settings=(settings, weight_view, weight_view_refresh),
    operators=(operators,),
    panels=(panel, weight_view_panel),
    commands=COMMANDS,
    gltf_extensions=(GltfWeights,),
    menus={
        WEIGHTS: (
            "skinning.show_weights",
            "skinning.find_unweighted",
            "skinning.find_rogue_weights",
            "skinning.check_rogue_weights",
            "skinning.remove_rogue_weights",
            "skinning.smooth_weights",
            "skinning.compress_weights",
        ),
        BINDING: (
            "skinning.find_unweighted",
            "skinning.find_rogue_weights",
            "skinning.check_rogue_weights",
            "skinning.remove_rogue_weights",
            "skinning.smooth_weights",
            "skinning.compress_weights",
            "skinning.save_weight_table",
            "skinning.partition_rigid",
        ),
    },
)
