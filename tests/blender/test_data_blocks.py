# SPDX-License-Identifier: GPL-3.0-or-later
"""Removed data-blocks are gone, in every version of Blender."""

import bpy

from skinning_tools.blender.data_blocks import clear_shape_keys, is_alive
from tests.blender import scenes


def test_shape_keys_of_a_copied_mesh_are_gone_once_cleared():
    """Object.shape_key_clear alone leaves them without their mesh, where Blender before 5.0 has copied that."""
    scenes.empty_scene()
    ob = scenes.grid()
    scenes.shape_keys(ob)
    before = scenes.data_blocks()
    copy = ob.copy()
    copy.data = ob.data.copy()
    mesh, keys = copy.data, copy.data.shape_keys
    clear_shape_keys(copy)
    assert mesh.shape_keys is None
    assert not is_alive(keys)
    bpy.data.batch_remove([copy, mesh])
    assert scenes.data_blocks() == before
    assert len(ob.data.shape_keys.key_blocks) == 4


def test_an_object_without_shape_keys():
    scenes.empty_scene()
    ob = scenes.grid()
    clear_shape_keys(ob)
    assert ob.data.shape_keys is None
