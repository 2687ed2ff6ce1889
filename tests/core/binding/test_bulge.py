# SPDX-License-Identifier: GPL-3.0-or-later
"""Soft regions and the weights of bulge bones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skinning_tools.core.binding.bulge import add_soft_bone, draped_region, soft_region
from skinning_tools.core.binding.types import Body
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadSettings
from skinning_tools.core.smooth_step import smooth_step

from ..skinned_shapes import chain_weights, cuboid, dense


def tube(sides=48, rings=40, radius=1.0, length=6.0):
    """An open tube along x: rest, triangles, and angle and x of each vertex."""
    angle, x = np.meshgrid(np.arange(sides) * 2 * np.pi / sides, np.linspace(0, length, rings))
    rest = np.column_stack([x.ravel(), radius * np.cos(angle).ravel(), radius * np.sin(angle).ravel()])
    index = np.arange(len(rest)).reshape(rings, sides)
    a, b = index[:-1], index[1:]
    next_a, next_b = np.roll(a, -1, axis=1), np.roll(b, -1, axis=1)
    quads = np.stack([a, next_a, next_b, b], axis=-1).reshape(-1, 4)
    return rest, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]), angle.ravel(), x.ravel()


def body_of(rest, triangles):
    return Body(rest, triangles, np.zeros((0, 2), int))


@pytest.mark.parametrize("place", [(3.0, 0.0), (3.04, 0.31)])
def test_distances_run_over_the_skin(place):
    """On a tube they are those of the paper it is rolled from, to a tenth; its far side stays out."""
    rest, triangles, angle, x = tube()
    at, around = place
    center = [at, np.cos(around), np.sin(around)]
    region = soft_region(body_of(rest, triangles), center, 2.2)
    arc = np.abs((angle - around + np.pi) % (2 * np.pi) - np.pi)
    unrolled = np.hypot(x - at, arc)
    least, most = smooth_step(1 - 1.1 * unrolled / 2.2), smooth_step(1 - 0.99 * unrolled / 2.2)
    assert (region >= least - 1e-9).all()
    assert (region <= most + 1e-9).all()
    assert (region[arc > 2.3] == 0).all()
    straight = soft_region(body_of(rest, triangles), center, 2.2, along_surface=False)
    np.testing.assert_allclose(straight, smooth_step(1 - np.linalg.norm(rest - center, axis=1) / 2.2))
    assert straight[arc > 2.8].max() > 0.02


def test_a_center_off_the_skin_moves_to_it():
    rest, triangles, angle, _ = tube()
    body = body_of(rest, triangles)
    outside = soft_region(body, [3.0, 1.4, 0.0], 1.5)
    np.testing.assert_allclose(outside, soft_region(body, [3.0, 1.0, 0.0], 1.5), atol=1e-9)
    inside = soft_region(body, [3.0, 0.4, 0.0], 1.5)
    assert inside.max() > 0.97
    assert (inside[np.cos(angle) < 0] == 0).all()


def test_a_part_nearby_stays_out_and_a_seam_does_not_stop_it():
    rest, triangles, angle, _ = tube()
    count = len(rest)
    # A second tube close to the first, and the first cut open along one line of its vertices.
    beside = rest + np.array([0, 2.05, 0])
    both = body_of(np.vstack([rest, beside]), np.vstack([triangles, triangles + count]))
    region = soft_region(both, [3.0, 1.0, 0.0], 2.0)
    assert region[:count].max() > 0.9
    assert (region[count:] == 0).all()
    np.testing.assert_allclose(region[:count], soft_region(body_of(rest, triangles), [3.0, 1.0, 0.0], 2.0))
    seam = np.flatnonzero(np.isclose(angle, angle[5]))
    cut = triangles.copy()
    far = np.isin(angle[triangles].max(axis=1), angle[angle <= angle[5]]) & ~(angle[triangles] > 6).any(axis=1)
    twin = np.full(count, -1)
    twin[seam] = count + np.arange(len(seam))
    cut[far] = np.where(twin[cut[far]] >= 0, twin[cut[far]], cut[far])
    assert (cut != triangles).any()
    split = soft_region(body_of(np.vstack([rest, rest[seam]]), cut), [3.0, 1.0, 0.0], 2.0)
    np.testing.assert_allclose(split[:count], region[:count])
    np.testing.assert_allclose(split[count:], region[seam])


def test_meshes_without_faces_or_edges():
    line = np.column_stack([np.linspace(0, 5, 11), np.zeros(11), np.zeros(11)])
    edges = np.column_stack([np.arange(10), np.arange(1, 11)])
    region = soft_region(Body(line, np.zeros((0, 3), int), edges), [0, 0.2, 0], 2.0)
    np.testing.assert_allclose(region, smooth_step(1 - line[:, 0] / 2), atol=1e-9)
    alone = soft_region(Body(line, np.zeros((0, 3), int), np.zeros((0, 2), int)), [0.1, 0, 0], 2.0)
    np.testing.assert_allclose(alone, np.arange(11) == 0, atol=1e-9)
    one = soft_region(Body(np.zeros((1, 3)), np.zeros((0, 3), int), np.zeros((0, 2), int)), [1, 1, 1], 0.5)
    np.testing.assert_allclose(one, [1.0], atol=1e-9)


def test_triangles_without_area_and_edges_of_three_triangles():
    rest = np.array([[0, 0, 0], [1, 0, 0], [0.5, 0, 0], [0.5, 1, 0], [0.5, -1, 0], [0.5, 0, 1]])
    triangles = np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 1, 5]])
    region = soft_region(body_of(rest, triangles), [0, 0, 0], 3.0)
    assert np.isfinite(region).all()
    assert region[0] == pytest.approx(1)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
def test_an_invalid_radius_is_refused(radius):
    rest, triangles = cuboid(columns=4, rows=2)
    with pytest.raises(BadSettings, match="radius"):
        soft_region(body_of(rest, triangles), [0, 0, 0], radius)


def rows(seed, bone_count=5, influences=4):
    random = np.random.default_rng(seed)
    bones = np.array([random.choice(bone_count, influences, replace=False) for _ in range(50)], np.int32)
    return bones, random.dirichlet(np.ones(influences), 50), random.random(50) * (random.random(50) < 0.7)


@given(st.integers(0, 10_000), st.floats(0, 1))
@settings(deadline=None, max_examples=30)
def test_shares_of_the_new_bone(seed, strength):
    bones, weights, region = rows(seed)
    before = np.pad(dense(bones, weights, 5), ((0, 0), (0, 1)))
    result = dense(*add_soft_bone(bones, weights, 5, region, strength=strength, max_influences=6), 6)
    share = strength * region[:, None]
    np.testing.assert_allclose(result, (1 - share) * before + share * (np.arange(6) == 5), atol=1e-12)
    result = dense(*add_soft_bone(bones, weights, 5, region, strength=strength, carrier=2, max_influences=6), 6)
    taken = share[:, 0] * before[:, 2]
    np.testing.assert_allclose(result[:, 5], taken, atol=1e-12)
    np.testing.assert_allclose(result[:, 2], before[:, 2] - taken, atol=1e-12)
    np.testing.assert_allclose(result[:, [0, 1, 3, 4]], before[:, [0, 1, 3, 4]], atol=1e-12)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_sums_and_the_limit_are_kept(seed):
    bones, weights, region = rows(seed)
    for carrier in (None, 1):
        result = add_soft_bone(bones, weights, 5, region, carrier=carrier)
        assert result[0].shape == (50, 4)
        np.testing.assert_allclose(result[1].sum(axis=1), 1, atol=1e-12)
        outside = region == 0
        np.testing.assert_allclose(
            dense(result[0], result[1], 6)[outside, :5], dense(bones, weights, 5)[outside], atol=1e-12
        )


def test_a_new_region_replaces_the_old_one():
    bones, weights, region = rows(3)
    once = add_soft_bone(bones, weights, 5, region, carrier=2, max_influences=6)
    other = add_soft_bone(*once, 5, region**2, carrier=2, max_influences=6)
    direct = add_soft_bone(bones, weights, 5, region**2, carrier=2, max_influences=6)
    np.testing.assert_allclose(dense(*other, 6), dense(*direct, 6), atol=1e-12)


def test_locked_bones_give_nothing():
    bones, weights, region = rows(4)
    locked = np.arange(6) == 2
    before = dense(bones, weights, 5)
    result = dense(*add_soft_bone(bones, weights, 5, region, locked=locked, max_influences=6), 6)
    np.testing.assert_allclose(result[:, 2], before[:, 2], atol=1e-12)
    assert result[:, 5].max() > 0.1
    result = dense(*add_soft_bone(bones, weights, 5, region, carrier=2, locked=locked, max_influences=6), 6)
    np.testing.assert_allclose(result[:, :5], before, atol=1e-12)


def test_nothing_moves_while_the_bulge_rests_on_its_carrier():
    rest, triangles = cuboid(columns=30, rows=4)
    bones, weights = chain_weights(rest[:, 0], [3.0])
    region = soft_region(body_of(rest, triangles), [2.0, 0.5, 0.0], 1.5)
    random = np.random.default_rng(0)
    matrices = random.normal(size=(2, 3, 4))
    new = add_soft_bone(bones, weights, 2, region, carrier=0)
    with_bulge = np.concatenate([matrices, matrices[:1]])
    np.testing.assert_allclose(
        skin_frame(rest, *new, with_bulge), skin_frame(rest, bones, weights, matrices), atol=1e-12
    )
    with_bulge[2, :, 3] += [0, 0.3, 0]
    raised = skin_frame(rest, *new, with_bulge) - skin_frame(rest, bones, weights, matrices)
    # At x = 2 the carrier has all of the weight.
    assert raised[:, 1].max() == pytest.approx(0.3 * region[np.argmax(raised[:, 1])])


def test_a_strength_out_of_range_is_refused():
    bones, weights, region = rows(0)
    with pytest.raises(BadSettings, match="strength"):
        add_soft_bone(bones, weights, 5, region, strength=1.5)


def test_cloth_beside_a_limb():
    """All below the limb's head on the side of the center, as far across as the radius says; whatever the axes."""
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    x, y, z = np.meshgrid(np.linspace(-4, 4, 17), np.linspace(-1, 3, 9), np.linspace(-7, 3, 21), indexing="ij")
    points = np.column_stack([x.ravel(), y.ravel(), z.ravel()])
    place = np.array([1.0, 2.0, 3.0])

    def region(radius=4.0, center=(0.0, 2.0, -3.0)):
        return draped_region(points @ turn.T + place, place, turn @ [0, 0, -5.0], turn @ center + place, radius)

    found = region()
    x, y, z = points.T
    assert found[(z >= 0) | (y <= -1) | (np.abs(x) >= 0.85 * 4)].max() < 1e-9
    assert found[(z <= -1) & (y >= 0.5) & (np.abs(x) <= 1)].min() > 1 - 1e-9
    # Half of it at a tenth of the limb, in the middle between a quarter and 0.85 of the radius, and a little behind.
    for where in ((0, 2, -0.5), (2.2, 2, -3), (0, -0.25, -3)):
        here = draped_region([turn @ where + place], place, turn @ [0, 0, -5.0], turn @ [0, 2, -3.0] + place, 4.0)
        assert here == pytest.approx(0.5)
    assert (region(radius=2.0) <= found).all()
    for wrong in ({"radius": 0.0}, {"center": (0.0, 0.0, -2.0)}):
        with pytest.raises(BadSettings, match="Cloth needs"):
            region(**wrong)
