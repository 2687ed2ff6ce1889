# SPDX-License-Identifier: GPL-3.0-or-later
"""Models built from examples of one joint at a time: what they reproduce, their limits, notes and refusals."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.deform import skin_frame
from skinning_tools.core.eigenskin import (
    BadExamples,
    EigenSkinSettings,
    Examples,
    build_eigenskin,
    example_errors,
    rest_displacements,
)
from skinning_tools.core.eigenskin.interpolation import RIDGE
from skinning_tools.core.eigenskin.pose_space import REST
from skinning_tools.core.errors import BadSettings, Cancelled

from .posed_rigs import ball_poses, components_per_vertex, hinge_poses, limb, random_turns

# Every component, every vertex that moves: nothing is left out.
ALL = EigenSkinSettings(components=1000, support_threshold=0.0, max_per_vertex=100_000)

SIZE = np.sqrt(6**2 + 1 + 1)


def bent_limb(method="DQS"):
    posed = limb()
    return posed, posed.examples(hinge_poses("bone 1") + ball_poses("bone 2", np.radians([-80, 40, 90])), method)


def displacements_of(posed, examples):
    rig = posed.rig
    return rest_displacements(rig.rest, rig.bones, rig.weights, examples.matrices, examples.shapes).values


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=15)
def test_examples_are_reproduced_where_all_components_are_kept(seed):
    """Random shapes at random poses of one joint each: nothing is harder to meet for smooth functions."""
    posed = limb(columns=8, rows=2)
    random = np.random.default_rng(seed)
    poses = [{f"bone {random.integers(1, 3)}": vector} for vector in random_turns(seed, 8, 2.0)]
    examples = posed.examples(poses, displaced=lambda turned: 0.2 * random.normal(size=posed.rig.rest.shape))
    model = build_eigenskin(posed.rig, examples, ALL)
    errors = example_errors(posed.rig, examples, model)
    assert errors.before.min() > 0.01 * SIZE
    # The ridge leaves the more, the more alike the poses are to the kernel; beside it, single precision.
    left = RIDGE / min(np.linalg.eigvalsh(space.covariance())[0] for space in model.spaces.values())
    largest = np.sqrt((displacements_of(posed, examples) ** 2).sum(axis=(0, 2)).max())
    assert errors.worst_distance.max() < left * largest + 2e-6 * SIZE


def test_nothing_is_added_at_rest_and_where_other_joints_turn():
    posed, examples = bent_limb()
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings())
    rest = posed.rotations({"bone 0": [1, 0.4, 0]})[None]
    np.testing.assert_allclose(model.values(np.concatenate([rest, -rest])), 0, atol=1e-9)
    alone = model.values(posed.rotations({"bone 1": [0, 1.0, 0]})[None])[0]
    first, second = (len(support.components) for support in model.supports)
    np.testing.assert_allclose(alone[first:], 0, atol=1e-9)
    assert np.abs(alone[:first]).max() > 0.1
    # A hinge needs three; nine examples of a ball have no more than nine.
    assert (first, second) == (3, 9)


def test_the_components_hold_the_optimum_that_the_singular_values_promise():
    """Not at the examples: at poses all over their range. And the values that they get suit the posed skin best."""
    posed, examples = bent_limb()
    for joint, rows in (("bone 1", slice(0, 6)), ("bone 2", slice(6, 15))):
        part = Examples(examples.names[rows], examples.rotations[rows], examples.matrices[rows], examples.shapes[rows])
        whole = build_eigenskin(posed.rig, part, ALL)
        ((number, space),) = whole.spaces.items()
        rotations = np.tile(REST, (20_000, 3, 1))
        rotations[:, number] = space.samples(len(rotations))
        # All displacements, as coordinates: components are orthogonal to each other.
        lengths = np.linalg.norm(whole.supports[0].components, axis=(1, 2))
        predicted = whole.values(rotations) * lengths
        expected = np.linalg.svd(predicted, compute_uv=False) * np.sqrt(len(part.names) / len(predicted))
        for count in (1, 2, 3):
            model = build_eigenskin(posed.rig, part, replace(ALL, components=count))
            (support,) = model.supports
            assert support.name == joint
            np.testing.assert_allclose(support.singular_values, expected, rtol=1e-3, atol=1e-5 * expected[0])
            held = np.einsum("rni,kni->rk", whole.supports[0].components, support.components) / lengths[:, None]
            held /= np.linalg.norm(support.components, axis=(1, 2))
            left = 1 - ((predicted @ held) ** 2).sum() / (predicted**2).sum()
            assert np.sqrt(left) == pytest.approx(np.sqrt(1 - support.captured[count - 1]), rel=1e-4)
            found = example_errors(posed.rig, part, model)
            # The rest displacements are stored in single precision.
            assert found.after == pytest.approx(nearest_errors(posed.rig, part, model), rel=1e-4, abs=2e-7 * SIZE)


def nearest_errors(rig, examples, model) -> list[float]:
    """Of each example the least error in the pose that the model's components can have."""
    (support,), errors = model.supports, []
    for matrices, shape in zip(examples.matrices, examples.shapes, strict=True):
        plain = skin_frame(rig.rest, rig.bones, rig.weights, matrices)
        moved = np.tile(rig.rest, (len(support.components), 1, 1))
        moved[:, support.vertices] += support.components
        parts = [(skin_frame(one, rig.bones, rig.weights, matrices) - plain).ravel() for one in moved]
        wanted = (shape - plain).ravel()
        factors = np.linalg.lstsq(np.array(parts).T, wanted, rcond=None)[0]
        errors.append(np.sqrt(((wanted - factors @ parts) ** 2).sum() / len(shape)))
    return errors


