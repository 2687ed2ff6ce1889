# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of the help."""

from . import add_helper_bones, remove_helper_bones, solve_transforms, solve_weights

MODULES = (solve_weights, solve_transforms, add_helper_bones, remove_helper_bones)
