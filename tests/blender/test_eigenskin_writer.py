# SPDX-License-Identifier: GPL-3.0-or-later
"""An EigenSkin on a mesh: it corrects as core says, keeps what was there, and leaves no trace when taken away."""

from dataclasses import replace

import bpy
import numpy as np
import pytest

from skinning_tools.core.deform import skin_frame
from skinning_tools.core.errors import BadScene
from skinning_tools.scene import actions, eigenskin_drivers, eigenskin_writer
from skinning_tools.scene.eigenskin_examples import read_rig
from skinning_tools.scene.eigenskin_record import eigenskin_record, painted_masks
from skinning_tools.scene.eigenskin_writer import mute_eigenskin, remove_eigenskin, write_eigenskin
from skinning_tools.scene.skin_reader import bone_matrices, read_skin
from tests.blender import eigenskin_models as models
from tests.blender import scenes
from tests.blender.eigenskin_scenes import limb, pose

UPPER, LOWER = 2, 3


@pytest.fixture
def rigged():
    """The limb, its armature and its joints."""
    ob, rig = limb()
    return ob, rig, read_rig(bpy.context, ob)[1]


def any_model(joints, **given):
    return models.made_up(joints, {UPPER: models.ball(3), LOWER: models.hinge((-60, 60))}, **given)


def snapshot(ob) -> dict:
    """All that writing and removing must leave alone."""
    mesh = ob.data
    key = mesh.shape_keys
    return {
        "file": scenes.data_blocks(),
        "user": scenes.ui_state(),
        "properties": [sorted(block.keys()) for block in (ob, mesh, *([key] if key else []))],
        "groups": [(group.name, group.lock_weight) for group in ob.vertex_groups],
        "active group": ob.vertex_groups.active_index,
        "weights": [[(entry.group, entry.weight) for entry in vertex.groups] for vertex in mesh.vertices],
        "attributes": [(attribute.name, attribute.data_type) for attribute in mesh.attributes],
        "positions": [tuple(vertex.co) for vertex in mesh.vertices],
        "modifiers": [(modifier.name, modifier.show_viewport) for modifier in ob.modifiers],
        "volume": [modifier.use_deform_preserve_volume for modifier in ob.modifiers if modifier.type == "ARMATURE"],
        "active key": ob.active_shape_key_index,
        "keys": [keys_settings(block) for block in key.key_blocks] if key else None,
        "animation": animation_of(key) if key and key.animation_data else None,
    }


def keys_settings(block) -> tuple:
    return (
        block.name, block.value, block.mute, block.vertex_group, block.slider_min, block.slider_max, block.lock_shape,
        block.relative_key.name, [tuple(point.co) for point in block.points],
    )  # fmt: skip


def animation_of(key) -> tuple:
    animation = key.animation_data
    drivers = [
        (curve.data_path, curve.driver.expression, curve.mute, [variable.name for variable in curve.driver.variables])
        for curve in animation.drivers
    ]
    container = actions.curve_container(key)
    curves = [(curve.data_path, len(curve.keyframe_points)) for curve in container.fcurves] if container else []
    groups = container.groups.keys() if container else []
    return animation.action, curves, groups, [track.name for track in animation.nla_tracks], drivers


def artists_keys(ob, rig) -> None:
    """Shape keys with a driver, an action and a strip."""
    smile, frown, other = scenes.shape_keys(ob)
    smile.name, frown.name, other.name = "Smile", "upper 1", "Other"
    frown.vertex_group, other.relative_key, other.slider_max = "upper", smile, 2.0
    key = ob.data.shape_keys
    driver = key.driver_add('key_blocks["Smile"].value').driver
    variable = driver.variables.new()
    variable.type, variable.name = "TRANSFORMS", "turn"
    target = variable.targets[0]
    target.id, target.bone_target, target.transform_type, target.transform_space = rig, "lower", "ROT_X", "LOCAL_SPACE"
    driver.expression = "0.5 * turn"
    frown.value = 0.2
    frown.keyframe_insert("value", frame=1)
    frown.value = 0.9
    frown.keyframe_insert("value", frame=9)
    action = key.animation_data.action
    key.animation_data.nla_tracks.new().strips.new("Strip", 20, action)
    key["note"] = "mine"
    bpy.context.scene.frame_set(5)
    ob.active_shape_key_index = 2


# --- Writing


@pytest.mark.parametrize("degrees", [-70, 45, 80])
def test_the_mesh_is_what_core_says(rigged, degrees):
    """Linear blending of the rest pose moved by the components."""
    ob, rig, _ = rigged
    joints, model, _ = models.corrected(ob, rig)
    pose(rig, [("lower", "X", degrees), ("upper", "Y", 20), ("trunk", "Z", 130)])
    skin = read_skin(bpy.context, ob)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    moved = model.displacements(models.expected_values(ob, joints, model))
    expected = skin_frame(skin.rest + moved, skin.bones, skin.weights, matrices, "LBS")
    np.testing.assert_allclose(scenes.evaluated_positions(ob), expected, atol=1e-5)
    assert np.abs(expected - models.plain_positions(ob)).max() > 0.02


