# SPDX-License-Identifier: GPL-3.0-or-later
"""Normals and tangents of skinned surfaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.deform import (
    METHODS,
    blended_normals,
    blended_tangents,
    dominant_transforms,
    skin_frame,
    transformed_normals,
    transformed_tangents,
    vertex_normals,
    vertex_transforms,
)
from skinning_tools.core.deform.surface import normal_errors

from ..skinned_shapes import about, chain_weights, cuboid


def unit_rows(random, count):
    vectors = random.normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def problem(seed, count=30, bone_count=5, influences=3):
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(count)], np.int32)
    weights = random.dirichlet(np.ones(influences), count)
    return unit_rows(random, count), bones, weights, random.normal(size=(bone_count, 3, 4))


def lengths(vectors):
    return np.linalg.norm(vectors, axis=-1)


def lengthened(vectors):
    return vectors / lengths(vectors)[:, None]


@given(st.integers(0, 10_000), st.floats(-150, 150))
@settings(deadline=None, max_examples=40)
def test_normals_stay_across_the_plane_they_belong_to(seed, magnitude):
    """Two directions within a plane, transformed, are still across the transformed normal, whatever its scale."""
    random = np.random.default_rng(seed)
    normals = unit_rows(random, 30)
    within = np.cross(normals, unit_rows(random, 30))
    linear = random.normal(size=(30, 3, 3))
    result = transformed_normals(normals, linear * 10.0**magnitude)
    np.testing.assert_allclose(lengths(result), 1, atol=1e-12)
    moved = lengthened(np.einsum("nij,nj->ni", linear, within))
    np.testing.assert_allclose(np.einsum("ni,ni->n", moved, result), 0, atol=1e-10)
    # And on the same side: what lay in front of the plane still does, mirrored or not.
    front = np.einsum("nij,nj->ni", linear, normals)
    assert np.einsum("ni,ni->n", front, result).min() > 0


def by_the_chapter(vectors, bones, weights, movers, equalized=False):
    """Equations 3.6 to 3.10 as they stand, a row at a time: the sum of what each bone makes of it, at unit length."""
    rows = []
    for vector, row, values in zip(vectors, bones, weights, strict=True):
        moved = [movers[bone] @ vector for bone in row]
        if equalized:
            moved = [each / np.linalg.norm(each) for each in moved]
        total = sum(value * each for value, each in zip(values, moved, strict=True))
        rows.append(total / np.linalg.norm(total))
    return np.array(rows)


# Motion of the bones besides turning: none, or one that makes the parts of the formulas differ in length.
MAPS = {
    "rigid": lambda random, turns: turns,
    "scaled": lambda random, turns: turns * random.uniform(0.1, 10, (len(turns), 1, 1)),
    "stretched": lambda random, turns: turns @ (np.eye(3) * random.uniform(0.2, 5, (len(turns), 1, 3))),
    "sheared": lambda random, turns: turns @ (np.eye(3) + np.triu(random.uniform(-2, 2, (len(turns), 3, 3)), 1)),
    "mirrored": lambda random, turns: turns * random.choice([-1, 1], (len(turns), 1, 1)) @ np.diag([1, -1, 2]),
    "any": lambda random, turns: random.normal(size=turns.shape),
    "huge": lambda random, turns: 1e100 * random.normal(size=turns.shape),
    "tiny": lambda random, turns: 1e-100 * random.normal(size=turns.shape),
}


@pytest.mark.parametrize("kind", MAPS)
@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_blended_normals_and_tangents_are_the_chapters(kind, seed):
    vectors, bones, weights, matrices = problem(seed)
    random = np.random.default_rng(seed)
    linear = MAPS[kind](random, Rotation.random(len(matrices), random_state=seed).as_matrix())
    matrices = np.concatenate([linear, matrices[..., 3:]], axis=-1)
    found = blended_normals(vectors, bones, weights, matrices)
    movers = np.linalg.inv(linear).swapaxes(-1, -2)
    np.testing.assert_allclose(found, by_the_chapter(vectors, bones, weights, movers), atol=1e-7)
    found = blended_normals(vectors, bones, weights, matrices, equalized=True)
    np.testing.assert_allclose(found, by_the_chapter(vectors, bones, weights, movers, equalized=True), atol=1e-7)
    found = blended_tangents(vectors, bones, weights, matrices)
    np.testing.assert_allclose(found, by_the_chapter(vectors, bones, weights, linear), atol=1e-7)
    # The blended transform is what the formula of tangents amounts to.
    transforms = vertex_transforms(vectors, bones, weights, matrices)
    np.testing.assert_allclose(transformed_tangents(vectors, transforms), found, atol=1e-9)


def test_one_bone_makes_all_kinds_of_normals_the_same():
    normals, bones, weights, matrices = problem(1)
    weights[:] = [0, 0, 1]
    expected = blended_normals(normals, bones, weights, matrices)
    dominant = dominant_transforms(bones, weights, matrices)
    np.testing.assert_allclose(transformed_normals(normals, dominant), expected, atol=1e-12)
    for method in METHODS:
        transforms = vertex_transforms(normals, bones, weights, matrices, method, normals)
        np.testing.assert_allclose(transformed_normals(normals, transforms), expected, atol=1e-9)


def test_dominant_bone():
    _, bones, weights, matrices = problem(2)
    weights[0] = 0
    transforms = dominant_transforms(bones, weights, matrices)
    np.testing.assert_array_equal(transforms[0], np.eye(3, 4))
    for row in range(1, len(bones)):
        strongest = max(range(3), key=lambda slot: weights[row, slot])
        np.testing.assert_array_equal(transforms[row], matrices[bones[row, strongest]])


def test_normals_that_cancel_follow_the_dominant_bone():
    turned = np.diag([-1.0, -1.0, 1.0])
    matrices = np.stack([np.eye(3, 4), np.column_stack([turned, np.zeros(3)])])
    normals = np.array([[1.0, 0, 0], [0, 0, 1.0], [1.0, 0, 0]])
    bones, weights = np.tile([0, 1], (3, 1)), np.array([[0.5, 0.5], [0.5, 0.5], [0.25, 0.75]])
    result = blended_normals(normals, bones, weights, matrices)
    np.testing.assert_allclose(result, [[1, 0, 0], [0, 0, 1], [-1, 0, 0]], atol=1e-12)
    tangents = blended_tangents(np.column_stack([normals, [1, -1, 1]]), bones, weights, matrices)
    np.testing.assert_allclose(tangents, [[1, 0, 0, 1], [0, 0, 1, -1], [-1, 0, 0, 1]], atol=1e-12)


@pytest.mark.parametrize("scale", [(1, 1, 0), (1, 0, 0), (0, 0, 0)])
def test_flattened_and_missing_normals(scale):
    """Never NaN: unit where the normal was one, zero where it was zero."""
    random = np.random.default_rng(3)
    normals = unit_rows(random, 20)
    normals[0] = 0
    matrices = np.tile(np.diag(np.array(scale, float)), (2, 1, 1))
    matrices = np.concatenate([matrices, np.zeros((2, 3, 1))], axis=-1)
    bones, weights = np.tile([0, 1], (20, 1)), np.full((20, 2), 0.5)
    tangents = np.cross(normals, unit_rows(random, 20))
    for result in (
        transformed_tangents(tangents, matrices[bones[:, 0]]),
        blended_tangents(tangents, bones, weights, matrices),
    ):
        np.testing.assert_allclose(lengths(result), [0] + [1] * 19, atol=1e-12)
    for result in (
        blended_normals(normals, bones, weights, matrices),
        transformed_normals(normals, matrices[bones[:, 0]]),
    ):
        np.testing.assert_allclose(lengths(result), [0] + [1] * 19, atol=1e-12)
        if scale == (1, 1, 0):
            np.testing.assert_allclose(np.abs(result[1:, 2]), 1, atol=1e-12)


@pytest.mark.parametrize("ratio", [1e-2, 3e-5, 1e-7])
def test_needles_turn_their_normals(ratio):
    """However thin: the cone's side goes with the turn of the map, and so does its end."""
    turn = Rotation.from_euler("xyz", (0.4, 1.2, -0.7)).as_matrix()
    linear = np.tile(turn @ np.diag([1.0, ratio, ratio]), (3, 1, 1))
    found = transformed_normals(np.eye(3), linear)
    np.testing.assert_allclose(found, turn.T, atol=1e-6)


