# SPDX-License-Identifier: GPL-3.0-or-later
"""Every tool in Pose Mode of an armature that deforms one mesh or several: a click makes none of them active there."""

import re

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.blender.center_records import native_modifier
from skinning_tools.blender.character import chosen_mesh, target_mesh
from skinning_tools.blender.job_checks import reason_not_to_work
from skinning_tools.blender.records import has_eigenskin
from skinning_tools.blender.vertex_groups import read_weights
from skinning_tools.features.centers.baking import bake_record
from skinning_tools.features.partial.parts import reason_not_to_solve
from skinning_tools.features.pose_test.operators import shows_pose_test
from skinning_tools.features.preview import session
from skinning_tools.features.weights import weight_view
from tests.blender import panel_recorder, refusals, scenes
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")

COUNTS = (1, 2, 4)

# What asks for a mesh in its panel: with the armature active it must have the field.
PANELS = ("eigenskin", "fit_weights", "partial_solves", "preview", "rotation_centers", "transfer_weights")
PANELS += ("weight_view", "weights")


def posing(count: int):
    """The armature in Pose Mode, posed, alone selected; and its meshes."""
    ob, rig = rigged_tube(rings=21, segments=8)
    meshes = [ob]
    for index in range(1, count):
        other = ob.copy()
        other.data, other.name = ob.data.copy(), f"Part {index}"
        meshes.append(scenes.link(other))
    for each in bpy.context.view_layer.objects:
        each.select_set(each == rig)
    bpy.context.view_layer.objects.active = rig
    bpy.context.scene.frame_set(4)
    bpy.ops.object.mode_set(mode="POSE")
    return rig, meshes


def choose(meshes):
    """As the field in the panels does; returns the mesh."""
    if len(meshes) > 1:
        bpy.context.scene.skinning_mesh = meshes[-1].name
    return meshes[-1]


def checked_operators():
    found = [cls for module in skinning_tools._modules() for cls in getattr(module, "registry", ())]
    # Those on a result of a conversion tell by themselves whether they can be pressed.
    return [cls for cls in found if issubclass(cls, bpy.types.Operator) and hasattr(cls, "require")]


def panels():
    found = [cls for module in skinning_tools._modules() for cls in getattr(module, "registry", ())]
    return {cls.__name__: cls for cls in found if issubclass(cls, bpy.types.Panel)}


def reasons() -> dict[str, str]:
    """The reasons why operators are disabled, by their names."""
    found = {cls.bl_idname: reason_not_to_work(bpy.context, cls.require) for cls in checked_operators()}
    for name, needs in (("solve_weights", {"weighted": False}), ("add_helper_bones", {"weighted": True})):
        found[f"skinning.{name}"] = reason_not_to_solve(bpy.context, **needs)
    return found


@pytest.mark.parametrize("count", COUNTS)
def test_no_operator_asks_for_another_active_object(count):
    _, meshes = posing(count)
    asked = reasons()
    assert len(asked) > 30
    if count > 1:
        several = [name for name, reason in asked.items() if refusals.says(reason, "SEVERAL_MESHES")]
        assert len(several) > 20
    chosen = choose(meshes)
    left = {name: reason for name, reason in reasons().items() if reason}
    # What is to be done first: bake, find, add an example. None says that another object should be active.
    asks = re.compile(r"\b(in)?active\b|\b[Ss]elect")
    assert [(name, reason) for name, reason in left.items() if asks.search(reason)] == []
    assert [name for name, reason in left.items() if refusals.says(reason, "SEVERAL_MESHES")] == []
    assert target_mesh(bpy.context) == chosen


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", PANELS)
def test_panels_have_the_field_and_ask_for_nothing_else(name, count):
    _, meshes = posing(count)
    panel = panels()[f"SKINNING_PT_{name}"]
    assert "skinning_mesh" in panel_recorder.drawn(panel).properties
    choose(meshes)
    texts = " ".join(panel_recorder.drawn(panel).texts)
    assert not any(refusals.says(texts, code) for code in ("SEVERAL_MESHES", "NOT_A_MESH"))


@pytest.mark.parametrize("name", PANELS)
def test_with_a_mesh_active_there_is_no_field(name):
    _, meshes = posing(1)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = meshes[0]
    assert "skinning_mesh" not in panel_recorder.drawn(panels()[f"SKINNING_PT_{name}"]).properties


def raw(ob) -> np.ndarray:
    bones, weights = read_weights(ob, sorted(ob.vertex_groups.keys()))
    return np.hstack([bones, weights])


