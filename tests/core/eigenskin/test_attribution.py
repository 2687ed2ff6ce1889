# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples that pose several joints at once: what belongs to which joint."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.eigenskin import EigenSkinSettings, build_eigenskin, example_errors, is_turned
from skinning_tools.core.eigenskin.attribution import _NOISE, chosen_centers, joint_regions
from skinning_tools.core.eigenskin.pose_space import rotation_distances
from skinning_tools.core.errors import Cancelled

from .posed_rigs import hinge_poses, limb, quaternion, random_turns

ALL = EigenSkinSettings(components=1000, support_threshold=0.0, max_per_vertex=100_000)


def planted(posed, joint, seed):
    """A smooth function from a joint's rotation to displacements (N, 3) about the place where it bends."""
    random = np.random.default_rng(seed)
    rest, x = posed.rig.rest, posed.heads[joint, 0]
    near = np.clip(1 - ((rest[:, 0] - x) / 1.2) ** 2, 0, None)[:, None]
    shapes = near * random.normal(size=(6, *rest.shape)) * 0.1
    return lambda turned: np.tensordot(np.array([*turned[joint, 1:], *turned[joint, 1:] ** 2]), shapes, axes=1)


def hinge_sets(posed, seed, count, joints=(1, 2)):
    """Poses of several hinges at random angles."""
    angles = np.random.default_rng(seed).uniform(-1.7, 1.7, (count, len(joints)))
    return [{f"bone {joint}": [0, angle, 0] for joint, angle in zip(joints, row, strict=True)} for row in angles]


def share_missed(model, posed, functions, poses):
    """‖found − planted‖ / ‖planted‖ of each joint's own displacements, at poses of that joint alone."""
    missed = []
    for joint, function in functions.items():
        found, expected = [], []
        for pose in poses:
            turned = posed.rotations({f"bone {joint}": pose[f"bone {joint}"]})
            found.append(model.displacements(model.values(turned[None])[0]))
            expected.append(function(turned))
        missed.append(np.linalg.norm(np.subtract(found, expected)) / np.linalg.norm(expected))
    return missed


@pytest.mark.parametrize("joints", [(2.0, 4.0), (2.5, 3.5)])
def test_planted_functions_of_joints_posed_together_are_told_apart(joints):
    """Also where both displace the same vertices; the examples never show one joint alone."""
    posed = limb(joints)
    functions = {joint: planted(posed, joint, joint) for joint in (1, 2)}
    examples = posed.examples(
        hinge_sets(posed, 1, 30), displaced=lambda turned: sum(function(turned) for function in functions.values())
    )
    model = build_eigenskin(posed.rig, examples, ALL)
    assert [support.name for support in model.supports] == ["bone 1", "bone 2"]
    assert max(share_missed(model, posed, functions, hinge_sets(posed, 2, 20))) < 0.1
    assert example_errors(posed.rig, examples, model).relative < 0.1


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=10)
def test_joints_far_from_each_other_do_not_disturb_each_other(seed):
    """What no other joint can have done is met nearly as if the joint were posed alone."""
    posed = limb((1.5, 6.5), columns=16, rows=2, length=8.0)
    functions = {joint: planted(posed, joint, seed + joint) for joint in (1, 2)}
    examples = posed.examples(
        hinge_sets(posed, seed, 10), displaced=lambda turned: sum(function(turned) for function in functions.values())
    )
    model = build_eigenskin(posed.rig, examples, ALL)
    # What the attribution takes for noise is left: a displacement's share is the root of the variance's.
    assert example_errors(posed.rig, examples, model).relative < 3 * np.sqrt(_NOISE)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=10)
def test_examples_of_one_joint_stay_exact_beside_examples_of_several(seed):
    posed = limb((2.0, 3.5), columns=10, rows=2)
    random = np.random.default_rng(seed)
    poses = hinge_poses("bone 1") + [{"bone 2": vector} for vector in random_turns(seed, 6, 2.0)]
    poses += hinge_sets(posed, seed, 40)
    functions = {joint: planted(posed, joint, seed + joint) for joint in (1, 2)}

    def displaced(turned):
        """Examples with several joints have shapes that no model explains, and pull at it as hard as they can."""
        joints = [joint for joint in functions if is_turned(turned[joint])]
        return functions[joints[0]](turned) if len(joints) == 1 else 0.1 * random.normal(size=posed.rig.rest.shape)

    examples = posed.examples(poses, displaced=displaced)
    model = build_eigenskin(posed.rig, examples, ALL)
    errors = example_errors(posed.rig, examples, model)
    assert np.all(errors.worst_distance[:12] < 1e-3)
    assert np.linalg.norm(errors.after[12:]) > 0.3 * np.linalg.norm(errors.before[12:])


