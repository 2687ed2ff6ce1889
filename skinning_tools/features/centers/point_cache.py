# SPDX-License-Identifier: GPL-3.0-or-later
"""Point caches in the PC2 format, which the Mesh Cache modifier plays."""

import contextlib
import json
import os
import struct
from pathlib import Path

import numpy as np

from ...blender.written_files import Kind, Target
from ...core.errors import BadScene

_HEAD = struct.Struct("<12siiffi")
_MAGIC = b"POINTCACHE2\0"
# Behind the samples, where readers of the format do not look: who wrote the file, and whose motion it has, as JSON.
_MARK = b"\nskinning_tools.cache "
_MOST_OF_OWNER = 10_000


class PointCacheWriter:
    """Writes a PC2 file frame by frame, as a context manager.

    The file appears under its name only when all is written; where the block ends by an exception, an older file of the
    same name stays and nothing new is left. Raises BadScene where the file cannot be written.
    """

    def __init__(self, target: Target, owner: dict, vertex_count: int, frame_count: int):
        """owner: what ``cache_owner`` will read."""
        self.path = target.path
        self._target, self._owner = target, owner
        # Start and step of the samples only count for a modifier that goes by seconds; one by frames has its own.
        self._head = _HEAD.pack(_MAGIC, 1, vertex_count, 0.0, 1.0, frame_count)
        self._open = contextlib.ExitStack()

    def __enter__(self):
        try:
            with contextlib.ExitStack() as entered:
                part = entered.enter_context(self._target.part())
                self._file = entered.enter_context(part.open("xb"))
                self._file.write(self._head)
                self._open = entered.pop_all()
        except OSError as error:
            raise self._failure(error) from error
        return self

    def write(self, positions: np.ndarray) -> None:
        """One frame, (N, 3)."""
        try:
            self._file.write(np.ascontiguousarray(positions, dtype="<f4").tobytes())
        except OSError as error:
            raise self._failure(error) from error

    def __exit__(self, kind, error, traceback):
        try:
            with self._open:
                if kind is not None:
                    raise _Stopped
                self._file.write(_MARK + json.dumps(self._owner).encode())
        except _Stopped:
            pass
        except OSError as failure:
            raise self._failure(failure) from failure

    def _failure(self, error: OSError) -> BadScene:
        reason = error.strerror or str(error)
        return BadScene(f"The point cache {self.path} cannot be written: {reason}. Choose another path")


class _Stopped(Exception):
    """The block has ended by an exception of its own."""


def cache_owner(path: Path) -> dict | None:
    """Whose motion a PC2 file has, as its writer was told; None where another program wrote it. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size or not head.startswith(_MAGIC):
            return None
        _, _, points, _, _, frames = _HEAD.unpack(head)
        end = _HEAD.size + 12 * max(points, 0) * max(frames, 0)
        if not end <= os.fstat(file.fileno()).st_size <= end + _MOST_OF_OWNER:
            return None
        file.seek(end)
        mark, owner = file.read(len(_MARK)), file.read()
    with contextlib.suppress(ValueError):
        found = json.loads(owner) if mark == _MARK else None
        return found if isinstance(found, dict) else None
    return None


CACHE = Kind("point cache", lambda path: cache_owner(path) is not None)
