# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers outside the range that a setting declares are refused, wherever they come from."""

import math
from itertools import chain

import pytest

from skinning_tools.core.errors import BadSettings
from skinning_tools.features import FEATURES
from skinning_tools.ui.settings import Settings

pytestmark = pytest.mark.usefixtures("extension")


def bounded() -> dict[tuple[str, str], type[Settings]]:
    """All settings of operators that have a range, by their class and name."""
    found = {}
    for feature in FEATURES:
        for operator in chain.from_iterable(module.registry for module in feature.operators):
            settings = getattr(operator, "settings", Settings)
            for name, each in settings.declared.items():
                if each.least is not None or each.most is not None:
                    found[settings.__name__, name] = settings
    return found


def refused(settings: type[Settings], name: str, value: float) -> None:
    with pytest.raises(BadSettings) as raised:
        settings(**{name: value})
    assert raised.value.code == "OUT_OF_RANGE"
    assert str(raised.value).startswith(f"{settings.declared[name].label} must be ")


def test_every_range_is_kept():
    found = bounded()
    assert len(found) > 30
    for (_, name), settings in found.items():
        each = settings.declared[name]
        step = 1 if each.kind == "Int" else 1e-3
        for end, beyond in ((each.least, -step), (each.most, step)):
            if end is not None:
                assert getattr(settings(**{name: end}), name) == end
                refused(settings, name, end + beyond)
        for value in (math.nan, math.inf, -math.inf):
            refused(settings, name, value)
