# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that the extension adds to a rig: their records, making them, and removing them."""
