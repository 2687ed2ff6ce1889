# SPDX-License-Identifier: GPL-3.0-or-later
"""Other methods to approximate an animation, only for the benchmarks: one file each.

Each has ``approximate(animation, bone_count)``, whose result has ``frame(row)``: positions (N, 3) float64 in object
space.
"""
