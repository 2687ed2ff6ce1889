# SPDX-License-Identifier: GPL-3.0-or-later
"""The sidebar tab "Skinning"."""

from . import convert_animation, eigenskin, export_centers, preview, rotation_centers

modules = [convert_animation, rotation_centers, export_centers, preview, eigenskin]
