# SPDX-License-Identifier: GPL-3.0-or-later
"""Corrections as keyframes: they play and export as the drivers did, and the drivers come back."""

from dataclasses import replace

import bpy
import numpy as np
import pytest

from skinning_tools.blender import actions, background
from skinning_tools.core.errors import BadScene
from skinning_tools.features.eigenskin import bake as bake_module
from skinning_tools.features.eigenskin.bake import bake_to_keyframes, check_bakeable, unbake
from skinning_tools.features.eigenskin.examples import read_rig
from skinning_tools.features.eigenskin.record import eigenskin_record
from skinning_tools.features.eigenskin.writer import remove_eigenskin, write_eigenskin
from tests.blender import eigenskin_models as models
from tests.blender import refusals, scenes
from tests.blender.eigenskin_scenes import limb
from tests.blender.gltf_file import GltfFile
from tests.blender.snapshots import artists_keys, snapshot

FRAMES = range(3, 12)


@pytest.fixture
def moving():
    """The limb with corrections, moved by keyframes; its frames are FRAMES."""
    ob, rig = limb()
    joints, model, _ = models.corrected(ob, rig)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    for frame, angle in ((3, 0.0), (7, 1.2), (11, -1.4)):
        half, third = angle / 2, angle / 3
        models.turn(rig, {"lower": (np.cos(half), np.sin(half), 0, 0), "upper": (np.cos(third), 0, np.sin(third), 0)})
        for name in ("lower", "upper"):
            rig.pose.bones[name].keyframe_insert("rotation_quaternion", frame=frame)
    scene.frame_set(5)
    return ob, rig, joints, model


def bake(ob, **given):
    return background.drain(bake_to_keyframes(bpy.context, ob, **given))


def played(ob) -> np.ndarray:
    """(F, C) values at each of FRAMES."""
    scene = bpy.context.scene
    current = scene.frame_current
    found = []
    for number in FRAMES:
        scene.frame_set(number)
        found.append(models.shown_values(ob))
    scene.frame_set(current)
    return np.array(found)


def test_keyframes_have_the_drivers_values(moving):
    ob, rig, joints, model = moving
    expected, state = played(ob), scenes.ui_state()
    assert expected.min() < -0.1
    bpy.context.scene.frame_set(5)
    np.testing.assert_allclose(models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5)
    baked = bake(ob)
    assert (baked.shape_key_count, baked.frame_count, baked.action.name) == (9, 9, "Limb corrections")
    assert scenes.ui_state() == state
    assert eigenskin_record(ob).baked
    np.testing.assert_allclose(played(ob), expected, atol=1e-6)
    # Whatever the armature does.
    rig.animation_data_clear()
    models.turn_at_random(rig, np.random.default_rng(0))
    np.testing.assert_allclose(played(ob), expected, atol=1e-6)


def test_the_drivers_are_restored(moving):
    ob, rig, joints, model = moving
    before = snapshot(ob)
    bake(ob)
    assert snapshot(ob) != before
    unbake(ob)
    bpy.context.view_layer.update()
    assert snapshot(ob) == before
    rig.animation_data_clear()
    models.turn_at_random(rig, np.random.default_rng(0))
    np.testing.assert_allclose(models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5)
    with pytest.raises(BadScene, match="not baked"):
        unbake(ob)


def test_baking_again_takes_the_present_motion(moving):
    ob, rig, _, _ = moving
    bake(ob)
    before = played(ob)
    pose = rig.pose.bones["lower"]
    pose.rotation_quaternion = (0.7, -0.7, 0, 0)
    pose.keyframe_insert("rotation_quaternion", frame=7)
    baked = bake(ob, frame_start=5, frame_end=9, frame_step=2)
    assert (baked.frame_count, baked.action.name) == (3, "Limb corrections")
    assert len(bpy.data.actions) == 2
    after = played(ob)
    assert np.abs(after - before)[4].max() > 0.1
    unbake(ob)
    np.testing.assert_allclose(played(ob)[[2, 4, 6]], after[[2, 4, 6]], atol=1e-6)
    assert len(bpy.data.actions) == 1


def test_stretched_time(moving):
    ob, _, _, _ = moving
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = 100, 200
    expected = played(ob)
    assert np.abs(expected).max() > 0.1
    bake(ob)
    np.testing.assert_allclose(played(ob), expected, atol=1e-6)


def test_an_action_of_the_artist_stays(moving):
    ob, rig, joints, model = moving
    remove_eigenskin(ob)
    artists_keys(ob, rig)
    before = snapshot(ob)
    write_eigenskin(ob, rig, joints, model)
    bpy.context.view_layer.update()
    written = snapshot(ob)
    expected = played(ob)
    action = ob.data.shape_keys.animation_data.action
    baked = bake(ob)
    assert baked.action == action
    np.testing.assert_allclose(played(ob), expected, atol=1e-6)
    bpy.context.scene.frame_set(5)
    assert ob.data.shape_keys.key_blocks["upper 1"].value == pytest.approx(0.55, abs=0.1)
    unbake(ob)
    assert snapshot(ob) == written
    bake(ob)
    remove_eigenskin(ob)
    assert snapshot(ob) == before


def test_any_name(moving):
    ob, rig, _, model = moving
    remove_eigenskin(ob)
    before = snapshot(ob)
    name = 'a"b\\]["c'
    rig.data.bones["lower"].name = name
    supports = tuple(replace(part, name=part.name.replace("lower", name)) for part in model.supports)
    joints = read_rig(bpy.context, ob)[1]
    write_eigenskin(ob, rig, joints, replace(model, joint_names=joints.joint_names, supports=supports))
    expected = played(ob)
    assert bake(ob).shape_key_count == 9
    np.testing.assert_allclose(played(ob), expected, atol=1e-6)
    unbake(ob)
    np.testing.assert_allclose(played(ob), expected, atol=1e-6)
    bake(ob)
    remove_eigenskin(ob)
    rig.data.bones[name].name = "lower"
    assert snapshot(ob) == before


