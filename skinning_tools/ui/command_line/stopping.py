# SPDX-License-Identifier: GPL-3.0-or-later
"""How a run ends before its time: by a signal to itself, or as the program that started it is gone."""

import contextlib
import os
import signal
import sys
import threading

# A program that a signal ends: what shells say of it, too.
EXIT_SIGNAL = 128

# A closed terminal (POSIX), or Ctrl-Break and a closed console (Windows), end a run as a signal to end does. Ctrl-\
# stays what ends it at once where all else does not.
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))

# Set for a program that reads its standard input to learn that the one which started it is gone.
PARENT_VARIABLE = "SKINNING_TOOLS_PARENT"
_PR_SET_PDEATHSIG = 1


class Stopped(KeyboardInterrupt):
    """A signal asks the program to end."""

    def __init__(self, number: int):
        super().__init__(f"Stopped by {signal.Signals(number).name}")
        self.exit_code = EXIT_SIGNAL + number


_received: list[int] = []
_holding: list[bool] = []


@contextlib.contextmanager
def stopped_by_signals():
    """Raise Stopped on Ctrl-C and on a signal to end. Blender in background mode takes Ctrl-C for itself otherwise."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _received.clear()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    # What was started to outlive its terminal (nohup) does so.
    if hasattr(signal, "SIGHUP") and before[signal.SIGHUP] == signal.SIG_IGN:
        del before[signal.SIGHUP]

    def stop(number, frame):
        ignore_signals()
        _received.append(number)
        if not _holding:
            raise Stopped(number)

    try:
        for number in before:
            signal.signal(number, stop)
        # Output that nobody reads is not to end the work, as it would in Blender, which leaves this as it finds it.
        if hasattr(signal, "SIGPIPE"):
            before[signal.SIGPIPE] = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        yield
    finally:
        for number, handler in before.items():
            # None: a handler of Blender's own, which Python cannot put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def ignore_signals() -> None:
    """The first signal counts: what cleans up and writes the report is not to be stopped by the next."""
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def held():
    """Let a signal wait for the end of this block: of what must not be done without its note being taken."""
    _holding.append(True)
    try:
        yield
    finally:
        _holding.pop()
    check_stopped()


def check_stopped() -> None:
    """Raise Stopped once more, where the signal came while Blender called Python (a handler, a driver): there the
    exception goes no further."""
    if _received:
        raise Stopped(_received[0])


def end_with_parent() -> None:
    """Where another run has started this one, end as soon as it is gone, whatever has ended it.

    Its end closes the pipe that is this program's standard input, which is noticed once a long call into Blender has
    returned. On Linux the kernel ends this program, whatever it is doing.
    """
    if os.environ.pop(PARENT_VARIABLE, None) is None:
        return
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    # After it: a parent that was gone before is noticed here.
    threading.Thread(target=_wait_for_parent, name="skinning_tools parent", daemon=True).start()


def _wait_for_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            pass
    os._exit(EXIT_SIGNAL + signal.SIGTERM)
