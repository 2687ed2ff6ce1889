# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning on the GPU, drawn over the 3D views: linear blend, dual quaternion, centers of rotation."""

from . import error_legend, reachable, settings

modules = [settings, reachable, error_legend]
