# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversions whose bones are children of the bones that they turn about."""

import subprocess

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector
from scipy.spatial.transform import Rotation

from skinning_tools import command_line
from skinning_tools.blender.rotation_limits import remove_limits
from skinning_tools.core import joint_hierarchy
from skinning_tools.core.animation import unit_scale
from skinning_tools.core.decomposition import BONE_KINDS
from skinning_tools.core.decomposition import jointed as jointed_solve
from skinning_tools.core.decomposition.idle_influences import LOSS
from skinning_tools.core.decomposition.near_weights import UNSEEN
from skinning_tools.core.geometry import transform_points
from skinning_tools.core.solve_effort import POSABLE_SMOOTHNESS
from tests.blender import another_process, moving_meshes, scenes, several_scenes
from tests.blender.joint_scenes import FRAMES, JOINTS, bending_bar, convert, size_of, turn_about_joint, turning_bar
from tests.blender.partial_scenes import select
from tests.core.skinned_shapes import about, chain_weights, cuboid

pytestmark = pytest.mark.usefixtures("extension")

PREFIX = {"RIGID": "DEF-", "SCALED": "CTL-", "AFFINE": "CTL-"}


@pytest.fixture
def arm():
    return bending_bar(JOINTS)


@pytest.mark.parametrize("root", [False, True])
@pytest.mark.parametrize("kind", BONE_KINDS)
def test_it_plays_as_without(arm, kind, root):
    plain, _ = convert(arm, bone_kind=kind, smoothness=POSABLE_SMOOTHNESS if kind == "RIGID" else 0.0)
    jointed, rig = convert(arm, bone_kind=kind, joint_hierarchy=True, root_bone=root)
    source, before, after = (scenes.played(ob, FRAMES) for ob in (arm, plain, jointed))
    if kind == "RIGID":
        # As close to the source, but for idle influences.
        errors, wanted = (np.square(unit_scale(source) * (made - source)).mean(axis=(0, 2)) for made in (after, before))
        assert (errors <= wanted + UNSEEN**2 + 1e-10).all()
        assert errors.mean() <= (1.0 + LOSS) * wanted.mean()
    else:
        np.testing.assert_allclose(after, before, atol=1e-5 * size_of(plain))
    controls = [bone for bone in rig.data.bones if bone.name.startswith(PREFIX[kind])]
    assert len(controls) == 3
    tops = [bone for bone in controls if bone.parent is None or bone.parent.name == "root"]
    assert len(tops) == 1
    assert (rig.data.bones.get("root") is not None) == root
    assert jointed["skinning_report"]["joint_count"] == 2
    heads = sorted(tuple(bone.head_local) for bone in controls if bone not in tops)
    # The rest pose is near the first frame, in which the arm is bent already.
    first = turn_about_joint(0, 1)
    second = first @ turn_about_joint(1, 1)
    expected = [(first @ [2, 0, 0, 1])[:3], (second @ [4, 0, 0, 1])[:3]]
    np.testing.assert_allclose(heads, sorted(map(tuple, expected)), atol=0.1)


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_turning_a_bone_turns_what_hangs_from_it_about_the_joint(arm, kind):
    jointed, rig = convert(arm, bone_kind=kind, joint_hierarchy=True, root_bone=True)
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    before = scenes.played(jointed, [1])[0]
    middle = next(b for b in rig.data.bones if b.name.startswith(PREFIX[kind]) and b.parent.name == "root")
    child = next(b for b in middle.children if b.name.startswith(PREFIX[kind]))
    rig.pose.bones[child.name].rotation_mode = "XYZ"
    rig.pose.bones[child.name].rotation_euler = (0.7, 0.0, 0.4)
    after = scenes.played(jointed, [1])[0]
    moved = np.linalg.norm(after - before, axis=1)
    assert moved.max() > 0.3
    head = np.array(child.head_local)
    far = np.linalg.norm(before - head, axis=1)
    # A turn keeps distances from the joint; the other side stays.
    own = moved > 0.2
    np.testing.assert_allclose(np.linalg.norm(after[own] - head, axis=1), far[own], rtol=0.05, atol=0.02)
    # No other bone has come along.
    for bone in rig.pose.bones:
        if bone.name.startswith(PREFIX[kind]) and bone.name not in (child.name, *(b.name for b in child.children)):
            np.testing.assert_allclose(bone.matrix, bone.bone.matrix_local, atol=1e-5)


