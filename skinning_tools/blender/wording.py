# SPDX-License-Identifier: GPL-3.0-or-later
"""Wording of reports, and the name of the tab."""

import re
import textwrap
from collections.abc import Iterable, Sequence

import bpy

# The sidebar's tab.
TAB = "Skinning"

# More names would hide what the message says.
MOST_NAMED = 8

# Of the popup for an error, in letters.
_POPUP_WIDTH = 90


def counted(number: int, noun: str, several: str = "") -> str:
    """Such as "1 example" and "2 examples"; ``several``: an irregular plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {several or noun + 's'}"


def vertices_text(count: int) -> str:
    """Such as "1 vertex" and "1,200 vertices"."""
    return "1 vertex" if count == 1 else f"{count:,} vertices"


def names_text(objects: Sequence[bpy.types.Object]) -> str:
    """Such as '"Body", "Hair" and others'."""
    names = ", ".join(f'"{ob.name}"' for ob in objects[:MOST_NAMED])
    return f"{names} and others" if len(objects) > MOST_NAMED else names


def listed(names: Iterable[str], most: int = 4) -> str:
    """Such as "hand, foot and 3 more"."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def duration_text(seconds: float) -> str:
    """A rough duration, no more precise than an estimate can be."""
    if seconds < 90:
        step = 1 if seconds < 15 else 5
        return f"about {max(step * round(seconds / step), 1)} s"
    minutes = seconds / 60
    if minutes < 90:
        return f"about {round(minutes)} min"
    return f"about {minutes / 60:.1f} h"


def in_two_lines(text: str) -> str:
    """A text for a popup: what is wrong, and below it what to do, each cut to the width of a popup.

    The second line is the last sentence, which in this extension says what to do.
    """
    sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", text.strip()) if part.strip()]
    lines = sentences if len(sentences) < 2 else [sentences[0], sentences[-1]]
    return "\n".join(textwrap.shorten(line, _POPUP_WIDTH, placeholder=" …") for line in lines)
