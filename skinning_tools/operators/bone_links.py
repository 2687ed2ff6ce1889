# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones: add and remove."""

registry: list = []
