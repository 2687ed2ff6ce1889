# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of every binding method on any mesh and armature."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding import solid
from skinning_tools.core.binding.bind import METHODS, bind
from skinning_tools.core.binding.segments import Segments
from skinning_tools.core.binding.solid import Solid
from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.errors import BadMesh, BadSettings, Cancelled

from ..skinned_shapes import cuboid, dense
from . import bodies
from .bodies import NO_EDGES, bar, chain

every_method = pytest.mark.parametrize("method", METHODS)
smooth_methods = pytest.mark.parametrize("method", [method for method in METHODS if method != "RIGID"])


@pytest.fixture(autouse=True)
def coarse_voxels(monkeypatch):
    """What always holds does so with few voxels, and sooner."""
    monkeypatch.setattr(solid, "_COUNT", 20_000)


def many_bones(count):
    """Bones of random lengths and places in and around the bar, each the child of some bone before it."""
    rng = np.random.default_rng(1)
    heads = rng.uniform([-0.5, -0.8, -0.8], [6.5, 0.8, 0.8], (count, 3))
    parents = [-1, *(int(rng.integers(i)) for i in range(1, count))]
    return Skeleton(heads, heads + 0.3 * rng.standard_normal((count, 3)), parents)


def as_given(body, skeleton):
    """All bones count, their tails as they are."""
    return Segments(skeleton, np.arange(len(skeleton)), Solid(body), np.ones(len(skeleton)))


def with_bones(skeleton, *more):
    """And with bones (head, tail), children of the first."""
    heads, tails = zip(*more, strict=True)
    return Skeleton(
        np.concatenate([skeleton.heads, heads]),
        np.concatenate([skeleton.tails, tails]),
        np.append(skeleton.parents, np.zeros(len(more), int)),
    )


def wire():
    rest = np.column_stack([np.linspace(0, 6, 25), np.zeros((25, 2))])
    return Body(rest, np.zeros((0, 3), int), np.column_stack([np.arange(24), np.arange(1, 25)]))


def points(count):
    rest = np.random.default_rng(0).uniform([0, -0.5, -0.5], [6, 0.5, 0.5], (count, 3))
    return Body(rest, np.zeros((0, 3), int), NO_EDGES)


def turned_at_random(body):
    triangles = body.triangles.copy()
    some = np.random.default_rng(0).random(len(triangles)) < 0.4
    triangles[some] = triangles[some][:, ::-1]
    return Body(body.rest, triangles, NO_EDGES)


def fan():
    """Six sheets on one edge."""
    angles = np.arange(6) * np.pi / 3
    rim = np.column_stack([np.full(6, 3.0), np.cos(angles), np.sin(angles)])
    return Body(np.concatenate([[[0, 0, 0], [6, 0, 0]], rim]), [[0, 1, i] for i in range(2, 8)], NO_EDGES)


