# SPDX-License-Identifier: GPL-3.0-or-later
"""Joints that act together although their supports do not meet, against displacements that are known."""

from dataclasses import replace

import numpy as np
import pytest

from skinning_tools.core.eigenskin import EigenSkinSettings, build_eigenskin, example_errors
from skinning_tools.core.eigenskin.coupling import coupling_mask
from skinning_tools.core.eigenskin.pose_space import REST, PoseSpace

from .posed_rigs import hinge_poses, limb, quaternion

SETTINGS = EigenSkinSettings(components=3, joint_pairs=3)
STEPS = np.radians([-80, -40, 40, 80])
PLACES = {"between": 4.5, "at a third joint": 7.0}


def arm():
    """An elbow at 2 and a wrist at 7, and a joint of the neighborhood at 8.5."""
    return limb((2.0, 7.0, 8.5), columns=40, rows=2, length=10.0)


def bump(posed, x, width, seed):
    rest = posed.rig.rest
    random = np.random.default_rng(seed)
    return np.clip(1 - ((rest[:, 0] - x) / width) ** 2, 0, None)[:, None] * random.normal(size=rest.shape) * 0.2


def planted(posed, place=4.5):
    """Displacements of each joint alone, near it, and of elbow and wrist together at ``place``."""
    elbow, wrist, third = bump(posed, 2.0, 1.0, 1), bump(posed, 7.0, 1.0, 2), bump(posed, 8.5, 0.8, 3)
    both = bump(posed, place, 0.8, 4)

    def displaced(turned):
        one, other, last = turned[1, 2], turned[2, 2], turned[3, 2]
        return one * elbow + other**2 * wrist + last * third + 2 * one * other * both

    return displaced


def grid(steps=STEPS, others=STEPS):
    return [{"bone 1": [0, one, 0], "bone 2": [0, other, 0]} for one in steps for other in others]


def singles():
    return [pose for joint in (1, 2, 3) for pose in hinge_poses(f"bone {joint}", steps=STEPS)]


def models(posed, examples):
    return [build_eigenskin(posed.rig, examples, replace(SETTINGS, joint_pairs=count)) for count in (0, 3)]


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_elbow_and_wrist_are_found_where_neither_acts_alone(place):
    posed = arm()
    examples = posed.examples([*singles(), *grid()], displaced=planted(posed, place))
    without, model = models(posed, examples)
    assert [support.joints for support in model.supports] == [(1,), (2,), (3,), (1, 2)]
    supports = [set(support.vertices.tolist()) for support in model.supports]
    assert not supports[0] & supports[1]
    near = np.abs(posed.rig.rest[:, 0] - place) < 0.8
    assert set(np.flatnonzero(near).tolist()) >= supports[3] > set()
    unseen = posed.examples(
        grid(np.radians([-65, 20, 60]), np.radians([-70, -25, 55])), displaced=planted(posed, place)
    )
    before, after = (example_errors(posed.rig, unseen, each).relative for each in (without, model))
    assert after < 0.5 * before


def general(seed, count):
    random = np.random.default_rng(seed)
    return [
        {f"bone {joint}": [0, angle, 0] for joint, angle in enumerate(angles, start=1)}
        for angles in random.uniform(-1.4, 1.4, (count, 3))
    ]


def test_it_is_found_among_poses_of_all_joints():
    posed = arm()
    examples = posed.examples([*singles(), *general(0, 60)], displaced=planted(posed))
    without, model = models(posed, examples)
    assert [support.joints for support in model.supports] == [(1,), (2,), (3,), (1, 2)]
    unseen = posed.examples(general(1, 25), displaced=planted(posed))
    before, after = (example_errors(posed.rig, unseen, each).relative for each in (without, model))
    assert after < 0.5 * before


@pytest.mark.parametrize("louder", [0.0, 1.0, 10.0])
def test_what_others_leave_elsewhere_does_not_hide_a_pair(louder):
    """Only the other vertices have residuals that the two joints say nothing about, larger than those of the pair."""
    random = np.random.default_rng(1)
    vectors = 0.6 * random.normal(size=(2, 60, 3))
    one, other = (np.array([quaternion(vector) for vector in each]) for each in vectors)
    first, second = (PoseSpace(np.concatenate([REST[None], each[:24]]), None) for each in (one, other))
    residuals = np.zeros((60, 40, 3), np.float32)
    residuals[:, 10:20] = (one[:, 1] * other[:, 2])[:, None, None] * (1, 0.5, 0)
    size = np.sqrt(np.mean(residuals[:, 10:20] ** 2))
    residuals[:, 25:] = louder * size * random.normal(size=(60, 15, 3))
    mask = coupling_mask(first, second, one, other, residuals, np.zeros(60, bool), 0.04, 1e-6, 48)
    assert mask[10:20].min() == 1
    assert mask[:10].max() == mask[20:25].max() == 0
    assert mask[25:].max() < 0.1


def test_joints_that_displace_nothing_alone():
    posed = arm()
    both = bump(posed, 4.5, 0.8, 4)
    wrist = bump(posed, 8.5, 0.8, 3)
    examples = posed.examples(
        [*singles(), *grid()], displaced=lambda turned: turned[3, 2] * wrist + 2 * turned[1, 2] * turned[2, 2] * both
    )
    without, model = models(posed, examples)
    assert [support.joints for support in model.supports] == [(3,), (1, 2)]
    before, after = (example_errors(posed.rig, examples, each).relative for each in (without, model))
    assert after < 0.1 * before


def test_noise_all_over_is_no_pair():
    posed, random = arm(), np.random.default_rng(5)
    alone = planted(posed)

    def noisy(turned):
        parts = [alone(np.where(np.arange(4)[:, None] == joint, turned, [1.0, 0, 0, 0])) for joint in (1, 2, 3)]
        return sum(parts) + 0.02 * random.normal(size=posed.rig.rest.shape)

    examples = posed.examples([*singles(), *general(0, 60)], displaced=noisy)
    without, model = models(posed, examples)
    calm = [{f"bone {joint}": pose[f"bone {joint}"]} for pose in general(1, 8) for joint in (1, 2, 3)]
    unseen = posed.examples(calm, displaced=alone)
    before, after = (example_errors(posed.rig, unseen, each).relative for each in (without, model))
    assert after < 1.05 * before
