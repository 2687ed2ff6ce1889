# SPDX-License-Identifier: GPL-3.0-or-later
"""Rogue weights: planted ones are found, everything else stays, and the corrected weights are close to the original
ones."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding import rogue
from skinning_tools.core.binding.bind import METHODS, bind
from skinning_tools.core.binding.random_turns import squared_offsets
from skinning_tools.core.binding.rogue import remove_rogue_weights, rogue_islands
from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.deform import skin_frame

from ..skinned_shapes import about, cuboid, dense
from .bodies import NO_EDGES
from .planted_rogues import KINDS, human, meshes, pairs, planted, seen, tube


def corrected_rows(body, skeleton, bones, weights, locked=None):
    """The body without the named vertices."""
    islands = rogue_islands(body, skeleton, bones, weights)
    return remove_rogue_weights(body, skeleton, bones, weights, islands, locked)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["human", "tube", "parts"])
def test_what_is_planted_and_seen_is_found_and_nothing_else(name, kind, shared_data):
    body, skeleton, bones, weights = meshes(name, shared_data)
    own = pairs(rogue_islands(body, skeleton, bones, weights))
    right, *rows = planted(body, skeleton, bones, weights, kind=kind)
    visible = seen(body, skeleton, (bones, weights), rows)
    visible = {(bone, vertex) for bone, vertex in right if vertex in visible}
    islands = rogue_islands(body, skeleton, *rows)
    named = pairs(islands)
    # What is named in its surroundings may reach a little farther, but nowhere else.
    assert len(visible & named) >= 0.99 * len(visible)
    assert len(named - right - own) <= 0.001 * len(bones)
    assert [island.size for island in islands] == sorted(island.size for island in islands)
    clean = remove_rogue_weights(body, skeleton, *rows, islands)
    assert set(clean.changed.tolist()) == {vertex for _, vertex in named}
    others = np.setdiff1d(np.arange(len(bones)), clean.changed)
    np.testing.assert_array_equal(clean.bones[others], rows[0][others])
    np.testing.assert_array_equal(clean.weights[others], rows[1][others])
    assert clean.bones.shape == rows[0].shape
    np.testing.assert_allclose(clean.weights.sum(axis=1), 1, atol=1e-6)
    if kind.startswith("patches"):
        return
    # The correction is a neighbor's row: nearly the right one, but within a patch the nearest is some rings away.
    error = np.abs(dense(clean.bones, clean.weights, len(skeleton)) - dense(bones, weights, len(skeleton))).sum(axis=1)
    corrected = [vertex for bone, vertex in visible & named]
    assert not corrected or error[corrected].mean() < 0.25


@pytest.mark.parametrize("name", ["human", "tube", "parts"])
def test_few_false_positives_without_planted_errors(name, shared_data):
    """On weights as their makers left them; and nothing of it is certain."""
    body, skeleton, bones, weights = meshes(name, shared_data)
    islands = rogue_islands(body, skeleton, bones, weights)
    assert len({vertex for _, vertex in pairs(islands)}) <= 0.001 * len(bones)
    assert not any(island.certain for island in islands)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_certain_in_a_fresh_binding(method, shared_data):
    body, skeleton, _, _ = human(shared_data)
    assert not any(island.certain for island in rogue_islands(body, skeleton, *bind(body, skeleton, method)))


@pytest.mark.parametrize("kind", ["strays", "slight", "islands", "next limb", "patches of 60"])
def test_the_order_of_bones_and_the_axes_of_the_mesh_make_no_difference(kind, shared_data):
    body, skeleton, bones, weights = human(shared_data)
    _, bones, weights = planted(body, skeleton, bones, weights, kind=kind)
    random = np.random.default_rng(0)
    order = random.permutation(len(skeleton))
    index = np.argsort(order).astype(np.int32)
    parents = skeleton.parents[order]
    ordered = Skeleton(skeleton.heads[order], skeleton.tails[order], np.where(parents >= 0, index[parents], -1))
    found = set(map(as_key, rogue_islands(body, skeleton, bones, weights)))
    assert found
    others = rogue_islands(body, ordered, index[bones], weights)
    assert {(order[bone], *rest) for bone, *rest in map(as_key, others)} == found
    for linear in (np.diag([-1.0, 1, 1]), np.diag([1.0, 1, -1]), *Rotation.random(3, random_state=0).as_matrix()):
        turned = Body(body.rest @ linear.T, body.triangles, body.edges)
        bent = Skeleton(skeleton.heads @ linear.T, skeleton.tails @ linear.T, skeleton.parents)
        assert set(map(as_key, rogue_islands(turned, bent, bones, weights))) == found


def as_key(island):
    return island.bone, tuple(island.vertices.tolist()), island.certain


def test_offsets_of_blends_are_the_mean_over_poses():
    """Of a chain that branches, against poses that are drawn."""
    random = np.random.default_rng(1)
    heads, parents = random.normal(size=(6, 3)), [-1, 0, 1, 1, 3, -1]
    points, shares = random.normal(size=(4, 3)), np.eye(6)[[2, 4, 5, 0]] - random.dirichlet(np.ones(6), 4)
    count = 40000
    axes = random.normal(size=(count, 6, 3))
    axes *= rogue._TURN / np.linalg.norm(axes, axis=2, keepdims=True)
    turns = Rotation.from_rotvec(axes.reshape(-1, 3)).as_matrix().reshape(count, 6, 3, 3)
    off = np.zeros((count, 4, 3))
    for bone in range(6):
        moved, above = np.tile(points, (count, 1, 1)), bone
        while above >= 0:
            moved = heads[above] + np.einsum("nij,nkj->nki", turns[:, above], moved - heads[above])
            above = parents[above]
        off += shares[:, bone, None] * moved
    expected = (off**2).sum(axis=2)
    found = squared_offsets(Skeleton(heads, heads + 1, parents), sparse.csr_matrix(shares), points, rogue._TURN)
    # Five standard errors of the drawn mean.
    assert (np.abs(found - expected.mean(axis=0)) <= 5 * expected.std(axis=0) / np.sqrt(count)).all()


def test_strays_of_full_weight_are_certain_and_faint_ones_are_not():
    body, skeleton, bones, weights = tube()
    for kind, least, most in (("strays", 0.99, 1), ("tiny", 0, 0.3)):
        right, *rows = planted(body, skeleton, bones, weights, kind=kind)
        sure = pairs([island for island in rogue_islands(body, skeleton, *rows) if island.certain])
        assert least <= len(sure & right) / len(right) <= most


def test_a_corrected_tube_bends_as_it_should():
    body, skeleton, bones, weights = tube()
    *_, wrong_bones, wrong_weights = planted(body, skeleton, bones, weights, 0.05, seed=5)
    clean = corrected_rows(body, skeleton, wrong_bones, wrong_weights)
    turn = Rotation.from_euler("z", 0.35)
    matrices = [np.eye(3, 4)]
    for joint in skeleton.heads[1:]:
        step = np.vstack([about(turn.as_matrix(), joint), [0, 0, 0, 1]])
        matrices.append((np.vstack([matrices[-1], [0, 0, 0, 1]]) @ step)[:3])
    right, wrong, corrected = (
        skin_frame(body.rest, *rows, np.array(matrices))
        for rows in ((bones, weights), (wrong_bones, wrong_weights), (clean.bones, clean.weights))
    )
    assert np.linalg.norm(wrong - right, axis=1).max() > 2
    assert np.linalg.norm(corrected - right, axis=1).max() < 0.1


def test_only_the_chosen_islands_change():
    body, skeleton, bones, weights = tube()
    *_, wrong_bones, wrong_weights = planted(body, skeleton, bones, weights, 0.02, seed=1)
    islands = rogue_islands(body, skeleton, wrong_bones, wrong_weights)
    some = islands[::3]
    clean = remove_rogue_weights(body, skeleton, wrong_bones, wrong_weights, some)
    np.testing.assert_array_equal(clean.changed, np.unique(np.concatenate([island.vertices for island in some])))
    left = rogue_islands(body, skeleton, clean.bones, clean.weights)
    assert pairs(left) == pairs(islands) - pairs(some)
    assert len(remove_rogue_weights(body, skeleton, wrong_bones, wrong_weights, []).changed) == 0


def test_a_patch_is_one_island_and_only_its_share_is_given_away():
    """A patch at x = 3 has a third of its weight on the bone at its far end."""
    body, skeleton, bones, weights = tube()
    patch = np.flatnonzero(np.linalg.norm(body.rest - [3.0, 0.5, 0.0], axis=1) < 0.35)
    assert len(patch) > 10
    weights = weights.copy()
    weights[patch] *= 2 / 3
    weights[patch, 7] = 1 / 3
    (island,) = rogue_islands(body, skeleton, bones, weights)
    assert island.bone == 7
    assert island.strength == pytest.approx(1 / 3)
    np.testing.assert_array_equal(island.vertices, patch)
    clean = remove_rogue_weights(body, skeleton, bones, weights, [island])
    after = dense(clean.bones, clean.weights, 8)
    assert not after[patch, 7].any()
    np.testing.assert_allclose(after[patch], tube_rows(patch), atol=0.2)


def tube_rows(vertices):
    _, _, bones, weights = tube()
    return dense(bones, weights, 8)[vertices]


def test_the_nearest_valid_vertex_is_over_the_surface_not_through_space():
    """Two fingers close together: a stray on one of them is given to that one's bone, not to the other's."""
    rest, triangles = cuboid(columns=20, rows=4, length=4.0)
    count = len(rest)
    body = Body(np.vstack([rest, rest + np.array([0, 1.02, 0])]), np.vstack([triangles, triangles + count]), NO_EDGES)
    skeleton = Skeleton([[0, 0, 0], [0, 1.02, 0], [10, 0, 0]], [[4, 0, 0], [4, 1.02, 0], [12, 0, 0]], [-1, -1, -1])
    bones = np.repeat([[0], [1]], count, axis=0).astype(np.int32)
    patch = np.flatnonzero(np.linalg.norm(body.rest - [2.0, 0.5, 0.0], axis=1) < 0.45)
    strays = patch[patch < count]
    bones[strays] = 1
    (island,) = rogue_islands(body, skeleton, bones, np.ones(bones.shape))
    np.testing.assert_array_equal(island.vertices, strays)
    clean = remove_rogue_weights(body, skeleton, bones, np.ones(bones.shape), [island])
    np.testing.assert_array_equal(clean.bones[:, 0], np.arange(2 * count) >= count)


def test_buttons_and_a_part_on_the_wrong_bone():
    """A button on each bone's part of the tube is no stray, a button that follows a bone far off is one."""
    body, skeleton, bones, weights = tube()
    button, button_triangles = cuboid(columns=1, rows=1, length=0.2)
    rest, triangles = [body.rest], [body.triangles]
    rows, shares = [bones], [weights]
    for number, owner in enumerate([0, 1, 2, 3, 4, 5, 6, 0]):
        triangles.append(button_triangles + sum(map(len, rest)))
        rest.append(button * [1, 0.2, 0.2] + [1 + 2 * number, 0.7, 0])
        rows.append(np.full((len(button), 8), owner, np.int32))
        shares.append(np.tile(np.eye(1, 8), (len(button), 1)))
    body = Body(np.concatenate(rest), np.concatenate(triangles), NO_EDGES)
    bones, weights = np.concatenate(rows), np.concatenate(shares)
    (island,) = rogue_islands(body, skeleton, bones, weights)
    assert island.bone == 0
    np.testing.assert_array_equal(island.vertices, np.arange(len(body.rest) - len(button), len(body.rest)))
    clean = remove_rogue_weights(body, skeleton, bones, weights, [island])
    assert (clean.bones[island.vertices, 0] == 7).all()


