# SPDX-License-Identifier: GPL-3.0-or-later
"""Descriptions of files in a report, by which a later run recognizes unchanged files."""

import hashlib
import os
import stat
from pathlib import Path

# A value of a JSON document.
Json = bool | int | float | str | list | dict | None


def fingerprint(path: Path) -> dict[str, Json]:
    """Path, size in bytes, modification time in nanoseconds, and SHA-256 of the content. Raises OSError."""
    status = path.stat()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": str(path), "size": status.st_size, "modified_ns": status.st_mtime_ns, "sha256": digest}


def trace(path: Path) -> dict[str, Json]:
    """As ``fingerprint`` without the content, for files such as caches, which may be very large."""
    try:
        status = path.stat()
    except OSError:
        return {"path": str(path), "size": None, "modified_ns": None}
    return {"path": str(path), "size": status.st_size, "modified_ns": status.st_mtime_ns}


def is_same(path: Path, known: dict) -> bool:
    """Whether the file matches the description; if the time differs, the content decides, if known."""
    try:
        status = os.stat(path)
    except OSError:
        return known.get("size") is None
    if status.st_size != known.get("size"):
        return False
    if status.st_mtime_ns == known.get("modified_ns"):
        return True
    # A copy, or a file that was saved again without changes.
    try:
        return "sha256" in known and stat.S_ISREG(status.st_mode) and fingerprint(path)["sha256"] == known["sha256"]
    except OSError:
        return False
