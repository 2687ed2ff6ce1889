# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of binding: distances, sides of a surface, the Laplacian, cells of tetrahedra, the cut to influences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.ndimage import label

from skinning_tools.core.binding import delaunay
from skinning_tools.core.binding.assignment import Assignment, nearly_best
from skinning_tools.core.binding.body import Surface, facing_outward
from skinning_tools.core.binding.diffusion import diffuse, limited
from skinning_tools.core.binding.distances import BoneDistances
from skinning_tools.core.binding.laplacian import laplacian
from skinning_tools.core.binding.point_to_line import joint_planes
from skinning_tools.core.binding.skeleton import common_ancestors, hops
from skinning_tools.core.binding.types import Body, Skeleton, weld
from skinning_tools.core.errors import BadMesh

from . import bodies
from .bodies import NO_EDGES, bar, chain

NO_TRIANGLES = np.zeros((0, 3), int)
seeds = st.integers(0, 2**31)


def volume(points, triangles):
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6


# Bodies and skeletons


def test_welding_follows_the_first_vertices():
    points = np.array([[1, 0, 0], [0, 0, 0], [1, 0, 1e-8], [5, 0, 0], [0, 0, 0], [1, 0, 2e-8]])
    assert weld(points, 1.5e-8).tolist() == [0, 1, 0, 2, 1, 0]
    assert weld(points, 0.5e-8).tolist() == [0, 1, 2, 3, 1, 4]
    assert weld(points[:0], 1.0).tolist() == []


def test_a_torn_body_is_whole_in_its_places():
    whole, pieces = bar(), bodies.torn(bar())
    assert len(pieces.points) == len(whole.rest)
    assert len(pieces.place_edges) == len(whole.place_edges)
    assert len(pieces.place_triangles) == len(whole.triangles)
    assert pieces.components.max() == 0
    np.testing.assert_array_equal(pieces.points[pieces.place], pieces.rest)
    np.testing.assert_array_equal(np.unique(bodies.parts(7).components), np.arange(7))


def test_flat_triangles_are_dropped_from_places_but_keep_edges():
    body = Body([[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0]], [[0, 1, 2], [0, 1, 3], [3, 2, 1]], [[1, 0], [3, 3]])
    assert body.place_triangles.tolist() == [[0, 1, 2]]
    assert body.place_edges.tolist() == [[0, 1], [0, 2], [1, 2]]


def test_hops_and_ancestors():
    # 0 - 1 - 2, 1 - 3, and 4 alone.
    skeleton = Skeleton(np.zeros((5, 3)), np.ones((5, 3)), [-1, 0, 1, 1, -1])
    steps = hops(skeleton)
    assert steps[2, [0, 1, 2, 3]].tolist() == [2, 1, 0, 2]
    assert (steps[4, :4] > steps[:4, :4].max()).all()
    tied = np.array([[0, 0, 1, 1, 0], [1, 0, 1, 0, 0], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1]], bool)
    assert common_ancestors(tied, skeleton).tolist() == [1, 0, 2, 3, 0]


# Distances


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_distances_to_segments(seed):
    rng = np.random.default_rng(seed)
    points, heads = rng.standard_normal((20, 3)), rng.standard_normal((6, 3))
    tails = heads + rng.standard_normal((6, 3)) * rng.choice([0, 1], (6, 1))
    distances = BoneDistances(Body(points + 50, NO_TRIANGLES, NO_EDGES), Skeleton(heads + 50, tails + 50, [-1] * 6))
    share = np.linspace(0, 1, 2001)[:, None, None]
    sampled = np.linalg.norm(points[:, None, None] - (heads + share * (tails - heads))[None], axis=3).min(axis=1)
    np.testing.assert_allclose(distances.plain(slice(0, 20)), sampled, atol=1e-3)
    bones = rng.integers(0, 6, (20, 3))
    found = np.take_along_axis(distances.plain(slice(0, 20)), bones, axis=1)
    np.testing.assert_allclose(distances.pairs(bones), found, atol=1e-6)
    # Without faces nothing is known about sides.
    np.testing.assert_allclose(distances.facing(slice(0, 20)), distances.plain(slice(0, 20)))


