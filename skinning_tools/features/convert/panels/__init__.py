# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of the sidebar."""

from . import convert, results

MODULES = (convert, results)