def test_a_seam_does_not_cut_a_bone_in_two():
    body, skeleton, bones, weights = tube()
    torn = body.rest[body.triangles].reshape(-1, 3)
    apart = Body(torn, np.arange(len(torn)).reshape(-1, 3), NO_EDGES)
    corners = body.triangles.ravel()
    assert rogue_islands(apart, skeleton, bones[corners], weights[corners]) == []
    right, wrong_bones, wrong_weights = planted(body, skeleton, bones, weights, 0.02, seed=3)
    vertices = sorted({vertex for _, vertex in right})
    clean = corrected_rows(apart, skeleton, wrong_bones[corners], wrong_weights[corners])
    np.testing.assert_array_equal(clean.changed, np.flatnonzero(np.isin(corners, vertices)))
    whole = corrected_rows(body, skeleton, wrong_bones, wrong_weights)
    np.testing.assert_allclose(
        dense(clean.bones, clean.weights, 8), dense(whole.bones, whole.weights, 8)[corners], atol=1e-9
    )


def test_a_stray_of_full_weight_is_not_the_best_vertex_of_a_weak_bone():
    body, skeleton, bones, weights = tube()
    weak = dense(bones, weights, 8)
    weak[:, 2] += 0.8 * weak[:, 3]
    weak[:, 3] *= 0.2
    stray = int(np.argmin(np.linalg.norm(body.rest - [2.6, 0.5, 0], axis=1)))
    weak[stray] = np.arange(8) == 3
    bones = np.tile(np.arange(8, dtype=np.int32), (len(weak), 1))
    (island,) = rogue_islands(body, skeleton, bones, weak)
    assert (island.bone, island.vertices.tolist()) == (3, [stray])


