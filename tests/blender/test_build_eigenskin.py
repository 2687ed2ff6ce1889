# SPDX-License-Identifier: GPL-3.0-or-later
"""Build EigenSkin: the operator's results, their error in Blender's own evaluation, and bad input."""

from functools import partial

import bpy
import numpy as np
import pytest

from skinning_tools.blender import background
from skinning_tools.blender.error_display import COLOR_ATTRIBUTE
from skinning_tools.core.deform import skin_frame
from skinning_tools.features.eigenskin import build as build_module
from skinning_tools.features.eigenskin.build import ERROR_AFTER, ERROR_BEFORE
from skinning_tools.features.eigenskin.examples import current_pose, read_rig
from skinning_tools.features.eigenskin.record import eigenskin_record, own_keys
from tests.blender import eigenskin_scenes, refusals, scenes
from tests.blender.snapshots import snapshot

pytestmark = pytest.mark.usefixtures("extension")


def build(**given):
    return bpy.ops.skinning.build_eigenskin(**given)


refused = partial(refusals.refused, build, state=lambda: snapshot(bpy.data.objects["Limb"]))


def misses(ob) -> tuple[float, float]:
    """Root mean square distance of the mesh as Blender shows it, and of linear blending, from dual quaternions."""
    skin, rig = read_rig(bpy.context, ob)
    _, matrices = current_pose(skin, rig, bpy.context.evaluated_depsgraph_get())
    target, plain = (skin_frame(skin.rest, skin.bones, skin.weights, matrices, method) for method in ("DQS", "LBS"))
    shown = scenes.evaluated_positions(ob)
    return tuple(float(np.sqrt(np.mean(np.sum((points - target) ** 2, axis=1)))) for points in (shown, plain))


def test_blender_itself_comes_as_near_as_the_panel_says(limb):
    ob, rig = limb
    assert build(components=2) == {"FINISHED"}
    for item, turn in zip(rig.skinning_eigenskin.examples, eigenskin_scenes.POSES, strict=True):
        eigenskin_scenes.pose(rig, [turn])
        after, before = misses(ob)
        assert item.error_before == pytest.approx(before, rel=1e-3)
        assert item.error_after == pytest.approx(after, rel=1e-3, abs=1e-6)
        assert item.error_after < item.error_before
        assert 0 <= item.worst_vertex < len(ob.data.vertices)
        assert item.worst_distance >= item.error_after


def test_all_components_meet_every_example(limb):
    ob, rig = limb
    build(components=6, support_threshold=0.0, max_per_vertex=100)
    for turn in eigenskin_scenes.POSES:
        eigenskin_scenes.pose(rig, [turn])
        after, before = misses(ob)
        assert after < 1e-3 * before


def test_poses_between_the_examples(limb):
    ob, rig = limb
    build(components=5)
    left = []
    for degrees in np.random.default_rng(0).uniform(-90, 90, 25):
        eigenskin_scenes.pose(rig, [("lower", "X", float(degrees))])
        left.append(misses(ob))
    after, before = np.linalg.norm(left, axis=0)
    assert after < 0.25 * before


def test_by_default_the_joint_decides_how_many_shape_keys_it_gets(limb):
    """Three for the hinge; ten for the ball, but six examples have only six components."""
    ob, _ = limb
    build()
    record = eigenskin_record(ob)
    assert [(support.name, support.count) for support in record.supports] == [("upper", 6), ("lower", 3)]
    assert all(0.99 < support.captured[support.count - 1] <= 1 for support in record.supports)
    assert [key.name for key in own_keys(ob.data, record)] == [
        f"{name} {number}" for name, count in (("upper", 6), ("lower", 3)) for number in range(1, count + 1)
    ]


def test_budget_goes_where_it_is_needed(limb):
    ob, _ = limb
    build(budget=4)
    assert len(own_keys(ob.data, eigenskin_record(ob))) == 4


def test_rebuilding_replaces(limb):
    ob, _ = limb
    build(components=3)
    build(components=1)
    assert [key.name for key in ob.data.shape_keys.key_blocks] == ["Basis", "upper 1", "lower 1"]