def test_what_is_written(rigged):
    ob, rig, joints = rigged
    model = any_model(joints)
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    written = write_eigenskin(ob, rig, joints, model)
    assert written.shape_keys == ("upper 1", "upper 2", "upper 3", "lower 1", "lower 2", "lower 3")
    assert written.groups == ("upper support", "lower support")
    assert (written.shape_key_count, written.support_count) == (6, 2)
    assert written.painted_groups == written.attributes == written.preserve_volume == ()
    blocks = ob.data.shape_keys.key_blocks
    assert blocks.keys() == ["Basis", *written.shape_keys]
    for support, group in zip(model.supports, written.groups, strict=True):
        for index, component in enumerate(support.components):
            block = blocks[f"{support.name} {index + 1}"]
            shape = rest.copy()
            shape[support.vertices] += component
            np.testing.assert_allclose([point.co for point in block.points], shape, atol=1e-6)
            assert (block.slider_min, block.slider_max, block.relative_key.name) == (-10.0, 10.0, "Basis")
        assert np.array_equal(weights_of(ob, group), support.mask)
    record = eigenskin_record(ob)
    assert [(part.name, part.joints, part.count) for part in record.supports] == [
        ("upper", ("upper",), 3),
        ("lower", ("lower",), 3),
    ]
    assert record.supports[0].captured == pytest.approx(tuple(model.supports[0].captured))
    assert not record.muted
    assert not record.baked


def test_the_record_has_no_more_singular_values_than_are_shown(rigged):
    ob, rig, joints = rigged
    model = any_model(joints)
    values = np.geomspace(1.0, 0.5, 120)
    model = replace(model, supports=tuple(replace(part, singular_values=values) for part in model.supports))
    write_eigenskin(ob, rig, joints, model)
    for part in eigenskin_record(ob).supports:
        assert 3 < len(part.singular_values) < 20
        captured = np.cumsum(values**2) / np.sum(values**2)
        assert part.captured == pytest.approx(captured[: len(part.captured)].tolist())


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


def test_values_end_at_the_limits(rigged):
    ob, rig, joints = rigged
    model = any_model(joints, size=4.0)
    for support in model.supports:
        support.limits[:] = (0.5, 1.0, 1.5)
    write_eigenskin(ob, rig, joints, model)
    found = []
    random = np.random.default_rng(0)
    for _ in range(20):
        models.turn_at_random(rig, random)
        found.append(models.shown_values(ob))
        np.testing.assert_allclose(found[-1], models.expected_values(ob, joints, model), atol=1e-5)
    assert np.abs(found).max(axis=0) == pytest.approx([0.5, 1.0, 1.5] * 2)


def test_normal_corrections(rigged):
    ob, rig, joints = rigged
    model = any_model(joints)
    written = write_eigenskin(ob, rig, joints, model, normals=True)
    assert written.attributes == tuple(f"{name} normal" for name in written.shape_keys)
    attribute = ob.data.attributes["lower 2 normal"]
    assert (attribute.data_type, attribute.domain) == ("FLOAT_VECTOR", "POINT")
    expected = np.zeros((len(joints.rest), 3))
    expected[model.supports[1].vertices] = model.supports[1].normal_components[1]
    np.testing.assert_allclose([entry.vector for entry in attribute.data], expected, atol=1e-7)


def test_what_was_there_stays_as_it_is(rigged):
    ob, rig, joints = rigged
    artists_keys(ob, rig)
    models.turn(rig, {"lower": (0.8, 0.6, 0, 0)})
    before = snapshot(ob)
    values = {block.name: block.value for block in ob.data.shape_keys.key_blocks}
    assert values["Smile"] == pytest.approx(0.5 * 2 * np.arccos(0.8))
    written = write_eigenskin(ob, rig, joints, any_model(joints))
    bpy.context.view_layer.update()
    after = snapshot(ob)
    assert written.shape_keys[0] == "upper.001 1"
    assert after["keys"][: len(before["keys"])] == before["keys"]
    assert after["groups"][: len(before["groups"])] == before["groups"]
    assert after["animation"][:-1] == before["animation"][:-1]
    assert after["animation"][-1][:1] == before["animation"][-1]
    for same in ("user", "active group", "active key", "positions", "modifiers"):
        assert after[same] == before[same], same
    blocks = ob.data.shape_keys.key_blocks
    assert {name: blocks[name].value for name in values} == values
    assert blocks["upper 1"].value == pytest.approx(0.55, abs=0.1)


