# SPDX-License-Identifier: GPL-3.0-or-later
"""Animated meshes as arrays: what moves them, frame by frame."""
