# SPDX-License-Identifier: GPL-3.0-or-later
"""Point caches in the PC2 format, which the Mesh Cache modifier plays."""

import os
import struct
from pathlib import Path

import numpy as np

from ...core.errors import BadScene

_HEAD = struct.Struct("<12siiffi")


class PointCacheWriter:
    """Writes a PC2 file frame by frame, as a context manager.

    The file appears under its name only when all is written; where the block ends by an exception, an older file of the
    same name stays and nothing new is left. Raises BadScene where the file cannot be written.
    """

    def __init__(self, path: Path, vertex_count: int, frame_count: int):
        self.path = path
        self._part = path.with_name(path.name + ".part")
        # Start and step of the samples only count for a modifier that goes by seconds; one by frames has its own.
        self._head = _HEAD.pack(b"POINTCACHE2\0", 1, vertex_count, 0.0, 1.0, frame_count)

    def __enter__(self):
        try:
            self._file = open(self._part, "wb")
            self._file.write(self._head)
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
            self._file.close()
            if kind is None:
                os.replace(self._part, self.path)
        except OSError as failure:
            raise self._failure(failure) from failure
        finally:
            self._part.unlink(missing_ok=True)

    def _failure(self, error: OSError) -> BadScene:
        reason = error.strerror or str(error)
        return BadScene(f"The point cache {self.path} cannot be written: {reason}. Choose another path")
