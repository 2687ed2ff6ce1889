# SPDX-License-Identifier: GPL-3.0-or-later
"""Other ways to approximate an animation, written for the benchmarks: one file each, none of them shipped.

Each has ``approximate(animation, bone_count)``, whose result gives ``frame(row)``: positions (N, 3) float64 in object
space.
"""
