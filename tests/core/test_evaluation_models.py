# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark's models of the sizes of the evaluation of 2019, and its variants of the bake."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from skinning_tools.core.rotation_centers import bake_rotation_centers

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def models(monkeypatch):
    for folder in ("demos", "benchmarks"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module("_evaluation_models")


@pytest.fixture
def variants(models):
    return importlib.import_module("_rotation_center_variants")


@pytest.mark.parametrize("name", ["cuboid", "wolf", "raptor"])
def test_sizes_are_the_evaluations(models, name):
    made = models.model(name)
    assert (len(made.rest), len(made.triangles), len(made.heads)) == models.SIZES[name]
    assert np.array_equal(np.unique(made.triangles), np.arange(len(made.rest)))
    np.testing.assert_allclose(made.weights.sum(axis=1), 1, atol=1e-12)
    assert len(np.unique(made.bones[made.weights > 0])) == len(made.heads)
    # Outside out; a parent before its children, for Blender.
    a, b, c = np.moveaxis(made.rest[made.triangles], 1, 0)
    assert np.einsum("ij,ij->", a, np.cross(b, c)) > 0
    assert (made.parents < np.arange(len(made.parents))).all()


def test_variants_on_the_wolf(models, variants):
    made = models.model("wolf")
    problem = variants.Problem.of(*made.skin)
    chosen = np.flatnonzero(np.count_nonzero(made.weights, axis=1) > 1)[::5]
    naive = variants.naive(problem, chosen)
    ours = bake_rotation_centers(*made.skin, subdivision_epsilon=0)[0][chosen]
    size = np.linalg.norm(np.ptp(made.rest, axis=0))
    assert np.abs(naive - ours).max() < 1e-6 * size
    searched = variants.breadth_first(problem, chosen)
    # The search looks at few faces, and misses some that are similar.
    assert variants.faces_reached(problem, chosen).mean() < 0.2 * len(made.triangles)
    assert np.linalg.norm(searched - naive, axis=1).max() < 0.1 * size
