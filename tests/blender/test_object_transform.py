# SPDX-License-Identifier: GPL-3.0-or-later
"""The result coincides with the source in world space, whatever moves the source, and does not depend on it."""

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from skinning_tools.blender import actions
from skinning_tools.core.errors import BadScene
from tests.blender import rig_samples, scenes

FRAMES = 6


pytestmark = pytest.mark.usefixtures("empty")


def moving(object, seed=0, paths=("location", "rotation_euler", "scale")):
    """Key properties of ``object`` at frames 1, 4 and 6."""
    random = np.random.default_rng(seed)
    for path in paths:
        start = np.array(getattr(object, path))
        scenes.key_property(object, path, {1: start, 4: start + random.random(len(start)), 6: start - 0.4})


def empty(name="Empty", **properties):
    object = scenes.link(bpy.data.objects.new(name, None))
    for path, value in properties.items():
        setattr(object, path, value)
    return object


def drive(object, path, index, expression, target, target_path):
    """Drive a component of a property by a property of ``target``, as variable ``value``."""
    driver = object.driver_add(path, index).driver
    variable = driver.variables.new()
    variable.name = "value"
    variable.targets[0].id_type = "KEY" if isinstance(target, bpy.types.Key) else "OBJECT"
    variable.targets[0].id = target
    variable.targets[0].data_path = target_path
    driver.expression = expression


def plain(object):
    return object


def animated(object):
    moving(object)


def quaternions(object):
    object.rotation_mode = "QUATERNION"
    moving(object, paths=("location", "rotation_quaternion"))


def axis_angle(object):
    object.rotation_mode = "AXIS_ANGLE"
    moving(object, paths=("rotation_axis_angle",))


def other_order(object):
    object.rotation_mode = "ZXY"
    moving(object)


def negative_scale(object):
    object.scale = (-1, 2, -3)
    object.rotation_euler = (0.3, 0.4, 0.5)
    moving(object, paths=("location",))


def deltas(object):
    object.delta_scale = (1, 1, -0.5)
    object.delta_rotation_euler = (0.1, 0.2, 0.3)
    moving(object, paths=("location", "delta_location", "delta_rotation_euler"))


def animated_to_nothing(object):
    scenes.key_property(object, "scale", {1: (0, 0, 0), 4: (1, 2, 1), 6: (1, 1, 0)})


def bezier_with_modifier(object):
    moving(object, paths=("location",))
    curve = actions.curve_container(object).fcurves[0]
    curve.modifiers.new("NOISE").strength = 3
    curve.keyframe_points[0].handle_right = (3, 9)


def sheared_parent(object):
    parent = empty(scale=(1, 3, 0.5), rotation_euler=(0.2, 0.3, 0.4))
    moving(parent)
    object.parent = parent
    object.matrix_parent_inverse = Matrix.Translation((1, 2, 3)) @ Euler((0.5, 0.1, 0)).to_matrix().to_4x4()
    moving(object, seed=1)


