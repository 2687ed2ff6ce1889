# SPDX-License-Identifier: GPL-3.0-or-later
"""Large matrix products, and how many threads they may use.

They go through scipy's BLAS, as its wheel always brings OpenBLAS: Blender's own numpy is built without one on most
platforms, and its plain loops are many times slower.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product as product_of
from pathlib import Path
from threading import Lock

import numpy
import numpy as np
import scipy
from scipy.linalg.blas import dgemm, dsyrk


def product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """``first`` (m, k) times ``second`` (k, n), float64, in C order."""
    # BLAS takes column-major matrices: in the transposed problem, C order is exactly that.
    left, turn_left = _columns_together(second)
    right, turn_right = _columns_together(first)
    return dgemm(1.0, left, right, trans_a=turn_left, trans_b=turn_right).T


def self_product(matrix: np.ndarray) -> np.ndarray:
    """``matrix``ᵀ times ``matrix`` (n, m), float64: (m, m), for half the work of ``product``."""
    return mirrored(half_self_product(matrix))


def half_self_product(matrix: np.ndarray) -> np.ndarray:
    """The upper triangle of ``self_product``, zero below: parts of a sum need no more."""
    return dsyrk(1.0, np.ascontiguousarray(matrix).T)


def mirrored(upper: np.ndarray) -> np.ndarray:
    """The symmetric matrix (m, m) with this upper triangle."""
    return upper + np.triu(upper, 1).T


def _columns_together(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """The transpose of ``matrix`` for dgemm, as a view where that is possible: the array, and whether to turn it."""
    if matrix.flags.c_contiguous:
        return matrix.T, False
    if matrix.flags.f_contiguous:
        return matrix, True
    return np.ascontiguousarray(matrix).T, False


# Each caller within ``one_blas_thread``, and each library's number of threads before the first of them.
_lock = Lock()
_callers: list[None] = []
_before: list[int] = []


@contextmanager
def one_blas_thread() -> Iterator[bool]:
    """Within this context, scipy's BLAS and numpy's work in the calling thread alone; yields True if that is possible.

    For callers with threads of their own: OpenBLAS's workers spin while they wait for the next product and take the
    processors away from everything else. The setting is the whole process's: of several callers at once, the last one
    to leave restores it.
    """
    libraries = _openblas()
    with _lock:
        if not _callers:
            _before[:] = [get() for get, _ in libraries]
            for _, limit in libraries:
                limit(1)
        _callers.append(None)
    try:
        yield bool(libraries)
    finally:
        with _lock:
            _callers.pop()
            if not _callers:
                for (_, limit), count in zip(libraries, _before, strict=True):
                    limit(count)


@cache
def _openblas() -> list[tuple]:
    """The functions that get and set the number of threads, of each OpenBLAS in the wheels of scipy and numpy."""
    found = []
    for package in (scipy, numpy):
        home = Path(package.__path__[0])
        for folder in (home.parent / f"{package.__name__}.libs", home / ".dylibs"):
            for path in sorted(folder.glob("*openblas*")):
                library = ctypes.CDLL(str(path))
                for prefix, suffix in product_of(("scipy_", ""), ("", "64_")):
                    names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
                    if all(hasattr(library, name) for name in names):
                        found.append(tuple(getattr(library, name) for name in names))
    return found
