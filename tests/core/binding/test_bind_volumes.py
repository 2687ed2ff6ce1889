# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes around bones: that they fit, what they hold, and that edited ones count."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from skinning_tools.core.binding.bind import bind
from skinning_tools.core.binding.containment import KINDS, Falloff, Volume, containment_volumes
from skinning_tools.core.binding.mesh_volume import MOST_TRIANGLES, MeshVolume
from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.errors import BadMesh, BadSettings

from ..skinned_shapes import dense
from . import bodies
from .bodies import NO_EDGES, bar, chain

every_kind = pytest.mark.parametrize("kind", KINDS)


def tube(width, depth, sides=32, rings=61):
    """An open tube along x from 0 to 6, of an elliptic cross-section: half extents along y and z."""
    angle = np.arange(sides) * 2 * np.pi / sides
    x = np.linspace(0, 6, rings)
    ring = np.column_stack([width * np.cos(angle), depth * np.sin(angle)])
    rest = np.column_stack([np.repeat(x, sides), np.tile(ring, (rings, 1))])
    index = np.arange(rings * sides).reshape(rings, sides)
    a, b = index[:-1], index[1:]
    c, d = np.roll(b, -1, axis=1), np.roll(a, -1, axis=1)
    triangles = np.concatenate([np.stack(t, axis=-1).reshape(-1, 3) for t in ((a, d, b), (d, c, b))])
    return Body(rest, triangles, NO_EDGES)


def placed(kind, radii, bone=0, matrix=None):
    return Volume(bone, kind, np.eye(4) if matrix is None else matrix, np.asarray(radii, float))


@every_kind
def test_volumes_stand_around_their_bones(kind):
    skeleton = chain()
    volumes = containment_volumes(bar(), skeleton, kind)
    assert [volume.bone for volume in volumes] == [0, 1, 2]
    assert {volume.kind for volume in volumes} == {kind}
    for volume, head, tail in zip(volumes, skeleton.heads, skeleton.tails, strict=True):
        np.testing.assert_allclose(volume.matrix[:3, 3], 0.5 * (head + tail))
        np.testing.assert_allclose(volume.matrix[:3, 1], [1, 0, 0], atol=1e-12)
        np.testing.assert_allclose(volume.matrix[:3, :3].T @ volume.matrix[:3, :3], np.eye(3), atol=1e-12)
        assert np.linalg.det(volume.matrix[:3, :3]) == pytest.approx(1)
        assert volume.radii[1] >= 1


@every_kind
def test_volumes_are_as_wide_as_the_limb(kind):
    """Three quarters of the points on an ellipse are within cos 22.5° of its half extents."""
    turn = Rotation.from_rotvec([0.4, 0.8, -0.3]).as_matrix()
    body, skeleton = tube(0.5, 0.3), chain(1)
    body = Body(body.rest @ turn.T, body.triangles, NO_EDGES)
    (volume,) = containment_volumes(body, Skeleton(skeleton.heads @ turn.T, skeleton.tails @ turn.T, [-1]), kind)
    across = [volume.radii[0], volume.radii[2]]
    np.testing.assert_allclose(sorted(across), np.cos(np.pi / 8) * np.array([0.3, 0.5]), rtol=0.05)
    wide = volume.matrix[:3, [0, 2][int(np.argmax(across))]]
    assert abs(wide @ turn[:, 1]) == pytest.approx(1, abs=1e-6)
    assert volume.width == pytest.approx(np.sqrt(np.prod(across)))


def test_bones_without_vertices_hold_none():
    skeleton = Skeleton([[0, 0, 0], [2, 9, 0]], [[6, 0, 0], [4, 9, 0]], [-1, 0])
    far = containment_volumes(bar(), skeleton)[1]
    assert far.depth(bar().rest).min() > 1
    assert dense(*bind(bar(), skeleton, "CONTAINMENT"), 2)[:, 0].min() > 0.999


def test_depth_is_nothing_on_the_axis_and_one_on_the_surface():
    radii = [1.0, 3.0, 2.0]
    for kind, surface in {
        "BOX": [[1, 3, 2], [1, 0, 0], [0.2, -3, 0], [0, 1, -2]],
        "ELLIPSOID": [[1, 0, 0], [0, -3, 0], [0, 0, 2], [0.6, 0, 1.6]],
        "CAPSULE": [[1, 0, 0], [0, 3, 0], [-1, 3 - np.sqrt(2), 0], [0.6, 1, 1.6]],
    }.items():
        volume = placed(kind, radii)
        np.testing.assert_allclose(volume.depth(np.array(surface, float)), 1, err_msg=kind)
        if kind != "CAPSULE":
            np.testing.assert_allclose(volume.depth(2.0 * np.array(surface)), 2)
        np.testing.assert_allclose(volume.depth(np.zeros((1, 3))), 0)
    # The axis of a capsule reaches to the middles of its caps.
    np.testing.assert_allclose(placed("CAPSULE", radii).depth(np.array([[0, 3 - np.sqrt(2), 0]])), 0)


