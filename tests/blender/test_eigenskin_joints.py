# SPDX-License-Identifier: GPL-3.0-or-later
"""The joints of an EigenSkin's examples: their rotations as drivers read them, and a rig that has changed since."""

import bpy
import numpy as np
import pytest

from skinning_tools.core.deform import skin_frame
from skinning_tools.core.eigenskin import BadExamples
from skinning_tools.features.eigenskin.examples import current_pose, new_bones, read_rig
from tests.blender import scenes
from tests.blender.eigenskin_scenes import add_example, limb, limb_with_examples, pose
from tests.blender.example_scenes import add, add_bone, copy_rotation, limit, near, read

pytestmark = pytest.mark.usefixtures("extension")


# The joints


def test_joints_are_deforming_bones_and_their_ancestors():
    ob, rig = limb()
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    other = rig.data.edit_bones.new("hat")
    other.tail, other.parent = (0, 0, 1), rig.data.edit_bones["trunk"]
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = ob
    skin, joints = read_rig(bpy.context, ob)
    assert joints.joint_names == ("root", "trunk", "upper", "lower")
    assert joints.parents.tolist() == [-1, 0, 1, 2]
    assert joints.joint_of_bone.tolist() == [1, 2, 3]
    assert skin.bone_names == ("trunk", "upper", "lower")


def test_a_pose_is_its_turns_and_matrices():
    ob, rig = limb()
    pose(rig, [("trunk", "Y", 30), ("lower", "X", -70)])
    skin, joints = read_rig(bpy.context, ob)
    rotations, matrices = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())
    half = np.radians([15, -35])
    wanted = np.array([[1, 0, 0, 0], [np.cos(half[0]), 0, np.sin(half[0]), 0], [1, 0, 0, 0],
                       [np.cos(half[1]), np.sin(half[1]), 0, 0]])  # fmt: skip
    assert np.abs(rotations - wanted).max() < 1e-6
    near(ob, skin_frame(skin.rest, skin.bones, skin.weights, matrices), scenes.evaluated_positions(ob))


def nothing(rig):
    pass


def inherit_no_rotation(rig):
    rig.data.bones["lower"].use_inherit_rotation = False


def scales(rig):
    rig.pose.bones["upper"].scale = (1, 2, 0.5)
    rig.pose.bones["lower"].scale = (0.3, 2, -1)


