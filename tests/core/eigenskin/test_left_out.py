# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples predicted from the others, against the interpolation without them."""

import numpy as np
import pytest

from skinning_tools.core.eigenskin import (
    BadExamples,
    PoseSpace,
    left_out_errors,
    rest_displacements,
    rotation_angles,
)
from skinning_tools.core.eigenskin.pose_space import REST

from .posed_rigs import ball_poses, hinge_poses, limb


def taught():
    posed = limb()
    return posed, posed.examples(hinge_poses("bone 1") + ball_poses("bone 2", np.radians([-80, 40, 90])))


def test_errors_are_those_of_the_interpolation_without_the_example():
    posed, examples = taught()
    rig = posed.rig
    found = left_out_errors(rig, examples)
    displacements = rest_displacements(rig.rest, rig.bones, rig.weights, examples.matrices, examples.shapes).values
    np.testing.assert_array_equal(found.rows, np.arange(15))
    np.testing.assert_allclose(found.displaced, np.linalg.norm(displacements.reshape(15, -1), axis=1), rtol=1e-5)
    for row, joint, own in ((1, 1, range(6)), (3, 1, range(6)), (9, 2, range(6, 15))):
        kept = [other for other in own if other != row]
        centers = np.concatenate([REST[None], examples.rotations[kept, joint]])
        space = PoseSpace(centers, np.array([0.0, 1, 0]) if joint == 1 else None)
        predicted = space.features(examples.rotations[[row], joint]) @ space.weights(
            displacements[kept].reshape(-1, 906)
        )
        missed = np.linalg.norm(predicted[0] - displacements[row].ravel())
        assert found.missed[row] == pytest.approx(missed, rel=1e-3)
    assert found.relative == pytest.approx(np.linalg.norm(found.missed) / np.linalg.norm(found.displaced))


def test_the_next_pose_is_of_the_joint_known_least_and_between_its_axes():
    posed, examples = taught()
    found = left_out_errors(posed.rig, examples)
    assert posed.rig.joint_names[found.joint] == "bone 2"
    vector = found.rotation[1:] / np.linalg.norm(found.rotation[1:])
    assert np.abs(vector).max() < 0.95
    assert np.radians(40) < rotation_angles(found.rotation) <= np.radians(90) + 1e-9


def test_examples_of_several_joints_alone_determine_nothing():
    posed = limb()
    both = {"bone 1": [0, 0.5, 0], "bone 2": [0, 0.5, 0]}
    found = left_out_errors(posed.rig, posed.examples([both, *hinge_poses("bone 1")]))
    np.testing.assert_array_equal(found.rows, np.arange(1, 7))
    with pytest.raises(BadExamples, match="single joint"):
        left_out_errors(posed.rig, posed.examples([both]))
