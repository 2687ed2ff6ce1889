# SPDX-License-Identifier: GPL-3.0-or-later
"""Solve Again: skeletons that were edited after a conversion."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.background import drain
from skinning_tools.blender.control_points import read_positions
from skinning_tools.blender.conversions import result_of
from skinning_tools.blender.joint_records import undecided_joints
from skinning_tools.blender.rotation_limits import limit_of
from skinning_tools.blender.weight_tools import lost_vertices
from skinning_tools.core.animation import unit_scale
from skinning_tools.features.convert.settings import settings_of
from skinning_tools.features.partial import again
from tests.blender import moving_meshes, scenes
from tests.blender.joint_scenes import FRAMES, JOINTS, bending_bar, convert, size_of
from tests.blender.partial_scenes import curves, select
from tests.blender.refusals import refused

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def arm():
    return bending_bar(JOINTS)


def edited(rig, edit):
    select(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    edit(rig.data.edit_bones)
    bpy.ops.object.mode_set(mode="OBJECT")


def tip_of(rig):
    return next(bone for bone in rig.data.bones if not bone.children)


def split_and_rename(bones):
    """Cut the first bone with a child in two, beside its line, and give the tip another name."""
    tip = next(bone for bone in bones if not bone.children)
    tip.name = "Hand"
    upper = tip.parent
    end, middle = upper.tail.copy(), 0.5 * (upper.head + upper.tail) + 0.05 * upper.length * upper.z_axis
    for bone in upper.children:
        bone.use_connect = False
    upper.tail = middle
    new = bones.new("Half")
    new.head, new.tail, new.parent, new.use_connect = middle, end, upper, True
    for bone in [each for each in upper.children if each != new]:
        bone.parent = new


def no_memory(*_):
    raise MemoryError


def test_solve_again_keeps_what_was_edited(arm, monkeypatch):
    given = {"rotation_only": True, "rotation_limits": True, "residual_shapes": 1}
    jointed, rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True, **given)
    before = jointed["skinning_e_rms"]
    source = scenes.played(arm, FRAMES)
    edited(rig, split_and_rename)
    unlimited = rig.pose.bones["Hand"]
    unlimited.constraints.remove(unlimited.constraints[0])
    jointed.shape_key_add(name="Own", from_mix=False).keyframe_insert("value", frame=1)

    def present():
        keys = jointed.data.shape_keys
        limits = [(bone.name, each.max_z) for bone in rig.pose.bones for each in bone.constraints]
        return keys.animation_data.action, len(keys.key_blocks), rig.animation_data.action, limits

    kept, blocks = present(), moving_meshes.state()
    with monkeypatch.context() as patched:
        patched.setattr(again, "_limit_again", no_memory)
        refused("solve_again", "ran out of memory")
    assert (present(), moving_meshes.state()) == (kept, blocks)
    with monkeypatch.context() as patched:
        patched.setattr(again, "play_residual_keys", no_memory)
        refused("solve_again", "ran out of memory")
    assert (present(), moving_meshes.state()) == (kept, blocks)
    shape = [(bone.name, bone.parent and bone.parent.name, tuple(bone.head_local)) for bone in rig.data.bones]
    assert bpy.ops.skinning.solve_again() == {"FINISHED"}
    assert shape == [(bone.name, bone.parent and bone.parent.name, tuple(bone.head_local)) for bone in rig.data.bones]
    assert {"Hand", "Half"} <= set(jointed.vertex_groups.keys())
    assert jointed["skinning_bone_count"] == 4
    # Another joint costs nothing.
    assert jointed["skinning_e_rms"] < 1.2 * before
    assert jointed["skinning_report"]["e_rms"] == rig["skinning_report"]["e_rms"] == jointed["skinning_e_rms"]
    assert "normals" not in jointed["skinning_report"], "of the skeleton as it was"
    limited = {bone.name for bone in rig.pose.bones if len(bone.constraints)}
    assert limited == {bone.name for bone in rig.data.bones if bone.parent} - {"Hand"}, "what was deleted stays so"
    error = unit_scale(source) * (scenes.played(jointed, FRAMES) - source)
    assert jointed["skinning_e_rms"] == pytest.approx(1000 * np.sqrt(np.square(error).mean()), rel=1e-3, abs=1e-4)
    paths = {curve.data_path for curve in curves(jointed.data.shape_keys.animation_data.action)}
    assert {'key_blocks["Own"].value', 'key_blocks["Residual 1"].value'} <= paths
    np.testing.assert_array_equal(scenes.played(arm, FRAMES), source)
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        for bone in rig.pose.bones:
            assert all(bone.lock_location) == (bone.parent is not None)
            if bone.parent is not None:
                place = bone.parent.matrix @ bone.parent.bone.matrix_local.inverted() @ bone.bone.head_local
                assert (place - bone.head).length < 1e-5 * size_of(jointed)


def test_solve_again_finds_the_joint_of_a_bone_that_was_cut():
    bar = bending_bar((0.0, 1.5, 3.0, 4.5))
    jointed, rig = convert(bar, bone_count=4, bone_kind="RIGID", joint_hierarchy=True, rotation_only=True)
    before, tip = jointed["skinning_e_rms"], next(bone for bone in rig.data.bones if len(bone.parent_recursive) > 1)
    true, names = tip.head_local.copy(), (tip.name, tip.parent.name)

    def cut_elsewhere(bones):
        """The parent takes the place of the tip, too, and is cut at another place."""
        last, upper = (bones[name] for name in names)
        end, middle = last.tail.copy(), upper.head.lerp(last.tail, 0.3)
        bones.remove(last)
        upper.tail = middle
        new = bones.new("Cut")
        new.head, new.tail, new.parent, new.use_connect = middle, end, upper, True

    edited(rig, cut_elsewhere)
    placed = rig.data.bones["Cut"].head_local.copy()
    drain(again.solve_again(bpy.context, jointed, find_joints=False))
    kept = jointed["skinning_e_rms"]
    assert kept > 10 * before
    assert rig.data.bones["Cut"].head_local == placed
    found = drain(again.solve_again(bpy.context, jointed))
    assert "1 new joint found: Cut" in found.notes
    assert jointed["skinning_e_rms"] < 0.2 * kept
    cut = rig.data.bones["Cut"]
    assert (cut.head_local - true).length < 0.01 * size_of(jointed)
    assert cut.parent.tail_local == cut.head_local
    assert not any("found" in note for note in drain(again.solve_again(bpy.context, jointed)).notes)


def test_solve_again_turns_a_chain_around_that_was_parented_the_other_way():
    bar = bending_bar((0.0, 1.5, 3.0, 4.5))
    jointed, rig = convert(bar, bone_count=4, bone_kind="RIGID", joint_hierarchy=True, rotation_only=True)
    before, tip = jointed["skinning_e_rms"], next(bone for bone in rig.data.bones if len(bone.parent_recursive) > 1)
    way = [tip.name, *(bone.name for bone in tip.parent_recursive)]
    joints = [rig.data.bones[name].head_local.copy() for name in way[:2]]

    def turned(bones):
        for name in way:
            bones[name].use_connect, bones[name].parent = False, None
        for name, parent in zip(way[1:], way, strict=False):
            bones[name].parent = bones[parent]

    edited(rig, turned)
    drain(again.solve_again(bpy.context, jointed))
    assert jointed["skinning_e_rms"] < 1.1 * before
    for name, joint in zip(way[1:], joints, strict=True):
        assert (rig.data.bones[name].head_local - joint).length < 0.02 * size_of(jointed)


def test_solve_again_gives_what_a_deleted_bone_moved_to_its_neighbors(arm, monkeypatch):
    jointed, rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True)
    gone = tip_of(rig).name

    def replaced(bones):
        stray = bones.new("Stray")
        stray.head, stray.tail = bones[gone].head, bones[gone].tail
        bones.remove(bones[gone])

    edited(rig, replaced)
    own = jointed.vertex_groups.new(name="Own")
    own.add(range(5), 0.5, "REPLACE")
    action, before, shape = rig.animation_data.action, moving_meshes.state(), scenes.played(jointed, FRAMES)
    with monkeypatch.context() as patched:
        patched.setattr(again, "attach", no_memory)
        refused("solve_again", "ran out of memory")
    assert (moving_meshes.state(), rig.animation_data.action) == (before, action)
    np.testing.assert_array_equal(scenes.played(jointed, FRAMES), shape)
    arm.hide_set(True)
    found = drain(again.solve_again(bpy.context, jointed))
    assert arm.hide_get()
    assert any("1 new bone moving freely, without a parent that deforms: Stray (" in note for note in found.notes)
    names = set(rig.data.bones.keys())
    for vertex in jointed.data.vertices:
        total = sum(each.weight for each in vertex.groups if jointed.vertex_groups[each.group].name in names)
        assert total == pytest.approx(1, abs=1e-5)
    assert rig.animation_data.action != action
    assert not [curve for curve in curves(rig.animation_data.action) if gone in curve.data_path]
    assert gone not in jointed.vertex_groups, "the conversion has made it"
    assert (
        found.record.warning == "farther from the target than before: undo, or solve again once more, or subdivide "
        "bones where Show Error is red"
    )
    assert [own.weight(vertex) for vertex in range(5)] == [0.5] * 5


def test_solve_again_tells_why_bones_have_lost_their_joints():
    bar = bending_bar((0.0, 1.5, 3.0, 4.5))
    jointed, rig = convert(bar, bone_count=4, bone_kind="RIGID", joint_hierarchy=True, rotation_only=True)
    root = next(bone for bone in rig.data.bones if bone.parent is None)
    name, children = root.name, [bone.name for bone in root.children]
    connected = next(bone.name for bone in root.children if bone.use_connect)
    root.use_deform = False
    rig.pose.bones[name].scale = (2, 2, 2)
    warning = drain(again.solve_again(bpy.context, jointed, find_joints=False)).record.warning
    assert f"turn on Deform of {name}, or parent {connected} to bones that deform, as others ({name})" in warning
    edited(rig, lambda bones: bones.remove(bones[name]))
    notes = drain(again.solve_again(bpy.context, jointed)).notes
    alone = "2 bones moving freely, because the parent is gone or does not deform: "
    assert any(note.startswith(alone + ", ".join(children)) for note in notes)


def test_a_duplicated_bone_has_no_joint_of_its_own_yet(arm):
    rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True)[1]
    tip = tip_of(rig).name
    select(rig)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.data.edit_bones
    original = bones[tip]
    original.use_connect, end = False, original.tail + (original.tail - original.head)
    bpy.ops.armature.select_all(action="DESELECT")
    bones.active = original
    original.select = original.select_head = original.select_tail = True
    bpy.ops.armature.duplicate()
    original, copy = bones[tip], bones.active
    copy.head, copy.tail, copy.parent = original.tail, end, original
    made, original.name = copy.name, "Hand"
    bpy.ops.object.mode_set(mode="OBJECT")
    names = tuple(bone.name for bone in rig.data.bones)
    found = undecided_joints(rig, names)
    assert [name for name, undecided in zip(names, found, strict=True) if undecided] == [made], (
        "cut out of the original"
    )


def test_solve_again_tells_only_what_it_knows_and_keeps_groups_in_use(arm):
    jointed, rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True, rotation_only=True)
    before, gone, other = jointed["skinning_e_rms"], tip_of(rig).name, scenes.link(arm.copy())
    edited(rig, lambda bones: bones.remove(bones[gone]))
    thickness = jointed.modifiers.new("Thickness", "SOLIDIFY")
    thickness.show_viewport, thickness.shell_vertex_group = False, gone
    found = drain(again.solve_again(bpy.context, jointed, rotation_only=True)).record
    assert found.e_rms_before == before < found.e_rms
    # The conversion has held the joints: without Rotation Only, they are held, too.
    assert found.warning == "farther from the target than before: undo"
    assert gone in jointed.vertex_groups
    lost = lost_vertices(jointed.data)
    assert 0 < lost.sum() < len(lost)
    other.data = arm.data.copy()
    for place, target, known in ((1, other, False), (2, other, True), (3, arm, False), (4, arm, True)):
        last, found = found, drain(again.solve_again(bpy.context, jointed, target=target.name)).record
        assert (found.e_rms_before == last.e_rms) is known, place
        assert jointed["skinning_report"].get("target") == (other.name if target == other else None)
    np.testing.assert_array_equal(lost_vertices(jointed.data), lost, err_msg="noted until there are new bones")
    arm.data.shape_keys.key_blocks[3].mute = True
    assert drain(again.solve_again(bpy.context, jointed)).record.e_rms_before < 0, "it moves otherwise now"
    names = jointed.name, rig.name
    assert len([action for action in bpy.data.actions if action.use_fake_user]) > 2
    bpy.data.actions["Arm_skinning"].name = "Mine"
    bpy.ops.skinning.convert_again(replace=True)
    assert [action.name for action in bpy.data.actions if action.use_fake_user] == ["Mine"], "the user has renamed it"
    made = bpy.context.view_layer.objects.active
    assert (made.name, made.parent.name) == names
    name = made.parent.animation_data.action.name
    assert "solved" not in name, "it is converted, not solved again"
    drain(again.solve_again(bpy.context, made))
    made.parent.animation_data.action.name = "Played"
    bpy.ops.skinning.convert_again(replace=True)
    assert [action.name for action in bpy.data.actions if action.use_fake_user] == ["Mine"], "not what it has replaced"
    assert bpy.context.view_layer.objects.active.parent.animation_data.action.name == name


@pytest.mark.parametrize("version", ["present", "earlier"])
def test_convert_again_has_the_settings_of_the_conversion_after_a_solve_again(arm, version):
    jointed, rig = convert(arm, bone_kind="RIGID", frame_start=2, frame_end=6, frame_step=2)
    if version == "earlier":
        for ob in (jointed, rig):
            del ob["skinning_report"]["joint_hierarchy"]
    given = vars(settings_of(result_of(jointed).figures))
    # Figures are of the frames that were measured last.
    for frames in ((1, 8, 1), (3, 5, 1)):
        start, end, step = frames
        drain(again.solve_again(bpy.context, jointed, frame_start=start, frame_end=end, frame_step=step))
        figures = result_of(jointed).figures
        assert tuple(figures[name] for name in ("frame_start", "frame_end", "frame_step")) == frames
        assert vars(settings_of(figures)) == given
        assert result_of(rig).figures == figures
    bpy.ops.skinning.convert_again()
    made = result_of(bpy.context.view_layer.objects.active)
    assert vars(settings_of(made.figures)) == given
    assert not any(bone.parent for bone in made.rig.data.bones)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("excluded", "EXCLUDED"),
        ("only in another layer", "EXCLUDED"),
        ("collection", "HIDDEN"),
        ("none", "NOT_IN_SCENE"),
    ],
)
def test_a_source_that_the_eye_alone_does_not_hide_is_refused(arm, how, told):
    jointed = convert(arm, bone_kind="RIGID", joint_hierarchy=True)[0]
    scene = bpy.context.scene
    home = bpy.data.collections.new("Sources")
    scene.collection.children.link(home)
    for other in arm.users_collection:
        other.objects.unlink(arm)
    home.objects.link(arm)
    arm.hide_set(True)
    layer = bpy.context.view_layer.layer_collection.children[home.name]
    if how == "only in another layer":
        scene.view_layers.new("Second")
    if how == "none":
        scene.collection.children.unlink(home)
    elif how == "collection":
        layer.hide_viewport = True
    else:
        layer.exclude = True
    select(jointed)
    refused("solve_again", f'{told} object "Arm"')
    if how == "collection":
        assert arm.hide_get()


def test_vertices_no_longer_count_as_lost_once_they_are_bound_or_get_weights_from_elsewhere(arm):
    jointed, rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True)
    gone = tip_of(rig).name
    edited(rig, lambda bones: bones.remove(bones[gone]))
    drain(again.solve_again(bpy.context, jointed))
    lost = np.flatnonzero(lost_vertices(jointed.data))
    source, other = (scenes.link(jointed.copy()) for _ in range(2))
    other.data = jointed.data.copy()
    select(other, source)
    bpy.ops.skinning.transfer_weights(source=source.name)
    assert lost_vertices(other.data) is None
    for group in jointed.vertex_groups:
        group.remove(lost[:3].tolist())
    select(jointed, rig)
    bpy.ops.skinning.bind(method="RIGID")
    np.testing.assert_array_equal(np.flatnonzero(lost_vertices(jointed.data)), lost[3:])
    bpy.ops.skinning.bind(method="RIGID", replace=True)
    assert lost_vertices(jointed.data) is None


def test_solve_again_keeps_what_the_noise_of_a_capture_needs():
    """Joints slip there: bones that were free stay so, and the report tells what it costs to hold them."""
    bar, noise = bending_bar((0.0, 1.2, 2.4, 3.6, 4.8)), np.random.default_rng(0)
    for key in bar.data.shape_keys.key_blocks[1:]:
        positions = read_positions(key.data, "co")
        key.data.foreach_set("co", (positions + noise.normal(scale=0.05, size=positions.shape)).ravel())
    jointed, rig = convert(bar, bone_count=5, iterations=5, bone_kind="RIGID", joint_hierarchy=True)
    before = jointed["skinning_e_rms"]
    found = drain(again.solve_again(bpy.context, jointed))
    assert not found.notes
    assert found.record.e_rms_before == before
    assert jointed["skinning_e_rms"] == found.record.e_rms <= 1.0001 * before
    assert not found.record.warning
    held = drain(again.solve_again(bpy.context, jointed, rotation_only=True))
    assert held.record.e_rms > 1.01 * before
    assert held.record.warning == "farther from the target than before: undo, or solve without Rotation Only"
    assert {bone.parent for bone in rig.pose.bones if not all(bone.lock_location)} == {None}
    mine = next(bone for bone in rig.pose.bones if bone.parent is None)
    mine.lock_location = (True, True, True)
    kept = rig.animation_data.action
    kept.use_fake_user = True
    bpy.context.scene.frame_start, rig.scale = 3, (2.0, 2.0, 2.0)
    jointed.modifiers[0].show_viewport = False
    notes = drain(again.solve_again(bpy.context, jointed)).notes
    for told in ("is 0.5 times as large as", "is disabled in the viewport", "keys from frame 3 to 8 only, where they"):
        assert any(told in note for note in notes), told
    assert [bone for bone in rig.pose.bones if all(bone.lock_location)] == [mine], "the user has locked it"
    bpy.ops.skinning.delete_result()
    assert kept in bpy.data.actions.values(), "the user has given it a fake user"


def test_solve_again_is_of_bones_that_deform_and_of_sources_that_are_there(arm, tmp_path):
    jointed, rig = convert(arm, bone_kind="AFFINE", joint_hierarchy=True)
    select(jointed)
    refused("solve_again", "Convert the source again with the bone kind Rigid")
    rig.pose.bones[0].constraints.new("LIMIT_ROTATION").name = "Range of Motion"
    assert limit_of(rig.pose.bones[0]) is None, "it is the user's"
    second = jointed.modifiers.new("Second", "ARMATURE")
    second.object = scenes.link(rig.copy())
    select(jointed)
    refused("solve_weights", "DEFORMED_TWICE")
    jointed.modifiers.remove(second)
    bpy.data.objects.remove(arm)
    refused("solve_again", "choose an object with the wanted animation as Target")
    select(scenes.overridden([jointed, rig], tmp_path / "character.blend")["MESH"])
    refused("solve_again", "LINKED mesh", "its weights cannot be changed")
    refused("convert_again", "is not in this file: the result is linked from character.blend")
    refused("solve_transforms", 'The source "Arm"', "is not in this file under that name", "link it from")
