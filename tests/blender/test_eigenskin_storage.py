# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of an EigenSkin stay with the file, by names of their own, until they are removed."""

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.core.eigenskin import BadExamples
from tests.blender import scenes
from tests.blender.eigenskin_scenes import limb_with_examples, pose
from tests.blender.example_scenes import add, examples_of, near, read, refused

pytestmark = pytest.mark.usefixtures("extension")


def test_stored_examples_can_be_built(posed):
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


def test_removed_examples_take_their_shapes_with_them():
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("joints", "lower"),
        ("joints", "[]"),
        ("bones", "3"),
        ("rotations", [1.0, 0.0]),
        ("matrices", "none"),
        ("channels", "[1]"),
    ],
)
def test_a_pose_that_somebody_has_changed_is_lost(key, value):
    ob, rig = limb_with_examples()
    item = rig.skinning_eigenskin.examples[0]
    item.storage[item.uid][key] = value
    rig.skinning_eigenskin.active_index = 0
    with pytest.raises(BadExamples, match='"lower X -90°" has lost its pose'):
        read(ob)
    refused("eigenskin_apply_pose", "lost its pose")


def test_removing_what_is_damaged():
    ob, rig = limb_with_examples()
    bpy.data.meshes.remove(rig.skinning_eigenskin.examples[0].storage)
    with pytest.raises(BadExamples, match='"lower X -90°" has lost its shape'):
        read(ob)
    refused("eigenskin_apply_pose", "lost its shape")
    bpy.ops.skinning.eigenskin_remove_example(remove_all=True)
    assert not rig.skinning_eigenskin.examples


def test_adding_is_one_undo_step(posed):
    bpy.ops.ed.undo_push(message="before")
    add()
    bpy.ops.ed.undo_push(message="added")
    bpy.ops.ed.undo()
    rig = bpy.data.objects["Limb rig"]
    assert not rig.skinning_eigenskin.examples
    assert len(bpy.data.meshes) == 1
    bpy.ops.ed.redo()
    assert len(read(bpy.data.objects["Limb"]).names) == 1
