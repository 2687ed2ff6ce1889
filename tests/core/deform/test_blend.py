# SPDX-License-Identifier: GPL-3.0-or-later
"""Skinning of points: properties of every method, and the differences between them."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.deform import (
    METHODS,
    convex_influences,
    skin_frame,
    skin_frames,
    vertex_transforms,
)
from skinning_tools.core.errors import BadSettings, BadWeights, Cancelled
from skinning_tools.core.rotation_centers import bake_rotation_centers
from skinning_tools.core.rotations import polar_decomposition

from ..skinned_shapes import about, chain_weights, cuboid, dense, volume

JOINTS = (2.0, 4.0)


def problem(seed, count=40, bone_count=6, influences=4, kind="rigid"):
    """Rest, bones, weights, matrices (P, 3, 4), centers."""
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(count)], np.int32)
    weights = random.dirichlet(np.ones(influences), count)
    matrices = random.normal(size=(bone_count, 3, 4))
    if kind == "rigid":
        matrices[..., :3] = Rotation.random(bone_count, random_state=seed).as_matrix()
    rest, centers = random.normal(size=(2, count, 3))
    return rest, bones, weights, matrices, centers


def apply(matrices, points):
    return np.einsum("...ij,...j->...i", matrices[..., :3], points) + matrices[..., 3]


kinds = st.sampled_from(["rigid", "affine"])


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10_000), kind=kinds)
@settings(deadline=None, max_examples=25)
def test_a_motion_shared_by_all_bones_is_reproduced(method, seed, kind):
    rest, bones, weights, matrices, centers = problem(seed, kind=kind)
    matrices[:] = matrices[:1]
    expected = apply(matrices[0], rest)
    np.testing.assert_allclose(
        skin_frame(rest, bones, weights, matrices, method, centers), expected, atol=1e-11 * np.abs(expected).max()
    )


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10_000), kind=kinds)
@settings(deadline=None, max_examples=25)
def test_one_bone_a_vertex_is_rigid_skinning(method, seed, kind):
    """The result does not depend on the center or on unused slots."""
    rest, bones, weights, matrices, centers = problem(seed, kind=kind)
    weights[:] = [0, 1, 0, 0]
    expected = apply(matrices[bones[:, 1]], rest)
    result = skin_frame(rest, bones, weights, matrices, method, centers)
    np.testing.assert_allclose(result, expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=25)
def test_a_rigid_motion_of_the_whole_pose_carries_over(method, seed):
    rest, bones, weights, matrices, centers = problem(seed)
    motion = np.column_stack([Rotation.random(random_state=seed + 1).as_matrix(), [1.0, -2.0, 3.0]])
    moved = np.concatenate([motion[:, :3] @ matrices[..., :3], apply(motion, matrices[..., 3])[..., None]], axis=-1)
    before = skin_frame(rest, bones, weights, matrices, method, centers)
    after = skin_frame(rest, bones, weights, moved, method, centers)
    usable = decided(bones, weights, matrices)
    np.testing.assert_allclose(after[usable], apply(motion, before)[usable], atol=1e-9)


@given(st.integers(0, 10_000), kinds)
@settings(deadline=None, max_examples=25)
def test_linear_blend_is_the_weighted_mean(seed, kind):
    rest, bones, weights, matrices, _ = problem(seed, kind=kind)
    expected = np.einsum("nk,nki->ni", weights, apply(matrices[bones], rest[:, None]))
    np.testing.assert_allclose(skin_frame(rest, bones, weights, matrices), expected, atol=1e-12)


def algorithm_1(vertex, weights, matrices):
    """The paper's, for one vertex and rigid bones, with dual quaternions of scipy's rotations (scalar first)."""

    def multiply(a, b):
        scalar = a[0] * b[0] - a[1:] @ b[1:]
        return np.array([scalar, *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])

    total = np.zeros(8)
    for weight, matrix in zip(weights, matrices, strict=True):
        real = np.roll(Rotation.from_matrix(matrix[:, :3]).as_quat(), 1)
        dual = 0.5 * multiply(np.array([0, *matrix[:, 3]]), real)
        unit = np.concatenate([real, dual])
        total += weight * unit * (-1 if unit[:4] @ total[:4] < 0 else 1)
    total /= np.linalg.norm(total[:4])
    translation = 2 * multiply(total[4:], total[:4] * [1, -1, -1, -1])[1:]
    return Rotation.from_quat(np.roll(total[:4], -1)).apply(vertex) + translation


def algorithm_2(vertex, center, weights, matrices):
    total = np.zeros(4)
    for weight, matrix in zip(weights, matrices, strict=True):
        unit = Rotation.from_matrix(matrix[:, :3]).as_quat()
        total += weight * unit * (-1 if unit @ total < 0 else 1)
    rotation = Rotation.from_quat(total)
    blended = np.einsum("k,kij->ij", weights, matrices)
    return rotation.apply(vertex) + blended[:, :3] @ center + blended[:, 3] - rotation.apply(center)


def decided(bones, weights, matrices):
    """(n,) where no two bones are half a turn apart but for 1e-5, so that the paper's rule has one answer."""
    quaternions = Rotation.from_matrix(matrices[:, :, :3]).as_quat()
    result = np.ones(len(bones), bool)
    for vertex in range(len(bones)):
        total = np.zeros(4)
        for weight, unit in zip(weights[vertex], quaternions[bones[vertex]], strict=True):
            if total.any() and weight:
                result[vertex] &= abs(unit @ total) > 1e-5 * np.linalg.norm(total)
            total += weight * unit * (-1 if unit @ total < 0 else 1)
    return result


