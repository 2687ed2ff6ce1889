# SPDX-License-Identifier: GPL-3.0-or-later
"""Bind a mesh to an armature, and the volumes that containment binding uses."""

registry: list = []
