# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of core's results for any input: each is a function of a random generator, from which it draws the input.

They raise AssertionError where it does not hold. Errors of the family are an answer, too; any other exception is not.
"""

from dataclasses import replace

import numpy as np

from skinning_tools.core import affine_chain, quaternions
from skinning_tools.core.animation import LARGEST_POSITION, Animation, ErrorMeter, unit_scale
from skinning_tools.core.bone_channels import JointTree, bone_channels
from skinning_tools.core.bone_order import depths
from skinning_tools.core.bone_placement import place_at_joints, place_bones
from skinning_tools.core.bone_suggestion import LEAST, suggest_bone_count
from skinning_tools.core.curve_picture import curve_picture, frames_picture
from skinning_tools.core.decomposition import BONE_KINDS, Decomposition, Settings, decompose, solve_weights
from skinning_tools.core.decomposition.helper_bones import add_helper_bones
from skinning_tools.core.decomposition.partial_transforms import solve_transforms
from skinning_tools.core.decomposition.target_error import CurvePoint
from skinning_tools.core.deform import METHODS as DEFORMERS
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.core.errors import SkinningError
from skinning_tools.core.joint_search import find_joint_hierarchy
from skinning_tools.core.key_reduction import reduce_keys
from tests.core import random_inputs as inputs
from tests.core.skinned_shapes import NO_TRIANGLES


def unless_refused(function, *arguments, **options):
    """The result of a call, or None if it raises one of the extension's errors, with a text for people."""
    try:
        return function(*arguments, **options)
    except SkinningError as error:
        refusal = str(error)
    words = refusal.lower().replace("(nan or infinite)", "").split()
    assert len(words) > 4, refusal
    assert not {"nan", "inf", "none", "nonetype"} & set(words), refusal
    return None


def assert_convex(bones, weights, bone_count, most=None):
    """Rows sum to 1, or to 0 for a vertex without weights; all bones exist."""
    assert np.isfinite(weights).all()
    assert weights.min(initial=0) >= 0
    sums = weights.sum(axis=1)
    assert ((np.abs(sums - 1) < 1e-9) | (sums == 0)).all(), sums
    assert bones.min(initial=0) >= 0
    assert bones.max(initial=0) < bone_count
    if most is not None:
        assert (weights > 0).sum(axis=1).max(initial=0) <= most


def _measured(animation, rest_at, bones, weights, transforms) -> ErrorMeter:
    meter = ErrorMeter(unit_scale(animation.frames), animation.vertex_count)
    for row, positions in enumerate(animation.frames):
        meter.add(positions, skin_frame(rest_at(row), bones, weights, transforms[row]))
    return meter


def _assert_same_error(told: float, meter_value: float) -> None:
    # Figures close to zero consist of rounding errors only.
    assert abs(told - meter_value) <= 1e-6 * max(told, meter_value) + 1e-6, (told, meter_value)


def _settings(random, animation) -> Settings:
    kind = str(random.choice(BONE_KINDS))
    published = kind == "AFFINE" and random.random() < 0.15
    return Settings(
        bone_count=int(random.integers(1, min(animation.vertex_count, 8) + 1)),
        bone_kind=kind,
        max_influences=int(random.integers(1, 6)),
        iterations=int(random.integers(1, 4)),
        optimize_rest_pose=bool(random.random() < 0.8),
        target_error=float(random.choice([0.0, 0.0, 0.0, 5.0, 200.0])),
        method="KAVAN2010" if published else "STANDARD",
        residual_shapes=int(random.choice([0, 0, 0, 1, 2])),
        smoothness=float(random.choice([0.0, 0.0, 0.3, 1.0])),
    )


def a_decomposition_is_what_it_says(random):
    animation = inputs.animation(random)
    settings = _settings(random, animation)
    result = unless_refused(decompose, animation, settings)
    if result is None:
        return
    for values in (result.rest, result.transforms, result.bone_axes, result.history):
        assert np.isfinite(values).all()
    assert_convex(result.bones, result.weights, result.bone_count, settings.max_influences)
    assert (result.weights.sum(axis=1) > 0).all()
    meter = _measured(animation, result.rest_at, result.bones, result.weights, result.transforms)
    _assert_same_error(result.e_rms, meter.e_rms)
    _assert_same_error(result.max_error, meter.max_error)
    if settings.bone_kind == "RIGID":
        linear = result.transforms[..., :3]
        assert np.abs(np.swapaxes(linear, -1, -2) @ linear - np.eye(3)).max() < 1e-8


