# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones without weights go, unless they carry others or mirror a bone that stays."""

import numpy as np
import pytest

from skinning_tools.core.decomposition import Decomposition
from skinning_tools.core.decomposition.empty_bones import without_empty_bones, without_empty_branches
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.joint_hierarchy import JointHierarchy


def skin(used, bone_count):
    """Vertices that each follow two of the bones ``used`` alone, with a slot to spare, and their random motion."""
    random = np.random.default_rng(4)
    bones = np.array([[first, second, first] for first in used for second in used if first != second], np.int32)
    weights = np.tile([0.7, 0.3, 0.0], (len(bones), 1))
    transforms = random.normal(size=(3, bone_count, 3, 4))
    axes = np.tile(np.eye(3), (bone_count, 1, 1))
    return Decomposition(random.normal(size=(len(bones), 3)), transforms, bones, weights, "RIGID", axes, 0, 0, (), 1)


def frames(found):
    return [skin_frame(found.rest, found.bones, found.weights, each) for each in found.transforms]


def tree(parents, partners):
    count = len(parents)
    joints = np.arange(3.0 * count).reshape(count, 3)
    partners = None if partners is None else np.array(partners)
    return JointHierarchy(np.array(parents, np.int32), joints, np.arange(count) / 10.0, partners)


def test_only_bones_with_weights_are_left():
    found = skin([1, 3, 4], 6)
    left = without_empty_bones(found)
    assert left.bone_count == len(left.bone_axes) == 3
    np.testing.assert_array_equal(frames(left), frames(found))
    assert without_empty_bones(left) is left


@pytest.mark.parametrize(
    ("partners", "kept"),
    [
        (None, [0, 1, 2]),
        # Bones 4 and 5 mirror each other, and neither has weights; 3 mirrors one that has.
        ([0, -1, 3, 2, 5, 4], [0, 1, 2, 3]),
        # Where an image stays, so does what it hangs from.
        ([0, -1, 4, -1, 2, -1], [0, 1, 2, 3, 4]),
    ],
)
def test_branches_without_weights_go(partners, kept):
    """Bone 1 has none, either, but carries bone 2."""
    found, hierarchy = skin([0, 2], 6), tree([-1, 0, 1, 0, 3, 3], partners)
    left, linked = without_empty_branches(found, hierarchy)
    np.testing.assert_array_equal(frames(left), frames(found))
    np.testing.assert_array_equal(left.transforms, found.transforms[:, kept])
    np.testing.assert_array_equal(linked.joints, hierarchy.joints[kept])
    np.testing.assert_array_equal(linked.slips, hierarchy.slips[kept])
    np.testing.assert_array_equal(linked.parents, hierarchy.parents[kept])
    if partners is not None:
        paired = np.flatnonzero(linked.partners >= 0)
        np.testing.assert_array_equal(linked.partners[linked.partners[paired]], paired)
    assert without_empty_branches(left, linked) == (left, linked)