def bake_and_play(ob):
    assert bpy.ops.skinning.bake_rotation_centers() == {"FINISHED"}
    assert bpy.ops.skinning.prepare_centers_for_export() == {"FINISHED"}
    if bpy.app.version >= (5, 1, 0):
        assert bpy.ops.skinning.add_center_of_rotation_modifier() == {"FINISHED"}
        assert native_modifier(ob) is not None
        assert bpy.ops.skinning.remove_center_of_rotation_modifier() == {"FINISHED"}
    assert bpy.ops.skinning.crs_to_shape_keys(frame_start=1, frame_end=2) == {"FINISHED"}
    return [each for each in bpy.data.objects if each.type == "MESH" and bake_record(each) is not None]


def smooth(ob):
    before = {each: raw(each) for each in bpy.data.objects if each.type == "MESH"}
    assert bpy.ops.skinning.smooth_weights(iterations=2) == {"FINISHED"}
    return [each for each, was in before.items() if not np.array_equal(raw(each), was)]


def find_rogues(ob):
    # One vertex at the tip follows the other end.
    ob.vertex_groups["Bone 0"].add([len(ob.data.vertices) - 12], 1.0, "REPLACE")
    assert bpy.ops.skinning.find_rogue_weights() == {"FINISHED"}
    return [each for each in bpy.data.objects if len(each.skinning_rogue_weights.islands)]


def compress(ob):
    assert bpy.ops.skinning.compress_weights(frame_start=1, frame_end=2) == {"FINISHED"}
    return [each for each in bpy.data.objects if "skinning_compression" in each]


def partition(ob):
    assert bpy.ops.skinning.partition_rigid() == {"FINISHED"}
    return [each for each in bpy.data.objects if "skinning_partition" in each]


def show_weights(ob):
    assert bpy.ops.skinning.show_weights(mode="BONES") == {"FINISHED"}
    found = [each for each in bpy.data.objects if weight_view.shows_weights(each)]
    assert bpy.ops.skinning.show_weights(mode="OFF") == {"FINISHED"}
    return found


def pose_test(ob):
    assert bpy.ops.skinning.pose_test(contact=False) == {"FINISHED"}
    found = [each for each in bpy.data.objects if shows_pose_test(each)]
    assert bpy.ops.skinning.hide_pose_test() == {"FINISHED"}
    return found


def start_fit(ob):
    assert bpy.ops.skinning.start_weight_fit() == {"FINISHED"}
    copy = bpy.context.view_layer.objects.active
    return [copy.skinning_fit_copy.mesh]


def eigenskin(ob):
    assert bpy.ops.skinning.eigenskin_add_example() == {"FINISHED"}
    rig = bpy.context.view_layer.objects.active
    found = [item.mesh for item in rig.skinning_eigenskin.examples]
    assert not [each for each in bpy.data.objects if each.type == "MESH" and has_eigenskin(each)]
    return found


def preview(ob):
    assert bpy.ops.skinning.preview(mode="LBS") == {"FINISHED"}
    target = session.display.subject.target()
    bpy.ops.skinning.preview(mode="OFF")
    return [target]


def solve_weights(ob):
    other = bpy.data.objects.new("Target", ob.data.copy())
    bpy.context.scene.collection.objects.link(other)
    other.matrix_world = ob.matrix_world
    scenes.wave(other, height=0.05)
    bpy.context.view_layer.update()
    before = {each: raw(each) for each in bpy.data.objects if each.type == "MESH"}
    assert bpy.ops.skinning.solve_weights(target="Target", frame_start=1, frame_end=4) == {"FINISHED"}
    return [each for each, was in before.items() if not np.array_equal(raw(each), was)]


TOOLS = [
    bake_and_play, smooth, find_rogues, compress, partition, show_weights, pose_test, start_fit, eigenskin,
    solve_weights,
]  # fmt: skip


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_each_tool_works_on_the_chosen_mesh_alone(tool, count):
    _, meshes = posing(count)
    chosen = choose(meshes)
    assert tool(chosen) == [chosen]


@pytest.mark.parametrize("count", COUNTS)
def test_the_preview_is_of_the_chosen_mesh(count):
    pytest.importorskip("gpu")
    _, meshes = posing(count)
    chosen = choose(meshes)
    assert preview(chosen) == [chosen]


@pytest.mark.parametrize("count", COUNTS)
def test_binding_means_all_meshes_of_the_armature(count):
    rig, meshes = posing(count)
    for ob in meshes:
        for group in ob.vertex_groups:
            group.remove([3])
    assert bpy.ops.skinning.bind() == {"FINISHED"}
    assert all(len(ob.data.vertices[3].groups) for ob in meshes)
    assert bpy.context.view_layer.objects.active == rig
    assert rig.mode == "POSE"


