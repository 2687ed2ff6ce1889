# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of an EigenSkin: what is stored is what Blender shows, it stays with the file, and bad input is refused."""

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

import skinning_tools
from skinning_tools.core.deform import skin_frame, vertex_normals
from skinning_tools.core.eigenskin import BadExamples
from skinning_tools.core.errors import BadScene
from skinning_tools.scene import example_sources
from skinning_tools.scene.eigenskin_examples import current_pose, new_bones, read_examples, read_rig
from tests.blender import moving_meshes, scenes
from tests.blender.eigenskin_scenes import add_example, limb, limb_with_examples, pose
from tests.blender.skinned_meshes import diagonal

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def posed():
    """The limb with its lower bone turned."""
    ob, rig = limb()
    pose(rig, [("lower", "X", 70), ("upper", "Z", 20)])
    return ob, rig


def add(**given):
    assert bpy.ops.skinning.eigenskin_add_example(**given) == {"FINISHED"}


def read(ob):
    return read_examples(ob, read_rig(bpy.context, ob)[1])


def examples_of(rig) -> list:
    return [(item.name, item.kind, item.mesh, item.frame) for item in rig.skinning_eigenskin.examples]


def state() -> tuple:
    """All that a refused operator must leave as it was."""
    lists = [examples_of(ob) for ob in bpy.data.objects if ob.type == "ARMATURE"]
    shapes = [[a.name for a in mesh.attributes] for mesh in bpy.data.meshes]
    bases = [[tuple(map(tuple, b.matrix_basis)) for b in ob.pose.bones] for ob in bpy.data.objects if ob.pose]
    return moving_meshes.state(), lists, shapes, bases


def refused(operator: str, *parts: str, **given) -> None:
    before = state()
    with pytest.raises(RuntimeError) as raised:
        getattr(bpy.ops.skinning, operator)(**given)
    assert [part for part in parts if part not in str(raised.value)] == [], raised.value
    assert "fault of its own" not in str(raised.value)
    assert state() == before


def near(ob, shape, wanted, tolerance=1e-6) -> None:
    assert np.abs(shape - wanted).max() < tolerance * diagonal(ob)


# --- The joints


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


def limit(rig):
    constraint = rig.pose.bones["lower"].constraints.new("LIMIT_ROTATION")
    constraint.use_limit_x, constraint.min_x, constraint.max_x = True, -0.5, 0.5
    constraint.owner_space = "LOCAL"


def copy_rotation(rig):
    constraint = rig.pose.bones["lower"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget, constraint.influence = rig, "upper", 0.6


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


# --- Where shapes come from


def test_the_mesh_itself_with_its_modifiers(posed):
    ob, _rig = posed
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    smooth = ob.modifiers.new("Smooth", "CORRECTIVE_SMOOTH")
    smooth.iterations = 3
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    examples = read(ob)
    assert examples.names == ("lower X +70° and 1 more",)
    near(ob, examples.shapes[0], shown, tolerance=1e-7)
    skin, joints = read_rig(bpy.context, ob)
    rotations, matrices = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())
    assert np.abs(examples.rotations[0] - rotations).max() < 1e-12
    assert np.abs(examples.matrices[0] - matrices).max() < 1e-12
    assert examples.normals is None
    plain = skin_frame(skin.rest, skin.bones, skin.weights, matrices)
    assert np.abs(shown - plain).max() > 0.01 * diagonal(ob)


def test_another_mesh_through_world_space(posed):
    ob, rig = posed
    skin, _ = read_rig(bpy.context, ob)
    wanted = skin.rest + np.random.default_rng(3).normal(scale=0.1, size=skin.rest.shape)
    target = ob.copy()
    target.data = ob.data.copy()
    target.modifiers.clear()
    scenes.link(target)
    target.location, target.rotation_euler, target.scale = (3, 2, 1), (0.4, 1, 2), (2, 0.5, 1)
    bpy.context.view_layer.update()
    to_target = np.array(target.matrix_world.inverted() @ ob.matrix_world)
    own = wanted @ to_target[:3, :3].T + to_target[:3, 3]
    target.data.attributes["position"].data.foreach_set("vector", own.astype(np.float32).ravel())
    target.data.update()
    bpy.context.view_layer.objects.active = ob
    add(source="MESH", name="Sculpted")
    assert examples_of(rig) == [("Sculpted", "MESH", ob, bpy.context.scene.frame_current)]
    near(ob, read(ob).shapes[0], wanted, tolerance=2e-6)


