# SPDX-License-Identifier: GPL-3.0-or-later
"""The mark in a .blend file that a subcommand saved last: Blender's own saving removes it.

Blender ignores it: it follows the end of a file's blocks, and in a compressed file it is a frame of its own
(https://github.com/facebook/zstd/blob/dev/doc/zstd_compression_format.md, "skippable frames") before the last frame,
which is the table of all the others.
"""

import struct
from pathlib import Path
from typing import BinaryIO

from ...blender.written_files import Kind, ends_with

_MARK = b"\nskinning_tools.result 1\n"

_FRAME = struct.Struct("<II")  # magic number, size
_OWN_FRAME = _FRAME.pack(0x184D2A53, len(_MARK)) + _MARK
# The table at the end (https://github.com/facebook/zstd/blob/dev/contrib/seekable_format): a frame of entries and a
# footer with the number of entries, whether they have checksums, and a magic number.
_TABLE_MAGIC, _FOOT, _FOOT_MAGIC = 0x184D2A5E, struct.Struct("<IBI"), 0x8F92EAB1
_ZSTD = (b"\x28\xb5\x2f\xfd", b"\x1f\x8b")


def is_marked(path: Path) -> bool:
    """Whether the file has the mark. Raises OSError."""
    with path.open("rb") as file:
        start = _table_start(file)
        if start is not None:
            file.seek(max(start - len(_OWN_FRAME), 0))
            return file.read(len(_OWN_FRAME)) == _OWN_FRAME
    # A truncated compressed file may end with the mark.
    return not is_compressed(path) and ends_with(path, _MARK)


def mark(path: Path) -> None:
    """Add the mark to a file without one. Raises OSError."""
    with path.open("rb+") as file:
        start = _table_start(file)
        if start is not None:
            file.seek(start)
            table = file.read()
            file.seek(start)
            file.write(_OWN_FRAME + table)
        elif not is_compressed(path):
            file.seek(0, 2)
            file.write(_MARK)


def is_blend(path: Path) -> bool:
    """Whether a file begins like a .blend file. Raises OSError."""
    with path.open("rb") as file:
        return file.read(7) == b"BLENDER" or is_compressed(path)


def is_compressed(path: Path) -> bool:
    """Whether the .blend file is compressed. Raises OSError."""
    with path.open("rb") as file:
        return file.read(4).startswith(_ZSTD)


def _table_start(file: BinaryIO) -> int | None:
    """Where the table of a compressed file begins."""
    size = file.seek(0, 2)
    file.seek(0)
    if size < _FOOT.size or not file.read(4).startswith(_ZSTD):
        return None
    file.seek(size - _FOOT.size)
    count, checked, magic = _FOOT.unpack(file.read(_FOOT.size))
    content = count * (12 if checked & 0x80 else 8) + _FOOT.size
    start = size - content - _FRAME.size
    if magic != _FOOT_MAGIC or start < 0:
        return None
    file.seek(start)
    return start if _FRAME.unpack(file.read(_FRAME.size)) == (_TABLE_MAGIC, content) else None


RESULT = Kind("result", is_marked)
BACKUP = Kind("backup", is_blend)
