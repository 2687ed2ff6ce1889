# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark's soft tissue: it takes the shape of least energy, keeps its volume, and moves a thumb's skin."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def bench(monkeypatch):
    for folder in ("demos", "benchmarks"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module


@pytest.fixture
def bar(bench):
    """Two cells thick and seven long, with edges of 0.5."""
    size = np.array([3.2, 0.7, 0.7])
    corners = size * np.array(np.meshgrid((0, 1), (0, 1), (0, 1), indexing="ij")).reshape(3, 8).T
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return bench("_tissue").Tissue.filling(corners, triangles, 0.5)


def ends(bar):
    along = bar.nodes[:, 0] - bar.nodes[:, 0].min()
    return along < 0.6, along > along.max() - 0.6


def turned(points, degrees):
    turn = Rotation.from_rotvec(np.radians(degrees) * np.array([0, 0.6, 0.8]))
    return turn.apply(points - points.mean(axis=0)) + points.mean(axis=0)


def test_forces_are_the_slopes_of_the_energy(bar):
    random = np.random.default_rng(0)
    places, way = (bar.nodes + 0.05 * random.normal(size=bar.nodes.shape), random.normal(size=bar.nodes.shape))
    slope = (bar.energy(places + 1e-5 * way) - bar.energy(places - 1e-5 * way)) / 2e-5
    np.testing.assert_allclose(np.vdot(bar.forces(places), way), slope, rtol=1e-6)
    change = (bar.forces(places + 1e-5 * way) - bar.forces(places - 1e-5 * way)) / 2e-5
    found = (bar._stiffness(places, convex=False) @ way.ravel()).reshape(-1, 3)
    np.testing.assert_allclose(found, change, atol=1e-6 * np.abs(change).max())


def test_volumes_are_those_of_the_cells(bar):
    places = bar.nodes * [2.0, 1.0, 0.75] + bar.nodes[:, :1] * [0, 0.3, 0]
    np.testing.assert_allclose(bar.volumes(places), 1.5)


def test_a_turn_of_all_that_is_held_turns_the_rest(bar):
    start, end = ends(bar)
    places = turned(bar.nodes, 70)
    found = bar.settled(start | end, np.where((start | end)[:, None], places, bar.nodes))
    np.testing.assert_allclose(found, places, atol=1e-6)
    assert bar.energy(found) < 1e-9


def test_bent_tissue_moves_and_keeps_its_volume(bar):
    start, end = ends(bar)
    held = start | end
    shares = bar.blended(end, held)
    blended = bar.nodes + shares[:, None] * (turned(bar.nodes, 60) - bar.nodes)
    found = bar.settled(held, blended)
    np.testing.assert_array_equal(found[held], blended[held])
    assert np.abs(bar.forces(found)[~held]).max() < 1e-4
    assert np.linalg.norm(found - blended, axis=1).max() > 0.1 * bar.size
    lost = abs(bar.volumes(blended).mean() - 1)
    assert abs(bar.volumes(found).mean() - 1) < min(0.01, 0.2 * lost)


def test_what_is_inside_goes_along(bar):
    points = np.random.default_rng(1).uniform(0.1, 0.6, (20, 3))
    moved = bar.nodes @ np.array([[1.0, 0.2, 0], [0, 0.9, 0.1], [0, 0, 1.1]]).T + [1, 2, 3]
    expected = points @ np.array([[1.0, 0.2, 0], [0, 0.9, 0.1], [0, 0, 1.1]]).T + [1, 2, 3]
    np.testing.assert_allclose(bar.embedding(points) @ moved, expected)


def test_the_thumb_of_the_human_rig(bench, shared_data):
    """Its tip follows the bones, the skin between the bones does what linear blending does not, the rest is at rest."""
    shared_data("human_rig.npz")
    human, thumbs = bench("eigenskin_human"), bench("_eigenskin_thumb")
    body = human.Character.read()
    axis = body.axes(thumbs.THUMB[0])[:1]
    examples, volumes = thumbs.SoftThumb(body, cell=0.09).examples(human.turns_about(thumbs.THUMB[0], axis, (16,)))
    assert abs(volumes.mean() - 1) < 0.01
    moved = np.linalg.norm(examples.shapes[0] - body.rig.rest, axis=1)
    plain = body.plain_shapes(examples)[0]
    missed = np.linalg.norm(examples.shapes[0] - plain, axis=1)
    last = body.rig.joint_names.index(thumbs.THUMB[2])
    tip = np.where(body.rig.bones == last, body.rig.weights, 0).sum(axis=1) > 0.99
    assert moved[tip].min() > 0.1
    assert missed[tip].max() < 0.3 * moved[tip].min()
    assert missed.max() > 0.03
    assert np.count_nonzero(moved) < 0.1 * len(moved)
