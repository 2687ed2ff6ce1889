# SPDX-License-Identifier: GPL-3.0-or-later
"""Shapes to bones: known bones come back, sliders add up, the neutral is exact, and bad input is refused."""

import numpy as np
import pytest

from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadAnimation, BadMesh, BadSettings, Cancelled
from skinning_tools.core.shape_rig import Settings, Shapes, motions, share_bones, solve_shapes
from skinning_tools.core.shape_rig.motion import _slopes, about, drop_motions, fit_motions, rotations, turns_of
from skinning_tools.core.shape_rig.surface import SurfaceError


def grid(size: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """A bent sheet: points (N, 3) and triangles."""
    u, v = (each.ravel() for each in np.meshgrid(np.linspace(-1, 1, size), np.linspace(-1, 1, size)))
    points = np.stack([u, v, 0.3 * np.cos(u) + 0.1 * v**2], axis=1)
    corners = np.arange(size * size).reshape(size, size)
    a, b, c, d = (part.ravel() for part in (corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]))
    return points, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)


def two_bones(shape_count: int = 3, seed: int = 0):
    """A sheet, and shapes made by two rigid bones with weights that pass from one to the other."""
    points, triangles = grid()
    random = np.random.default_rng(seed)
    share = np.clip(0.5 + 0.8 * points[:, 0], 0.0, 1.0)
    bones, weights = np.tile([0, 1], (len(points), 1)), np.stack([1.0 - share, share], axis=1)
    deltas = []
    for _ in range(shape_count):
        transforms = motions(random.normal(0, 0.08, (2, 3)), random.normal(0, 0.1, (2, 3))) + np.eye(3, 4)
        deltas.append(skin_frame(points, bones, weights, transforms) - points)
    return Shapes(points, np.array(deltas, np.float32), triangles)


def played(shapes: Shapes, rig, values) -> np.ndarray:
    return skin_frame(shapes.rest, rig.bones, rig.weights, rig.transforms(np.asarray(values, float)))


def test_shapes_of_two_bones_come_back():
    shapes = two_bones()
    rig = solve_shapes(shapes, Settings(bone_count=2, max_influences=2))
    for number, delta in enumerate(shapes.deltas):
        error = np.abs(played(shapes, rig, np.eye(3)[number]) - shapes.rest - delta).mean()
        assert error < 0.03 * np.abs(delta).mean()


def test_neutral_is_exact():
    shapes = two_bones()
    rig = solve_shapes(shapes, Settings(bone_count=3))
    np.testing.assert_allclose(played(shapes, rig, np.zeros(3)), shapes.rest, atol=1e-14)


def test_weights_are_convex_and_few():
    rig = solve_shapes(two_bones(6), Settings(bone_count=6, max_influences=3))
    assert rig.bones.shape == rig.weights.shape == (144, 3)
    assert rig.weights.min() >= 0
    np.testing.assert_allclose(rig.weights.sum(axis=1), 1.0)


def test_mixture_is_near_the_sum_of_shapes():
    shapes = two_bones()
    rig = solve_shapes(shapes, Settings(bone_count=2, max_influences=2))
    values = [0.6, 0.3, 0.5]
    wanted = np.tensordot(values, shapes.deltas, 1)
    assert np.abs(played(shapes, rig, values) - shapes.rest - wanted).mean() < 0.1 * np.abs(wanted).mean()


def test_size_and_place_do_not_matter():
    shapes = two_bones()
    other = Shapes(100.0 * shapes.rest + [500.0, -70.0, 3.0], 100.0 * shapes.deltas, shapes.triangles)
    settings = Settings(bone_count=3, max_influences=2)
    one, hundred = (
        np.array([played(each, solve_shapes(each, settings), row) - each.rest for row in np.eye(3)])
        for each in (shapes, other)
    )
    np.testing.assert_allclose(hundred / 100.0, one, atol=0.02 * np.abs(shapes.deltas).max())


def test_orientation_and_order_do_not_matter():
    shapes = two_bones()
    turn = rotations(np.array([0.7, -0.4, 0.9]))
    order = [2, 0, 1]
    other = Shapes(shapes.rest @ turn.T, (shapes.deltas @ turn.T)[order].astype(np.float32), shapes.triangles)
    rig = solve_shapes(other, Settings(bone_count=2, max_influences=2))
    for number, delta in enumerate(other.deltas):
        error = np.abs(played(other, rig, np.eye(3)[number]) - other.rest - delta).mean()
        assert error < 0.05 * np.abs(delta).mean()


def test_same_result_every_time():
    first, second = (solve_shapes(two_bones(), Settings(bone_count=4)) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.turns, second.turns)


