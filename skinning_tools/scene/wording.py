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