def test_unweighted_vertices_keep_their_normals():
    normals, bones, weights, matrices = problem(4)
    weights[:5] = 0
    np.testing.assert_allclose(blended_normals(normals, bones, weights, matrices)[:5], normals[:5], atol=1e-12)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_tangents_lie_across_the_normal_and_keep_their_side(seed):
    random = np.random.default_rng(seed)
    normals = unit_rows(random, 30)
    tangents = lengthened(np.cross(normals, unit_rows(random, 30)))
    signs = random.choice([-1.0, 1.0], 30)
    linear = random.normal(size=(30, 3, 3))
    moved_normals = transformed_normals(normals, linear)
    result = transformed_tangents(np.column_stack([tangents, signs]), linear)
    np.testing.assert_allclose(lengths(result[:, :3]), 1, atol=1e-12)
    # The inverse transpose keeps tangents across the normal.
    np.testing.assert_allclose(np.einsum("ni,ni->n", result[:, :3], moved_normals), 0, atol=1e-9)
    bitangents = signs[:, None] * np.cross(normals, tangents)
    moved = np.einsum("nij,nj->ni", linear, bitangents)
    shown = result[:, 3:] * np.cross(moved_normals, result[:, :3])
    assert np.einsum("ni,ni->n", moved, shown).min() > 0


