# SPDX-License-Identifier: GPL-3.0-or-later
"""Fewer basis functions than examples: the examples that are worth most, without loss at poses that are left out."""

from dataclasses import replace

import numpy as np
import pytest

from skinning_tools.core.eigenskin import (
    EigenSkinSettings,
    Examples,
    build_eigenskin,
    example_errors,
    left_out_errors,
    shell_turns,
)
from skinning_tools.core.eigenskin.fewer import fewer_functions
from skinning_tools.core.eigenskin.pose_space import REST, PoseSpace, hinge_angles
from skinning_tools.core.errors import BadSettings

from .posed_rigs import PosedRig, hinge_poses, limb, quaternion, random_turns

ALL = EigenSkinSettings(components=1000, support_threshold=0.0, max_per_vertex=100_000)
MANY = np.radians(np.arange(-115, 120, 10))


def bent(noise=0.0, seed=0) -> tuple[PosedRig, Examples]:
    """24 poses of a hinge, with the shapes of dual quaternions, and noise as a share of their displacement."""
    posed = limb()
    return posed, noisy(posed, posed.examples(hinge_poses("bone 1", steps=MANY)), noise, seed)


def turned_about(noise=0.0) -> tuple[PosedRig, Examples]:
    posed = limb()
    reach = np.full(3, np.radians(90))
    poses = [{"bone 1": vector} for vector in shell_turns(40, -reach, reach)]
    return posed, noisy(posed, posed.examples(poses), noise)


def noisy(posed, examples, noise, seed=0) -> Examples:
    plain = posed.examples([{"bone 1": rotation_vector(row)} for row in examples.rotations[:, 1]], method="LBS")
    offsets = examples.shapes - plain.shapes
    random = np.random.default_rng(seed).normal(size=offsets.shape) * (np.abs(offsets) > 1e-9)
    return replace(examples, shapes=examples.shapes + noise * random * np.linalg.norm(offsets) / np.linalg.norm(random))


def rotation_vector(rotation) -> np.ndarray:
    angle = 2 * np.arccos(np.clip(rotation[0], -1, 1))
    return angle * rotation[1:] / max(np.linalg.norm(rotation[1:]), 1e-300)


def functions_of(model) -> list[int]:
    return [len(support.basis_weights) - 1 for support in model.supports]


def test_the_example_whose_function_it_is_is_worth_most():
    centers = np.concatenate([REST[None], [quaternion(vector) for vector in random_turns(0, 12, 2.0)]])
    space = PoseSpace(centers, None)
    values = space.tied_features(centers[1:])[:, [7]] @ [[1.0, 0.5]]
    found = fewer_functions(space, values @ values.T, 5)
    assert {centers.tolist().index(center) for center in found.space.centers.tolist()} == {0, 8}
    seen = found.space.features(centers) @ found.weights(values)
    np.testing.assert_allclose(seen[1:], values, atol=1e-6)
    np.testing.assert_allclose(seen[0], 0, atol=1e-9)


@pytest.mark.parametrize(("make", "share"), [(bent, 1.0), (turned_about, 0.95)])
def test_noise_is_not_followed(make, share):
    """Against the shapes without the noise, at the same poses, which the examples left out."""
    posed, examples = make(0.05)
    _, clean = make()
    every, few = (build_eigenskin(posed.rig, examples, replace(ALL, basis_functions=most)) for most in (0, 30))
    assert functions_of(every) == [len(examples.names)]
    assert functions_of(few)[0] < 0.6 * len(examples.names)
    errors = [example_errors(posed.rig, clean, model).relative for model in (every, few)]
    assert errors[1] < share * errors[0]
    left_out = [left_out_errors(posed.rig, examples, basis_functions=most).relative for most in (0, 30)]
    assert left_out[1] < left_out[0]


def test_without_noise_nothing_is_lost():
    posed, examples = bent()
    every, few = (build_eigenskin(posed.rig, examples, replace(ALL, basis_functions=most)) for most in (0, 30))
    assert functions_of(few)[0] <= 12 < functions_of(every)[0]
    unseen = posed.examples(hinge_poses("bone 1", steps=np.random.default_rng(3).uniform(-1.9, 1.9, 20)))
    errors = [example_errors(posed.rig, unseen, model).relative for model in (every, few)]
    assert errors[1] < errors[0] + 0.005
    left_out = [left_out_errors(posed.rig, examples, basis_functions=most).relative for most in (0, 30)]
    assert left_out[1] < left_out[0] + 0.005


def test_the_limit_holds_and_more_are_closer():
    posed, examples = turned_about()
    left = []
    for most in (3, 9, 20):
        model = build_eigenskin(posed.rig, examples, replace(ALL, basis_functions=most))
        assert functions_of(model) == [most]
        assert np.abs(model.values(np.tile(REST, (1, 3, 1)))).max() < 1e-6
        left.append(example_errors(posed.rig, examples, model).relative)
    assert left[0] > 1.5 * left[1] > 2 * left[2]


def test_few_examples_keep_their_functions():
    posed = limb()
    examples = posed.examples(hinge_poses("bone 1", steps=np.radians([-80, 50])))
    models = [build_eigenskin(posed.rig, examples, replace(ALL, basis_functions=most)) for most in (0, 30)]
    np.testing.assert_array_equal(*(model.values(examples.rotations) for model in models))
    alone = posed.examples(hinge_poses("bone 1", steps=[0.8]))
    assert left_out_errors(posed.rig, alone, basis_functions=3).relative == pytest.approx(1)


def test_a_hinge_that_turns_far_keeps_its_ends():
    """Else its middle would move, and with it the angle at which it jumps."""
    posed = limb()
    steps = np.radians(np.arange(15, 270, 15))
    examples = posed.examples(hinge_poses("bone 1", steps=steps))
    model = build_eigenskin(posed.rig, examples, replace(ALL, basis_functions=6))
    space = model.spaces[1]
    angles = hinge_angles(space.centers, space.axis)
    assert len(angles) == 7
    taught = hinge_angles(examples.rotations[:, 1], space.axis)
    assert (angles.min(), angles.max()) == pytest.approx((taught.min(), taught.max()))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_limit_holds_where_the_ends_alone_reach_it(most):
    posed = limb()
    examples = posed.examples(hinge_poses("bone 1", steps=np.radians(np.arange(-110, 111, 20))))
    model = build_eigenskin(posed.rig, examples, replace(ALL, basis_functions=most))
    assert functions_of(model) == [most]


def test_a_bad_number_is_refused():
    posed, examples = bent()
    with pytest.raises(BadSettings, match="Basis Functions must not be negative"):
        build_eigenskin(posed.rig, examples, EigenSkinSettings(basis_functions=-1))
