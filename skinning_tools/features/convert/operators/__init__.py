# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of the reference."""

from . import convert, presets, results, show_result, suggest_bones

MODULES = (convert, suggest_bones, presets, show_result, results)