def test_bones_in_front_of_the_skin_are_further():
    body = bar()
    skeleton = Skeleton([[0, 0, 0], [0, 0, 0.8]], [[6, 0, 0], [6, 0, 0.8]], [-1, -1])
    distances = BoneDistances(body, skeleton)
    everything = slice(0, len(body.points))
    ratio = distances.facing(everything) / distances.plain(everything)
    top = np.flatnonzero((np.abs(body.points - [3, 0, 0.5]) < [2, 0.1, 0.1]).all(axis=1))
    np.testing.assert_allclose(ratio[top, 0], 1)
    np.testing.assert_allclose(ratio[top, 1], np.sqrt(10))
    # At 45 degrees.
    corner = np.argmin(np.linalg.norm(body.points - [3, 0.5, 0], axis=1))
    below = BoneDistances(body, Skeleton([[0, 0.3, -0.2]], [[6, 0.3, -0.2]], [-1]))
    assert below.facing(everything)[corner, 0] == pytest.approx(np.sqrt(0.08) / np.sqrt(np.sqrt(0.5)))


# Inside and outside


@pytest.mark.parametrize("seed", range(4))
def test_faces_turn_outward(seed):
    rng = np.random.default_rng(seed)
    body = bodies.joined(bar(), Body(0.3 * bar().rest + [0, 5, 0], bar().triangles[:, ::-1], NO_EDGES))
    triangles = body.triangles.copy()
    some = rng.random(len(triangles)) < 0.5
    triangles[some] = triangles[some][:, ::-1]
    found = facing_outward(Body(body.rest, triangles, NO_EDGES), np.zeros_like(body.rest))
    first = body.components[found[:, 0]] == 0
    assert volume(body.rest, found[first]) == pytest.approx(6)
    assert volume(body.rest, found[~first]) == pytest.approx(6 * 0.027)


@pytest.mark.parametrize("turned", [False, True])
def test_which_way_quads_are_cut_does_not_matter(turned):
    rng = np.random.default_rng(3)
    body = bar(12, 3)
    rest = body.rest + 0.04 * rng.normal(size=body.rest.shape)
    triangles, others = body.triangles.copy(), body.triangles.copy()
    a, d, c = triangles[: 12 * 12].T
    b = triangles[12 * 12 : 2 * 12 * 12, 1]
    others[: 2 * 12 * 12] = np.concatenate([np.stack([a, b, c], axis=1), np.stack([b, d, c], axis=1)])
    if turned:
        some = np.tile(rng.random(12 * 12) < 0.2, 2)
        for each in (triangles, others):
            each[: len(some)][some] = each[: len(some)][some][:, ::-1]
    one, other = Body(rest, triangles, NO_EDGES, others), Body(rest, others, NO_EDGES, triangles)
    (conduction, areas), (expected, expected_areas) = laplacian(one), laplacian(other)
    np.testing.assert_allclose(conduction.toarray(), expected.toarray(), atol=1e-12)
    np.testing.assert_allclose(areas, expected_areas)
    assert areas.sum() == pytest.approx(
        (laplacian(Body(rest, triangles, NO_EDGES))[1].sum() + laplacian(Body(rest, others, NO_EDGES))[1].sum()) / 2
    )
    assert np.array_equal(one.place_edges, other.place_edges)
    normals = [BoneDistances(each, chain()).surface.normals for each in (one, other)]
    np.testing.assert_allclose(*normals, atol=1e-12)
    outward = rest - np.column_stack([np.clip(rest[:, 0], 0.5, 5.5), np.zeros((len(rest), 2))])
    assert (np.einsum("ij,ij->i", normals[0], outward) > 0).all()


def test_quads_with_corners_at_one_place():
    rest = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0]]
    whole = [[0, 1, 2], [0, 2, 3]], [[0, 1, 3], [1, 2, 3]]
    for triangles, others in (whole, whole[::-1]):
        body = Body(rest, triangles, NO_EDGES, others)
        assert len(body.place_triangles) == 1
        assert body.shares.tolist() == [1]
        assert laplacian(body)[1].sum() == pytest.approx(0.5)
    with pytest.raises(BadMesh, match="other triangles"):
        Body(rest, whole[0], NO_EDGES, whole[1][:1])


