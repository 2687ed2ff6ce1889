# SPDX-License-Identifier: GPL-3.0-or-later
"""Show weights and influence counts as colors."""

registry: list = []