def test_another_mesh_with_its_own_armature_modifier(posed):
    ob, _rig = posed
    target = ob.copy()
    target.data = ob.data.copy()
    scenes.link(target)
    target.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    add(source="MESH")
    near(ob, read(ob).shapes[0], scenes.evaluated_positions(target))
    assert np.abs(read(ob).shapes[0] - scenes.evaluated_positions(ob)).max() > 0.01 * diagonal(ob)


@pytest.mark.parametrize("named", [True, False])
def test_a_shape_key_before_the_bones(posed, named):
    ob, rig = posed
    first, second = scenes.shape_keys(ob, count=2)
    second.relative_key = first
    group = ob.vertex_groups.new(name="Half")
    group.add(range(150), 0.5, "REPLACE")
    second.vertex_group = "Half"
    ob.active_shape_key_index = 2
    add(source="SHAPE_KEY", shape_key="Key 2" if named else "")
    shape = read(ob).shapes[0]
    # As Blender itself blends it.
    second.value = 1.0
    bpy.context.view_layer.update()
    near(ob, shape, scenes.evaluated_positions(ob))
    assert rig.skinning_eigenskin.examples[0].kind == "SHAPE_KEY"


def without_corrections(ob) -> np.ndarray:
    """What Preserve Volume shows without any shape key."""
    copy = ob.copy()
    copy.data = ob.data.copy()
    scenes.link(copy)
    copy.shape_key_clear()
    copy.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(copy)
    bpy.data.objects.remove(copy)
    bpy.context.view_layer.objects.active = ob
    return shown


@pytest.mark.parametrize("muted", [False, True])
def test_the_mesh_without_an_earlier_correction(muted, capfd):
    ob, rig = limb()
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    pose(rig, [("lower", "X", 70)])
    add()
    bpy.ops.skinning.build_eigenskin()
    pose(rig, [("lower", "X", 40), ("upper", "Z", 30)])
    bpy.ops.skinning.mute_eigenskin(mute=muted)
    wanted = without_corrections(ob)
    ob.active_shape_key_index = 1
    before = scenes.evaluated_positions(ob)
    assert np.abs(before - wanted).max() > 0.01 * diagonal(ob)
    capfd.readouterr()
    add()
    assert 'read without the corrections, with Preserve Volume in "Armature" as before' in capfd.readouterr().out
    near(ob, read(ob).shapes[1], wanted)
    assert not ob.show_only_shape_key
    assert ob.active_shape_key_index == 1
    assert not ob.modifiers["Armature"].use_deform_preserve_volume
    assert np.array_equal(scenes.evaluated_positions(ob), before)


@pytest.mark.parametrize("driven", [False, True])
def test_the_artists_shape_keys_are_left_out(posed, driven, capfd):
    ob, _ = posed
    wanted = scenes.evaluated_positions(ob)
    scenes.shape_keys(ob, count=2)
    smile = ob.data.shape_keys.key_blocks[1]
    if driven:
        smile.driver_add("value").driver.expression = "0.5"
    else:
        smile.value = 0.5
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    near(ob, read(ob).shapes[0], wanted)
    text = capfd.readouterr().out
    assert 'read without the shape keys "Key 1", which stay on top' in text
    assert "Key 2" not in text
    assert smile.value == pytest.approx(0.5)
    assert np.array_equal(scenes.evaluated_positions(ob), shown)


def test_normals_of_the_shapes():
    ob, _rig = limb_with_examples()
    skin, joints = read_rig(bpy.context, ob)
    examples = read_examples(ob, joints, normals=True)
    assert np.abs(np.linalg.norm(examples.normals, axis=-1) - 1).max() < 1e-6
    for shape, normals in zip(examples.shapes, examples.normals, strict=True):
        assert np.array_equal(normals, vertex_normals(shape, skin.triangles).astype(np.float32))


def test_armature_scaled_evenly(posed):
    ob, rig = posed
    rig.scale = (2.5, 2.5, 2.5)
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.update()
    add()
    examples, (skin, _) = read(ob), read_rig(bpy.context, ob)
    assert np.abs(np.linalg.norm(examples.rotations[0], axis=1) - 1).max() < 1e-12
    near(ob, examples.shapes[0], scenes.evaluated_positions(ob))
    volume = skin_frame(skin.rest, skin.bones, skin.weights, examples.matrices[0], "DQS")
    near(ob, examples.shapes[0], volume, tolerance=1e-5)


