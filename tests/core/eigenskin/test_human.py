# SPDX-License-Identifier: GPL-3.0-or-later
"""The issue's figures: how much of a dual-quaternion shape few components hold, on the MakeHuman body."""

import numpy as np
import pytest

from skinning_tools.core.eigenskin import (
    EigenSkinSettings,
    build_eigenskin,
    example_errors,
    rest_displacements,
    shell_turns,
)

from .posed_rigs import STEPS, ball_poses, components_per_vertex, hinge_poses, human, random_turns, rest_metric_error


@pytest.fixture(scope="module")
def body(shared_data):
    return human(shared_data)


def errors(body, examples, count):
    """‖residual‖ / ‖displacement‖ of the rest displacements, and of the posed shapes."""
    rig = body.rig
    model = build_eigenskin(rig, examples, EigenSkinSettings(components=count))
    mapped = rest_displacements(rig.rest, rig.bones, rig.weights, examples.matrices, examples.shapes)
    return (
        rest_metric_error(mapped.values, model, examples.rotations),
        example_errors(rig, examples, model).relative,
    )


@pytest.mark.parametrize("joint", ["lowerarm01.L", "lowerleg01.L"])
def test_hinges_need_two_components(body, joint):
    examples = body.examples(hinge_poses(joint))
    for count, most in ((1, 0.27), (2, 0.06), (3, 0.05)):
        assert max(errors(body, examples, count)) <= most


@pytest.mark.parametrize("joint", ["upperleg01.L", "upperarm01.L"])
def test_ball_joints_need_nine_components(body, joint):
    """From 24 examples on two shells of angles, at 25 rotations about any axis; no six components hold more."""
    reach = np.full(3, np.radians(100))
    examples = body.examples([{joint: turn} for turn in shell_turns(24, -reach, reach)])
    unseen = body.examples([{joint: vector} for vector in random_turns(1, 25, np.radians(95))])
    for count, most in ((3, 0.65), (6, 0.4), (10, 0.1)):
        model = build_eigenskin(body.rig, examples, EigenSkinSettings(components=count))
        assert example_errors(body.rig, unseen, model).relative <= most
        assert model.component_count == count


@pytest.mark.parametrize("joint", ["lowerarm01.L", "lowerleg01.L", "upperarm01.L", "upperleg01.L"])
@pytest.mark.parametrize("kind", ["hinge", "ball"])
def test_poses_between_the_examples(body, joint, kind):
    """25 of them: on the ways that the examples lie on, from one end of the range to the other."""
    examples = body.examples(hinge_poses(joint) if kind == "hinge" else ball_poses(joint))
    model = build_eigenskin(body.rig, examples, EigenSkinSettings(components=5))
    random = np.random.default_rng(0)
    angles, axes = random.uniform(STEPS[0], STEPS[-1], 25), random.integers(3, size=25)
    unseen = body.examples(
        [{joint: angle * np.eye(3)[1 if kind == "hinge" else axis]} for angle, axis in zip(angles, axes, strict=True)]
    )
    assert example_errors(body.rig, unseen, model).relative < (0.06 if kind == "hinge" else 0.25)


def test_examples_about_more_axes_carry_over_to_all_rotations(body):
    """Nine axes and ten components; three axes alone do not determine the shapes between them."""
    diagonals = np.array([[1, 1, 0], [1, -1, 0], [1, 0, 1], [1, 0, -1], [0, 1, 1], [0, 1, -1]]) / np.sqrt(2)
    joint = "upperarm01.L"
    poses = [{joint: step * axis} for axis in (*np.eye(3), *diagonals) for step in STEPS]
    model = build_eigenskin(body.rig, body.examples(poses), EigenSkinSettings(components=10))
    unseen = body.examples([{joint: vector} for vector in random_turns(1, 25, STEPS[-1])])
    assert example_errors(body.rig, unseen, model).relative < 0.25


def test_the_whole_body(body):
    """20 joints, 120 examples: every vertex within the limit, both sides alike."""
    joints = [
        *("spine03", "spine02", "spine01", "neck01", "head"),
        *(
            f"{name}.{side}"
            for name in ("clavicle", "shoulder01", "upperarm01", "lowerarm01", "wrist")
            for side in "LR"
        ),
        *(f"{name}.{side}" for name in ("upperleg01", "lowerleg01") for side in "LR"),
        "foot.L",
    ]
    examples = body.examples([pose for joint in joints for pose in hinge_poses(joint)])
    model = build_eigenskin(body.rig, examples, EigenSkinSettings(max_per_vertex=10))
    assert len(examples.names) == 120
    assert len(model.supports) == 20
    assert model.component_count == 60
    assert components_per_vertex(model).max() <= 10
    assert example_errors(body.rig, examples, model).relative < 0.2
