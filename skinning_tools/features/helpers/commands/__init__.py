# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of the help."""

from . import add_bone_links, add_bulge_bone, remove_bone_links, remove_bulge_bone

MODULES = (add_bone_links, remove_bone_links, add_bulge_bone, remove_bulge_bone)
