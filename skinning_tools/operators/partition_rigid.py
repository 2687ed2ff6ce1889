# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition a skinned mesh into rigid parts and skin."""

registry: list = []
