# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit weights to a pose that the artist has corrected by hand."""

registry: list = []
