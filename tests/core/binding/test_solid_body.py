# SPDX-License-Identifier: GPL-3.0-or-later
"""The solid of a body, the segments of a skeleton in it, and what loose parts follow."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.bind import bind
from skinning_tools.core.binding.parts import parts_of
from skinning_tools.core.binding.segments import offshoots, segments_of, trusted
from skinning_tools.core.binding.solid import Solid
from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.segments import segment_distances

from ..skinned_shapes import cuboid, dense
from . import bodies
from .bodies import NO_EDGES, bar, chain, joined


def box(low, high, parts=2):
    """A closed box between two corners."""
    rest, triangles = cuboid(parts, parts)
    span = np.ptp(rest, axis=0)
    return Body(np.array(low) + (rest - rest.min(axis=0)) / span * np.subtract(high, low), triangles, NO_EDGES)


def shortened(skeleton, way, turns=None):
    """As another program leaves it: every tail a thousandth off its head, along ``way`` or as the axes are turned."""
    ways = np.broadcast_to(way, skeleton.heads.shape) if turns is None else turns[:, :, 1]
    return Skeleton(skeleton.heads, skeleton.heads + 1e-3 * ways, skeleton.parents, skeleton.names, turns)


def hole(body):
    """Without the triangles at the end x = 6."""
    ends = (body.rest[body.triangles][:, :, 0] == 6).all(axis=1)
    return Body(body.rest, body.triangles[~ends], NO_EDGES)


def inside_out(body):
    return Body(body.rest, body.triangles[:, ::-1], NO_EDGES)


# The solid


@pytest.mark.parametrize("make", [bar, lambda: hole(bar()), lambda: inside_out(bar()), lambda: bodies.torn(bar())])
def test_any_mesh_of_a_bar_is_solid(make):
    solid = Solid(make())
    rng = np.random.default_rng(0)
    inside = rng.uniform([0.1, -0.4, -0.4], [5.0, 0.4, 0.4], (500, 3))
    assert solid.holds(inside).all()
    outside = rng.uniform([-2, -2, -2], [8, 2, 2], (2000, 3))
    beyond = np.abs(outside - [3, 0, 0]) - [3, 0.5, 0.5]
    outside = outside[beyond.max(axis=1) > 0.05]
    assert not solid.holds(outside).any()


def test_between_legs_is_outside():
    legs = joined(box([-1, -0.5, 0], [-0.3, 0.5, 4]), box([0.3, -0.5, 0], [1, 0.5, 4]), box([-1, -0.5, 4], [1, 0.5, 6]))
    solid = Solid(legs)
    heights = np.column_stack([np.zeros((50, 2)), np.linspace(0.1, 3.5, 50)])
    assert not solid.holds(heights).any()
    assert solid.holds(heights + np.array([0.6, 0, 0])).all()


def test_distances_and_rays_of_the_solid():
    solid = Solid(bar())
    size = solid.grid.size
    points = np.array([[3, 0, 0], [3, 0, 1.5], [3, 0, 50], [-40, 0, 0]])
    np.testing.assert_allclose(solid.distances(points), [0, 1, 49.5, 40], atol=2 * size)
    ways = np.array([[1.0, 0, 0], [0, 0, -1], [0, 0, 1]])
    starts = np.array([[1.0, 0, 0], [3, 0, 0.2], [3, 0, 2]])
    np.testing.assert_allclose(solid.ways_out(starts, ways), [5, 0.7, 0], atol=2 * size)
    assert solid.sees(np.array([[3, 0, 0.5], [0, 0, 0]]), np.array([[3, 0, 0], [5.5, 0, 0]])).all()
    gap = Solid(joined(box([0, 0, 0], [2, 1, 1]), box([2.2, 0, 0], [4, 1, 1])))
    assert not gap.sees(np.array([[0, 0.5, 0.5]]), np.array([[3.0, 0.5, 0.5]])).any()


@pytest.mark.parametrize("seed", range(3))
def test_a_turned_body_has_the_same_solid(seed):
    body, *_ = bodies.mirrored_body(seed)
    turn = Rotation.random(random_state=seed).as_matrix()
    other = Solid(Body(body.rest @ turn.T + [3, -2, 7], body.triangles, NO_EDGES))
    points = np.random.default_rng(seed).uniform(body.rest.min(axis=0), body.rest.max(axis=0), (5000, 3))
    same = Solid(body).holds(points) == other.holds(points @ turn.T + [3, -2, 7])
    # Points on the border of two voxels may be rounded to either.
    assert same.mean() > 0.999


def test_the_solid_of_a_symmetric_body_is_symmetric():
    body, *_ = bodies.mirrored_body()
    points = np.random.default_rng(0).uniform(body.rest.min(axis=0), body.rest.max(axis=0), (5000, 3))
    solid = Solid(body)
    assert (solid.holds(points) == solid.holds(points * [-1, 1, 1])).mean() > 0.999


# Segments


def test_tails_at_joints_are_trusted():
    assert trusted(chain(5), 6.0)
    assert not trusted(shortened(chain(5), [0, 0, 1]), 6.0)
    # One bone with a child tells nothing, unless bones have no length.
    assert trusted(Skeleton([[0, 0, 0], [0, 0, 5]], [[1, 0, 0], [1, 0, 5]], [-1, 0]), 6.0)
    assert not trusted(shortened(chain(2), [0, 0, 1]), 6.0)


@pytest.mark.parametrize("kind", ["along the bones", "across", "at random"])
def test_tails_of_a_chain_are_put_back(kind):
    given = chain(5)
    turns = np.tile(np.eye(3), (5, 1, 1))
    if kind == "along the bones":
        turns = turns[:, :, [1, 0, 2]]
    elif kind == "at random":
        turns = Rotation.random(5, random_state=0).as_matrix()
    found = segments_of(bar(), shortened(given, None, turns)).skeleton
    np.testing.assert_allclose(found.tails[:-1], given.tails[:-1])
    # The last one has no child: it ends near the end of the bar.
    np.testing.assert_allclose(found.tails[-1], given.tails[-1], atol=0.25)


def test_a_leg_reaches_the_foot_that_hangs_on_a_target():
    heads = np.array([[0.5, 0, 0], [2, 0, 0], [4, 0, 0], [5.2, 0, 0], [5.6, 0, 0]])
    skeleton = Skeleton(
        heads, heads + np.array([0, 0, 1e-3]), [-1, 0, 1, -1, 3], local_axes=np.tile(np.eye(3)[:, [1, 0, 2]], (5, 1, 1))
    )
    found = segments_of(bar(), skeleton).skeleton
    np.testing.assert_allclose(found.tails[2], heads[3])


def jaw():
    """A head, two bones of its neck and the skull's deep inside, and a jaw's bone in front, without tails."""
    heads = np.array([[0, 0, -0.9], [0, 0, -0.75], [0, 0, -0.6], [0, -0.85, -0.5]])
    turns = np.tile(np.eye(3)[:, [0, 2, 1]], (4, 1, 1))
    return box([-1, -1, -1], [1, 1, 1], 16), Skeleton(heads, heads + 1e-3 * turns[:, :, 1], [-1, 0, 1, 2], (), turns)


def test_a_bone_beside_its_parent_ends_before_its_limb():
    """By the limb's thickness, where others would end with it; and its distances count as longer."""
    found = segments_of(*jaw())
    lengths = found.skeleton.lengths
    assert lengths[3] < 0.6 * lengths[2]
    np.testing.assert_array_equal(found.farther[:3], 1)
    # Along the middle of the head, and 0.15 below the skin.
    np.testing.assert_allclose(found.farther[3], np.sqrt(1 / 0.15), rtol=0.1)