def test_fewer_components_are_the_first_of_more():
    posed, examples = bent_limb()
    few, many = (build_eigenskin(posed.rig, examples, EigenSkinSettings(components=count)) for count in (2, 5))
    for one, other in zip(few.supports, many.supports, strict=True):
        np.testing.assert_allclose(one.components, other.components[:2], atol=1e-9)


def test_supports_lie_where_the_joints_bend():
    posed, examples = bent_limb()
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings())
    for support, joint, count in zip(model.supports, (2.0, 4.0), (3, 9), strict=True):
        assert np.abs(posed.rig.rest[support.vertices, 0] - joint).max() <= 1
        np.testing.assert_array_equal(support.vertices, np.flatnonzero(support.mask))
        assert support.mask.max() == 1
        assert support.components.shape == (count, len(support.vertices), 3)


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 7])
@pytest.mark.parametrize("options", [{}, {"budget": 9}, {"joint_pairs": 3}, {"budget": 6, "joint_pairs": 2}])
def test_no_vertex_is_in_more_components_than_allowed(limit, options):
    posed = limb(joints=(2.0, 2.7, 3.4))
    poses = [{f"bone {joint}": vector} for joint in (1, 2, 3) for vector in random_turns(joint, 4, 1.5)]
    poses += [
        {f"bone {joint}": turns[joint - 1] for joint in (1, 2, 3)}
        for turns in random_turns(9, 36, 1.5).reshape(12, 3, 3)
    ]
    painted = {"bone 2": np.linspace(0, 1, len(posed.rig.rest))}
    model = build_eigenskin(
        posed.rig, posed.examples(poses), EigenSkinSettings(max_per_vertex=limit, **options), painted=painted
    )
    assert 0 < components_per_vertex(model).max() <= limit
    if "budget" in options:
        assert model.component_count <= options["budget"]


def test_a_painted_mask_takes_the_place_of_the_one_found():
    posed, examples = bent_limb()
    painted = np.where(posed.rig.rest[:, 1] > 0, 0.5, 0.0)
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings(), painted={"bone 1": painted, "bone 7": painted})
    support = model.supports[0]
    assert np.all(posed.rig.rest[support.vertices, 1] > 0)
    np.testing.assert_allclose(support.mask[support.vertices], 0.5)
    whole = build_eigenskin(posed.rig, examples, EigenSkinSettings())
    np.testing.assert_array_equal(model.supports[1].mask, whole.supports[1].mask)


def test_a_painted_mask_without_weight():
    posed, examples = bent_limb()
    nothing = np.zeros(len(posed.rig.rest))
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings(), painted={"bone 1": nothing})
    assert [support.name for support in model.supports] == ["bone 2"]
    assert "bone 1: the painted support is empty" in model.notes[0]
    with pytest.raises(BadExamples, match="painted supports are empty"):
        build_eigenskin(posed.rig, examples, EigenSkinSettings(), painted={"bone 1": nothing, "bone 2": nothing})
    with pytest.raises(BadSettings, match='painted support "bone 1"'):
        build_eigenskin(posed.rig, examples, EigenSkinSettings(), painted={"bone 1": nothing[1:]})


@given(st.integers(0, 10_000), st.floats(0.05, 30))
@settings(deadline=None, max_examples=20)
def test_values_stay_on_their_sliders(seed, radius):
    posed = limb(columns=8, rows=2)
    random = np.random.default_rng(seed)
    # Two poses that are nearly the same, with other shapes: steep between.
    turns = random_turns(seed, 5, 2.0)
    near = turns[0] * (1 + np.radians(0.5) / np.linalg.norm(turns[0]))
    poses = [{"bone 1": vector} for vector in (*turns, near)]
    examples = posed.examples(poses, displaced=lambda turned: 0.2 * random.normal(size=posed.rig.rest.shape))
    model = build_eigenskin(posed.rig, examples, replace(ALL, radius=radius))
    limits = np.concatenate([support.limits for support in model.supports])
    assert np.all((limits >= 1) & (limits <= 10 + 1e-9))
    values = model.values(
        np.array([posed.rotations({"bone 1": vector}) for vector in random_turns(seed + 1, 300, 3.1)])
    )
    assert np.all(np.abs(values) <= limits)


