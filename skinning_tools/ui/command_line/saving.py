# SPDX-License-Identifier: GPL-3.0-or-later
"""Saves the result completely or not at all, even if the disk or the process fails."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import bpy

from ...blender.written_files import Target
from . import blend_mark

# Free space below this is added to Blender's reason, which is not always correct.
LITTLE_SPACE = 100e6


def save(output: Target, backup: Target | None = None, marked: bool = True) -> None:
    """Save a file next to ``output``, check that it is complete, and rename it. Raises BadScene; then nothing is
    changed.

    backup: where to keep the replaced file. marked: mark the file as the extension's, which a later run may replace.
    """
    try:
        with output.part(".blend") as part:
            _write(part, marked)
            if backup is not None and output.real.exists():
                _keep(output.real, backup)
    except (RuntimeError, OSError) as error:
        raise output.failed(f"{reason(error)}{_space(output.real.parent)}") from error


def backup_of(output: Path) -> Path | None:
    """The path that keeps the replaced file; None if the preferences disable it."""
    wanted = bpy.context.preferences.filepaths.save_version > 0
    return output.with_name(f"{output.name}1") if wanted else None


def reason(error: Exception) -> str:
    """The reason of a failed operator, in one line."""
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.removeprefix("Error: ").split())


def _write(part: Path, marked: bool) -> None:
    bpy.ops.wm.save_as_mainfile(filepath=str(part), check_existing=False, copy=True)
    if marked:
        blend_mark.mark(part)
    # Blender misses some failures to write a compressed file; the end of a truncated file cannot be read.
    try:
        with _without_backslash(part) as path, bpy.data.libraries.load(str(path)):
            pass
    except OSError as error:
        raise OSError("it was not written completely; the disk may be full") from error


@contextlib.contextmanager
def _without_backslash(part: Path) -> Iterator[Path]:
    """A path that Blender can read: it treats a backslash as a folder separator on every system."""
    if os.sep == "\\" or "\\" not in str(part):
        yield part
        return
    with tempfile.TemporaryDirectory(prefix="skinning_tools_") as folder:
        link = Path(folder) / part.name
        link.symlink_to(part)
        yield link


def _keep(old: Path, backup: Target) -> None:
    with backup.part() as part:
        try:
            os.link(old, part)
        except OSError:  # a file system without links
            shutil.copy2(old, part)


def _space(folder: Path) -> str:
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(folder).free
        if free < LITTLE_SPACE:
            return f" (its disk has {free / 1e6:.1f} MB free)"
    return ""