def test_a_jaw_moves_what_is_around_it_and_its_parent_the_rest():
    """Beyond the jaw's tail the front is nearer to it than to the skull's bone."""
    body, skeleton = jaw()
    found = segments_of(body, skeleton)
    above = np.linalg.norm(body.rest - [0, -1, 0.6], axis=1).argmin()
    before = np.linalg.norm(body.rest - [0, -1, -0.5], axis=1).argmin()
    distances = segment_distances(body.rest[above], found.skeleton.heads, found.skeleton.axes)
    assert distances[3] < 0.5 * distances[2]
    weights = dense(*bind(body, skeleton), 4)
    assert weights[above, 2] > 0.5
    assert weights[before, 3] > 0.5


@pytest.mark.parametrize(
    ("joint", "tail", "parent", "expected"),
    [
        ([1, 1, 0], [1, 1.5, 0], 0, True),
        ([2, 0, 0], [3, 0, 0], 0, False),  # its parent leads to it
        ([4, 1, 0], [4, 1.5, 0], 0, False),  # another bone is nearer, as to a foot that follows a target
        ([1, 1, 0], [1, 1.5, 0], -1, False),
    ],
)
def test_offshoots_stand_beside_their_parents(joint, tail, parent, expected):
    skeleton = Skeleton([[0, 0, 0], [2, 0, 0], joint], [[2, 0, 0], [6, 0, 0], tail], [-1, 0, parent])
    assert offshoots(skeleton).tolist() == [False, False, expected]


def test_a_skeleton_outside_the_body_counts_completely():
    assert len(segments_of(bar(), chain(3, y=9.0)).kept) == 3
    assert len(segments_of(bar(), shortened(chain(5, y=9.0), [0, 0, 1])).kept) == 5


def robot():
    """Two boxes, the ball of the joint between them at x = 3, a buckle on the first, a cap on the buckle; and bones."""
    arms = box([0, -0.5, -0.5], [2.4, 0.5, 0.5]), box([3.6, -0.5, -0.5], [6, 0.5, 0.5])
    ball = box([2.5, -0.5, -0.5], [3.5, 0.5, 0.5])
    small = box([1, -0.2, 0.51], [1.4, 0.2, 0.7]), box([1.1, -0.1, 0.71], [1.3, 0.1, 0.8])
    return joined(*arms, ball, *small), chain(2)