BODIES = {
    "closed": bar,
    "20 loose parts": bodies.parts,
    "flat sheet": bodies.sheet,
    "waving sheet": lambda: bodies.sheet(wave=0.4),
    "triangles without area": lambda: bodies.with_flat_triangles(bar()),
    "duplicate vertices": lambda: bodies.torn(bar()),
    "the same mesh twice": lambda: bodies.joined(bar(), bar()),
    "inside out": lambda: Body(bar().rest, bar().triangles[:, ::-1], NO_EDGES),
    "wound at random": lambda: turned_at_random(bar()),
    "six sheets on an edge": fan,
    "no faces": lambda: points(60),
    "edges alone": wire,
    "one triangle": lambda: Body([[0, 0, 0], [6, 0, 0], [3, 1, 0]], [[0, 1, 2]], NO_EDGES),
    "one vertex": lambda: points(1),
    "two vertices": lambda: points(2),
    "all at one place": lambda: Body(np.ones((5, 3)), [[0, 1, 2], [2, 3, 4]], [[0, 4]]),
    "flat triangles alone": lambda: Body(bar().rest * [1, 0, 0], bar().triangles, NO_EDGES),
    "flat triangles in kilometers": lambda: Body(bar().rest * [1e6, 0, 0], bar().triangles, NO_EDGES),
    "a speck": lambda: Body(1e-6 * bar().rest + [1e3, 0, 0], bar().triangles, NO_EDGES),
    "a faint body far away": lambda: Body(1e-3 * bar().rest + [1e3, 0, 0], bar().triangles, NO_EDGES),
}
SKELETONS = {
    "three bones": chain,
    "one bone": lambda: chain(1),
    "300 bones": lambda: many_bones(300),
    "a bone far outside": lambda: with_bones(chain(), ([500.0, 0, 0], [600.0, 0, 0])),
    "all bones outside": lambda: chain(2, y=9.0),
    "a bone without length": lambda: with_bones(chain(), ([3.0, 0, 0], [3.0, 0, 0])),
    "no bone with a length": lambda: Skeleton([[1, 0, 0], [4, 0, 0]], [[1, 0, 0], [4, 0, 0]], [-1, 0]),
    "bones at one place": lambda: with_bones(chain(), *[([0.0, 0, 0], [2.0, 0, 0])] * 6),
    "a bone on the skin": lambda: with_bones(chain(), ([0.0, 0.5, 0.5], [6.0, 0.5, 0.5])),
    "bones in vertices": lambda: Skeleton([[0, 0, 0], [6, 0, 0]], [[0, 0, 0], [6, 0, 0]], [-1, 0]),
    "no hierarchy": lambda: Skeleton(chain(4).heads, chain(4).tails, [-1] * 4),
    "folded bones": lambda: Skeleton([[0, 0, 0], [6, 0, 0]], [[6, 0, 0], [0, 0, 0]], [-1, 0]),
}


def check(body, skeleton, bones, weights, most=4):
    assert bones.dtype == np.int32
    assert weights.dtype == np.float64
    assert bones.shape == weights.shape
    assert len(bones) == len(body.rest)
    assert 1 <= bones.shape[1] <= most
    assert bones.min() >= 0
    assert bones.max() < len(skeleton)
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-12)
    # A slot that is not used repeats a bone that is; otherwise no bone stands twice.
    for row, values in zip(bones, weights, strict=True):
        used = row[values > 0]
        assert len(set(used)) == len(used)
        assert set(row) == set(used)


@every_method
@pytest.mark.parametrize("body", BODIES)
def test_every_body_is_bound(body, method):
    body, skeleton = BODIES[body](), chain()
    check(body, skeleton, *bind(body, skeleton, method))


@every_method
@pytest.mark.parametrize("skeleton", SKELETONS)
@pytest.mark.parametrize("body", ["closed", "flat sheet"])
def test_every_skeleton_binds(body, skeleton, method):
    body, skeleton = BODIES[body](), SKELETONS[skeleton]()
    check(body, skeleton, *bind(body, skeleton, method))


@every_method
@pytest.mark.parametrize("most", [1, 2, 3, 12])
def test_influences_are_limited(method, most):
    body, skeleton = bar(), many_bones(30)
    bones, weights = bind(body, skeleton, method, max_influences=most)
    check(body, skeleton, bones, weights, most)
    if method != "RIGID" and most < 12:
        assert bones.shape[1] == most


@every_method
def test_the_same_again(method):
    body, skeleton = bar(), many_bones(40)
    first, second = bind(body, skeleton, method), bind(bar(), many_bones(40), method)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


@every_method
@pytest.mark.parametrize("seed", range(3))
def test_mirror_images_get_mirrored_weights(method, seed):
    body, image, skeleton, bone_image = bodies.mirrored_body(seed)
    weights = dense(*bind(body, skeleton, method), len(skeleton))
    np.testing.assert_allclose(weights[image][:, bone_image], weights, rtol=0, atol=1e-6)
    assert (weights.max(axis=0) > 0.5).all()


