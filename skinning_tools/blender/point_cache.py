# SPDX-License-Identifier: GPL-3.0-or-later
"""Point caches in the PC2 format, which the Mesh Cache modifier plays."""

import contextlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .written_files import Kind, Target

_HEAD = struct.Struct("<12siiffi")
_MAGIC = b"POINTCACHE2\0"
# After the samples, which readers of the format ignore: the writer of the file and the owner of its motion, as JSON.
_MARK = b"\nskinning_tools.cache "
_MOST_OF_OWNER = 10_000


@contextlib.contextmanager
def point_cache(
    target: Target, owner: dict, vertex_count: int, frame_count: int
) -> Iterator[Callable[[np.ndarray], int]]:
    """Context with a function that writes the next frame, (N, 3), to a PC2 file. owner: what ``cache_owner`` will read.

    The file gets its name only when it is complete; after an exception, an older file of the same name stays and
    nothing new is left. Raises BadScene if the file cannot be written.
    """
    try:
        with target.part() as part, part.open("xb") as file:
            # Start and step of the samples matter only for a modifier in seconds; a modifier in frames has its own.
            file.write(_HEAD.pack(_MAGIC, 1, vertex_count, 0.0, 1.0, frame_count))
            yield lambda positions: file.write(np.ascontiguousarray(positions, dtype="<f4").tobytes())
            file.write(_MARK + json.dumps(owner).encode())
    except OSError as error:
        raise target.failed(error.strerror or error) from error


def cache_owner(path: Path) -> dict | None:
    """The owner stored in a PC2 file; None if another program wrote the file. Raises OSError."""
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
