# SPDX-License-Identifier: GPL-3.0-or-later
"""Rogue weights in game characters: none in their artists' weights, and those that were planted are found."""

import pytest

from skinning_tools.core.binding.rogue import rogue_islands
from tests.blender import artists_rigs
from tests.core.binding import planted_rogues


@pytest.mark.parametrize("name", [*artists_rigs.CHOSEN_ON, *artists_rigs.HELD_OUT])
def test_weights_of_artists_are_left_alone(name, shared_data):
    """The artists' weights as they are, without cleaning; planted rogue weights are found."""
    named, certain, vertices, found, visible = 0, 0, 0, 0, 0
    for body, skeleton, bones, weights in artists_rigs.read(shared_data(f"rigs/{name}.glb")):
        islands = rogue_islands(body, skeleton, bones, weights)
        named += len({vertex for island in islands for vertex in island.vertices.tolist()})
        certain += sum(island.certain for island in islands)
        vertices += len(bones)
        for kind in ("strays", "patches of 30", "patches of 120"):
            right, *rows = planted_rogues.planted(body, skeleton, bones, weights, kind=kind)
            moved = planted_rogues.seen(body, skeleton, (bones, weights), rows)
            right = {(bone, vertex) for bone, vertex in right if vertex in moved}
            visible += len(right)
            found += len(right & planted_rogues.pairs(rogue_islands(body, skeleton, *rows)))
    assert named <= 0.001 * vertices
    assert certain == 0
    assert found >= 0.99 * visible > 0
