# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a separate process, and its peak memory."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path


def in_own_process(function, *arguments):
    """The function's result, from a separate process: the peak of memory counts per process, and a fork inherits it."""
    path = sys.path[:]
    # Blender puts its scripts, which have a package bpy of their own, before its module; a new process would find them.
    sys.path.sort(key=lambda folder: "scripts" in Path(folder).parts)
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            return pool.submit(function, *arguments).result()
    finally:
        sys.path[:] = path


def peak_memory() -> float:
    """The most memory that this process ever had, in MB; 0 where that is unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
