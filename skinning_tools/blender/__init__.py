# SPDX-License-Identifier: GPL-3.0-or-later
"""Between Blender and arrays: reads data from a scene and writes data into it. Knows no feature."""