def test_it_is_shown_as_a_skeleton(arm):
    _, rig = convert(arm, joint_hierarchy=True)
    visible = {collection.name for collection in rig.data.collections if collection.is_visible}
    assert visible == {"Control"}
    names = {bone.name.removeprefix("CTL-") for bone in rig.data.bones if bone.name.startswith("CTL-")}
    assert len(names) == 3
    assert any(name.startswith("trunk") for name in names)
    assert {bone.name for bone in rig.data.bones if bone.use_deform} == {f"DEF-{name}" for name in names}


@pytest.mark.parametrize("kind", BONE_KINDS)
def test_fewer_keys_keep_the_tolerance(arm, kind):
    full, _ = convert(arm, bone_kind=kind, joint_hierarchy=True)
    fewer, _ = convert(arm, bone_kind=kind, joint_hierarchy=True, key_tolerance=20.0)
    keys = fewer["skinning_report"]["keys"]
    assert keys["after"] < keys["before"]
    radius = 0.5 * size_of(arm)
    moved = np.linalg.norm(scenes.played(fewer, FRAMES) - scenes.played(full, FRAMES), axis=-1).max()
    assert moved < 0.021 * radius


def test_residual_shapes_go_with_it(arm):
    plain, _ = convert(arm, bone_kind="RIGID", residual_shapes=2, smoothness=POSABLE_SMOOTHNESS)
    jointed, _ = convert(arm, bone_kind="RIGID", residual_shapes=2, joint_hierarchy=True)
    assert jointed["skinning_e_rms"] <= 1.001 * plain["skinning_e_rms"] + 1e-4


def test_rotation_only_that_costs_much_is_noted(arm):
    cloth = moving_meshes.waving_grid()
    for source, bone_count, noted in ((arm, 3, 0), (cloth, 20, 1)):
        jointed, _ = convert(source, bone_kind="RIGID", bone_count=bone_count, joint_hierarchy=True, rotation_only=True)
        report = jointed["skinning_report"]
        assert sum("Rotation Only costs much" in note for note in report.get("notes", [])) == noted


def test_bones_that_no_joint_explains_are_noted(arm):
    """Of cloth, bones are patches that slide."""
    for source, bone_count, noted in ((arm, 3, 0), (moving_meshes.waving_grid(), 20, 1)):
        jointed, _ = convert(source, bone_kind="RIGID", bone_count=bone_count, joint_hierarchy=True)
        notes = jointed["skinning_report"].get("notes", [])
        assert sum("coming apart from the parent" in note for note in notes) == noted


def test_on_the_command_line(arm, tmp_path, capsys):
    start, output = tmp_path / "arm.blend", tmp_path / "out.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(start))
    arguments = ["convert", "--object", "Arm", "--bones", "3", "--kind", "RIGID", "--joint-hierarchy"]
    assert command_line.main([*arguments, "--output", str(output), "--quiet"]) == 0
    assert bpy.data.objects["Arm_skinned"]["skinning_report"]["joint_count"] == 2
    assert ["Joints", "2"] in [line.split() for line in capsys.readouterr().out.splitlines()]