# Which mesh is chosen


def test_an_active_mesh_comes_before_the_field():
    _, meshes = posing(2)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.scene.skinning_mesh = meshes[1].name
    bpy.context.view_layer.objects.active = meshes[0]
    assert target_mesh(bpy.context) == meshes[0]


def test_the_field_comes_before_what_is_still_selected():
    """From Object Mode a mesh may be left selected, which a click in Pose Mode does not change."""
    _, meshes = posing(2)
    meshes[0].select_set(True)
    assert target_mesh(bpy.context) == meshes[0]
    bpy.context.scene.skinning_mesh = meshes[1].name
    assert target_mesh(bpy.context) == meshes[1]


def test_the_only_visible_mesh_is_used():
    _, meshes = posing(4)
    for ob in (meshes[0], meshes[1], meshes[3]):
        ob.hide_set(True)
    assert target_mesh(bpy.context) == meshes[2]


def delete(ob, rig):
    bpy.data.objects.remove(ob)


def unlink(ob, rig):
    for home in ob.users_collection:
        home.objects.unlink(ob)


def unbind(ob, rig):
    ob.modifiers.clear()


@pytest.mark.parametrize("change", [delete, unlink, unbind])
def test_a_chosen_mesh_that_the_armature_no_longer_deforms_does_not_count(change):
    rig, meshes = posing(2)
    choose(meshes)
    change(meshes[1], rig)
    bpy.context.view_layer.update()
    assert target_mesh(bpy.context) == meshes[0]


def test_the_field_of_another_character_does_not_count():
    rig, meshes = posing(1)
    bpy.ops.object.mode_set(mode="OBJECT")
    other = meshes[0].copy()
    other.data, other.name = meshes[0].data.copy(), "Other"
    scenes.link(other)
    second = rig.copy()
    other.modifiers["Armature"].object = scenes.link(second)
    bpy.context.scene.skinning_mesh = meshes[0].name
    assert target_mesh(bpy.context) == other


def test_the_field_offers_the_meshes_of_the_armature():
    _, meshes = posing(2)
    other = bpy.data.objects.new("Rock", bpy.data.meshes.new("Rock"))
    bpy.context.scene.collection.objects.link(other)
    from skinning_tools.blender.character import _names_to_choose

    offered = _names_to_choose(bpy.context.scene, bpy.context, "")
    assert sorted(offered) == sorted(ob.name for ob in meshes)
    bpy.context.view_layer.objects.active = None
    assert _names_to_choose(bpy.context.scene, bpy.context, "") == []


def by_the_menu(ob):
    with bpy.context.temp_override(selected_objects=[ob]):
        bpy.ops.object.delete()


def by_the_outliner(ob):
    bpy.data.batch_remove([ob])


def from_all_collections(ob):
    unlink(ob, None)
    bpy.data.orphans_purge(do_recursive=True)


@pytest.mark.parametrize("remove", [by_the_menu, by_the_outliner, from_all_collections])
def test_the_field_keeps_no_deleted_mesh(remove, tmp_path):
    _, meshes = posing(2)
    bpy.ops.object.mode_set(mode="OBJECT")
    choose(meshes)
    assert meshes[1].users == len(meshes[1].users_collection)
    names = [ob.name for ob in meshes]
    remove(meshes[1])
    assert names[1] not in bpy.data.objects
    assert target_mesh(bpy.context) == bpy.data.objects[names[0]]
    path = str(tmp_path / "scene.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, check_existing=False)
    bpy.ops.wm.open_mainfile(filepath=path)
    assert [ob.name for ob in bpy.data.objects if ob.type == "MESH"] == names[:1]


def test_the_choice_is_saved(tmp_path):
    _, meshes = posing(2)
    chosen = choose(meshes).name
    path = str(tmp_path / "scene.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, check_existing=False)
    bpy.ops.wm.open_mainfile(filepath=path)
    assert target_mesh(bpy.context) == bpy.data.objects[chosen]


def test_the_chosen_one_of_two_linked_meshes_with_one_name_is_used(tmp_path):
    rig, meshes = posing(1)
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {meshes[0]})
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = [meshes[0].name]
    linked = wanted.objects[0]
    bpy.context.scene.collection.objects.link(linked)
    rig_of_it = linked.modifiers["Armature"].object
    bpy.context.scene.collection.objects.link(rig_of_it)
    bpy.context.scene.skinning_mesh = linked.name_full
    assert linked.name == meshes[0].name
    assert chosen_mesh(bpy.context, rig_of_it) == linked
    assert chosen_mesh(bpy.context, rig) is None
