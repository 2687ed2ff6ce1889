# SPDX-License-Identifier: GPL-3.0-or-later
"""Suggest Bones through its operator."""

import bpy
import pytest

from tests.blender import moving_meshes, refusals, scenes, several_scenes

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def scene():
    return moving_meshes.fresh_scene(60)


@pytest.mark.parametrize("make", [moving_meshes.waving_grid, moving_meshes.twisting_bar])
def test_sets_the_number_and_nothing_else(scene, make):
    make()
    scene.frame_set(5)
    before = moving_meshes.state()
    chosen = scene.skinning_conversion
    chosen.bone_count = 99
    assert bpy.ops.skinning.suggest_bones() == {"FINISHED"}
    assert 1 < chosen.bone_count < 20
    assert moving_meshes.state() == before
    affine = chosen.bone_count
    chosen.bone_kind = "RIGID"
    bpy.ops.skinning.suggest_bones()
    assert chosen.bone_count > affine


def test_a_simulation_is_not_played(scene):
    cloth = scenes.grid(60, 60)
    scenes.cloth(cloth)
    cache = cloth.modifiers["Cloth"].point_cache
    before = cache.info
    bpy.ops.skinning.suggest_bones()
    assert scene.skinning_conversion.bone_count == round(0.5 * 61)
    assert cache.info == before


def test_all_selected_objects_count(scene):
    several_scenes.character()
    scene.skinning_conversion.selected_objects = True
    before = moving_meshes.state()
    bpy.ops.skinning.suggest_bones()
    together = scene.skinning_conversion.bone_count
    scene.skinning_conversion.selected_objects = False
    bpy.ops.skinning.suggest_bones()
    assert together > scene.skinning_conversion.bone_count
    assert moving_meshes.state() == before


def test_never_more_bones_than_vertices(scene):
    triangle = moving_meshes.add_object("Flag", [(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
    moving_meshes.add_waving_keys(triangle)
    bpy.ops.skinning.suggest_bones()
    assert scene.skinning_conversion.bone_count <= 3


def test_what_cannot_be_read(scene):
    ob = bpy.data.objects.new("Empty", None)
    scenes.link(ob)
    with refusals.raises_unmet("NOT_A_MESH"):
        bpy.ops.skinning.suggest_bones()