@every_kind
def test_depth_follows_the_matrix(kind):
    points = np.random.default_rng(0).standard_normal((50, 3))
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec([1, 2, 3]).as_matrix() * [2, -1, 0.5]
    matrix[:3, 3] = [4, 5, 6]
    there = points @ matrix[:3, :3].T + matrix[:3, 3]
    radii = [0.7, 1.5, 0.9]
    np.testing.assert_allclose(placed(kind, radii, matrix=matrix).depth(there), placed(kind, radii).depth(points))


@every_kind
def test_edited_volumes_count(kind):
    body, skeleton = bar(48, 4), chain(2)
    volumes = containment_volumes(body, skeleton, kind)
    before = dense(*bind(body, skeleton, "CONTAINMENT", volumes=volumes), 2)
    moved = volumes[1].matrix.copy()
    moved[0, 3] -= 1
    longer = replace(volumes[1], matrix=moved, radii=volumes[1].radii * [2, 1.3, 2])
    after = dense(*bind(body, skeleton, "CONTAINMENT", volumes=[volumes[0], longer]), 2)
    assert np.interp(0.5, *_along(body, before)) == pytest.approx(3, abs=0.1)
    assert np.interp(0.5, *_along(body, after)) < 2.3


def _along(body, weights):
    x = np.unique(body.rest[:, 0])
    return [weights[body.rest[:, 0] == place, 1].mean() for place in x], x


def test_a_bone_may_have_several_volumes_or_none():
    body, skeleton = bar(), chain()
    volumes = containment_volumes(body, skeleton)
    weights = dense(*bind(body, skeleton, "CONTAINMENT", volumes=volumes[:2]), 3)
    assert weights[:, 2].max() == 0
    assert weights[:, 1].max() > 0.99
    both = [volumes[0], volumes[1], replace(volumes[2], bone=0)]
    weights = dense(*bind(body, skeleton, "CONTAINMENT", volumes=both), 3)
    assert weights[body.rest[:, 0] > 5.5, 0].min() > 0.99
    assert weights[body.rest[:, 0] < 0.5, 0].min() > 0.99


@every_kind
def test_mirror_images_get_mirrored_weights(kind):
    body, image, skeleton, bone_image = bodies.mirrored_body()
    volumes = containment_volumes(body, skeleton, kind)
    weights = dense(*bind(body, skeleton, "CONTAINMENT", volumes=volumes), len(skeleton))
    np.testing.assert_allclose(weights[image][:, bone_image], weights, rtol=0, atol=1e-6)


@every_kind
def test_any_skeleton_has_volumes(kind):
    for body in (bar(), bodies.sheet(), Body(np.ones((3, 3)), [[0, 1, 2]], NO_EDGES)):
        for skeleton in (chain(1), chain(300), Skeleton([[1, 0, 0]], [[1, 0, 0]], [-1])):
            volumes = containment_volumes(body, skeleton, kind)
            bones, weights = bind(body, skeleton, "CONTAINMENT", volumes=volumes)
            assert len(volumes) == len(skeleton)
            assert bones.shape == weights.shape
            np.testing.assert_allclose(weights.sum(axis=1), 1)


def hull_volume(points, matrix=None) -> MeshVolume:
    """The convex hull of ``points``, its faces wound at random."""
    return MeshVolume.of(0, np.eye(4) if matrix is None else matrix, points, ConvexHull(points).simplices)


def test_a_capsule_of_faces_has_the_depths_of_a_capsule():
    random = np.random.default_rng(0)
    points = random.normal(size=(400, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points[:, 1] += 2 * np.sign(points[:, 1])
    inside_and_outside = random.uniform(-1, 1, (500, 3)) * [1.5, 4, 1.5]
    found = hull_volume(points).depth(inside_and_outside)
    expected = placed("CAPSULE", [1.0, 3.0, 1.0]).depth(inside_and_outside)
    # The caps have an axis of their own, up to the last slab.
    middle = np.abs(inside_and_outside[:, 1]) < 2
    np.testing.assert_allclose(found[middle], expected[middle], atol=0.12)
    clear = np.abs(expected - 1) > 0.03
    np.testing.assert_array_equal(found[clear] < 1, expected[clear] < 1)
    np.testing.assert_allclose(hull_volume(points).depth(points), 1, atol=1e-6)


def test_depth_in_a_taper_is_measured_along_the_way_to_its_surface():
    """Half-way to the side is half as deep as the axis, at the thick end and at the thin one."""
    box = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], float)
    box[:, 1] *= 5
    box[box[:, 1] > 0] *= [0.2, 1, 0.2]
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_rotvec([1, 2, 3]).as_matrix() * [2, -1, 2]
    matrix[:3, 3] = [4, 5, 6]
    volume = hull_volume(box, matrix)
    for height in (-3.0, 0.0, 3.0):
        half = np.interp(height, [-5, 5], [1, 0.2])
        places = np.array([[0, height, 0], [0.5 * half, height, 0], [half, height, 0], [2 * half, height, 0]])
        depths = volume.depth(places @ matrix[:3, :3].T + matrix[:3, 3])
        np.testing.assert_allclose(depths[:3], [0, 0.5, 1], atol=0.06)
        assert depths[3] > 1.1


