# SPDX-License-Identifier: GPL-3.0-or-later
"""The sidebar tab "Skinning"."""

from . import convert_animation

modules = [convert_animation]
