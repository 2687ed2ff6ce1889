# SPDX-License-Identifier: GPL-3.0-or-later
"""Transfer Weights: sources and targets, kept weights, and refusals without a trace."""

from functools import partial

import bpy
import numpy as np
import pytest
from mathutils import Vector

from skinning_tools import command_line
from skinning_tools.blender.attributes import read_attribute
from skinning_tools.blender.background import drain
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.features.transfer.panel import SKINNING_PT_transfer_weights
from skinning_tools.features.transfer.transfer import ATTRIBUTE, STATES, transfer_chosen, transfer_record
from tests.blender import binding_scenes, moving_meshes, panel_recorder, refusals, scenes
from tests.blender.transfer_scenes import BONES, limb, sleeve, tube, weights_along

pytestmark = pytest.mark.usefixtures("extension")

transferred = partial(refusals.finished, "transfer_weights")
refused = partial(
    refusals.refused, "transfer_weights", state=lambda: [binding_scenes.binding_of(ob) for ob in bpy.data.objects]
)
# Of weights between the rings of the body.
CLOSE = 0.02


def stored(ob) -> np.ndarray:
    return binding_scenes.dense(ob, BONES)


def right(ob) -> np.ndarray:
    """The weights that the limb has beside each vertex."""
    return weights_along(np.array([vertex.co.x for vertex in ob.data.vertices]))


def test_clothes_get_the_weights_beside_them_and_the_armature():
    body, rig = limb()
    ob = sleeve()
    transferred(source="Body")
    assert np.abs(stored(ob) - right(ob)).max() < CLOSE
    assert [(m.type, m.object) for m in ob.modifiers] == [("ARMATURE", rig)]
    assert ob.parent == rig
    assert len(body.vertex_groups) == 3
    assert (read_attribute(ob.data, ATTRIBUTE) == STATES["MATCHED"]).all()
    assert transfer_record(ob).matched == len(ob.data.vertices)


def test_the_other_selected_mesh_is_the_source():
    body, _ = limb()
    ob = sleeve()
    body.select_set(True)
    transferred()
    assert np.abs(stored(ob) - right(ob)).max() < CLOSE


def test_all_selected_meshes_get_weights():
    limb()
    first, second = sleeve("First"), sleeve("Second", radius=0.9)
    binding_scenes.activate(first, second)
    transferred(source="Body")
    for ob in (first, second):
        assert np.abs(stored(ob) - right(ob)).max() < CLOSE


# What a mesh keeps


def bound_sleeve():
    """A sleeve whose vertices all follow the upper bone, but for the first ring, which no bone moves."""
    _, rig = limb()
    ob = sleeve()
    ob.vertex_groups.new(name="upper").add(list(range(16, len(ob.data.vertices))), 1.0, "REPLACE")
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    return ob


def test_only_empty_vertices_without_replace():
    ob = bound_sleeve()
    transferred(source="Body", replace=False)
    assert np.abs(stored(ob)[:16] - right(ob)[:16]).max() < CLOSE
    assert (stored(ob)[16:] == [1, 0, 0]).all()
    assert transfer_record(ob).kept == len(ob.data.vertices) - 16
    assert [m.type for m in ob.modifiers] == ["ARMATURE"]


def test_the_factor_and_a_vertex_group_limit_the_way():
    ob = bound_sleeve()
    half = ob.vertex_groups.new(name="Half")
    half.add(list(range(32, len(ob.data.vertices))), 0.5, "REPLACE")
    transferred(source="Body", vertex_group="Half", factor=0.5, max_influences=3)
    wanted = 0.75 * np.array([1.0, 0, 0]) + 0.25 * right(ob)
    assert np.abs(stored(ob)[32:] - wanted[32:]).max() < CLOSE
    assert (stored(ob)[16:32] == [1, 0, 0]).all()
    assert (stored(ob)[:16] == 0).all()


def test_an_inverted_vertex_group():
    ob = bound_sleeve()
    ob.vertex_groups.new(name="Kept").add(list(range(len(ob.data.vertices) - 16)), 1.0, "REPLACE")
    transferred(source="Body", vertex_group="Kept", invert_vertex_group=True)
    assert (stored(ob)[16:-16] == [1, 0, 0]).all()
    assert np.abs(stored(ob)[-16:] - right(ob)[-16:]).max() < CLOSE


