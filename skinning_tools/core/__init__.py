# SPDX-License-Identifier: GPL-3.0-or-later
"""The mathematics of skinning: numpy arrays in, numpy arrays out. Never imports bpy."""