def armature(name="Hips"):
    """An armature object with one bone, which turns."""
    object = scenes.link(bpy.data.objects.new(name, bpy.data.armatures.new(name)))
    bpy.ops.object.mode_set(mode="EDIT")
    bone = object.data.edit_bones.new("Hip")
    bone.head, bone.tail = (1, 0, 0), (1, 1, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    pose_bone = object.pose.bones["Hip"]
    pose_bone.rotation_mode = "XYZ"
    for frame, angle in ((1, 0.0), (6, 1.5)):
        pose_bone.rotation_euler = (angle, 0.3, 0)
        pose_bone.keyframe_insert("rotation_euler", frame=frame)
    return object


def bone_parent(object):
    object.parent = armature()
    object.parent_type, object.parent_bone = "BONE", "Hip"
    object.location = (1, 2, 3)


def deformed_by_parent(object):
    object.parent = armature()
    object.parent_type = "ARMATURE"
    moving(object.parent)


def vertex_parent(object):
    parent = scenes.grid(name="Carrier")
    scenes.shape_keys(parent, 1)
    key = parent.data.shape_keys.key_blocks[1]
    for frame, value in ((1, 0.0), (6, 1.0)):
        key.value = value
        key.keyframe_insert("value", frame=frame)
    object.parent, object.parent_type = parent, "VERTEX_3"
    object.parent_vertices = (1, 7, 12)


def path_parent(object):
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions, curve.use_path, curve.path_duration = "3D", True, 10
    scenes.key_property(curve, "eval_time", {1: 0, 6: 8})
    spline = curve.splines.new("POLY")
    spline.points.add(2)
    for point, position in zip(spline.points, ((0, 0, 0, 1), (3, 1, 0, 1), (4, 4, 4, 1)), strict=True):
        point.co = position
    object.parent = scenes.link(bpy.data.objects.new("Path", curve))


def constraints(object):
    target = empty()
    moving(target)
    copy = object.constraints.new("COPY_LOCATION")
    copy.target, copy.use_z = target, False
    limit = object.constraints.new("CHILD_OF")
    limit.target, limit.inverse_matrix = target, Matrix.Translation((0, 1, 2))
    limit.influence = 0.1
    limit.keyframe_insert("influence", frame=1)
    limit.influence = 0.9
    limit.keyframe_insert("influence", frame=6)
    moving(object, seed=3, paths=("location",))


def driver_of_another(object):
    target = empty()
    moving(target)
    drive(object, "rotation_euler", 2, "value * 2", target, "location[0]")


def driver_of_its_custom_property(object):
    object["lift"] = 0.0
    for frame, value in ((1, 0.0), (6, 4.0)):
        object["lift"] = value
        object.keyframe_insert('["lift"]', frame=frame)
    drive(object, "location", 2, "value", object, '["lift"]')


def driver_of_its_shape_keys(object):
    scenes.shape_keys(object, 1)
    block = object.data.shape_keys.key_blocks[1]
    for frame, value in ((1, 0.0), (6, 1.0)):
        block.value = value
        block.keyframe_insert("value", frame=frame)
    drive(object, "location", 0, "value * 5", object.data.shape_keys, 'key_blocks["Key 1"].value')


def nla(object):
    moving(object)
    animation = object.animation_data
    action = animation.action
    slot = getattr(animation, "action_slot", None)
    animation.action = None
    strip = animation.nla_tracks.new().strips.new("Move", 2, action)
    if slot is not None:
        strip.action_slot = slot
    strip.scale = 0.5


def nla_under_a_sheared_parent(object):
    parent = empty(scale=(1, 3, 0.5), rotation_euler=(0.2, 0.3, 0.4))
    object.parent = parent
    nla(object)


def one_slot_of_many(object):
    other = empty("Other")
    moving(other, seed=5)
    if hasattr(other.animation_data.action, "slots"):
        object.animation_data_create().action = other.animation_data.action
        object.animation_data.action_slot = other.animation_data.action.slots.new("OBJECT", "Mine")
    moving(object)


SETUPS = [
    plain,
    animated,
    quaternions,
    axis_angle,
    other_order,
    negative_scale,
    deltas,
    animated_to_nothing,
    bezier_with_modifier,
    sheared_parent,
    bone_parent,
    deformed_by_parent,
    vertex_parent,
    path_parent,
    constraints,
    driver_of_another,
    driver_of_its_custom_property,
    driver_of_its_shape_keys,
    nla,
    nla_under_a_sheared_parent,
    one_slot_of_many,
]


def animation(kind="RIGID"):
    """A decomposition and its object at rest."""
    result = rig_samples.decomposition(rig_samples.random_transforms(kind, FRAMES, 3), kind)
    return result, rig_samples.cloud(result)


def worlds(*objects):
    """(frames, objects, 4, 4) world matrices as the user's scene evaluates them."""
    matrices = []
    for frame in range(1, FRAMES + 1):
        bpy.context.scene.frame_set(frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        matrices.append([np.array(object.evaluated_get(depsgraph).matrix_world) for object in objects])
    return np.array(matrices)


def assert_coincide(matrices):
    """All objects of ``matrices`` (frames, objects, 4, 4) are in the same place."""
    size = np.abs(matrices).max()
    assert np.abs(matrices[:, 1:] - matrices[:, :1]).max() <= 1e-5 * size


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.__name__)
def test_the_result_coincides_with_the_source(setup):
    result, object = animation()
    setup(object)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    matrices = worlds(object, rig.armature, rig.object)
    moves = np.abs(matrices - matrices[:1]).max()
    assert moves == 0 if setup is plain else moves > 0.1
    assert_coincide(matrices)
    assert rig.object.parent == rig.armature
    assert np.array_equal(rig.object.matrix_basis, np.eye(4))


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.__name__)
def test_the_result_does_not_use_the_source(setup):
    result, object = animation()
    setup(object)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    before = worlds(object)
    mine = set(rig.data_blocks)
    own = [object, object.data] + ([object.data.shape_keys] if object.data.shape_keys else [])
    users = bpy.data.user_map(subset=own)
    assert not any(mine & users[block] for block in own)
    bpy.data.objects.remove(object)
    assert_coincide(np.concatenate([before, worlds(rig.armature, rig.object)], axis=1))


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.__name__)
def test_the_source_moves_as_before(setup):
    result, object = animation()
    setup(object)
    before, blocks = worlds(object), scenes.data_blocks()
    source = rig_samples.source_animation(object, result)
    rig = rig_samples.write_rig(source, result)
    bpy.data.batch_remove(rig.data_blocks)
    assert np.array_equal(worlds(object), before)
    assert scenes.data_blocks() == blocks


