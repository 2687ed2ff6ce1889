# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a separate process, and its peak memory."""

import atexit
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path


def in_own_process(function, *arguments):
    """The function's result, from a separate process: the peak of memory counts per process, and a fork inherits it."""
    path = sys.path[:]
    # Blender puts its scripts, which have a package bpy of their own, before its module; a new process would find them.
    sys.path.sort(key=lambda folder: "scripts" in Path(folder).parts)
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(_without_end, function, *arguments).result()
    finally:
        sys.path[:] = path


def _without_end(function, *arguments):
    result = function(*arguments)
    # Handlers run in reverse order: before that of Blender's module, which may wait forever after a simulation.
    atexit.register(os._exit, 0)
    return result


def peak_memory() -> float:
    """The most memory in MB that this process ever had, or since ``restart_peak_memory``; 0 where that is unknown."""
    found = _status("VmHWM")
    if found:
        return found
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def restart_peak_memory() -> float:
    """The memory in MB of this process at present, from which Linux counts its peak anew from now on; elsewhere the
    peak up to now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS") or peak_memory()


def present_memory() -> float:
    """The memory in MB of this process; 0 where that is unknown."""
    return _status("VmRSS")


def _status(name: str) -> float:
    """A size in MB from Linux' account of this process; 0 elsewhere."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1.024e-3
    return 0.0
