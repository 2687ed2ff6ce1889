# SPDX-License-Identifier: GPL-3.0-or-later
"""Saving the result: all of it or nothing, whatever becomes of the disk or the process meanwhile."""

import contextlib
import os
import shutil
from pathlib import Path

import bpy

from ..core.errors import BadScene

# Less than this is named beside the reason that Blender gives, which is not always the right one.
LITTLE_SPACE = 100e6


def save(output: Path, keep_old: bool = False) -> None:
    """Save a file beside ``output``, see whether it is whole, and rename it. Raises BadScene; then nothing is changed.

    keep_old: an older file stays as .blend1, as with Blender's own saving, where the preferences have that.
    """
    part = part_of(output)
    try:
        _write(part)
        if keep_old and bpy.context.preferences.filepaths.save_version > 0:
            with contextlib.suppress(OSError):  # a file system without links
                backup = output.with_name(f"{output.name}1")
                backup.unlink(missing_ok=True)
                os.link(output, backup)
        os.replace(part, output)
    except (RuntimeError, OSError) as error:
        raise BadScene(f"The result could not be saved to {output}: {reason(error)}{_space(output.parent)}") from error
    finally:
        remove_part(output)


def part_of(output: Path, process: int | None = None) -> Path:
    """What becomes ``output`` once it is whole; of this process, or the one of that number: two may save at once."""
    return output.with_name(f".{output.stem}.{process or os.getpid()}.part.blend")


def remove_part(output: Path, process: int | None = None) -> None:
    """Remove what a Blender that was stopped while it saved has left."""
    part = part_of(output, process)
    for path in (part, part.with_name(f"{part.name}@")):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def reason(error: Exception) -> str:
    """Of a failed operator, in one line."""
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.removeprefix("Error: ").split())


def _write(part: Path) -> None:
    bpy.ops.wm.save_as_mainfile(filepath=str(part), check_existing=False, copy=True)
    # Blender does not notice all failures to write a compressed file; the end of one that is cut short cannot be read.
    try:
        with bpy.data.libraries.load(str(part)):
            pass
    except OSError as error:
        raise OSError("it was not written as a whole; the disk may be full") from error


def _space(folder: Path) -> str:
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(folder).free
        if free < LITTLE_SPACE:
            return f" (its disk has {free / 1e6:.1f} MB free)"
    return ""