def test_changed_weights_are_taken_up(limb):
    """The final shape is stored with its pose, so that it stays the target."""
    ob, rig = limb
    turn = ("lower", "X", 60)
    eigenskin_scenes.pose(rig, [turn])
    build(components=6, support_threshold=0.0, max_per_vertex=100)
    wanted = scenes.evaluated_positions(ob)
    eigenskin_scenes.pose(rig)
    group = ob.vertex_groups["upper"]
    group.add(range(0, 60), 0.3, "REPLACE")
    build(components=6, support_threshold=0.0, max_per_vertex=100)
    eigenskin_scenes.pose(rig, [turn])
    assert np.abs(scenes.evaluated_positions(ob) - wanted).max() < 1e-4


def test_heat_map_has_one_scale(limb):
    ob, _ = limb
    build()
    errors = {}
    for name in (ERROR_BEFORE, ERROR_AFTER):
        errors[name] = np.empty(len(ob.data.vertices), np.float32)
        ob.data.attributes[name].data.foreach_get("value", errors[name])
    assert errors[ERROR_AFTER].max() < errors[ERROR_BEFORE].max()
    colors = {}
    for shown in ("BEFORE", "AFTER"):
        bpy.ops.skinning.show_eigenskin_error(shown=shown)
        values = np.empty((len(ob.data.vertices), 4), np.float32)
        ob.data.color_attributes[COLOR_ATTRIBUTE].data.foreach_get("color", values.ravel())
        colors[shown] = values
    worst = int(np.argmax(errors[ERROR_BEFORE]))
    np.testing.assert_allclose(colors["BEFORE"][worst], (1, 0, 0, 1), atol=1e-3)
    assert colors["AFTER"][:, 0].max() < 0.5
    bpy.ops.skinning.show_eigenskin_error(shown="OFF")
    assert COLOR_ATTRIBUTE not in ob.data.color_attributes


def test_removing_leaves_nothing_but_the_examples(limb):
    ob, rig = limb
    ob.data.color_attributes.new("Paint", "FLOAT_COLOR", "POINT")
    ob.data.attributes.active_color = ob.data.attributes["Paint"]
    before = snapshot(ob)
    build()
    bpy.ops.skinning.show_eigenskin_error(shown="AFTER")
    assert bpy.ops.skinning.remove_eigenskin() == {"FINISHED"}
    assert snapshot(ob) == before
    assert ob.data.color_attributes.active_color.name == "Paint"
    items = rig.skinning_eigenskin.examples
    assert len(items) == len(eigenskin_scenes.POSES)
    assert all((item.error_before, item.error_after, item.worst_vertex) == (0, 0, -1) for item in items)


def test_errors_are_of_the_examples_that_were_used(limb):
    _, rig = limb
    build()
    items = rig.skinning_eigenskin.examples
    items[0].enabled = False
    build()
    assert (items[0].error_before, items[0].worst_vertex) == (0, -1)
    assert all(item.error_before > 0 for item in items[1:])


def test_muted_the_mesh_misses_its_examples_as_before_the_build(limb):
    ob, rig = limb
    build()
    eigenskin_scenes.pose(rig, [("lower", "X", 90)])
    after, before = misses(ob)
    bpy.ops.skinning.mute_eigenskin(mute=True)
    assert misses(ob)[0] == pytest.approx(before, rel=1e-4)
    bpy.ops.skinning.mute_eigenskin(mute=False)
    assert misses(ob)[0] == pytest.approx(after, rel=1e-4)


def test_from_the_armature(limb):
    ob, rig = limb
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    assert build() == {"FINISHED"}
    assert eigenskin_record(ob) is not None
    assert bpy.ops.skinning.remove_eigenskin() == {"FINISHED"}
    assert eigenskin_record(ob) is None


