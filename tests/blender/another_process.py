# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts a second Blender without the extension: this program again, or the module in this Python."""

import sys

import bpy


def command(code: str) -> list[str]:
    """The command that starts it without a window, with factory settings and scripts off, and runs ``code`` in it."""
    if bpy.app.binary_path:
        return [bpy.app.binary_path, "-b", "--factory-startup", "--disable-autoexec", "--python-expr", code]
    return [sys.executable, "-c", code]
