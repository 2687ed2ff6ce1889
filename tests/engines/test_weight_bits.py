# SPDX-License-Identifier: GPL-3.0-or-later
"""Exported weights of 8 and 16 bits in three.js: what it reads, and the mesh where Blender has it after *Compress*."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.core.binding.compression import STEPS
from tests.blender.test_weights_as_data import choose, enable
from tests.engines import formats, node_programs, samples
from tests.engines.test_three import EXACT, in_three, played, player

__all__ = ["player"]
pytestmark = pytest.mark.usefixtures("extension")


@pytest.mark.parametrize("bits", ["8", "16"])
def test_weights_arrive_and_play_within_the_announced_rounding(player, tmp_path, bits):
    ob = samples.convert(samples.swaying_tube(), bone_kind="RIGID")
    before = played(ob)
    enable()
    choose(bits)
    found, vertices, playback = in_three(player, ob, tmp_path / "tube.glb")
    step = 1 / STEPS[int(bits)]
    read = read_bone_weights(ob, ob.find_armature())
    weights = player.play(tmp_path / "tube.glb", [0.0], attribute="skinWeight").attribute.astype(np.float64)
    assert playback.facts["bones"] == 4
    np.testing.assert_allclose(weights, np.rint(weights / step) * step, atol=1e-7)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-6)
    # Four bones: below 3/4 of a step. Sorted, as the order of the bones is the engine's own.
    exact = np.sort(np.pad(read.weights, ((0, 0), (0, 4 - read.weights.shape[1]))), axis=1)[vertices]
    assert np.abs(np.sort(weights, axis=1) - exact).max() <= 0.75 * step + 1e-6

    assert {message["code"] for message in node_programs.complaints(tmp_path / "tube.glb")} <= {
        "NODE_SKINNED_MESH_NON_ROOT"
    }
    assert bpy.ops.skinning.compress_weights(bits=bits) == {"FINISHED"}
    expected = played(ob)
    for positions in (found, formats.to_z_up(playback.shaded)):
        distances = np.linalg.norm(positions - expected[:, vertices], axis=-1).max(axis=0) / formats.diagonal(expected)
        # Single precision decides between remainders that are nearly equal: there a step goes to another bone.
        assert np.mean(distances > EXACT) < 0.01
        assert distances.max() < EXACT + step
    # The rounding shows where it is coarse.
    assert bits == "16" or formats.largest_distance(expected, before) > EXACT
