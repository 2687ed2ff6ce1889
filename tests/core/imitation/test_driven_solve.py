# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers that joints drive, in addition to a rig's bones, against a muscle that joints drive."""

import numpy as np
import pytest

from skinning_tools.core.animation import Animation
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadSettings, Cancelled
from skinning_tools.core.imitation.driven_helpers import DrivenHelper, carried, helper_motion
from skinning_tools.core.imitation.driven_solve import add_driven_helper_bones
from skinning_tools.core.imitation.skeleton import Skeleton, posed
from skinning_tools.core.rotations import nearest_rotations
from tests.core.imitation.test_imitate import BONES, blended, shapes, tube, turns
from tests.core.imitation.test_skeleton import chain

SKELETON, EVERY = chain(BONES), np.ones(BONES, bool)


def muscle() -> DrivenHelper:
    """Moves and turns with the joint of bone 1."""
    coefficients = np.zeros((9, 6))
    coefficients[1, 1], coefficients[5, 2], coefficients[2, 3] = 0.3, 0.6, 0.4
    return DrivenHelper(0, np.array([0.6, 0.1, 0.0]), (1,), coefficients)


def scene(turned, strength=1.0, jiggle=0.0):
    """Arguments of the solve: a tube with a muscle at the first bone, which may jiggle, too."""
    points, _ = tube()
    bones, weights = blended(points, 0.5)
    share = 0.7 * np.exp(-((points[:, :1] - 0.6) ** 2) / 0.05)
    motion = posed(SKELETON, turned)
    moved = helper_motion([muscle()], turned, motion)
    moved[..., 3] = motion[:, :1, :, 3] + strength * (moved[..., 3] - motion[:, :1, :, 3])
    moved[..., 2, 3] += jiggle * np.sin(2.3 * np.arange(len(turned)))[:, None]
    columns, shared = np.hstack([bones, np.full((len(points), 1), BONES)]), np.hstack([weights * (1 - share), share])
    wanted = shapes(points, columns, shared, np.concatenate([motion, moved], axis=1))
    animation = Animation(wanted.astype(np.float32), np.zeros((0, 3), np.int32), np.arange(len(turned)), "Tube")
    return animation, points, motion, bones, weights, SKELETON, turned, EVERY


def test_a_muscle_is_found_and_holds_in_unseen_poses():
    given = scene(turns())
    found = add_driven_helper_bones(*given, 1)
    assert found.e_rms_free < 0.05 * found.found.e_rms_before
    assert found.found.e_rms < 0.15 * found.found.e_rms_before
    assert [(helper.carrier, helper.joints[0]) for helper in found.helpers] == [(0, 1)]
    np.testing.assert_allclose(
        helper_motion(found.helpers, given[6], given[2]), found.found.transforms, atol=1e-9 * np.ptp(given[1])
    )
    animation, points, motion, bones, weights, *_, unseen, _ = scene(turns(seed=9))
    everything = np.concatenate([motion, helper_motion(found.helpers, unseen, motion)], axis=1)
    wanted = animation.frames
    left = np.linalg.norm(shapes(points, found.found.bones, found.found.weights, everything) - wanted)
    assert left < 0.2 * np.linalg.norm(shapes(points, bones, weights, motion) - wanted)


@pytest.mark.parametrize("own_weights", ["KEEP", "ADAPT"])
def test_what_joints_do_not_decide_is_left(own_weights):
    """A jiggle that no pose explains: the free helper follows it, the driven one does not."""
    given = scene(turns(), jiggle=0.05)
    found = add_driven_helper_bones(*given, 1, own_weights=own_weights)
    assert found.e_rms_free < 0.1 * found.found.e_rms_before
    assert 2 * found.e_rms_free < found.found.e_rms < 0.9 * found.found.e_rms_before
    np.testing.assert_allclose(helper_motion(found.helpers, given[6], given[2]), found.found.transforms, atol=1e-9)


def test_frames_count_by_their_importance():
    """Two halves that ask for different muscles: the important half is followed more closely."""
    first, second = scene(turns(count=30)), scene(turns(count=30), strength=-1.0)
    frames = np.concatenate([first[0].frames, second[0].frames])
    animation = Animation(frames, first[0].triangles, np.arange(60), "Tube")
    rest = (*first[1:2], np.concatenate([first[2], second[2]]), *first[3:6], np.tile(first[6], (2, 1, 1)), EVERY)
    left = []
    for counts in ((1.0, 0.05), (0.05, 1.0)):
        found = add_driven_helper_bones(animation, *rest, 1, importance=np.repeat(counts, 30)).found
        everything = np.concatenate([rest[1], found.transforms], axis=1)
        made = np.array([skin_frame(rest[0], found.bones, found.weights, each) for each in everything])
        left.append([np.linalg.norm(half) for half in np.split(made - frames, 2)])
    assert left[0][0] < 0.5 * left[1][0]
    assert left[1][1] < 0.7 * left[0][1]


@pytest.mark.parametrize("mirrored", [1.0, -1.0])
def test_a_helper_in_another_space(mirrored):
    turned, matrix = turns(count=5), np.eye(4)
    matrix[:3, :3] = 1.7 * mirrored * nearest_rotations(np.random.default_rng(1).normal(size=(3, 3)))
    matrix[:3, 3] = 0.3, -2.0, 1.0
    there = np.tile(matrix[:3], (5, 1, 1))
    back = np.tile(np.linalg.inv(matrix)[:3], (5, 1, 1))
    expected = carried(carried(there, muscle().beside(turned)), back)
    np.testing.assert_allclose(muscle().within(matrix).beside(turned), expected, atol=1e-12)


def test_bad_input_and_cancelling():
    given = list(scene(turns(count=6)))
    with pytest.raises(BadSettings, match="do not belong"):
        add_driven_helper_bones(*given[:6], given[6][:3], EVERY)
    with pytest.raises(BadSettings, match="carry or drive"):
        add_driven_helper_bones(*given[:7], ~EVERY)
    alone = Skeleton(np.full(BONES, -1), SKELETON.rest)
    with pytest.raises(BadSettings, match="carry or drive"):
        add_driven_helper_bones(*given[:5], alone, *given[6:])
    for least in (0.1, 0.6, 0.97):
        with pytest.raises(Cancelled):
            add_driven_helper_bones(*given, 1, progress=lambda fraction, _, least=least: fraction < least)