def test_a_ring_and_a_bent_volume_hold_what_is_in_them():
    """A ring that a bone goes through holds no vertex in its hole; two boxes around a corner hold the corner."""
    body, skeleton = bar(48, 4), chain(2)
    angle = np.arange(24) * 2 * np.pi / 24
    ring = np.concatenate(
        [
            np.column_stack([np.full(24, x), r * np.cos(angle), r * np.sin(angle)])
            for x, r in ((1, 2), (2, 2), (2, 3), (1, 3))
        ]
    )
    a = np.arange(96).reshape(4, 24)
    b, c = np.roll(a, -1, axis=0), np.roll(a, -1, axis=1)
    d = np.roll(b, -1, axis=1)
    triangles = np.concatenate([np.stack(t, axis=-1).reshape(-1, 3) for t in ((a, b, d), (a, d, c))])
    volume = MeshVolume.of(0, np.eye(4), ring, triangles)
    assert volume.depth(np.array([[1.5, 0, 0]])) > 1
    depths = volume.depth(np.column_stack([np.full(24, 1.5), 2.5 * np.cos(angle), 2.5 * np.sin(angle)]))
    assert depths.max() < 1
    assert dense(*bind(body, skeleton, "CONTAINMENT", volumes=[volume]), 2)[:, 0].min() > 0.999


def test_an_open_surface_is_no_volume():
    box = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)], float)
    triangles = ConvexHull(box).simplices
    with pytest.raises(BadMesh, match="not closed: 3 of its edges are open"):
        MeshVolume.of(0, np.eye(4), box, triangles[1:])
    with pytest.raises(BadMesh, match="no faces"):
        MeshVolume.of(0, np.eye(4), box, triangles[:0])
    with pytest.raises(BadMesh, match="5,004 triangles"):
        MeshVolume.of(0, np.eye(4), box, np.tile(triangles, (MOST_TRIANGLES // 12 + 1, 1)))


def test_weights_fall_off_inside_and_outside_without_smoothing():
    """Two boxes with a gap between them, on a bar along x. The weights are those of the two holds, nothing else."""
    body, skeleton = bar(48, 4), chain(2)
    boxes = []
    for bone, middle in ((0, 1.0), (1, 5.0)):
        matrix = np.eye(4)
        matrix[0, 3] = middle
        boxes.append(placed("BOX", [1.0, 9.0, 9.0], bone, matrix))

    def holds(x, inside, outside):
        depth = np.maximum(np.abs(x[:, None] - [1.0, 5.0]), 1e-6)
        share = np.clip((1 + outside - depth) / (inside + outside), 0, 1)
        return share * share * (3 - 2 * share)

    x = body.rest[:, 0]
    for inside, outside in ((0.0, 2.5), (0.5, 3.0), (1.0, 1.5)):
        found = dense(
            *bind(body, skeleton, "CONTAINMENT", volumes=boxes, falloff=Falloff(inside, outside), smooth=False), 2
        )
        expected = holds(x, inside, outside)
        held = expected.sum(axis=1) > 1e-9
        expected = expected[held] / expected[held].sum(axis=1, keepdims=True)
        # Influences below a thousandth are left out.
        np.testing.assert_allclose(found[held], expected, atol=2e-3)
        assert held.mean() > 0.9
    # Without falloff, the deeper one alone; smoothed, the borders blend.
    alone = dense(*bind(body, skeleton, "CONTAINMENT", volumes=boxes, smooth=False), 2)
    assert set(np.unique(alone[np.abs(x - 3) > 0.2])) == {0.0, 1.0}
    smoothed = dense(*bind(body, skeleton, "CONTAINMENT", volumes=boxes), 2)
    assert np.count_nonzero((smoothed > 0.01) & (smoothed < 0.99)) > 2 * np.count_nonzero(
        (alone > 0.01) & (alone < 0.99)
    )


@pytest.mark.parametrize("wrong", [(-0.1, 0), (1.1, 0), (0, -1), (0, np.inf), (np.nan, 0)])
def test_a_falloff_that_makes_no_sense(wrong):
    with pytest.raises(BadSettings, match="falloff of volumes"):
        Falloff(*wrong)


def test_unusable_volumes():
    body, skeleton = bar(), chain()
    volume = containment_volumes(body, skeleton)[1]
    flat = volume.matrix.copy()
    flat[:3, 0] = 0
    for wrong, message in (
        (replace(volume, matrix=flat), "Bone 1 has no extent"),
        (replace(volume, radii=np.array([1.0, 0.0, 1.0])), "Bone 1 has no extent"),
        (replace(volume, matrix=volume.matrix * np.nan), "Bone 1 has no extent"),
        (replace(volume, bone=3), "does not have"),
    ):
        with pytest.raises(BadSettings, match=message):
            bind(body, skeleton, "CONTAINMENT", volumes=[wrong])
    with pytest.raises(BadSettings, match="no volumes"):
        bind(body, skeleton, "CONTAINMENT", volumes=[])
    with pytest.raises(BadSettings, match="CAPSULE, ELLIPSOID, BOX"):
        containment_volumes(body, skeleton, "CONE")
