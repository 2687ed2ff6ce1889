# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation's shader for normals and tangents, run on random joints and on an exported file."""

import bpy
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.deform import (
    blended_normals,
    blended_tangents,
    dominant_transforms,
    transformed_normals,
    transformed_tangents,
)
from tests.blender import engine_shaders, skinned_meshes
from tests.blender.test_export_centers import exported

pytestmark = pytest.mark.usefixtures("extension")

TOLERANCE = 1e-5
JOINTS = 6
COUNT = 300


def shaded(function, vectors, bones, weights, matrices, read="{}") -> np.ndarray:
    """(N, 3) what the shader's ``function`` makes of ``vectors`` (N, 3 or 4), by matrices (P, 4, 4)."""
    return engine_shaders.evaluated(
        "normals.glsl",
        read.format(f"{function}(vector, joints, weights)"),
        {"vector": vectors, "joints": bones, "weights": weights},
        {"joints_texture": engine_shaders.joint_texels(matrices)},
    )


def problem(stretch, seed=0):
    """Unit vectors (N, 3), bones and weights (N, 4), and joints (P, 4, 4) that turn and also do ``stretch`` (P, 3, 3).

    The numbers are those that single precision has. Some vertices follow one joint alone.
    """
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(COUNT, 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    bones = np.array([random.choice(JOINTS, 4, replace=False) for _ in range(COUNT)])
    weights = random.dirichlet(np.ones(4), COUNT)
    weights[:20] = [0, 0, 1, 0]
    matrices = np.tile(np.eye(4), (JOINTS, 1, 1))
    matrices[:, :3, :3] = Rotation.random(JOINTS, random_state=seed).as_matrix() @ stretch
    matrices[:, :3, 3] = random.normal(size=(JOINTS, 3))
    single = [array.astype(np.float32).astype(np.float64) for array in (vectors, weights, matrices)]
    return single[0], bones, single[1], single[2]


def stretches(kind) -> np.ndarray:
    random = np.random.default_rng(1)
    along = random.uniform(0.5, 2, (JOINTS, 3))
    shears = np.triu(random.uniform(-1, 1, (JOINTS, 3, 3)), 1)
    scales = 4.0 ** random.uniform(-2, 2, (JOINTS, 1, 1))
    return {
        "rigid": np.tile(np.eye(3), (JOINTS, 1, 1)),
        "stretched": np.eye(3) * along[:, None],
        "sheared": np.eye(3) + shears,
        "mirrored": np.eye(3) * along[:, None] * np.where(np.arange(JOINTS) % 2, -1, 1)[:, None, None],
        "scaled": np.eye(3) * scales,
    }[kind]


def away_from_cancelled(found, expected, vectors, bones, weights, linear) -> np.ndarray:
    """The distances of the rows whose sums are not mostly cancelled, where rounding decides."""
    moved = np.einsum("nkij,nj->nki", linear[bones], vectors)
    left = np.linalg.norm(np.einsum("nk,nki->ni", weights, moved), axis=1)
    kept = left > 0.05 * (weights * np.linalg.norm(moved, axis=2)).max(axis=1)
    assert kept.mean() > 0.8
    return np.linalg.norm(found - expected, axis=1)[kept]


@pytest.mark.parametrize("kind", ["rigid", "stretched", "sheared", "mirrored", "scaled"])
def test_normals_are_those_of_equation_3_8(kind):
    vectors, bones, weights, matrices = problem(stretches(kind))
    maps = matrices[:, :3]
    inverses = np.linalg.inv(maps[..., :3]).swapaxes(-1, -2)
    for function, equalized in (("blended_normal", False), ("equalized_normal", True)):
        found = shaded(function, vectors, bones, weights, matrices)
        expected = blended_normals(vectors, bones, weights, maps, equalized)
        linear = inverses / np.linalg.norm(inverses, axis=(1, 2), keepdims=True) if equalized else inverses
        assert away_from_cancelled(found, expected, vectors, bones, weights, linear).max() < TOLERANCE, function


def test_normals_of_joints_that_only_rotate_are_those_of_equation_3_6():
    vectors, bones, weights, matrices = problem(stretches("rigid"))
    maps = matrices[:, :3]
    found = shaded("rigid_normal", vectors, bones, weights, matrices)
    # Equation 3.9 is 3.6 with another letter.
    expected = blended_tangents(vectors, bones, weights, maps)
    assert away_from_cancelled(found, expected, vectors, bones, weights, maps[..., :3]).max() < TOLERANCE
    found = shaded("rigid_strongest_normal", vectors, bones, weights, matrices)
    expected = transformed_normals(vectors, dominant_transforms(bones, weights, maps))
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["stretched", "sheared", "mirrored", "scaled"])
def test_the_joint_with_the_largest_weight_alone(kind):
    vectors, bones, weights, matrices = problem(stretches(kind))
    found = shaded("strongest_normal", vectors, bones, weights, matrices)
    expected = transformed_normals(vectors, dominant_transforms(bones, weights, matrices[:, :3]))
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["rigid", "stretched", "sheared", "mirrored", "scaled"])
def test_tangents_are_those_of_equation_3_9(kind):
    vectors, bones, weights, matrices = problem(stretches(kind))
    tangents = np.column_stack([vectors, np.where(np.arange(COUNT) % 3, 1.0, -1.0)])
    maps = matrices[:, :3]
    expected = blended_tangents(tangents, bones, weights, maps)
    found = shaded("blended_tangent", tangents, bones, weights, matrices, "{}.xyz")
    assert away_from_cancelled(found, expected[:, :3], vectors, bones, weights, maps[..., :3]).max() < TOLERANCE
    signs = shaded("blended_tangent", tangents, bones, weights, matrices, "vec3({}.w)")[:, 0]
    volumes = np.linalg.det(np.einsum("nk,nkij->nij", weights, maps[bones][..., :3]))
    clear = np.abs(volumes) > 1e-3
    np.testing.assert_array_equal(signs[clear], expected[clear, 3])
    assert clear.mean() > 0.9
    assert (len(set(signs * tangents[:, 3])) == 2) == (volumes.min() < 0)