@every_method
def test_a_mirror_plane_has_no_side(method):
    """Bones to the left and right alone: vertices at equal distance from both belong to their parent."""
    body, image, _, _ = bodies.mirrored_body()
    skeleton = Skeleton([[0, 0, 9.0], [1, 0, 0], [-1, 0, 0]], [[0, 0, 9.5], [6, 0, 0], [-6, 0, 0]], [-1, 0, 0])
    given = as_given(body, skeleton)
    weights = dense(*bind(body, skeleton, method, segments=given, max_influences=2), 3)
    np.testing.assert_allclose(weights[image][:, [0, 2, 1]], weights, rtol=0, atol=1e-6)


@every_method
def test_placing_and_scaling_change_nothing(method):
    body, _, skeleton, _ = bodies.mirrored_body()
    turn = Rotation.from_rotvec([0.3, -1.1, 0.7]).as_matrix()

    def moved(points):
        return 37 * points @ turn.T + [100, -20, 5]

    there = Body(moved(body.rest), body.triangles, NO_EDGES)
    bones = Skeleton(moved(skeleton.heads), moved(skeleton.tails), skeleton.parents)
    expected = dense(*bind(body, skeleton, method), len(skeleton))
    found = dense(*bind(there, bones, method), len(skeleton))
    # RIGID: a vertex as near to two bones may go to either.
    same = np.abs(found - expected).max(axis=1) <= 1e-6
    assert same.mean() >= (0.99 if method == "RIGID" else 1)


@every_method
def test_order_of_vertices_and_bones_does_not_matter(method):
    body, _, skeleton, _ = bodies.mirrored_body()
    rng = np.random.default_rng(0)
    vertices, order = rng.permutation(len(body.rest)), rng.permutation(len(skeleton))
    place, slot = np.argsort(vertices), np.argsort(order)
    shuffled = Body(body.rest[vertices], place[rng.permutation(body.triangles)], NO_EDGES)
    parents = np.where(skeleton.parents < 0, -1, slot[skeleton.parents])[order]
    bones = Skeleton(skeleton.heads[order], skeleton.tails[order], parents)
    expected = dense(*bind(body, skeleton, method), len(skeleton))
    found = dense(*bind(shuffled, bones, method), len(skeleton))[place][:, slot]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@every_method
def test_seams_stay_closed(method):
    whole, skeleton = bar(), chain()
    pieces = bodies.torn(whole)
    expected = dense(*bind(whole, skeleton, method), 3)[whole.triangles.ravel()]
    np.testing.assert_allclose(dense(*bind(pieces, skeleton, method), 3), expected, rtol=0, atol=1e-9)


@every_method
@pytest.mark.parametrize("turned", ["inside out", "wound at random"])
def test_winding_does_not_matter(method, turned):
    expected = bind(bar(), chain(), method)
    found = bind(BODIES[turned](), chain(), method)
    np.testing.assert_allclose(dense(*found, 3), dense(*expected, 3), rtol=0, atol=1e-9)


@smooth_methods
def test_a_bar_bends_smoothly(method):
    """Along a bar with two bones: one alone at either end, half each in the middle, and a blend as wide as the bar."""
    body, skeleton = bar(48, 6), chain(2)
    weights = dense(*bind(body, skeleton, method), 2)[:, 1]
    x = body.rest[:, 0]
    assert weights[x < 1.5].max() < 0.02
    assert weights[x > 4.5].min() > 0.98
    np.testing.assert_allclose(weights[x == 3], 0.5, atol=0.01)
    means = np.array([weights[x == place].mean() for place in np.unique(x)])
    assert (np.diff(means) >= 0).all()
    width = np.ptp(np.interp([0.1, 0.9], means, np.unique(x)))
    assert 0.4 < width < 1.6


@smooth_methods
def test_blends_are_as_wide_as_the_limb(method):
    def width(thickness):
        rest, triangles = cuboid(96, 6)
        body = Body(rest * [1, thickness, thickness], triangles, NO_EDGES)
        weights = dense(*bind(body, chain(2), method), 2)[:, 1]
        x = np.unique(rest[:, 0])
        means = np.array([weights[rest[:, 0] == place].mean() for place in x])
        return np.ptp(np.interp([0.1, 0.9], means, x))

    assert width(1.0) / width(0.5) == pytest.approx(2, rel=0.15)


