# SPDX-License-Identifier: GPL-3.0-or-later
"""How an operator ends: finished, or with what is wrong, by no fault of its own, and everything as it was."""

from collections.abc import Callable

import bpy
import pytest

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
    """``act``, called with ``given``, raises ``error`` with a text that has all ``parts``, and changes nothing.

    act: an operator's name in bpy.ops.skinning, or a function. match: a regular expression that the text has as well.
    state: what must be as it was, compared by ``==``.
    """
    before = state()
    with pytest.raises(error, match=match) as raised:
        (getattr(bpy.ops.skinning, act) if isinstance(act, str) else act)(**given)
    message = str(raised.value)
    assert [part for part in parts if part not in message] == [], message
    assert "fault of its own" not in message
    assert state() == before
