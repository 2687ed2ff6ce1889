# SPDX-License-Identifier: GPL-3.0-or-later
"""Rebinds the human rig and compares with its own weights, in its own motions."""

import numpy as np
import pytest

from skinning_tools.core.binding.bind import METHODS, bind
from skinning_tools.core.binding.types import Body, Skeleton
from skinning_tools.core.deform import convex_influences, skin_frame

# Blender's automatic weights, with as many influences as they like; mean vertex distance, shares of the diagonal.
BONE_HEAT = {"walk": 0.00061, "shamble": 0.00083}


@pytest.fixture(scope="module")
def human(shared_data):
    return np.load(shared_data("human_rig.npz"))


@pytest.fixture(scope="module")
def errors(human):
    """For each method and motion the mean vertex distance to where the rig's own weights take the skin."""
    rest, quads = human["rest"].astype(float), human["quads"]
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    skeleton = Skeleton(human["heads"], human["tails"], human["parents"])
    own = convex_influences(human["influence_bones"], human["influence_weights"], len(rest))
    found = {}
    for method in METHODS:
        body = Body(rest, triangles, np.zeros((0, 2), int))
        bones, weights = bind(body, skeleton, method)
        for motion in BONE_HEAT:
            frames = human[f"{motion}_matrices"].astype(float)
            off = [skin_frame(rest, bones, weights, frame) - skin_frame(rest, *own, frame) for frame in frames]
            found[method, motion] = np.linalg.norm(off, axis=2).mean() / body.diagonal
    return found


@pytest.mark.parametrize("motion", BONE_HEAT)
def test_as_good_as_bone_heat(errors, motion):
    assert errors["DELAUNAY", motion] <= BONE_HEAT[motion]
    assert errors["POINT_TO_LINE", motion] <= BONE_HEAT[motion]
    assert errors["CONTAINMENT", motion] <= 1.1 * BONE_HEAT[motion]


@pytest.mark.parametrize("motion", BONE_HEAT)
def test_smooth_is_better_than_rigid(errors, motion):
    assert max(errors[method, motion] for method in METHODS if method != "RIGID") < 0.75 * errors["RIGID", motion]
