# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of the whole of core on inputs of all sorts; benchmarks/reliability.py tries many thousands more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core import properties
from tests.core.binding import properties as binding_properties

EVERY = (*properties.PROPERTIES, *binding_properties.PROPERTIES)


@pytest.mark.parametrize("holds", EVERY, ids=lambda holds: holds.__name__)
@settings(deadline=None, max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_holds(holds, seed):
    holds(np.random.default_rng(seed))
