# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights and driven helpers that imitate another deformation, against known ones."""

import numpy as np
import pytest

from skinning_tools.core.deform import skin_frame
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.errors import BadSettings, BadWeights, Cancelled
from skinning_tools.core.imitation.channels import PRODUCTS, chosen_terms, features, fitted
from skinning_tools.core.imitation.driven_helpers import DrivenHelper, helper_motion
from skinning_tools.core.imitation.imitate import imitate
from skinning_tools.core.imitation.skeleton import of_vectors, posed
from tests.core.imitation.test_skeleton import chain

BONES, FRAMES = 3, 60


def tube() -> tuple[np.ndarray, np.ndarray]:
    """Vertices and edges along the chain."""
    x, angle = np.meshgrid(np.linspace(0.0, BONES, 19), np.arange(8) * np.pi / 4, indexing="ij")
    points = np.stack([x, 0.3 * np.cos(angle), 0.3 * np.sin(angle)], axis=-1).reshape(-1, 3)
    corners = np.arange(len(points)).reshape(19, 8)
    along = np.stack([corners[:-1], corners[1:]], axis=-1).reshape(-1, 2)
    around = np.stack([corners, np.roll(corners, 1, axis=1)], axis=-1).reshape(-1, 2)
    return points, np.vstack([along, around])