def test_armature_and_mesh_scaled_unevenly(posed):
    """Linear blending does not mind, and rotations are those of the bones in the armature."""
    ob, rig = posed
    skin, joints = read_rig(bpy.context, ob)
    wanted = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())[0]
    rig.scale, ob.scale = (1, 2, 1.5), (0.7, 1, 1)
    bpy.context.view_layer.update()
    add()
    examples = read(ob)
    assert np.abs(examples.rotations[0] - wanted).max() < 1e-6
    near(ob, examples.shapes[0], scenes.evaluated_positions(ob))
    near(ob, skin_frame(skin.rest, skin.bones, skin.weights, examples.matrices[0]), examples.shapes[0])


def test_active_armature_stands_for_the_mesh_it_deforms(posed):
    ob, rig = posed
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    add()
    assert examples_of(rig)[0][2] == ob
    other = ob.copy()
    scenes.link(other)
    bpy.context.view_layer.objects.active = rig
    for member in (ob, other):
        member.select_set(False)
    # The one that has examples already, then the selected one.
    pose(rig, [("lower", "X", 30)])
    add()
    other.select_set(True)
    add()
    assert [entry[2] for entry in examples_of(rig)] == [ob, ob, other]


# --- Storage


def test_what_is_read_back_builds(posed):
    ob, rig = limb_with_examples()
    items = rig.skinning_eigenskin.examples
    assert len({item.storage for item in items}) == 1
    storage = items[0].storage
    assert (storage.name, len(storage.vertices), storage.users) == ("Limb examples", len(ob.data.vertices), len(items))
    items[1].enabled = False
    names = [item.name for item in items if item.enabled]
    examples = read(ob)
    assert list(examples.names) == names
    assert "lower X -60°" not in names


def test_examples_of_two_meshes(posed):
    ob, rig = posed
    other = ob.copy()
    other.data = ob.data.copy()
    scenes.link(other)
    ob.select_set(False)
    add()
    bpy.context.view_layer.objects.active = ob
    other.select_set(False)
    add()
    pose(rig, [("lower", "X", 30)])
    add()
    assert [len(read(character).names) for character in (ob, other)] == [2, 1]
    assert len({item.storage for item in rig.skinning_eigenskin.examples}) == 2


def test_equal_names_get_numbers(posed):
    _ob, rig = posed
    for degrees in (20, 30, 40):
        pose(rig, [("lower", "X", degrees)])
        add(name="Bent")
    assert [entry[0] for entry in examples_of(rig)] == ["Bent", "Bent.001", "Bent.002"]


@pytest.mark.parametrize("enabled", [True, False])
def test_an_example_of_the_same_pose_is_replaced(enabled):
    ob, rig = limb_with_examples()
    items = rig.skinning_eigenskin.examples
    others, storage = [item.name for item in items if item.name != "lower X +60°"], items[0].storage
    items["lower X +60°"].enabled = enabled
    pose(rig, [("lower", "X", 60.2)])
    ob.modifiers.new("Smooth", "SMOOTH").iterations = 5
    bpy.context.view_layer.update()
    add()
    assert [item.name for item in items] == [*others, "lower X +60°"]
    assert [item.enabled for item in items] == [True] * len(others) + [enabled]
    items[-1].enabled = True
    near(ob, read(ob).shapes[-1], scenes.evaluated_positions(ob))
    assert set(storage.keys()) == {item.uid for item in items}
    assert rig.skinning_eigenskin.active_index == len(others)
    pose(rig, [("lower", "X", 59)])
    add()
    assert len(items) == len(others) + 2


@pytest.mark.parametrize("registered", [True, False], ids=["with the extension", "without it"])
def test_examples_stay_with_the_file(tmp_path, registered):
    ob, _rig = limb_with_examples()
    wanted, path = read(ob), str(tmp_path / "rig.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    if not registered:
        skinning_tools.unregister()
        try:
            for _ in range(2):
                bpy.ops.wm.open_mainfile(filepath=path)
                bpy.ops.wm.save_as_mainfile(filepath=path)
        finally:
            skinning_tools.register()
    bpy.ops.wm.open_mainfile(filepath=path)
    found = read(bpy.data.objects["Limb"])
    assert found.names == wanted.names
    for name in ("rotations", "matrices", "shapes"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name))


