# SPDX-License-Identifier: GPL-3.0-or-later
"""The smallest number of bones that reaches a target error (the paper proposes interpolation search, Kavan et al. 2010,
section 5).

Error over bone count is close to a power law, and error over sweeps falls along much the same course for neighboring
counts. So a solve is stopped as soon as its course shows on which side of the target it will end; only the answer,
the count below it, and undecided counts are solved to the end.
"""

from collections.abc import Callable
from math import ceil, exp, log, sqrt
from operator import mul
from typing import Generic, NamedTuple, TypeVar

from ..progress import Progress, span

Watch = Callable[[int, float], None]
Solution = TypeVar("Solution")
"""Called after each sweep with its number from 0 and E_RMS. May raise to end the solve."""

_FIRST_COUNT = 8
_USUAL_SLOPE = -1.2
_FLATTEST, _STEEPEST = -0.5, -4.0
_LARGEST_LEAP = 4
# Without a finished solve: E_RMS after sweep i is about (1 + _FALL / i) times its limit. From _FIRST_TELLING on, the
# last two sweeps predict the fall better: their prediction times _LONG_TAIL.
_FALL = 1.5
_FIRST_JUDGED, _FIRST_TELLING = 2, 4
_LONG_TAIL = 1.4
# The uncertainty of the remaining fall of a course, as a share of it, by the source of the prediction.
_MARGIN_UNKNOWN, _MARGIN_OWN, _MARGIN_FAR, _MARGIN_NEAR = 0.8, 0.6, 0.5, 0.2
_NEAR = log(1.5)
_LEAST_MARGIN = 0.01
_LEAST_ERROR = 1e-9
# Logarithms: how much nearer to the target a predicted error must be than a measured one to start from it, how far the
# neighborhood of a count reaches, and how much the usual slope counts beside the spread of the counts there.
_DOUBT = 0.1
_REACH = 1.0
_FIRMNESS = 0.01
_SHARE_OF_PROGRESS = 0.3


def no_watch(_sweep: int, _e_rms: float) -> None:
    """The watch of a solve that runs to its end."""


class CurvePoint(NamedTuple):
    """A count of bones and its E_RMS: measured where ``solved``, else predicted by a solve that was stopped early."""

    bone_count: int
    e_rms: float
    solved: bool


class _BrokenOff(Exception):
    """A solve's side of the target is clear."""


def solve_for_target(
    solve: Callable[[int, Progress, Watch], tuple[Solution, float]],
    target: float,
    most: int,
    iterations: int,
    progress: Progress,
) -> tuple[Solution, tuple[CurvePoint, ...]]:
    """The solution with the fewest bones, at most ``most``, whose E_RMS does not exceed ``target`` > 0.

    solve(bone_count, progress, watch): a solution and its E_RMS after ``iterations`` sweeps. The next smaller
    count is known to miss the target. Where even ``most`` bones miss it, their solution is returned. Returns it with
    all tried counts, in order. Raises what ``solve`` raises (Cancelled).
    """
    search: _Search[Solution] = _Search(log(target), most, iterations)
    done = 0.0
    while (count := search.next_count()) is not None:
        share = _SHARE_OF_PROGRESS * (1.0 - done)
        watch = search.watch(count)
        try:
            solution, e_rms = solve(count, span(progress, done, done + share), watch)
        except _BrokenOff:
            search.took_sides(count)
        else:
            search.finished(count, solution, e_rms)
        done += share
    return search.solution, search.curve()


