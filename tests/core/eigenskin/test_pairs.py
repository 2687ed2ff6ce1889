# SPDX-License-Identifier: GPL-3.0-or-later
"""Pairs of joints that act together: found, exact where they can be, zero where one joint is posed alone."""

from dataclasses import replace

import numpy as np
import pytest

from skinning_tools.core.eigenskin import EigenSkinSettings, build_eigenskin, example_errors
from skinning_tools.core.eigenskin.pairs import candidate_pairs, pair_centers
from skinning_tools.core.eigenskin.pose_space import REST, PoseSpace

from .posed_rigs import hinge_poses, limb, quaternion, random_turns

ALL = EigenSkinSettings(components=1000, support_threshold=0.0, max_per_vertex=100_000, joint_pairs=3)

STEPS = np.radians([-90, -45, 45, 90])


def arm():
    """Joints near each other, whose bends overlap, and one far off."""
    return limb((2.5, 3.5, 7.0), columns=36, rows=2, length=9.0)


def bump(posed, x, width, seed):
    rest = posed.rig.rest
    random = np.random.default_rng(seed)
    return np.clip(1 - ((rest[:, 0] - x) / width) ** 2, 0, None)[:, None] * random.normal(size=rest.shape) * 0.2


def planted(posed):
    """Displacements of each joint alone, and of the first two together."""
    alone, second, both = bump(posed, 2.5, 1.0, 2), bump(posed, 3.5, 1.0, 3), bump(posed, 3.0, 0.5, 1)
    far = bump(posed, 7.0, 1.0, 4)

    def displaced(turned):
        one, other, third = turned[1, 2], turned[2, 2], turned[3, 2]
        return one**2 * alone + other * second + third**2 * far + one * other * both

    return displaced


def singles_and_combinations():
    poses = [pose for joint in (1, 2, 3) for pose in hinge_poses(f"bone {joint}", steps=STEPS)]
    return poses + [{"bone 1": [0, one, 0], "bone 2": [0, other, 0]} for one in STEPS for other in STEPS]


def test_a_planted_pair_is_found_and_exact():
    posed = arm()
    poses = singles_and_combinations()
    examples = posed.examples(poses, displaced=planted(posed))
    without = build_eigenskin(posed.rig, examples, replace(ALL, joint_pairs=0))
    model = build_eigenskin(posed.rig, examples, ALL)
    assert [support.name for support in model.supports[3:]] == ["bone 1 + bone 2"]
    assert model.supports[3].joints == (1, 2)
    before, after = (example_errors(posed.rig, examples, which) for which in (without, model))
    assert before.after[12:].min() > 0.001
    assert np.linalg.norm(after.after[12:]) < 0.1 * np.linalg.norm(before.after[12:])
    middle = np.abs(posed.rig.rest[:, 0] - 3.0) < 0.3
    assert after.per_vertex_after[middle].max() < 0.02 * before.per_vertex_after[middle].max()


def test_one_sculpted_combination_is_enough():
    """Only its mask limits how closely the example is met."""
    posed = arm()
    poses = [*hinge_poses("bone 1", steps=STEPS), *hinge_poses("bone 2", steps=STEPS)]
    poses.append({"bone 1": [0, STEPS[3], 0], "bone 2": [0, STEPS[2], 0]})
    examples = posed.examples(poses, displaced=planted(posed))
    model = build_eigenskin(posed.rig, examples, ALL, painted={"bone 1 + bone 2": np.ones(len(posed.rig.rest))})
    assert [support.name for support in model.supports] == ["bone 1", "bone 2", "bone 1 + bone 2"]
    assert len(model.supports[2].components) == 1
    inside = model.supports[2].vertices
    assert example_errors(posed.rig, examples, model).per_vertex_after[inside].max() < 1e-5


def test_a_pair_adds_nothing_where_one_of_its_joints_is_posed_alone():
    posed = arm()
    poses = singles_and_combinations()
    examples = posed.examples(poses, displaced=planted(posed))
    model = build_eigenskin(posed.rig, examples, ALL)
    count = len(model.supports[3].components)
    turns = random_turns(5, 20, 2.0)
    alone = [{f"bone {joint}": vector} for vector in turns for joint in (1, 2)]
    alone += [{"bone 0": vector, "bone 1": vector, "bone 3": vector} for vector in turns]
    values = model.values(np.array([posed.rotations(pose) for pose in alone]))[:, -count:]
    np.testing.assert_allclose(values, 0, atol=1e-12)
    together = model.values(examples.rotations[12:])[:, -count:]
    assert np.abs(together).max() == pytest.approx(1)
    errors = example_errors(posed.rig, examples, model)
    assert errors.worst_distance[:12].max() < 1e-5


def test_no_pair_where_the_joints_explain_everything():
    posed = arm()
    alone = planted(posed)
    examples = posed.examples(
        singles_and_combinations(),
        displaced=lambda turned: sum(
            alone(np.where(np.arange(4)[:, None] == joint, turned, REST)) for joint in (1, 2, 3)
        ),
    )
    model = build_eigenskin(posed.rig, examples, ALL)
    assert [len(support.joints) for support in model.supports] == [1, 1, 1]


def test_no_pair_without_examples_of_several_joints():
    posed = arm()
    examples = posed.examples(hinge_poses("bone 1") + hinge_poses("bone 2"))
    model = build_eigenskin(posed.rig, examples, ALL)
    assert [len(support.joints) for support in model.supports] == [1, 1]


