# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding a skin to a skeleton, and tools on its weights. Arrays only."""
