# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of one side, mirrored, are those that posing the other side would have given."""

from functools import partial

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from skinning_tools.core.deform import skin_frame
from skinning_tools.features.eigenskin.example_mirror import mirrored_name, side_of
from skinning_tools.features.eigenskin.examples import current_pose, read_rig
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.eigenskin_scenes import add_example, arms, pose
from tests.blender.example_scenes import read
from tests.blender.skinned_meshes import diagonal

pytestmark = pytest.mark.usefixtures("extension")


@pytest.fixture
def left():
    """Arms with examples of the left side."""
    ob, rig = arms()
    for turns in ([("lower.L", "X", 60)], [("lower.L", "X", -40)], [("upper.L", "Z", 50), ("lower.L", "Y", 30)]):
        add_example(ob, rig, turns)
    pose(rig)
    return ob, rig


def mirror(**given):
    assert bpy.ops.skinning.eigenskin_mirror(**given) == {"FINISHED"}


def names_of(rig) -> list[str]:
    return [item.name for item in rig.skinning_eigenskin.examples]


def state() -> tuple:
    return moving_meshes.state(), [names_of(ob) for ob in bpy.data.objects if ob.type == "ARMATURE"]


refused = partial(refusals.refused, mirror, state=state)


def check_pair(ob, examples, original: int, image: int) -> None:
    """The shapes, and the poses' matrices, are mirror images of each other; the pose is the shape's."""
    skin, joints = read_rig(bpy.context, ob)
    flip = np.array([-1, 1, 1])
    tree = {tuple(np.round(point, 4)): vertex for vertex, point in enumerate(skin.rest)}
    partners = [tree[tuple(np.round(point * flip, 4) + 0.0)] for point in skin.rest]
    assert np.abs(examples.shapes[image] - examples.shapes[original][partners] * flip).max() < 1e-6 * diagonal(ob)
    shape = skin_frame(skin.rest, skin.bones, skin.weights, examples.matrices[image], "DQS")
    assert np.abs(examples.shapes[image] - shape).max() < 1e-6 * diagonal(ob)
    # The rotations are those of the matrices: Blender, so posed, has them too.
    bpy.ops.skinning.eigenskin_apply_pose(index=image)
    rotations, matrices = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())
    assert np.abs(matrices - examples.matrices[image]).max() < 1e-5
    assert np.abs(np.abs(np.einsum("ji,ji->j", rotations, examples.rotations[image])) - 1).max() < 1e-6


@pytest.mark.parametrize("with_channels", [True, False])
def test_left_to_right(left, with_channels):
    ob, rig = left
    wanted = read(ob)
    mirror()
    examples = read(ob)
    assert len(examples.names) == 6
    assert np.array_equal(examples.shapes[:3], wanted.shapes)
    assert names_of(rig)[3].startswith("lower.R ")
    assert names_of(rig)[5].startswith("upper.R ")
    if not with_channels:
        for item in rig.skinning_eigenskin.examples:
            item.storage[item.uid]["channels"] = "{}"
    for row in range(3):
        check_pair(ob, examples, row, 3 + row)


def test_back_and_forth(left):
    ob, rig = left
    mirror()
    forth = read(ob)
    bpy.ops.skinning.eigenskin_remove_example(index=0)
    mirror(direction="RIGHT_TO_LEFT")
    back = read(ob)
    assert len(back.names) == 6
    order = [back.names.index(name) for name in names_of(rig)]
    assert order == list(range(6))
    # The left ones are made again, after the right ones.
    assert np.abs(back.shapes[:3] - forth.shapes[3:]).max() == 0
    assert np.abs(back.shapes[3:] - forth.shapes[:3]).max() < 1e-6 * diagonal(ob)
    rotations = np.einsum("eji,eji->ej", back.rotations[3:], forth.rotations[:3])
    assert np.abs(np.abs(rotations) - 1).max() < 1e-9


def test_names_there_and_back():
    ob, rig = arms()
    for turns in ([("upper.L", "X", 50)], [("upper.L", "Z", -50)], [("upper.L", "Y", 40)], [("lower.L", "X", -70)]):
        add_example(ob, rig, turns)
    rig.skinning_eigenskin.examples[2].name = "Twisted"
    pose(rig)
    names = names_of(rig)
    mirror()
    assert names_of(rig)[4:6] == ["upper.R X +50°", "upper.R Z -50°"]
    mirror(direction="RIGHT_TO_LEFT")
    assert sorted(names_of(rig)[4:]) == sorted(names)
    assert set(names_of(rig)[:2]) == {"upper.R X +50°", "upper.R Z -50°"}


def test_the_same_poses_are_replaced(left, capfd):
    ob, rig = left
    mirror()
    names = names_of(rig)
    rig.skinning_eigenskin.examples[4].enabled = False
    capfd.readouterr()
    mirror()
    assert names_of(rig) == names
    assert "3 of the same poses replaced" in capfd.readouterr().out
    storage = rig.skinning_eigenskin.examples[0].storage
    assert set(storage.keys()) == {item.uid for item in rig.skinning_eigenskin.examples}
    assert len(read(ob).names) == 6


