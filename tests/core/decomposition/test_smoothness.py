# SPDX-License-Identifier: GPL-3.0-or-later
"""Smooth weights: smoother with every step of the slider, at an error that is known, and never less than convex."""

import numpy as np
import pytest

from skinning_tools.core.animation import Animation, ErrorMeter, unit_scale
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose, skin_frame, solve_weights
from skinning_tools.core.decomposition.smoothness import independent_sets, neighbor_weights
from skinning_tools.core.errors import BadSettings

from .sequences import boxes, dirichlet_energy, sheet

SLIDER = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def e_rms(animation, rest, bones, weights, transforms) -> float:
    meter = ErrorMeter(unit_scale(animation.frames), len(rest))
    for positions, matrices in zip(animation.frames, transforms, strict=True):
        meter.add(positions, skin_frame(rest, bones, weights, matrices))
    return meter.e_rms


def third(path, frame_step: int) -> Animation:
    """The third of an animated mesh that is foremost along its longest axis, every so manieth frame of it."""
    data = np.load(path)
    frames = data["frames"][::frame_step]
    places = frames[0][:, np.argmax(np.ptp(frames[0], axis=0))]
    kept = places >= np.quantile(places, 2 / 3)
    triangles = data["triangles"][kept[data["triangles"]].all(axis=1)]
    return Animation(frames[:, kept], (np.cumsum(kept) - 1)[triangles])


@pytest.mark.parametrize(
    ("name", "frame_step", "bones", "kind"), [("horse_gallop", 2, 10, "RIGID"), ("horse_collapse", 4, 6, "AFFINE")]
)
def test_smoother_with_every_step_of_the_slider(shared_data, name, frame_step, bones, kind):
    animation = third(shared_data(f"{name}.npz"), frame_step)
    result = decompose(animation, Settings(bone_count=bones, bone_kind=kind, iterations=6))
    neighbors = neighbor_weights(result.rest, animation.triangles)
    energies, errors = [], []
    for smoothness in SLIDER:
        rows = solve_weights(animation, result.rest, result.transforms, smoothness=smoothness)
        assert rows[1].min() >= 0
        assert rows[1].shape[1] == 4
        np.testing.assert_allclose(rows[1].sum(axis=1), 1, atol=1e-12)
        energies.append(dirichlet_energy(neighbors, *rows, bones))
        errors.append(e_rms(animation, result.rest, *rows, result.transforms))
    assert np.all(np.diff(energies) < 0)
    assert energies[-1] < 0.4 * energies[0]
    # What the strength is made of, see Smoothness.balanced.
    growth = 1 + 4 * np.square(SLIDER)
    assert np.all(np.array(errors) <= growth * errors[0] * (1 + 1e-6))
    assert errors[-1] > 1.2 * errors[0]
    assert errors[2] < 1.05 * errors[0]


def test_off_is_off(shared_data):
    data = np.load(shared_data("wolf_ground_truth.npz"))
    animation = Animation(data["frames"], data["triangles"])
    first = solve_weights(animation, data["rest"], data["transforms"])
    second = solve_weights(animation, data["rest"], data["transforms"], smoothness=0.0)
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])


def test_noise_in_the_animation_is_not_in_smooth_weights(shared_data):
    """With noise on the positions, smooth weights are closer to the true ones than the best fit is."""
    data = np.load(shared_data("wolf_ground_truth.npz"))
    truth = data["weights"].astype(float)
    truth /= truth.sum(axis=1, keepdims=True)
    noise = 0.02 * np.random.default_rng(0).normal(size=data["frames"].shape)
    animation = Animation(data["frames"] + noise, data["triangles"])

    def distance(smoothness):
        bones, weights = solve_weights(animation, data["rest"], data["transforms"], smoothness=smoothness)
        dense = np.zeros_like(truth)
        np.add.at(dense, (np.arange(len(dense))[:, None], bones), weights)
        return np.linalg.norm(dense - truth)

    assert distance(0.1) < 0.7 * distance(0.0)


def test_seams_stay_closed():
    """A sheet in two halves whose vertices only share their places."""
    frames, triangles = sheet(rows=10, columns=10)
    doubled = np.arange(100).reshape(10, 10)[5]
    upper = triangles.copy()
    high = np.isin(triangles, np.arange(50, 100)).all(axis=1)
    rename = np.arange(110)
    rename[doubled] = np.arange(100, 110)
    upper[high] = rename[triangles[high]]
    frames = np.concatenate([frames, frames[:, doubled]], axis=1)
    torn = frames.copy()
    torn[:, 100:, 2] += 0.02 * np.random.default_rng(0).normal(size=(len(frames), 10))
    animation = Animation(torn, upper)
    result = decompose(Animation(frames, upper), Settings(bone_count=4))
    neighbors = neighbor_weights(frames[0], upper)
    assert np.all(neighbors[doubled, np.arange(100, 110)] > 0)

    def gap(smoothness):
        bones, weights = solve_weights(animation, frames[0], result.transforms, smoothness=smoothness)
        dense = np.zeros((110, 4))
        np.add.at(dense, (np.arange(110)[:, None], bones), weights)
        return np.abs(dense[doubled] - dense[100:]).max()

    assert gap(0.5) < 0.3 * gap(0.0)


