# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of fitting weights to a pose."""

registry: list = []
