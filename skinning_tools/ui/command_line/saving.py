# SPDX-License-Identifier: GPL-3.0-or-later
"""Saving the result: all of it or nothing, whatever becomes of the disk or the process meanwhile."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import bpy

from ...blender.written_files import Target
from ...core.errors import BadScene
from . import blend_mark

# Less than this is named beside the reason that Blender gives, which is not always the right one.
LITTLE_SPACE = 100e6


def save(output: Target, backup: Target | None = None, marked: bool = True) -> None:
    """Save a file beside ``output``, see whether it is whole, and rename it. Raises BadScene; then nothing is changed.

    backup: where the file that is replaced stays. marked: as what the extension wrote, which a later run may replace.
    """
    try:
        with output.part(".blend") as part:
            _write(part, marked)
            if backup is not None and output.real.exists():
                _keep(output.real, backup)
    except (RuntimeError, OSError) as error:
        space = _space(output.real.parent)
        raise BadScene(f"The result could not be saved to {output.path}: {reason(error)}{space}") from error


def backup_of(output: Path) -> Path | None:
    """Where the file of that name stays when it is replaced; None where the preferences want no such file."""
    wanted = bpy.context.preferences.filepaths.save_version > 0
    return output.with_name(f"{output.name}1") if wanted else None


def reason(error: Exception) -> str:
    """Of a failed operator, in one line."""
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.removeprefix("Error: ").split())


def _write(part: Path, marked: bool) -> None:
    bpy.ops.wm.save_as_mainfile(filepath=str(part), check_existing=False, copy=True)
    if marked:
        blend_mark.mark(part)
    # Blender does not notice all failures to write a compressed file; the end of one that is cut short cannot be read.
    try:
        with _without_backslash(part) as path, bpy.data.libraries.load(str(path)):
            pass
    except OSError as error:
        raise OSError("it was not written as a whole; the disk may be full") from error


@contextlib.contextmanager
def _without_backslash(part: Path):
    """A name by which Blender reads the file: it takes a backslash for the end of a folder's name on every system."""
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
