# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation: baked, played by a modifier or as shapes, exported."""
