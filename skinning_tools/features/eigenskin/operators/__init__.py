# SPDX-License-Identifier: GPL-3.0-or-later
"""In the order of the reference."""

from . import build_eigenskin, eigenskin_examples, eigenskin_poses

MODULES = (eigenskin_examples, eigenskin_poses, build_eigenskin)
