# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of an animation, its scale and its error measures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skinning_tools.core.animation import Animation, ErrorMeter, check_animation, enclosing_ball, unit_scale
from skinning_tools.core.errors import BadAnimation, BadMesh

coordinates = st.floats(-1e3, 1e3, width=32)


def moving(frames=3, vertices=5):
    positions = np.random.default_rng(0).normal(size=(frames, vertices, 3))
    return positions.astype(np.float32)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.just(3)), elements=coordinates))
@settings(deadline=None)
def test_ball_holds_all_points_and_shrinking_it_does_not(points):
    center, radius = enclosing_ball(points)
    distances = np.linalg.norm(points - center, axis=1)
    size = max(1.0, np.abs(points).max())
    assert distances.max() <= radius + 1e-9 * size
    # Smallest: its centre is in the convex hull of the points it touches, so every step away lengthens one distance.
    touching = points[distances >= radius - 1e-6 * size]
    for direction in np.vstack([np.eye(3), -np.eye(3)]):
        moved = np.linalg.norm(touching - (center + 1e-3 * size * direction), axis=1)
        assert moved.max() > radius - 1e-6 * size


def test_ball_of_a_regular_tetrahedron_is_its_circumscribed_sphere():
    points = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], float)
    center, radius = enclosing_ball(np.vstack([points, 0.3 * points]) + 5)
    np.testing.assert_allclose(center, 5, atol=1e-12)
    assert radius == pytest.approx(np.sqrt(3))


def test_ball_far_from_the_origin_keeps_its_accuracy():
    points = np.random.default_rng(1).normal(size=(500, 3))
    assert enclosing_ball(points + 1e6)[1] == pytest.approx(enclosing_ball(points)[1], rel=1e-9)


def test_e_rms_is_that_of_the_paper():
    expected, actual = moving(), moving() + np.float32(0.01)
    scale = unit_scale(expected)
    meter = ErrorMeter(scale, 5)
    for a, b in zip(expected, actual, strict=True):
        meter.add(a, b)
    difference = (actual.astype(float) - expected) * scale
    assert meter.e_rms == pytest.approx(1000 * np.linalg.norm(difference) / np.sqrt(difference.size))
    assert meter.max_error == pytest.approx(1000 * np.linalg.norm(difference, axis=2).max())
    np.testing.assert_allclose(meter.frame_e_rms, 1000 * np.linalg.norm(difference, axis=(1, 2)) / np.sqrt(15))
    np.testing.assert_allclose(meter.frame_max_error, 1000 * np.linalg.norm(difference, axis=2).max(axis=1))
    np.testing.assert_allclose(meter.vertex_error, np.linalg.norm(difference, axis=2).max(axis=0) / scale)


@pytest.mark.parametrize(
    ("to_world", "row", "vertex"),
    [
        # Frame 0 moves vertex 1 by 4 along x, frame 1 vertex 3 by 3 along y; both move vertex 0 by 1 along z.
        ([None, None], 0, 1),
        ([np.eye(3), np.eye(3)], 0, 1),
        ([np.diag([0.5, 1, 1])] * 2, 1, 3),
        ([np.diag([0.1, 0.1, 2])] * 2, 0, 0),
        ([np.diag([1, 0, 0])] * 2, 0, 1),
        ([np.diag([1, 2, 1])[[1, 2, 0]]] * 2, 1, 3),
        ([np.eye(3), 2 * np.eye(3)], 1, 3),
        ([np.zeros((3, 3)), np.eye(3)], 1, 3),
        ([np.zeros((3, 3))] * 2, 0, 0),
    ],
)
def test_what_is_worst_is_so_where_the_vertices_errors_are(to_world, row, vertex):
    meter, expected = ErrorMeter(1.0, 5), np.zeros((5, 3))
    moves = [{1: (4, 0, 0), 0: (0, 0, 1)}, {3: (0, 3, 0), 0: (0, 0, 1)}]
    for offsets, linear in zip(moves, to_world, strict=True):
        actual = expected.copy()
        for place, offset in offsets.items():
            actual[place] = offset
        meter.add(expected, actual, linear)
    assert (meter.worst_row, meter.worst_vertex) == (row, vertex)
    assert meter.vertex_error[vertex] == meter.vertex_error.max()
    np.testing.assert_allclose(meter.frame_max_error, [4000, 3000])


def test_e_rms_does_not_depend_on_units():
    expected, actual = moving(), moving() * np.float32(1.01)
    figures = []
    for factor in (1, 64):
        meter = ErrorMeter(unit_scale(expected * factor), 5)
        meter.add(expected[0] * factor, actual[0] * factor)
        figures.append((meter.e_rms, meter.max_error))
    assert figures[0] == pytest.approx(figures[1])


def spoiled(frame, vertex, value):
    frames = moving()
    frames[frame, vertex] = value
    return frames


@pytest.mark.parametrize(
    ("frames", "triangles", "error", "words"),
    [
        (np.zeros((3, 0, 3)), [], BadMesh, ["Flag", "no vertices"]),
        (moving(1), [], BadAnimation, ["Flag", "1 frame", "two"]),
        (moving(0), [], BadAnimation, ["Flag", "0 frames", "two"]),
        (spoiled(2, 3, np.nan), [], BadAnimation, ["Flag", "frame 30", "vertex 3"]),
        (spoiled(1, 4, np.inf), [], BadAnimation, ["Flag", "frame 20", "vertex 4"]),
        (np.ones((3, 5, 3)), [], BadMesh, ["Flag", "no size", "frame 10"]),
        (np.repeat(moving(1), 3, axis=0), [], BadAnimation, ["Flag", "Nothing moves", "10", "30"]),
        (moving(), [[0, 1, 5]], BadMesh, ["Flag", "triangle"]),
        (moving(), [[0, 1, -1]], BadMesh, ["Flag", "triangle"]),
    ],
)
def test_bad_animations_are_refused_with_name_and_place(frames, triangles, error, words):
    numbers = 10.0 * np.arange(1, len(frames) + 1)
    with pytest.raises(error) as caught:
        check_animation(Animation(frames, triangles, numbers, name='"Flag"'))
    for word in words:
        assert word in str(caught.value)


def test_a_good_animation_passes():
    check_animation(Animation(moving(), [[0, 1, 2]]))


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 2)])
def test_positions_of_the_wrong_shape_are_refused(shape):
    with pytest.raises(BadAnimation, match="shape"):
        Animation(np.zeros(shape), [])
