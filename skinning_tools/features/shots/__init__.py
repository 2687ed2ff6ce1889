# SPDX-License-Identifier: GPL-3.0-or-later
"""Converting many files: `convert` for each in a Blender of its own, and their reports in one table."""

from ...ui.feature import Feature
from . import convert_shots, gather_reports

FEATURE = Feature(group="Convert Animation", guide="command_line.md", commands=(convert_shots, gather_reports))
