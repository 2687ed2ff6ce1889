# SPDX-License-Identifier: GPL-3.0-or-later
"""The weight view: its colors and legend, that it leaves nothing behind, and what it refuses."""

from functools import partial

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.blender import error_display
from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.core.binding.weight_view import bone_colors, count_colors
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.features.centers import modifier as crs_modifier
from skinning_tools.features.weights import weight_view, weight_view_refresh
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.eigenskin_scenes import limb, link_limb
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")

NAMES = ("trunk", "upper", "lower")


@pytest.fixture
def skinned():
    return limb()


def show(mode="BONES", **given):
    assert bpy.ops.skinning.show_weights(mode=mode, **given) == {"FINISHED"}


def colors(ob, name="skinning_weight_color") -> np.ndarray:
    values = np.empty((len(ob.data.vertices), 4), np.float32)
    ob.data.color_attributes[name].data.foreach_get("color", values.ravel())
    return values


def influences(ob) -> np.ndarray:
    values = np.empty(len(ob.data.vertices), np.int32)
    ob.data.attributes["skinning_influence_count"].data.foreach_get("value", values)
    return values


def state() -> tuple:
    meshes = [([a.name for a in mesh.attributes], sorted(mesh.keys())) for mesh in bpy.data.meshes]
    active = [getattr(mesh.color_attributes.active_color, "name", None) for mesh in bpy.data.meshes]
    return moving_meshes.state(), meshes, active


refused = partial(refusals.refused, "show_weights", state=state)


# What it shows


def test_colors_are_the_bones_mixed_by_their_weights(skinned):
    ob, rig = skinned
    show()
    read = read_bone_weights(ob, rig)
    palette = bone_colors(NAMES, 1 - np.eye(3))
    dense = weight_matrix(read.bones, read.weights, 3).toarray()
    assert np.abs(colors(ob)[:, :3] - dense @ palette).max() < 1e-6
    assert ob.data.color_attributes.active_color.name == "skinning_weight_color"
    assert np.array_equal(influences(ob), (dense > 0).sum(axis=1))


def test_the_palette_can_be_chosen(skinned):
    ob, _ = skinned
    show(palette="COLOR_BLIND")
    shown = ob.data.skinning_weight_view.bones
    expected = dict(zip(NAMES, bone_colors(NAMES, 1 - np.eye(3), "COLOR_BLIND"), strict=True))
    assert all(np.allclose(item.color, expected[item.name], atol=1e-6) for item in shown)
    # Another one in the panel makes the colors old.
    assert not weight_view.is_stale(ob)
    ob.data.skinning_weight_view.palette = "DISTINCT"
    assert weight_view.is_stale(ob)
    weight_view_refresh.refresh_all()
    expected = dict(zip(NAMES, bone_colors(NAMES, 1 - np.eye(3)), strict=True))
    assert all(np.allclose(item.color, expected[item.name], atol=1e-6) for item in shown)


def test_the_number_of_bones_is_shown_in_color(skinned):
    ob, _ = skinned
    show("COUNT", most=1)
    counts = influences(ob)
    assert set(counts) == {1, 2}
    assert np.abs(colors(ob) - count_colors(counts, 1)).max() < 1e-6
    group = ob.data.skinning_weight_view
    assert [(item.influences, item.vertices) for item in group.counts] == [
        (1, np.count_nonzero(counts == 1)),
        (2, np.count_nonzero(counts == 2)),
    ]
    assert group.counts[1].color[:] == pytest.approx(count_colors(np.array([2]), 1)[0, :3])


def test_vertices_without_weights_are_black_and_counted():
    ob, _ = rigged_tube()
    show("COUNT")
    assert (influences(ob)[-16:] == 0).all()
    first = ob.data.skinning_weight_view.counts[0]
    assert (first.influences, first.vertices) == (0, 16)
    show()
    assert not colors(ob)[-16:, :3].any()


def test_legend_lists_the_bones_by_their_share(skinned):
    ob, rig = skinned
    ob.vertex_groups.remove(ob.vertex_groups["trunk"])
    show()
    read = read_bone_weights(ob, rig)
    totals = np.bincount(read.bones.ravel(), read.weights.ravel(), minlength=3)
    shown = ob.data.skinning_weight_view.bones
    assert [item.name for item in shown] == [NAMES[bone] for bone in np.argsort(-totals)[:2]]
    assert sum(item.share for item in shown) == pytest.approx(1, abs=1e-6)
    palette = dict(zip(NAMES, bone_colors(NAMES, 1 - np.eye(3)), strict=True))
    for item in shown:
        assert np.allclose(item.color, palette[item.name], atol=1e-6)
        item.color = (1, 1, 1)
        assert np.allclose(item.color, palette[item.name], atol=1e-6), "it is there to be looked at"


# That nothing is left


def test_off_leaves_nothing(skinned):
    ob, _ = skinned
    own = ob.data.color_attributes.new("Paint", "BYTE_COLOR", "CORNER")
    ob.data.color_attributes.new("Other", "FLOAT_COLOR", "POINT")
    ob.data.attributes.active_color = own
    before = state()
    painted = [tuple(item.color) for item in ob.data.color_attributes["Paint"].data]
    for mode in ("BONES", "COUNT", "BONES"):
        show(mode)
    show("OFF")
    assert state() == before
    assert not len(ob.data.skinning_weight_view.bones)
    assert [tuple(item.color) for item in ob.data.color_attributes["Paint"].data] == painted
    show("OFF")
    assert state() == before