def test_bones_of_unequal_size_are_weighed_by_their_inverse_transposes():
    """A bone that flattens counts alone, and one that shrinks by ten for ten times as much."""
    normal, bones, weights = np.array([[0.6, 0.0, 0.8]]), np.array([[0, 1]]), np.array([[0.5, 0.5]])
    flat = np.stack([np.eye(3, 4), np.diag([1.0, 1.0, 0.0]) @ np.eye(3, 4)])
    np.testing.assert_allclose(blended_normals(normal, bones, weights, flat), [[0, 0, 1]], atol=1e-9)
    turned = Rotation.from_euler("y", 90, degrees=True).as_matrix()
    small = np.stack([np.eye(3, 4), np.column_stack([0.1 * turned, np.zeros(3)])])
    expected = normal + 10 * normal @ turned.T
    np.testing.assert_allclose(blended_normals(normal, bones, weights, small), lengthened(expected), atol=1e-12)


def test_vertex_normals_of_faces():
    """A fan of a quad and two triangles: each counts by its angle, however it is cut."""
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1.0]])
    first = vertex_normals(points, np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]]))
    second = vertex_normals(points, np.array([[0, 1, 3], [1, 2, 3], [0, 3, 4], [0, 4, 1]]))
    np.testing.assert_allclose(first[0], np.ones(3) / np.sqrt(3), atol=1e-12)
    np.testing.assert_allclose(second[0], first[0], atol=1e-12)


def test_the_plain_mean_of_triangles_depends_on_how_quads_are_cut():
    """Kavan et al. 2010, section 5: each triangle at a vertex counts the same."""
    points = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])
    triangles = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 1]])
    found = vertex_normals(points, triangles, by_angle=False)
    faces = lengthened(np.cross(points[triangles[:, 1]] - points[0], points[triangles[:, 2]] - points[0]))
    np.testing.assert_allclose(found[0], [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(found[1], lengthened((faces[0] + faces[3])[None])[0], atol=1e-12)
    twice = vertex_normals(points, np.concatenate([triangles, triangles[:1]]), by_angle=False)
    np.testing.assert_allclose(twice[0], lengthened((2 * faces[0] + faces[1:].sum(axis=0))[None])[0], atol=1e-12)


def test_vertices_without_a_face_of_any_size_have_no_normal():
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [2, 2, 2], [3, 3, 3], [3, 3, 3], [3, 3, 3.0]])
    triangles = np.array([[0, 1, 2], [4, 5, 6]])
    result = vertex_normals(points, triangles)
    np.testing.assert_allclose(result[:3], np.tile([0, 0, 1], (3, 1)), atol=1e-12)
    np.testing.assert_array_equal(result[3:], 0)


@pytest.mark.parametrize("method", METHODS)
def test_skinned_normals_are_near_those_of_the_deformed_faces(method):
    """On a bent bar, away from its edges. How the weights change along the surface is left out by all of the chapter's
    formulas, so some error remains; it is a part of that of normals that are not skinned."""
    rest, triangles = cuboid(columns=120, rows=24)
    bones, weights = chain_weights(rest[:, 0], [3.0], reach=2.0)
    turn = Rotation.from_euler("z", 30, degrees=True).as_matrix()
    matrices = np.stack([np.eye(3, 4), about(turn, [3, 0, 0])])
    centers = rest * [1, 0, 0]
    at_rest = vertex_normals(rest, triangles)
    shown = vertex_normals(skin_frame(rest, bones, weights, matrices, method, centers), triangles)
    inner = (np.sort(np.abs(rest[:, 1:]), axis=1)[:, 0] < 0.4) & (rest[:, 0] > 0) & (rest[:, 0] < 6)

    def angles(normals):
        return np.degrees(np.arccos(np.clip(np.einsum("ni,ni->n", normals, shown), -1, 1)))[inner]

    transforms = vertex_transforms(rest, bones, weights, matrices, method, centers)
    unskinned, skinned = angles(at_rest), angles(transformed_normals(at_rest, transforms))
    assert unskinned.max() > 30
    assert skinned.max() < 0.35 * unskinned.max()
    assert skinned.mean() < 0.25 * unskinned.mean()
    if method == "LBS":
        assert angles(blended_normals(at_rest, bones, weights, matrices)).mean() < 0.25 * unskinned.mean()


def test_angles_between_normals():
    """A sheet turned by 30 degrees, with a vertex beside it that no face has."""
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [5, 5, 5]], float)
    turn = np.array([[1, 0, 0], [0, np.sqrt(0.75), -0.5], [0, 0.5, np.sqrt(0.75)]])
    found = normal_errors(points @ turn.T, points, np.array([[0, 1, 2], [0, 2, 3]]))
    np.testing.assert_allclose(found, np.full(4, 30.0))
