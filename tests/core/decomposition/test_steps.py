# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a sweep, each against plain least squares on full-length vectors."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.decomposition import rigid
from skinning_tools.core.decomposition.bone_model import BoneModel, homogeneous
from skinning_tools.core.decomposition.rest_pose import blended_system, fit_rest_positions, squared_errors
from skinning_tools.core.decomposition.transforms import NormalEquations, design_matrix, from_rows, to_rows
from skinning_tools.core.decomposition.vertex_step import VertexState, choose_among, choose_weights, improve_vertices

RANDOM = np.random.default_rng()


@pytest.fixture(autouse=True)
def _same_numbers():
    """The limit is the same for each test, whichever tests ran before."""
    global RANDOM
    RANDOM = np.random.default_rng(11)


def scene(bones=6, vertices=80, frames=7, influences=3):
    """Random bones, weights, rest pose and data with no structure at all."""
    transforms = RANDOM.normal(size=(frames, bones, 3, 4))
    indices = np.stack([RANDOM.permutation(bones)[:influences] for _ in range(vertices)]).astype(np.int32)
    weights = RANDOM.dirichlet(np.ones(influences), size=vertices)
    rest = RANDOM.normal(size=(vertices, 3))
    data = RANDOM.normal(size=(vertices, 3 * frames))
    return transforms, indices, weights, rest, data


def skinned(transforms, indices, weights, rest):
    """(n, 3F) by formula (1), vertex by vertex."""
    rows = []
    for i in range(len(rest)):
        blend = sum(w * transforms[:, b] for b, w in zip(indices[i], weights[i], strict=True))
        rows.append((blend @ [*rest[i], 1]).ravel())
    return np.array(rows)


def equations_of(transforms, indices, weights, rest, data):
    equations = NormalEquations(transforms.shape[1], data.shape[1])
    for part in (slice(0, 30), slice(30, None)):
        equations.add(
            design_matrix(homogeneous(rest[part]), indices[part], weights[part], transforms.shape[1]), data[part]
        )
    return equations


def test_rows_and_matrices_are_the_same_transforms():
    transforms = RANDOM.normal(size=(5, 4, 3, 4))
    np.testing.assert_array_equal(from_rows(to_rows(transforms)), transforms)


def test_distances_of_bones_alone_are_whole_ones():
    """Of near vertices and of far ones, so that they compare between vertices, too."""
    transforms, _, _, rest, data = scene()
    sizes = np.geomspace(1e-3, 1e3, len(rest))[:, None]
    found = BoneModel(to_rows(transforms)).squared_distances(homogeneous(rest * sizes), data * sizes)
    for bone in range(transforms.shape[1]):
        alone = skinned(transforms, np.full((len(rest), 1), bone), np.ones((len(rest), 1)), rest * sizes)
        np.testing.assert_allclose(found[:, bone], np.sum((alone - data * sizes) ** 2, axis=1), rtol=1e-9)


def test_the_distance_of_a_bone_that_fits_is_none_and_never_less():
    transforms, indices, _, rest, _ = scene(influences=1)
    data = skinned(transforms, indices, np.ones(indices.shape), rest)
    own = np.take_along_axis(BoneModel(to_rows(transforms)).squared_distances(homogeneous(rest), data), indices, axis=1)
    assert own.min() >= 0
    assert np.all(own[:, 0] <= 1e-13 * np.sum(data**2, axis=1))


def test_rest_positions_are_the_least_squares_solution():
    transforms, indices, weights, rest, data = scene()
    model = BoneModel(to_rows(transforms))
    matrices, right = blended_system(model, model.data_products(data), indices, weights)
    moved = fit_rest_positions(matrices, right, homogeneous(rest))
    for i in range(len(rest)):
        blend = sum(w * transforms[:, b] for b, w in zip(indices[i], weights[i], strict=True)).reshape(-1, 4)
        best = np.linalg.lstsq(blend[:, :3], data[i] - blend[:, 3], rcond=None)[0]
        np.testing.assert_allclose(moved[i, :3], best, atol=1e-5)
    expected = np.sum((skinned(transforms, indices, weights, moved[:, :3]) - data) ** 2 - data**2, axis=1)
    np.testing.assert_allclose(squared_errors(matrices, right, moved), expected, atol=1e-9)


