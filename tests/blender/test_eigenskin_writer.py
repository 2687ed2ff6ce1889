# SPDX-License-Identifier: GPL-3.0-or-later
"""An EigenSkin on a mesh: it corrects like core, keeps existing data, and follows copies and libraries."""

from dataclasses import replace

import bpy
import numpy as np
import pytest

from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.core.deform import skin_frame
from skinning_tools.features.eigenskin.record import eigenskin_record
from skinning_tools.features.eigenskin.writer import remove_eigenskin, write_eigenskin
from tests.blender import eigenskin_models as models
from tests.blender import refusals, scenes
from tests.blender.eigenskin_models import any_model, weights_of
from tests.blender.eigenskin_scenes import pose
from tests.blender.snapshots import artists_keys, snapshot

# Writing


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
    expected[model.supports[1].normals.vertices] = model.supports[1].normals.components[1]
    np.testing.assert_allclose([entry.vector for entry in attribute.data], expected, atol=1e-7)


def test_existing_keys_and_drivers_do_not_change(rigged):
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


def test_preserve_volume_is_restored_where_it_was(rigged):
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


# Copies and libraries


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
    with refusals.raises_unmet("LINKED"):
        write_eigenskin(linked, wanted.collections[0].objects["Limb rig"], joints, model)
    with refusals.raises_unmet("LINKED"):
        remove_eigenskin(linked)
    context = bpy.context
    override = wanted.collections[0].override_hierarchy_create(context.scene, context.view_layer, reference=instance)
    own = {each.type: each for each in override.all_objects}
    models.turn_at_random(own["ARMATURE"], np.random.default_rng(0))
    expected = models.expected_values(own["MESH"], joints, model)
    np.testing.assert_allclose(models.shown_values(own["MESH"]), expected, atol=1e-5)
    assert np.abs(expected).max() > 0.1
    with refusals.raises_unmet("OVERRIDDEN"):
        write_eigenskin(own["MESH"], own["ARMATURE"], joints, model)