def test_hardly_any_value_is_cut_off():
    posed, examples = bent_limb()
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings(components=5))
    values = model.values(np.array([posed.rotations({"bone 2": vector}) for vector in random_turns(1, 500, 2.0)]))
    limits = np.concatenate([support.limits for support in model.supports])
    assert np.mean(np.abs(values) >= limits) < 0.001


def test_examples_with_one_pose_are_averaged_and_named():
    posed = limb()
    poses = [*hinge_poses("bone 1"), {"bone 1": [0, np.radians(66.1), 0]}]
    examples = posed.examples(poses, displaced=lambda turned: np.ones(posed.rig.rest.shape) * turned[1, 2])
    shapes = examples.shapes.copy()
    shapes[-1] += 0.1
    model = build_eigenskin(posed.rig, replace(examples, shapes=shapes), ALL)
    assert model.notes == ("Pose 5, Pose 7 have the same pose: their mean is used",)
    assert len(model.spaces[1].centers) == 7
    found = model.displacements(model.values(examples.rotations[4:5])[0])
    expected = displacements_of(posed, replace(examples, shapes=shapes))[[4, 6]].mean(axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_a_slow_motion_is_many_poses():
    """Each frame is within the tolerance of the one before: only those near to the same one are one pose."""
    posed = limb()
    steps = np.arange(5, 60, 0.2)
    examples = posed.examples(
        [{"bone 1": [0, np.radians(step), 0]} for step in steps],
        displaced=lambda turned: np.ones(posed.rig.rest.shape) * np.sin(turned[1, 2]),
    )
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings(components=1, support_threshold=0))
    assert example_errors(posed.rig, examples, model).relative < 0.02


def test_partners_that_tremble_do_not_count():
    """The other joint is posed by less than counts as posed, this way and that: one pose, and an end."""
    posed = limb()
    examples = posed.examples(
        [
            {"bone 1": [0, np.radians(40), 0], "bone 2": [0, np.radians(0.2), 0]},
            {"bone 1": [0, np.radians(40), 0], "bone 2": [0, np.radians(-0.2), 0]},
            {"bone 2": [0, np.radians(50), 0]},
        ],
        displaced=lambda turned: np.ones(posed.rig.rest.shape) * (turned[1, 2] + 2 * turned[2, 2]),
    )
    model = build_eigenskin(posed.rig, examples, ALL)
    assert [len(space.centers) for space in model.spaces.values()] == [2, 2]


def test_rounding_of_far_coordinates_is_nothing_to_correct():
    posed = limb()
    away = replace(posed.rig, rest=posed.rig.rest + 1000.0)
    examples = posed.examples(hinge_poses("bone 1"))
    shapes = np.array([skin_frame(away.rest, away.bones, away.weights, each) for each in examples.matrices], np.float32)
    with pytest.raises(BadExamples, match="nothing to correct"):
        build_eigenskin(away, replace(examples, shapes=shapes), EigenSkinSettings())


def test_rest_poses_are_left_out_and_named():
    posed = limb()
    examples = posed.examples([{"bone 1": [0, 0.001, 0]}, *hinge_poses("bone 1"), {}])
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings())
    assert model.notes == ("Pose 1, Pose 8: no joint is posed; ignored",)
    with pytest.raises(BadExamples, match="all are in the rest pose"):
        build_eigenskin(posed.rig, posed.examples([{}, {}]), EigenSkinSettings())


def test_a_single_example():
    posed = limb()
    examples = posed.examples([{"bone 1": [0, 0, 1.0]}])
    model = build_eigenskin(posed.rig, examples, ALL)
    assert len(model.supports[0].components) == 1
    np.testing.assert_allclose(model.spaces[1].axis, [0, 0, 1])
    assert example_errors(posed.rig, examples, model).worst_distance.max() < 2e-6 * SIZE


def test_flattened_skin_is_said():
    posed = limb(joints=(3.0,))
    model = build_eigenskin(posed.rig, posed.examples([{"bone 1": [np.pi, 0, 0]}]), EigenSkinSettings())
    assert model.notes[0].startswith("Blending nearly flattens the skin")
    assert "Pose 1 (" in model.notes[0]


