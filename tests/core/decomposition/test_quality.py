# SPDX-License-Identifier: GPL-3.0-or-later
"""How much time a solve takes for how close a result, and which errors it keeps small."""

from dataclasses import replace

import numpy as np
import pytest

from skinning_tools.core import solve_effort
from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose
from skinning_tools.core.decomposition import search as search_module
from skinning_tools.core.decomposition import surface as surface_module
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.deform.surface import normal_errors
from skinning_tools.core.errors import BadSettings, Cancelled
from skinning_tools.core.run_time import Work, stage_seconds
from skinning_tools.core.solve_effort import QUALITIES, effort_of

from .sequences import sheet


@pytest.fixture(scope="module")
def waves():
    return Animation(*sheet(20, 24))


@pytest.fixture
def few_moves(monkeypatch):
    """A search that takes a second."""
    monkeypatch.setattr(solve_effort, "_BEST_MOVES", 6)
    monkeypatch.setattr(search_module, "SWEEPS_OF_MOVE", 6)


def squared_errors(animation, result):
    """(N,) of each vertex, all frames together."""
    pairs = zip(animation.frames, result.transforms, strict=True)
    made = (skin_frame(result.rest, result.bones, result.weights, matrices) - frame for frame, matrices in pairs)
    return sum(np.square(apart).sum(axis=1) for apart in made)


def normals(animation, result):
    """(F · N,) the angles between normals, in degrees."""
    pairs = zip(animation.frames, result.transforms, strict=True)
    made = ((skin_frame(result.rest, result.bones, result.weights, matrices), frame) for frame, matrices in pairs)
    return np.concatenate([normal_errors(*pair, animation.triangles) for pair in made])


def second_differences(result):
    """Of the bones' linear parts over time, root mean square."""
    return np.sqrt(np.mean(np.diff(result.transforms[..., :3], 2, axis=0) ** 2))


def test_each_quality_takes_longer_than_the_one_before():
    for count in (500, 3000, 10_000, 200_000):
        times = [stage_seconds(Work(100, count, Settings(30, quality=quality)))["solve"] for quality in QUALITIES]
        assert times == sorted(times)
        assert times[0] < times[1] < times[2]
    assert effort_of(10_000, Settings(20, quality="DRAFT")).sample == 1500
    assert effort_of(10_000, Settings(20, quality="BEST")).moves > 0
    assert effort_of(10_000, Settings(20, quality="BEST", method="KAVAN2010")) == effort_of(
        10_000, Settings(20, method="KAVAN2010")
    )


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_the_best_quality_is_closer(waves, kind, few_moves):
    standard, best = (decompose(waves, Settings(6, kind, 4, 5, quality=quality)) for quality in ("STANDARD", "BEST"))
    assert best.e_rms < 0.95 * standard.e_rms
    assert best.bone_count == 6
    np.testing.assert_allclose(best.weights.sum(axis=1), 1.0)


@pytest.mark.parametrize("emphasis", [0.0, 1.0])
def test_the_best_quality_is_never_worse(waves, monkeypatch, emphasis):
    """Even if the search spoils what it begins with."""
    spoil = lambda prepared, settings, starts, *rest: search_module.begin(prepared, settings, starts[0] * 0).improved(  # noqa: E731
        range(1), True, rest[-1]
    )
    monkeypatch.setattr("skinning_tools.core.decomposition.solver.search_bones", spoil)
    settings = Settings(4, iterations=3, emphasis=emphasis)
    standard, best = (decompose(waves, replace(settings, quality=quality)) for quality in ("STANDARD", "BEST"))
    assert (best.e_rms, best.max_error) == (standard.e_rms, standard.max_error)


@pytest.mark.parametrize("bones", [1, 2])
def test_few_bones(waves, bones, few_moves):
    best = decompose(waves, Settings(bones, iterations=2, quality="BEST"))
    assert best.e_rms <= decompose(waves, Settings(bones, iterations=2)).e_rms


