# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of the reference."""

from . import bone_links, bulge_bones

MODULES = (bone_links, bulge_bones)
