# SPDX-License-Identifier: GPL-3.0-or-later
"""Bulge bones: add and remove."""

registry: list = []