def test_progress_of_the_best_quality(waves, few_moves):
    seen = []
    decompose(waves, Settings(4, iterations=2, quality="BEST"), lambda *report: seen.append(report))
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)
    with pytest.raises(Cancelled):
        decompose(waves, Settings(4, iterations=2, quality="BEST"), lambda done, _: done < 0.5)


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_emphasis_lowers_the_largest_error(waves, kind):
    plain, emphasized = (decompose(waves, Settings(6, kind, emphasis=emphasis)) for emphasis in (0.0, 1.0))
    assert emphasized.max_error < 0.6 * plain.max_error
    assert emphasized.e_rms < 1.15 * plain.e_rms


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_surface_brings_normals_closer(waves, kind, monkeypatch):
    """Closer than as many more sweeps bring them, which is much for affine bones: the last sweep holds them."""
    plain, closer = (decompose(waves, Settings(6, kind, surface=surface)) for surface in (0.0, 1.0))
    assert not closer.surface_unchanged
    assert closer.e_rms < 1.11 * plain.e_rms
    assert closer.max_error < 1.06 * plain.max_error
    # Held bones stay held.
    assert second_differences(closer) < 1.1 * second_differences(plain)
    monkeypatch.setattr(surface_module, "_LENGTH", 0.0)
    swept = decompose(waves, Settings(6, kind, surface=1.0))
    assert normals(waves, closer).mean() < 0.97 * min(normals(waves, other).mean() for other in (plain, swept))


@pytest.mark.parametrize("triangles", [np.zeros((0, 3), np.int32), np.zeros((4, 3), np.int32)], ids=["none", "flat"])
def test_surface_without_faces_changes_nothing(waves, triangles):
    wires = replace(waves, triangles=triangles)
    plain, unchanged = (decompose(wires, Settings(3, iterations=3, surface=surface)) for surface in (0.0, 1.0))
    assert (plain.surface_unchanged, unchanged.surface_unchanged) == (False, True)
    np.testing.assert_array_equal(unchanged.transforms, plain.transforms)
    np.testing.assert_array_equal(unchanged.weights, plain.weights)


def test_emphasis_follows_the_target(waves):
    plain = decompose(waves, Settings(12, target_error=4.0))
    emphasized = decompose(waves, Settings(12, target_error=4.0, emphasis=1.0))
    assert emphasized.bone_count == plain.bone_count
    assert emphasized.curve == plain.curve
    assert emphasized.max_error < plain.max_error


@pytest.mark.parametrize("smoothness", [0.0, 0.2])
@pytest.mark.parametrize("kind", BONE_KINDS)
def test_important_vertices_are_closer(waves, kind, smoothness):
    important = waves.frames[0][:, 0] > np.quantile(waves.frames[0][:, 0], 0.8)
    settings = Settings(5, kind, smoothness=smoothness)
    plain = decompose(waves, settings)
    weighed = decompose(waves, settings, importance=1.0 + 99.0 * important)
    before, after = (squared_errors(waves, result)[important].sum() for result in (plain, weighed))
    assert after < 0.4 * before


def test_equal_importances_change_nothing(waves):
    plain, weighed = (decompose(waves, Settings(3, iterations=3), importance=each) for each in (None, np.full(480, 7)))
    np.testing.assert_array_equal(weighed.transforms, plain.transforms)


@pytest.mark.parametrize("importance", [np.ones(3), np.full(480, np.nan), -np.ones(480), np.zeros(480)])
def test_importances_that_are_none(waves, importance):
    with pytest.raises(BadSettings, match="importance of the animation"):
        decompose(waves, Settings(3), importance=importance)


@pytest.mark.parametrize("given", [{"quality": "GOOD"}, {"emphasis": 1.5}, {"emphasis": -0.1}, {"surface": 2}])
def test_settings_out_of_range(given):
    with pytest.raises(BadSettings, match=r"(?i)quality|emphasis|surface"):
        Settings(**given)