@smooth_methods
def test_finer_meshes_bend_alike(method):
    coarse, fine = bar(24, 4), bar(96, 16)
    skeleton = chain(3)
    expected, found = (dense(*bind(body, skeleton, method), 3) for body in (coarse, fine))
    at = {tuple(point): row for row, point in enumerate(np.round(fine.rest, 9))}
    rows = [at[tuple(point)] for point in np.round(coarse.rest, 9)]
    np.testing.assert_allclose(found[rows], expected, atol=0.08)


@pytest.mark.parametrize("method", ["AUTOMATIC", "DELAUNAY"])
def test_fingers_close_together_do_not_stick(method, monkeypatch):
    # As many voxels as there are otherwise: larger ones would bridge the gap.
    monkeypatch.setattr(solid, "_COUNT", 1_000_000)
    body, skeleton = bodies.hand()
    middle = body.rest[:, 0].max() / 2
    # Their outer halves.
    fingers = body.rest[:, 1] > 2.5
    left, right = fingers & (body.rest[:, 0] < middle), fingers & (body.rest[:, 0] > middle)
    weights = dense(*bind(body, skeleton, method), 5)
    assert weights[left][:, [3, 4]].max() < 0.01
    assert weights[right][:, [1, 2]].max() < 0.01
    # What makes it hard: by distance alone they do.
    assert dense(*bind(body, skeleton, "RIGID"), 5)[right][:, [1, 2]].max() == 1


def test_a_bone_outside_gets_nothing_across_a_gap():
    skeleton = with_bones(chain(), ([3.0, 0.55, 0], [3.5, 0.55, 0]))
    weights = dense(*bind(bar(), skeleton, "DELAUNAY"), 4)
    assert weights[:, 3].max() < 0.01
    assert dense(*bind(bar(), skeleton, "RIGID"), 4)[:, 3].max() == 1


def test_rigid_takes_the_nearest_bone():
    body, skeleton = bar(), many_bones(30)
    bones, _ = bind(body, skeleton, "RIGID", segments=as_given(body, skeleton))
    assert bones.shape == (len(body.rest), 1)
    axis = skeleton.tails - skeleton.heads
    share = np.einsum("npi,pi->np", body.rest[:, None] - skeleton.heads, axis) / np.sum(axis**2, axis=1)
    nearest = skeleton.heads + np.clip(share, 0, 1)[:, :, None] * axis
    distance = np.linalg.norm(body.rest[:, None] - nearest, axis=2)
    np.testing.assert_array_equal(bones[:, 0], distance.argmin(axis=1))


def test_rigid_takes_the_common_ancestor_of_equally_near_bones():
    root, left, right, other = (
        ([0, 0, 9], [0, 0, 10]),
        ([1, 0, 0], [2, 0, 0]),
        ([-1, 0, 0], [-2, 0, 0]),
        ([0, 9, 0],) * 2,
    )
    heads, tails = zip(left, right, root, other, strict=True)
    vertex = Body([[0, 0, 0], [0.5, 0, 0]], np.zeros((0, 3), int), NO_EDGES)
    assert bind(vertex, Skeleton(heads, tails, [2, 2, -1, -1]), "RIGID")[0].tolist() == [[2], [0]]
    assert bind(vertex, Skeleton(heads, tails, [2, -1, -1, -1]), "RIGID")[0].tolist() == [[0], [0]]
    assert bind(vertex, Skeleton(heads, tails, [-1, 0, -1, -1]), "RIGID")[0].tolist() == [[0], [0]]


def test_whole_parts_follow_one_bone():
    body, skeleton = bodies.parts(), chain(4)
    bones, weights = bind(body, skeleton, "RIGID", whole_parts=True)
    check(body, skeleton, bones, weights)
    of_part = [set(bones[body.components == part, 0]) for part in range(20)]
    # Vertices next to a joint are equally near to two bones.
    middles = 0.3 * np.arange(20) + 0.15
    clear = np.abs(middles - 1.5 * np.round(middles / 1.5)) > 0.16
    assert clear.sum() == 12
    for part in np.flatnonzero(clear):
        assert of_part[part] == {int(middles[part] / 1.5)}
    assert all(len(found) == 1 for found in of_part)
    # Without, cubes that a joint divides follow two.
    divided = bind(body, chain(4, 6.3), "RIGID")[0][:, 0]
    assert any(len(set(divided[body.components == part])) > 1 for part in range(20))