def test_pairs_of_general_poses_improve_poses_that_they_have_not_seen():
    """Two ball joints nearly at one place, dual quaternions as the target."""
    posed = limb((2.95, 3.05), columns=24, rows=3)

    def poses(seed, count):
        turns = random_turns(seed, 2 * count, 1.2).reshape(count, 2, 3)
        return [{"bone 1": one, "bone 2": other} for one, other in turns]

    examples, unseen = posed.examples(poses(1, 200)), posed.examples(poses(2, 25))
    without, model = (build_eigenskin(posed.rig, examples, replace(ALL, joint_pairs=count)) for count in (0, 1))
    assert [support.joints for support in model.supports] == [(1,), (2,), (1, 2)]
    single, pair = (example_errors(posed.rig, unseen, which).relative for which in (without, model))
    assert single < 0.5
    assert pair < 0.9 * single


def test_noise_is_no_pair():
    """Shapes that nothing explains must not bring in corrections that spoil other poses."""
    posed = arm()
    random = np.random.default_rng(3)
    turns = np.random.default_rng(4).uniform(-1.5, 1.5, (40, 2))
    poses = [{"bone 1": [0, one, 0], "bone 2": [0, other, 0]} for one, other in turns]
    function = planted(posed)

    def noisy(turned):
        return function(np.where(np.arange(4)[:, None] == 1, turned, REST)) + 0.02 * random.normal(
            size=posed.rig.rest.shape
        )

    examples = posed.examples(poses, displaced=noisy)
    without, model = (build_eigenskin(posed.rig, examples, replace(ALL, joint_pairs=count)) for count in (0, 3))
    unseen = posed.examples(
        [{"bone 1": [0, one, 0], "bone 2": [0, other, 0]} for one, other in turns[:, ::-1]],
        displaced=lambda turned: function(np.where(np.arange(4)[:, None] == 1, turned, REST)),
    )
    single, pairs = (example_errors(posed.rig, unseen, which).relative for which in (without, model))
    assert pairs < 1.05 * single


def test_candidates_are_posed_together():
    moving = np.array([[1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0]], bool)
    assert candidate_pairs(moving) == [(0, 1), (1, 3)]


def test_centers_of_pairs_are_bounded_and_spread():
    centers = np.concatenate([REST[None], [quaternion([0, angle, 0]) for angle in STEPS]])
    space = PoseSpace(centers, None, 1.0)
    one, other = np.indices((4, 4)).reshape(2, -1) + 1
    every = pair_centers(space, space, centers[one], centers[other], 16)
    assert len(np.unique(every, axis=0)) == 16
    few = pair_centers(space, space, centers[one], centers[other], 4)
    assert len(np.unique(few, axis=0)) == 4
    # The corners, or all but the one in the middle where the choice begins.
    assert sum(set(pair) <= {0, 3} for pair in few.tolist()) >= 3


def test_a_pair_seen_in_slight_poses_alone_stays_on_its_slider():
    """Between the joints' own observations its value grows to many times what the one example needs."""
    posed = arm()
    poses = [*hinge_poses("bone 1", steps=STEPS), *hinge_poses("bone 2", steps=STEPS)]
    poses.append({"bone 1": [0, np.radians(8), 0], "bone 2": [0, np.radians(8), 0]})
    examples = posed.examples(poses, displaced=planted(posed))
    model = build_eigenskin(posed.rig, examples, replace(ALL, max_centers=4))
    (pair,) = (support for support in model.supports if len(support.joints) == 2)
    assert 5 < pair.limits[0] <= 10 * (1 + 1e-12)
    bent = posed.rotations({"bone 1": [0, STEPS[2], 0], "bone 2": [0, STEPS[2], 0]})
    value = model.values(bent[None])[0, -1]
    assert abs(model.values(examples.rotations[-1:])[0, -1]) < 0.5 * abs(value)
    assert abs(value) < pair.limits[0]


def test_a_pair_takes_no_room_that_others_use_better():
    """In one example the two together displace the skin most; in many others one of them alone, as one component."""
    posed = arm()
    one, other, both = (bump(posed, 3.0, 0.4, seed) for seed in (1, 2, 3))
    poses = [pose for joint in (1, 2) for pose in hinge_poses(f"bone {joint}", steps=np.radians(np.arange(40, 100, 5)))]
    poses.append({"bone 1": [0, STEPS[3], 0], "bone 2": [0, STEPS[3], 0]})
    examples = posed.examples(
        poses,
        displaced=lambda turned: turned[1, 2] * one + turned[2, 2] * other + 2.5 * turned[1, 2] * turned[2, 2] * both,
    )
    options = EigenSkinSettings(components=1, max_per_vertex=2)
    without, model, roomy = (
        build_eigenskin(posed.rig, examples, replace(options, joint_pairs=count, max_per_vertex=most))
        for count, most in ((0, 2), (1, 2), (1, 3))
    )
    assert [support.joints for support in roomy.supports] == [(1,), (2,), (1, 2)]
    strongest = [np.abs(support.components).max() for support in roomy.supports]
    assert strongest[2] > max(strongest[:2])
    assert [support.joints for support in model.supports] == [(1,), (2,)]
    for first, second in zip(without.supports, model.supports, strict=True):
        np.testing.assert_array_equal(first.mask, second.mask)
        np.testing.assert_array_equal(first.components, second.components)
