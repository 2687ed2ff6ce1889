# SPDX-License-Identifier: GPL-3.0-or-later
"""Removing, muting and rebuilding an EigenSkin: nothing is left, and references to its keys stay valid."""

import bpy
import numpy as np
import pytest

from skinning_tools.core.errors import BadScene
from skinning_tools.features.eigenskin.record import eigenskin_record, painted_masks
from skinning_tools.features.eigenskin.writer import mute_eigenskin, remove_eigenskin, write_eigenskin
from tests.blender import eigenskin_models as models
from tests.blender import scenes
from tests.blender.eigenskin_models import any_model
from tests.blender.snapshots import artists_keys, snapshot


def test_shape_keys_of_a_deleted_record_removed_by_hand(rigged):
    ob, rig, joints = rigged
    first = write_eigenskin(ob, rig, joints, any_model(joints))
    own = ob.shape_key_add(name="Mine", from_mix=False)
    del ob.data["skinning_eigenskin"]
    for name in first.shape_keys:
        ob.active_shape_key_index = ob.data.shape_keys.key_blocks.find(name)
        bpy.ops.object.shape_key_remove()
    assert ob.data.shape_keys.key_blocks.keys() == ["Basis", own.name]
    model = any_model(joints, seed=1)
    assert write_eigenskin(ob, rig, joints, model).shape_keys == first.shape_keys
    models.turn_at_random(rig, np.random.default_rng(0))
    np.testing.assert_allclose(models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5)


# Taking away


@pytest.mark.parametrize("normals", [False, True])
@pytest.mark.parametrize("kept", [False, True], ids=["bare", "with keys"])
def test_removal_leaves_no_trace(rigged, kept, normals):
    ob, rig, joints = rigged
    if kept:
        artists_keys(ob, rig)
    ob.vertex_groups.active_index = 1
    before = snapshot(ob)
    write_eigenskin(ob, rig, joints, any_model(joints), normals)
    assert snapshot(ob) != before
    # Nothing in the file uses the data that was made.
    assert remove_eigenskin(ob) == 6
    assert snapshot(ob) == before
    assert eigenskin_record(ob) is None
    with pytest.raises(BadScene, match="has no EigenSkin"):
        remove_eigenskin(ob)


def test_removal_knows_renamed_keys_and_leaves_what_the_artist_made(rigged):
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, any_model(joints))
    blocks = ob.data.shape_keys.key_blocks
    blocks["lower 2"].name = "Elbow"
    own = ob.shape_key_add(name="Mine", from_mix=False)
    own.relative_key = blocks["upper 1"]
    driver = ob.data.shape_keys.driver_add('key_blocks["Mine"].value').driver
    target = driver.variables.new().targets[0]
    target.id_type, target.id = "KEY", ob.data.shape_keys
    target.data_path = '["skinning_eigenskin_angles"][0]'
    ob.shape_key_remove(blocks["upper 3"])
    ob.vertex_groups.remove(ob.vertex_groups["upper support"])
    assert remove_eigenskin(ob) == 5
    assert blocks.keys() == ["Basis", "Mine"]
    assert own.relative_key.name == "Basis"
    assert ob.vertex_groups.keys() == ["trunk", "upper", "lower"]
    assert [curve.data_path for curve in ob.data.shape_keys.animation_data.drivers] == ['key_blocks["Mine"].value']


def test_the_basis_as_sculpted_stays(rigged):
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, any_model(joints))
    ob.data.shape_keys.reference_key.points[5].co = (1.0, 2.0, 3.0)
    remove_eigenskin(ob)
    assert ob.data.shape_keys is None
    assert tuple(ob.data.vertices[5].co) == (1.0, 2.0, 3.0)


def test_muted_the_mesh_is_as_without_corrections(rigged):
    ob, rig, _ = rigged
    models.corrected(ob, rig)
    models.turn(rig, {"lower": (0.8, 0.6, 0, 0)})
    shown = scenes.evaluated_positions(ob)
    mute_eigenskin(ob, True)
    bpy.context.view_layer.update()
    assert eigenskin_record(ob).muted
    plain = models.plain_positions(ob)
    np.testing.assert_allclose(scenes.evaluated_positions(ob), plain, atol=1e-5)
    assert np.abs(shown - plain).max() > 0.02
    mute_eigenskin(ob, False)
    bpy.context.view_layer.update()
    assert not eigenskin_record(ob).muted
    np.testing.assert_allclose(scenes.evaluated_positions(ob), shown, atol=1e-7)


# Rebuilding


