# SPDX-License-Identifier: GPL-3.0-or-later
"""An EigenSkin that cannot be written, or fails halfway: the mesh is unchanged, or the next build repairs it."""

import bpy
import numpy as np
import pytest

from skinning_tools.core.errors import BadScene
from skinning_tools.features.eigenskin import drivers, removal, writer
from skinning_tools.features.eigenskin.examples import read_rig
from skinning_tools.features.eigenskin.record import eigenskin_record, painted_masks
from skinning_tools.features.eigenskin.writer import mute_eigenskin, remove_eigenskin, write_eigenskin
from tests.blender import eigenskin_models as models
from tests.blender import refusals, scenes
from tests.blender.eigenskin_models import any_model
from tests.blender.snapshots import artists_keys, snapshot


@pytest.mark.parametrize("spoil", ["support_1", "baked", "whole"])
def test_a_damaged_record(rigged, spoil):
    ob, rig, joints = rigged
    write_eigenskin(ob, rig, joints, any_model(joints))
    if spoil == "whole":
        ob.data["skinning_eigenskin"] = "mine"
    else:
        ob.data["skinning_eigenskin"][spoil] = "mine"
    assert eigenskin_record(ob) is None
    before = snapshot(ob)
    for act in (remove_eigenskin, lambda ob: mute_eigenskin(ob, True)):
        with pytest.raises(BadScene, match="changed by hand"):
            act(ob)
    assert snapshot(ob) == before


def absolute_keys(ob, rig):
    scenes.shape_keys(ob)
    ob.data.shape_keys.use_relative = False


def edit_mode(ob, rig):
    bpy.ops.object.mode_set(mode="EDIT")


def shared_with_another_armature(ob, rig):
    other = scenes.link(bpy.data.objects.new("Twin", ob.data))
    other.modifiers.new("Armature", "ARMATURE").object = scenes.link(bpy.data.objects.new("Rig 2", rig.data.copy()))


def shared_without_armature(ob, rig):
    scenes.link(bpy.data.objects.new("Twin", ob.data))


def bone_gone(ob, rig):
    rig.data.bones["lower"].name = "leg"


def mesh_edited(ob, rig):
    ob.data.vertices[7].co.z += 0.01


def record_deleted(ob, rig):
    joints = read_rig(bpy.context, ob)[1]
    write_eigenskin(ob, rig, joints, any_model(joints))
    del ob.data["skinning_eigenskin"]


def record_damaged(ob, rig):
    record_deleted(ob, rig)
    ob.data["skinning_eigenskin"] = "mine"


REFUSED = {
    absolute_keys: ("ABSOLUTE_KEYS",),
    edit_mode: ("MODE Edit Mode",),
    shared_with_another_armature: ('MESH_SHARED object "Twin"', "Make Single User"),
    shared_without_armature: ('MESH_SHARED object "Twin"', "Make Single User"),
    bone_gone: ('BONE_GONE "lower"',),
    mesh_edited: ("was edited",),
    record_deleted: ("has 6 shape keys", '"upper 1"', "Remove such shape keys first"),
    record_damaged: ("has 6 shape keys", '"upper 1"', "Remove such shape keys first"),
}


@pytest.mark.parametrize("prepare", REFUSED, ids=lambda function: function.__name__)
def test_meshes_that_cannot_be_written_to_are_refused(rigged, prepare):
    ob, rig, joints = rigged
    model = any_model(joints)
    prepare(ob, rig)
    before = snapshot(ob)
    with pytest.raises(BadScene) as raised:
        write_eigenskin(ob, rig, joints, model)
    refusals.assert_says(raised.value, *REFUSED[prepare])
    assert snapshot(ob) == before


STEPS = {
    "keys": (writer, "SupportRecord", 1),
    "drivers": (drivers, "_fill", 5),
    "groups": (writer, "write_weights", 0),
    "fingerprints": (writer, "checksum", 1),
    "preserve volume": (writer, "_turn_preserve_volume_off", 0),
}

# Of these a rebuild has begun to take the old one away.
LATE_STEPS = {
    "first name": (writer, "free_name", 0),
    "a key's name": (writer, "free_name", 1),
    "a normal's name": (writer, "free_name", 5),
    "all names": (writer, "_name_all", 0),
}

REPLACING_STEPS = {
    "kept settings": (writer, "KeptOfKeys", 0),
    "keyframes": (removal, "take_keyframes_away", 0),
    "taking away": (writer, "take_away", 0),
    **LATE_STEPS,
}


class Failing:
    """``function``, but the call after so many calls fails."""

    def __init__(self, function, after: int):
        self.function, self.left = function, after

    def __call__(self, *args, **given):
        self.left -= 1
        result = self.function(*args, **given)
        if self.left < 0:
            raise MemoryError
        return result


@pytest.mark.parametrize("kept", [False, True], ids=["bare", "with keys"])
@pytest.mark.parametrize("step", STEPS | LATE_STEPS)
def test_all_or_nothing(rigged, monkeypatch, step, kept):
    ob, rig, joints = rigged
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    if kept:
        artists_keys(ob, rig)
    before = snapshot(ob)
    module, name, after = (STEPS | LATE_STEPS)[step]
    monkeypatch.setattr(module, name, Failing(getattr(module, name), after))
    with pytest.raises(MemoryError):
        write_eigenskin(ob, rig, joints, any_model(joints), normals=True)
    assert snapshot(ob) == before


@pytest.mark.parametrize("step", STEPS)
def test_a_failed_rebuild_leaves_the_old_one(rigged, monkeypatch, step):
    ob, rig, joints = rigged
    model = any_model(joints)
    write_eigenskin(ob, rig, joints, model, normals=True)
    models.turn_at_random(rig, np.random.default_rng(0))
    before, values = snapshot(ob), models.shown_values(ob)
    module, name, after = STEPS[step]
    monkeypatch.setattr(module, name, Failing(getattr(module, name), after))
    with pytest.raises(MemoryError):
        write_eigenskin(ob, rig, joints, any_model(joints, seed=1), normals=True)
    assert snapshot(ob) == before
    bpy.context.view_layer.update()
    assert np.array_equal(models.shown_values(ob), values)


@pytest.mark.parametrize("end", ["remove", "rebuild"])
@pytest.mark.parametrize("step", REPLACING_STEPS)
def test_a_rebuild_that_failed_late_is_known(rigged, monkeypatch, step, end):
    ob, rig, joints = rigged
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    artists_keys(ob, rig)
    before = snapshot(ob)
    write_eigenskin(ob, rig, joints, any_model(joints), normals=True)
    ob.vertex_groups["lower support"].add([3, 4], 0.25, "REPLACE")
    written, painted = snapshot(ob), painted_masks(ob)
    module, name, after = REPLACING_STEPS[step]
    with monkeypatch.context() as patch:
        patch.setattr(module, name, Failing(getattr(module, name), after))
        with pytest.raises(MemoryError):
            write_eigenskin(ob, rig, joints, any_model(joints, seed=1), normals=True)
    assert painted_masks(ob).keys() == {"lower"}
    assert np.array_equal(painted_masks(ob)["lower"], painted["lower"])
    if end == "rebuild":
        model = any_model(joints)
        write_eigenskin(ob, rig, joints, model, normals=True)
        after = snapshot(ob)
        for same in ("keys", "groups", "attributes", "modifiers", "volume"):
            assert sorted(after[same]) == sorted(written[same]), same
        assert len(after["animation"][-1]) == len(written["animation"][-1])
        np.testing.assert_allclose(models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5)
    remove_eigenskin(ob)
    assert snapshot(ob) == before
