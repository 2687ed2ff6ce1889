# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads animated meshes as arrays, frame by frame."""