def test_examples_of_several_joints_add_to_those_of_single_joints():
    """The second joint is seen in company only."""
    posed = limb()
    functions = {joint: planted(posed, joint, joint) for joint in (1, 2)}
    poses = hinge_poses("bone 1") + hinge_sets(posed, 3, 24)
    examples = posed.examples(poses, displaced=lambda turned: sum(part(turned) for part in functions.values()))
    model = build_eigenskin(posed.rig, examples, ALL)
    missed = share_missed(model, posed, functions, hinge_sets(posed, 4, 20))
    assert max(missed) < 0.1
    assert example_errors(posed.rig, examples, model).worst_distance[:6].max() < 1e-4


def test_a_muscle_away_from_the_bend_finds_its_joint():
    """Vertices that follow one bone alone, displaced by the joint at its end: no other joint moves in step with it."""
    posed = limb((2.0, 5.0), columns=40, length=8.0)
    rest = posed.rig.rest
    bulge = np.clip(1 - ((rest[:, 0] - 3.5) / 0.4) ** 2, 0, None)[:, None] * rest * [0, 0.3, 0.3]
    assert np.abs(rest[np.any(bulge, axis=1), 0] - 3.5).max() < 0.5
    examples = posed.examples(hinge_sets(posed, 1, 20), displaced=lambda turned: bulge * turned[2, 2] ** 2)
    model = build_eigenskin(posed.rig, examples, ALL)
    (missed,) = share_missed(model, posed, {2: lambda turned: bulge * turned[2, 2] ** 2}, hinge_sets(posed, 2, 20))
    assert missed < 0.2


def test_a_joints_region_ends_at_its_neighbors():
    """w below the joint 1 / 2 in its bend, 0 or 1 away from it; the parts to both sides, and no other."""
    posed = limb((2.0, 4.0), columns=60)
    rig, x = posed.rig, posed.rig.rest[:, 0]
    regions = joint_regions(rig.bones, rig.weights, rig.joint_of_bone, rig.parents, np.array([1, 2]))
    for region, place in zip(regions, (2.0, 4.0), strict=True):
        np.testing.assert_allclose(region[np.abs(x - place) < 1e-9], 1)
        assert np.all(region <= 1)
    assert np.all(regions[1][x < 1] == 0)
    assert np.all(regions[0][x > 5] == 0)
    assert np.all(regions[0][x < 1] > 0)
    # Where the joint between is never posed, the part reaches up to the next one.
    (alone,) = joint_regions(rig.bones, rig.weights, rig.joint_of_bone, rig.parents, np.array([2]))
    assert np.all(alone[x < 1] > 0)
    np.testing.assert_allclose(alone[(x > 3) & (x < 5)], np.maximum(regions[1], 0.25)[(x > 3) & (x < 5)])


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_centers_begin_with_the_required_ones_and_are_far_apart(seed, most):
    rotations = np.array([quaternion(vector) for vector in random_turns(seed, 12, 3.0)])
    centers = chosen_centers(rotations[:2], rotations, most)
    assert len(centers) == max(most, 2)
    np.testing.assert_array_equal(centers[:2], rotations[:2])
    distances = rotation_distances(centers, centers) + np.where(np.eye(len(centers), dtype=bool), np.inf, 0)
    # None left out is farther from them than they are from each other.
    left = rotation_distances(rotations, centers).min(axis=1)
    assert most <= 2 or left.max() <= distances[2:].min() + 1e-12
    assert len(chosen_centers(rotations[:1], np.tile(rotations[:3], (4, 1)), 12)) == 3


def test_a_joint_interpolates_from_no_more_rotations_than_set():
    posed = limb()
    turns = random_turns(1, 60, 1.5)
    poses = [{"bone 1": one, "bone 2": [0, other[1], 0]} for one, other in zip(turns[:30], turns[30:], strict=True)]
    examples = posed.examples(poses)
    model = build_eigenskin(posed.rig, examples, replace(ALL, max_centers=10))
    assert len(model.spaces[1].centers) == 10
    assert model.spaces[2].axis is not None
    assert len(model.spaces[2].centers) == 5


def test_cancel_while_joints_are_told_apart():
    posed = limb()
    examples = posed.examples(hinge_sets(posed, 1, 6))
    stages = []

    def stop(fraction, stage):
        stages.append(stage)
        return stage != "Separating Joints"

    with pytest.raises(Cancelled):
        build_eigenskin(posed.rig, examples, EigenSkinSettings(), progress=stop)
    assert stages[-1] == "Separating Joints"
