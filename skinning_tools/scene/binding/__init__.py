# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding meshes to skeletons, and parts of them rigidly to bones."""
