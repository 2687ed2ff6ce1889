# SPDX-License-Identifier: GPL-3.0-or-later
"""Weights transferred between surfaces: which vertices are matched, on which side, and how the others are filled in."""

import numpy as np
import pytest
from scipy import sparse

from skinning_tools.core.binding.laplacian import laplacian
from skinning_tools.core.binding.types import Body
from skinning_tools.core.errors import BadWeights, Cancelled
from skinning_tools.core.transfer import merged_weights, transfer_weights
from skinning_tools.core.transfer.fill import continued
from tests.core.binding import bodies


def tube(radius: float, start=0.0, end=6.0, rings=31, segments=24, inward=False) -> Body:
    x, angle = np.meshgrid(np.linspace(start, end, rings), np.arange(segments) * 2 * np.pi / segments, indexing="ij")
    rest = np.stack([x, radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1, 3)
    corners = np.arange(rings * segments).reshape(rings, segments)
    beside = np.roll(corners, -1, axis=1)
    a, b, c, d = (each.ravel() for each in (corners[:-1], beside[:-1], beside[1:], corners[1:]))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return Body(rest, triangles[:, ::-1] if inward else triangles, bodies.NO_EDGES)


def along(body: Body) -> sparse.csr_matrix:
    """Weights of two bones that change linearly along x."""
    share = np.clip(body.rest[:, 0] / 6, 0, 1)
    return sparse.csr_matrix(np.column_stack([1 - share, share]))


def errors(body: Body, found) -> np.ndarray:
    """(N,) how far weights are from those along x."""
    return np.abs((found.weights - along(body)).toarray()).max(axis=1)


def joined(*parts: Body) -> Body:
    result = parts[0]
    for part in parts[1:]:
        result = bodies.joined(result, part)
    return result


SKIN = tube(1.0)
LENGTHWISE = np.column_stack([np.arange(720), np.arange(720) + 24])


def test_the_same_mesh_gets_the_same_weights():
    found = transfer_weights(SKIN, along(SKIN), Body(SKIN.rest, SKIN.triangles, SKIN.edges))
    assert found.matched.all()
    assert errors(SKIN, found).max() < 1e-12


def test_another_resolution_gets_the_weights_between_vertices():
    cloth = tube(1.05, rings=47, segments=31)
    found = transfer_weights(SKIN, along(SKIN), cloth)
    assert found.matched.all()
    assert errors(cloth, found).max() < 1e-6
    assert np.allclose(found.weights.sum(axis=1), 1)


@pytest.mark.parametrize("inward", [False, True])
def test_clothes_may_be_inside_out(inward):
    cloth = tube(1.05, inward=inward)
    assert transfer_weights(SKIN, along(SKIN), cloth).matched.all()


def test_the_source_may_be_inside_out():
    skin = tube(1.0, inward=True)
    assert transfer_weights(skin, along(skin), tube(1.05)).matched.all()


def test_both_layers_of_a_sewn_garment_are_matched():
    outer, inner = tube(1.2), tube(1.05, inward=True)
    count = len(outer.rest)
    rim = np.arange(24)
    beside = np.roll(rim, -1)
    strips = np.concatenate(
        [np.stack([rim, rim + count, beside], axis=1), np.stack([beside, rim + count, beside + count], axis=1)]
    )
    both = joined(outer, inner)
    cloth = Body(both.rest, np.concatenate([both.triangles, strips]), bodies.NO_EDGES)
    assert cloth.place_components.max() == 0
    found = transfer_weights(SKIN, along(SKIN), cloth)
    assert found.matched[24:count].all()
    assert found.matched[count + 24 :].all()


def test_a_finger_does_not_take_the_weights_of_the_next_one():
    """Between two tubes, a glove's vertices are nearer to the wrong one; what faces it is not matched."""
    skin = joined(SKIN, Body(SKIN.rest + np.array([0, 2.1, 0]), SKIN.triangles, SKIN.edges))
    weights = sparse.csr_matrix(np.repeat(np.eye(2), len(SKIN.rest), axis=0))
    glove = tube(1.08)
    found = transfer_weights(skin, weights, glove)
    strangers = found.weights.toarray()[:, 1]
    assert strangers.max() < 1e-9
    wrong = np.linalg.norm(glove.rest[:, 1:] - [2.1, 0], axis=1) < 1.04
    assert wrong.any()
    assert not found.matched[wrong].any()


def test_distant_vertices_are_filled_in():
    cloth = tube(1.05)
    bulge = np.abs(cloth.rest[:, 0] - 3) < 1
    scale = np.where(bulge, 3.0, 1.0)[:, None]
    moved = Body(cloth.rest * [1, 0, 0] + cloth.rest * [0, 1, 1] * scale, cloth.triangles, cloth.edges)
    found = transfer_weights(SKIN, along(SKIN), moved)
    assert not found.matched[bulge].any()
    middle = np.isclose(moved.rest[:, 0], 3)
    assert np.allclose(found.weights.toarray()[middle], 0.5, atol=0.02)
    assert found.weights.min() >= 0


def test_filled_values_are_harmonic_and_between_known_ones():
    body = tube(1.0)
    known = (body.rest[:, 0] < 0.5) | (body.rest[:, 0] > 5.5)
    filled = continued(body, known, along(body)).toarray()
    assert np.allclose(filled[known], along(body).toarray()[known])
    left = laplacian(body)[0] @ filled
    assert np.abs(left[~known]).max() < 1e-4
    assert filled.min() >= 0
    assert np.allclose(filled.sum(axis=1), 1, atol=1e-6)


def test_units_do_not_matter():
    cloth = tube(1.3, rings=11)
    found = transfer_weights(SKIN, along(SKIN), cloth).weights.toarray()
    large = [Body(1000 * body.rest, body.triangles, body.edges) for body in (SKIN, cloth)]
    assert np.allclose(transfer_weights(large[0], along(SKIN), large[1]).weights.toarray(), found, atol=1e-9)


def test_a_distant_part_follows_the_closest_bone():
    button = Body(0.05 * tube(1.0, end=1.0, rings=3).rest + [5.0, 3.0, 0.0], tube(1.0, rings=3).triangles, SKIN.edges)
    cloth = joined(tube(1.05), button)
    found = transfer_weights(SKIN, along(SKIN), cloth)
    away = slice(len(cloth.rest) - len(button.rest), None)
    assert not found.matched[away].any()
    assert np.allclose(found.weights.toarray()[away], [1 / 6, 5 / 6], atol=0.02)


def test_three_hundred_loose_parts():
    places = np.column_stack([np.linspace(0.1, 5.9, 300), np.full(300, 1.05), np.zeros(300)])
    corner = 0.01 * np.array([[0, 0, 0], [1, 0, 0], [0, 0, -1.0]])
    rest = (places[:, None] + corner).reshape(-1, 3)
    cloth = Body(rest, np.arange(900).reshape(-1, 3), bodies.NO_EDGES)
    found = transfer_weights(SKIN, along(SKIN), cloth)
    assert errors(cloth, found).max() < 0.01


def test_vertices_of_the_source_without_weights_are_holes():
    weights = along(SKIN).toarray()
    weights[np.abs(SKIN.rest[:, 0] - 3) < 0.5] = 0
    cloth = tube(1.05)
    found = transfer_weights(SKIN, sparse.csr_matrix(weights), cloth)
    assert np.allclose(found.weights.sum(axis=1), 1)
    assert errors(cloth, found).max() < 0.1


@pytest.mark.parametrize("lock", [False, True])
def test_a_locked_rim_follows_the_closest_point_whatever_its_normal(lock):
    cuff = tube(1.05, start=1.0, end=5.0)
    spread = cuff.rest.copy()
    spread[-24:, 1:] *= 1.15
    flared = Body(spread, cuff.triangles, cuff.edges)
    found = transfer_weights(SKIN, along(SKIN), flared, lock_rim=lock)
    assert found.rim[-24:].all() == found.matched[-24:].all() == lock
    assert not found.rim[24:-24].any()


@pytest.mark.parametrize(
    "broken",
    [
        lambda body: Body(body.rest, np.concatenate([body.triangles, [[0, 0, 1], [2, 2, 2]]]), body.edges),
        lambda body: Body(body.rest[body.triangles.ravel()], np.arange(body.triangles.size).reshape(-1, 3), body.edges),
        lambda body: Body(body.rest, np.zeros((0, 3), int), LENGTHWISE),
        lambda body: Body(body.rest, np.zeros((0, 3), int), body.edges),
    ],
    ids=["zero-area faces", "torn apart", "edges only", "points only"],
)
def test_untidy_meshes_give_and_get_weights(broken):
    cloth = broken(tube(1.02))
    assert errors(cloth, transfer_weights(SKIN, along(SKIN), cloth)).max() < 1e-6
    skin = broken(SKIN)
    # Where the source has no faces, the closest of its vertices counts.
    least = 1e-6 if len(skin.triangles) else 0.02
    assert errors(tube(1.02), transfer_weights(skin, along(skin), tube(1.02))).max() < least


def test_without_weights_there_is_nothing_to_transfer():
    with pytest.raises(BadWeights, match="no weights"):
        transfer_weights(SKIN, sparse.csr_matrix((len(SKIN.rest), 2)), tube(1.05))


def test_it_can_be_cancelled():
    with pytest.raises(Cancelled):
        transfer_weights(SKIN, along(SKIN), tube(1.05), progress=lambda fraction, stage: False)


# What of it a mesh gets that has weights

BEFORE = sparse.csr_matrix([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.2, 0.0, 0.8]])
AFTER = sparse.csr_matrix([[0.0, 0.0, 1.0], [0.25, 0.0, 0.75], [0.5, 0.5, 0.0]])
ALL, NONE = np.ones(3, bool), np.zeros(3, bool)


def test_a_share_of_the_way_and_empty_rows_the_whole():
    found = merged_weights(BEFORE, AFTER, np.full(3, 0.5), ALL, NONE).toarray()
    assert np.allclose(found, [[0.25, 0.25, 0.5], [0.25, 0.0, 0.75], [0.35, 0.25, 0.4]])


def test_other_bones_share_what_chosen_ones_leave():
    chosen = np.array([True, False, False])
    found = merged_weights(BEFORE, AFTER, np.ones(3), chosen, NONE).toarray()
    assert np.allclose(found, [[0.0, 1.0, 0.0], [0.25, 0.0, 0.0], [0.5, 0.0, 0.5]])


def test_locked_bones_keep_their_weights():
    locked = np.array([False, True, False])
    found = merged_weights(BEFORE, AFTER, np.ones(3), ALL, locked).toarray()
    assert np.allclose(found, [[0.0, 0.5, 0.5], [0.25, 0.0, 0.75], [1.0, 0.0, 0.0]])
