# SPDX-License-Identifier: GPL-3.0-or-later
"""How much memory the machine has left, by the standard library alone."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

from .errors import NotEnoughMemory


def available_memory() -> int | None:
    """Bytes that a program can still allocate before the machine swaps or a container's limit ends it.

    None if unknown.
    """
    try:
        if sys.platform.startswith("linux"):
            return _linux()
        if sys.platform == "darwin":
            listing = subprocess.run(["/usr/bin/vm_stat"], capture_output=True, text=True, check=True, timeout=5)
            return parse_vm_stat(listing.stdout)
        if sys.platform == "win32":
            return _windows()
    except (OSError, ValueError, subprocess.SubprocessError):
        # An unknown amount must not stop a computation that may well fit.
        return None
    return None


def check_available(needed: int, what: str) -> None:
    """Raises NotEnoughMemory where ``needed`` bytes exceed what is available; ``what`` begins the message."""
    available = available_memory()
    if available is not None and needed > available:
        raise NotEnoughMemory(
            f"{what} need {needed / 1e9:.1f} GB of memory, and the machine has {available / 1e9:.1f} GB free. "
            "Choose a shorter frame range, a larger frame step or a mesh with fewer vertices"
        )


def parse_meminfo(text: str) -> int | None:
    """Available bytes from the text of Linux' /proc/meminfo."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def parse_vm_stat(text: str) -> int | None:
    """Available bytes from what macOS' vm_stat prints: free pages and those that can be dropped at once."""
    page_size = re.search(r"page size of (\d+) bytes", text)
    pages = re.findall(r"^Pages (?:free|inactive|speculative|purgeable):\s+(\d+)", text, re.MULTILINE)
    return int(page_size[1]) * sum(map(int, pages)) if page_size and pages else None


def _linux() -> int | None:
    known = [parse_meminfo(Path("/proc/meminfo").read_text()), _control_group_room()]
    return min((amount for amount in known if amount is not None), default=None)


def _control_group_room() -> int | None:
    """Bytes left under the limit of the container (control group, version 2), None where there is no limit."""
    group = re.search(r"^0::(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    if not group:
        return None
    folder = Path("/sys/fs/cgroup") / group[1].strip("/")
    limit_file = folder / "memory.max"
    limit = limit_file.read_text().strip() if limit_file.is_file() else "max"
    if limit == "max":
        return None
    # Cached file pages count as used, but are dropped when memory is asked for.
    cached = re.search(r"^inactive_file (\d+)", (folder / "memory.stat").read_text(), re.MULTILINE)
    used = int((folder / "memory.current").read_text()) - (int(cached[1]) if cached else 0)
    return max(int(limit) - used, 0)


if sys.platform == "win32":

    def _windows() -> int | None:
        class MemoryStatus(ctypes.Structure):
            """MEMORYSTATUSEX of the Windows API."""

            _fields_ = [
                ("length", ctypes.c_ulong),
                ("load_percent", ctypes.c_ulong),
                *(
                    (name, ctypes.c_ulonglong)
                    for name in ("total", "available", "total_page_file", "available_page_file")
                ),
                *((name, ctypes.c_ulonglong) for name in ("total_virtual", "available_virtual", "available_extended")),
            ]

        status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
        return status.available if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None