@pytest.mark.parametrize("side", [1, -1])
def test_sheets_face_away_from_bones_behind_them(side):
    body = bodies.sheet()
    found = facing_outward(body, body.rest - [0, 0, 2.0 * side])
    normals = Surface(body.points, found).normals
    np.testing.assert_allclose(normals, np.tile([0, 0, side], (len(normals), 1)), atol=1e-12)


def test_one_sided_and_branching_surfaces_have_some_side():
    turn = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    band = np.array([[(2 + s * np.cos(t / 2)) * np.cos(t), (2 + s * np.cos(t / 2)) * np.sin(t), s * np.sin(t / 2)]
                     for t in turn for s in (-0.4, 0.4)])  # fmt: skip
    index = np.arange(48).reshape(24, 2)
    following = np.concatenate([index[1:], index[:1, ::-1]])
    triangles = np.concatenate(
        [np.column_stack([index, following[:, 0]]), np.column_stack([following[:, ::-1], index[:, 1]])]
    )
    body = Body(band, triangles, NO_EDGES)
    normals = Surface(body.points, facing_outward(body, np.zeros_like(band))).normals
    assert np.isfinite(normals).all()


def test_faces_back_to_back_have_no_normal():
    points = np.random.default_rng(1).normal(size=(4, 3))
    faces = np.array([[0, 1, 2], [1, 3, 2]])
    assert Surface(points, faces).normals.any(axis=1).all()
    # The other sides begin at another corner, and round differently.
    np.testing.assert_array_equal(Surface(points, np.concatenate([faces, faces[:, ::-1]])).normals, 0)


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_directions_into_a_body_of_cubes(seed):
    """Against the solid itself: a hair along the direction, is there solid or not? Creases of all kinds."""
    rng = np.random.default_rng(seed)
    solid = rng.random((3, 3, 3)) < 0.6
    solid[1, 1, 1] = True
    body = bodies.blocks_body(solid)
    surface = Surface(body.points, body.place_triangles)
    places = rng.integers(0, len(body.points), 200)
    directions = rng.standard_normal((200, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    cube = np.floor(body.points[places] + 1e-6 * directions).astype(int) + 1
    inside = np.pad(solid, 1)[tuple(cube.T)]
    clear = (np.abs(found := surface.below(places, directions)) > 1e-3) & _tidy(solid, body.points[places])
    assert clear.sum() > 50
    np.testing.assert_array_equal(found[clear] > 0, inside[clear])


def _tidy(solid, points):
    """(n,) bool: points where the cubes around form one piece of solid and one of nothing, which meet in faces."""
    padded = np.pad(solid, 1)
    result = []
    for x, y, z in points.astype(int):
        around = padded[x : x + 2, y : y + 2, z : z + 2]
        layers = [np.take(around, index, axis).tolist() for axis in range(3) for index in range(2)]
        checkered = any(layer in ([[True, False], [False, True]], [[False, True], [True, False]]) for layer in layers)
        result.append(label(around)[1] == 1 and label(~around)[1] == 1 and not checkered)
    return np.array(result)


# Diffusion


def test_the_laplacian_of_a_regular_grid():
    """Right-angled triangles: the four neighbors along the axes count one each, those across the diagonal nothing."""
    body = bodies.sheet(8, 8)
    matrix, areas = laplacian(Body(body.rest * [1 / 0.75, 4, 1], body.triangles, NO_EDGES))
    matrix = matrix.toarray()
    middle = 40
    expected = np.zeros(81)
    expected[[middle, middle - 1, middle + 1, middle - 9, middle + 9]] = [4, -1, -1, -1, -1]
    np.testing.assert_allclose(matrix[middle], expected, atol=1e-9)
    assert areas[middle] == pytest.approx(1)
    assert areas.sum() == pytest.approx(64)


@pytest.mark.parametrize(
    "body",
    [bar(), bodies.with_flat_triangles(bar()), bodies.sheet(), Body(np.eye(3), NO_TRIANGLES, [[0, 1]])],
    ids=["bar", "flat triangles", "sheet", "an edge and a point"],
)
def test_the_laplacian_is_one(body):
    matrix, areas = laplacian(body)
    dense = matrix.toarray()
    np.testing.assert_allclose(dense, dense.T)
    np.testing.assert_allclose(dense.sum(axis=1), 0, atol=1e-9)
    assert (dense - np.diag(np.diag(dense)) <= 0).all()
    assert np.linalg.eigvalsh(dense).min() > -1e-9
    assert (areas > 0).all()


def test_weights_stay_between_what_bones_hold():
    """The maximum principle; and the exact decline along a strip held by one bone on the left, one on the right."""
    body = bodies.sheet(240, 2)
    left = body.points[:, 0] < 3
    shares = sparse.csr_matrix(np.column_stack([left, ~left]).astype(float))
    bones, weights = diffuse(body, Assignment(shares, np.full(len(left), 0.5)), 2)
    order = np.argsort(bones, axis=1)
    first = np.take_along_axis(weights, order, axis=1)[:, 0]
    assert first.min() >= 0
    assert first.max() <= 1 + 1e-12
    x = body.points[:, 0]
    decay = np.sqrt(6) / 0.5
    middle = 3 - 0.0125
    expected = np.where(left, 1 - 0.5 * np.exp(-decay * (middle - x)), 0.5 * np.exp(-decay * (x - middle)))
    inner = np.abs(x - 3) < 2
    np.testing.assert_allclose(first[inner], expected[inner], atol=2e-3)


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(1, 5))
def test_shares_near_the_best(seed, count):
    scores = np.random.default_rng(seed).uniform(0.5, 1.5, (30, count))
    shares = nearly_best(scores, 0.2)
    best = scores.argmin(axis=1)
    assert (shares[np.arange(30), best] == 1).all()
    np.testing.assert_array_equal(shares > 0, scores < 1.2 * scores.min(axis=1, keepdims=True))


# The cut to few influences


def test_removed_weights_go_to_related_bones():
    # 0 - 1 - 2 and 0 - 3: bone 2 is cut and bone 1 its parent.
    steps = hops(Skeleton(np.zeros((4, 3)), np.ones((4, 3)), [-1, 0, 1, 0]))
    bones, weights = limited(np.array([[3, 1, 2]]), np.array([[0.45, 0.35, 0.2]]), 2, steps)
    assert bones.tolist() == [[3, 1]]
    assert weights[0, 1] > 0.35 + 0.19
    assert weights.sum() == pytest.approx(1)


def test_equal_weights_stay_or_go_together():
    steps = hops(Skeleton(np.zeros((5, 3)), np.ones((5, 3)), [-1, 0, 0, 0, 0]))
    bones, weights = limited(np.array([[1, 2, 3, 4]]), np.array([[0.4, 0.2, 0.2, 0.2]]), 3, steps)
    assert weights.tolist() == [[1, 0, 0]]
    assert bones.tolist() == [[1, 1, 1]]
    bones, weights = limited(np.array([[1, 2, 3, 4]]), np.array([[0.3, 0.3, 0.2, 0.2]]), 2, steps)
    np.testing.assert_allclose(weights, [[0.5, 0.5]])
    bones, weights = limited(np.array([[1, 2]]), np.array([[0.5, 0.5]]), 1, steps)
    assert (bones.tolist(), weights.tolist()) == ([[1]], [[1]])
    bones, weights = limited(np.array([[1, 2]]), np.array([[0.9996, 0.0004]]), 2, steps)
    assert weights.tolist() == [[1, 0]]


def test_a_bone_leaves_without_a_jump():
    """Between two neighbors on a thick body, the third and the fourth bone change places."""
    steps = hops(Skeleton(np.zeros((5, 3)), np.ones((5, 3)), [-1, 0, 1, 2, 3]))
    given_weights = np.stack([[0.4, 0.3, 0.15 + t, 0.15 - t] for t in (-1e-4, 1e-4)])
    order = np.argsort(-given_weights, axis=1)
    bones, weights = limited(order, np.take_along_axis(given_weights, order, axis=1), 3, steps)
    dense = np.zeros((2, 5))
    np.add.at(dense, (np.arange(2)[:, None], bones), weights)
    assert abs(dense[0] - dense[1]).max() < 0.01


# Joints and tetrahedra


def test_planes_halve_the_angle_at_a_joint():
    skeleton = Skeleton(
        [[0, 0, 0], [1, 0, 0], [1, 0, 0], [0.4, 0, 0], [1, 0, 0]],
        [[1, 0, 0], [1, 1, 0], [0, 0.01, 0], [0.4, 1, 0], [1, 0, 0]],
        [-1, 0, 0, 0, 0],
    )
    children, normals = joint_planes(skeleton)
    # Not the one that folds back, nor the one that begins at the parent's middle.
    assert children.tolist() == [1, 4]
    np.testing.assert_allclose(normals, [[np.sqrt(0.5), np.sqrt(0.5), 0], [1, 0, 0]])


def test_points_on_one_sphere_are_one_cell():
    cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    pairs = delaunay._tetrahedra_edges(np.concatenate([cube, cube + 5]))
    found = {tuple(sorted(pair)) for pair in pairs.tolist()}
    assert {(a, b) for a in range(8) for b in range(a + 1, 8)} <= found
    assert delaunay._tetrahedra_edges(cube[:4]) is None
    # Every tetrahedron for itself.
    random = np.random.default_rng(0).random((40, 3))
    simplices = delaunay.Delaunay(random).simplices
    expected = {tuple(sorted(row[[a, b]])) for row in simplices for a in range(4) for b in range(a)}
    pairs = delaunay._tetrahedra_edges(random)
    assert {tuple(sorted(pair)) for pair in pairs.tolist()} == expected


def test_points_are_shaken_alike_on_both_sides():
    """Rows of points are rows no more, by a millionth; mirror images stay so, and points in their plane stay in it."""
    body = bodies.bar(12, 4)
    points = body.points - [3, 0, 0]
    shaken = delaunay._shaken(points, body.diagonal)
    off = np.abs(shaken - points)
    assert 0 < off.max() <= 1e-6 * body.diagonal
    # 13 × 5 points of one side, of which 7 × 3 are no mirror images.
    assert len(np.unique(shaken[points[:, 1] == 0.5][:, 1])) == 21
    assert (shaken[points == 0] == 0).all()
    for signs in ([-1, 1, 1], [1, -1, 1], [-1, -1, -1]):
        np.testing.assert_array_equal(delaunay._shaken(points * signs, body.diagonal), shaken * signs)


def test_places_are_thinned_alike_on_both_sides(monkeypatch):
    monkeypatch.setattr(delaunay, "_MOST_PLACES", 150)
    body, image, skeleton, _ = bodies.mirrored_body()
    distances = BoneDistances(body, skeleton)
    chosen = delaunay._thinned(distances)
    assert len(chosen) == 150
    other = body.place[image][body.first_vertices]
    assert np.isin(other[chosen], chosen).mean() > 0.98
    near = delaunay.topological_neighbors(body, distances, skeleton)
    assert (near.getnnz(axis=1) > 0).all()


def test_the_nearest_bones_along_a_path():
    """0 and 4 are on bones; 2, in the middle, is as near to both; 5 is off the path."""
    rows, columns = np.arange(4), np.arange(1, 5)
    half = sparse.coo_matrix((np.ones(4), (rows, columns)), shape=(6, 6))
    bones = sparse.csr_matrix((np.ones(2, np.float32), ([0, 4], [0, 1])), shape=(6, 2))
    lengths, near = delaunay._closest((half + half.T).tocsr(), bones, 1.0)
    assert lengths.tolist() == [0, 1, 2, 1, 0, np.inf]
    assert near.toarray().tolist() == [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 0]]
    around = delaunay._nearly_closest((half + half.T).tocsr(), lengths, near)
    assert around.toarray().tolist() == near.toarray().tolist()


def test_clothes_follow_the_body_below():
    """A sleeve around the bar, which hides the bones from it."""
    body = bar()
    sleeve = Body(body.rest * [1, 1.2, 1.2] + [0.01, 0, 0], body.triangles, NO_EDGES)
    both = bodies.joined(body, sleeve)
    distances = BoneDistances(both, chain())
    near = delaunay.topological_neighbors(both, distances, chain()).toarray()
    count = len(body.rest)
    x = both.points[:, 0]
    assert near.any(axis=1).all()
    assert not near[count:][x[count:] < 1][:, 2].any()