def test_with_rotation_only_no_joint_slips(arm):
    jointed, rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True, rotation_only=True)
    linked = [bone for bone in rig.pose.bones if bone.parent is not None]
    assert len(linked) == 2
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        for bone in linked:
            place = bone.parent.matrix @ bone.parent.bone.matrix_local.inverted() @ bone.bone.head_local
            assert (place - bone.head).length < 1e-5 * size_of(jointed)
            assert bone.location.length == 0
            assert all(bone.lock_location)
    record = jointed["skinning_report"]
    assert record["free_e_rms"] > 0
    assert record["e_rms"] == pytest.approx(jointed["skinning_e_rms"])


def ends(hierarchy):
    """(P,) bool: the last of the bones that no other one hangs from."""
    bones = np.arange(len(hierarchy.parents))
    return bones == np.setdiff1d(bones, hierarchy.parents)[-1]


def test_rotation_only_keeps_its_setting_and_says_what_it_lost(arm, monkeypatch):
    monkeypatch.setattr(joint_hierarchy, "STILL_TURN", 3.0)
    # As if the joint of one bone slipped.
    monkeypatch.setattr(jointed_solve, "held_parents", lambda free, found: np.where(ends(found), -1, found.parents))
    jointed, rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True, rotation_only=True, surface=0.5)
    [still] = [bone.name for bone in rig.data.bones if bone.parent is not None]
    notes = list(jointed["skinning_report"]["notes"])
    [alone] = [bone.name for bone in rig.data.bones if bone.parent is None and not bone.children]
    assert notes == [
        "Emphasis and Surface have no effect with Rotation Only",
        "1 bone hardly turning against the parent, so that the motion does not tell the joint: "
        f"{still}. Check such joints in Edit Mode, or convert more motion",
        f"1 bone without a parent although the surface goes on there, as no joint holds: {alone}. "
        "Parent in Edit Mode and Solve Again, or switch Rotation Only off",
    ]
    select(jointed)
    bpy.ops.skinning.convert_again()
    again = max((other for other in bpy.data.objects if "_skinned" in other.name), key=lambda other: other.name)
    assert again["skinning_report"]["rotation_only"]


@pytest.mark.parametrize("rotation_only", [False, True])
def test_a_side_that_stands_still_gets_mirrored_bones(rotation_only):
    """They are named and placed as on the other side, and plain as all others."""
    moving_meshes.fresh_scene()
    rest, triangles = cuboid()
    rest = rest - [3.0, 0.0, 0.0]
    _, weights = chain_weights(rest[:, 0], [1.5], reach=0.5)
    source = moving_meshes.add_object("Arm", rest, triangles.tolist())
    turns = Rotation.from_rotvec(0.6 * np.sin(np.outer(np.array(FRAMES) - FRAMES[0], [1, 2, 3]))).as_matrix()
    ends = [transform_points(rest, about(turn, [1.5, 0, 0])) for turn in turns]
    moving_meshes.key_each_frame(source, [weights[:, :1] * rest + weights[:, 1:] * end for end in ends], FRAMES[0])
    given = {"bone_kind": "RIGID", "bone_count": 10, "joint_hierarchy": True, "rotation_only": rotation_only}
    jointed, rig = convert(source, **given)
    body, left, right = (rig.data.bones[name] for name in ("DEF-trunk", "DEF-limb_1.L", "DEF-limb_1.R"))
    assert len(rig.data.bones) == 3
    assert {left.parent, right.parent} == {body}
    np.testing.assert_allclose(right.head_local, np.array(left.head_local) * [-1, 1, 1], atol=1e-3)

    def sizes():
        groups = [group for vertex in jointed.data.vertices for group in vertex.groups]
        return [
            sum(group.weight for group in groups if group.group == jointed.vertex_groups[bone.name].index)
            for bone in (left, right)
        ]

    before, played = sizes(), scenes.played(jointed, FRAMES)
    assert before[0] == pytest.approx(before[1], rel=1e-3)
    assert jointed["skinning_report"]["notes"] == [
        "1 bone moving exactly as the parent does, such as of a side that stands still: DEF-limb_1.R"
    ]
    np.testing.assert_allclose(played, scenes.played(source, FRAMES), atol=1e-3)
    select(jointed)
    assert bpy.ops.skinning.solve_again() == {"FINISHED"}
    assert sizes() == pytest.approx(before, rel=1e-3)


