# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said to the terminal, or to whatever program is in its place: it never decides how the work goes."""

import contextlib
import os
import re
import sys

# What would break a line, steer a terminal, or change the order of what is read. Spaces and tabs stay.
_UNSHOWN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def say(text: str) -> None:
    """Lines on the output. What a name has in it is to be ``shown`` before."""
    _write(sys.stdout, f"{text}\n")


def say_error(text: str) -> None:
    """One line on the error output."""
    _write(sys.stderr, f"Error: {shown(text)}\n")


def shown(text: str) -> str:
    """For one line: a name of a file or of an object may have line breaks and codes for the terminal in it."""
    return _UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def keep_streams_apart() -> None:
    """Where a program is started with closed streams (``>&-``), the next files that are opened get their numbers, and
    what Blender prints would go into the result."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                # The lowest number that is free.
                os.open(os.devnull, os.O_RDWR)


def _write(stream, text: str) -> None:
    """What the terminal's encoding lacks is written as its number; a terminal that is gone is no failure."""
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError, ValueError):  # ValueError: the stream is closed
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
