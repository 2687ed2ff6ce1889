# SPDX-License-Identifier: GPL-3.0-or-later
"""Translations of finished texts: the catalog of a language knows each text as a template such as
"The {object} has no vertices", finds the values in it again, and puts them into the translated template.

So no code that words a message needs to know of languages: an error raised in ``core`` is translated where it is shown.
"""

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_FIELD = re.compile(r"\{(\w*)[^{}]*\}")
# A field with a format of numbers, and what it matches.
_OF_NUMBER = re.compile(r":[,.\d]*[fge,]\}$")
_NUMBER = r"[-+\d.,e]+|-?inf|nan"
# Where a value holds several texts, from the outermost to the innermost.
_BETWEEN = "; ", ", "
_DEPTH = 6
# Panels ask for all their texts at each redraw.
_KEPT = 4096


class _Template(NamedTuple):
    """A text with fields; words: what stands around these; pattern: finds the fields' values."""

    text: str
    words: tuple[str, ...]
    pattern: re.Pattern

    @classmethod
    def of(cls, text: str) -> "_Template":
        return cls(text, tuple(filter(None, _parts(text)[::2])), _pattern(text))

    def match(self, text: str) -> re.Match | None:
        # Without the words, the pattern would try all lengths of all fields.
        return self.pattern.fullmatch(text) if all(each in text for each in self.words) else None


class Catalog:
    """The texts of one language. texts: by the English template, the translated one, with the same fields.

    A value is translated if it is itself a text of the catalog, or a list of such; but not if it stands in quotation
    marks, as names do.
    """

    def __init__(self, texts: dict[str, str]):
        self.texts = texts
        templates = [each for each in texts if _FIELD.search(each)]
        # Of several that fit, the one with the most words of its own.
        templates.sort(key=lambda each: -len(_FIELD.sub("", each)))
        self._templates = [_Template.of(each) for each in templates if re.search("[A-Za-z]", _FIELD.sub("", each))]
        self.translate = lru_cache(maxsize=_KEPT)(self._translated)

    def _translated(self, text: str) -> str:
        """The text in the catalog's language; unchanged if it is unknown."""
        found = self._found(text, 0)
        return found or (self._of_value(text, 0) if _BETWEEN[0] in text else text)

    def _found(self, text: str, depth: int, beginning: str = "") -> str | None:
        """The translation by a text that begins so; None if there is none."""
        exact = self.texts.get(text)
        if exact is not None:
            return exact
        if depth > _DEPTH or not re.search("[A-Za-z]{2}", text):
            return None
        for template in self._templates:
            match = template.match(text) if template.text.startswith(beginning) else None
            if match:
                values = {name: self._value(match, name, depth) for name in match.re.groupindex}
                return "".join(values.get(part, part) for part in _parts(self.texts[template.text]))
        return self._other_case(text, depth)

    def _other_case(self, text: str, depth: int) -> str | None:
        """A text of the catalog whose first letter was capitalized where it is shown."""
        lower = text[:1].lower() + text[1:]
        found = self._found(lower, depth) if lower != text else None
        return found and found[:1].upper() + found[1:]

    def _value(self, match: re.Match, name: str, depth: int) -> str:
        value = match[name]
        before, after = match.string[: match.start(name)][-1:], match.string[match.end(name) :][:1]
        return value if before == after == '"' else self._of_value(value, depth + 1)

    def _of_value(self, value: str, depth: int) -> str:
        bare = value.strip()
        found = self._found(bare, depth)
        if found is not None:
            return value.replace(bare, found)
        for between in _BETWEEN:
            first, *others = value.split(between)
            if others:
                # Some texts begin with what separates them from the one before.
                told = (
                    self._found(between + part, depth, between) or between + self._of_value(part, depth)
                    for part in others
                )
                return "".join((self._of_value(first, depth), *told))
        return value


def read(path: Path) -> dict[str, str]:
    """The translated texts of a file in the format of gettext (.po)."""
    entries = dict(_entries(path.read_text(encoding="utf-8").splitlines()))
    return {text: translation for text, translation in entries.items() if text and translation}


def write(path: Path, texts: dict[str, str], head: str) -> None:
    """Write such a file; ``head``: its first lines, as comments."""
    entries = [f"msgid {_quoted(text)}\nmsgstr {_quoted(translation)}" for text, translation in texts.items()]
    comments = "\n".join(f"# {line}" for line in head.splitlines())
    meta = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"'
    path.write_text("\n\n".join([f"{comments}\n{meta}", *entries]) + "\n", encoding="utf-8")


def fields(template: str) -> list[str]:
    """The names of a template's fields, sorted."""
    return sorted(match[0] for match in _FIELD.finditer(template))


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    text, parts = "", [""]
    for line in [*lines, 'msgid ""']:
        keyword, _, rest = line.partition(" ") if line[:1] != '"' else ("", "", line)
        if keyword == "msgid":
            yield text, "".join(parts)
            text, parts = "", [ast.literal_eval(rest)]
        elif keyword == "msgstr":
            text, parts = "".join(parts), [ast.literal_eval(rest)]
        elif line[:1] == '"':
            parts.append(ast.literal_eval(rest))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _parts(template: str) -> list[str]:
    """A template's words and, between them, the groups that stand for its fields; without a name, by their order."""
    words = _FIELD.split(template)
    unnamed = itertools.count()
    return [f"_{part or next(unnamed)}" if index % 2 else part for index, part in enumerate(words)]


def _pattern(template: str) -> re.Pattern:
    seen: set[str] = set()
    expression = ""
    values = [_NUMBER if _OF_NUMBER.search(each[0]) else ".*?" for each in _FIELD.finditer(template)]
    for index, part in enumerate(_parts(template)):
        if not index % 2:
            expression += re.escape(part)
        else:
            expression += f"(?P={part})" if part in seen else f"(?P<{part}>{values[index // 2]})"
            seen.add(part)
    return re.compile(expression, re.DOTALL)