@pytest.mark.parametrize(
    "function", ["rigid_normal", "blended_normal", "equalized_normal", "strongest_normal", "blended_tangent"]
)
def test_cancelling_or_flattening_blends_still_give_a_direction(function):
    """Two joints half a turn apart cancel: the one with more weight decides. A joint may flatten, also to a point."""
    vectors = np.array([[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1], [0.6, 0.8, 0, 1]])
    bones, weights = np.tile([0, 1, 2, 3], (4, 1)), np.tile([0.5, 0.5, 0, 0], (4, 1))
    matrices = np.tile(np.eye(4), (4, 1, 1))
    matrices[1, :3, :3] = np.diag([-1, -1, 1])
    matrices[2, :3, :3] = np.diag([1, 1, 0])
    matrices[3, :3, :3] = 0
    tangent = function == "blended_tangent"
    given, read = (vectors, "{}.xyz") if tangent else (vectors[:, :3], "{}")
    np.testing.assert_allclose(shaded(function, given, bones, weights, matrices, read), vectors[:, :3], atol=TOLERANCE)
    for weight in ([0, 0, 1, 0], [0, 0, 0, 1], [0.3, 0.2, 0.3, 0.2]):
        found = shaded(function, given, bones, np.tile(weight, (4, 1)), matrices, read)
        lengths = np.linalg.norm(found, axis=1)
        if function == "rigid_normal":
            # Meant for rotations: no length is lost to rounding, only to the joint itself.
            assert np.isfinite(found).all()
        else:
            np.testing.assert_allclose(lengths, 1, atol=TOLERANCE)
    if function in ("blended_normal", "equalized_normal", "strongest_normal"):
        # Across the plane into which the joint flattens.
        found = shaded(function, given[2:3], bones[:1], np.array([[0, 0, 1.0, 0]]), matrices, read)
        np.testing.assert_allclose(found, [[0, 0, 1]], atol=TOLERANCE)


def test_normals_of_an_exported_file(tmp_path):
    """NORMAL, JOINTS_0, WEIGHTS_0 and the joints of the file in; out comes what core.deform says."""
    engine_shaders.gpu_module()
    ob, _ = skinned_meshes.rigged_tube()
    bpy.context.scene.frame_set(4)
    file = exported(ob, tmp_path / "tube.glb")
    found = file.vertices()
    normals, bones, weights = (found[name] for name in ("NORMAL", "JOINTS_0", "WEIGHTS_0"))
    matrices = file.joint_matrices()
    result = shaded("blended_normal", normals, bones, weights, matrices)
    expected = blended_normals(normals, bones, weights.astype(np.float64), matrices[:, :3])
    np.testing.assert_allclose(result, expected, atol=TOLERANCE)
    assert np.linalg.norm(result - normals, axis=1).max() > 0.1
    # Tangents along the surface stay within reach of the normals: both turn with the skin.
    along = np.cross(normals, [0.0, 0.0, 1.0])
    along = np.column_stack([along, np.ones(len(along))])
    turned = shaded("blended_tangent", along, bones, weights, matrices, "{}.xyz")
    expected = transformed_tangents(along, np.einsum("nk,nkij->nij", weights, matrices[bones][..., :3, :3]))[:, :3]
    np.testing.assert_allclose(turned, expected, atol=TOLERANCE)
