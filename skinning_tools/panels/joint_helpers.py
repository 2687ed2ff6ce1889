# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel of bone links, twist bones and bulge bones."""

registry: list = []
