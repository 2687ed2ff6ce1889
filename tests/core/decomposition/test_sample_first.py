# SPDX-License-Identifier: GPL-3.0-or-later
"""Large meshes: solved on a sample first, as close as without one."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core import solve_effort
from skinning_tools.core.animation import Animation
from skinning_tools.core.decomposition import BONE_KINDS, Settings, decompose
from skinning_tools.core.decomposition.bone_kinds import AffineBones
from skinning_tools.core.decomposition.prepared import Prepared
from skinning_tools.core.decomposition.reduction import AnimationMatrix, reduce_animation
from skinning_tools.core.decomposition.sample import morton_codes, take_sample
from skinning_tools.core.decomposition.skin import Skin
from skinning_tools.core.decomposition.vertex_step import VertexState
from skinning_tools.core.errors import Cancelled
from skinning_tools.core.run_time import Work, stage_seconds
from skinning_tools.core.solve_effort import Effort, effort_of

from .sequences import sheet

SIZE = 60, 70
PARTS = ("rest", "transforms", "bones", "weights")


@pytest.fixture
def large(monkeypatch):
    """Function from a number of vertices to one where a mesh of more is large, and has a small sample."""

    def set_limit(count):
        monkeypatch.setattr(solve_effort, "SMALL_MESHES", dict.fromkeys(BONE_KINDS, count))
        monkeypatch.setattr(solve_effort, "SMALL_PRUNED", count)
        monkeypatch.setattr(solve_effort, "_LEAST", 600)
        monkeypatch.setattr(solve_effort, "_PER_BONE", 50)

    return set_limit


def waves():
    return Animation(*sheet(*SIZE))


def test_only_large_meshes_have_a_sample():
    assert effort_of(2000, Settings(20)) == Effort(15)
    assert effort_of(2900, Settings(20)) == Effort(3, 2, 2030, 17)
    assert effort_of(20_000, Settings(20)) == Effort(3, 2, 3000, 36)
    assert effort_of(4000, Settings(20, "RIGID")).sample == 0
    assert effort_of(20_000, Settings(20, "RIGID")).sample_sweeps == 24
    # A machine of many small parts.
    assert effort_of(20_000, Settings(20, "RIGID", prune=True)).sample == 0
    assert effort_of(20_001, Settings(20, "RIGID", prune=True)).sample == 3000
    assert effort_of(4800, Settings(300, "RIGID")).sample == 0
    assert effort_of(50_000, Settings(20)) == Effort(3, 2, 5000, 36)
    assert effort_of(100_000, Settings(20)).sample == 6000
    assert effort_of(1_000_000, Settings(20)).sample == 20_000
    assert effort_of(100_000, Settings(150)).sample == 15_000
    assert effort_of(100_000, Settings(20, residual_shapes=3)).sample == 0
    assert effort_of(100_000, Settings(20, method="KAVAN2010")).sample == 0


@pytest.mark.parametrize("bones", [1, 20, 60, 200])
@pytest.mark.parametrize("iterations", [1, 4, 5, 15, 100])
def test_a_sample_is_less_work(bones, iterations):
    for count in (2001, 5000, 20_000, 50_000, 10**6):
        effort = effort_of(count, Settings(bones, iterations=iterations))
        assert effort.vertices(count) <= iterations * count


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_a_mesh_at_the_limit_is_solved_as_ever(large, kind):
    animation, settings = waves(), Settings(6, kind, iterations=8)
    count = animation.vertex_count
    results = {}
    for limit in (10**9, count, count - 1):
        large(limit)
        results[limit] = decompose(animation, settings)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(results[count], part), getattr(results[10**9], part))
    assert results[count].history == results[10**9].history
    assert "sampling" not in results[count].seconds
    assert "sampling" in results[count - 1].seconds


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_the_error_is_no_larger(large, kind):
    animation, settings = waves(), Settings(6, kind)
    large(10**9)
    whole = decompose(animation, settings)
    large(1000)
    result = decompose(animation, settings)
    assert result.e_rms <= 1.02 * whole.e_rms
    assert len(result.history) == 3
    # The last two sweeps are in the unreduced animation.
    assert np.diff(result.history[1:]).max() <= 1e-9
    assert result.e_rms == pytest.approx(result.history[-1], rel=1e-6)
    again = decompose(animation, settings)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(result, part), getattr(again, part))


def test_the_given_rest_pose_stays(large):
    large(1000)
    animation = waves()
    result = decompose(animation, Settings(6, optimize_rest_pose=False))
    np.testing.assert_allclose(result.rest, animation.frames[0], atol=1e-6)


def test_loose_vertices_and_a_file(large, tmp_path):
    large(1000)
    settings = Settings(6, iterations=8)
    loaded = waves().frames
    np.save(tmp_path / "frames.npy", loaded)
    mapped = np.load(tmp_path / "frames.npy", mmap_mode="r")
    first, second = (decompose(Animation(frames, []), settings) for frames in (loaded, mapped))
    assert "sampling" in first.seconds
    for part in PARTS:
        np.testing.assert_array_equal(getattr(first, part), getattr(second, part))


def test_pruned_on_the_sample(large):
    """Two halves that turn against each other: nothing more is needed."""
    rest = sheet(*SIZE, 1)[0][0]
    frames = np.repeat(rest[None], 10, axis=0)
    right = rest[:, 0] > rest[:, 0].mean()
    hinge = [rest[right, 0].min(), 0, 0]
    for frame, angle in enumerate(np.linspace(0, 1, 10)):
        frames[frame, right] = (rest[right] - hinge) @ Rotation.from_rotvec([0, angle, 0]).as_matrix() + hinge
    large(1000)
    result = decompose(Animation(frames, sheet(*SIZE, 1)[1]), Settings(8, "RIGID", prune=True))
    assert "sampling" in result.seconds
    assert result.bone_count == 2
    assert result.e_rms < 1e-3


def test_the_target_counts_on_all_vertices(large):
    large(1000)
    animation = waves()
    found = decompose(animation, Settings(12, target_error=4.0))
    assert 1 < found.bone_count < 12
    assert found.e_rms <= 4.0 < decompose(animation, Settings(found.bone_count - 1)).e_rms


def test_progress_rises_to_one_and_names_the_sample(large):
    large(1000)
    for settings in (Settings(6), Settings(6, "RIGID", prune=True), Settings(6, target_error=3.0)):
        seen = []
        decompose(waves(), settings, lambda *report, seen=seen: seen.append(report))
        fractions = [fraction for fraction, _ in seen]
        assert fractions == sorted(fractions)
        assert fractions[-1] == pytest.approx(1)
        assert "Sampling" in {stage for _, stage in seen}


@pytest.mark.parametrize("stage", ["Sampling", "Segmenting", "Iteration 3", "Iteration 37", "Iteration 39"])
def test_cancel_at_any_time(large, stage):
    large(1000)
    with pytest.raises(Cancelled):
        decompose(waves(), Settings(6), lambda _, now: now != stage)


@pytest.fixture
def layers():
    """Two sheets that lie on each other in the first frame, and then part: matrix, reduction, triangles."""
    frames, triangles = sheet(30, 30, 8)
    above = frames + np.linspace(1e-4, 0.3, 8)[:, None, None] * [0, 0, 1]
    matrix = AnimationMatrix(np.concatenate([frames, above], axis=1).astype(np.float32))
    return matrix, reduce_animation(matrix, 1e-4), np.concatenate([triangles, triangles + 900])


def test_samples_are_even_and_keep_layers_apart(layers):
    matrix, reduction, triangles = layers
    sample = take_sample(matrix, reduction, triangles, 200)
    assert np.all(np.diff(sample.vertices) > 0)
    assert len(sample.vertices) == 200
    below = sample.vertices < 900
    assert abs(np.count_nonzero(below) - 100) < 20
    np.testing.assert_array_equal(below[sample.nearest], np.arange(1800) < 900)
    assert np.all(below[sample.triangles].all(axis=1) | ~below[sample.triangles].any(axis=1))
    # A vertex of the sample is its own, and the others are spread evenly over the samples.
    np.testing.assert_array_equal(sample.nearest[sample.vertices], np.arange(200))
    assert np.bincount(sample.nearest, minlength=200).max() < 40
    np.testing.assert_array_equal(sample.matrix.rows(slice(3, 7)), matrix.rows(sample.vertices[3:7]))
    np.testing.assert_array_equal(sample.matrix.rest_pose(), matrix.rest_pose()[sample.vertices])
    assert set(np.unique(sample.triangles)) == set(range(200))


def test_vertices_take_shift_and_influences(layers):
    matrix, reduction, triangles = layers
    sample, rest = take_sample(matrix, reduction, triangles, 200), matrix.rest_pose()
    random = np.random.default_rng(0)
    shift = random.normal(size=(200, 3))
    points = np.column_stack([rest[sample.vertices] + shift, np.ones(200)])
    state = VertexState(points, random.integers(0, 9, (200, 4)), random.dirichlet(np.ones(4), 200))
    skin = Skin(AffineBones(sample.matrix, sample.reduction, 9), np.zeros((36, reduction.dimension)), state)
    spread = sample.spread(skin, Prepared(triangles, matrix, reduction)).state
    np.testing.assert_allclose(spread.points[:, :3] - rest, shift[sample.nearest], atol=1e-12)
    np.testing.assert_array_equal(spread.points[:, 3], 1)
    np.testing.assert_array_equal(spread.bones, state.bones[sample.nearest])
    np.testing.assert_array_equal(spread.weights, state.weights[sample.nearest])


def test_all_vertices_as_a_sample(layers):
    sample = take_sample(*layers, 1800)
    np.testing.assert_array_equal(sample.vertices, np.arange(1800))
    assert {tuple(corners) for corners in sample.triangles} == {tuple(corners) for corners in np.sort(layers[2])}


def test_morton_codes_interleave():
    points = np.array([[0, 0, 0], [2**16 - 1, 0, 0], [0, 1, 0], [0, 0, 1], [3, 0, 0], [1, 1, 1]], float)
    assert morton_codes(points).tolist() == [0, sum(8**bit for bit in range(16)), 2, 4, 9, 7]
    assert morton_codes(np.ones((4, 3))).tolist() == [0] * 4


def test_the_estimate_includes_it(monkeypatch):
    """A large mesh takes less time than without a sample."""
    for kind in BONE_KINDS:
        works = [Work(20, count, Settings(20, kind)) for count in (20_001, 100_000)]
        sampled = [stage_seconds(work)["solve"] for work in works]
        with monkeypatch.context() as patch:
            patch.setattr(solve_effort, "SMALL_MESHES", dict.fromkeys(BONE_KINDS, 10**9))
            whole = [stage_seconds(work)["solve"] for work in works]
        assert sampled[0] < 0.8 * whole[0]
        assert sampled[1] < 0.7 * whole[1]
