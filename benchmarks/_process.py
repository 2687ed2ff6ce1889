# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a process of its own, and what it took."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor


def in_own_process(function, *arguments):
    """Its result; the peak of memory is that of one process, and inherited from the one that starts it."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def peak_memory() -> float:
    """The most memory that this process ever had, in MB; 0 where that is unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
