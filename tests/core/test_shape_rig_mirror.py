# SPDX-License-Identifier: GPL-3.0-or-later
"""Symmetric faces: the mirror is found from geometry, and what is left and right of it mirrors each other."""

import numpy as np
import pytest

from skinning_tools.core.deform import skin_frame
from skinning_tools.core.shape_rig import Settings, Shapes, bone_names, mirrored_axes, solve_shapes
from skinning_tools.core.shape_rig.mirror import find_mirror, unpaired_sliders
from skinning_tools.core.shape_rig.motion import rotations

MIRROR = np.array([-1.0, 1.0, 1.0])
NAMES = "jawOpen", "smile_L", "smile_R", "brow_L", "brow_R"


def face(columns: int = 13, plane: float = 0.0, noise: float = 0.0) -> Shapes:
    """A bent sheet with one shape of its own mirror image and two pairs. Its triangles mirror each other."""
    u, v = (each.ravel() for each in np.meshgrid(np.linspace(-1, 1, columns), np.linspace(-1, 1, 10)))
    points = np.stack([u, v, 0.4 * np.cos(u)], axis=1)
    corners = np.arange(len(u)).reshape(10, columns)
    a, b, c, d = (part.ravel() for part in (corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]))
    low = np.clip(0.4 - v, 0, 1)
    jaw = np.stack([0 * u, -0.4 * low, -0.2 * low], axis=1)
    smile, brow = np.exp(-4 * ((u - 0.5) ** 2 + (v + 0.3) ** 2)), np.exp(-3 * ((u - 0.4) ** 2 + (v - 0.7) ** 2))
    left = [np.stack([0.2 * smile, 0.3 * smile, 0.05 * u * smile], 1), np.stack([0.05 * brow, 0.3 * brow, 0 * u], 1)]
    shapes = [jaw]
    for shape in left:
        shapes += [shape, (shape.reshape(10, columns, 3)[:, ::-1] * MIRROR).reshape(-1, 3)]
    random = np.random.default_rng(0)
    points = points + noise * random.normal(0, 1, points.shape) + [plane, 0, 0]
    right = a % columns >= columns // 2
    triangles = np.concatenate(
        [np.stack(corner, 1)[right] for corner in ([a, b, c], [a, c, d])]
        + [np.stack(corner, 1)[~right] for corner in ([a, b, d], [b, c, d])]
    )
    return Shapes(points, np.array(shapes, np.float32), triangles.astype(np.int32))


def images(columns: int = 13) -> np.ndarray:
    return np.arange(10 * columns).reshape(10, columns)[:, ::-1].ravel()


def dense(rig) -> np.ndarray:
    weights = np.zeros((len(rig.bones), rig.bone_count))
    np.add.at(weights, (np.arange(len(weights))[:, None], rig.bones), rig.weights)
    return weights


@pytest.mark.parametrize(("bones", "influences"), [(1, 1), (2, 2), (7, 3), (9, 8)])
def test_bones_and_weights_mirror_each_other(bones, influences):
    shapes = face(plane=3.0)
    rig = solve_shapes(shapes, Settings(bones, max_influences=influences, symmetric=True))
    partners, sliders = rig.partners, [0, 2, 1, 4, 3]
    np.testing.assert_array_equal(partners[partners], np.arange(bones))
    assert rig.turns.shape == (5, bones, 3)
    np.testing.assert_allclose(rig.pivots[partners], (rig.pivots - [3, 0, 0]) * MIRROR + [3, 0, 0], atol=1e-9)
    np.testing.assert_allclose(rig.turns[sliders][:, partners], -MIRROR * rig.turns, atol=1e-12)
    np.testing.assert_allclose(rig.moves[sliders][:, partners], MIRROR * rig.moves, atol=1e-12)
    np.testing.assert_allclose(dense(rig)[images()][:, partners], dense(rig), atol=1e-12)
    assert rig.weights.min() >= 0
    assert rig.weights.shape[1] <= influences
    np.testing.assert_allclose(rig.weights.sum(axis=1), 1.0)


def test_one_influence_in_the_middle_is_one_bone():
    rig = solve_shapes(face(), Settings(bone_count=6, max_influences=1, symmetric=True))
    assert rig.weights.shape == (130, 1)
    np.testing.assert_array_equal(rig.weights, 1.0)


@pytest.mark.parametrize("bones", [4, 5])
def test_symmetry_costs_little(bones):
    """With more bones both errors are rounding alone, and their ratio is anything."""
    shapes, errors = face(), []
    for symmetric in (True, False):
        rig = solve_shapes(shapes, Settings(bones, max_influences=8, symmetric=symmetric))
        poses = [
            skin_frame(shapes.rest, rig.bones, rig.weights, rig.transforms(row)) - shapes.rest for row in np.eye(5)
        ]
        errors.append(np.abs(np.array(poses) - shapes.deltas).mean())
        assert (rig.partners is None) != symmetric
    assert errors[0] < 1.05 * errors[1]


