# SPDX-License-Identifier: GPL-3.0-or-later
"""Binding in a pose: what the skinning makes of the new rest shape, and blends that have no inverse."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.binding_pose import COLLAPSED, bind_posed
from skinning_tools.core.deform import skin_frame, vertex_transforms
from skinning_tools.core.deform.blend import transformed

STILL = np.eye(3, 4)
COUNT = 200


def posed(random, count=4, turn=1.0, stretch=0.3) -> np.ndarray:
    """(P, 3, 4) bones that turn by up to ``turn`` radians, move and stretch."""
    axes = random.normal(size=(count, 3))
    axes *= random.uniform(0, turn, (count, 1)) / np.linalg.norm(axes, axis=1, keepdims=True)
    linear = Rotation.from_rotvec(axes).as_matrix() * random.uniform(1 - stretch, 1 + stretch, (count, 1, 3))
    return np.concatenate([linear, random.normal(size=(count, 3, 1))], axis=2)


def skin(random, bone_count=4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """points (N, 3), bones and convex weights (N, 3)."""
    bones = np.array([random.permutation(bone_count)[:3] for _ in range(COUNT)])
    weights = random.dirichlet(np.ones(3), COUNT)
    return random.normal(size=(COUNT, 3)), bones, weights


def standing() -> np.ndarray:
    return np.tile(STILL, (COUNT, 1, 1))


def free() -> np.ndarray:
    return np.zeros(COUNT, bool)


def test_the_new_rest_shape_is_skinned_to_where_the_vertices_were():
    random = np.random.default_rng(1)
    matrices, (points, bones, weights) = posed(random), skin(random)
    found = bind_posed(bones, weights, matrices, standing(), free())
    assert len(found.mended) == len(found.stuck) == 0
    rest = transformed(found.to_rest, points)
    # Blends keep more than COLLAPSED of any length, so rounding grows by no more than its inverse.
    np.testing.assert_allclose(skin_frame(rest, bones, weights, matrices), points, atol=1e-12)
    assert np.abs(rest - points).max() > 0.5


def test_a_skin_that_is_bound_again_stays_where_its_old_weights_show_it():
    random = np.random.default_rng(2)
    matrices, (points, bones, weights) = posed(random), skin(random)
    before = vertex_transforms(points, *skin(random)[1:], matrices)
    found = bind_posed(bones, weights, matrices, before, free())
    seen = skin_frame(transformed(found.to_rest, points), bones, weights, matrices)
    np.testing.assert_allclose(seen, transformed(before, points), atol=1e-12)


def test_vertices_whose_weights_stay_keep_their_rest_position_exactly():
    random = np.random.default_rng(3)
    matrices, (points, bones, weights) = posed(random), skin(random)
    # Half a turn apart: this blend has no inverse, and needs none.
    matrices[1] = np.column_stack([np.diag([-1.0, -1.0, 1.0]), [0, 0, 1]])
    matrices[0] = STILL
    bones[:50], weights[:50] = [0, 1, 2], [0.5, 0.5, 0]
    before = vertex_transforms(points, bones, weights, matrices)
    found = bind_posed(bones, weights, matrices, before, ~free())
    assert (found.to_rest == STILL).all()
    assert len(found.stuck) == 0


@pytest.mark.parametrize("turn", [0.0, 120.0, 165.0, 175.0, 180.0])
def test_blends_that_collapse_follow_the_strongest_bone(turn):
    """Two bones bent apart keep the cosine of half the angle of a length (how_weights_work.md, bone links)."""
    matrices = np.stack(
        [STILL, np.column_stack([Rotation.from_rotvec([np.radians(turn), 0, 0]).as_matrix(), [0, 0, 0]])]
    )
    bones, weights = np.tile([0, 1], (COUNT, 1)), np.tile([0.5, 0.5], (COUNT, 1))
    weights[::2] = [0.49, 0.51]
    points = np.random.default_rng(4).normal(size=(COUNT, 3))
    found = bind_posed(bones, weights, matrices, standing(), free())
    kept = np.cos(np.radians(turn) / 2)
    assert len(found.mended) == (COUNT if kept < COLLAPSED else 0)
    seen = skin_frame(transformed(found.to_rest, points), found.bones, found.weights, matrices)
    np.testing.assert_allclose(seen, points, atol=1e-13)
    if len(found.mended):
        assert (found.bones[::2] == 1).all()
        assert (found.bones[1::2] == 0).all()
        assert (found.weights.sum(axis=1) == 1).all()


def test_vertices_that_may_not_change_are_named_where_they_collapse():
    matrices = np.stack([STILL, np.column_stack([np.diag([-1.0, -1.0, 1.0]), [0, 0, 0]])])
    bones, weights = np.tile([0, 1], (COUNT, 1)), np.tile([0.9, 0.1], (COUNT, 1))
    weights[[7, 30]] = 0.5
    held = free()
    held[7] = True
    found = bind_posed(bones, weights, matrices, standing(), held)
    assert found.stuck.tolist() == [7]
    assert found.mended.tolist() == [30]


def test_a_flat_bone_leads_nowhere():
    random = np.random.default_rng(5)
    matrices, (_, bones, weights) = posed(random), skin(random)
    matrices[2, :, 1] = 0
    bones[:5], weights[:5] = [2, 0, 1], [1, 0, 0]
    bones[5:] = np.where(bones[5:] == 2, 3, bones[5:])
    found = bind_posed(bones, weights, matrices, standing(), free())
    assert found.stuck.tolist() == list(range(5))


def test_bones_that_mirror_are_no_collapse():
    """A vertex of one mirrored bone has an inverse like any other."""
    matrices = np.stack([np.column_stack([np.diag([-1.0, 1.0, 1.0]), [1, 2, 3]])])
    found = bind_posed(np.zeros((COUNT, 1), int), np.ones((COUNT, 1)), matrices, standing(), free())
    assert len(found.mended) == len(found.stuck) == 0
    np.testing.assert_allclose(
        found.to_rest, np.tile(np.column_stack([np.diag([-1.0, 1, 1]), [1, -2, -3]]), (COUNT, 1, 1))
    )


def test_vertices_without_weights_stay():
    random = np.random.default_rng(6)
    matrices, (_, bones, weights) = posed(random), skin(random)
    weights[:9] = 0
    found = bind_posed(bones, weights, matrices, standing(), free())
    assert (found.to_rest[:9] == STILL).all()