class _Search(Generic[Solution]):
    """The state of the search: courses of E_RMS (logarithms) over the sweeps, and their ends."""

    def __init__(self, target: float, most: int, iterations: int):
        self._target, self._most, self._iterations = target, most, iterations
        self._courses: dict[int, list[float]] = {}
        self._ends: dict[int, float] = {}
        self._misses, self._hits = {0}, {most + 1}
        self._solutions: dict[int, Solution] = {}

    @property
    def solution(self) -> Solution:
        return self._solutions[min(min(self._hits), self._most)]

    def curve(self) -> tuple[CurvePoint, ...]:
        return tuple(
            CurvePoint(count, exp(self._ends.get(count, self._foretold(count))), count in self._ends)
            for count in sorted(self._courses)
        )

    def next_count(self) -> int | None:
        """What to solve next; None where the smallest hit and the miss below it are solved to the end."""
        too_few, enough = self._bracket()
        if enough - too_few > 1:
            return self._guess(too_few, enough)
        return next((count for count in (enough, too_few) if not self._is_certain(count)), None)

    def watch(self, count: int) -> Watch:
        """A watch that records the course of a solve, and stops it where the side is clear and the end not needed."""
        course = self._courses[count] = []
        too_few, enough = self._bracket()
        # The answer, and the count below it, are solved to the end.
        may_miss = count in (too_few, enough) or count + 1 == enough
        may_hit = count in (too_few, enough) or count - 1 == too_few

        def watch(sweep: int, e_rms: float) -> None:
            course.append(log(max(e_rms, _LEAST_ERROR)))
            if len(course) < _FIRST_JUDGED or sweep + 1 >= self._iterations:
                return
            fall, margin = self._fall_from(count, len(course))
            if 2 * len(course) > self._iterations and not self._knows_about(count):
                return  # this late, the end is worth knowing: it predicts all later solves
            distance = course[-1] - fall - self._target
            if (distance > margin and not may_miss) or (distance < -margin and not may_hit):
                raise _BrokenOff

        return watch

    def took_sides(self, count: int) -> None:
        self._side(count, self._foretold(count))

    def finished(self, count: int, solution: Solution, e_rms: float) -> None:
        self._ends[count] = log(max(e_rms, _LEAST_ERROR))
        self._side(count, self._ends[count])
        # Solutions are large: only the one to return is kept.
        if self._ends[count] <= self._target or count == self._most:
            self._solutions[count] = solution
        self._solutions = {kept: self._solutions[kept] for kept in sorted(self._solutions)[:1]}

    def _side(self, count: int, end: float) -> None:
        self._misses.discard(count)
        self._hits.discard(count)
        (self._misses if end > self._target else self._hits).add(count)

    def _bracket(self) -> tuple[int, int]:
        """The largest miss below the smallest hit, and that hit; solves that were stopped early count as well."""
        enough = min(self._hits)
        return max(count for count in self._misses if count < enough), enough

    def _is_certain(self, count: int) -> bool:
        return count in self._ends or count in (0, self._most + 1)

    def _foretold(self, count: int) -> float:
        course = self._courses[count]
        return course[-1] - self._fall_from(count, len(course))[0]

    def _knows_about(self, count: int) -> bool:
        return any(abs(log(other / count)) <= _NEAR for other in self._ends)

    def _fall_from(self, count: int, sweeps: int) -> tuple[float, float]:
        """The remaining fall of E_RMS (logarithm) after ``sweeps``, and its uncertainty."""
        longer = [other for other, course in self._courses.items() if len(course) > sweeps and other != count]
        measured = [other for other in longer if other in self._ends]
        if measured:
            nearest = min(measured, key=lambda other: abs(log(other / count)))
            share = _MARGIN_NEAR if abs(log(nearest / count)) <= _NEAR else _MARGIN_FAR
            return self._fall_of(nearest, sweeps, share)
        if sweeps >= _FIRST_TELLING:
            course = self._courses[count]
            # The prediction of E_RMS ∝ 1 + a / sweep from the last two sweeps.
            slowing = 0.5 * (sweeps - 2) * max(0.0, 1.0 - sweeps / self._iterations)
            fall = _LONG_TAIL * slowing * max(0.0, course[sweeps - 3] - course[sweeps - 1])
            return fall, _MARGIN_OWN * fall + _LEAST_MARGIN
        telling = [other for other in longer if len(self._courses[other]) >= _FIRST_TELLING]
        if telling:
            return self._fall_of(min(telling, key=lambda other: abs(log(other / count))), sweeps, _MARGIN_OWN)
        fall = log((1.0 + _FALL / sweeps) / (1.0 + _FALL / max(sweeps, self._iterations)))
        return fall, _MARGIN_UNKNOWN * fall + _LEAST_MARGIN

    def _fall_of(self, other: int, sweeps: int, share: float) -> tuple[float, float]:
        fall = max(0.0, self._courses[other][sweeps - 1] - self._ends.get(other, self._foretold(other)))
        return fall, share * fall + _LEAST_MARGIN

    def _guess(self, too_few: int, enough: int) -> int:
        """The count strictly between at which the error will be the target, by a power law through known points."""
        ends = {count: self._ends.get(count, self._foretold(count)) for count in self._courses}
        if not ends:
            return min(_FIRST_COUNT, enough - 1)
        if too_few in ends and enough in ends and ends[too_few] - ends[enough] > -_STEEPEST * log(enough / too_few):
            return min(max(round(sqrt(too_few * enough)), too_few + 1), enough - 1)
        nearest = min(ends, key=lambda count: abs(ends[count] - self._target) + _DOUBT * (count not in self._ends))
        leap = (self._target - ends[nearest]) / _slope(ends, nearest)
        wanted = nearest * exp(min(max(leap, -log(_LARGEST_LEAP)), log(_LARGEST_LEAP)))
        return min(max(ceil(wanted), too_few + 1), enough - 1)


def _slope(ends: dict[int, float], nearest: int) -> float:
    """Of log error over log count about the count ``nearest``: least squares, as the errors of neighbors scatter."""
    places = [log(count / nearest) for count in ends]
    weights = [exp(-((place / _REACH) ** 2)) for place in places]
    total = sum(weights)
    place = sum(map(mul, weights, places)) / total
    error = sum(map(mul, weights, ends.values())) / total
    spread = sum(weight * (x - place) ** 2 for weight, x in zip(weights, places, strict=True))
    joint = sum(weight * (x - place) * (y - error) for weight, x, y in zip(weights, places, ends.values(), strict=True))
    slope = (joint + _FIRMNESS * _USUAL_SLOPE) / (spread + _FIRMNESS)
    return min(max(slope, _STEEPEST), _FLATTEST)
