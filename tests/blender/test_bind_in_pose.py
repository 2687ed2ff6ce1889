# SPDX-License-Identifier: GPL-3.0-or-later
"""bpy.ops.skinning.bind with in_pose: nothing moves in the pose, and the rest shape is the pose's."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.features.bind import in_pose
from skinning_tools.features.bind.bind import bind, bind_record, check_bindable
from skinning_tools.features.bind.in_pose import seen_positions
from skinning_tools.features.bind.panel import SKINNING_PT_bind
from skinning_tools.features.bind.settings import BindSettings
from tests.blender import command_runs, moving_meshes, panel_recorder, refusals, scenes
from tests.blender.binding_scenes import activate, binding_of, bound, check_bound, cube, every_method, tube, weights_of
from tests.blender.posed_scenes import POSE, SINGLE, bound_in_pose, closeness, modeled, shapes_of, twisted

pytestmark = pytest.mark.usefixtures("extension")


def refused(*parts: str, **given) -> None:
    """The operator fails with a text that has ``parts``, and changes nothing, no position either."""

    def state():
        shapes = [[shape.tolist() for shape in shapes_of(ob)] for ob in bpy.data.objects if ob.type == "MESH"]
        return moving_meshes.state(), [binding_of(ob) for ob in bpy.data.objects], shapes

    refusals.refused("bind", *parts, state=state, in_pose=True, **given)


# The pose and the rest shape


@every_method
def test_nothing_moves_in_the_pose_and_the_rest_shape_follows(method, capfd):
    ob, rig, straight = modeled()
    world, bent = np.array(ob.matrix_world), shapes_of(ob)[0]
    bound_in_pose(ob, method=method)
    check_bound(ob, rig, 1 if method == "RIGID" else 4)
    np.testing.assert_allclose(np.array(ob.matrix_world), world, atol=1e-6)
    record = bind_record(ob)
    assert len(record.moved) == 1
    assert record.moved[0] < SINGLE
    assert "largest movement in the pose" in capfd.readouterr().out
    bpy.context.scene.frame_set(1)
    rest = scenes.evaluated_positions(ob)
    np.testing.assert_allclose(rest, shapes_of(ob)[0], atol=SINGLE)
    # The pose was made with weights that no method knows.
    assert closeness(ob, straight, bent) < 0.25


def test_in_the_rest_pose_it_is_plain_binding():
    ob, rig = tube(4, rings=17, segments=8)
    bound()
    plain, shape = weights_of(ob, rig), shapes_of(ob)[0]
    ob, rig = tube(4, rings=17, segments=8)
    bpy.context.scene.frame_set(1)
    bound_in_pose(ob)
    np.testing.assert_allclose(weights_of(ob, rig), plain, atol=1e-4)
    np.testing.assert_allclose(shapes_of(ob)[0], shape, atol=SINGLE)


def test_several_skins_have_poses_of_their_own():
    """On one skeleton: the first is bound at frame 8, the other at frame 4, and both are right in both poses."""
    arm, rig, _ = modeled()
    bound_in_pose(arm)
    there = scenes.world_positions(arm)
    sleeve, _, straight = modeled(4, "Sleeve", rig)
    bent = shapes_of(sleeve)[0]
    bound_in_pose(sleeve, arm, armature="Rig")
    assert closeness(sleeve, straight, bent) < 0.25
    bpy.context.scene.frame_set(POSE)
    np.testing.assert_allclose(scenes.world_positions(arm), there, atol=SINGLE)


def test_meshes_bound_together_stay_together():
    ob, rig, _ = modeled()
    box = cube("Box", (1.5, -0.2, 0.5))
    activate(rig, ob, box)
    bound_in_pose(ob, box)
    assert bind_record(box).moved[0] < SINGLE


@pytest.mark.parametrize("scale", [(3, 3, 3), (2, 1, 0.5), (-1, 1, 1)])
def test_a_scaled_armature(scale):
    ob, rig, _ = modeled()
    rig.scale = scale
    rig.data.transform(Matrix.Diagonal((*scale, 1)).inverted())
    bpy.context.view_layer.update()
    bound_in_pose(ob)


def test_shape_keys_follow_with_values_and_drivers():
    ob, _, _ = modeled()
    first, second = scenes.shape_keys(ob, 2)
    second.relative_key = first
    first.value, second.value = 0.7, -0.3
    second.slider_min = -1
    second.value = -0.3
    curve = second.driver_add("slider_max")
    curve.driver.expression = "2.0"
    first.value = second.value = 0
    bpy.context.view_layer.update()
    unmixed = scenes.world_positions(ob)
    first.value, second.value = 0.7, -0.3
    bpy.context.view_layer.update()
    bound_in_pose(ob)
    keys = ob.data.shape_keys
    assert [block.name for block in keys.key_blocks] == ["Basis", "Key 1", "Key 2"]
    assert keys.animation_data.drivers[0].driver.expression == "2.0"
    assert [block.value for block in keys.key_blocks[1:]] == pytest.approx([0.7, -0.3])
    assert second.relative_key == first
    mesh, basis, *_ = shapes_of(ob)
    np.testing.assert_allclose(mesh, basis, atol=SINGLE)
    # Bound with the keys mixed, it stays as well where they are off.
    first.value = second.value = 0
    bpy.context.view_layer.update()
    np.testing.assert_allclose(scenes.world_positions(ob), unmixed, atol=SINGLE)


def test_a_mesh_that_follows_the_armature_stays_where_it_is_seen():
    """With Replace it is bound anew where its present weights have taken it."""
    ob, rig = tube(4, rings=17, segments=8)
    bound(method="RIGID")
    bpy.context.scene.frame_set(POSE)
    bound_in_pose(ob, replace=True, method="POINT_TO_LINE")
    assert (weights_of(ob, rig) > 0).sum(axis=1).max() > 1


def test_kept_vertices_keep_their_rest_position_exactly():
    ob, _ = tube(4, rings=17, segments=8)
    bound()
    for group in ob.vertex_groups:
        group.remove(range(40))
    bpy.context.scene.frame_set(POSE)
    before = shapes_of(ob)[0]
    bound_in_pose(ob)
    after = shapes_of(ob)[0]
    np.testing.assert_array_equal(after[40:], before[40:])
    assert np.abs(after[:40] - before[:40]).max() > 0.01


def test_a_mesh_whose_vertices_all_keep_their_weights_does_not_move_either():
    ob, rig, _ = modeled()
    done = cube("Done", (1.5, -0.2, 0.5))
    done.vertex_groups.new(name="Bone 1").add(range(8), 1.0, "REPLACE")
    activate(rig, ob, done)
    bound_in_pose(ob, done)
    assert [modifier.object for modifier in done.modifiers] == [rig]
    activate(done)
    refused("Enable Replace", armature="Rig")


def test_a_deforming_parent_and_modifiers_after_the_armature():
    ob, rig, _ = modeled()
    ob.modifiers.new("Subdivision", "SUBSURF")
    bound_in_pose(ob)
    assert [modifier.type for modifier in ob.modifiers] == ["ARMATURE", "SUBSURF"]
    ob, rig, _ = modeled()
    scenes.deforming_parent(ob, rig)
    # Before it has weights, such a parent moves vertices by envelopes.
    refused("by more than its weights", 'object "Arm"')
    for bone in rig.data.bones:
        bone.envelope_weight = 0
        bone.envelope_distance = bone.head_radius = bone.tail_radius = 0
    bpy.context.view_layer.update()
    bound_in_pose(ob)


def test_locked_groups_stay():
    ob, rig, _ = modeled()
    group = ob.vertex_groups.new(name="Bone 1")
    group.add(range(30, 60), 0.25, "REPLACE")
    group.lock_weight = True
    bound_in_pose(ob, replace=True)
    np.testing.assert_allclose(weights_of(ob, rig)[30:60, 1], 0.25, atol=1e-6)


def test_volumes_count_where_the_pose_takes_them():
    """What a volume holds at rest, it holds in the pose as well, up to the blends at the joints."""
    ob, rig, straight = modeled(curl=0.9)
    bent = shapes_of(ob)[0]
    ob.data.vertices.foreach_set("co", straight.astype(np.float32).ravel())
    bpy.ops.skinning.generate_volumes(armature="Rig")
    bound(method="CONTAINMENT", armature="Rig")
    at_rest = weights_of(ob, rig).argmax(axis=1)
    ob.modifiers.clear()
    ob.data.vertices.foreach_set("co", bent.astype(np.float32).ravel())
    bpy.context.view_layer.update()
    bound_in_pose(ob, method="CONTAINMENT", armature="Rig", replace=True)
    same = (weights_of(ob, rig).argmax(axis=1) == at_rest).mean()
    # Volumes left at rest hold a third of the vertices that they held.
    assert same > 0.65


def test_objects_parented_to_bones_stay():
    ob, rig, _ = modeled()
    box = cube("Box", (1.5, -0.2, 0.5))
    activate(rig, ob, box)
    bound_in_pose(ob, box, method="RIGID", as_objects=True)
    assert {each.parent_type for each in (ob, box)} == {"BONE"}


# Blends that collapse


def test_vertices_whose_blend_collapses_are_named_and_follow_one_bone(capfd):
    ob, rig = twisted()
    bound_in_pose(ob, method="POINT_TO_LINE")
    said = capfd.readouterr().out
    assert "alone, since blends collapse in this pose: vertex" in said
    first = int(said.split("in this pose: vertex ")[1].split(",")[0].split()[0])
    assert weights_of(ob, rig)[first].max() == 1


def test_vertices_that_must_keep_collapsing_weights_are_refused():
    ob, _ = twisted()
    for name in ("Bone 0", "Bone 1"):
        ob.vertex_groups.new(name=name).add([5], 0.5, "REPLACE")
    refused("cancel each other out", "vertex 5", 'object "Arm"')
    bound_in_pose(ob, replace=True)


# What it refuses


def hidden(ob, rig):
    rig.hide_set(True)


def at_rest(ob, rig):
    rig.data.pose_position = "REST"


def shared(ob, rig):
    scenes.link(bpy.data.objects.new("Twin", ob.data))
    activate(ob)


def bendy(ob, rig):
    rig.data.bones["Bone 1"].bbone_segments = 4


def multiplied(ob, rig):
    rig.data.bones["Bone 2"].use_envelope_multiply = True


def preserving(ob, rig):
    modifier = ob.modifiers.new("Bones", "ARMATURE")
    modifier.object, modifier.use_deform_preserve_volume = rig, True


def enveloped(ob, rig):
    modifier = ob.modifiers.new("Bones", "ARMATURE")
    modifier.object, modifier.use_vertex_groups = rig, False


def masked(ob, rig):
    ob.vertex_groups.new(name="Part")
    modifier = ob.modifiers.new("Bones", "ARMATURE")
    modifier.object, modifier.vertex_group = rig, "Part"


def cast_before(ob, rig):
    ob.modifiers.new("Round", "CAST")


def mirror_before(ob, rig):
    ob.modifiers.new("Halves", "MIRROR")


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (hidden, ['HIDDEN "Rig"']),
        (at_rest, ['ARMATURE_AT_REST "Rig"']),
        (shared, ['MESH_SHARED "Arm"', '"Twin"']),
        (bendy, ["Bone 1", "Segments to 1"]),
        (multiplied, ["Bone 2", "Envelope Multiply"]),
        (preserving, ['PRESERVES_VOLUME "Bones"']),
        (enveloped, ["does not use vertex groups"]),
        (masked, ['its vertex group "Part"']),
        (cast_before, ["Round", "Apply them"]),
        (mirror_before, ["Halves", "Apply them"]),
    ],
)
def test_what_cannot_be_bound_in_a_pose_is_named(change, parts):
    ob, rig, _ = modeled()
    change(ob, rig)
    refused(*parts, armature="Rig")


def test_a_modifier_that_is_off_does_not_count():
    ob, rig, _ = modeled()
    ob.modifiers.new("Round", "CAST").show_viewport = False
    preserving(ob, rig)
    ob.modifiers["Bones"].use_deform_preserve_volume = False
    ob.modifiers["Bones"].show_viewport = False
    bound_in_pose(ob)
    assert ob.modifiers["Bones"].show_viewport


# All or nothing


def test_cancelled_it_leaves_nothing():
    ob, _, _ = modeled()
    before = scenes.data_blocks(), binding_of(ob), shapes_of(ob)[0].tolist()
    steps = bind(bpy.context, check_bindable(bpy.context), BindSettings(in_pose=True))
    next(steps)
    steps.close()
    assert (scenes.data_blocks(), binding_of(ob), shapes_of(ob)[0].tolist()) == before


def test_a_pose_changed_meanwhile():
    modeled()
    steps = bind(bpy.context, check_bindable(bpy.context), BindSettings(in_pose=True))
    next(steps)
    bpy.context.scene.frame_set(4)
    with refusals.raises_unmet('EDITED "Rig"'):
        scenes.drain(steps)


def test_one_undo_step():
    ob, _, _ = modeled()
    bent = shapes_of(ob)[0]
    bpy.ops.ed.undo_push(message="before")
    bound(in_pose=True)
    bpy.ops.ed.undo_push(message="bound")
    bpy.ops.ed.undo()
    ob = bpy.data.objects["Arm"]
    assert not ob.vertex_groups
    np.testing.assert_array_equal(shapes_of(ob)[0], bent)


def test_a_failed_measurement_leaves_a_whole_binding(monkeypatch, capfd):
    """The copies are evaluated when all is written: without memory for them, only the figure is missing."""
    ob, rig, _ = modeled()
    before, calls = scenes.world_positions(ob), []

    def without_memory(*given):
        calls.append(given)
        if len(calls) > 2:
            raise MemoryError("none left")
        return seen_positions(*given)

    monkeypatch.setattr(in_pose, "seen_positions", without_memory)
    bound(in_pose=True)
    assert len(calls) == 3
    check_bound(ob, rig, 4)
    np.testing.assert_allclose(scenes.world_positions(ob), before, atol=SINGLE)
    assert bind_record(ob).moved == ()
    assert "could not be measured (MemoryError: none left)" in capfd.readouterr().out


# Panel and command line


def test_the_panel_has_the_setting_and_says_why_not():
    _, rig, _ = modeled()
    bpy.context.scene.skinning_bind.in_pose = True
    drawn = panel_recorder.drawn(SKINNING_PT_bind)
    assert "in_pose" in drawn.properties
    assert drawn.buttons["Bind"].layout.active
    rig.data.pose_position = "REST"
    assert not panel_recorder.drawn(SKINNING_PT_bind).buttons["Bind"].layout.active
    bpy.context.scene.skinning_bind.in_pose = False
    assert panel_recorder.drawn(SKINNING_PT_bind).buttons["Bind"].layout.active


def test_the_command_line_binds_in_the_pose_of_the_file(tmp_path, capsys):
    ob, _, _ = modeled()
    before = scenes.world_positions(ob)
    path = tmp_path / "posed.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert command_runs.run("bind", "--object", "Arm", "--in-pose", "--overwrite", "--quiet") == 0
    assert "Largest movement in the pose" in capsys.readouterr().out
    bpy.ops.wm.open_mainfile(filepath=str(path))
    np.testing.assert_allclose(scenes.world_positions(bpy.data.objects["Arm"]), before, atol=SINGLE)
