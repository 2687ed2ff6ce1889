# SPDX-License-Identifier: GPL-3.0-or-later
"""Mapping shapes back to the rest pose: exact where blends are regular; damped, bounded and continuous where not."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.deform import skin_frame, transformed_normals, vertex_transforms
from skinning_tools.core.eigenskin import rest_displacements
from skinning_tools.core.eigenskin.displacements import DAMPED_BELOW, damped_inverse
from skinning_tools.core.errors import Cancelled

from .posed_rigs import limb, random_turns


def random_blend(seed, vertex_count=30, bone_count=4):
    """rest, bones, weights, matrices (3, P, 3, 4) of rotated, scaled and sheared bones."""
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(bone_count, 2, replace=False) for _ in range(vertex_count)])
    weights = random.dirichlet([1, 1], vertex_count)
    turns = Rotation.from_rotvec(random_turns(seed, 3 * bone_count, 1.2)).as_matrix().reshape(3, bone_count, 3, 3)
    stretches = np.eye(3) + 0.2 * random.normal(size=(3, bone_count, 3, 3))
    matrices = np.concatenate([turns @ stretches, random.normal(size=(3, bone_count, 3, 1))], axis=-1)
    return random.normal(size=(vertex_count, 3)), bones, weights, matrices


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_linear_blending_of_the_displaced_rest_pose_gives_the_shape(seed):
    rest, bones, weights, matrices = random_blend(seed)
    shapes = np.random.default_rng(seed).normal(size=(3, len(rest), 3))
    mapped = rest_displacements(rest, bones, weights, matrices, shapes)
    for values, damped, moved, shape in zip(mapped.values, mapped.damped, matrices, shapes, strict=True):
        found = skin_frame(rest + values, bones, weights, moved)
        # Single precision, magnified by at most what an inverse that is not damped can.
        scale = np.abs(values).max(axis=1, keepdims=True) + 1
        assert np.all(np.abs(found - shape)[~damped] < 1e-5 * scale[~damped])
        regular = np.linalg.cond(vertex_transforms(rest, bones, weights, moved)[..., :3]) < 1 / DAMPED_BELOW
        np.testing.assert_array_equal(~damped, regular)


def test_the_shape_of_linear_blending_needs_nothing():
    posed = limb()
    examples = posed.examples([{"bone 1": [0, 1, 0]}, {"bone 2": [0.3, 0, -1]}], "LBS")
    mapped = rest_displacements(posed.rig.rest, posed.rig.bones, posed.rig.weights, examples.matrices, examples.shapes)
    assert np.abs(mapped.values).max() < 1e-6


def with_singular_values(values, seed=0):
    left, right = Rotation.random(2, random_state=seed).as_matrix()
    return left @ (np.asarray(values, float)[..., None] * right)


@given(st.integers(0, 10_000), st.floats(-6, 3))
@settings(deadline=None)
def test_the_inverse_is_exact_where_the_blend_is_regular_and_bounded_everywhere(seed, exponent):
    random = np.random.default_rng(seed)
    values = 10**exponent * np.sort(random.uniform(0, 1, (20, 3)) ** 3)[:, ::-1]
    linear = with_singular_values(values, seed) * random.choice([-1, 1], (20, 1, 1))
    inverse, damped = damped_inverse(linear)
    np.testing.assert_array_equal(damped, values[:, 2] < DAMPED_BELOW * values[:, 0])
    np.testing.assert_allclose((inverse @ linear)[~damped], np.tile(np.eye(3), (np.sum(~damped), 1, 1)), atol=1e-9)
    size = np.linalg.norm(inverse, ord=2, axis=(1, 2))
    assert np.all(size <= 1.0001 / (DAMPED_BELOW * values[:, 0]))


def test_damping_begins_without_a_jump_and_loses_a_flattened_direction():
    smallest = np.linspace(0, 2 * DAMPED_BELOW, 401)
    linear = with_singular_values(np.column_stack([np.full(401, 1.0), np.full(401, 0.9), smallest]))
    inverse, damped = damped_inverse(linear)
    assert damped[0]
    assert not damped[-1]
    assert np.abs(np.diff(inverse, axis=0)).max() < 1.01 * smallest[1] / DAMPED_BELOW**2
    assert np.linalg.norm(inverse[0] @ linear[0], ord=2) == pytest.approx(1)
    assert np.linalg.matrix_rank(inverse[0], tol=1e-9) == 2


def test_a_vertex_that_the_blend_takes_to_a_point():
    inverse, damped = damped_inverse(np.stack([np.zeros((3, 3)), np.diag([1e-200, 0, 0]), np.eye(3)]))
    np.testing.assert_array_equal(inverse[0], 0)
    assert np.isfinite(inverse).all()
    np.testing.assert_array_equal(damped, [True, True, False])


def test_two_bones_half_a_turn_apart_are_damped_and_bounded():
    """The candy wrapper: in the middle of the blend nothing is left across the axis."""
    posed = limb(joints=(3.0,))
    examples = posed.examples([{"bone 1": [np.pi, 0, 0]}])
    mapped = rest_displacements(posed.rig.rest, posed.rig.bones, posed.rig.weights, examples.matrices, examples.shapes)
    middle = np.abs(posed.rig.rest[:, 0] - 3) < 0.01
    assert middle.any()
    assert mapped.damped[0, middle].all()
    assert not mapped.damped[0, np.abs(posed.rig.rest[:, 0] - 3) > 0.5].any()
    assert np.abs(mapped.values).max() < 2 / DAMPED_BELOW


def test_normals_come_back_and_go_out_again():
    rest, bones, weights, matrices = random_blend(4)
    random = np.random.default_rng(5)
    surface, wanted = (part / np.linalg.norm(part, axis=-1, keepdims=True) for part in random.normal(size=(2, 30, 3)))
    shapes = random.normal(size=(3, 30, 3))
    mapped = rest_displacements(rest, bones, weights, matrices, shapes, [wanted] * 3, surface)
    plain = rest_displacements(rest, bones, weights, matrices, shapes)
    np.testing.assert_array_equal(mapped.values[..., :3], plain.values)
    for values, moved in zip(mapped.values, matrices, strict=True):
        transforms = vertex_transforms(rest, bones, weights, moved)
        regular = np.linalg.cond(transforms[..., :3]) < 20
        found = transformed_normals(surface + values[:, 3:], transforms)
        np.testing.assert_allclose(found[regular], wanted[regular], atol=1e-5)


def test_no_more_memory_than_the_result_and_an_example():
    posed = limb(columns=800, rows=6)
    examples = posed.examples([{"bone 1": [0, 0.1 * step, 0]} for step in range(1, 21)])
    normals = np.broadcast_to([0, 0, 1.0], examples.shapes.shape)
    tracemalloc.start()
    try:
        result = rest_displacements(
            posed.rig.rest,
            posed.rig.bones,
            posed.rig.weights,
            examples.matrices,
            examples.shapes,
            normals,
            normals[0],
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Forty doubles a vertex of the one example in work would be 6.3 MB; a matrix a vertex of all examples, 14 MB.
    assert peak - result.values.nbytes - result.damped.nbytes < 60 * 8 * len(posed.rig.rest)


def test_cancel():
    posed = limb()
    examples = posed.examples([{"bone 1": [0, 1, 0]}] * 3)
    arguments = posed.rig.rest, posed.rig.bones, posed.rig.weights, examples.matrices, examples.shapes
    with pytest.raises(Cancelled):
        rest_displacements(*arguments, progress=lambda fraction, stage: fraction < 0.5)
