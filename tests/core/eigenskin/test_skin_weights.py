# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights of the skin that suit the components which correct it."""

from dataclasses import replace

import numpy as np
import pytest

from skinning_tools.core.eigenskin import (
    BadExamples,
    EigenSkinSettings,
    build_eigenskin,
    corrected_weights,
    example_errors,
)

from .posed_rigs import hinge_poses, limb

ALL = EigenSkinSettings(components=1, support_threshold=0.0)


def taught():
    posed = limb()
    return posed, posed.examples(hinge_poses("bone 1") + hinge_poses("bone 2"))


def test_one_component_leaves_less_also_at_poses_that_were_not_seen():
    posed, examples = taught()
    weights, errors = corrected_weights(posed.rig, examples, components=1)
    assert errors[-2] <= errors[0] * 0.75
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    steps = np.random.default_rng(0).uniform(-1.6, 1.6, 12)
    unseen = posed.examples(hinge_poses("bone 1", steps=steps) + hinge_poses("bone 2", steps=steps))
    left = []
    for rig in (posed.rig, replace(posed.rig, weights=weights)):
        errors = example_errors(rig, unseen, build_eigenskin(rig, examples, ALL))
        left.append(np.linalg.norm(errors.after))
    assert left[1] < 0.75 * left[0]


def test_weights_that_are_right_stay():
    posed = limb()
    plain = posed.examples(hinge_poses("bone 1") + hinge_poses("bone 2"), method="LBS")
    weights, errors = corrected_weights(posed.rig, plain)
    np.testing.assert_allclose(weights, posed.rig.weights, atol=1e-6)
    assert errors[0] < 1e-6


def test_what_no_example_moves_keeps_its_weights():
    posed = limb()
    examples = posed.examples(hinge_poses("bone 1"))
    weights, _ = corrected_weights(posed.rig, examples, components=1)
    far = posed.rig.rest[:, 0] > 3.2
    assert far.any()
    np.testing.assert_array_equal(weights[far], posed.rig.weights[far])
    assert np.abs(weights - posed.rig.weights).max() > 0.01


def test_locked_bones_keep_their_weights_and_the_others_share_the_rest():
    posed, examples = taught()
    # All bones on all vertices, so that a lock leaves two to each.
    rig = replace(posed.rig, weights=0.85 * posed.rig.weights + 0.05)
    locked = np.array([False, True, False])
    weights, errors = corrected_weights(rig, examples, components=1, locked=locked)
    held = locked[rig.bones]
    np.testing.assert_array_equal(weights[held], rig.weights[held])
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()
    assert errors.min() < 0.9 * errors[0]
    everything, unchanged = corrected_weights(rig, examples, components=1, locked=np.ones_like(locked))
    np.testing.assert_array_equal(everything, rig.weights)
    assert unchanged.min() == unchanged[0] == errors[0]


def test_examples_of_several_joints_alone_are_refused():
    posed = limb()
    both = posed.examples([{"bone 1": [0, 0.5, 0], "bone 2": [0, 0.5, 0]}])
    with pytest.raises(BadExamples, match="single joint"):
        corrected_weights(posed.rig, both)