def test_other_bones_share_what_chosen_ones_leave():
    ob = bound_sleeve()
    transferred(source="Body", groups="hand.L")
    hand = right(ob)[:, 2]
    assert np.abs(stored(ob)[16:, 2] - hand[16:]).max() < CLOSE
    assert np.allclose(stored(ob)[16:, 0], 1 - stored(ob)[16:, 2], atol=1e-6)
    assert (stored(ob)[:, 1] == 0).all()


def test_groups_may_come_one_after_another():
    limb()
    ob = sleeve()
    transferred(source="Body", groups="hand.L, middle")
    assert np.abs(stored(ob)[:, 1:] - right(ob)[:, 1:]).max() < CLOSE
    assert (stored(ob)[:, 0] == 0).all()
    transferred(source="Body", groups="upper")
    assert np.abs(stored(ob) - right(ob)).max() < CLOSE


def test_locked_groups_stay():
    ob = bound_sleeve()
    group = ob.vertex_groups.new(name="middle")
    group.add(list(range(16, 48)), 0.25, "REPLACE")
    group.lock_weight = True
    before = stored(ob)[:, 1].copy()
    transferred(source="Body")
    assert (stored(ob)[:, 1] == before).all()


def test_at_most_the_given_number_of_bones():
    limb()
    ob = sleeve(rings=40)
    transferred(source="Body", max_influences=1)
    assert (stored(ob) > 0).sum(axis=1).max() == 1
    assert np.allclose(stored(ob).sum(axis=1), 1)
    transferred(source="Body")
    assert (stored(ob) > 0).sum(axis=1).max() == 2


def test_objects_count_where_they_are_and_at_their_scale():
    limb()
    ob = sleeve()
    wanted = right(ob)
    for vertex in ob.data.vertices:
        vertex.co = (vertex.co - Vector((1.0, 0.0, 0.0))) / 4
    ob.location, ob.scale = (1, 0, 0), (4, 4, 4)
    bpy.context.view_layer.update()
    transferred(source="Body")
    assert np.abs(stored(ob) - wanted).max() < CLOSE


@pytest.mark.parametrize("name", ["Body", "Sleeve", "Rig"])
def test_objects_may_be_inside_out(name):
    limb()
    ob = sleeve()
    wanted = right(ob)
    bpy.data.objects[name].scale.y = -1.0
    bpy.context.view_layer.update()
    transferred(source="Body")
    assert transfer_record(ob).filled == 0
    assert np.abs(stored(ob) - wanted).max() < CLOSE


# Mirrored


def sided():
    """A tube across the plane x = 0, only one side of which has weights of the bone there."""
    moving_meshes.fresh_scene()
    rig = binding_scenes.armature_of_segments(
        [[(0, 0, 0), (0, 0, 1)], [(1, 0, 0), (3, 0, 0)], [(-1, 0, 0), (-3, 0, 0)]]
    )
    for bone, name in zip(list(rig.data.bones), SIDES, strict=True):
        bone.name = name
    ob = tube("Arms", -3.0, 3.0, 0.5, rings=61)
    # The two sides do not have the same vertices.
    for vertex in ob.data.vertices:
        vertex.co.x += 0.03 * (vertex.co.x < -0.01) * (vertex.co.x > -2.99)
    x = np.array([vertex.co.x for vertex in ob.data.vertices])
    rows = np.column_stack([np.maximum(1 - np.abs(x) / 3, 0), np.maximum(x, 0) / 3, np.zeros(len(x))])
    write_weights(ob, SIDES, np.broadcast_to(np.arange(3), rows.shape), rows)
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    binding_scenes.activate(ob)
    return ob, x


SIDES = ("root", "arm.L", "arm.R")


def test_mirrored_weights_have_the_bones_of_the_other_side():
    ob, x = sided()
    before = binding_scenes.dense(ob, SIDES)
    transferred(mirror="POSITIVE_X")
    after = binding_scenes.dense(ob, SIDES)
    assert (after[x > 0.01] == before[x > 0.01]).all()
    assert np.abs(after[:, 2] - np.maximum(-x, 0) / 3).max() < CLOSE
    assert (after[x < -0.1, 1] < 1e-3).all()
    middle = np.abs(x) < 1e-3
    assert middle.any()
    assert np.allclose(after[middle, 1], after[middle, 2])