def test_groups_are_never_named_as_bones_are(rigged):
    """They would move the mesh."""
    ob, rig, _ = rigged
    rig.data.bones["root"].name = "lower support"
    rig.data.bones["lower support"].use_deform = True
    ob.vertex_groups.new(name="upper support")
    ob.data.attributes.new("lower.001 support", "FLOAT", "POINT")
    joints = read_rig(bpy.context, ob)[1]
    written = write_eigenskin(ob, rig, joints, any_model(joints))
    assert written.groups == ("upper.001 support", "lower.002 support")


def test_preserve_volume_is_turned_off_and_on_again(rigged):
    ob, rig, joints = rigged
    other = ob.modifiers.new("Other", "ARMATURE")
    ob.modifiers["Armature"].use_deform_preserve_volume = other.use_deform_preserve_volume = True
    written = write_eigenskin(ob, rig, joints, any_model(joints))
    assert written.preserve_volume == ("Armature",)
    assert not ob.modifiers["Armature"].use_deform_preserve_volume
    assert other.use_deform_preserve_volume
    written = write_eigenskin(ob, rig, joints, any_model(joints))
    assert written.preserve_volume == ("Armature",)
    assert not ob.modifiers["Armature"].use_deform_preserve_volume
    remove_eigenskin(ob)
    assert ob.modifiers["Armature"].use_deform_preserve_volume


def test_preserve_volume_comes_back_where_it_was(rigged):
    """In the one of two objects with the mesh, whatever its modifier is called."""
    ob, rig, joints = rigged
    other = scenes.link(bpy.data.objects.new("Twin", ob.data))
    other.modifiers.new("Armature", "ARMATURE").object = rig
    other.modifiers["Armature"].use_deform_preserve_volume = True
    for _ in range(2):
        assert write_eigenskin(ob, rig, joints, any_model(joints)).preserve_volume == ("Armature",)
        assert not other.modifiers["Armature"].use_deform_preserve_volume
    remove_eigenskin(ob)
    assert other.modifiers["Armature"].use_deform_preserve_volume
    assert not ob.modifiers["Armature"].use_deform_preserve_volume


# --- What is refused, and what fails


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
    absolute_keys: ("absolute", "Enable Relative"),
    edit_mode: ("Edit Mode",),
    shared_with_another_armature: ('shares its mesh with object "Twin"', "Make Single User"),
    shared_without_armature: ('shares its mesh with object "Twin"', "Make Single User"),
    bone_gone: ('no bone "lower"',),
    mesh_edited: ("was edited",),
    record_deleted: ("has 6 shape keys", '"upper 1"', "Remove those shape keys first"),
    record_damaged: ("has 6 shape keys", '"upper 1"', "Remove those shape keys first"),
}


@pytest.mark.parametrize("prepare", REFUSED, ids=lambda function: function.__name__)
def test_refused(rigged, prepare):
    ob, rig, joints = rigged
    model = any_model(joints)
    prepare(ob, rig)
    before = snapshot(ob)
    with pytest.raises(BadScene) as raised:
        write_eigenskin(ob, rig, joints, model)
    for part in REFUSED[prepare]:
        assert part in str(raised.value)
    assert snapshot(ob) == before


STEPS = {
    "keys": (eigenskin_writer, "SupportRecord", 1),
    "drivers": (eigenskin_drivers, "_fill", 5),
    "groups": (eigenskin_writer, "write_weights", 0),
    "fingerprints": (eigenskin_writer, "fingerprint", 1),
    "preserve volume": (eigenskin_writer, "_turn_preserve_volume_off", 0),
}

# Of these a rebuild has begun to take the old one away.
LATE_STEPS = {
    "first name": (eigenskin_writer, "_free_name", 0),
    "a key's name": (eigenskin_writer, "_free_name", 1),
    "a normal's name": (eigenskin_writer, "_free_name", 5),
    "all names": (eigenskin_writer, "_name_all", 0),
}
REPLACING_STEPS = {
    "kept settings": (eigenskin_writer, "_KeptOfKeys", 0),
    "keyframes": (eigenskin_writer, "take_keyframes_away", 0),
    "taking away": (eigenskin_writer, "_take_away", 0),
    **LATE_STEPS,
}


class Failing:
    """Does what ``function`` does, and fails after so many calls."""

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


# --- Taking away


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
    # Nothing in the file keeps what was made.
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


def test_muting(rigged):
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


# --- Rebuilding


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
def test_rebuilding_what_was_spoilt(rigged, spoil):
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


def test_what_refers_to_the_keys_still_does(rigged):
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
    # A rebuild keeps it, whatever core makes of it; so does one that has no such support.
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
    # Deleted, it is made anew.
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
    """Only what was painted before can be told from what the edit did."""
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