@pytest.mark.parametrize("end", ["remove", "rebuild"])
def test_removing_and_rebuilding_drop_the_keyframes(moving, end):
    ob, rig, joints, model = moving
    bake(ob)
    if end == "remove":
        remove_eigenskin(ob)
        assert ob.data.shape_keys is None
    else:
        write_eigenskin(ob, rig, joints, model)
        assert not eigenskin_record(ob).baked
        rig.animation_data_clear()
        models.turn_at_random(rig, np.random.default_rng(0))
        np.testing.assert_allclose(models.shown_values(ob), models.expected_values(ob, joints, model), atol=1e-5)
    assert "Limb corrections" not in bpy.data.actions


@pytest.mark.parametrize("steps", [1, 4, 9])
@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_cancelling_leaves_all_as_it_was(moving, steps, again):
    ob, _, _, _ = moving
    if again:
        bake(ob)
    before, values = snapshot(ob), played(ob)
    running = bake_to_keyframes(bpy.context, ob)
    for _ in range(steps):
        next(running)
    running.close()
    bpy.context.view_layer.update()
    assert snapshot(ob) == before
    np.testing.assert_allclose(played(ob), values, atol=1e-6)


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_a_failure_leaves_all_as_it_was(moving, monkeypatch, again):
    ob, rig, _, _ = moving
    if again:
        bake(ob, frame_step=2)
        rig.pose.bones["lower"].keyframe_insert("rotation_quaternion", frame=7)
    before, values, baked = snapshot(ob), played(ob), eigenskin_record(ob)
    write, left = bake_module.actions.write_channels, [2]

    def failing(*args):
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError
        write(*args)

    monkeypatch.setattr(bake_module.actions, "write_channels", failing)
    with pytest.raises(MemoryError):
        bake(ob)
    bpy.context.view_layer.update()
    assert snapshot(ob) == before
    assert eigenskin_record(ob) == baked
    np.testing.assert_allclose(played(ob), values, atol=1e-6)


def no_corrections(ob):
    remove_eigenskin(ob)
    return "has no EigenSkin"


def hidden(ob):
    ob.hide_set(True)
    return "HIDDEN"


def keyframes_below_the_driver(ob):
    block = ob.data.shape_keys.key_blocks["lower 2"]
    block.keyframe_insert("value", frame=1)
    return 'already has keyframes of key_blocks["lower 2"].value'


def strip_being_edited(ob):
    key = ob.data.shape_keys
    key.animation_data_create()
    block = ob.shape_key_add(name="Mine", from_mix=False)
    block.keyframe_insert("value", frame=1)
    animation = key.animation_data
    track = animation.nla_tracks.new()
    track.strips.new("Strip", 1, animation.action)
    animation.action = None
    track.select = True
    track.strips[0].select = True
    animation.use_tweak_mode = True
    assert animation.use_tweak_mode
    return "TWEAK_MODE"


@pytest.mark.parametrize(
    "prepare", [no_corrections, hidden, keyframes_below_the_driver, strip_being_edited], ids=lambda f: f.__name__
)
def test_what_cannot_be_baked_is_refused(moving, prepare):
    ob, _, _, _ = moving
    message = prepare(ob)
    before = snapshot(ob)
    with refusals.raises_unmet(message):
        bake(ob)
    assert snapshot(ob) == before


@pytest.mark.parametrize("baked", [False, True])
def test_asking_changes_nothing(moving, baked):
    """An action may have a slot, and nothing in it yet."""
    ob, _, _, _ = moving
    key = ob.data.shape_keys
    action = actions.new_action(key, "Empty")
    if baked:
        bake(ob)
        action.layers.remove(action.layers[0]) if hasattr(action, "layers") else action.fcurves.clear()
    check_bakeable(bpy.context, ob)
    assert not len(action.layers if hasattr(action, "layers") else action.fcurves)


def test_ranges_without_frames(moving):
    ob, _, _, _ = moving
    for given, message in (({"frame_step": 0}, "at least 1"), ({"frame_start": 9, "frame_end": 5}, "RANGE_REVERSED")):
        with refusals.raises_unmet(message):
            bake(ob, **given)


def test_export_has_the_weights(moving, tmp_path):
    """Negative ones too, in one animation with the bones where all active actions are exported together."""
    ob, _, _, _ = moving
    expected = played(ob)
    bake(ob)
    path = tmp_path / "limb.glb"
    bpy.ops.export_scene.gltf(filepath=str(path), export_animation_mode="ACTIVE_ACTIONS")
    file = GltfFile.read(path)
    (animation,) = file.content["animations"]
    channels = {
        channel["target"]["path"]: animation["samplers"][channel["sampler"]] for channel in animation["channels"]
    }
    assert set(channels) >= {"rotation", "weights"}
    weights = file.accessor(channels["weights"]["output"]).reshape(-1, 9)
    (mesh,) = file.content["meshes"]
    assert mesh["extras"]["targetNames"] == [
        f"{name} {number}" for name, count in (("upper", 6), ("lower", 3)) for number in range(1, count + 1)
    ]
    np.testing.assert_allclose(weights[-len(expected) :], expected, atol=1e-6)
    assert weights.min() < -0.1