def shear(rig):
    rig.pose.bones["upper"].scale = (1, 3, 0.5)
    constraint = rig.pose.bones["lower"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget = rig, "root"


def inverse_kinematics(rig):
    target = bpy.data.objects.new("Target", None)
    bpy.context.scene.collection.objects.link(target)
    target.location = (0.5, 1.2, 0.3)
    constraint = rig.pose.bones["lower"].constraints.new("IK")
    constraint.target, constraint.chain_count = target, 2


MOVERS = [nothing, inherit_no_rotation, scales, limit, copy_rotation, shear, inverse_kinematics]


@pytest.mark.parametrize("mover", MOVERS, ids=[mover.__name__ for mover in MOVERS])
def test_rotations_are_what_drivers_read(mover):
    ob, rig = limb()
    pose(rig, [("trunk", "Y", 20), ("upper", "Z", 40), ("lower", "X", -70)])
    mover(rig)
    skin, joints = read_rig(bpy.context, ob)
    reader = bpy.data.objects.new("Reader", None)
    bpy.context.scene.collection.objects.link(reader)
    for name in joints.joint_names:
        reader[name] = [0.0] * 4
        for index, channel in enumerate(("ROT_W", "ROT_X", "ROT_Y", "ROT_Z")):
            driver = reader.driver_add(f'["{name}"]', index).driver
            driver.type, driver.expression = "SCRIPTED", "q"
            variable = driver.variables.new()
            variable.name, variable.type = "q", "TRANSFORMS"
            target = variable.targets[0]
            target.id, target.bone_target, target.transform_type = rig, name, channel
            target.transform_space, target.rotation_mode = "LOCAL_SPACE", "QUATERNION"
    bpy.context.view_layer.update()
    depsgraph = bpy.context.evaluated_depsgraph_get()
    evaluated = reader.evaluated_get(depsgraph)
    driven = np.array([list(evaluated[name]) for name in joints.joint_names])
    assert np.abs(driven - current_pose(skin, joints, depsgraph)[0]).max() < 1e-6


# Changes of rig and mesh


def test_vertices_have_changed():
    ob, _rig = limb_with_examples()
    count = len(ob.data.vertices)
    ob.data.vertices.add(2)
    with pytest.raises(BadExamples) as raised:
        read(ob)
    for part in ('"lower X -90°"', f"{count:,}", f"{count + 2:,}", '"Limb"'):
        assert part in str(raised.value)


def test_new_examples_after_the_vertices_have_changed():
    ob, rig = limb_with_examples()
    for item in rig.skinning_eigenskin.examples:
        item.enabled = False
    ob.data.vertices.add(2)
    add_example(ob, rig, [("lower", "X", 20)])
    assert read(ob).shapes.shape == (1, len(ob.data.vertices), 3)


def test_weights_have_changed():
    ob, _rig = limb_with_examples()
    wanted = read(ob)
    ob.vertex_groups["upper"].add([3, 4], 0.5, "REPLACE")
    assert np.array_equal(read(ob).shapes, wanted.shapes)


def rename_bone(rig):
    rig.data.bones["lower"].name = "shin"


def remove_bone(rig):
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones.remove(rig.data.edit_bones["lower"])
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = bpy.data.objects["Limb"]


@pytest.mark.parametrize(("change", "advice"), [(rename_bone, 'If "shin" is'), (remove_bone, "Rename the bone back")])
def test_bones_have_changed(change, advice):
    ob, rig = limb_with_examples()
    change(rig)
    with pytest.raises(BadExamples) as raised:
        read(ob)
    for part in ('"lower X -90°"', 'the bone "lower"', advice):
        assert part in str(raised.value)


@pytest.mark.parametrize("posed_before", [False, True])
def test_a_bone_with_weights_of_its_own_since(posed_before):
    """Bones that did not exist, or did not deform, when the examples were added, count like bones with weights."""
    ob, rig = limb()
    add_bone(rig, "foot", "lower")
    add_bone(rig, "toes", "foot")
    turns = [("upper", "Z", 30), ("lower", "X", 70)]
    pose(rig, turns + [("foot", "Y", 25), ("toes", "X", 40)] * posed_before)
    rig.pose.bones["lower"].location = (0.1, 0.2, 0)
    bpy.context.view_layer.update()
    add()
    assert new_bones(ob) == ()
    ob.vertex_groups.new(name="toes").add(range(360, 372), 1.0, "REPLACE")
    bpy.context.view_layer.update()
    skin, joints = read_rig(bpy.context, ob)
    assert joints.joint_names[-2:] == ("foot", "toes")
    rotations, matrices = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())
    assert new_bones(ob) == ("toes",)
    examples = read(ob)
    assert np.abs(examples.matrices[0] - matrices).max() < 1e-5
    assert np.abs(examples.rotations[0] - rotations).max() < 1e-6
    rig.skinning_eigenskin.examples[0].enabled = False
    assert new_bones(ob) == ()


def test_a_bone_without_a_known_parent():
    ob, rig = limb_with_examples()
    add_bone(rig, "hat", "root")
    ob.vertex_groups.new(name="hat").add([0], 1.0, "REPLACE")
    with pytest.raises(BadExamples, match=r'"lower X -90°" does not know the bone "hat".*nor a parent'):
        read(ob)


def test_a_bone_that_no_example_poses_may_go():
    ob, rig = limb_with_examples(poses=[("upper", "Z", 40)])
    wanted = read(ob)
    remove_bone(rig)
    found = read(ob)
    assert np.array_equal(found.shapes, wanted.shapes)
    assert found.rotations.shape == (1, 3, 4)