def test_mirrored_back_nothing_changes():
    ob, _ = sided()
    transferred(mirror="POSITIVE_X")
    before = binding_scenes.dense(ob, SIDES)
    transferred(mirror="NEGATIVE_X")
    assert np.abs(binding_scenes.dense(ob, SIDES) - before).max() < CLOSE


def test_mirroring_needs_both_sides_of_the_bones():
    _, _ = sided()
    bpy.data.armatures[0].bones["arm.R"].name = "other"
    refused('NO_COUNTERPART "arm.L" … "arm.R"', mirror="POSITIVE_X")


# What the user sees


def test_what_was_filled_in_can_be_selected():
    limb()
    ob = sleeve()
    for vertex in ob.data.vertices[160:240]:
        vertex.co.yz *= 3
    transferred(source="Body")
    record = transfer_record(ob)
    assert record.matched + record.filled == len(ob.data.vertices)
    assert 80 <= record.filled < 200
    assert bpy.ops.skinning.select_transferred(kind="FILLED") == {"FINISHED"}
    assert ob.mode == "EDIT"
    bpy.ops.object.mode_set(mode="OBJECT")
    chosen = np.flatnonzero([vertex.select for vertex in ob.data.vertices])
    assert len(chosen) == record.filled
    assert set(range(160, 240)) <= set(chosen.tolist())


def test_a_locked_rim_is_matched():
    limb()
    ob = sleeve()
    for vertex in ob.data.vertices[-16:]:
        vertex.co.yz *= 1.2
    for lock, state in ((True, "MATCHED"), (False, "FILLED")):
        transferred(source="Body", lock_rim=lock)
        assert (read_attribute(ob.data, ATTRIBUTE)[-16:] == STATES[state]).all()


def reports(**given) -> str:
    return drain(transfer_chosen(bpy.context, bpy.context.active_object, **given)).summary()


def test_another_pose_is_noticed_and_can_be_used():
    _, rig = limb()
    ob = sleeve(radius=1.05)
    rig.pose.bones["upper"].location.z = 20.0
    bpy.context.view_layer.update()
    ob.location = rig.pose.bones["upper"].matrix.translation
    bpy.context.view_layer.update()
    assert "beside the present pose" in reports(source="Body")
    shape = [vertex.co.copy() for vertex in ob.data.vertices]
    told = reports(source="Body", use_pose=True)
    assert "beside" not in told
    assert "moves it once more" in told
    assert [vertex.co for vertex in ob.data.vertices] == shape
    assert transfer_record(ob).filled == 0
    assert np.abs(stored(ob) - right(ob)).max() < 0.5
    rig.pose.bones["upper"].location.z = 0.0
    bpy.context.view_layer.update()
    refused("are in their rest pose", source="Body", use_pose=True)


def test_clothes_around_a_pose_are_put_on_the_rest_pose_in_two_steps():
    """As the report advises: they stay around the limb in the pose, and are around it at rest."""
    _, rig = limb()
    rig.pose.bones["middle"].rotation_mode = "XYZ"
    rig.pose.bones["middle"].rotation_euler = (0, 0, 0.6)
    bpy.context.view_layer.update()
    ob = sleeve(radius=1.1)
    write_weights(ob, BONES, np.broadcast_to(np.arange(3), (len(ob.data.vertices), 3)), right(ob))
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    bpy.context.view_layer.update()
    places = scenes.world_positions(ob)
    ob.modifiers.clear()
    ob.vertex_groups.clear()
    ob.data.vertices.foreach_set("co", places.astype(np.float32).ravel())
    binding_scenes.activate(rig, ob)
    assert bpy.ops.skinning.bind(in_pose=True) == {"FINISHED"}
    binding_scenes.activate(ob)
    transferred(source="Body")
    bpy.context.view_layer.update()
    assert np.abs(scenes.world_positions(ob) - places).max() < 0.3
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    assert np.abs(np.linalg.norm(rest[:, 1:], axis=1) - 1.1).max() < 0.3


def test_another_scale_is_noticed():
    limb()
    ob = sleeve()
    ob.scale = (1000, 1000, 1000)
    bpy.context.view_layer.update()
    assert '"Sleeve" is 7' in reports(source="Body")
    assert np.allclose(stored(ob).sum(axis=1), 1, atol=1e-6)