def test_removing():
    ob, rig = limb_with_examples()
    group = rig.skinning_eigenskin
    wanted, before = read(ob), [item.name for item in group.examples]
    storage = group.examples[0].storage
    group.active_index = 3
    bpy.ops.skinning.eigenskin_remove_example(index=1)
    assert group.examples[group.active_index].name == before[3]
    group.active_index = len(before) - 2
    bpy.ops.skinning.eigenskin_remove_example()
    names = [item.name for item in group.examples]
    assert names == [before[0], *before[2:-1]]
    assert group.active_index == len(names) - 1
    assert np.array_equal(read(ob).shapes, wanted.shapes[[0, *range(2, len(before) - 1)]])
    uids = {item.uid for item in group.examples}
    assert {a.name for a in storage.attributes if a.name != "position" and not a.is_internal} == uids
    assert set(storage.keys()) == uids
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    assert list(bpy.data.meshes) == [ob.data]
    refused("eigenskin_remove_example", '"Limb rig" has no examples')


def test_a_copy_of_the_armature_keeps_its_shapes():
    ob, rig = limb_with_examples()
    copy = rig.copy()
    scenes.link(copy)
    wanted = read(ob)
    bpy.context.view_layer.objects.active = copy
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    assert np.array_equal(read(ob).shapes, wanted.shapes)


def test_removing_what_is_damaged():
    ob, rig = limb_with_examples()
    bpy.data.meshes.remove(rig.skinning_eigenskin.examples[0].storage)
    with pytest.raises(BadExamples, match='"lower X -90°" has lost its shape'):
        read(ob)
    refused("eigenskin_apply_pose", "lost its shape")
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    assert not rig.skinning_eigenskin.examples


def test_undo(posed):
    bpy.ops.ed.undo_push(message="before")
    add()
    bpy.ops.ed.undo_push(message="added")
    bpy.ops.ed.undo()
    rig = bpy.data.objects["Limb rig"]
    assert not rig.skinning_eigenskin.examples
    assert len(bpy.data.meshes) == 1
    bpy.ops.ed.redo()
    assert len(read(bpy.data.objects["Limb"]).names) == 1


# --- Changes of rig and mesh


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
    """What was not there, or did not deform, when the examples were added: as if it had weights then."""
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


# --- Showing poses


@pytest.mark.parametrize("mode", ["QUATERNION", "XYZ", "ZXY", "AXIS_ANGLE"])
def test_showing_a_pose(mode):
    ob, rig = limb()
    bone = rig.pose.bones["lower"]
    pose(rig)
    rig.pose.bones["upper"].rotation_quaternion = Quaternion((1, 2, 3), 0.8)
    bone.rotation_quaternion = Quaternion((3, -1, 2), 1.1)
    bone.location, bone.scale = (0.1, 0.2, -0.1), (1.1, 0.9, 1.2)
    rig.pose.bones["root"].location = (0.5, 0, 0.1)
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    pose(rig, [("trunk", "X", 40)])
    bone.rotation_mode = mode
    bpy.ops.skinning.eigenskin_apply_pose()
    near(ob, scenes.evaluated_positions(ob), shown)
    assert bone.rotation_mode == mode


def add_bone(rig, name, parent):
    """Another bone, beyond the limb's end."""
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    bone = rig.data.edit_bones.new(name)
    bone.head, bone.tail, bone.parent = (2, 0, 0), (3, 0, 0), rig.data.edit_bones[parent]
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = bpy.data.objects["Limb"]


def test_showing_a_pose_of_controls():
    ob, rig = limb()
    add_bone(rig, "control", "root")
    pose(rig, [("control", "Z", 40), ("upper", "X", 10)])
    constraint = rig.pose.bones["lower"].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget = rig, "control"
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    pose(rig)
    bpy.ops.skinning.eigenskin_apply_pose()
    near(ob, scenes.evaluated_positions(ob), shown)


def test_showing_a_pose_without_its_controls():
    """As examples are that were not posed by hand: from rotations and matrices alone."""
    ob, rig = limb()
    pose(rig, [("upper", "Z", 40), ("lower", "X", 50)])
    rig.pose.bones["root"].rotation_quaternion = Quaternion((3, -1, 2), 1.1)
    rig.pose.bones["lower"].location = (0.1, 0.2, -0.1)
    rig.pose.bones["lower"].scale = (1.1, 0.9, 1.2)
    rig.data.bones["lower"].use_inherit_rotation = False
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    item = rig.skinning_eigenskin.examples[0]
    item.storage[item.uid]["channels"] = "{}"
    pose(rig)
    bpy.ops.skinning.eigenskin_apply_pose()
    near(ob, scenes.evaluated_positions(ob), shown, tolerance=1e-5)


