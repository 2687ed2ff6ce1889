# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables that are printed row by row, and finally written as Markdown."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tables:
    """Columns of the current table have the widths of their headings, the first one the width ``first``."""

    first: int = 30
    _lines: list[str] = field(default_factory=list)
    _widths: list[int] = field(default_factory=list)

    def begin(self, title: str, text: str, *columns: str) -> None:
        """Begin a table with a title and a short description."""
        print(f"\n{title}. {text}")
        self._widths = [self.first, *(max(len(column), 8) + 2 for column in columns[1:])]
        self._show(columns)
        self._lines += ["", f"## {title}", "", text, "", _markdown(columns), _markdown(["---"] * len(columns))]

    def row(self, *cells: str) -> None:
        self._show(cells)
        self._lines.append(_markdown(cells))

    def note(self, text: str) -> None:
        """Add a line below the current table."""
        print(text)
        self._lines += ["", text]

    def write(self, path: Path, title: str, text: str) -> None:
        path.write_text("\n".join([f"# {title}", "", text, *self._lines]) + "\n", encoding="utf-8")

    def replace(self, path: Path) -> None:
        """Replace the tables of the same titles in a page, or append them."""
        page = path.read_text(encoding="utf-8")
        for section in "\n".join(self._lines).split("\n## ")[1:]:
            title = section.partition("\n")[0]
            before, found, rest = page.partition(f"\n## {title}\n")
            after = rest.partition("\n## ")
            page = f"{before.rstrip()}\n\n## {section.rstrip()}\n" + (f"\n## {after[2]}" if found and after[1] else "")
        path.write_text(page, encoding="utf-8")

    def _show(self, cells) -> None:
        head, *others = zip(cells, self._widths, strict=True)
        print(f"{head[0]:<{head[1]}}" + "".join(f"{cell:>{width}}" for cell, width in others), flush=True)


def _markdown(cells) -> str:
    return f"| {' | '.join(cells)} |"
