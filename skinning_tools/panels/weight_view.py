# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of the weight view."""

registry: list = []