def units_do_not_change_a_decomposition(random):
    animation = inputs.animation(random)
    settings = _settings(random, animation)
    result = unless_refused(decompose, animation, settings)
    factor = float(random.choice([2.0**-20, 2.0**-10, 2.0**10, 2.0**20]))
    larger = Animation(animation.frames * np.float32(factor), animation.triangles)
    other = unless_refused(decompose, larger, settings)
    if np.abs(larger.frames).max() > LARGEST_POSITION:
        assert other is None
        return
    assert (result is None) == (other is None)
    if result is not None:
        np.testing.assert_array_equal(result.bones, other.bones)
        np.testing.assert_allclose(other.e_rms, result.e_rms, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(other.rest, factor * result.rest, rtol=1e-6, atol=1e-9 * np.abs(other.rest).max())


def partial_solves_are_convex_and_no_worse(random):
    """Motion for given weights, weights for that motion, and helpers for both."""
    animation = inputs.animation(random)
    bone_count = int(random.integers(1, 6))
    bones, weights = inputs.weights(random, animation.vertex_count, bone_count)
    kind = str(random.choice(BONE_KINDS))
    rest = animation.frames[0].astype(float)
    transforms = unless_refused(solve_transforms, animation, rest, bones, weights, bone_count, kind)
    if transforms is None:
        return
    assert np.isfinite(transforms).all()

    def e_rms(bones, weights, transforms):
        return _measured(animation, lambda row: rest, bones, weights, transforms).e_rms

    standing = np.tile(np.eye(3, 4), (*transforms.shape[:2], 1, 1))
    if kind == "AFFINE":
        assert e_rms(bones, weights, transforms) <= e_rms(bones, weights, standing) * (1 + 1e-6) + 1e-3
    found = solve_weights(animation, rest, transforms, 4, smoothness=float(random.choice([0.0, 0.5])))
    assert_convex(*found, bone_count, 4)
    options = {"bone_kind": kind, "iterations": 3, "own_weights": str(random.choice(["KEEP", "ADAPT"]))}
    helped = unless_refused(add_helper_bones, animation, rest, transforms, bones, weights, 2, **options)
    if helped is None:
        return
    whole = np.concatenate([transforms, helped.transforms], axis=1)
    assert np.isfinite(whole).all()
    assert_convex(helped.bones, helped.weights, whole.shape[1])
    _assert_same_error(helped.e_rms, e_rms(helped.bones, helped.weights, whole))
    _assert_same_error(helped.e_rms_before, e_rms(bones, weights, transforms))
    assert helped.e_rms <= helped.e_rms_before
    if options["own_weights"] == "KEEP":
        own = weight_matrix(helped.bones, helped.weights, whole.shape[1]).toarray()[:, :bone_count]
        before = weight_matrix(bones, weights, bone_count).toarray()
        np.testing.assert_allclose(own, own.sum(axis=1, keepdims=True) * before, atol=1e-12)


def a_suggestion_does_not_depend_on_units_and_order(random):
    animation = inputs.animation(random, offsets=(0.0,))
    kind = str(random.choice(BONE_KINDS))
    count = unless_refused(suggest_bone_count, animation.frames, kind)
    if count is None:
        return
    assert count >= LEAST
    order = random.permutation(animation.vertex_count)
    assert suggest_bone_count(animation.frames[:, order] * np.float32(2.0**12), kind) == count


def _rig(random, frame_count: int):
    """rest, bones, weights and transforms of any rig."""
    vertex_count, bone_count = (int(count) for count in random.integers([2, 1], [40, 5]))
    rest = random.normal(size=(vertex_count, 3)) * random.choice([1.0, 1e-3, 1e3])
    bones, weights = inputs.weights(random, vertex_count, bone_count)
    return rest, bones, weights, inputs.transforms(random, frame_count, bone_count)


def _frames_of(placement) -> np.ndarray:
    """(P, 4, 4) rest matrices."""
    frames = np.tile(np.eye(4), (len(placement.heads), 1, 1))
    frames[:, :3, :3], frames[:, :3, 3] = placement.axes, placement.heads
    return frames


def bones_are_placed_and_channels_multiply_back(random):
    rest, bones, weights, transforms = _rig(random, int(random.integers(2, 9)))
    bone_count = transforms.shape[1]
    hierarchy = find_joint_hierarchy(rest, bones, weights, transforms, NO_TRIANGLES)
    assert np.isfinite(hierarchy.joints).all()
    assert np.isfinite(hierarchy.slips).all()
    assert depths(hierarchy.parents).max() < bone_count
    placement = place_bones(rest, bones, weights, bone_count)
    if random.random() < 0.3:
        hierarchy = replace(hierarchy, joints=np.tile(hierarchy.joints[0], (bone_count, 1)))
    for placed in (placement, place_at_joints(placement, hierarchy, rest, bones, weights)):
        assert np.isfinite(placed.heads).all()
        assert (placed.lengths > 0).all()
        assert np.abs(np.swapaxes(placed.axes, 1, 2) @ placed.axes - np.eye(3)).max() < 1e-9
        assert (np.linalg.det(placed.axes) > 0).all()
    in_rest = affine_chain.in_rest_frame(transforms, _frames_of(placement))
    chain = affine_chain.split(in_rest)
    np.testing.assert_allclose(chain.matrices(), in_rest, atol=1e-6 * max(1.0, np.abs(in_rest).max()))
    for rotations in (chain.rotation, chain.child_rotation):
        np.testing.assert_allclose(np.linalg.norm(rotations, axis=-1), 1, atol=1e-9)
        assert ((rotations[1:] * rotations[:-1]).sum(axis=-1) > -1e-9).all(), "the longer way around"


def fewer_keys_stay_within_the_tolerance(random):
    """Of affine bones that drift, some of them on joints."""
    frame_count = int(random.integers(2, 15))
    rest, bones, weights, first = _rig(random, 1)
    # As in a decomposition: each vertex has weights.
    weights[~weights.any(axis=1), 0] = 1.0
    drift = 0.02 * random.normal(size=(frame_count, *first.shape[1:])).cumsum(axis=0)
    transforms = np.repeat(first, frame_count, axis=0) + drift
    bone_count = transforms.shape[1]
    axes = np.tile(np.eye(3), (bone_count, 1, 1))
    result = Decomposition(rest, transforms, bones, weights, "AFFINE", axes, 0.0, 0.0, (), 1)
    placement, tree = place_bones(rest, bones, weights, bone_count), None
    if random.random() < 0.4:
        hierarchy = find_joint_hierarchy(rest, bones, weights, transforms, NO_TRIANGLES)
        tree = JointTree(hierarchy, _frames_of(place_at_joints(placement, hierarchy, rest, bones, weights)), False)
    frames = _frames_of(placement)
    channels = bone_channels(result, frames, tree)
    times = np.cumsum(random.integers(1, 4, frame_count)).astype(float)
    tolerance = float(random.uniform(1e-3, 0.5)) * float(np.abs(rest).max())
    choice = reduce_keys(result, channels, frames, times, tolerance)
    kept = channels.at_keys(choice.bones, times).object_matrices(frames)
    for before, after in zip(channels.object_matrices(frames), kept, strict=True):
        moved = skin_frame(rest, bones, weights, after) - skin_frame(rest, bones, weights, before)
        assert np.linalg.norm(moved, axis=1).max() <= tolerance * (1 + 1e-6)
    anything = reduce_keys(result, channels, frames, times, 1e6 * float(np.abs(rest).max() + np.abs(transforms).max()))
    assert max(len(rows) for kept in anything.bones.values() for rows in kept) <= 2


def any_weights_and_matrices_deform_to_numbers(random):
    rest = inputs.points(random, random.choice(inputs.SHAPES))[0]
    bone_count = int(random.integers(1, 6))
    bones, weights = inputs.weights(random, len(rest), bone_count)
    matrices = inputs.transforms(random, 1, bone_count)[0]
    for method in DEFORMERS:
        positions = skin_frame(rest, bones, weights, matrices, method, rest)
        assert np.isfinite(positions).all()
        still = ~weights.any(axis=1)
        np.testing.assert_array_equal(positions[still], rest[still])
    turns = quaternions.to_matrices(quaternions.normalized(random.normal(size=(5, 4))))
    np.testing.assert_allclose(quaternions.to_matrices(quaternions.from_matrices(turns)), turns, atol=1e-12)


def pictures_take_any_figures(random):
    count = int(random.integers(1, 6))
    values = random.choice([0.0, 1e-300, 1e-12, 1.0, 3.7, 1e12], count)
    points = [CurvePoint(bones + 1, float(value), bool(value > 1)) for bones, value in enumerate(values)]
    assert curve_picture(points, float(random.choice([1e-6, 1.0, 1e9])), count)[:4] == b"\x89PNG"
    numbers = np.cumsum(random.integers(1, 5, count)) - float(random.choice([0, 1e6]))
    assert np.ptp(frames_picture(numbers.tolist(), values.tolist(), (2 * values).tolist())) > 0


PROPERTIES = (
    a_decomposition_is_what_it_says,
    units_do_not_change_a_decomposition,
    partial_solves_are_convex_and_no_worse,
    a_suggestion_does_not_depend_on_units_and_order,
    bones_are_placed_and_channels_multiply_back,
    fewer_keys_stay_within_the_tolerance,
    any_weights_and_matrices_deform_to_numbers,
    pictures_take_any_figures,
)