def test_poses_of_no_side_or_both_are_left_out(left, capfd):
    ob, rig = left
    add_example(ob, rig, [("chest", "X", 20)])
    add_example(ob, rig, [("lower.L", "X", 20), ("lower.R", "X", 30)])
    add_example(ob, rig, [("chest", "X", 20), ("lower.L", "X", 25)])
    pose(rig)
    mirror()
    assert "4 examples mirrored; 2 that pose both sides or neither left out" in capfd.readouterr().out
    check_pair(ob, read(ob), 5, 9)


def test_where_mesh_and_armature_are(left):
    """Elsewhere in the world, turned together, the armature's scale and origin its own."""
    ob, rig = left
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    rig.parent = ob
    rig.location, rig.rotation_euler, rig.scale = (0, 0.3, 0.1), (0.4, 0, 0), (0.8, 0.8, 0.8)
    ob.location, ob.rotation_euler, ob.scale = (3, 2, 1), (0.2, 0.5, 1), (2, 2, 2)
    bpy.context.view_layer.update()
    rig.pose.bones["lower.L"].location = (0.1, 0.05, 0)
    add_example(ob, rig, [("upper.L", "Z", 50), ("lower.L", "Y", 30)])
    pose(rig)
    mirror()
    check_pair(ob, read(ob), 0, 1)


def test_controls_are_mirrored():
    ob, rig = arms()
    pose(rig)
    rig.pose.bones["upper.L"].rotation_quaternion = Quaternion((1, 2, 3), 0.6)
    rig.pose.bones["lower.L"].location, rig.pose.bones["lower.L"].scale = (0.1, 0.2, 0.05), (1.2, 1.2, 1.2)
    bpy.context.view_layer.update()
    bpy.ops.skinning.eigenskin_add_example()
    shown = scenes.evaluated_positions(ob)
    mirror()
    pose(rig)
    bpy.ops.skinning.eigenskin_apply_pose()
    flip = np.array([-1, 1, 1])
    found, wanted = scenes.evaluated_positions(ob), shown * flip
    distances = np.linalg.norm(found[:, None] - wanted[None], axis=-1)
    assert distances.min(axis=1).max() < 1e-6 * diagonal(ob)
    assert distances.min(axis=0).max() < 1e-6 * diagonal(ob)


def test_sides_by_names():
    assert [side_of(name) for name in ("arm.L", "arm_r", "LeftArm", "l_foot", "arm.R.001", "spine", "tail")] == [
        "LEFT", "RIGHT", "LEFT", "LEFT", "RIGHT", "", ""
    ]  # fmt: skip


def test_names_of_images(left):
    ob, _ = left
    joints = read_rig(bpy.context, ob)[1]
    rotations = read(ob).rotations[0]
    assert mirrored_name("Bent lower.L", joints, rotations) == "Bent lower.R"
    assert mirrored_name("Bent.L", joints, rotations) == "Bent.R"
    assert mirrored_name("Bent", joints, rotations) == "Bent mirrored"
    assert mirrored_name("lower.L Z +60°", joints, rotations) == "lower.L X +60°"


def test_mirroring_is_one_undo_step(left):
    _, rig = left
    names = names_of(rig)
    bpy.ops.ed.undo_push(message="before")
    mirror()
    bpy.ops.ed.undo_push(message="mirrored")
    bpy.ops.ed.undo()
    assert names_of(bpy.data.objects["Arms rig"]) == names


def test_nothing_to_mirror(left):
    refused("No example", '"Arms"', "right side", direction="RIGHT_TO_LEFT")
    _, rig = left
    for item in rig.skinning_eigenskin.examples:
        item.enabled = False
    refused("No example", '"Arms"', "left side")


def test_no_counterpart(left):
    ob, rig = left
    ob.vertex_groups.remove(ob.vertex_groups["lower.R"])
    refused('NO_COUNTERPART "lower.L" … "lower.R"')
    for item in rig.skinning_eigenskin.examples:
        item.enabled = False
    add_example(ob, rig, [("upper.L", "Z", 50)])
    mirror()
    assert names_of(rig)[-1].startswith("upper.R ")


def test_vertices_without_a_counterpart(left, capfd):
    ob, _ = left
    for vertex in range(4):
        ob.data.vertices[vertex].co.y += 0.05
    ob.data.update()
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    add_example(*left, [("upper.L", "Z", 50)])
    mirror()
    assert "no correction for 8 vertices without a counterpart" in capfd.readouterr().out
    skin, _ = read_rig(bpy.context, ob)
    examples = read(ob)
    plain = skin_frame(skin.rest, skin.bones, skin.weights, examples.matrices[1])
    assert np.abs(examples.shapes[1, :4] - plain[:4]).max() < 1e-6


def test_armature_that_is_not_symmetric(left):
    _, rig = left
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    rig.data.edit_bones["lower.R"].tail.z += 0.2
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = bpy.data.objects["Arms"]
    refused('"lower.', "do not mirror each other", '"Arms"')
