# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversions whose bones are under a root, and whose weights are smooth."""

import bpy
import numpy as np
import pytest

from skinning_tools import command_line
from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.blender.skin_reader import mesh_triangles, rest_positions
from skinning_tools.core.decomposition import BONE_KINDS
from skinning_tools.core.decomposition.smoothness import neighbor_weights
from skinning_tools.features.convert.rig_bones import ROOT_NAME
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.partial_scenes import keys_of, select
from tests.core.decomposition.sequences import dirichlet_energy

pytestmark = pytest.mark.usefixtures("extension")

FRAMES = range(1, 9)


@pytest.fixture
def flag():
    moving_meshes.fresh_scene()
    return moving_meshes.waving_grid()


def convert(flag, **given):
    select(flag)
    assert bpy.ops.skinning.convert_animation(bone_count=4, iterations=4, **given) == {"FINISHED"}
    names = [ob.name for ob in bpy.data.objects if ob.name.startswith("Flag_")]
    return bpy.data.objects[max(n for n in names if "skinned" in n)], bpy.data.objects[
        max(n for n in names if "rig" in n)
    ]


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_all_bones_are_under_the_root_and_move_as_without(flag, kind):
    plain, _ = convert(flag, bone_kind=kind)
    rooted, rig = convert(flag, bone_kind=kind, root_bone=True)
    root = rig.data.bones[ROOT_NAME]
    assert root.parent is None
    assert not root.use_deform
    assert tuple(root.head_local) == (0, 0, 0)
    assert {bone.name for bone in rig.data.bones if bone.parent is None} == {ROOT_NAME}
    assert not keys_of(rig.animation_data.action, [ROOT_NAME])
    size = np.linalg.norm(np.ptp(rest_positions(plain.data), axis=0))
    np.testing.assert_allclose(scenes.played(rooted, FRAMES), scenes.played(plain, FRAMES), atol=1e-5 * size)
    assert rooted["skinning_e_rms"] == pytest.approx(plain["skinning_e_rms"], rel=1e-3)
    assert ROOT_NAME not in rooted.vertex_groups


def test_the_root_moves_the_whole(flag):
    rooted, rig = convert(flag, root_bone=True)
    before = scenes.played(rooted, FRAMES)
    # Its own axes: it points along the object's y, so that its x is the object's.
    rig.pose.bones[ROOT_NAME].location = (1.5, 0, 0)
    np.testing.assert_allclose(scenes.played(rooted, FRAMES), before + np.array([1.5, 0, 0]), atol=1e-5)


def test_without_a_root_there_is_none(flag):
    _, rig = convert(flag)
    assert ROOT_NAME not in rig.data.bones


def test_conversions_get_smoother_with_the_setting(flag):
    energies, errors = [], []
    for smoothness in (0.0, 0.5, 1.0):
        skinned, rig = convert(flag, smoothness=smoothness)
        rows = read_bone_weights(skinned, rig)
        neighbors = neighbor_weights(rest_positions(skinned.data), mesh_triangles(skinned.data))
        energies.append(dirichlet_energy(neighbors, rows.bones, rows.weights, 4))
        errors.append(skinned["skinning_e_rms"])
    assert np.all(np.diff(energies) < 0)
    assert errors[0] < errors[2] < 5 * errors[0]
    assert skinned["skinning_report"]["settings"]["smoothness"] == 1.0
    with refusals.raises_unmet("OUT_OF_RANGE Smoothness … from 0 to 1 … 2"):
        convert(flag, smoothness=2.0)


def test_command_line(flag, tmp_path, capsys):
    path, output = tmp_path / "shot.blend", tmp_path / "rooted.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    arguments = ["convert", "--object", "Flag", "--bones", "3", "--output", str(output)]
    assert command_line.main([*arguments, "--root-bone", "--smoothness", "0.2"]) == 0
    capsys.readouterr()
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert ROOT_NAME in bpy.data.objects["Flag_rig"].data.bones
    report = bpy.data.objects["Flag_skinned"]["skinning_report"]
    assert report["settings"]["smoothness"] == pytest.approx(0.2)
