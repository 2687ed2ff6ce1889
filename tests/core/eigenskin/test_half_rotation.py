# SPDX-License-Identifier: GPL-3.0-or-later
"""Half-rotation bones under the corrections: their weights, their matrices, and what they save."""

import numpy as np
import pytest

from skinning_tools.core.eigenskin import (
    EigenSkinSettings,
    build_eigenskin,
    example_errors,
    half_matrices,
    half_rotations,
)

from .posed_rigs import STEPS, ball_poses, hinge_poses, limb, random_turns


def dense(bones, weights, count) -> np.ndarray:
    """(N, count)."""
    result = np.zeros((len(bones), count))
    np.add.at(result, (np.arange(len(bones))[:, None], bones), weights)
    return result


def halves_of(posed, examples, *ends):
    """The half-rotation bones of the joints ``ends`` of a chain."""
    return half_rotations(posed.rig, examples.rotations, [(end - 1, end, posed.heads[end]) for end in ends])


def test_weights_by_the_share_that_follows_the_joint():
    posed = limb(joints=(3.0,))
    examples = posed.examples(hinge_poses("bone 1"))
    halves = halves_of(posed, examples, 1)
    share = dense(posed.rig.bones, posed.rig.weights, 2)[:, 1]
    found = dense(*halves.rows(1, 4), 3)
    wanted = np.column_stack([np.maximum(0, 1 - 2 * share), np.maximum(0, 2 * share - 1), 1 - np.abs(1 - 2 * share)])
    assert 0 < share[wanted[:, 2] > 0.5].min() < share.max()
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_every_taught_joint_moves_each_vertex_as_far_as_before():
    """Three joints that share vertices: what follows a joint, half of its own helper counted, stays the same."""
    posed = limb(joints=(2.0, 3.0, 4.0))
    random = np.random.default_rng(3)
    weights = random.dirichlet(np.ones(4), len(posed.rig.rest))
    bones = np.tile(np.arange(4), (len(weights), 1))
    rig = type(posed.rig)(**{**vars(posed.rig), "bones": bones, "weights": weights})
    rotations = posed.examples([{f"bone {joint}": np.eye(3)[0] for joint in (1, 2, 3)}]).rotations
    halves = half_rotations(rig, rotations, [(end - 1, end, posed.heads[end]) for end in (1, 2, 3)])
    found = dense(*halves.rows(3, 7), 7)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found.min() >= 0
    assert found[:, 4:].max() > 0.2
    for joint in (1, 2, 3):
        before = weights[:, joint:].sum(axis=1)
        # Helpers of the joints below follow this one as a whole.
        after = found[:, joint:4].sum(axis=1) + 0.5 * found[:, 3 + joint] + found[:, 4 + joint :].sum(axis=1)
        np.testing.assert_allclose(after, before, atol=1e-12)


def test_bones_whose_weights_stay_keep_them():
    posed = limb()
    examples = posed.examples(hinge_poses("bone 1"))
    fixed = np.array([False, False, True])
    halves = half_rotations(posed.rig, examples.rotations, [(0, 1, posed.heads[1])], fixed)
    before = dense(posed.rig.bones, posed.rig.weights, 3)
    np.testing.assert_allclose(dense(*halves.rows(1, 4), 4)[:, 2], before[:, 2], atol=1e-12)


def test_a_joint_without_shared_vertices_gets_none():
    posed = limb()
    rig = type(posed.rig)(**{**vars(posed.rig), "bones": np.zeros_like(posed.rig.bones)})
    examples = posed.examples(hinge_poses("bone 1"))
    halves = half_rotations(rig, examples.rotations, [(0, 1, posed.heads[1])])
    assert len(halves) == 0
    same, _ = halves.applied(examples, 4)
    np.testing.assert_allclose(dense(same.bones, same.weights, 3)[:, 0], 1)


def test_matrices_half_way_in_the_space_where_bones_do_not_shear():
    posed = limb(joints=(3.0,))
    turned = posed.matrices(posed.rotations({"bone 1": np.array([0.3, 1.2, -0.4])}))
    wanted = posed.matrices(posed.rotations({"bone 1": np.array([0.15, 0.6, -0.2])}))[1]
    np.testing.assert_allclose(half_matrices(*turned, posed.heads[1], np.eye(3)), wanted, atol=1e-12)
    # The mesh is stretched against the armature.
    stretch = np.diag([1.0, 2.0, 0.5])
    back = np.linalg.inv(stretch)
    seen = np.concatenate([back @ turned[..., :3] @ stretch, back @ turned[..., 3:]], axis=-1)
    seen_half = half_matrices(*seen, back @ posed.heads[1], stretch)
    np.testing.assert_allclose(stretch @ seen_half[:, 3], wanted[:, 3], atol=1e-12)
    np.testing.assert_allclose(stretch @ seen_half[:, :3] @ back, wanted[:, :3], atol=1e-12)


@pytest.mark.parametrize(("components", "most"), [(3, 0.5), (6, 0.5)])
def test_few_components_leave_less_of_a_ball_joint(components, most):
    """At unseen poses, at most half of the error that is left without the helper."""
    posed = limb(joints=(3.0,))
    examples = posed.examples(ball_poses("bone 1", STEPS[::2]))
    unseen = posed.examples([{"bone 1": turn} for turn in random_turns(5, 12, STEPS.max())])
    halves = halves_of(posed, examples, 1)
    settings = EigenSkinSettings(components=components)
    plain = build_eigenskin(posed.rig, examples, settings)
    without = example_errors(posed.rig, unseen, plain)
    (rig, taught), (_, met) = halves.applied(examples, 4), halves.applied(unseen, 4)
    left = example_errors(rig, met, build_eigenskin(rig, taught, settings))
    assert np.linalg.norm(left.after) < most * np.linalg.norm(without.after)