def blended(points: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """Bones and weights (N, BONES) that pass from one bone to the next within ``width`` of the joint."""
    shares = np.clip((points[:, :1] - np.arange(1, BONES)) / width + 0.5, 0.0, 1.0)
    steps = np.hstack([np.ones((len(points), 1)), shares, np.zeros((len(points), 1))])
    return np.tile(np.arange(BONES), (len(points), 1)), steps[:, :-1] - steps[:, 1:]


def turns(seed=0, count=FRAMES) -> np.ndarray:
    found = of_vectors(0.5 * np.random.default_rng(seed).normal(size=(count, BONES, 3)))
    found[:, 0] = [1.0, 0.0, 0.0, 0.0]
    return found


def shapes(points, bones, weights, motion) -> np.ndarray:
    return np.array([skin_frame(points, bones, weights, each) for each in motion])


def test_weights_of_a_softer_joint_are_found_again():
    points, edges = tube()
    skeleton, given = chain(BONES), turns()
    bones, soft = blended(points, 0.9)
    sharp = blended(points, 0.5)[1]
    wanted = shapes(points, bones, soft, posed(skeleton, given))
    found = imitate(points, edges, wanted, skeleton, given, bones, sharp)
    assert found.imitated > 0.99
    assert not found.helpers
    assert np.count_nonzero(found.weights, axis=1).max() <= 4
    assert np.allclose(found.weights.sum(axis=1), 1.0)
    difference = weight_matrix(found.bones, found.weights, BONES) - weight_matrix(bones, soft, BONES)
    assert abs(difference).max() < 0.01


def test_locked_bones_keep_their_weights():
    points, edges = tube()
    skeleton, given = chain(BONES), turns()
    bones, soft = blended(points, 0.9)
    sharp = blended(points, 0.5)[1]
    wanted = shapes(points, bones, soft, posed(skeleton, given))
    locked = np.array([True, False, False])
    found = imitate(points, edges, wanted, skeleton, given, bones, sharp, locked_bones=locked)
    new = weight_matrix(found.bones, found.weights, BONES).toarray()
    assert np.allclose(new[:, 0], sharp[:, 0], atol=1e-12)
    assert 0.05 < found.imitated < 0.9
    assert np.allclose(new.sum(axis=1), 1.0)
    with pytest.raises(BadWeights, match="is locked"):
        imitate(points, edges, wanted, skeleton, given, bones, sharp, locked_bones=np.ones(BONES, bool))


def test_one_influence_of_each_vertex_is_the_best_one():
    """No vertex is worse than with the bone that it had alone; the strongest of several together can be."""
    points, edges = tube()
    count, rng = 8, np.random.default_rng(5)
    points[:, 0] *= count / BONES
    skeleton, given = chain(count), of_vectors(0.5 * rng.normal(size=(40, count, 3)))
    given[:, 0] = [1.0, 0.0, 0.0, 0.0]
    motion = posed(skeleton, given)
    bones = np.tile(np.arange(count), (len(points), 1))
    before = np.eye(count)[np.minimum(points[:, 0].astype(int), count - 1)]
    soft = 0.5 * before + 0.5 * rng.dirichlet(np.full(count, 0.3), len(points))
    wanted = shapes(points, bones, soft, motion) + 0.3 * rng.normal(size=(1, len(points), 3))
    found = imitate(points, edges, wanted, skeleton, given, bones, before, max_influences=1)
    assert found.bones.shape[1] == 1
    left, had = (
        np.square(shapes(points, *skin, motion) - wanted).sum(axis=(0, 2))
        for skin in ((found.bones, found.weights), (bones, before))
    )
    assert (left <= had * (1 + 1e-9)).all()
    assert (left < had).any()


def test_a_muscle_that_follows_its_joint_becomes_a_driven_helper():
    points, edges = tube()
    skeleton, given, unseen = chain(BONES), turns(), turns(seed=9)
    bones, weights = blended(points, 0.5)
    coefficients = np.zeros((9, 6))
    coefficients[1, 1], coefficients[5, 2], coefficients[2, 3] = 0.3, 0.6, 0.4
    muscle = DrivenHelper(0, np.array([0.6, 0.0, 0.0]), (1,), coefficients)
    share = np.exp(-((points[:, 0] - 0.6) ** 2) / 0.05)

    def taught(turned):
        motion = posed(skeleton, turned)
        both = np.concatenate([motion, helper_motion([muscle], turned, motion)], axis=1)
        columns = np.hstack([bones, np.full((len(points), 1), BONES)])
        return shapes(points, columns, np.hstack([weights * (1 - share[:, None]), share[:, None]]), both)

    found = imitate(points, edges, taught(given), skeleton, given, bones, weights, helper_count=1)
    assert found.imitated > 0.9
    assert 1 in found.helpers[0].joints
    motion = posed(skeleton, unseen)
    both = np.concatenate([motion, helper_motion(found.helpers, unseen, motion)], axis=1)
    wanted = taught(unseen)
    left = np.linalg.norm(shapes(points, found.bones, found.weights, both) - wanted)
    assert left < 0.15 * np.linalg.norm(shapes(points, bones, weights, motion) - wanted)


def test_features_are_those_of_the_rotation_and_vanish_at_rest():
    given = turns()
    assert np.array_equal(features(given, (1, 2)), features(-given, (1, 2)))
    rest = np.zeros((1, BONES, 4))
    rest[..., 0] = 1.0
    assert not features(rest, (1, 2)).any()
    helper = DrivenHelper(0, np.array([0.2, 0.1, 0.0]), (1,), np.ones((9, 6)))
    assert np.allclose(helper.beside(rest), np.eye(4)[:3])


@pytest.mark.parametrize("wanted", [(1,), (2, 5), (0, 7), (3, 10, 14)])
def test_a_channel_takes_the_variables_that_it_needs(wanted):
    """Of two joints: such as y alone, or x of the first joint and a product of its x and z."""
    known = features(turns(), (1, 2))
    gram, right = known.T @ known, known.T @ known[:, list(wanted)].sum(axis=1)
    terms = chosen_terms(gram + 1e-9 * np.eye(18), right, 1e-6)
    needed = {3 * (term // 9) + each - 1 for term in wanted for each in PRODUCTS[term % 9] if each}
    taken = {3 * (term // 9) + each - 1 for term in np.flatnonzero(terms) for each in PRODUCTS[term % 9] if each}
    assert taken == needed
    np.testing.assert_allclose(
        fitted(gram, right[:, None], terms[:, None])[:, 0], np.isin(np.arange(18), wanted), atol=1e-6
    )
    # Nothing is worth more than there is to explain.
    assert not chosen_terms(gram, right, float(right @ np.linalg.solve(gram, right))).any()


@pytest.mark.parametrize("helper_count", [0, 1])
def test_weights_are_not_fitted_to_rounding(helper_count):
    points, edges = tube()
    points = points * [1.0, 1.0, 0.0]
    skeleton, given = chain(BONES), turns(count=12)
    bones, weights = blended(points, 0.9)
    frames = shapes(points, bones, weights, posed(skeleton, given)).astype(np.float32)
    found = imitate(points, edges, frames, skeleton, given, bones, weights, helper_count=helper_count)
    total = BONES + helper_count
    difference = weight_matrix(found.bones, found.weights, total) - weight_matrix(bones, weights, total)
    assert abs(difference).max() < 0.02
    assert found.imitated == 0.0


def test_no_more_helpers_than_vertices_whose_weights_may_change():
    points, edges = tube()
    skeleton, given = chain(BONES), turns(count=12)
    bones, soft = blended(points, 0.9)
    few = blended(points, 0.5)[1]
    few[2:] = 0.0
    wanted = shapes(points, bones, soft, posed(skeleton, given)) + 0.1 * given[:, None, 1, 1:]
    found = imitate(points, edges, wanted, skeleton, given, bones, few, helper_count=5)
    assert len(found.helpers) == 2
    assert found.imitated > 0
    np.testing.assert_array_equal(found.changed, few.any(axis=1))
    np.testing.assert_allclose(found.weights.sum(axis=1), few.any(axis=1))


def test_bad_input_and_cancelling():
    points, edges = tube()
    skeleton, given = chain(BONES), turns(count=4)
    bones, weights = blended(points, 0.5)
    wanted = shapes(points, bones, weights, posed(skeleton, given))
    with pytest.raises(BadSettings, match="same mesh"):
        imitate(points, edges, wanted[:3], skeleton, given, bones, weights)
    with pytest.raises(BadSettings, match="At least one influence"):
        imitate(points, edges, wanted, skeleton, given, bones, weights, max_influences=0)
    with pytest.raises(BadWeights, match="is missing"):
        imitate(points, edges, wanted, skeleton, given, bones, np.zeros_like(weights))
    with pytest.raises(Cancelled):
        imitate(points, edges, wanted, skeleton, given, bones, weights, progress=lambda fraction, stage: False)
