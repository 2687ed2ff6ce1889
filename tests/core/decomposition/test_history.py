# SPDX-License-Identifier: GPL-3.0-or-later
"""The error never rises from sweep to sweep, whatever the animation."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from skinning_tools.core import solve_effort
from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose, skin_frame
from skinning_tools.core.decomposition.reduction import AnimationMatrix

from .sequences import boxes, random_rig, sheet

# E_RMS that the reduction may lose.
LOST = 0.1


def squared_course(animation, history):
    """Squared errors after the sweeps, and how much of that is rounding: they are differences of large sums."""
    matrix = AnimationMatrix(animation.frames)
    elements = matrix.height * matrix.vertex_count
    return np.square(history), 1e-11 * 1e6 * matrix.squared_norm / elements


def assert_never_rises(animation, settings):
    result = decompose(animation, settings)
    assert len(result.history) == settings.iterations
    squares, rounding = squared_course(animation, result.history)
    # The last sweep is in the unreduced animation, if there is one before it, and of affine bones that are held.
    assert np.diff(squares[:-1]).max(initial=0.0) <= rounding
    if settings.iterations > 1:
        before, last = result.history[-2:]
        assert last <= (2.0 * before + 1.0 if settings.bone_kind == "AFFINE" else before + LOST) + np.sqrt(rounding)
    return result


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(
    rig=st.tuples(st.integers(0, 10**6), st.integers(1, 6), st.integers(4, 60), st.integers(2, 8), st.booleans()),
    noise=st.sampled_from([0.0, 1e-3, 0.3, 10.0]),
    bones=st.integers(1, 8),
    kind=st.sampled_from(BONE_KINDS),
    iterations=st.sampled_from([1, 2, 3, 6, 25]),
    influences=st.integers(1, 6),
    optimize=st.booleans(),
    smoothness=st.sampled_from([0.0, 0.5]),
)
# Two bones of nearly equal weights, which fit ever better the further they run apart.
@hypothesis.example((4702, 3, 17, 5, False), 0.0, 2, "AFFINE", 25, 2, False, 0.0)
def test_of_any_animation(rig, noise, bones, kind, iterations, influences, optimize, smoothness):
    rest, places, weights, transforms = random_rig(*rig)
    frames = np.array([skin_frame(rest, places, weights, matrices) for matrices in transforms])
    animation = Animation(frames + noise * np.random.default_rng(1).normal(size=frames.shape), [])
    count = min(bones, len(rest))
    settings = Settings(count, kind, influences, iterations, optimize, smoothness=smoothness)
    assert_never_rises(animation, settings)


@pytest.mark.parametrize("kind", BONE_KINDS)
@pytest.mark.parametrize("iterations", [1, 2, 3, 15, 40])
@pytest.mark.parametrize("smoothness", [0.0, 0.5])
def test_of_sheets_and_boxes(kind, iterations, smoothness):
    for frames, triangles in (sheet(8, 12), boxes(5, motion="affine")):
        settings = Settings(6, kind, iterations=iterations, smoothness=smoothness)
        assert_never_rises(Animation(frames, triangles), settings)


@pytest.mark.parametrize("kind", BONE_KINDS)
@pytest.mark.parametrize(("name", "bones"), [("horse_collapse", 6), ("elastic_cow", 18)])
def test_of_captured_motion_to_its_end(shared_data, name, bones, kind, monkeypatch):
    """Nothing of it is thin, so the last sweep of affine bones costs nothing, either."""
    monkeypatch.setattr(solve_effort, "SMALL_MESHES", dict.fromkeys(BONE_KINDS, 10**9))
    data = np.load(shared_data(f"{name}.npz"))
    animation = Animation(data["frames"], data["triangles"])
    squares, rounding = squared_course(animation, assert_never_rises(animation, Settings(bones, kind)).history)
    assert np.diff(squares if kind == "AFFINE" else squares[:-1]).max() <= rounding
