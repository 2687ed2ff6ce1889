# SPDX-License-Identifier: GPL-3.0-or-later
"""bpy.ops.skinning.bind with as_objects: objects parented to bones, where they stand at rest and in a pose."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion

from tests.blender import refusals, scenes
from tests.blender.binding_scenes import activate, armature_of_segments, cube

pytestmark = pytest.mark.usefixtures("extension")


# Bones of a robot: a spine with a head, two arms of three, two legs of three; and how many objects each of them has.
BONES = {
    "spine": ((0, 0, 3), (0, 0, 5), 3),
    "head": ((0, 0, 5), (0, 0, 6), 3),
    **{
        f"{name}.{side}": ((sign * x, 0, z), (sign * x2, 0, z2), 2)
        for side, sign in (("L", 1), ("R", -1))
        for name, x, z, x2, z2 in (
            ("upper_arm", 0.8, 4.8, 2, 4.8),
            ("lower_arm", 2, 4.8, 3.2, 4.8),
            ("hand", 3.2, 4.8, 3.8, 4.8),
            ("thigh", 0.5, 3, 0.5, 1.6),
            ("shin", 0.5, 1.6, 0.5, 0.3),
            ("foot", 0.5, 0.3, 0.5, 0),
        )
    },
}


def robot():
    """An armature, and thirty objects around its bones, turned and scaled: their bones by their names."""
    scenes.empty_scene()
    rig = armature_of_segments([(head, tail) for head, tail, _ in BONES.values()], "Robot rig")
    for bone, name in zip(list(rig.data.bones), BONES, strict=True):
        bone.name = name
    random = np.random.default_rng(0)
    expected = {}
    rig.location, rig.rotation_euler, rig.scale = (0.3, 0.2, -0.1), (0.1, -0.2, 0.7), (1.5, 1.5, 1.5)
    bpy.context.view_layer.update()
    for name, (head, tail, count) in BONES.items():
        head, tail = np.array(head), np.array(tail)
        for part in range(count):
            ob = cube(f"{name} {part}", (0, 0, 0), 0.1)
            # No farther off than that most of it stays beside its bone: a foot's first is 0.1 from the shin.
            ob.data.transform(Matrix.Translation(random.uniform(-0.05, 0.05, 3)))
            place = Matrix.Translation(head + (tail - head) * (part + 1) / (count + 1))
            turn = Quaternion(random.normal(size=4)).normalized().to_matrix().to_4x4()
            ob.matrix_world = rig.matrix_world @ place @ turn @ Matrix.Diagonal((*random.uniform(0.5, 1.5, 3), 1))
            expected[ob.name] = name
    bpy.context.view_layer.update()
    assert len(expected) == 30
    return rig, expected


def pose(rig, seed=1) -> None:
    random = np.random.default_rng(seed)
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion(random.normal(size=4)).normalized()
        bone.location, bone.scale = random.uniform(-0.2, 0.2, 3), (1, random.uniform(0.5, 1.5), 1)
    bpy.context.view_layer.update()


def rest(rig) -> None:
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
        bone.rotation_quaternion, bone.location, bone.scale = (1, 0, 0, 0), (0, 0, 0), (1, 1, 1)
    bpy.context.view_layer.update()


def places(names) -> dict[str, np.ndarray]:
    return {name: np.array(bpy.data.objects[name].matrix_world) for name in names}


def moved(rig, world: dict, bones: dict) -> dict[str, np.ndarray]:
    """Where the bones take what stands at ``world`` at rest."""
    found = {}
    for name, matrix in world.items():
        bone = rig.pose.bones[bones[name]]
        change = rig.matrix_world @ bone.matrix @ bone.bone.matrix_local.inverted() @ rig.matrix_world.inverted()
        found[name] = np.array(change) @ matrix
    return found


def parent(rig, names, **settings) -> None:
    activate(rig, *(bpy.data.objects[name] for name in names))
    assert bpy.ops.skinning.bind(method="RIGID", as_objects=True, **settings) == {"FINISHED"}
    bpy.context.view_layer.update()


def check_places(found: dict, expected: dict) -> None:
    for name, matrix in expected.items():
        assert np.allclose(found[name], matrix, atol=2e-5), name


@pytest.mark.parametrize("posed", [False, True])
@pytest.mark.parametrize("relative", [False, True])
def test_objects_of_a_robot_hang_on_the_bones_they_belong_to(posed, relative, capfd):
    rig, expected = robot()
    for bone in rig.data.bones:
        bone.use_relative_parent = relative
    before = places(expected)
    channels = {name: np.array(bpy.data.objects[name].matrix_basis) for name in expected}
    if posed:
        pose(rig)
    parent(rig, expected)
    assert 'parented to 14 bones of "Robot rig"' in capfd.readouterr().out
    assert {name: bpy.data.objects[name].parent_bone for name in expected} == expected
    for name in expected:
        ob = bpy.data.objects[name]
        assert (ob.parent, ob.parent_type, len(ob.modifiers), len(ob.vertex_groups)) == (rig, "BONE", 0, 0)
        assert np.array_equal(ob.matrix_basis, channels[name])
    if posed:
        check_places(places(expected), moved(rig, before, expected))
    rest(rig)
    check_places(places(expected), before)
    pose(rig, 2)
    check_places(places(expected), moved(rig, before, expected))


def test_again_in_a_pose_nothing_moves():
    rig, expected = robot()
    before = places(expected)
    parent(rig, expected)
    pose(rig)
    posed = places(expected)
    parent(rig, expected)
    check_places(places(expected), posed)
    assert {name: bpy.data.objects[name].parent_bone for name in expected} == expected
    rest(rig)
    check_places(places(expected), before)


def test_a_hierarchy_of_objects():
    """Parents and children among the objects: each follows its own bone, and stands where it stood."""
    rig, expected = robot()
    chain = ["spine 0", "upper_arm.L 0", "lower_arm.L 0", "hand.L 0"]
    for child, above in zip(chain[1:], chain[:-1], strict=True):
        ob, base = bpy.data.objects[child], bpy.data.objects[above]
        ob.parent, ob.matrix_parent_inverse = base, base.matrix_world.inverted()
    bpy.context.view_layer.update()
    before = places(expected)
    parent(rig, ["spine 0"])
    # Only the first is parented to a bone yet; the others follow it.
    check_places(places(expected), before)
    pose(rig)
    parent(rig, expected)
    check_places(places(expected), moved(rig, before, expected))
    rest(rig)
    check_places(places(expected), before)


def test_with_a_mesh_active_all_selected_objects_count():
    _rig, _expected = robot()
    names = ["hand.L 0", "head 0"]
    activate(*(bpy.data.objects[name] for name in names))
    assert bpy.ops.skinning.bind(method="RIGID", as_objects=True) == {"FINISHED"}
    assert [bpy.data.objects[name].parent_bone for name in names] == ["hand.L", "head"]
    assert bpy.data.objects["head 1"].parent is None


def test_meshes_are_not_touched():
    rig, _ = robot()
    ob = bpy.data.objects["head 0"]
    twin = ob.copy()
    scenes.link(twin)
    twin.location.z -= 8
    bpy.context.view_layer.update()
    parent(rig, [ob.name, twin.name])
    assert ob.data == twin.data
    assert ob.parent_bone == "head"
    assert twin.parent_bone.startswith("foot")


def test_an_object_of_many_parts_goes_to_one_bone():
    rig, _expected = robot()
    names = ["head 0", "head 1", "head 2", "hand.L 0"]
    activate(*(bpy.data.objects[name] for name in names))
    bpy.ops.object.join()
    parent(rig, ["head 0"])
    assert bpy.data.objects["head 0"].parent_bone == "head"


def test_the_option_is_for_rigid_alone():
    _rig, _ = robot()
    activate(bpy.data.objects["head 0"])
    bpy.ops.skinning.bind(method="DELAUNAY", as_objects=True)
    assert bpy.data.objects["head 0"].parent_type == "OBJECT"
    assert bpy.data.objects["head 0"].vertex_groups


@pytest.mark.parametrize(
    ("case", "match"),
    [
        ("modifier", 'ALREADY_DEFORMED "Robot rig" … the modifier "Armature"'),
        ("parent", 'ALREADY_DEFORMED "Robot rig" … its parent of type Armature'),
        ("loop", 'armature "Robot rig" is a child of object "head 0"'),
        ("empty", 'NO_VERTICES "head 0"'),
        ("zero", 'NO_SCALE "head 0"'),
        ("nobody", "No selected mesh"),
    ],
)
def test_what_is_refused(case, match):
    rig, _ = robot()
    ob, other = bpy.data.objects["head 0"], bpy.data.objects["head 1"]
    if case == "modifier":
        ob.modifiers.new("Armature", "ARMATURE").object = rig
    elif case == "parent":
        ob.parent, ob.parent_type = rig, "ARMATURE"
    elif case == "loop":
        rig.parent = ob
    elif case == "empty":
        ob.data = bpy.data.meshes.new("Empty")
    elif case == "zero":
        ob.scale.z = 0
    activate(rig, *(() if case == "nobody" else (ob, other)))
    with refusals.raises_unmet(match):
        bpy.ops.skinning.bind(method="RIGID", as_objects=True)
    assert other.parent is None
