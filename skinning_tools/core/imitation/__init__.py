# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights and driven helper bones that imitate other deformations of a mesh, over poses made from its skeleton."""
