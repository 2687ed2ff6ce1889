# SPDX-License-Identifier: GPL-3.0-or-later
"""The fewest bones that reach an error (the paper proposes interpolation search, Kavan et al. 2010, section 5).

Error over bone count is close to a power law, and error over sweeps falls along much the same course for neighboring
counts. So a solve is broken off as soon as its course tells on which side of the target it will end; only the answer
and the count below it, and what is too near to tell, are solved to the end.
"""

from collections.abc import Callable
from math import ceil, exp, log, sqrt
from typing import NamedTuple

from ..progress import Progress, span

Watch = Callable[[int, float], None]
"""Told of each sweep: its number from 0, and E_RMS after it. May raise to end the solve."""

_FIRST_COUNT = 8
_USUAL_SLOPE = -1.2
_FLATTEST, _STEEPEST = -0.5, -4.0
_LARGEST_LEAP = 4
# Without a finished solve nearby: E_RMS after sweep i is about (1 + _FALL / i) of what it tends to.
_FALL = 1.3
_FIRST_JUDGED = 2
# How far the remaining fall of a course may be off: shares of itself, by where it is known from.
_MARGIN_UNKNOWN, _MARGIN_FAR, _MARGIN_NEAR = 1.0, 0.5, 0.25
_NEAR = log(1.5)
_LEAST_MARGIN = 0.01
_LEAST_ERROR = 1e-9
# Of every so many counts between a miss and a hit, one is chosen by halving: a curve with a cliff is no power law.
_HALVED = 3
_SHARE_OF_PROGRESS = 0.3


def no_watch(_sweep: int, _e_rms: float) -> None:
    """The watch of a solve that runs to its end."""


class CurvePoint(NamedTuple):
    """A count of bones and its E_RMS: measured where ``solved``, else foretold by a solve that was broken off."""

    bone_count: int
    e_rms: float
    solved: bool


class _BrokenOff(Exception):
    """A solve's side of the target is clear."""


def solve_for_target(
    solve: Callable[[int, Progress, Watch], tuple[object, float]],
    target: float,
    most: int,
    iterations: int,
    progress: Progress,
) -> tuple[object, tuple[CurvePoint, ...]]:
    """The solution with the fewest bones, at most ``most``, whose E_RMS does not exceed ``target`` > 0.

    solve(bone_count, progress, watch): a solution and its E_RMS after ``iterations`` sweeps. The count below the
    answer's is known to miss the target. Where even ``most`` bones miss it, theirs is the solution. Returns it with
    all counts tried, in order. Raises what ``solve`` raises (Cancelled).
    """
    search = _Search(log(target), most, iterations)
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


class _Search:
    """What is known so far: courses of E_RMS (logarithms) over the sweeps, and where they ended."""

    def __init__(self, target: float, most: int, iterations: int):
        self._target, self._most, self._iterations = target, most, iterations
        self._courses: dict[int, list[float]] = {}
        self._ends: dict[int, float] = {}
        self._misses, self._hits = {0}, {most + 1}
        self._between = 0
        self._solutions: dict[int, object] = {}

    @property
    def solution(self) -> object:
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
        """A watch that notes the course of a solve, and breaks it off where that is clear and its end not wanted."""
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
            distance = course[-1] - fall - self._target
            if (distance > margin and not may_miss) or (distance < -margin and not may_hit):
                raise _BrokenOff

        return watch

    def took_sides(self, count: int) -> None:
        self._side(count, self._foretold(count))

    def finished(self, count: int, solution: object, e_rms: float) -> None:
        self._ends[count] = log(max(e_rms, _LEAST_ERROR))
        self._side(count, self._ends[count])
        # Of solutions, which are large, only the one to return is kept.
        if self._ends[count] <= self._target or count == self._most:
            self._solutions[count] = solution
        self._solutions = {kept: self._solutions[kept] for kept in sorted(self._solutions)[:1]}

    def _side(self, count: int, end: float) -> None:
        self._misses.discard(count)
        self._hits.discard(count)
        (self._misses if end > self._target else self._hits).add(count)

    def _bracket(self) -> tuple[int, int]:
        """The smallest hit, and the largest miss below it, where misses and hits of broken-off solves count as well."""
        enough = min(self._hits)
        return max(count for count in self._misses if count < enough), enough

    def _is_certain(self, count: int) -> bool:
        return count in self._ends or count in (0, self._most + 1)

    def _foretold(self, count: int) -> float:
        course = self._courses[count]
        return course[-1] - self._fall_from(count, len(course))[0]

    def _fall_from(self, count: int, sweeps: int) -> tuple[float, float]:
        """By how much E_RMS (logarithm) falls after so many sweeps, and by how much that may be wrong."""
        known = [other for other in self._ends if len(self._courses[other]) > sweeps and other != count]
        if not known:
            fall = log((1.0 + _FALL / sweeps) / (1.0 + _FALL / max(sweeps, self._iterations)))
            return fall, _MARGIN_UNKNOWN * fall + _LEAST_MARGIN
        nearest = min(known, key=lambda other: abs(log(other / count)))
        fall = max(0.0, self._courses[nearest][sweeps - 1] - self._ends[nearest])
        share = _MARGIN_NEAR if abs(log(nearest / count)) <= _NEAR else _MARGIN_FAR
        return fall, share * fall + _LEAST_MARGIN

    def _guess(self, too_few: int, enough: int) -> int:
        """The count strictly between at which the error will be the target, by a power law through known points."""
        known = [(log(count), self._ends.get(count, self._foretold(count))) for count in sorted(self._courses)]
        if not known:
            return min(_FIRST_COUNT, enough - 1)
        if too_few in self._courses and enough in self._courses:
            self._between += 1
            if self._between % _HALVED == 0:
                return min(max(round(sqrt(too_few * enough)), too_few + 1), enough - 1)
        known.sort(key=lambda point: abs(point[1] - self._target))
        (place, error), slope = known[0], _USUAL_SLOPE
        if len(known) > 1:
            (other, other_error) = known[1]
            slope = min(max((error - other_error) / (place - other), _STEEPEST), _FLATTEST)
        leap = (self._target - error) / slope
        wanted = exp(place + min(max(leap, -log(_LARGEST_LEAP)), log(_LARGEST_LEAP)))
        return min(max(ceil(wanted), too_few + 1), enough - 1)
