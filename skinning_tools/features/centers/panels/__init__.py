# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of the sidebar."""

from . import export_centers, rotation_centers

MODULES = (rotation_centers, export_centers)