@given(st.integers(0, 10_000), st.sampled_from([0.0, 3.0, 9.0, 14.0]))
@example(1747, 0.0)
@settings(deadline=None, max_examples=25)
def test_the_papers_algorithms(seed, powers):
    """With weights of many powers of ten, too, in any order of the slots."""
    rest, bones, weights, matrices, centers = problem(seed)
    weights *= 10.0 ** -np.random.default_rng(seed).uniform(0, max(powers, 1e-300), weights.shape)
    weights /= weights.sum(axis=1, keepdims=True)
    usable = decided(bones, weights, matrices)
    assert usable.mean() > 0.5
    dual = [algorithm_1(rest[i], weights[i], matrices[bones[i]]) for i in range(len(rest))]
    shown = skin_frame(rest, bones, weights, matrices, "DQS")
    np.testing.assert_allclose(shown[usable], np.array(dual)[usable], atol=1e-10)
    turned = [algorithm_2(rest[i], centers[i], weights[i], matrices[bones[i]]) for i in range(len(rest))]
    shown = skin_frame(rest, bones, weights, matrices, "CRS", centers)
    np.testing.assert_allclose(shown[usable], np.array(turned)[usable], atol=1e-10)


def test_quaternions_of_either_sign():
    """Two bones that are 200° apart about one axis: half-way lies on the short way round, the far side."""
    turn = Rotation.from_rotvec([[0, 0, -100], [0, 0, 100]], degrees=True).as_matrix()
    matrices = np.concatenate([turn, np.zeros((2, 3, 1))], axis=-1)
    rest, bones, weights = np.array([[1.0, 0, 0]]), np.array([[0, 1]]), np.array([[0.5, 0.5]])
    for method in ("DQS", "CRS"):
        result = skin_frame(rest, bones, weights, matrices, method, np.zeros((1, 3)))
        np.testing.assert_allclose(result, [[-1.0, 0, 0]], atol=1e-12)


@pytest.mark.parametrize("method", ["DQS", "CRS"])
@pytest.mark.parametrize("seed", range(20))
def test_bones_half_a_turn_apart_turn_all_vertices_to_one_side(method, seed):
    """Their quaternions are at right angles except for rounding, which must not choose the side per vertex."""
    first = Rotation.random(random_state=seed)
    second = first * Rotation.from_rotvec(np.pi * np.array([1.0, 0, 0]))
    matrices = np.zeros((2, 3, 4))
    matrices[..., :3] = first.as_matrix(), second.as_matrix()
    places = np.linspace(0.2, 0.8, 200)
    rest = np.stack([places, np.full(200, 0.5), np.zeros(200)], axis=1)
    bones, weights = np.tile([0, 1], (200, 1)), np.stack([1 - places, places], axis=1)
    shown = skin_frame(rest, bones, weights, matrices, method, rest * [1, 0, 0])
    assert np.linalg.norm(np.diff(shown, axis=0), axis=1).max() < 0.02