def test_a_bone_that_has_only_stray_weights():
    body, skeleton, bones, weights = tube()
    bones = np.where(bones == 7, 6, bones).astype(np.int32)
    weights = weights.copy()
    strays = [int(np.argmin(np.linalg.norm(body.rest - [x, 0.5, 0], axis=1))) for x in (1.0, 5.0)]
    bones[strays] = 7
    weights[strays] = np.arange(8) == 0
    assert pairs(rogue_islands(body, skeleton, bones, weights)) == {(7, stray) for stray in strays}


def test_locked_bones_neither_lose_nor_gain():
    body, skeleton, bones, weights = tube()
    right, wrong_bones, wrong_weights = planted(body, skeleton, bones, weights, 0.05, seed=2)
    locked = np.arange(8) == min(right)[0]
    clean = corrected_rows(body, skeleton, wrong_bones, wrong_weights, locked)
    before, after = dense(wrong_bones, wrong_weights, 8), dense(clean.bones, clean.weights, 8)
    np.testing.assert_allclose(after[:, locked], before[:, locked], atol=1e-12)
    assert len(clean.changed) > 0


@pytest.mark.parametrize(
    "body",
    [
        Body(np.arange(30.0).reshape(10, 3), np.zeros((0, 3), int), NO_EDGES),
        Body(np.zeros((10, 3)), [[0, 1, 2]], NO_EDGES),
        Body(np.repeat(np.eye(3), 4, axis=0)[:10], [[0, 4, 8], [1, 5, 9], [0, 0, 1]], NO_EDGES),
    ],
)
def test_degenerate_bodies(body):
    random = np.random.default_rng(0)
    bones = np.array([random.choice(3, 2, replace=False) for _ in range(10)], np.int32)
    weights = random.dirichlet(np.ones(2), 10)
    skeleton = Skeleton(np.zeros((3, 3)), [[1, 0, 0], [0, 1, 0], [0, 0, 0]], [-1, 0, 0])
    clean = corrected_rows(body, skeleton, bones, weights)
    np.testing.assert_allclose(clean.weights.sum(axis=1), 1, atol=1e-9)
    none = corrected_rows(body, skeleton, bones, np.zeros((10, 2)))
    assert not none.weights.any()
    assert len(none.changed) == 0