def test_rest_position_stays_where_the_bones_do_not_care():
    transforms, indices, weights, rest, data = scene()
    transforms[:, :, :, 2] = 0
    model = BoneModel(to_rows(transforms))
    matrices, right = blended_system(model, model.data_products(data), indices, weights)
    moved = fit_rest_positions(matrices, right, homogeneous(rest))
    np.testing.assert_allclose(moved[:, 2], rest[:, 2])
    assert np.abs(moved[:, :2] - rest[:, :2]).max() > 0.1


@pytest.mark.parametrize("bone_count", [6, 200])
def test_transforms_are_the_least_squares_solution(bone_count):
    """Dense and, with many bones, sparse X."""
    vertices = 40 * bone_count
    rest = RANDOM.normal(size=(vertices, 3))
    indices = RANDOM.integers(0, bone_count, size=(vertices, 2)).astype(np.int32)
    weights = RANDOM.dirichlet(np.ones(2), size=vertices)
    data = RANDOM.normal(size=(vertices, 6))
    design = design_matrix(homogeneous(rest), indices, weights, bone_count)
    equations = NormalEquations(bone_count, 6)
    equations.add(design, data)
    solved = equations.solve(np.zeros((4 * bone_count, 6)), 0.0)
    dense = np.asarray(design.todense()) if hasattr(design, "todense") else design
    np.testing.assert_allclose(solved, np.linalg.lstsq(dense, data, rcond=None)[0], atol=1e-8)
    expected = np.sum((dense @ solved - data) ** 2) - np.sum(data**2)
    assert equations.squared_error(solved) == pytest.approx(expected)


@pytest.mark.parametrize("hold", [0.0, 1e-9])
def test_directions_that_flat_cloth_leaves_open_stay_at_the_prior(hold):
    """All rest positions in one plane: the third direction of every bone is free."""
    transforms, indices, weights, rest, data = scene(bones=3, influences=1)
    rest[:, 2] = 0
    equations = equations_of(transforms, indices, weights, rest, data)
    prior = RANDOM.normal(size=(12, data.shape[1]))
    solved = equations.solve(prior, hold)
    np.testing.assert_allclose(solved[2::4], prior[2::4], atol=1e-6)
    best = np.sum((equations_residual(equations, solved)) ** 2)
    assert best < 1e-10 * np.sum(equations.products**2)


def equations_residual(equations, rows):
    return equations.moments @ rows - equations.products


def test_bone_without_vertices_keeps_its_motion():
    transforms, indices, weights, rest, data = scene(bones=4)
    indices[indices == 2] = 1
    equations = equations_of(transforms, indices, weights, rest, data)
    prior = RANDOM.normal(size=(16, data.shape[1]))
    np.testing.assert_allclose(equations.solve(prior, 1e-9)[8:12], prior[8:12], atol=1e-6)


@pytest.mark.parametrize("optimize_rest_pose", [False, True])
@pytest.mark.parametrize("influences", [1, 2, 4, 6])
def test_no_vertex_gets_worse(influences, optimize_rest_pose):
    transforms, indices, weights, rest, data = scene(bones=12, influences=influences)
    state = VertexState(homogeneous(rest), indices, weights)
    model = BoneModel(to_rows(transforms))
    last = np.sum((skinned(transforms, indices, weights, rest) - data) ** 2, axis=1)
    for _ in range(4):
        reported = improve_vertices(model, data, state, slice(None), optimize_rest_pose=optimize_rest_pose)
        error = np.sum((skinned(transforms, state.bones, state.weights, state.points[:, :3]) - data) ** 2, axis=1)
        np.testing.assert_allclose(reported, error - np.sum(data**2, axis=1), atol=1e-8)
        assert np.all(error <= last + 1e-9)
        last = error
        assert state.weights.min() >= 0
        np.testing.assert_allclose(state.weights.sum(axis=1), 1)
        unused = state.weights == 0
        assert np.all(state.bones[unused] == np.broadcast_to(state.bones[:, :1], unused.shape)[unused])
        assert np.all(np.diff(state.weights, axis=1) <= 0)