# --- Copies and libraries


def test_objects_with_one_mesh_and_one_armature(rigged):
    ob, rig, joints = rigged
    other = scenes.link(bpy.data.objects.new("Twin", ob.data))
    modifier = other.modifiers.new("Armature 2", "ARMATURE")
    modifier.object, modifier.use_deform_preserve_volume = rig, True
    before = snapshot(ob), snapshot(other)
    model = any_model(joints)
    write_eigenskin(ob, rig, joints, model)
    assert not modifier.use_deform_preserve_volume
    models.turn_at_random(rig, np.random.default_rng(0))
    for shown in (ob, other):
        np.testing.assert_allclose(models.shown_values(shown), models.expected_values(ob, joints, model), atol=1e-5)
    models.turn(rig, dict.fromkeys(joints.joint_names, (1, 0, 0, 0)))
    remove_eigenskin(other)
    assert (snapshot(ob), snapshot(other)) == before


def test_a_copied_character_follows_its_own_armature(rigged):
    ob, rig, joints = rigged
    model = any_model(joints)
    write_eigenskin(ob, rig, joints, model)
    for each in (ob, rig):
        each.select_set(True)
    bpy.ops.object.duplicate()
    copies = {each.type: each for each in bpy.context.selected_objects}
    copy, copied_rig = copies["MESH"], copies["ARMATURE"]
    key = copy.data.shape_keys
    targets = {
        target.id for curve in key.animation_data.drivers for part in curve.driver.variables for target in part.targets
    }
    assert targets == {key, copied_rig}
    before = models.shown_values(ob)
    models.turn_at_random(copied_rig, np.random.default_rng(0))
    assert np.array_equal(models.shown_values(ob), before)
    shown = models.shown_values(copy)
    assert np.abs(shown - before).max() > 0.1
    np.testing.assert_allclose(shown, models.expected_values(copy, joints, model), atol=1e-5)
    before = snapshot(ob)
    remove_eigenskin(copy)
    assert copy.data.shape_keys is None
    assert {**snapshot(ob), "file": None} == {**before, "file": None}


def test_linked_characters_play_with_a_library_override(rigged, tmp_path):
    ob, rig, joints = rigged
    model = any_model(joints)
    write_eigenskin(ob, rig, joints, model)
    collection = bpy.data.collections.new("Character")
    for each in (ob, rig):
        collection.objects.link(each)
    path = str(tmp_path / "character.blend")
    bpy.data.libraries.write(path, {collection}, fake_user=True)
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.collections = ["Character"]
    instance = scenes.link(bpy.data.objects.new("Character", None))
    instance.instance_type, instance.instance_collection = "COLLECTION", wanted.collections[0]
    # The linked mesh itself cannot be written to.
    linked = wanted.collections[0].objects["Limb"]
    with pytest.raises(BadScene, match="linked from another file"):
        write_eigenskin(linked, wanted.collections[0].objects["Limb rig"], joints, model)
    with pytest.raises(BadScene, match="linked"):
        remove_eigenskin(linked)
    context = bpy.context
    override = wanted.collections[0].override_hierarchy_create(context.scene, context.view_layer, reference=instance)
    own = {each.type: each for each in override.all_objects}
    models.turn_at_random(own["ARMATURE"], np.random.default_rng(0))
    expected = models.expected_values(own["MESH"], joints, model)
    np.testing.assert_allclose(models.shown_values(own["MESH"]), expected, atol=1e-5)
    assert np.abs(expected).max() > 0.1
    with pytest.raises(BadScene, match="library override"):
        write_eigenskin(own["MESH"], own["ARMATURE"], joints, model)


def test_a_saved_file_is_removed_from_as_well(rigged, tmp_path):
    ob, rig, joints = rigged
    before = snapshot(ob)
    model = any_model(joints)
    write_eigenskin(ob, rig, joints, model)
    ob.vertex_groups["lower support"].add([3], 0.5, "REPLACE")
    painted = painted_masks(ob)["lower"]
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "limb.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "limb.blend"))
    ob, rig = bpy.data.objects["Limb"], bpy.data.objects["Limb rig"]
    assert list(painted_masks(ob)) == ["lower"]
    assert np.array_equal(painted_masks(ob)["lower"], painted)
    remove_eigenskin(ob)
    after = snapshot(ob)
    # Blender's own.
    assert {**after, "file": None} == {**before, "file": None}


def weights_of(ob, name: str) -> np.ndarray:
    index = ob.vertex_groups[name].index
    entries = [{entry.group: entry.weight for entry in vertex.groups} for vertex in ob.data.vertices]
    return np.array([entry.get(index, 0.0) for entry in entries], np.float32)