def test_errors_are_those_of_the_shapes():
    posed, examples = bent_limb()
    model = build_eigenskin(posed.rig, examples, EigenSkinSettings(components=2))
    errors = example_errors(posed.rig, examples, model)
    rig = posed.rig
    for row, values in enumerate(model.values(examples.rotations)):
        plain = skin_frame(rig.rest, rig.bones, rig.weights, examples.matrices[row])
        found = skin_frame(rig.rest + model.displacements(values), rig.bones, rig.weights, examples.matrices[row])
        distances = np.linalg.norm(found - examples.shapes[row], axis=1)
        assert errors.before[row] == pytest.approx(
            np.sqrt(np.mean(np.sum((plain - examples.shapes[row]) ** 2, axis=1)))
        )
        assert errors.after[row] == pytest.approx(np.sqrt(np.mean(distances**2)))
        assert errors.worst_distance[row] == pytest.approx(distances.max())
        assert distances[errors.worst_vertex[row]] == pytest.approx(distances.max())
        assert np.all(errors.per_vertex_after >= distances - 1e-12)
    assert errors.relative == pytest.approx(np.linalg.norm(errors.after) / np.linalg.norm(errors.before))


def test_progress_rises_and_the_build_can_be_cancelled():
    posed = limb()
    poses = hinge_poses("bone 1") + [{"bone 1": [0, x, 0], "bone 2": [0, y, 0]} for x in (0.5, 1) for y in (0.5, 1)]
    examples, options = posed.examples(poses), EigenSkinSettings(joint_pairs=2)
    seen = []
    build_eigenskin(posed.rig, examples, options, progress=lambda fraction, stage: seen.append(fraction))
    assert seen == sorted(seen)
    assert seen[-1] == 1
    for limit in (0.1, 0.45, 0.75, 0.97):
        with pytest.raises(Cancelled):
            build_eigenskin(
                posed.rig, examples, options, progress=lambda fraction, stage, limit=limit: fraction <= limit
            )


def test_arguments_are_left_alone():
    posed, examples = bent_limb()
    arrays = (*vars(examples).values(), *vars(posed.rig).values())
    copies = [np.copy(array) for array in arrays if isinstance(array, np.ndarray)]
    build_eigenskin(posed.rig, examples, EigenSkinSettings(joint_pairs=1))
    for array, copy in zip((array for array in arrays if isinstance(array, np.ndarray)), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def changed(examples, part, index, value):
    array = np.array(getattr(examples, part))
    array[index] = value
    return replace(examples, **{part: array})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: Examples((), e.rotations[:0], e.matrices[:0], e.shapes[:0]), "There are no examples"),
        (lambda e: replace(e, names=e.names[:-1]), "There are 14 examples, but 15 rotations"),
        (lambda e: replace(e, shapes=[*e.shapes[:-1], e.shapes[0, 1:]]), 'example "Pose 15" has 301 vertices, .* 302'),
        (lambda e: replace(e, matrices=e.matrices[:, 1:]), 'example "Pose 1" is of an armature with other bones'),
        (lambda e: replace(e, rotations=e.rotations[:, 1:]), 'example "Pose 1" is of an armature with other bones'),
        (lambda e: changed(e, "shapes", (2, 7, 1), np.nan), '"Pose 3" has a value that is not a number .* vertex 7'),
        (lambda e: changed(e, "rotations", (3, 1, 1), np.inf), '"Pose 4" has a value .* joint "bone 1"'),
        (lambda e: changed(e, "matrices", (4, 2, 1, 1), np.nan), '"Pose 5" has a value .* at bone 2'),
        (
            lambda e: changed(e, "rotations", (5, 2), 0.0),
            'Pose 6" has a rotation of the joint "bone 2" that is not a unit',
        ),
        (lambda e: replace(e, normals=e.shapes[:, 1:]), 'example "Pose 1" has 301 vertices'),
        (lambda e: changed(replace(e, normals=e.shapes), "normals", (1, 9), np.nan), "the normal of vertex 9"),
    ],
)
def test_bad_examples(change, message):
    posed, examples = bent_limb()
    with pytest.raises(BadExamples, match=message):
        build_eigenskin(posed.rig, change(examples), EigenSkinSettings())


def test_nothing_to_correct():
    posed, examples = bent_limb("LBS")
    with pytest.raises(BadExamples, match="already gives the shape of every example"):
        build_eigenskin(posed.rig, examples, EigenSkinSettings())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"components": -1}, "Components"),
        ({"support_threshold": 1.0}, "support threshold"),
        ({"support_threshold": float("nan")}, "support threshold"),
        ({"max_per_vertex": 0}, "Max per Vertex"),
        ({"radius": -1.0}, "radius"),
        ({"radius": float("inf")}, "radius"),
        ({"budget": -1}, "budget"),
        ({"joint_pairs": -1}, "joint pairs"),
        ({"max_centers": 1}, "centers"),
    ],
)
def test_bad_settings(options, message):
    posed, examples = bent_limb()
    with pytest.raises(BadSettings, match=message):
        build_eigenskin(posed.rig, examples, EigenSkinSettings(**options))