@pytest.mark.parametrize("method", ["DQS", "CRS"])
@pytest.mark.parametrize("seed", range(20))
def test_rounding_does_not_choose_the_way_of_half_a_turn(method, seed):
    """Matrices in single precision give what those in double precision do."""
    random = np.random.default_rng(seed)
    axis = np.roll([1.0, 0, 0], seed) if seed < 3 else random.normal(size=3)
    exact = np.zeros((2, 3, 4))
    exact[..., :3] = np.eye(3), Rotation.from_rotvec(np.pi * axis / np.linalg.norm(axis)).as_matrix()
    rest, centers = random.normal(size=(2, 30, 3))
    bones, weights = np.tile([0, 1], (30, 1)), random.dirichlet([1, 1], 30)
    wanted = skin_frame(rest, bones, weights, exact, method, centers)
    for _ in range(10):
        rounded = exact + 3e-7 * random.uniform(-1, 1, exact.shape)
        np.testing.assert_allclose(skin_frame(rest, bones, weights, rounded, method, centers), wanted, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_matrices_that_are_not_numbers(method, value):
    rest, bones, weights, matrices, centers = problem(0)
    matrices[3, 1, 2] = value
    with pytest.raises(BadWeights, match="matrix of bone 3 is not a number"):
        skin_frame(rest, bones, weights, matrices, method, centers)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["rigid", "affine"])
def test_transforms_take_the_rest_pose_to_the_frame(method, kind):
    rest, bones, weights, matrices, centers = problem(4, count=20_000, kind=kind)
    transforms = vertex_transforms(rest, bones, weights, matrices, method, centers)
    expected = skin_frame(rest, bones, weights, matrices, method, centers)
    np.testing.assert_allclose(apply(transforms, rest), expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("method", ["DQS", "CRS"])
def test_linear_parts_are_blended_rotation_times_blended_stretch(method):
    rest, bones, weights, matrices, centers = problem(5, kind="affine")
    _, stretches = polar_decomposition(matrices[..., :3])
    linear = vertex_transforms(rest, bones, weights, matrices, method, centers)[..., :3]
    blended = np.einsum("nk,nkij->nij", weights, stretches[bones])
    rotations = linear @ np.linalg.inv(blended)
    np.testing.assert_allclose(
        np.swapaxes(rotations, -1, -2) @ rotations, np.broadcast_to(np.eye(3), rotations.shape), atol=1e-7
    )


def test_a_vertex_at_its_center_moves_linearly():
    rest, bones, weights, matrices, _ = problem(6, kind="affine")
    np.testing.assert_allclose(
        skin_frame(rest, bones, weights, matrices, "CRS", rest), skin_frame(rest, bones, weights, matrices), atol=1e-11
    )


@pytest.mark.parametrize("method", METHODS)
def test_vertices_without_weights_stay(method):
    rest, bones, weights, matrices, centers = problem(7)
    weights[::3] = 0
    result = skin_frame(rest, bones, weights, matrices, method, centers)
    np.testing.assert_array_equal(result[::3], rest[::3])
    assert np.abs(result - rest)[1::3].min() > 0


@pytest.mark.parametrize("method", METHODS)
def test_frames_are_single_frames(method):
    rest, bones, weights, matrices, centers = problem(8, count=9000)
    poses = np.stack([matrices, matrices[::-1], matrices * 2])
    frames = skin_frames(rest, bones, weights, poses, method, centers)
    assert frames.dtype == np.float32
    for frame, pose in zip(frames, poses, strict=True):
        expected = skin_frame(rest, bones, weights, pose, method, centers)
        np.testing.assert_array_equal(frame, expected.astype(np.float32))


def test_frames_can_be_cancelled():
    rest, bones, weights, matrices, _ = problem(9)
    with pytest.raises(Cancelled):
        skin_frames(rest, bones, weights, np.stack([matrices] * 4), progress=lambda fraction, stage: fraction < 0.5)


def test_unknown_methods_and_missing_centers():
    rest, bones, weights, matrices, centers = problem(10)
    with pytest.raises(BadSettings, match="LBS, DQS, CRS"):
        skin_frame(rest, bones, weights, matrices, "SBS")
    with pytest.raises(BadWeights, match="Bake them"):
        skin_frame(rest, bones, weights, matrices, "CRS")
    with pytest.raises(BadWeights, match="Bake them"):
        skin_frame(rest, bones, weights, matrices, "CRS", centers[:-1])


@given(st.integers(0, 1000), st.floats(0.01, 100))
@settings(deadline=None, max_examples=25)
def test_weights_are_divided_by_their_sum(seed, factor):
    _, bones, weights, _, _ = problem(seed)
    weights[0] = 0
    _, convex = convex_influences(bones, weights * factor, len(bones))
    np.testing.assert_allclose(convex, weights, atol=1e-12)
    np.testing.assert_array_equal(convex[0], 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda bones, weights: (bones, weights - 2), "Vertex 0"),
        (lambda bones, weights: (bones, np.where(np.arange(40)[:, None] == 7, np.nan, weights)), "Vertex 7"),
        (lambda bones, weights: (bones + 3, weights), "not among the armature's 6"),
        (lambda bones, weights: (bones - 1, weights), "refers to a bone"),
        (lambda bones, weights: (bones[1:], weights[1:]), "do not fit"),
        (lambda bones, weights: (bones[:, 1:], weights), "do not fit"),
    ],
)
def test_unusable_influences(change, message):
    _, bones, weights, _, _ = problem(11)
    with pytest.raises(BadWeights, match=message):
        convex_influences(*change(bones, weights), 40, 6, "The Flag")