@pytest.mark.parametrize("setup", [animated, nla, nla_under_a_sheared_parent], ids=lambda setup: setup.__name__)
def test_a_scene_that_stretches_time(setup):
    bpy.context.scene.render.frame_map_old, bpy.context.scene.render.frame_map_new = 30, 40
    result, object = animation()
    setup(object)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert_coincide(worlds(object, rig.armature, rig.object))


def test_animation_is_copied_where_it_can_be():
    """Three keys stay three keys, and a parent's motion stays the parent's."""
    result, object = animation()
    sheared_parent(object)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert rig.armature.parent == object.parent
    curves = [curve for curve in actions.curve_container(rig.armature).fcurves if curve.data_path == "location"]
    assert [len(curve.keyframe_points) for curve in curves] == [3, 3, 3]
    assert rig.action != object.animation_data.action


def test_other_animation_of_the_object_is_not_copied():
    result, object = animation()
    moving(object, paths=("location",))
    object["mood"] = 1.0
    object.keyframe_insert('["mood"]', frame=1)
    object.keyframe_insert("hide_render", frame=1)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    paths = {curve.data_path for curve in actions.curve_container(rig.armature).fcurves}
    assert {path for path in paths if not path.startswith("pose.")} == {"location"}


def test_rigid_bodies_are_keyed():
    result, object = animation()
    object.location = (0, 0, 5)
    object.rotation_euler = (0.3, 0.4, 0)
    with bpy.context.temp_override(object=object, active_object=object, selected_objects=[object]):
        bpy.ops.rigidbody.world_add()
        bpy.ops.rigidbody.object_add()
    before = worlds(object)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert np.abs(before[-1] - before[0]).max() > 0.05
    assert_coincide(np.concatenate([before, worlds(rig.armature, rig.object)], axis=1))
    assert rig.armature.rigid_body is None


def test_a_driver_that_reads_the_scene():
    result, object = animation()
    driver = object.driver_add("location", 1).driver
    variable = driver.variables.new()
    variable.name = "value"
    variable.targets[0].id_type = "SCENE"
    variable.targets[0].id = bpy.context.scene
    variable.targets[0].data_path = "frame_current"
    driver.expression = "value"
    bpy.context.scene.frame_set(3)
    rig = rig_samples.write_rig(rig_samples.source_animation(object, result), result)
    assert bpy.context.scene.frame_current == 3
    assert_coincide(worlds(object, rig.armature, rig.object))


def test_a_shear_that_nothing_can_key_is_refused(monkeypatch):
    """What moves the object can not be copied, and its world transform is none that one object can have."""
    result, object = animation()
    parent = empty(scale=(1, 3, 0.5), rotation_euler=(0.2, 0.3, 0.4))
    object.parent = parent
    object.rotation_euler = (0.5, 0, 0.5)
    source = rig_samples.source_animation(object, result)
    source.mesh.name = "Flag_skinned"
    before = scenes.data_blocks()
    monkeypatch.setattr("skinning_tools.blender.object_transform._copy_static", lambda source, target: None)
    with pytest.raises(BadScene, match=r'"Flag".*frame 1.*shear'):
        rig_samples.write_rig(source, result)
    assert scenes.data_blocks() == before


@pytest.mark.parametrize("setup", [animated, bone_parent, constraints, nla], ids=lambda setup: setup.__name__)
def test_a_linked_source(tmp_path, setup):
    result, object = animation()
    setup(object)
    expected = worlds(object)
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {object}, path_remap="ABSOLUTE", fake_user=True)
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = ["Flag"]
    linked = scenes.link(wanted.objects[0])
    rig = rig_samples.write_rig(rig_samples.source_animation(linked, result), result)
    assert all(block.library is None for block in rig.data_blocks)
    matrices = worlds(linked, rig.armature, rig.object)
    assert_coincide(np.concatenate([expected, matrices], axis=1))
