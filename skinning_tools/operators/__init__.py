# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user can do: one file per task, each thin over the scene package."""

from . import (
    bake_rotation_centers,
    boundary,
    build_eigenskin,
    center_of_rotation_modifier,
    center_of_rotation_playback,
    convert_animation,
    eigenskin_examples,
    eigenskin_poses,
    export_centers,
    preview,
    show_result,
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
    preview,
    show_result,
    boundary,
]
