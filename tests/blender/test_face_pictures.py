# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo of a face, with a small picture."""

import bpy
import numpy as np
import pytest

from tests.blender.demo_runs import make_pictures


@pytest.fixture(scope="module")
def folder(tmp_path_factory, shared_data):
    pytest.importorskip("matplotlib")
    shared_data("ict_face.npz")
    folder = tmp_path_factory.mktemp("face")
    make_pictures("face.py", folder)
    return folder


def test_three_rows_of_heads_of_which_the_last_has_colors(folder):
    image = pytest.importorskip("matplotlib.image")
    picture = image.imread(folder / "face_expressions.png")[..., :3]
    height = round(picture.shape[0] * 7 / 22)  # below the rows is a seventh of one, with captions
    rows = [picture[number * height : (number + 1) * height] for number in range(3)]
    shown = [row.max(axis=2) > 0.3 for row in rows]
    assert all(0.2 < each.mean() < 0.7 for each in shown)
    # The first two look alike; the colors of errors do not.
    first, second, third = rows
    assert np.abs(first - second)[shown[0]].mean() < 0.02 < np.abs(first - third)[shown[0]].mean()


def test_the_file_plays_the_expressions_on_the_bones(folder):
    bpy.ops.wm.open_mainfile(filepath=str(folder / "face.blend"))
    scene, rig = bpy.context.scene, bpy.data.objects["Face_rig"]
    scene.frame_set(1)
    still = np.array([bone.matrix for bone in rig.pose.bones])
    scene.frame_set(13)
    assert rig["mouthSmile_L"] == pytest.approx(1.0)
    smile = {"mouthSmile_L", "mouthSmile_R", "cheekSquint_L", "cheekSquint_R"}
    keys = bpy.data.objects["Face"].data.shape_keys.key_blocks[1:]
    assert {key.name for key in keys if key.value} == {key.name for key in keys if rig[key.name]} == smile
    assert np.abs(np.array([bone.matrix for bone in rig.pose.bones]) - still).max() > 0.1