def test_a_joint_that_may_slip_has_locations(arm):
    jointed, rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True, rotation_only=True, joint_slip=2.0)
    assert not any(all(bone.lock_location) for bone in rig.pose.bones)
    assert jointed["skinning_report"]["joint_slip"] == 2.0
    with pytest.raises(RuntimeError, match="Switch on Rotation Only or set Joint Slip to 0"):
        convert(arm, bone_kind="RIGID", joint_hierarchy=True, joint_slip=2.0)


@pytest.mark.parametrize("given", [{"bone_kind": "AFFINE", "joint_hierarchy": True}, {"bone_kind": "RIGID"}])
def test_rotation_only_is_of_rigid_skeletons(arm, given):
    with pytest.raises(RuntimeError, match="needs a skeleton of rigid bones"):
        convert(arm, rotation_only=True, **given)


def test_rotation_limits_do_not_change_what_plays(arm):
    plain, _ = convert(arm, bone_kind="RIGID", joint_hierarchy=True)
    limited, rig = convert(arm, bone_kind="RIGID", joint_hierarchy=True, rotation_limits=True, limit_margin=0.1)
    np.testing.assert_allclose(scenes.played(limited, FRAMES), scenes.played(plain, FRAMES), atol=1e-5)
    bones = [bone for bone in rig.pose.bones if bone.parent is not None]
    assert all(len(bone.constraints) == 1 for bone in bones)
    # Beyond the range, the bone stays at its end: the hinge of the arm is the bone's x axis.
    bone, limit = bones[0], bones[0].constraints[0]
    rig.animation_data_clear()
    bone.rotation_mode, bone.rotation_euler = "XYZ", (2.0, 0, 0)
    bpy.context.view_layer.update()
    local = rig.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
    assert local.to_euler().x == pytest.approx(limit.max_x, abs=1e-4)
    assert limit.max_x < 2.0
    # So does inverse kinematics, which knows no constraints.
    limit.enabled, bone.rotation_euler = False, (0, 0, 0)
    target = scenes.link(bpy.data.objects.new("Target", None))
    chain = bone.constraints.new("IK")
    chain.target, chain.chain_count = target, 1
    for side in (-1.0, 1.0):
        target.matrix_world = rig.matrix_world @ bone.bone.matrix_local @ Matrix.Translation((0.0, -3.0, 0.5 * side))
        bpy.context.view_layer.update()
        local = rig.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
        assert min(limit.min_x, 0) - 0.01 <= local.to_euler().x <= max(limit.max_x, 0) + 0.01
    bone.use_ik_limit_y = False
    bone.use_ik_limit_z, bone.ik_max_z = True, 1.5
    remove_limits(rig)
    assert [getattr(bone, f"use_ik_limit_{axis}") for axis in "xyz"] == [False, False, True], "z is the user's"
    with pytest.raises(RuntimeError, match="Rotation Limits need bones that turn about joints"):
        convert(arm, rotation_limits=True)


def test_rotation_limits_leave_out_what_lies_between_two_clips():
    """One part bends far about an axis in the first clip, and comes back about another in the second: between both, it
    would be twisted."""
    moving_meshes.fresh_scene()
    angles = np.linspace(0.0, 2.4, len(FRAMES))
    motions = {"Nod": angles[:, None] * [0, 0, 1], "Wave": angles[::-1, None] * [0, 1, 0]}
    several_scenes.select(*(turning_bar(name, Rotation.from_rotvec(turns)) for name, turns in motions.items()))
    given = {"bone_kind": "RIGID", "joint_hierarchy": True, "rotation_only": True, "rotation_limits": True}
    assert bpy.ops.skinning.convert_animation(bone_count=2, as_clips=True, **given) == {"FINISHED"}
    rig = next(ob for ob in bpy.data.objects if ob.type == "ARMATURE")
    limit = next(each for bone in rig.pose.bones for each in bone.constraints)
    assert limit.max_y - limit.min_y < 0.7, "radians; the twist between is 0.8 more"


