# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of reports."""


def counted(number: int, noun: str) -> str:
    """Such as "1 example" and "2 examples"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def vertices_text(count: int) -> str:
    """Such as "1 vertex" and "1,200 vertices"."""
    return "1 vertex" if count == 1 else f"{count:,} vertices"


def sentence(text: str) -> str:
    """With a capital at its beginning, which is all that changes."""
    return text[:1].upper() + text[1:]


def duration_text(seconds: float) -> str:
    """A rough duration, no finer than anybody can tell it before."""
    if seconds < 1.5:
        return "about 1 s"
    if seconds < 90:
        step = 1 if seconds < 15 else 5
        return f"about {step * round(seconds / step)} s"
    minutes = seconds / 60
    return f"about {round(minutes)} min" if minutes < 90 else f"about {minutes / 60:.1f} h"
