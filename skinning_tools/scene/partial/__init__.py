# SPDX-License-Identifier: GPL-3.0-or-later
"""Partial solves: weights, motion or helper bones for a rig that is there."""