def test_a_mesh_elsewhere_is_noticed():
    limb()
    sleeve().location = (0, 40, 0)
    bpy.context.view_layer.update()
    assert 'is not beside "Body"' in reports(source="Body")


# Refused


def test_no_source_is_chosen():
    limb()
    sleeve()
    refused("No mesh to take weights from is chosen")


def test_the_only_one_with_weights_is_the_source():
    body, _ = limb()
    first, second = sleeve("First"), sleeve("Second")
    binding_scenes.activate(first, second, body)
    transferred()
    assert all(len(stored(ob)) for ob in (first, second))
    third = sleeve("Third")
    binding_scenes.activate(third, second, body)
    refused("Several meshes could be the source")


def test_the_mesh_with_the_weights_is_active_by_mistake():
    body, _ = limb()
    binding_scenes.activate(body, sleeve())
    refused('"Sleeve" has no weights to take. To give it those of object "Body"')


def test_a_name_that_no_object_has():
    limb()
    sleeve()
    refused('NO_OBJECT "Nobody"', source="Nobody")


def test_the_source_alone():
    body, _ = limb()
    binding_scenes.activate(body)
    refused("is the source itself", source="Body")


def test_a_source_without_an_armature():
    body, _ = limb()
    body.modifiers.clear()
    sleeve()
    refused('NOT_SKINNED "Body"', source="Body")


def test_a_source_with_empty_groups():
    body, _ = limb()
    for group in body.vertex_groups:
        group.remove(list(range(len(body.data.vertices))))
    sleeve()
    refused('"Body" has no weights of bones to transfer', source="Body")


def test_a_group_that_is_no_bone_of_the_source():
    body, _ = limb()
    body.vertex_groups.new(name="Pinned")
    sleeve()
    refused('"Pinned" is no vertex group', source="Body", groups="upper,Pinned")


def test_a_mask_without_weights():
    limb()
    sleeve().vertex_groups.new(name="Empty")
    refused('"Empty" has no weights', source="Body", vertex_group="Empty")


def test_nothing_is_empty():
    limb()
    ob = sleeve()
    ob.vertex_groups.new(name="upper").add(list(range(len(ob.data.vertices))), 1.0, "REPLACE")
    refused("Enable Replace", source="Body", replace=False)


def test_a_factor_of_zero():
    limb()
    sleeve()
    refused("With a factor of 0", source="Body", factor=0.0)


def test_another_armature_deforms_the_target():
    limb()
    ob = sleeve()
    other = binding_scenes.armature_of_segments([[(0, 0, 0), (1, 0, 0)]], name="Other")
    binding_scenes.activate(ob)
    ob.modifiers.new("Armature", "ARMATURE").object = other
    refused('ALREADY_DEFORMED "Other"', source="Body")


def test_meshes_that_share_their_data():
    limb()
    first = sleeve("First")
    second = first.copy()
    scenes.link(second)
    binding_scenes.activate(first, second)
    refused("MESH_SHARED", source="Body")


def test_the_panel_reports_the_last_solve():
    limb()
    sleeve()
    drawn = panel_recorder.drawn(SKINNING_PT_transfer_weights)
    assert "No mesh to take weights from" in " ".join(drawn.texts)
    bpy.context.scene.skinning_transfer.source = "Body"
    assert '"Body" to "Sleeve"' in " ".join(panel_recorder.drawn(SKINNING_PT_transfer_weights).texts)
    transferred(source="Body")
    assert "Vertices Matched" in " ".join(panel_recorder.drawn(SKINNING_PT_transfer_weights).texts)


def test_from_the_command_line(tmp_path):
    limb()
    sleeve("Sleeve")
    sleeve("Sleeve 2", radius=1.2)
    shot, output = tmp_path / "shot.blend", tmp_path / "out.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    given = ["transfer-weights", "--input", str(shot), "--output", str(output), "--quiet"]
    assert command_line.main([*given, "--object", "Sleeve*", "--source", "Body"]) == 0
    bpy.ops.wm.open_mainfile(filepath=str(output))
    for name in ("Sleeve", "Sleeve 2"):
        ob = bpy.data.objects[name]
        assert np.abs(stored(ob) - right(ob)).max() < CLOSE
    assert command_line.main([*given, "--object", "Sleeve"]) == 2
