# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands of `blender --command skinning`, one file each."""