def test_sides_are_named():
    shapes = face()
    rig = solve_shapes(shapes, Settings(bone_count=8, max_influences=3, symmetric=True))
    names = bone_names(rig, shapes.rest, NAMES)
    for bone, name in enumerate(names):
        other = names[rig.partners[bone]]
        assert name == other if rig.partners[bone] == bone else {name[-2:], other[-2:]} == {".L", ".R"}
        assert name.endswith(".L") == (rig.partners[bone] != bone and rig.pivots[bone, 0] > 0)
        assert name[:-2] == other[:-2]
    assert any(name.endswith(".L") for name in names)


def test_mirror_is_found_within_a_tolerance():
    shapes = face(noise=1e-4)
    mirror, plane = find_mirror(shapes.rest, shapes.deltas)
    np.testing.assert_array_equal(mirror.vertices, images())
    np.testing.assert_array_equal(mirror.sliders, [0, 2, 1, 4, 3])
    np.testing.assert_array_equal(np.flatnonzero(mirror.middle) % 13, 6)
    assert abs(plane) < 1e-3
    assert len(mirror.solved) == 70


def test_no_mirror_without_partners():
    shapes = face()
    bent = shapes.rest.copy()
    bent[:, 1] += 0.3 * bent[:, 0]
    assert find_mirror(bent, shapes.deltas) is None
    # A slider of the left alone has none on the right.
    assert find_mirror(shapes.rest, shapes.deltas[:2]) is None
    # Nor has the last one, named in any order; a face without mirrored vertices has none to name.
    np.testing.assert_array_equal(unpaired_sliders(shapes.rest, shapes.deltas[[1, 0, 2, 4]]), [3])
    assert not len(unpaired_sliders(bent, shapes.deltas))
    rig = solve_shapes(Shapes(bent, shapes.deltas, shapes.triangles), Settings(bone_count=3, symmetric=True))
    assert rig.partners is None


def test_vertices_at_one_place_are_paired_by_what_they_do():
    shapes = face()
    # Two sheets at one place, of which the sliders move one.
    rest, deltas = np.tile(shapes.rest, (2, 1)), np.concatenate([shapes.deltas, 0 * shapes.deltas], axis=1)
    mirror, _ = find_mirror(rest, deltas)
    moved = np.abs(deltas).sum(axis=(0, 2))
    np.testing.assert_allclose(moved[mirror.vertices], moved, rtol=1e-5)
    np.testing.assert_array_equal(mirror.vertices[mirror.vertices], np.arange(260))


def test_vertices_without_a_partner_are_solved_too():
    shapes = face()
    rest, deltas = np.append(shapes.rest, [[-0.33, 0.1, 0.2]], axis=0), np.append(shapes.deltas, [[[0, 0, 0.1]]] * 5, 1)
    rig = solve_shapes(
        Shapes(rest, deltas.astype(np.float32), shapes.triangles), Settings(bone_count=6, symmetric=True)
    )
    np.testing.assert_allclose(rig.weights.sum(axis=1), 1.0)
    assert rig.partners is not None


def test_axes_mirror_and_are_right_handed():
    random = np.random.default_rng(1)
    axes, partners = rotations(random.normal(0, 1, (5, 3))), np.array([0, 2, 1, 4, 3])
    axes[0] = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    found, lengths = mirrored_axes(axes, np.arange(1.0, 6.0), partners)
    np.testing.assert_allclose(np.linalg.det(found), 1.0)
    np.testing.assert_allclose(found[partners], MIRROR[:, None] * found * MIRROR, atol=1e-12)
    np.testing.assert_array_equal(lengths, [1, 2, 2, 4, 4])


def test_dropped_motions_mirror_each_other():
    rig = solve_shapes(face(), Settings(bone_count=8, max_influences=3, sparsity=1.0, symmetric=True))
    moved = np.any((rig.turns != 0) | (rig.moves != 0), axis=2)
    np.testing.assert_array_equal(moved[[0, 2, 1, 4, 3]][:, rig.partners], moved)
    assert not moved.all()


def test_draft_takes_fewer_sweeps():
    reports = []
    for quality in ("DRAFT", "STANDARD"):
        seen = []
        solve_shapes(
            face(), Settings(bone_count=4, quality=quality), lambda fraction, stage, to=seen: to.append(fraction)
        )
        reports.append(len(seen))
    assert reports[0] < 0.7 * reports[1]