def test_one_undo_step(limb):
    ob, _ = limb
    bpy.ops.ed.undo_push(message="Examples")
    name = ob.name
    build()
    bpy.ops.ed.undo_push(message="Built")
    bpy.ops.ed.undo()
    assert eigenskin_record(bpy.data.objects[name]) is None
    assert bpy.data.objects[name].data.shape_keys is None
    bpy.ops.ed.redo()
    assert eigenskin_record(bpy.data.objects[name]) is not None


def test_cancelling_leaves_nothing(limb):
    ob, _ = limb
    before = snapshot(ob)
    steps = build_module.build(bpy.context, ob, components=3)
    next(steps)
    steps.close()
    assert snapshot(ob) == before
    assert eigenskin_record(ob) is None


def test_the_mesh_must_not_change_meanwhile(limb):
    ob, _ = limb
    steps = build_module.build(bpy.context, ob, components=3)
    next(steps)
    ob.data.vertices.add(1)
    with pytest.raises(build_module.BadScene, match="edited"):
        background.drain(steps)
    assert ob.data.shape_keys is None


def test_other_deformers_are_named(limb):
    ob, _ = limb
    ob.modifiers.new("Smoother", "CORRECTIVE_SMOOTH")
    built = background.drain(build_module.build(bpy.context, ob))
    assert any('"Smoother" still deforms the mesh' in note for note in built.notes)
    assert "Smoother" in built.summary()


def test_removed_keyframes_are_reported(limb):
    ob, _ = limb
    build()
    bpy.ops.skinning.bake_eigenskin(frame_start=1, frame_end=3)
    built = background.drain(build_module.build(bpy.context, ob))
    assert any("bake again" in note for note in built.notes)


def test_no_examples():
    eigenskin_scenes.limb()
    refused("has no examples")


def test_only_disabled_examples(limb):
    for item in limb[1].skinning_eigenskin.examples:
        item.enabled = False
    refused("disabled")


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"components": -1}, "Components"),
        ({"support_threshold": 1.0}, "threshold"),
        ({"max_per_vertex": 0}, "Max per Vertex"),
        ({"radius": -1.0}, "Radius"),
    ],
)
def test_settings_out_of_range(limb, given, part):
    refused(part, **given)


def test_examples_of_a_mesh_with_other_vertices(limb):
    limb[0].data.vertices.add(1)
    refused("vertices")


def test_absolute_shape_keys(limb):
    ob, _ = limb
    ob.shape_key_add(name="Basis")
    ob.data.shape_keys.use_relative = False
    refused("ABSOLUTE_KEYS")


def test_own_keys_and_drivers_are_kept(limb):
    ob, _ = limb
    ob.shape_key_add(name="Basis")
    smile = ob.shape_key_add(name="Smile")
    smile.driver_add("value").driver.expression = "0.25"
    build()
    assert list(ob.data.shape_keys.key_blocks.keys())[:2] == ["Basis", "Smile"]
    bpy.context.view_layer.update()
    assert ob.data.shape_keys.key_blocks["Smile"].value == pytest.approx(0.25)
    bpy.ops.skinning.remove_eigenskin()
    assert list(ob.data.shape_keys.key_blocks.keys()) == ["Basis", "Smile"]
    assert len(ob.data.shape_keys.animation_data.drivers) == 1


def test_two_examples_with_one_pose_do_not_crash(limb):
    ob, rig = limb
    items = rig.skinning_eigenskin.examples
    first = items[0].storage[items[0].uid]
    items[1].storage[items[1].uid] = first.to_dict()
    built = background.drain(build_module.build(bpy.context, ob))
    assert any("same pose" in note for note in built.notes)


def test_nothing_to_correct():
    ob, rig = eigenskin_scenes.limb()
    bpy.context.view_layer.objects.active = ob
    eigenskin_scenes.pose(rig, [("lower", "X", 50)])
    bpy.ops.skinning.eigenskin_add_example(source="EVALUATED")
    eigenskin_scenes.pose(rig)
    refused("nothing to correct")


def test_nothing_to_remove(limb):
    with pytest.raises(RuntimeError, match="no EigenSkin corrections"):
        bpy.ops.skinning.remove_eigenskin()
