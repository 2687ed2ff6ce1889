# SPDX-License-Identifier: GPL-3.0-or-later
"""Simple expressions, and the elements of array properties that they pass to each other, before they are drivers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

# Blender silently truncates longer expressions.
LONGEST = 250

# The most that rounding of stored values may change a shape key's value.
TOLERANCE = 2e-6
ROUNDING = 2.0**-24

SUMS = "sums"

# The step of a shape key's value: rounding errors of joints at rest become 0, and Blender skips shape keys whose value
# is 0.
VALUE_BEGINNING = "round(1e6*("
VALUE = VALUE_BEGINNING + "{0}))/1e6"

# A sum as a whole number of steps, and the remainder.
_WHOLE, _FRACTION = "trunc({step}*({{0}}))/{step}", "fmod({step}*({{0}}),1)/{step}"

_LETTERS = "abcdfghijklmnopqrstuv"


@dataclass(frozen=True)
class Rotation:
    """A channel, W X Y Z, of a joint's local rotation."""

    joint: str
    channel: str


@dataclass(frozen=True)
class Element:
    """An element of an array property."""

    array: str
    index: int


Input = Rotation | Element
# A value that expressions read: the sum of one or two elements, or a single channel.
Value = tuple[Input, ...]


@dataclass(frozen=True)
class Term:
    """A part of a sum that begins with its sign. {0}, {1} … in ``text`` stand for ``values``."""

    text: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Expression:
    """An expression's text, and its inputs by variable name."""

    text: str
    inputs: dict[str, Input]

    @classmethod
    def of(cls, terms: Sequence[Term], wrapped: str = "{0}") -> "Expression":
        """The sum of ``terms``, inserted into ``wrapped``."""
        inputs = dict.fromkeys(
            part
            for term in terms
            for index, value in enumerate(term.values)
            if f"{{{index}}}" in term.text
            for part in value
        )
        names: dict[Input, str] = {}
        for part in inputs:
            names[part] = part.channel.lower() if isinstance(part, Rotation) else _letter(len(names))
        text = "".join(term.text.format(*(_reading(value, names) for value in term.values)) for term in terms)
        return cls(wrapped.format(text.removeprefix("+")), {name: part for part, name in names.items()})


@dataclass(eq=False)
class Network:
    """sizes: of the array properties, in order of dependency. elements: the expression for each of their elements.
    values: the expression for each shape key, in the order of the components."""

    sizes: dict[str, int] = field(default_factory=dict)
    elements: dict[Element, Expression] = field(default_factory=dict)
    values: list[Expression] = field(default_factory=list)

    @property
    def driver_count(self) -> int:
        return len(self.elements) + len(self.values)

    def store(self, array: str, terms: Sequence[Term], largest: float, exactly: bool) -> Value:
        """A new element of ``array`` with the sum of ``terms``, whose absolute value is at most ``largest``; two
        elements for more than single precision."""
        if not exactly:
            return (self.keep(array, Expression.of(terms)),)
        # Makes the first element exact: a whole number of steps that fits its bits.
        step = _step(largest)
        return tuple(self.keep(array, Expression.of(terms, form.format(step=step))) for form in (_WHOLE, _FRACTION))

    def value_of(self, terms: Sequence[Term], largest: float, level: int = 1, form: str = VALUE) -> Expression:
        """A component's value, the sum of ``terms`` in ``form``, through stored parts if it is too long. largest: the
        sum of their absolute values."""
        exactly = ROUNDING * largest > TOLERANCE
        wrapped, name_length = (_FRACTION.format(step=_step(largest)), 9) if exactly else ("{0}", 4)
        parts = _packed(terms, wrapped)
        for count in range(len(parts) + 1):
            rest = [term for part in parts[count:] for term in part]
            if len(Expression.of(rest, form).text) + count * name_length <= LONGEST:
                break
        stored = [Term("+{0}", (self.store(f"{SUMS}_{level}", part, largest, exactly),)) for part in parts[:count]]
        expression = Expression.of([*rest, *stored], form)
        if len(expression.text) <= LONGEST:
            return expression
        return self.value_of([*rest, *stored], largest, level + 1, form)

    def keep(self, array: str, expression: Expression) -> Element:
        """A new element of ``array``."""
        element = Element(array, self.sizes.get(array, 0))
        self.sizes[array] = element.index + 1
        self.elements[element] = expression
        return element


def _step(largest: float) -> str:
    """The steps to one that numbers up to ``largest`` can be counted in exactly in single precision."""
    return f"{2.0 ** (22 - math.ceil(math.log2(largest))):.17g}"


def _packed(terms: Sequence[Term], wrapped: str) -> list[list[Term]]:
    """``terms`` in parts, in their order, each short enough for an expression within ``wrapped``."""
    parts: list[list[Term]] = [[]]
    for term in terms:
        if parts[-1] and len(Expression.of([*parts[-1], term], wrapped).text) > LONGEST:
            parts.append([])
        parts[-1].append(term)
    return parts


def _reading(value: Value, names: dict[Input, str]) -> str:
    # Values that the text does not ask for have no names.
    known = [names.get(part, "") for part in value]
    return known[0] if len(known) == 1 else f"({'+'.join(known)})"


def _letter(index: int) -> str:
    number, letter = divmod(index, len(_LETTERS))
    return _LETTERS[letter] + (str(number) if number else "")
