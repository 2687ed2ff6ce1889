# SPDX-License-Identifier: GPL-3.0-or-later
"""Stops a run early: on a signal, or when the program that started it has ended."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

# Exit codes of programs ended by a signal, as in shells.
EXIT_SIGNAL = 128

# A closed terminal (POSIX), or Ctrl-Break and a closed console (Windows), stop a run like a termination signal. Ctrl-\
# still ends it at once if nothing else does.
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))

# Set for a program that watches its standard input to notice the end of its parent.
PARENT_VARIABLE = "SKINNING_TOOLS_PARENT"
_PR_SET_PDEATHSIG = 1


class Stopped(KeyboardInterrupt):
    """A signal requests the end of the program."""

    def __init__(self, number: int):
        super().__init__(f"Stopped by {signal.Signals(number).name}")
        self.exit_code = EXIT_SIGNAL + number


_received: list[int] = []
_holding: list[bool] = []


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Raise Stopped on Ctrl-C and on a termination signal. Otherwise Blender in background mode handles Ctrl-C
    itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.clear()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # A program started to outlive its terminal (nohup) does so.
    if hasattr(signal, "SIGHUP") and before[signal.SIGHUP] == signal.SIG_IGN:
        del before[signal.SIGHUP]

    def stop(number: int, frame: FrameType | None) -> None:
        ignore_signals()
        _received.append(number)
        if not _holding:
            raise Stopped(number)

    try:
        for number in before:
            signal.signal(number, stop)
        # Output that nobody reads must not end the work, as it would by default in Blender.
        if hasattr(signal, "SIGPIPE"):
            before[signal.SIGPIPE] = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        yield
    finally:
        for number, handler in before.items():
            # None: a handler of Blender's own, which Python cannot restore.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def ignore_signals() -> None:
    """Ignore further signals, so that they do not stop cleanup and report."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Delay signals until the end of the block, for actions that must not happen without being recorded."""
    _holding.append(True)
    try:
        yield
    finally:
        _holding.pop()
    check_stopped()


def check_stopped() -> None:
    """Raise Stopped again if the signal came while Blender called Python (a handler, a driver), where Blender swallows
    the exception."""
    if _received:
        raise Stopped(_received[0])


def end_with_parent() -> None:
    """If another run has started this one, end as soon as that has ended for any reason.

    Its end closes the pipe of this program's standard input, which is noticed after a long call into Blender returns.
    On Linux the kernel ends this program at once.
    """
    if os.environ.pop(PARENT_VARIABLE, None) is None:
        return
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    # After the request: a parent that ended before it is noticed here.
    threading.Thread(target=_wait_for_parent, name="skinning_tools parent", daemon=True).start()


def _wait_for_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            pass
    os._exit(EXIT_SIGNAL + signal.SIGTERM)