def test_at_most_one_view_is_on(skinned):
    ob, _ = skinned
    before = state()
    ob.data.attributes.new("skinning_fit_error", "FLOAT", "POINT")
    show()
    assert bpy.ops.skinning.show_fit_error() == {"FINISHED"}
    assert not weight_view.shows_weights(ob)
    assert "skinning_influence_count" not in ob.data.attributes
    show("COUNT")
    assert not error_display.shows_colors(ob)
    show("OFF")
    ob.data.attributes.remove(ob.data.attributes["skinning_fit_error"])
    assert state() == before


def test_the_data_of_the_center_of_rotation_modifier_is_told_apart(skinned):
    ob, _ = skinned
    ob.data.attributes.new("skinning_influences_1", "FLOAT4X4", "POINT")
    show()
    crs_modifier.remove_data(ob.data)
    assert "skinning_influences_1" not in ob.data.attributes
    assert set(influences(ob)) == {1, 2}


def test_undo_takes_one_step(skinned):
    bpy.context.preferences.edit.use_global_undo = True
    bpy.ops.ed.undo_push(message="Limb")
    show()
    bpy.ops.ed.undo_push(message="Shown")
    bpy.ops.ed.undo()
    ob = bpy.data.objects["Limb"]
    assert not weight_view.shows_weights(ob)
    assert ob.data.skinning_weight_view.mode == "OFF"


def test_it_is_saved_with_the_file(skinned, tmp_path):
    show("COUNT", most=3)
    scenes.reopened(tmp_path / "shot.blend")
    ob = bpy.data.objects["Limb"]
    group = ob.data.skinning_weight_view
    assert (group.mode, group.most, len(group.counts)) == ("COUNT", 3, 2)
    assert not weight_view.is_stale(ob)
    show("OFF")
    assert not weight_view.shows_weights(ob)


# While weights change


def test_changed_weights_are_noticed_and_refreshed(skinned):
    ob, rig = skinned
    show()
    assert not weight_view.is_stale(ob)
    assert not weight_view_refresh.refresh_all()
    before = colors(ob)
    ob.vertex_groups["lower"].add([3], 0.5, "ADD")
    assert weight_view.is_stale(ob)
    assert weight_view_refresh.refresh_all()
    changed = np.flatnonzero(np.abs(colors(ob) - before).max(axis=1) > 1e-4)
    assert changed.tolist() == [3]
    assert not weight_view.is_stale(ob)
    ob.data.skinning_weight_view.most = 1
    assert weight_view.is_stale(ob)
    assert weight_view_refresh.refresh_all()
    rig.data.bones["lower"].name = "forearm"
    assert weight_view_refresh.refresh_all()
    assert "forearm" in ob.data.skinning_weight_view.bones


def test_refreshing_waits_until_the_mesh_can_be_read(skinned):
    ob, rig = skinned
    show()
    ob.vertex_groups["lower"].add([3], 0.5, "ADD")
    bpy.ops.object.mode_set(mode="EDIT")
    assert not weight_view_refresh.refresh_all()
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.data.objects.remove(rig)
    assert not weight_view_refresh.refresh_all()
    assert weight_view.shows_weights(ob)
    show("OFF")
    assert not weight_view.shows_weights(ob)


def test_handlers_go_with_the_extension():
    def handlers():
        lists = (bpy.app.handlers.depsgraph_update_post, bpy.app.handlers.undo_post, bpy.app.handlers.redo_post)
        return [callback for each in lists for callback in each if callback.__module__ == weight_view_refresh.__name__]

    assert len(handlers()) == 3
    skinning_tools.unregister()
    try:
        assert not handlers()
    finally:
        skinning_tools.register()


# Where it works, and where not


@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
def test_the_armature_stands_for_its_mesh(skinned, mode):
    ob, rig = skinned
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode=mode)
    show()
    assert weight_view.shows_weights(ob)
    assert rig.mode == mode
    show("OFF")
    assert not weight_view.shows_weights(ob)


def test_in_weight_paint_mode(skinned):
    ob, _ = skinned
    bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
    show("COUNT")
    assert weight_view.shows_weights(ob)
    assert ob.mode == "WEIGHT_PAINT"
    show("OFF")
    assert not weight_view.shows_weights(ob)


@pytest.mark.parametrize("what", ["nothing", "bare", "edited", "hidden", "groups", "no deforming bones"])
def test_objects_that_have_no_weights_to_show(skinned, what):
    ob, rig = skinned
    text = {
        "nothing": "NO_ACTIVE_OBJECT",
        "bare": "NOT_SKINNED",
        "edited": "MODE Edit Mode",
        "hidden": "HIDDEN",
        "groups": "NO_VERTEX_GROUPS",
        "no deforming bones": "NO_GROUP_OF_A_BONE",
    }
    if what == "nothing":
        bpy.context.view_layer.objects.active = None
    elif what == "bare":
        scenes.grid()
    elif what == "edited":
        bpy.ops.object.mode_set(mode="EDIT")
    elif what == "hidden":
        ob.hide_set(True)
    elif what == "groups":
        ob.vertex_groups.clear()
    else:
        for bone in rig.data.bones:
            bone.use_deform = False
    refused(text[what])
    if what == "edited":
        bpy.ops.object.mode_set(mode="OBJECT")


def test_limit_below_one(skinned):
    refused("OUT_OF_RANGE at least 1", mode="COUNT", most=0)


def test_linked_mesh(skinned, tmp_path):
    link_limb(tmp_path / "library.blend")
    refused("LINKED")