def test_parts_follow_what_they_enclose_or_touch():
    body, skeleton = robot()
    parts = parts_of(body, skeleton, Solid(body))
    assert parts.bones.tolist() == [0, 1, 1, -1, -1]
    assert parts.loose.tolist() == [False, False, False, True, True]


def hanging_arm(gap):
    """A chest and an arm beside it as two closed parts, ``gap`` apart; the upper arm begins in the chest's shoulder."""
    chest = box([-0.15, -0.1, 0.8], [0.15, 0.1, 1.4], 8)
    arm = box([0.15 + gap, -0.04, 0.7], [0.23 + gap, 0.04, 1.36], 8)
    heads = np.array([[0, 0, 0.85], [0, 0, 1.1], [0.02, 0, 1.33], [0.14, 0, 1.33], [0.19 + gap, 0, 1.03]])
    tails = np.array([[0, 0, 1.1], [0, 0, 1.35], [0.14, 0, 1.33], [0.19 + gap, 0, 1.03], [0.19 + gap, 0, 0.75]])
    return joined(chest, arm), len(chest.rest), Skeleton(heads, tails, [-1, 0, 1, 2, 3])


@pytest.mark.parametrize("gap", [0.0, 0.02])
def test_an_arm_that_hangs_down_hardly_moves_the_chest(gap):
    """Its head is in the chest's shoulder, where it moves the chest; 23 cm lower only air is between them."""
    body, count, skeleton = hanging_arm(gap)
    weights = dense(*bind(body, skeleton), len(skeleton))[:count]
    shoulder, low = body.rest[:count, 2] > 1.2, body.rest[:count, 2] < 1.15
    assert weights[shoulder][:, 3].max() > 0.4
    assert weights[low][:, 3:].max() < 0.2


@pytest.mark.parametrize("method", ["AUTOMATIC", "DELAUNAY", "POINT_TO_LINE"])
def test_bones_that_do_not_run_in_a_part_do_not_move_it(method):
    """Of the arm's bones none begins in the chest, though they are the nearest to its side."""
    body, count, skeleton = hanging_arm(0.0)
    heads = skeleton.heads.copy()
    heads[3] = [0.17, 0, 1.33]
    weights = dense(*bind(body, Skeleton(heads, skeleton.tails, skeleton.parents), method), len(skeleton))[:count]
    assert weights[:, 3:].max() == 0


def test_a_sleeve_over_a_joint_bends():
    sleeve = bar(12, 3)
    sleeve = Body(sleeve.rest * [0.5, 1.1, 1.1] + [1.5, 0, 0], sleeve.triangles, NO_EDGES)
    body = joined(bar(), sleeve)
    parts = parts_of(body, chain(2), Solid(body))
    assert parts.bones.tolist() == [-1, -1]
    assert not parts.loose.any()


@pytest.mark.parametrize("seed", [1, 8])
def test_a_body_of_three_voxels(seed):
    """Points far from each other compared with a voxel, of which none is one of every eighth."""
    body = Body(np.random.default_rng(seed).normal(size=(3, 3)), np.zeros((0, 3), int), NO_EDGES)
    skeleton = Skeleton(np.zeros((1, 3)), np.zeros((1, 3)), np.array([-1]), ("bone",))
    assert len(Solid(body).samples()) > 0
    assert segments_of(body, skeleton).kept.tolist() == [0]


def test_meshes_that_overlap_bend_alike():
    """A shirt that ends inside of the trousers: as two meshes, they hardly part where they overlap."""
    lower, upper = bar(24, 6), bar(24, 6)
    shirt = Body(upper.rest * [0.5, 0.8, 0.8] + [2.4, 0, 0], upper.triangles, NO_EDGES)
    trousers = Body(lower.rest * [0.5, 1, 1], lower.triangles, NO_EDGES)
    body, skeleton = joined(shirt, trousers), chain(6)
    owners = np.repeat([0, 1], [len(shirt.rest), len(trousers.rest)])
    hem = np.flatnonzero(shirt.rest[:, 0] <= shirt.rest[:, 0].min() + 1e-6)
    waist = [len(shirt.rest) + np.linalg.norm(trousers.rest - point, axis=1).argmin() for point in shirt.rest[hem]]
    apart, alike = (dense(*bind(body, skeleton, owners=each), 6) for each in (None, owners))
    gaps = [np.abs(weights[hem] - weights[waist]).sum(axis=1).mean() for weights in (apart, alike)]
    assert gaps[1] < 0.75 * gaps[0]
    np.testing.assert_array_equal(dense(*bind(body, skeleton, owners=0 * owners), 6), apart)
