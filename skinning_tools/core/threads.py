# SPDX-License-Identifier: GPL-3.0-or-later
"""Work on all cores: numpy, scipy's BLAS and LAPACK release Python's lock while they compute.

No result may depend on the number of threads: cut the work by its size alone, and put parts together in their order.
BLAS must not start threads of its own beside these: see ``dense.one_blas_thread``.
"""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

# More threads gain little, and each one has blocks of its own in memory.
_MOST = 16
# Of each thread: ``pool``, the threads that help it; ``helps``, where it is such a thread itself.
_own = threading.local()


def thread_count() -> int:
    """How many threads work at once: one for each core that this process may use."""
    # Fewer cores than the machine has: containers, and processes that are bound to some of them.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST)


def for_each(
    work: Callable[[Item], Made],
    items: Iterable[Item],
    take: Callable[[Item, Made], object] = lambda item, made: None,
    most: int = _MOST,
) -> None:
    """``work(item)`` of each of ``items`` by the calling thread and others; then ``take(item, result)`` by the calling
    thread alone, in the order of the items.

    Within ``work``, its thread does other work alone. No more than ``most`` items are under way or waiting to be taken,
    so that memory is bounded. Where one of the two raises, items that have not begun never do, and none is under way
    when this ends.
    """
    items = list(items)
    threads = min(thread_count(), most, len(items))
    if threads <= 1 or hasattr(_own, "helps"):
        for item in items:
            take(item, work(item))
        return
    line = _Line(work, items, min(2 * threads, most))
    helpers = [_pool().submit(line.help) for _ in range(threads - 1)]
    try:
        for number, item in enumerate(items):
            take(item, line.result(number))
    finally:
        line.stop()
        # On a busy machine a helper may not even have begun.
        wait([helper for helper in helpers if not helper.cancel()])


def mapped(work: Callable[[Item], Made], items: Iterable[Item], most: int = _MOST) -> list[Made]:
    """``work(item)`` of each of ``items``, in their order, by several threads, no more than ``most``."""
    made: list[Made] = []
    for_each(work, items, lambda item, result: made.append(result), most)
    return made


class _Line:
    """Items of which several threads take the next one, and their results, at most ``ahead`` before the one taken."""

    def __init__(self, work: Callable, items: list, ahead: int):
        self._work, self._items, self._ahead = work, items, ahead
        self._changed = threading.Condition()
        self._made: dict[int, tuple] = {}
        self._begun = self._taken = 0

    def result(self, number: int) -> Any:
        """The result of this item, the next one in their order; its error is raised."""
        while number not in self._made:
            with self._changed:
                # Its turn is with another thread, and there is nothing else to begin.
                self._changed.wait_for(lambda: number in self._made or self._may_begin())
                mine = None if number in self._made else self._next()
            if mine is not None:
                self._run(mine)
        with self._changed:
            result, error = self._made.pop(number)
            self._taken += 1
            self._changed.notify_all()
        if error is not None:
            raise error
        return result

    def help(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._may_begin() or self._begun >= len(self._items))
                if self._begun >= len(self._items):
                    return
                mine = self._next()
            self._run(mine)

    def stop(self) -> None:
        """Nothing begins from now on."""
        with self._changed:
            self._begun = len(self._items)
            self._changed.notify_all()

    def _may_begin(self) -> bool:
        return self._begun < min(len(self._items), self._taken + self._ahead)

    def _next(self) -> int:
        self._begun += 1
        return self._begun - 1

    def _run(self, number: int) -> None:
        result, error = None, None
        try:
            result = self._work(self._items[number])
        except BaseException as raised:  # noqa: BLE001 (the taker's to raise)
            error = raised
        with self._changed:
            self._made[number] = result, error
            self._changed.notify_all()


def end_threads() -> None:
    """End the threads that helped the calling thread; those of another thread end with it."""
    pool = vars(_own).pop("pool", None)
    if pool is not None:
        pool.shutdown()


def _pool() -> ThreadPoolExecutor:
    """Threads that stay as long as the calling thread: on a busy machine, each start of one waits for its turn."""
    if not hasattr(_own, "pool"):
        _own.pool = ThreadPoolExecutor(_MOST - 1, thread_name_prefix="skinning_tools", initializer=_begin_helping)
    return _own.pool


def _begin_helping() -> None:
    _own.helps = True
