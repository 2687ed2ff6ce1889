# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user can do: one file per task, each thin over the scene package."""

from . import (
    bake_rotation_centers,
    bind,
    bone_links,
    boundary,
    build_eigenskin,
    bulge_bones,
    center_of_rotation_modifier,
    center_of_rotation_playback,
    clean_weights,
    convert_animation,
    eigenskin_examples,
    eigenskin_poses,
    export_centers,
    fit_weights,
    partition_rigid,
    preview,
    show_result,
    weight_view,
)

modules = [
    convert_animation,
    bake_rotation_centers,
    center_of_rotation_modifier,
    center_of_rotation_playback,
    export_centers,
    eigenskin_examples,
    eigenskin_poses,
    build_eigenskin,
    bind,
    clean_weights,
    partition_rigid,
    bone_links,
    bulge_bones,
    fit_weights,
    weight_view,
    preview,
    show_result,
    boundary,
]