def test_rebuilding_replaces(rigged):
    ob, rig, joints = rigged
    first = write_eigenskin(ob, rig, joints, any_model(joints), normals=True)
    before = snapshot(ob)
    model = any_model(joints, seed=1)
    second = write_eigenskin(ob, rig, joints, model, normals=True)
    assert second == first
    after = snapshot(ob)
    for same in ("file", "user", "groups", "attributes", "active key", "active group", "positions"):
        assert after[same] == before[same], same
    models.turn_at_random(rig, np.random.default_rng(0))
    np.testing.assert_allclose(models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5)
    third = write_eigenskin(ob, rig, joints, any_model(joints, components=1))
    assert third.shape_keys == ("upper 1", "lower 1")
    assert third.attributes == ()
    remove_eigenskin(ob)
    assert ob.data.shape_keys is None
    assert ob.vertex_groups.keys() == ["trunk", "upper", "lower"]


def keys_deleted(ob):
    ob.shape_key_clear()


def properties_deleted(ob):
    key = ob.data.shape_keys
    for name in list(key.keys()):
        del key[name]


@pytest.mark.parametrize("spoil", [keys_deleted, properties_deleted], ids=lambda function: function.__name__)
def test_rebuilding_damaged_corrections(rigged, spoil):
    ob, rig, joints = rigged
    before = snapshot(ob)
    first = write_eigenskin(ob, rig, joints, any_model(joints), normals=True)
    spoil(ob)
    model = any_model(joints, seed=1)
    assert write_eigenskin(ob, rig, joints, model, normals=True) == first
    assert ob.data.shape_keys.key_blocks.keys() == ["Basis", *first.shape_keys]
    assert ob.vertex_groups.keys() == ["trunk", "upper", "lower", *first.groups]
    models.turn_at_random(rig, np.random.default_rng(0))
    np.testing.assert_allclose(models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5)
    models.turn(rig, dict.fromkeys(joints.joint_names, (1, 0, 0, 0)))
    remove_eigenskin(ob)
    assert snapshot(ob) == before


def test_references_to_the_keys_stay_valid(rigged):
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, any_model(joints))
    blocks = ob.data.shape_keys.key_blocks
    mine = ob.shape_key_add(name="Mine", from_mix=False)
    mine.relative_key = blocks["lower 1"]
    blocks["upper 2"].vertex_group, blocks["upper 2"].mute = "trunk", True
    ob.active_shape_key_index = blocks.find("lower 3")
    ob.vertex_groups.active_index = ob.vertex_groups["lower support"].index
    follower = scenes.link(bpy.data.objects.new("Follower", None))
    driver = follower.driver_add("location", 0).driver
    target = driver.variables.new().targets[0]
    target.id_type, target.id, target.data_path = "KEY", ob.data.shape_keys, 'key_blocks["lower 1"].value'
    driver.expression = "var"
    bpy.context.view_layer.objects.active = ob
    write_eigenskin(ob, rig, joints, any_model(joints, seed=1))
    models.turn_at_random(rig, np.random.default_rng(0))
    assert mine.relative_key.name == "lower 1"
    assert (blocks["upper 2"].vertex_group, blocks["upper 2"].mute) == ("trunk", True)
    assert not blocks["upper 1"].mute
    assert ob.active_shape_key.name == "lower 3"
    assert ob.vertex_groups.active.name == "lower support"
    assert follower.location.x == pytest.approx(blocks["lower 1"].value)
    assert abs(follower.location.x) > 1e-3


def test_a_muted_one_stays_muted(rigged):
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, any_model(joints, components=1))
    mute_eigenskin(ob, True)
    write_eigenskin(ob, rig, joints, any_model(joints, components=2))
    assert all(ob.data.shape_keys.key_blocks[name].mute for name in ("upper 1", "upper 2", "lower 2"))


def test_a_saved_file_is_removed_from_as_well(rigged, tmp_path):
    ob, rig, joints = rigged
    before = snapshot(ob)
    model = any_model(joints)
    write_eigenskin(ob, rig, joints, model)
    ob.vertex_groups["lower support"].add([3], 0.5, "REPLACE")
    painted = painted_masks(ob)["lower"]
    scenes.reopened(tmp_path / "limb.blend")
    ob, rig = bpy.data.objects["Limb"], bpy.data.objects["Limb rig"]
    assert list(painted_masks(ob)) == ["lower"]
    assert np.array_equal(painted_masks(ob)["lower"], painted)
    remove_eigenskin(ob)
    after = snapshot(ob)
    # Blender's own.
    assert {**after, "file": None} == {**before, "file": None}