def test_surface_turns_normals_less():
    random = np.random.default_rng(4)
    points, triangles = grid(16)
    waves = [np.sin(points[:, [0]] * f + p) * random.normal(0, 0.1, 3) for f, p in random.uniform(1, 6, (5, 2))]
    shapes = Shapes(points, np.array(waves, np.float32), triangles)
    measure = SurfaceError(points, triangles, 0.0, 1.0)
    turned = []
    for surface in (0.0, 1.0):
        rig = solve_shapes(shapes, Settings(bone_count=5, max_influences=3, surface=surface))
        errors = np.stack([played(shapes, rig, row) for row in np.eye(5)], axis=2) - points[:, :, None]
        turned.append(measure.densities(errors - shapes.deltas.transpose(1, 2, 0))[1].sum())
    assert turned[1] < 0.8 * turned[0]


def test_loose_points_and_idle_shapes_are_solved():
    shapes = two_bones()
    deltas = np.concatenate([shapes.deltas, np.zeros_like(shapes.deltas[:1])])
    rig = solve_shapes(Shapes(shapes.rest, deltas, np.empty((0, 3), np.int32)), Settings(bone_count=4))
    np.testing.assert_allclose(played(shapes, rig, [0, 0, 0, 1]), shapes.rest, atol=1e-6)


def test_one_vertex_that_moves():
    points, triangles = grid(4)
    deltas = np.zeros((1, 16, 3), np.float32)
    deltas[0, 5] = 0.0, 0.0, 1.0
    rig = solve_shapes(Shapes(points, deltas, triangles), Settings(bone_count=2, max_influences=2, surface=0.0))
    assert np.abs(played(Shapes(points, deltas, triangles), rig, [1.0]) - points - deltas[0]).max() < 0.05


@pytest.mark.parametrize(
    ("change", "settings", "error", "text"),
    [
        (lambda d: d * 0, {}, BadAnimation, "Nothing moves"),
        (lambda d: d * np.nan, {}, BadMesh, "not a number"),
        (lambda d: d[:0], {}, BadAnimation, "Nothing moves"),
        (lambda d: d, {"bone_count": 145}, BadSettings, "144 vertices, too few for 145 bones"),
    ],
)
def test_bad_input_is_refused(change, settings, error, text):
    shapes = two_bones()
    with pytest.raises(error, match=text):
        solve_shapes(Shapes(shapes.rest, change(shapes.deltas), shapes.triangles), Settings(**settings))


@pytest.mark.parametrize(
    "given",
    [{"bone_count": 0}, {"max_influences": 0}, {"surface": 1.5}, {"sparsity": -0.1}, {"bone_kind": "AFFINE"}],
)
def test_settings_that_make_no_sense(given):
    with pytest.raises(BadSettings):
        Settings(**given)


def test_progress_cancels():
    with pytest.raises(Cancelled):
        solve_shapes(two_bones(), Settings(bone_count=2), lambda fraction, stage: fraction < 0.5)


def test_turns_are_rotations_there_and_back():
    turns = np.random.default_rng(1).normal(0, 0.5, (7, 3))
    matrices = rotations(turns)
    np.testing.assert_allclose(matrices @ matrices.transpose(0, 2, 1), np.tile(np.eye(3), (7, 1, 1)), atol=1e-14)
    np.testing.assert_allclose(turns_of(matrices), turns, atol=1e-12)


def test_slopes_are_those_of_motions():
    random, step = np.random.default_rng(2), 1e-6
    turns, moves = random.normal(0, 0.5, (2, 3)), random.normal(0, 1, (2, 3))
    slopes = _slopes(turns)
    for k, change in enumerate(np.eye(3) * step):
        by_turn = (motions(turns + change, moves) - motions(turns - change, moves)) / (2 * step)
        by_move = (motions(turns, moves + change) - motions(turns, moves - change)) / (2 * step)
        np.testing.assert_allclose(slopes[..., k], by_turn.reshape(2, 12), atol=1e-8)
        np.testing.assert_allclose(slopes[..., 3 + k], by_move.reshape(2, 12), atol=1e-8)


def test_moved_pivots_leave_shapes():
    random = np.random.default_rng(3)
    turns, moves, shift = random.normal(0, 0.4, (2, 4, 3)), random.normal(0, 1, (2, 4, 3)), random.normal(0, 1, (4, 3))
    point = random.normal(0, 1, 3)
    before, after = motions(turns, moves), motions(turns, about(turns, moves, shift))
    np.testing.assert_allclose(
        before[..., :3] @ point + before[..., 3],
        np.einsum("spij,pj->spi", after[..., :3], point - shift) + after[..., 3],
    )


