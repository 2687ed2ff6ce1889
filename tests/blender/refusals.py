# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks how an operator ends: finished, or with a message that is not about a bug, and with nothing changed.

What is wrong is said by parts of the text, or by the code of a precondition in place of its wording, with words after
it that the text has as well, "…" between those that are apart: 'NO_BONE "Rig" … "tail"'.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import bpy
import pytest

from skinning_tools.blender.preconditions import TEXTS
from skinning_tools.core.errors import SkinningError
from tests.blender import moving_meshes


def finished(operator: str, **given) -> None:
    """The operator of bpy.ops.skinning does its work."""
    assert getattr(bpy.ops.skinning, operator)(**given) == {"FINISHED"}


def refused(
    act: str | Callable,
    *parts: str,
    match: str | None = None,
    error: type[Exception] = RuntimeError,
    state: Callable[[], object] = moving_meshes.state,
    **given,
) -> None:
    """``act``, called with ``given``, raises ``error`` that says all ``parts``, and changes nothing.

    act: an operator's name in bpy.ops.skinning, or a function. match: a regular expression that the text has as well.
    state: the data that must not change, compared by ``==``.
    """
    before = state()
    with pytest.raises(error, match=match) as raised:
        (getattr(bpy.ops.skinning, act) if isinstance(act, str) else act)(**given)
    assert_says(raised.value, *parts)
    assert "bug in Skinning Tools" not in str(raised.value)
    assert state() == before


@contextmanager
def raises_unmet(*parts: str) -> Iterator[None]:
    """A function raises, or an operator reports, what ``parts`` say."""
    with pytest.raises((SkinningError, RuntimeError)) as raised:
        yield
    assert_says(raised.value, *parts)


def assert_says(message: Exception | str, *parts: str) -> None:
    """The message says all of ``parts``."""
    assert [part for part in parts if not says(message, part)] == [], message


def says(message: Exception | str, part: str) -> bool:
    """Whether a message has a text, or is of a precondition."""
    code, _, words = part.partition(" ")
    if code not in TEXTS:
        return part in str(message)
    if isinstance(message, SkinningError):
        return message.code == code and _has(message, words)
    # Blender and the command line pass on text, which Blender may cut after what is wrong.
    between = re.split(r"\{[^}]*\}", TEXTS[code].split(". ")[0])
    found = re.search(".*".join(map(re.escape, between)), str(message))
    return found is not None and _has(str(message)[found.start() :], words)


def _has(text: object, words: str) -> bool:
    return re.search(".*".join(map(re.escape, words.split(" … "))), str(text)) is not None
