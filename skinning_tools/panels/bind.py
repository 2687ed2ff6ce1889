# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of binding."""

registry: list = []