def test_showing_a_pose_does_not_turn_what_constraints_turn():
    ob, rig = limb()
    pose(rig, [("upper", "Z", 40)])
    copy_rotation(rig)
    rig.pose.bones["lower"].constraints[0].mix_mode = "ADD"
    bpy.context.view_layer.update()
    shown = scenes.evaluated_positions(ob)
    add()
    item = rig.skinning_eigenskin.examples[0]
    item.storage[item.uid]["channels"] = "{}"
    pose(rig)
    bpy.ops.skinning.eigenskin_apply_pose()
    near(ob, scenes.evaluated_positions(ob), shown, tolerance=1e-5)


def test_showing_a_pose_that_something_else_holds(capfd):
    _ob, rig = limb_with_examples()
    limit(rig)
    bpy.ops.skinning.eigenskin_apply_pose(index=0)
    assert 'Warning: "lower" cannot be posed as in "lower X -90°"' in capfd.readouterr().out


# --- Reports


def test_reports(posed, capfd):
    ob, _rig = posed
    add()
    assert "corrects nothing" in capfd.readouterr().out
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.update()
    add(name="Bent")
    text = capfd.readouterr().out
    assert 'Limb: example "Bent" added, 1 in all, up to' in text
    assert "1 of the same pose replaced" in text


# --- Bad input


def no_armature(ob, rig):
    ob.modifiers.clear()


def no_groups(ob, rig):
    ob.vertex_groups.clear()


def edit_mode(ob, rig):
    bpy.ops.object.mode_set(mode="EDIT")


def at_rest(ob, rig):
    pose(rig)


def rest_position(ob, rig):
    rig.data.pose_position = "REST"


def absolute_keys(ob, rig):
    scenes.shape_keys(ob)
    ob.data.shape_keys.use_relative = False


def two_armature_modifiers(ob, rig):
    ob.modifiers.new("Second", "ARMATURE").object = rig


def muted_armature_modifier(ob, rig):
    ob.modifiers["Armature"].show_viewport = False


def subdivided(ob, rig):
    ob.modifiers.new("Finer", "SUBSURF").levels = 1


def no_scale(ob, rig):
    ob.scale.x = 0


# What is wrong, and parts of the message.
BAD_SCENES = [
    (no_armature, ["No armature deforms", '"Limb"']),
    (no_groups, ["no vertex groups", '"Limb"']),
    (edit_mode, ["Edit Mode", '"Limb"']),
    (at_rest, ["Pose the armature first", '"Limb rig"']),
    (rest_position, ["rest position", '"Limb rig"', "Pose Position"]),
    (absolute_keys, ["absolute", '"Limb"', "Relative"]),
    (two_armature_modifiers, ['"Armature"', '"Second"', '"Limb"']),
    (muted_armature_modifier, ['"Armature"', "disabled", '"Limb"']),
    (subdivided, ["372", '"Limb"', '"Finer" (Subdivision Surface)']),
    (no_scale, ["scale of zero", '"Limb"']),
]


@pytest.mark.parametrize(("spoil", "parts"), BAD_SCENES, ids=[spoil.__name__ for spoil, _ in BAD_SCENES])
def test_bad_scenes(posed, spoil, parts):
    spoil(*posed)
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", *parts)


def test_no_object_and_an_armature_without_a_mesh(posed):
    ob, rig = posed
    bpy.context.view_layer.objects.active = None
    refused("eigenskin_add_example", "no active object")
    bpy.data.objects.remove(ob)
    bpy.context.view_layer.objects.active = rig
    refused("eigenskin_add_example", '"Limb rig" deforms no mesh')


def test_armature_of_several_meshes(posed):
    ob, rig = posed
    other = ob.copy()
    scenes.link(other)
    bpy.context.view_layer.objects.active = rig
    refused("eigenskin_add_example", "several meshes", '"Limb", "Limb.001"')


