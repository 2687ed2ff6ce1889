# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects whose animation cannot be read, and the reason given; and unusual ones that can."""

import bpy
import pytest

from skinning_tools.blender.object_checks import check_object
from skinning_tools.core.errors import BadScene
from tests.blender import refusals, scenes

pytestmark = pytest.mark.usefixtures("empty")


def refused(object, *parts: str) -> None:
    refusals.refused(lambda: check_object(bpy.context, object), *parts, error=BadScene)


def test_a_plain_mesh_is_fine():
    check_object(bpy.context, scenes.grid())


def test_no_active_object():
    refused(None, "NO_ACTIVE_OBJECT")


def test_not_a_mesh():
    refused(scenes.link(bpy.data.objects.new("Spine", bpy.data.curves.new("Spine", "CURVE"))), 'object "Spine" is not')
    refused(scenes.link(bpy.data.objects.new("Handle", None)), "its type is Empty")


def test_no_vertices():
    object = scenes.mesh_object([])
    refused(object, 'NO_VERTICES "Flag"')
    object.modifiers.new("Nodes", "NODES")
    check_object(bpy.context, object)
    object.modifiers[0].show_viewport = False
    refused(object, "NO_VERTICES")


@pytest.mark.parametrize(("mode", "name"), [("EDIT", "Edit Mode"), ("SCULPT", "Sculpt Mode")])
def test_modes_with_a_mesh_of_their_own(mode, name):
    object = scenes.grid()
    bpy.ops.object.mode_set(mode=mode)
    refused(object, f'MODE "Flag" is in {name}')
    bpy.ops.object.mode_set(mode="OBJECT")
    check_object(bpy.context, object)


def test_mesh_edited_through_another_object():
    object = scenes.grid()
    scenes.link(bpy.data.objects.new("Twin", object.data))
    bpy.ops.object.mode_set(mode="EDIT")
    assert object.mode == "OBJECT"
    refused(object, 'SHARED_MESH_IN_EDIT_MODE "Flag"')


def test_hidden_by_the_screen():
    object = scenes.grid()
    object.hide_viewport = True
    refused(object, 'HIDDEN "Flag"')


def test_hidden_by_the_eye():
    object = scenes.grid()
    object.hide_set(True)
    refused(object, 'HIDDEN "Flag"')


def test_hidden_by_its_collection():
    object = scenes.grid()
    collection = scenes.moved_to("Props", object)
    check_object(bpy.context, object)
    collection.hide_viewport = True
    refused(object, 'HIDDEN "Flag"')
    collection.hide_viewport = False
    layer_collection = bpy.context.view_layer.layer_collection.children["Props"]
    layer_collection.hide_viewport = True
    refused(object, 'HIDDEN "Flag"')


def test_excluded_from_the_view_layer():
    object = scenes.grid()
    scenes.moved_to("Props", object)
    bpy.context.view_layer.layer_collection.children["Props"].exclude = True
    refused(object, 'EXCLUDED object "Flag" … "ViewLayer"')


def test_not_in_the_scene():
    object = scenes.grid()
    scenes.home().objects.unlink(object)
    refused(object, 'NOT_IN_SCENE "Flag" … "Scene"')


@pytest.mark.parametrize(
    ("scale", "axes"), [((0, 0, 0), "X and Y and Z"), ((1, 0, 1), "Y")], ids=["all axes", "one axis"]
)
def test_zero_scale(scale, axes):
    object = scenes.grid()
    object.scale = scale
    refused(object, f'NO_SCALE_ALONG "Flag" … {axes}.')
    object.scale = (1, 1, 1)
    object.delta_scale = scale
    refused(object, "NO_SCALE_ALONG")


def test_zero_scale_at_one_moment():
    object = scenes.grid()
    scenes.key_property(object, "scale", {1: (1, 1, 1), 5: (0, 0, 0)})
    check_object(bpy.context, object)


@pytest.mark.parametrize("scale", [(-1, 1, 1), (-2, -3, -4), (100, 0.01, 1)])
def test_unapplied_and_negative_scale(scale):
    object = scenes.grid()
    object.scale = scale
    check_object(bpy.context, object)


@pytest.mark.parametrize("kind", ["PC2", "MDD"])
def test_missing_point_cache(kind, tmp_path):
    object = scenes.grid()
    modifier = scenes.point_cache(object, tmp_path / "gone.cache", kind)
    refused(object, 'modifier "Point Cache" of object "Flag" is missing: ', "gone.cache")
    modifier.filepath = ""
    refused(object, 'No cache file is chosen in the modifier "Point Cache" of object "Flag"')
    modifier.show_viewport = False
    check_object(bpy.context, object)


def test_missing_cache_file():
    object = scenes.grid()
    object.modifiers.new("Cache", "MESH_SEQUENCE_CACHE")
    refused(object, 'No cache file is chosen in the modifier "Cache" of object "Flag"')


def test_path_relative_to_the_file(tmp_path):
    object = scenes.grid()
    (tmp_path / "flag.pc2").write_bytes(b"")
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    scenes.point_cache(object, "//flag.pc2", "PC2")
    check_object(bpy.context, object)
    (tmp_path / "flag.pc2").unlink()
    refused(object, "is missing: ", "flag.pc2")
