# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.similarity_sums import INTERPOLATION_ERROR, Shares, similarity_sums


def two_bones(random, count, kind):
    """Weights (count,) of two bones: anywhere, of vertices with no third bone, or nearly all alike."""
    if kind == "chain":
        first = random.uniform(0.001, 0.999, count)
        return first, 1 - first
    weights = random.dirichlet(np.ones(3), count)[:, :2] + 1e-9
    if kind == "alike":
        weights = 0.3 + 1e-3 * weights
    return weights.T


kinds = st.sampled_from(["any", "chain", "alike"])


@given(st.integers(0, 10_000), st.floats(0.02, 10), kinds, kinds, st.sampled_from([3, 300]))
@settings(deadline=None, max_examples=60)
def test_sums_are_those_of_the_exponential(seed, sigma, target_kind, source_kind, target_count):
    """Against the exponential as it is written, to the error that is promised, exactly where that is asked for."""
    random = np.random.default_rng(seed)
    p, t = two_bones(random, target_count, target_kind), two_bones(random, 2000, source_kind)
    moments = random.normal(size=(2000, 4))
    kernel = np.exp(-(((p[0][:, None] * t[1] - p[1][:, None] * t[0]) / sigma) ** 2))
    size = np.abs(moments).sum(axis=0)
    for exact in (True, False):
        found, direct = similarity_sums(Shares.of(*p), Shares.of(*t), moments, sigma, exact, lambda: None)
        tolerance = 1e-14 if direct else 10 * INTERPOLATION_ERROR
        assert np.max(np.abs(found - kernel @ moments) / size) < tolerance
        assert direct or not exact


def test_many_places_on_few_nodes():
    """The time of many places is that of their grids: here a hundredth of the direct sum's exponentials."""
    random = np.random.default_rng(1)
    p, t = two_bones(random, 20_000, "chain"), two_bones(random, 30_000, "chain")
    calls = []
    found, direct = similarity_sums(
        Shares.of(*p), Shares.of(*t), np.ones((30_000, 1)), 0.1, False, lambda: calls.append(1)
    )
    assert not direct
    assert len(calls) < 10
    some = slice(0, 20_000, 1000)
    kernel = np.exp(-(((p[0][some, None] * t[1] - p[1][some, None] * t[0]) / 0.1) ** 2))
    np.testing.assert_allclose(found[some, 0], kernel.sum(axis=1), rtol=1e-9)


def test_a_pulse_stops_a_long_sum():
    class Stop(Exception):
        pass

    def stop():
        raise Stop

    places = Shares.of(*two_bones(np.random.default_rng(2), 50, "any"))
    with pytest.raises(Stop):
        similarity_sums(places, places, np.ones((50, 4)), 0.1, True, stop)