def test_bones_are_chosen_among_those_of_each_vertex_as_if_there_were_no_others():
    transforms, indices, weights, rest, data = scene(bones=12, influences=4)
    model, points = BoneModel(to_rows(transforms)), homogeneous(rest)
    allowed = np.zeros((len(rest), 12), dtype=bool)
    # From fewer bones than influences to more than are looked at.
    groups = [np.arange(first, len(rest), 4) for first in range(4)]
    sets = [np.array([3]), np.array([0, 7, 8]), np.array([1, 2, 4, 9, 10]), np.arange(2, 11)]
    for rows, mine in zip(groups, sets, strict=True):
        allowed[np.ix_(rows, mine)] = True
        indices[rows] = mine[np.arange(4) % len(mine)]
        weights[rows] = np.arange(4) == 0 if len(mine) < 4 else [0.4, 0.3, 0.2, 0.1]
    chosen, fitted, errors = choose_among(allowed, model, model.data_products(data), points, indices, weights)
    assert np.take_along_axis(allowed, chosen, axis=1).all()
    np.testing.assert_allclose(fitted.sum(axis=1), 1)
    for rows, mine in zip(groups, sets, strict=True):
        few = BoneModel(to_rows(transforms[:, mine]))
        given = few.data_products(data[rows]), points[rows], np.searchsorted(mine, indices[rows]), weights[rows]
        np.testing.assert_allclose(errors[rows], choose_weights(few, *given)[2], atol=1e-9)


def test_rigid_fit_finds_the_motion_of_rigid_parts():
    frames, bones = 6, 3
    motion = np.empty((frames, bones, 3, 4))
    motion[..., :3] = Rotation.random(frames * bones, random_state=4).as_matrix().reshape(frames, bones, 3, 3)
    motion[..., 3] = RANDOM.normal(size=(frames, bones, 3))
    rest = RANDOM.normal(size=(60, 3))
    indices = np.repeat(np.arange(3), 20)[:, None].astype(np.int32)
    weights = np.ones((60, 1))
    equations = equations_of(motion, indices, weights, rest, skinned(motion, indices, weights, rest))
    np.testing.assert_allclose(rigid.fit_alone(equations.products, equations.bone_moments), motion, atol=1e-10)


@pytest.mark.parametrize("scaled", [False, True])
def test_rigid_sweeps_lower_the_error_to_a_stationary_point(scaled):
    transforms, indices, weights, rest, data = scene(bones=4, vertices=200)
    equations = equations_of(transforms, indices, weights, rest, data)
    axes = np.linalg.qr(RANDOM.normal(size=(4, 3, 3)))[0] if scaled else None
    motion = rigid.fit_alone(equations.products, equations.bone_moments)
    errors = [equations.squared_error(to_rows(motion))]
    for _ in range(400):
        motion = rigid.sweep(equations, motion, axes)
        errors.append(equations.squared_error(to_rows(motion)))
    assert np.all(np.diff(errors) <= 1e-9 * abs(errors[0]))
    assert errors[0] - errors[-1] > 1e6 * (errors[-2] - errors[-1])
    linear = motion[..., :3]
    if scaled:
        metric = axes.transpose(0, 2, 1) @ (linear.transpose(0, 1, 3, 2) @ linear) @ axes
        off_diagonal = metric * (1 - np.eye(3))
        np.testing.assert_allclose(off_diagonal, 0, atol=1e-9)
        assert np.abs(np.linalg.norm(linear @ axes, axis=-2) - 1).max() > 0.1
    else:
        np.testing.assert_allclose(
            linear @ linear.transpose(0, 1, 3, 2), np.broadcast_to(np.eye(3), linear.shape), atol=1e-9
        )
    assert np.all(np.linalg.det(linear) > 0)
    # No small turn or shift of any bone in any frame lowers the error any further.
    for _ in range(30):
        turned = motion.copy()
        small = Rotation.from_rotvec(RANDOM.normal(size=(motion.shape[0] * 4, 3)) * 1e-4).as_matrix()
        turned[..., :3] = small.reshape(linear.shape) @ linear
        turned[..., 3] += RANDOM.normal(size=(*motion.shape[:2], 3)) * 1e-4
        assert equations.squared_error(to_rows(turned)) > errors[-1] - 1e-6 * abs(errors[-1])


def test_nearest_motion_leaves_motions_of_its_kind_alone():
    motion = RANDOM.normal(size=(5, 3, 3, 4))
    rotations = Rotation.random(15, random_state=1).as_matrix().reshape(5, 3, 3, 3)
    motion[..., :3] = rotations
    np.testing.assert_allclose(rigid.nearest(motion), motion, atol=1e-12)
    axes = Rotation.random(3, random_state=2).as_matrix()
    scales = RANDOM.uniform(0.5, 2, size=(5, 3, 1, 3))
    motion[..., :3] = (rotations * scales) @ axes.transpose(0, 2, 1)
    np.testing.assert_allclose(rigid.nearest(motion, axes), motion, atol=1e-12)