@pytest.fixture
def limbs():
    """The skinned mesh and rig of a bar of five parts: a trunk with two limbs of two bones, which only rotate."""
    bar = bending_bar((0.0, 1.2, 2.4, 3.6, 4.8))
    given = {"bone_kind": "RIGID", "joint_hierarchy": True, "rotation_only": True}
    mesh, rig = convert(bar, bone_count=5, iterations=5, **given)
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
        bone.rotation_mode = "XYZ"
    return mesh, rig


# Not in this process: after generating, Blender 4.2 takes the scene for what owns the window, in later files, too, and
# writes there whenever a script sets one of the window's properties.
GENERATE = """
import os
import bpy
bpy.ops.wm.open_mainfile(filepath={!r})
bpy.ops.preferences.addon_enable(module="rigify")
metarig = bpy.context.object
metarig.data.collections[0].rigify_ui_row = 1
for bone in metarig.pose.bones:
    if bone.parent is None or bone.parent.parent is None:
        linked = any(child.bone.use_connect for child in bone.children) and bone.parent is not None
        bone.rigify_type = "limbs.simple_tentacle" if linked else "basic.super_copy"
bpy.ops.pose.rigify_generate()
bpy.ops.wm.save_mainfile()
os._exit(0)
"""


def test_an_animator_adds_inverse_kinematics_or_rigify(limbs, tmp_path):
    """A target bends a limb in its plane without further settings; and Rigify makes a rig that moves the same mesh."""
    mesh, rig = limbs
    tip = next(bone for bone in rig.pose.bones if not bone.children and bone.parent.parent is not None)
    limb = [tip, tip.parent]
    # Bent further than at rest: stretched, a limb may bend to either side.
    reach, poses = {}, {}
    for turn in (-0.5, 0.5):
        tip.rotation_euler.x = turn
        bpy.context.view_layer.update()
        reach[turn], poses[turn] = (tip.tail - tip.parent.head).length, [tuple(bone.tail) for bone in limb]
    wanted = poses[min(reach, key=reach.get)]
    tip.rotation_euler.x = 0.0
    target = scenes.link(bpy.data.objects.new("Target", None))
    target.location = rig.matrix_world @ Vector(wanted[0])
    constraint = tip.constraints.new("IK")
    constraint.target, constraint.chain_count = target, 2
    bpy.context.view_layer.update()
    np.testing.assert_allclose([bone.tail for bone in limb], wanted, atol=0.02 * tip.length)
    tip.constraints.remove(constraint)

    # As in docs/edit_skeletons.md: a duplicate, whose bones have no prefix, so that Rigify's have the groups' names.
    metarig = rig.copy()
    metarig.data = rig.data.copy()
    scenes.link(metarig)
    for bone in metarig.data.bones:
        bone.name = bone.name.removeprefix("DEF-")
    select(metarig)
    path, name = tmp_path / "rig.blend", mesh.name
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    done = subprocess.run(
        another_process.command(GENERATE.format(str(path))), capture_output=True, text=True, timeout=120
    )
    bpy.ops.wm.open_mainfile(filepath=str(path))
    mesh = bpy.data.objects[name]
    made = bpy.context.object
    deforming = {bone.name for bone in made.data.bones if bone.use_deform}
    assert {group.name for group in mesh.vertex_groups} <= deforming, done.stderr
    before = scenes.played(mesh, [1])
    mesh.modifiers["Armature"].object = made
    np.testing.assert_allclose(scenes.played(mesh, [1]), before, atol=1e-4)
