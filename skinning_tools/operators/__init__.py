# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user can do: one file per task, each thin over the scene package."""

from . import boundary, convert_animation, show_result

modules = [convert_animation, show_result, boundary]
