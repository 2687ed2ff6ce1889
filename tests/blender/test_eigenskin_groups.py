# SPDX-License-Identifier: GPL-3.0-or-later
"""The vertex groups of an EigenSkin's supports: painted and renamed ones are known and kept."""

import hashlib

import bpy
import numpy as np

from skinning_tools.features.eigenskin.examples import read_rig
from skinning_tools.features.eigenskin.record import eigenskin_record, painted_masks, store_record
from skinning_tools.features.eigenskin.writer import remove_eigenskin, write_eigenskin
from tests.blender import eigenskin_models as models
from tests.blender.eigenskin_models import UPPER, any_model, weights_of
from tests.blender.snapshots import snapshot


def test_groups_are_never_named_as_bones_are(rigged):
    """Vertex groups with the names of bones would move the mesh."""
    ob, rig, _ = rigged
    rig.data.bones["root"].name = "lower support"
    rig.data.bones["lower support"].use_deform = True
    ob.vertex_groups.new(name="upper support")
    ob.data.attributes.new("lower.001 support", "FLOAT", "POINT")
    joints = read_rig(bpy.context, ob)[1]
    written = write_eigenskin(ob, rig, joints, any_model(joints))
    assert written.groups == ("upper.001 support", "lower.002 support")


def test_painted_groups(rigged):
    ob, rig, joints = rigged
    assert painted_masks(ob) == {}
    model = any_model(joints)
    write_eigenskin(ob, rig, joints, model)
    assert painted_masks(ob) == {}
    group = ob.vertex_groups["lower support"]
    group.add([3, 4], 0.25, "REPLACE")
    expected = model.supports[1].mask.astype(float)
    expected[[3, 4]] = 0.25
    assert list(painted_masks(ob)) == ["lower"]
    assert np.array_equal(painted_masks(ob)["lower"], expected)
    # A rebuild keeps it even if core changes the support, or has no such support.
    for seed in (1, 2):
        written = write_eigenskin(ob, rig, joints, any_model(joints, seed=seed))
        assert written.painted_groups == ("lower support",)
        assert written.groups == ("upper support", "lower support")
        assert np.array_equal(painted_masks(ob)["lower"], expected)
    written = write_eigenskin(ob, rig, joints, models.made_up(joints, {UPPER: models.ball(2)}))
    assert written.groups == ("upper support",)
    assert np.array_equal(painted_masks(ob)["lower"], expected)
    written = write_eigenskin(ob, rig, joints, any_model(joints))
    assert written.painted_groups == ("lower support",)
    # After deletion, it is made again.
    ob.vertex_groups.remove(ob.vertex_groups["lower support"])
    assert painted_masks(ob) == {}
    assert write_eigenskin(ob, rig, joints, any_model(joints, seed=3)).painted_groups == ()
    assert painted_masks(ob) == {}
    ob.vertex_groups["upper support"].remove([0, 1, 2, 3, 4, 5])
    assert list(painted_masks(ob)) == ["upper"]
    remove_eigenskin(ob)
    assert ob.vertex_groups.keys() == ["trunk", "upper", "lower"]


def test_renamed_groups(rigged):
    """They are found by their weights, painted ones by those of the last build."""
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, any_model(joints))
    ob.vertex_groups["lower support"].add([3, 4], 0.25, "REPLACE")
    write_eigenskin(ob, rig, joints, any_model(joints))
    painted = painted_masks(ob)["lower"]
    ob.vertex_groups["lower support"].name = "Elbow"
    ob.vertex_groups["upper support"].name = "Shoulder"
    assert list(painted_masks(ob)) == ["lower"]
    for model in (any_model(joints, seed=1), models.made_up(joints, {UPPER: models.ball(2)}), any_model(joints)):
        write_eigenskin(ob, rig, joints, model)
        assert ob.vertex_groups.keys()[3:] == ["Elbow", "upper support"]
        assert np.array_equal(painted_masks(ob)["lower"], painted)
    assert eigenskin_record(ob).supports[1].group == "Elbow"
    ob.vertex_groups["Elbow"].name = "Knee"
    ob.vertex_groups["upper support"].name = "Hip"
    remove_eigenskin(ob)
    assert ob.vertex_groups.keys() == ["trunk", "upper", "lower"]


def test_groups_that_an_earlier_version_wrote_are_not_taken_for_painted_ones(rigged):
    """It noted checksums of another kind."""
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, any_model(joints))
    record = eigenskin_record(ob)
    for support in record.supports:
        mask = weights_of(ob, support.group).astype(np.float32)
        support.fingerprint = hashlib.sha1(mask, usedforsecurity=False).hexdigest()
    store_record(ob.data, record)
    assert painted_masks(ob) == {}
    ob.vertex_groups["lower support"].name = "Elbow"
    assert painted_masks(ob) == {}
    ob.vertex_groups["Elbow"].add([3, 4], 0.25, "REPLACE")
    ob.vertex_groups["Elbow"].name = "lower support"
    assert list(painted_masks(ob)) == ["lower"]


def test_a_bones_group_is_not_taken_for_a_renamed_one(rigged):
    ob, rig, joints = rigged
    ob.vertex_groups.new(name="Empty")
    before = snapshot(ob)
    write_eigenskin(ob, rig, joints, any_model(joints))
    for name, like in (("lower support", "lower"), ("upper support", "Empty")):
        group = ob.vertex_groups[name]
        group.remove(range(len(joints.rest)))
        for vertex, weight in enumerate(weights_of(ob, like).tolist()):
            if weight:
                group.add([vertex], weight, "REPLACE")
    write_eigenskin(ob, rig, joints, any_model(joints))
    for name in ("lower support", "upper support"):
        ob.vertex_groups.remove(ob.vertex_groups[name])
    assert painted_masks(ob) == {}
    remove_eigenskin(ob)
    assert snapshot(ob) == before


def test_groups_of_a_mesh_with_other_vertices(rigged):
    """Only weights that were painted before can be distinguished from those of the edit."""
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, any_model(joints))
    ob.vertex_groups["lower support"].add([3, 4], 0.25, "REPLACE")
    write_eigenskin(ob, rig, joints, any_model(joints))
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.subdivide()
    bpy.ops.object.mode_set(mode="OBJECT")
    masks = painted_masks(ob)
    assert list(masks) == ["lower"]
    assert np.array_equal(masks["lower"], weights_of(ob, "lower support"))
    assert len(masks["lower"]) > len(joints.rest)
