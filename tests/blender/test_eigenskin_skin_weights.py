# SPDX-License-Identifier: GPL-3.0-or-later
"""Fit Weights to Examples: vertex groups of which the corrections leave less."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender import background
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.features.eigenskin.skin_weights import fit_to_examples
from tests.blender import refusals, scenes
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


def fitted(ob, components=1):
    return background.drain(fit_to_examples(bpy.context, ob, components))


def test_a_locked_group_keeps_its_weights_and_the_error_is_that_of_the_written_ones():
    ob, _ = limb_with_examples()
    # The locked bone has a share of every vertex, beside two free ones.
    weights = 0.95 * dense(ob, BONES) + [0.05, 0, 0]
    write_weights(ob, BONES, np.tile([0, 1, 2], (len(weights), 1)), weights)
    ob.vertex_groups["trunk"].lock_weight = True
    weights = dense(ob, BONES)
    result = fitted(ob)
    found = dense(ob, BONES)
    assert result.after < 0.9 * result.before
    assert np.abs(found - weights).max() > 0.01
    np.testing.assert_array_equal(found[:, 0], weights[:, 0])
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    # A second fit begins with the error that the first one ends with.
    np.testing.assert_allclose(fitted(ob).before, result.after, rtol=1e-3)


def test_only_locked_groups_are_refused():
    ob, _ = limb_with_examples()
    for name in BONES:
        ob.vertex_groups[name].lock_weight = True
    refusals.refused("eigenskin_fit_weights", "All vertex groups to fit", "are locked")


def test_other_objects_with_the_mesh_are_named():
    ob, _ = limb_with_examples()
    assert fitted(ob).notes == ()
    scenes.link(ob.copy())
    (note,) = fitted(ob, 2).notes
    assert "2 users" in note


def test_without_examples_there_is_nothing_to_fit():
    limb()
    refusals.refused("eigenskin_fit_weights", "has no examples")