def bent_bar(rotation, joint):
    """The rest of the bar, its triangles, and by method the positions after all beyond a joint is turned about it."""
    rest, triangles = cuboid()
    bones, weights = chain_weights(rest[:, 0], JOINTS)
    centers, _ = bake_rotation_centers(rest, triangles, bones, weights)
    turned = about(rotation.as_matrix(), [JOINTS[joint], 0, 0])
    matrices = np.stack([turned if bone > joint else np.eye(3, 4) for bone in range(3)])
    shown = {method: skin_frame(rest, bones, weights, matrices, method, centers) for method in METHODS}
    return rest, triangles, shown


def test_twist_of_half_a_turn():
    """The paper's figure 6, left: linear blending draws the bar to a point, the others keep it."""
    rest, triangles, shown = bent_bar(Rotation.from_euler("x", 180, degrees=True), 0)
    whole = volume(rest, triangles)
    assert whole == pytest.approx(6)
    kept = {method: volume(points, triangles) / whole for method, points in shown.items()}
    assert kept["LBS"] < 0.85
    assert kept["DQS"] == pytest.approx(1, abs=0.02)
    assert kept["CRS"] == pytest.approx(1, abs=0.02)
    at_joint = np.isclose(rest[:, 0], JOINTS[0])
    width = {method: np.linalg.norm(points[at_joint, 1:], axis=1).max() for method, points in shown.items()}
    assert width["LBS"] < 1e-6
    assert width["CRS"] == pytest.approx(np.sqrt(0.5), rel=1e-3)
    assert width["DQS"] == pytest.approx(np.sqrt(0.5), rel=1e-3)


@pytest.mark.parametrize("degrees", [60, 90, 120])
def test_centers_of_rotation_bulge_less_at_a_bend(degrees):
    """The paper's figure 6, right: on the outside of the bend, dual quaternions bulge and centres of rotation less."""
    rotation = Rotation.from_euler("z", degrees, degrees=True)
    rest, triangles, shown = bent_bar(rotation, 1)
    joint = np.array([JOINTS[1], 0, 0])
    end = joint + rotation.apply([2, 0, 0])
    outside = np.isclose(rest[:, 1], -0.5) & (np.abs(rest[:, 0] - JOINTS[1]) < 1)

    def to_segment(points, start, stop):
        along = np.clip((points - start) @ (stop - start) / ((stop - start) @ (stop - start)), 0, 1)
        return np.linalg.norm(points - start - along[:, None] * (stop - start), axis=1)

    bulge, kept = {}, {}
    for method, points in shown.items():
        flat = points[outside] * [1, 1, 0]
        bulge[method] = np.minimum(to_segment(flat, np.zeros(3), joint), to_segment(flat, joint, end)).max() - 0.5
        kept[method] = volume(points, triangles) / volume(rest, triangles)
    assert 0 < bulge["CRS"] < bulge["DQS"]
    assert kept["LBS"] < kept["CRS"]
    assert kept["CRS"] == pytest.approx(1, abs=0.02)
    if degrees == 120:
        assert bulge["CRS"] < 0.5 * bulge["DQS"]


def test_weights_of_the_human_rig_move_as_its_formula_says(shared_data):
    data = np.load(shared_data("human_rig.npz"))
    rest, matrices = data["rest"].astype(float), data["shamble_matrices"][7].astype(float)
    bones, weights = convex_influences(data["influence_bones"], data["influence_weights"], len(rest), len(matrices))
    blended = np.einsum("np,pij->nij", dense(bones, weights, len(matrices)), matrices)
    np.testing.assert_allclose(skin_frame(rest, bones, weights, matrices), apply(blended, rest), atol=1e-9)
    for method in ("DQS", "CRS"):
        points = skin_frame(rest, bones, weights, matrices, method, rest)
        assert np.isfinite(points).all()
