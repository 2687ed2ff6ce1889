# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared by the subcommands of `blender --command skinning`."""
