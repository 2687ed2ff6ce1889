# SPDX-License-Identifier: GPL-3.0-or-later
"""The sidebar tab "Skinning"."""

from . import (
    bind,
    convert_animation,
    eigenskin,
    error_plot,
    export_centers,
    fit_weights,
    joint_helpers,
    menus,
    partial_solves,
    preview,
    results,
    rotation_centers,
    weight_view,
    weights,
)

modules = [
    convert_animation,
    results,
    partial_solves,
    bind,
    weights,
    weight_view,
    fit_weights,
    joint_helpers,
    rotation_centers,
    export_centers,
    preview,
    eigenskin,
    error_plot,
    menus,
]
