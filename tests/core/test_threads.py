# SPDX-License-Identifier: GPL-3.0-or-later
"""Work on several threads: order, bounds, errors, and results that do not depend on how many there are."""

import os
import threading
import time

import numpy as np
import pytest

from skinning_tools.core import threads
from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import Settings, decompose
from skinning_tools.core.decomposition import reduction as reductions
from skinning_tools.core.decomposition.reduction import AnimationMatrix, reduce_animation
from skinning_tools.core.errors import Cancelled
from skinning_tools.core.threads import for_each, mapped, thread_count

from .decomposition.sequences import sheet


def many(monkeypatch, count):
    """As on a machine with ``count`` cores."""
    monkeypatch.setattr(threads, "thread_count", lambda: count)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(monkeypatch, count):
    many(monkeypatch, count)
    waits = [threading.Event() for _ in range(8)]

    def work(number):
        # Where others work, too, an item of even number ends after the next one.
        if count > 1 and number % 2 == 0:
            assert waits[number + 1].wait(10)
        waits[number].set()
        return number * number

    assert mapped(work, range(8)) == [number * number for number in range(8)]


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_no_more_results_than_allowed_are_made_ahead(monkeypatch, most):
    many(monkeypatch, 4)
    begun, ahead, taken = [], [], []

    def take(number, made):
        ahead.append(len(begun) - number)
        taken.append(number)

    for_each(begun.append, range(30), take, most)
    assert max(ahead) <= min(most, 8)
    assert sorted(begun) == taken == list(range(30))


def test_nothing_begins_after_an_error(monkeypatch):
    many(monkeypatch, 2)
    begun = []

    def work(number):
        begun.append(number)
        if number == 3:
            raise KeyError(number)

    with pytest.raises(KeyError):
        for_each(work, range(100))
    assert len(begun) < 10


def test_the_work_ends_where_its_taker_stops(monkeypatch):
    many(monkeypatch, 2)
    begun = []

    def take(number, made):
        raise Cancelled(str(number))

    with pytest.raises(Cancelled, match="0"):
        for_each(begun.append, range(100), take)
    count = len(begun)
    assert count < 10
    assert mapped(abs, range(5)) == list(range(5))
    assert len(begun) == count


def test_nothing_is_under_way_when_it_ends(monkeypatch):
    many(monkeypatch, 3)
    inside = []

    def work(number):
        inside.append(number)
        if number == 1:
            raise KeyError(number)
        time.sleep(0.05)
        inside.remove(number)

    with pytest.raises(KeyError):
        for_each(work, range(20))
    assert inside == [1]


def test_threads_may_use_threads(monkeypatch):
    """More at once than there are threads: whoever asks also works, so none waits for another forever."""
    many(monkeypatch, 12)

    def rows(number):
        return mapped(lambda other: number * other, range(12))

    assert mapped(rows, range(12)) == [[a * b for b in range(12)] for a in range(12)]


def test_no_helper_outlives_the_thread_that_it_helps(monkeypatch):
    """Or in the main thread, the end that the extension calls when it is switched off."""
    monkeypatch.setattr(threads, "thread_count", lambda: 3)

    def helpers():
        return [each for each in threading.enumerate() if each.name.startswith("skinning_tools")]

    threads.end_threads()
    before = len(helpers())
    worker = threading.Thread(target=lambda: threads.mapped(lambda item: time.sleep(0.01), range(6)))
    worker.start()
    worker.join()
    threads.mapped(lambda item: time.sleep(0.01), range(6))
    assert len(helpers()) > before
    threads.end_threads()
    for helper in helpers()[before:]:
        helper.join(60)
    assert len(helpers()) == before
    assert threads.mapped(lambda item: 2 * item, range(6)) == [0, 2, 4, 6, 8, 10]


def test_there_is_a_thread_for_each_core():
    assert 1 <= thread_count() <= (os.cpu_count() or 1)


def bits(found):
    return [part.tobytes() for part in (found.rest, found.bones, found.weights, found.transforms)] + [found.e_rms]


@pytest.mark.parametrize(
    "given",
    [{}, {"bone_kind": "RIGID"}, {"bone_kind": "SCALED"}, {"method": "KAVAN2010"}],
    ids=lambda given: next(iter(given.values()), "AFFINE"),
)
def test_a_solve_has_the_same_bits_with_any_number_of_threads(monkeypatch, given):
    frames, triangles = sheet(rows=40, columns=80, frames=100)
    settings = Settings(9, iterations=3, **given)
    found = []
    for count in (1, 2, 5):
        many(monkeypatch, count)
        found.append(bits(decompose(Animation(frames, triangles), settings)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("strategy", [*reductions.STRATEGIES, "RANGE"])
def test_a_reduction_has_the_same_bits_with_any_number_of_threads(monkeypatch, strategy):
    frames = np.random.default_rng(4).normal(size=(20, 3000, 3)).astype(np.float32) + sheet(50, 60, 20)[0]
    if strategy == "RANGE":
        monkeypatch.setattr(reductions, "LARGEST_GRAM", 1)
        strategy = "EXACT"
    found = []
    for count in (1, 2, 5):
        many(monkeypatch, count)
        matrix = AnimationMatrix(frames)
        made = reduce_animation(matrix, 0.2, strategy)
        found.append((matrix.squared_norm, made.basis.tobytes(), made.coefficients.tobytes(), made.lost))
    assert found[0] == found[1] == found[2]


def test_a_solve_is_cancelled_while_others_work(monkeypatch):
    many(monkeypatch, 3)
    frames, triangles = sheet(rows=40, columns=80)
    with pytest.raises(Cancelled):
        decompose(Animation(frames, triangles), Settings(9), lambda done, stage: not stage.startswith("Iteration 2"))
