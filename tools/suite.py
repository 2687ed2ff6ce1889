# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and environment for pytest to run the suite on all processors."""

import os

# A process with Blender in it takes up to about 2 GB; more processes than this gain little, as whole files go to each.
MOST_PROCESSES = 4
# Options that require one process: a debugger, or live output.
ALONE = ("--pdb", "--trace", "-s", "--capture=no")


def process_count() -> int:
    return min(os.cpu_count() or 1, MOST_PROCESSES)


def in_parallel(arguments: list[str]) -> list[str]:
    """Arguments for pytest, with the number of processes before the given ones, which may override it.

    A file's tests stay together, in order: the extension is registered once for each file. Files keep their order, too:
    pyproject.toml names the slow ones first, so that no process works alone at the end. A process that crashes ends the
    run: a new one would be given the whole file again, and crash or wait for ever.
    """
    if process_count() == 1 or set(arguments) & set(ALONE):
        return arguments
    together = ["--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart=0"]
    return ["--numprocesses", str(process_count()), *together, *arguments]


def one_thread_each() -> dict[str, str]:
    """The environment with one thread of linear algebra per process: more would only wait for each other."""
    return {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | os.environ