@pytest.mark.parametrize("case", ["no faces", "loose vertices", "edges only", "boxes"])
def test_meshes_of_all_sorts(case):
    frames, triangles = boxes(count=4) if case == "boxes" else sheet(6, 8)
    edges = None
    if case == "no faces":
        triangles = np.empty((0, 3), int)
    elif case == "loose vertices":
        triangles = triangles[::3]
    elif case == "edges only":
        triangles, edges = np.empty((0, 3), int), np.column_stack([np.arange(47), np.arange(1, 48)])
    animation = Animation(frames, triangles)
    result = decompose(animation, Settings(bone_count=4, iterations=3))
    rows = [solve_weights(animation, result.rest, result.transforms, smoothness=value, edges=edges) for value in (0, 1)]
    for _, weights in rows:
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-12)
    neighbors = neighbor_weights(result.rest, triangles, edges)
    energies = [dirichlet_energy(neighbors, *each, 4) for each in rows]
    if case == "no faces":
        assert energies == [0, 0]
        assert np.array_equal(rows[0][1], rows[1][1])
    else:
        assert energies[1] <= energies[0]


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_decompositions_get_smoother_at_a_known_error(shared_data, kind):
    animation = third(shared_data("horse_collapse.npz"), 2)
    energies, errors = [], []
    for smoothness in (0.0, 0.25, 0.5, 1.0):
        settings = Settings(bone_count=6, bone_kind=kind, iterations=6, smoothness=smoothness)
        result = decompose(animation, settings)
        neighbors = neighbor_weights(result.rest, animation.triangles)
        energies.append(dirichlet_energy(neighbors, result.bones, result.weights, 6))
        errors.append(result.e_rms)
        assert result.e_rms == pytest.approx(
            e_rms(animation, result.rest, result.bones, result.weights, result.transforms)
        )
        assert result.weights.min() >= 0
        assert result.weights.shape[1] == 4
        np.testing.assert_allclose(result.weights.sum(axis=1), 1, atol=1e-12)
        if kind == "RIGID":
            linear = result.transforms[..., :3]
            np.testing.assert_allclose(linear.swapaxes(-1, -2) @ linear, np.tile(np.eye(3), (27, 6, 1, 1)), atol=1e-9)
    assert np.all(np.diff(energies) < 0)
    assert energies[1] < 0.7 * energies[0]
    assert errors[1] < 1.05 * errors[0]
    assert errors[-1] < 2 * errors[0]


def test_decompositions_of_meshes_of_all_sorts_may_be_smooth():
    for frames, triangles in (boxes(count=4), sheet(6, 8), (sheet(6, 8)[0], [])):
        for kind in BONE_KINDS:
            settings = Settings(bone_count=6, bone_kind=kind, iterations=3, smoothness=0.5)
            result = decompose(Animation(frames, triangles), settings)
            assert np.isfinite(result.transforms).all()
            np.testing.assert_allclose(result.weights.sum(axis=1), 1, atol=1e-12)


def test_bad_smoothness_of_a_decomposition():
    for value in (-0.1, 1.1, np.nan):
        with pytest.raises(BadSettings, match="Smoothness must be from 0 to 1"):
            Settings(smoothness=value)


def test_no_neighbor_counts_less_than_nothing():
    """Where angles are obtuse, triangles flat and vertices at one place: roots are taken of what neighbors count."""
    random = np.random.default_rng(0)
    rest = random.normal(size=(40, 3)) * [1, 1, 1e-3]
    rest[5] = rest[6]
    neighbors = neighbor_weights(rest, random.integers(0, 40, (80, 3)))
    assert (neighbors.data > 0).all()
    assert (neighbors != neighbors.T).nnz == 0
    assert not neighbors.diagonal().any()


def test_sets_are_independent_and_complete():
    frames, triangles = sheet()
    neighbors = neighbor_weights(frames[0], triangles)
    chosen = np.arange(0, 200)
    sets = independent_sets(neighbors, chosen)
    assert np.array_equal(np.sort(np.concatenate(sets)), chosen)
    for members in sets:
        assert neighbors[members][:, members].nnz == 0
    assert len(sets) < 15