def test_an_animated_mesh_under_a_muted_modifier_is_right(posed, tmp_path):
    ob, rig = posed
    wanted = np.random.default_rng(1).normal(size=(1, len(ob.data.vertices), 3)).astype(np.float32)
    scenes.write_pc2(tmp_path / "shape.pc2", wanted)
    scenes.point_cache(ob, tmp_path / "shape.pc2", "PC2")
    muted_armature_modifier(ob, rig)
    bpy.context.view_layer.update()
    add()
    near(ob, read(ob).shapes[0], wanted[0])


def test_other_mesh_is_missing_ambiguous_or_other(posed):
    ob, _rig = posed
    refused("eigenskin_add_example", "No other mesh is selected", '"Limb"', source="MESH")
    grid = scenes.grid()
    bpy.context.view_layer.objects.active = ob
    refused("eigenskin_add_example", '"Flag" has 20 vertices', '"Limb" has 372', source="MESH")
    for _ in range(2):
        copy = ob.copy()
        scenes.link(copy)
    bpy.context.view_layer.objects.active = ob
    refused("eigenskin_add_example", "Several other meshes", "2 of them", "372", source="MESH")
    copy.select_set(False)
    add(source="MESH")
    grid.hide_set(True)


def test_other_mesh_is_somewhere_else(posed, capfd):
    ob, _ = posed
    copy = ob.copy()
    scenes.link(copy)
    bpy.context.view_layer.objects.active = ob
    copy.location.y += 3
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", f'"{copy.name}" is about 3 m away', '"Limb"', source="MESH")
    copy.location.y -= 2.8
    bpy.context.view_layer.update()
    add(source="MESH")
    assert f'with the shape of "{copy.name}" added' in capfd.readouterr().out


def test_shape_key_is_missing(posed):
    ob, _rig = posed
    refused("eigenskin_add_example", "no shape key that is active", source="SHAPE_KEY")
    scenes.shape_keys(ob)
    refused("eigenskin_add_example", 'no shape key "Elbow"', source="SHAPE_KEY", shape_key="Elbow")
    refused("eigenskin_add_example", 'no shape key "Basis"', source="SHAPE_KEY", shape_key="Basis")


def test_not_a_number(posed):
    ob, _rig = posed
    scenes.shape_keys(ob, count=1)
    ob.data.shape_keys.key_blocks[1].points[7].co.x = float("nan")
    refused("eigenskin_add_example", "not a number", '"Limb"', "vertex 7", source="SHAPE_KEY", shape_key="Key 1")
    target = ob.copy()
    target.data = ob.data.copy()
    scenes.link(target)
    target.data.shape_keys.key_blocks[1].value = 1.0
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", "not a number", f'"{target.name}"', "vertex 7", source="MESH")


@pytest.mark.parametrize("kind", ["objects", "overrides"])
def test_linked_character(tmp_path, kind):
    ob, rig = limb()
    collection = bpy.data.collections.new("Character")
    bpy.context.scene.collection.children.link(collection)
    for member in (ob, rig):
        bpy.context.scene.collection.objects.unlink(member)
        collection.objects.link(member)
    path = str(tmp_path / "rig.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.collections = ["Character"]
    linked = bpy.data.collections["Character"]
    if kind == "overrides":
        linked.override_hierarchy_create(bpy.context.scene, bpy.context.view_layer, do_fully_editable=True)
    else:
        bpy.context.scene.collection.children.link(linked)
    found = {member.type: member for member in bpy.context.scene.objects}
    bpy.context.view_layer.objects.active = found["MESH"]
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", "library override" if kind == "overrides" else "linked from another file")


def test_linked_mesh(posed, tmp_path):
    ob, _ = posed
    path = str(tmp_path / "mesh.blend")
    bpy.data.libraries.write(path, {ob.data})
    with bpy.data.libraries.load(path, link=True) as (there, wanted):
        wanted.meshes = there.meshes
    ob.data = bpy.data.meshes["Limb mesh", path]
    bpy.context.view_layer.update()
    refused("eigenskin_add_example", '"Limb" is linked from another file')


def test_index_out_of_the_list():
    _, rig = limb_with_examples()
    count = len(rig.skinning_eigenskin.examples)
    refused("eigenskin_remove_example", f"no example {count}", index=count)
    refused("eigenskin_apply_pose", "no example -2", index=-2)


def test_reading_needs_no_context_object(posed):
    with pytest.raises(BadScene, match="is not a mesh"):
        example_sources.check_addable(bpy.context, bpy.data.objects.new("Nothing", None))
