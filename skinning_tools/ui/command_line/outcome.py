# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a subcommand: its figures, as a table for people and as values for programs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...blender.figures import Figure
from .terminal import shown


@dataclass(frozen=True)
class Outcome:
    """A finished subcommand.

    seconds: of its stages, or of all of it. notes: for the user. files: written in addition to the .blend file, by
    their names in the report; afterwards writes them, once the .blend file is saved. exit_code: not 0 if a part of the
    work has failed; message says which.
    """

    rows: list[Figure]
    seconds: float | dict[str, float] | None = None
    notes: tuple[str, ...] | list[str] = ()
    files: dict[str, Path] = field(default_factory=dict)
    afterwards: Callable[[], None] | None = None
    exit_code: int = 0
    message: str = ""

    def lines(self) -> list[tuple[str, str]]:
        """Name and value of each line of the table for people."""
        seconds = self.seconds or {}
        if not isinstance(seconds, dict):
            seconds = {"": seconds}
        return [
            *((row.label, row.text) for row in self.rows),
            *(("Note", note) for note in self.notes),
            *((f"Seconds to {name}" if name else "Seconds", f"{value:.2f}") for name, value in seconds.items()),
        ]

    def figures(self) -> dict[str, Any]:
        """The values by the names of their lines, such as "largest_error"."""
        figures: dict[str, Any] = {}
        for row in self.rows:
            if row.group is None:
                figures[row.key] = row.value
            else:
                name, key = row.group
                figures.setdefault(name, {})[key] = row.value
        return figures


def table(rows: list[tuple[str, str]]) -> str:
    """Lines of name and value, with aligned values."""
    lines = [(shown(name), shown(value)) for name, value in rows]
    width = max((len(name) for name, _ in lines), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)
