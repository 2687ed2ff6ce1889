# SPDX-License-Identifier: GPL-3.0-or-later
"""Between Blender and arrays: what is read of a scene, and what is written into it. Knows no feature."""