def swinging_rods(frames=60, bones=3, noise=0.0):
    """Straight rods, a bone each, that turn by less than 4 degrees a frame: their equations, and the motions."""
    times = 0.1 * np.arange(frames)[:, None] + np.arange(bones)
    tilt, heading = 0.5 * np.sin(times), 0.6 * times
    directions = np.stack([np.sin(tilt) * np.cos(heading), np.sin(tilt) * np.sin(heading), np.cos(tilt)], axis=-1)
    along = np.linspace(-0.5, 0.5, 30)
    frames_of_rods = (directions[:, :, None] * along[:, None]).reshape(frames, -1, 3)
    rounded = frames_of_rods + noise * np.random.default_rng(0).normal(size=frames_of_rods.shape)
    indices = np.repeat(np.arange(bones), len(along))[:, None].astype(np.int32)
    data = rounded.astype(np.float32).astype(float).transpose(1, 0, 2).reshape(len(indices), -1)
    still = np.zeros((frames, bones, 3, 4))
    return equations_of(still, indices, np.ones(indices.shape), rounded[0], data)


def largest_turn(rotations):
    """Degrees between neighbouring frames of rotations (F, P, 3, 3)."""
    steps = rotations[:-1].swapaxes(-1, -2) @ rotations[1:]
    return np.degrees(np.arccos(np.clip((np.trace(steps, axis1=-2, axis2=-1) - 1) / 2, -1, 1))).max()


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_a_straight_rod_does_not_twist_at_random(noise):
    """Its vertices leave the turn about its own axis open, which is then as small from frame to frame as can be."""
    equations = swinging_rods(noise=noise)
    motion = rigid.fit_alone(equations.products, equations.bone_moments)
    assert largest_turn(motion[..., :3]) < 5
    for _ in range(10):
        motion = rigid.sweep(equations, motion)
    assert largest_turn(motion[..., :3]) < 5


def test_a_scaled_rod_does_not_twist_at_random():
    equations = swinging_rods()
    motion = rigid.fit_alone(equations.products, equations.bone_moments)
    axes = rigid.stretch_axes(motion, equations.bone_moments)
    for _ in range(10):
        motion = rigid.sweep(equations, motion, axes)
    stretched = motion[..., :3] @ axes
    scales = np.linalg.norm(stretched, axis=-2)
    np.testing.assert_allclose(scales, 1, atol=1e-5)
    assert largest_turn(stretched / scales[..., None, :]) < 5


def test_vertices_in_one_place_do_not_turn():
    place, data = RANDOM.normal(size=3), RANDOM.normal(size=15)
    bones, weights = np.zeros((40, 1), np.int32), np.ones((40, 1))
    equations = equations_of(np.zeros((5, 1, 3, 4)), bones, weights, np.tile(place, (40, 1)), np.tile(data, (40, 1)))
    motion = rigid.sweep(equations, rigid.fit_alone(equations.products, equations.bone_moments))
    np.testing.assert_allclose(motion[..., :3], np.broadcast_to(np.eye(3), (5, 1, 3, 3)), atol=1e-2)
    np.testing.assert_allclose(motion @ [*place, 1], data.reshape(5, 1, 3), atol=1e-9)


def test_bones_that_stretch_alike_take_the_axes_of_their_shape():
    axes = Rotation.random(3, random_state=2).as_matrix()
    points = RANDOM.normal(size=(3, 400, 3)) * [0.1, 0.3, 1.0] @ axes.transpose(0, 2, 1)
    moments = np.einsum("pni,pnj->pij", *2 * [np.concatenate([points, np.ones((3, 400, 1))], axis=-1)])
    turned = np.zeros((6, 3, 3, 4))
    turned[..., :3] = Rotation.random(18, random_state=3).as_matrix().reshape(6, 3, 3, 3)
    found = rigid.stretch_axes(turned, moments)
    assert np.abs(np.einsum("pij,pij->pj", found, axes)).min() > 0.95
    turned[..., :3] = turned[..., :3] @ (np.eye(3) + np.diag([0, 0.5, 0]))
    assert np.abs(rigid.stretch_axes(turned, moments)[:, 1, 2]).min() > 0.95
