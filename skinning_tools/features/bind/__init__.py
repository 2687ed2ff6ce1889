# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding meshes to skeletons: by weights, by volumes, or by parenting whole objects."""

from ...ui.feature import Feature
from ...ui.menus import BINDING, POSE
from . import operators, panel, segment_view, settings
from .command import COMMANDS

FEATURE = Feature(
    group="Binding and weights",
    guide="binding.md",
    settings=(settings, segment_view),
    operators=(operators,),
    panels=(panel,),
    commands=COMMANDS,
    menus={
        "VIEW3D_MT_object_parent": ("skinning.bind",),
        BINDING: (
            "skinning.bind",
            "skinning.show_segments",
            "skinning.find_t_intersections",
            "skinning.generate_volumes",
            "skinning.mirror_volumes",
            "skinning.remove_volumes",
        ),
        POSE: ("skinning.bind",),
    },
)
