# SPDX-License-Identifier: GPL-3.0-or-later
"""Translations of finished texts: the catalog of a language knows each text as a template such as
"The {object} has no vertices", finds the values in it again, and puts them into the translated template.

So no code that words a message needs to know of languages: an error raised in ``core`` is translated where it is shown.
"""

import itertools
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_FIELD = re.compile(r"\{(\w*)[^{}]*\}")
# A field with a format of numbers, and what it matches.
_OF_NUMBER = re.compile(r":[,.\d]*[fge,]\}$")
_NUMBER = r"[-+\d.,e]+|-?inf|nan"
# An entry of a file: comments, context, text and translation, each of the last three in lines in quotation marks.
_QUOTED = r'("[^\n]*"(?:\n"[^\n]*")*)\n'
_ENTRY = re.compile(rf"((?:^#[^\n]*\n)*)(?:^msgctxt {_QUOTED})?^msgid {_QUOTED}msgstr {_QUOTED}", re.MULTILINE)
_FUZZY = re.compile(r"^#,.*\bfuzzy\b", re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
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


class Entry(NamedTuple):
    """A text of a catalog's file. context: where it is to be translated so, empty for everywhere; comments: the lines
    above it, with gettext's flags."""

    text: str
    translation: str = ""
    context: str = ""
    comments: str = ""

    @property
    def counts(self) -> bool:
        """Whether there is a translation, and not one that a person has yet to look at."""
        return bool(self.text and self.translation) and not _FUZZY.search(self.comments)


def read(path: Path) -> list[Entry]:
    """The entries of a file in the format of gettext (.po). Those with a plural of their own are left out."""
    return [
        Entry(_unquoted(text), _unquoted(translation), _unquoted(context), comments)
        for comments, context, text, translation in _ENTRY.findall(path.read_text(encoding="utf-8") + "\n")
    ]


def translations(entries: Iterable[Entry], context: str = "") -> dict[str, str]:
    """By the text, the translations that hold in a context."""
    return {each.text: each.translation for each in entries if each.counts and each.context == context}


def write(path: Path, entries: Iterable[Entry], head: str) -> None:
    """Write such a file; ``head``: its first lines, as comments."""
    comments = "".join(f"# {line}\n" for line in head.splitlines())
    meta = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
    path.write_text("\n".join([comments + meta, *map(_written, entries)]), encoding="utf-8")


def _written(entry: Entry) -> str:
    context = f"msgctxt {_quoted(entry.context)}\n" if entry.context else ""
    return f"{entry.comments}{context}msgid {_quoted(entry.text)}\nmsgstr {_quoted(entry.translation)}\n"


def fields(template: str) -> list[str]:
    """The names of a template's fields, sorted."""
    return sorted(match[0] for match in _FIELD.finditer(template))


def _unquoted(lines: str) -> str:
    text = lines[1:-1].replace('"\n"', "")
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), text) if "\\" in text else text


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
