# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit Weights to Examples: vertex groups of which the corrections leave less."""

import numpy as np
import pytest

from tests.blender import refusals
from tests.blender.binding_scenes import dense
from tests.blender.eigenskin_scenes import limb, limb_with_examples

pytestmark = pytest.mark.usefixtures("extension")

BONES = ["trunk", "upper", "lower"]


def left(rig) -> float:
    refusals.finished("build_eigenskin", components=1)
    return float(np.sqrt(sum(item.error_after**2 for item in rig.skinning_eigenskin.examples)))


def test_the_corrections_leave_less():
    ob, rig = limb_with_examples()
    before, weights = left(rig), dense(ob, BONES)
    refusals.finished("eigenskin_fit_weights", components=1)
    found = dense(ob, BONES)
    assert np.abs(found - weights).max() > 0.01
    np.testing.assert_allclose(found.sum(axis=1), weights.sum(axis=1), atol=1e-5)
    assert left(rig) < 0.9 * before


def test_locked_groups_keep_their_weights():
    ob, _ = limb_with_examples()
    for name in BONES:
        ob.vertex_groups[name].lock_weight = True
    weights = dense(ob, BONES)
    refusals.finished("eigenskin_fit_weights")
    np.testing.assert_array_equal(dense(ob, BONES), weights)


def test_without_examples_there_is_nothing_to_fit():
    limb()
    refusals.refused("eigenskin_fit_weights", "has no examples")
