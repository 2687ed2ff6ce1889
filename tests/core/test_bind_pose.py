# SPDX-License-Identifier: GPL-3.0-or-later
"""Centers of rotation and the bind pose: the shape in which nothing moves is the one that centers belong to."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.deform import METHODS, skin_frame, vertex_transforms
from skinning_tools.core.rotation_centers import bake_rotation_centers
from tests.core.skinned_shapes import about, chain_weights, cuboid

BEND = about(Rotation.from_euler("y", -60, degrees=True).as_matrix(), np.array([3.0, 0, 0]))


@pytest.fixture(scope="module")
def bound():
    """A straight bar, its skin, and the bent pose of its bones to which that shape is bound."""
    shape, triangles = cuboid(columns=36, rows=8)
    bones, weights = chain_weights(shape[:, 0], [3.0])
    return shape, triangles, bones, weights, np.stack([np.eye(3, 4), BEND])


def unbound(shape, transforms) -> np.ndarray:
    return np.linalg.solve(transforms[..., :3], (shape - transforms[..., 3])[..., None])[..., 0]


def test_another_bind_pose_of_the_whole_body_moves_the_centers_along(bound):
    """Bones, mesh and centers in another place and size: one bind pose is as good as the other."""
    shape, triangles, bones, weights, _ = bound
    turn = 1.7 * Rotation.from_rotvec([0.3, -1.1, 0.6]).as_matrix()
    place = np.array([4.0, -7.0, 2.0])
    here, valid = bake_rotation_centers(shape, triangles, bones, weights)
    there, _ = bake_rotation_centers(shape @ turn.T + place, triangles, bones, weights)
    assert np.abs(there - (here @ turn.T + place))[valid].max() < 1e-5


def test_a_shape_bound_in_a_pose_is_shown_there_by_linear_blending(bound):
    """The rest shape by the inverse of linear blending is exact for that method only: the others, which lose no volume
    in the bend, do not lose what the inverse has added to the rest shape."""
    shape, triangles, bones, weights, pose = bound
    rest = unbound(shape, vertex_transforms(shape, bones, weights, pose))
    centers, _ = bake_rotation_centers(rest, triangles, bones, weights)
    apart = {
        method: np.linalg.norm(skin_frame(rest, bones, weights, pose, method, centers) - shape, axis=1).max()
        for method in METHODS
    }
    assert apart["LBS"] < 1e-12
    assert 0.01 < apart["DQS"] < 0.15
    assert 0.01 < apart["CRS"] < 0.15


def test_a_shape_bound_in_a_pose_by_its_own_method(bound):
    """The same inverse for centers of rotation, about the centers of the bound shape: then it is exact for these."""
    shape, triangles, bones, weights, pose = bound
    there, _ = bake_rotation_centers(shape, triangles, bones, weights)
    centers = unbound(there, vertex_transforms(shape, bones, weights, pose))
    rest = unbound(shape, vertex_transforms(shape, bones, weights, pose, "CRS", centers))
    assert np.abs(skin_frame(rest, bones, weights, pose, "CRS", centers) - shape).max() < 1e-6