def test_motions_are_fitted_to_exact_data():
    random = np.random.default_rng(5)
    design = random.normal(0, 1, (200, 24))
    turns, moves = random.normal(0, 0.2, (3, 2, 3)), random.normal(0, 1, (3, 2, 3))
    entries = motions(turns, moves).reshape(3, -1)
    normal, right = design.T @ design, entries @ design.T @ design
    found = fit_motions(normal, right, np.zeros(2), 0 * turns, 0 * moves, np.ones((3, 2), bool))
    np.testing.assert_allclose(found[0], turns, atol=1e-3)
    np.testing.assert_allclose(found[1], moves, atol=1e-3)


def test_cheapest_motion_is_dropped():
    random = np.random.default_rng(7)
    normal, right = overlapping(random)
    everything, hold = np.ones((2, 4), bool), np.zeros(4)
    turns, moves, errors = fit_motions(normal, right, hold, np.zeros((2, 4, 3)), np.zeros((2, 4, 3)), everything)
    costs = np.empty((2, 4))
    for shape, bone in np.ndindex(costs.shape):
        without = everything.copy()
        without[shape, bone] = False
        costs[shape, bone] = fit_motions(normal, right, hold, turns, moves, without)[2].sum() - errors.sum()
    first, second = np.sort(costs, axis=None)[:2]
    kept = drop_motions(normal, hold, turns, moves, everything, np.ones(2), 0.9 * first)
    assert kept.all()
    dropped = drop_motions(normal, hold, turns, moves, everything, np.ones(2), min(1.1 * first, first + 0.9 * second))
    assert (~dropped).sum() == 1
    assert np.argmin(dropped) == np.argmin(costs)


def overlapping(random):
    """The equations of two shapes with four bones that can stand in for each other, and small motions."""
    design = random.normal(0, 1, (150, 48))
    design += 0.5 * design[:, random.permutation(48)]
    entries = motions(random.normal(0, 0.02, (2, 4, 3)), random.normal(0, 0.05, (2, 4, 3))).reshape(2, -1)
    return design.T @ design, entries @ design.T @ design


def test_dropped_motions_follow_importance_and_leave_one_in_each_shape():
    normal, right = overlapping(np.random.default_rng(8))
    right[1] *= 1e-3
    everything, hold = np.ones((2, 4), bool), np.zeros(4)
    turns, moves, _ = fit_motions(normal, right, hold, np.zeros((2, 4, 3)), np.zeros((2, 4, 3)), everything)
    assert drop_motions(normal, hold, turns, moves, everything, np.ones(2), 1e30).sum(axis=1).tolist() == [1, 1]
    limit = 1e-3 * float(np.einsum("si,si->s", right, motions(turns, moves).reshape(2, -1))[0])
    small = drop_motions(normal, hold, turns, moves, everything, np.ones(2), limit)
    weighed = drop_motions(normal, hold, turns, moves, everything, np.array([1.0, 1e9]), limit)
    assert small.sum(axis=1).tolist() == [4, 1]
    assert weighed.all()


def test_shapes_move_only_the_bones_that_they_need():
    shapes = two_bones(5)
    counts = []
    for sparsity in (0.0, 1.0):
        rig = solve_shapes(shapes, Settings(bone_count=6, max_influences=3, sparsity=sparsity))
        moved = np.any((rig.turns != 0) | (rig.moves != 0), axis=2)
        assert moved.any(axis=1).all()
        counts.append(moved.sum())
        assert rig.motion_share == moved.mean()
    assert counts[0] == 30
    assert counts[1] < 30


def test_surface_error_is_its_densities():
    points, triangles = grid(6)
    surface = SurfaceError(points, triangles, 0.3, 0.7)
    errors = np.random.default_rng(6).normal(0, 1, (36, 3, 2))
    distances, rough = surface.densities(errors)
    np.testing.assert_allclose(surface.of(errors), distances.sum() + rough.sum())
    # Moved as one, no normal turns.
    assert surface.densities(np.ones((36, 3, 2)))[1].max() < 1e-20


def test_bones_are_shared_by_what_one_bone_leaves():
    bent, nothing = two_bones(), np.zeros((0, 3), np.int32)
    points = bent.rest[:3]
    turned = points @ (motions(np.array([[0.3, 0.1, 0.0]]), np.zeros((1, 3)))[0, :, :3] + np.eye(3)).T - points
    eye = Shapes(points, turned[None].astype(np.float32), nothing)
    assert share_bones([bent, eye], 9) == [8, 1]
    assert share_bones([bent, bent], 9) == [5, 4]
    # No more than vertices.
    assert share_bones([eye, Shapes(points[:2], eye.deltas[:, :2], nothing)], 5) == [3, 2]
    with pytest.raises(BadSettings, match="Ask for at least 2"):
        share_bones([bent, eye], 1)
