# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of a result, each declared once for the line of a report, the rows of a panel, the table of the command
line and the JSON report."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import bpy

from .lengths import length_text
from .translation import translated
from .wording import listed

# The most entries of a group in a line.
_MOST_OF_A_GROUP = 6

_SINGULARS = {"vertices": "vertex", "meshes": "mesh"}


@dataclass(frozen=True)
class Figure:
    """One figure of a result.

    label: such as "Largest error", also the source of the key in JSON. value: for programs. form: for people, a format
    string of the value, of the items of a list or of the entries of a dictionary. length: it is a distance in the
    world, which Blender's interface shows in the scene's unit. line, panel: text for the line of the report or the
    panel instead of label and value; "" leaves the figure out there. if_any: left out of both if it is zero or empty.
    group: (name, key), if the JSON report collects several figures under one name.
    """

    label: str
    value: Any
    form: str = "{}"
    length: bool = False
    line: str | None = None
    panel: str | None = None
    if_any: bool = False
    group: tuple[str, str] | None = None

    @property
    def key(self) -> str:
        """Such as "largest_error"."""
        return "".join(letter if letter.isalnum() else "_" for letter in self.label.lower())

    @property
    def text(self) -> str:
        """The value for people, as the command line shows it."""
        if isinstance(self.value, dict):
            return self.form.format_map(self.value)
        if not isinstance(self.value, (list, tuple)):
            return self.form.format(self.value)
        return ", ".join(map(str, self.value)) or "none" if self.form == "{}" else self.form.format(*self.value)

    @property
    def shown(self) -> str:
        """The value for people, as Blender's interface shows it."""
        if self.length:
            return length_text(bpy.context.scene, self.value)
        if isinstance(self.value, list) and self.form == "{}":
            return listed(self.value) or "none"
        return f"{self.value:,}" if isinstance(self.value, int) and self.form == "{}" else self.text

    def phrase(self) -> str:
        """The figure in the line of a report, such as "1,200 vertices" or "largest error 1.5"."""
        if self.if_any and not self.value:
            return ""
        if self.line is not None:
            return translated(self.line)
        label, shown = translated(self.label), self.shown if self.form == "{}" else translated(self.shown)
        if label != self.label:
            # Nouns of other languages are not put together with numbers as English ones are.
            return f"{label}: {shown}"
        label = label if label[:2].isupper() or label[1:2] == "_" else label[:1].lower() + label[1:]
        if not isinstance(self.value, int) or self.form != "{}":
            return f"{label} {shown}"
        return f"{shown} {_singular(label) if self.value == 1 else label}"


def _singular(label: str) -> str:
    """ "Vertices smoothed" as "Vertex smoothed": the first word that ends in s is the noun."""
    return re.sub(r"\w+s\b", lambda word: _SINGULARS.get(word[0], word[0][:-1]), label, count=1)


def each(label: str, values: dict, group: str, form: str = "{}") -> list[Figure]:
    """A figure for each of several named values; ``label`` has a field for the name."""
    return [Figure(label.format(name), value, form, group=(group, name)) for name, value in values.items()]


def rows_of_panel(figures: Iterable[Figure]) -> list[tuple[str, str]]:
    """Names and values, with the names as titles: "Bytes per Vertex"."""
    return [
        (_title(figure.label), figure.panel or figure.shown)
        for figure in figures
        if figure.panel != "" and (figure.value or not figure.if_any)
    ]


def _title(label: str) -> str:
    found = translated(label)
    return found if found != label else re.sub(r"\b[a-z]{4,}", lambda word: word[0].capitalize(), label)


class Result:
    """Mix-in for the results of jobs. The first of its ``figures()`` is the name of the object. It may have ``notes``
    for the user, and ``seconds``, of the whole or of each stage."""

    def figures(self) -> list[Figure]:
        raise NotImplementedError

    def line(self) -> str:
        """The figures in one line."""
        name, *figures = self.figures()
        seconds = getattr(self, "seconds", None)
        if seconds is not None:
            total = sum(seconds.values()) if isinstance(seconds, dict) else seconds
            figures.append(Figure("", total, line=f"{total:.1f} s"))
        parts = []
        for group, members in groupby(figures, lambda figure: figure.group and figure.group[0]):
            phrases = [phrase for figure in members if (phrase := figure.phrase())]
            parts.append(listed(phrases, _MOST_OF_A_GROUP) if group else ", ".join(phrases))
        return f"{name.line or name.shown}: {', '.join(filter(None, parts))}"

    def summary(self) -> str:
        """Figures and notes in one line."""
        line = self.line()
        notes = map(translated, getattr(self, "notes", ()))
        return "; ".join([line, *(note for note in notes if note not in line)])
