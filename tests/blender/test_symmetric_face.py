# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones of a symmetric face: names of both sides, places, axes and weights that mirror each other exactly."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.blender.vertex_groups import read_weights
from tests.blender import refusals, scenes
from tests.blender.shape_key_scenes import SIZE, sheet

pytestmark = pytest.mark.usefixtures("extension", "scene")

convert = partial(refusals.finished, "convert_shape_keys", bone_count=6, max_influences=3)
MIRROR = np.array([-1.0, 1.0, 1.0, 1.0])


def symmetric_face() -> None:
    points, faces = sheet()
    ob = scenes.mesh_object(points, faces, name="Face")
    ob.shape_key_add(name="Basis")
    low = np.clip(0.5 - points[:, 1], 0, 1)
    for name, amount in (
        ("jawOpen", low),
        ("brow_L", np.exp(-4 * (points[:, 0] - 0.5) ** 2)),
        ("brow_R", np.exp(-4 * (points[:, 0] + 0.5) ** 2)),
    ):
        moved = points + 0.3 * amount[:, None] * ([0, -1, -0.3] if name == "jawOpen" else [0, 0.5, 1])
        ob.shape_key_add(name=name).points.foreach_set("co", moved.astype(np.float32).ravel())


def test_bones_and_weights_mirror_each_other():
    symmetric_face()
    convert(symmetric=True)
    skinned, rig = bpy.data.objects["Face_skinned"], bpy.data.objects["Face_rig"]
    names = rig.data.bones.keys()
    assert {bpy.utils.flip_name(name) for name in names} == set(names)
    assert any(name.endswith(".L") for name in names)
    images = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)[:, ::-1].ravel()
    bones, weights = read_weights(skinned, list(names))
    dense = np.zeros((len(bones), len(names)))
    np.add.at(dense, (np.arange(len(bones))[:, None], bones), weights)
    for number, name in enumerate(names):
        other = bpy.utils.flip_name(name)
        first, second = (np.array(rig.data.bones[each].matrix_local) for each in (name, other))
        # Blender's own convention: the x axis of a mirrored bone points the other way.
        np.testing.assert_allclose(second, MIRROR[:, None] * first * MIRROR, atol=1e-5)
        assert first[0, 3] > 0 if name.endswith(".L") else second[0, 3] > 0 or name == other
        np.testing.assert_allclose(dense[images, names.index(other)], dense[:, number], atol=1e-6)


def test_symmetry_can_be_off_and_draft_is_enough_for_a_look():
    symmetric_face()
    convert(quality="DRAFT")
    convert(quality="DRAFT", symmetric=True)
    rigs = [bpy.data.objects[name] for name in ("Face_rig", "Face_rig.001")]
    places = [np.array([bone.head_local for bone in rig.data.bones]) for rig in rigs]
    ordered = [place[np.lexsort(place.round(4).T)] for place in places]
    assert np.abs(ordered[0] - ordered[1]).max() > 1e-3
    assert all(
        name.endswith((".L", ".R")) or abs(bone.head_local[0]) < 1e-5 for name, bone in rigs[1].data.bones.items()
    )
