# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints to the terminal, or to the program that reads the output. Failures to print never affect the work."""

import contextlib
import os
import re
import sys
from typing import TextIO

# Characters that break lines, control a terminal, or change the reading order. Spaces and tabs stay.
_UNSHOWN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def say(text: str) -> None:
    """Print lines. Names must be passed through ``shown`` first."""
    _write(sys.stdout, f"{text}\n")


def say_error(text: str) -> None:
    """Print one line on the error output."""
    _write(sys.stderr, f"Error: {shown(text)}\n")


def shown(text: str) -> str:
    """The text in one line: names of files and objects may contain line breaks and terminal codes."""
    return _UNSHOWN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def keep_streams_apart() -> None:
    """Open closed standard streams (``>&-``): otherwise the next opened files get their numbers, and Blender would
    print into the result."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                # This gets the lowest free number.
                os.open(os.devnull, os.O_RDWR)


def _write(stream: TextIO, text: str) -> None:
    """Write a text, with escapes for characters that the terminal's encoding lacks; a closed terminal is no error."""
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError, ValueError):  # ValueError: the stream is closed
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