@smooth_methods
def test_no_bone_reaches_beyond_its_limit(method):
    body, skeleton = bar(), chain()
    free = dense(*bind(body, skeleton, method), 3)
    x = body.rest[:, 0]
    # The vertices at distance 0.5 to 0.71 from the bar's middle line.
    beyond_first = np.hypot(np.maximum(x - 2, 0), 0.5) > 0.72
    assert free[beyond_first, 0].max() > 0.02
    bones, weights = bind(body, skeleton, method, distance_limits=[0.72, np.inf, np.inf])
    check(body, skeleton, bones, weights)
    found = dense(bones, weights, 3)
    assert (found[beyond_first, 0] == 0).all()
    assert found[x < 1, 0].min() > 0.5
    same = dense(*bind(body, skeleton, method, distance_limits=100.0), 3)
    np.testing.assert_allclose(same, free, atol=1e-12)
    # Nothing is in reach: the nearest bone alone.
    bones, weights = bind(body, skeleton, method, distance_limits=0.0)
    check(body, skeleton, bones, weights)
    clear = np.abs(x - 2 * np.round(x / 2)) > 1e-6
    found = dense(bones, weights, 3)[clear]
    np.testing.assert_array_equal(found.argmax(axis=1), (x[clear] // 2).clip(0, 2))
    np.testing.assert_allclose(found.max(axis=1), 1)


@every_method
def test_progress_grows_and_cancels(method):
    seen = []

    def note(fraction, stage):
        seen.append(fraction)
        assert stage

    body, skeleton = bar(), many_bones(100)
    bind(body, skeleton, method, progress=note)
    assert seen == sorted(seen)
    assert seen[0] == 0
    assert seen[-1] <= 1
    for stop in range(len(seen)):
        calls = []

        def cancel(fraction, stage, calls=calls, stop=stop):
            calls.append(fraction)
            return len(calls) <= stop

        with pytest.raises(Cancelled):
            bind(body, skeleton, method, progress=cancel)
        assert len(calls) == stop + 1


def test_a_long_binding_can_be_cancelled_on_the_way():
    for method in METHODS:
        seen = []
        bind(bar(), many_bones(100), method, progress=lambda fraction, _, seen=seen: seen.append(fraction))
        assert len(seen) >= (2 if method == "RIGID" else 5)


def test_bad_input():
    body, skeleton = bar(), chain()
    for settings in (
        {"method": "HEAT"},
        {"max_influences": 0},
        {"distance_limits": -1.0},
        {"distance_limits": [1.0, 2.0]},
        {"distance_limits": [1.0, np.nan, 1.0]},
    ):
        with pytest.raises(BadSettings):
            bind(body, skeleton, **{"method": "DELAUNAY", **settings})
    with pytest.raises(BadMesh, match="no vertices"):
        Body(np.zeros((0, 3)), np.zeros((0, 3)), NO_EDGES)
    with pytest.raises(BadMesh, match="Vertex 1 "):
        Body([[0, 0, 0], [0, np.inf, 0]], np.zeros((0, 3)), NO_EDGES)
    with pytest.raises(BadMesh, match="triangles"):
        Body(np.zeros((3, 3)), [[0, 1, 3]], NO_EDGES)
    with pytest.raises(BadSettings, match="no deforming bones"):
        Skeleton(np.zeros((0, 3)), np.zeros((0, 3)), [])
    with pytest.raises(BadSettings, match="own ancestor"):
        Skeleton(np.zeros((2, 3)), np.ones((2, 3)), [1, 0])
    with pytest.raises(BadSettings, match="Bone b "):
        Skeleton([[0, 0, 0], [np.nan, 0, 0]], np.ones((2, 3)), [-1, 0], ("a", "b"))
    with pytest.raises(BadSettings, match="parent"):
        Skeleton(np.zeros((2, 3)), np.ones((2, 3)), [-1, 2])
