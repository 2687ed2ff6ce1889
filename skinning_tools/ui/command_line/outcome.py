# SPDX-License-Identifier: GPL-3.0-or-later
"""What a subcommand hands back: its figures, for people as a table and for programs as values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .terminal import shown


@dataclass(frozen=True)
class Row:
    """One line of the table.

    value: for the report. text: for people, where it differs. group: (name, key), where the report collects several
    such lines under one name.
    """

    label: str
    value: object
    text: str | None = None
    group: tuple[str, str] | None = None


@dataclass(frozen=True)
class Outcome:
    """A finished subcommand.

    seconds: of its stages, or of all of it. notes: what the user should know. files: beside the .blend file, by their
    names in the report; afterwards writes them, once the .blend file is saved. exit_code: for work of which a part
    has failed; message says which.
    """

    rows: list[Row]
    seconds: float | dict[str, float] | None = None
    notes: tuple[str, ...] | list[str] = ()
    files: dict[str, Path] = field(default_factory=dict)
    afterwards: Callable[[], None] | None = None
    exit_code: int = 0
    message: str = ""

    def lines(self) -> list[tuple[str, str]]:
        """Name and value of each line for people."""
        seconds = self.seconds or {}
        if not isinstance(seconds, dict):
            seconds = {"": seconds}
        return [
            *((row.label, str(row.value) if row.text is None else row.text) for row in self.rows),
            *(("Note", note) for note in self.notes),
            *((f"Seconds to {name}" if name else "Seconds", f"{value:.2f}") for name, value in seconds.items()),
        ]

    def figures(self) -> dict[str, Any]:
        """The values by the names of their lines, such as "largest_error"."""
        figures: dict[str, Any] = {}
        for row in self.rows:
            if row.group is None:
                figures[identifier(row.label)] = row.value
            else:
                name, key = row.group
                figures.setdefault(name, {})[key] = row.value
        return figures


def each(label: str, values: dict, group: str, text: Callable[[object], str] = str) -> list[Row]:
    """A line for each of several named values; ``label`` has a place for the name."""
    return [Row(label.format(name), value, text(value), (group, name)) for name, value in values.items()]


def identifier(label: str) -> str:
    """Such as "largest_error" for "Largest error"."""
    return "".join(letter if letter.isalnum() else "_" for letter in label.lower())


def table(rows: list[tuple[str, str]]) -> str:
    """Lines of name and value, the values below each other."""
    lines = [(shown(name), shown(value)) for name, value in rows]
    width = max((len(name) for name, _ in lines), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)
