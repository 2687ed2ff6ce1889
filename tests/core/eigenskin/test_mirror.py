# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples across the mesh's X axis: twice is once, and the other side is what forward kinematics makes of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from skinning_tools.core.deform import skin_frame
from skinning_tools.core.eigenskin import BadExamples, Rig, mirrored_examples
from skinning_tools.core.rotation_centers import mirror_pairs

from ..skinned_shapes import chain_weights, cuboid
from .posed_rigs import PosedRig, random_turns

FLIP = np.array([-1.0, 1, 1])

# Hips in the middle, two bones to each side.
NAMES = ("hips", "arm.L", "fore.L", "arm.R", "fore.R")
PARTNERS = np.array([0, 3, 4, 1, 2])


def figure(seed=0):
    """A bar across X = 0, and each bone with axes of its own, left and right unlike each other."""
    rest, triangles = cuboid(16, 2, 8.0)
    rest = rest - [4, 0, 0]
    # From −x to +x: fore.R, arm.R, hips, arm.L, fore.L.
    _, weights = chain_weights(rest[:, 0], [-3.0, -1.5, 1.5, 3.0], 0.5)
    bones = np.tile(np.array([4, 3, 0, 1, 2]), (len(rest), 1))
    rig = Rig(rest, bones, weights, NAMES, np.array([-1, 0, 1, 0, 3]), np.arange(5))
    heads = np.array([[0, 0, 0], [1.5, 0, 0], [3, 0, 0], [-1.5, 0, 0], [-3, 0, 0.0]])
    return PosedRig(rig, heads, Rotation.random(5, random_state=seed).as_matrix()), mirror_pairs(rest), triangles


def random_poses(seed, count=3, names=NAMES):
    return [dict(zip(names, random_turns(seed + row, len(names), 1.2), strict=True)) for row in range(count)]


def same_rotations(first, second):
    np.testing.assert_allclose(np.abs(np.einsum("eji,eji->ej", first, second)), 1, atol=1e-12)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_twice_is_the_identity(seed):
    posed, pairs, _ = figure(seed)
    random = np.random.default_rng(seed)
    examples = posed.examples(random_poses(seed))
    shapes = random.normal(size=examples.shapes.shape).astype(np.float32)
    examples = replace(examples, shapes=shapes)
    there = mirrored_examples(examples, posed.rig, posed.frames, PARTNERS, PARTNERS, pairs)
    back = mirrored_examples(there, posed.rig, posed.frames, PARTNERS, PARTNERS, pairs)
    assert there.names == back.names == examples.names
    assert there.shapes.dtype == np.float32
    same_rotations(back.rotations, examples.rotations)
    np.testing.assert_allclose(back.matrices, examples.matrices, atol=1e-12)
    np.testing.assert_array_equal(back.shapes, shapes)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_rotations_matrices_and_shapes_belong_together(seed):
    """Forward kinematics from the mirrored rotations gives the mirrored matrices, and skinning the mirrored shapes."""
    posed, pairs, _ = figure(seed)
    rig = posed.rig
    there = mirrored_examples(posed.examples(random_poses(seed)), rig, posed.frames, PARTNERS, PARTNERS, pairs)
    for rotations, matrices, shape in zip(there.rotations, there.matrices, there.shapes, strict=True):
        np.testing.assert_allclose(posed.matrices(rotations), matrices, atol=1e-12)
        np.testing.assert_allclose(skin_frame(rig.rest, rig.bones, rig.weights, matrices, "DQS"), shape, atol=1e-9)


def test_a_left_arm_becomes_the_right_one():
    posed, pairs, _ = figure(3)
    turns = [[0.3, 1.1, -0.2], [0, 0, 0.9]]
    left = posed.examples([dict(zip(("arm.L", "fore.L"), turns, strict=True))])
    found = mirrored_examples(left, posed.rig, posed.frames, PARTNERS, PARTNERS, pairs)
    # The same turns seen in a mirror: in the mesh's space the axis is reflected and the angle turns the other way.
    across = [
        posed.frames[PARTNERS[joint]].T @ (-FLIP * (posed.frames[joint] @ turn))
        for joint, turn in zip((1, 2), turns, strict=True)
    ]
    right = posed.examples([dict(zip(("arm.R", "fore.R"), across, strict=True))])
    same_rotations(found.rotations, right.rotations)
    np.testing.assert_allclose(found.matrices, right.matrices, atol=1e-12)
    np.testing.assert_allclose(found.shapes, right.shapes, atol=1e-9)


def test_without_a_partner():
    """A bone on one side only is at rest and goes along; a vertex on one side only is not corrected."""
    posed, pairs, _ = figure(4)
    rig = posed.rig
    alone = np.array([0, 3, -1, 1, -1])
    pairs = np.where(np.arange(len(pairs)) % 7 == 0, -1, pairs)
    pairs = np.where(pairs[pairs] == np.arange(len(pairs)), pairs, -1)
    poses = random_poses(6, names=("hips", "arm.L", "arm.R"))
    examples = posed.examples(poses)
    there = mirrored_examples(examples, rig, posed.frames, alone, alone, pairs)
    whole = mirrored_examples(examples, rig, posed.frames, PARTNERS, PARTNERS, mirror_pairs(rig.rest))
    # As the outer bones are at rest, nothing else changes.
    same_rotations(there.rotations, whole.rotations)
    np.testing.assert_allclose(there.matrices, whole.matrices, atol=1e-12)
    paired = pairs >= 0
    assert 0.5 < paired.mean() < 1
    np.testing.assert_array_equal(there.shapes[:, paired], whole.shapes[:, paired])
    for row, moved in enumerate(there.matrices):
        plain = skin_frame(rig.rest, rig.bones, rig.weights, moved)
        np.testing.assert_allclose(there.shapes[row, ~paired], plain[~paired], atol=1e-12)
    posed_alone = posed.examples([{"fore.L": [0, 1, 0]}])
    at_rest = mirrored_examples(posed_alone, rig, posed.frames, alone, alone, pairs)
    same_rotations(at_rest.rotations, posed.examples([{}]).rotations)


@pytest.mark.parametrize(
    ("partners", "message"),
    [(np.array([0, 3, 4, 1, 1]), "same partner"), (np.array([0, 3, 4, 1]), "do not fit"), (PARTNERS + 1, "do not fit")],
)
def test_bad_partners(partners, message):
    posed, pairs, _ = figure()
    examples = posed.examples(random_poses(1))
    for joints, bones in ((partners, PARTNERS), (PARTNERS, partners)):
        with pytest.raises(BadExamples, match=message):
            mirrored_examples(examples, posed.rig, posed.frames, joints, bones, pairs)
