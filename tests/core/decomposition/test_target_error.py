# SPDX-License-Identifier: GPL-3.0-or-later
"""The search for the fewest bones: on curves made by formula, and on the paper's sequences by the solver itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import Settings, decompose
from skinning_tools.core.decomposition.target_error import solve_for_target
from skinning_tools.core.errors import Cancelled
from skinning_tools.core.progress import ignore

from .sequences import boxes, sheet

ITERATIONS = 15


class Curve:
    """A solver made by formula: errors over the counts 1, 2, …, reached along courses that fall as real ones do."""

    def __init__(self, ends, fall=1.3):
        self.ends = ends
        self.fall = fall
        self.sweeps = {}
        self.fractions = []

    def solve(self, count, progress, watch):
        end = self.ends[count - 1]
        for sweep in range(ITERATIONS):
            self.sweeps[count] = self.sweeps.get(count, 0) + 1
            self.note(progress, (sweep + 1) / ITERATIONS)
            watch(sweep, end * (1 + self.fall / (sweep + 1)) / (1 + self.fall / ITERATIONS))
        return f"{count} bones", end

    def note(self, progress, fraction):
        if progress(fraction, "Solving") is False:
            raise Cancelled("Cancelled")

    def search(self, target, progress=ignore):
        return solve_for_target(self.solve, target, len(self.ends), ITERATIONS, progress)

    def solves(self, answer):
        """The work done, in whole solves for ``answer`` bones. Measured, a sweep costs about 12 + bone count."""
        return sum(sweeps * (12 + count) for count, sweeps in self.sweeps.items()) / (ITERATIONS * (12 + answer))


def power_law(slope=-1.2, most=200, first=40.0):
    return [first * count**slope for count in range(1, most + 1)]


@pytest.mark.parametrize("fall", [0.5, 1.3, 2.5])
@pytest.mark.parametrize("slope", [-0.7, -1.2, -2.0])
@pytest.mark.parametrize("answer", [1, 2, 3, 7, 8, 9, 20, 45, 130, 200])
def test_the_fewest_bones_of_a_power_law(slope, answer, fall):
    curve = Curve(power_law(slope), fall)
    solution, points = curve.search(curve.ends[answer - 1] * 1.0001)
    assert solution == f"{answer} bones"
    # Two solves are needed at least: one that reaches the target, and one that shows that fewer bones do not.
    assert curve.solves(answer) <= 4
    for point in points:
        assert point.bone_count in curve.sweeps
        tolerance = 1e-9 if point.solved else 0.4
        assert point.e_rms == pytest.approx(curve.ends[point.bone_count - 1], rel=tolerance)
    assert [point.bone_count for point in points] == sorted(curve.sweeps)


@settings(deadline=None)
@given(
    ends=st.lists(st.floats(1e-7, 1e3), min_size=1, max_size=60),
    fall=st.floats(0, 4),
    target=st.floats(1e-7, 1e3),
)
def test_any_curve_ends_at_a_count_that_reaches_the_target_where_one_less_does_not(ends, fall, target):
    curve = Curve(ends, fall)
    solution, points = curve.search(target)
    answer = int(solution.split()[0])
    solved = {point.bone_count: point.e_rms for point in points if point.solved}
    if curve.ends[answer - 1] > target:
        assert answer == len(ends)
    elif answer > 1:
        assert ends[answer - 2] > target
        assert answer - 1 in solved
    assert solved[answer] == pytest.approx(ends[answer - 1])


@settings(deadline=None)
@given(steps=st.lists(st.floats(0.3, 1.0), min_size=1, max_size=60), share=st.floats(0, 1), fall=st.floats(0, 4))
def test_a_falling_curve_is_searched_to_its_first_hit(steps, share, fall):
    ends = (100 * np.cumprod(steps)).tolist()
    target = ends[int(share * (len(ends) - 1))]
    solution, _ = Curve(ends, fall).search(target * (1 + 1e-9))
    assert solution == f"{next(i for i, end in enumerate(ends) if end <= target * (1 + 1e-9)) + 1} bones"


def test_a_cliff_is_found():
    """Separate parts with a bone each: no error at all, and much with one bone less."""
    curve = Curve([30.0 / count if count < 20 else 1e-6 for count in range(1, 65)])
    assert curve.search(0.01)[0] == "20 bones"
    assert curve.solves(20) <= 4


def test_a_target_that_no_count_reaches():
    curve = Curve(power_law(most=20))
    solution, points = curve.search(1e-3)
    assert solution == "20 bones"
    assert points[-1].solved
    assert curve.solves(20) <= 2


def test_progress_never_goes_back_and_cancels():
    fractions = []
    Curve(power_law()).search(1.0, lambda fraction, stage: fractions.append(fraction))
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < 0.5 < fractions[-1] <= 1
    with pytest.raises(Cancelled):
        Curve(power_law()).search(1.0, lambda fraction, stage: fraction < 0.6)


@pytest.mark.parametrize(
    ("name", "kind", "target"),
    [("horse_gallop", "AFFINE", 1.5), ("horse_collapse", "AFFINE", 5.0), ("elastic_cow", "RIGID", 12.0)],
)
def test_neighbors_by_the_same_solver(shared_data, name, kind, target):
    data = np.load(shared_data(f"{name}.npz"))
    animation = Animation(data["frames"], data["triangles"])
    found = decompose(animation, Settings(60, kind, target_error=target))
    exactly = decompose(animation, Settings(found.bone_count, kind))
    np.testing.assert_array_equal(found.weights, exactly.weights)
    np.testing.assert_array_equal(found.transforms, exactly.transforms)
    assert found.e_rms <= target
    assert decompose(animation, Settings(found.bone_count - 1, kind)).e_rms > target
    assert exactly.curve == ()
    on_curve = {point.bone_count: point for point in found.curve}
    assert on_curve[found.bone_count].e_rms == pytest.approx(found.e_rms)
    assert on_curve[found.bone_count].solved
    assert on_curve[found.bone_count - 1].solved


def test_boxes_need_a_bone_each():
    frames, triangles = boxes(count=12)
    found = decompose(Animation(frames, triangles), Settings(40, target_error=0.01))
    assert found.bone_count == 12


def test_more_bones_than_vertices_are_no_limit_to_the_search():
    frames, triangles = sheet(3, 4)
    found = decompose(Animation(frames, triangles), Settings(12, target_error=50.0))
    assert found.bone_count < 12


def test_an_unreachable_target_gives_the_most_bones():
    frames, triangles = sheet()
    found = decompose(Animation(frames, triangles), Settings(6, target_error=1e-4, iterations=3))
    assert found.bone_count == 6
    assert found.curve[-1].e_rms == pytest.approx(found.e_rms)


@pytest.mark.parametrize("iterations", [1, 2, 40])
def test_any_number_of_iterations(iterations):
    frames, triangles = sheet()
    settings = Settings(30, target_error=8.0, iterations=iterations)
    found = decompose(Animation(frames, triangles), settings)
    assert found.e_rms <= 8.0 < decompose(
        Animation(frames, triangles), Settings(found.bone_count - 1, iterations=iterations)
    ).e_rms  # fmt: skip
