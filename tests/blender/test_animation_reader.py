# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading an animation: ranges, modifiers, the mesh that comes with it, and what is left behind."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.animation.animation_reader import read_animation
from skinning_tools.core import memory
from skinning_tools.core.errors import BadAnimation, BadMesh, BadSettings, NotEnoughMemory
from tests.blender import refusals, scenes

pytestmark = pytest.mark.usefixtures("empty")


def read(object, *frame_range):
    return scenes.drain(read_animation(bpy.context, object, *frame_range))[0]


def waving():
    object = scenes.grid()
    scenes.wave(object)
    return object


# The range


def test_range_and_step_select_the_frames():
    object = waving()
    source = read(object, 3, 11, 4)
    np.testing.assert_array_equal(source.animation.frame_numbers, [3, 7, 11])
    np.testing.assert_array_equal(source.animation.frames, scenes.played(object, [3, 7, 11]))


def test_the_last_frame_of_a_range_that_the_step_misses_is_left_out():
    np.testing.assert_array_equal(read(waving(), 1, 9, 3).animation.frame_numbers, [1, 4, 7])


def test_the_range_of_the_scene_is_the_default():
    object = waving()
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 4, 8
    np.testing.assert_array_equal(read(object).animation.frame_numbers, [4, 5, 6, 7, 8])


def test_negative_frames():
    object = waving()
    source = read(object, -5, -2)
    np.testing.assert_array_equal(source.animation.frames, scenes.played(object, range(-5, -1)))


def test_progress_rises_to_one():
    _, steps = scenes.drain(read_animation(bpy.context, waving(), 1, 5))
    assert steps == sorted(steps)
    assert steps[-1] == 1.0
    assert len(steps) == 5


@pytest.mark.parametrize(
    ("frame_range", "error", "text"),
    [
        ((10, 5), BadSettings, 'RANGE_REVERSED object "Flag" … 10 … 5'),
        ((5, 5), BadAnimation, 'ONE_FRAME object "Flag"'),
        ((1, 10, 20), BadAnimation, "ONE_FRAME step 20"),
        ((1, 10, 0), BadSettings, "OUT_OF_RANGE at least 1 … 0"),
        ((1, 10, -1), BadSettings, "OUT_OF_RANGE at least 1 … -1"),
    ],
)
def test_unusable_range(frame_range, error, text):
    object = waving()
    before = scenes.data_blocks()
    with pytest.raises(error) as raised:
        read(object, *frame_range)
    refusals.assert_says(raised.value, text)
    assert scenes.data_blocks() == before


# What moves the mesh


def test_object_space_whatever_the_transform():
    object = waving()
    expected = scenes.played(object, range(1, 6))
    object.scale = (-2.0, 3.0, 0.5)
    scenes.key_property(object, "location", {1: (0, 0, 0), 5: (7, 8, 9)})
    scenes.key_property(object, "rotation_euler", {1: (0, 0, 0), 5: (1, 2, 3)})
    np.testing.assert_array_equal(read(object, 1, 5).animation.frames, expected)


def test_armature_modifier():
    object = scenes.grid()
    armature = scenes.link(bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig")))
    bpy.ops.object.mode_set(mode="EDIT")
    bone = armature.data.edit_bones.new("Bone")
    bone.tail = (0, 0, 1)
    bpy.ops.object.mode_set(mode="OBJECT")
    object.vertex_groups.new(name="Bone").add(range(10), 0.7, "REPLACE")
    object.modifiers.new("Armature", "ARMATURE").object = armature
    pose_bone = armature.pose.bones[0]
    pose_bone.rotation_mode = "XYZ"
    scenes.key_property(pose_bone, "rotation_euler", {1: (0, 0, 0), 5: (1, 0, 0)})
    source = read(object, 1, 5)
    np.testing.assert_array_equal(source.animation.frames, scenes.played(object, range(1, 6)))
    assert np.ptp(source.animation.frames, axis=0)[5].max() > 0.1
    assert source.animation.frames[0, 5] == pytest.approx(object.data.vertices[5].co)


def test_driven_modifier_and_another_that_subdivides():
    object = scenes.grid()
    displace = object.modifiers.new("Displace", "DISPLACE")
    displace.direction = "Z"
    displace.driver_add("strength").driver.expression = "frame / 10"
    object.modifiers.new("Subdivision", "SUBSURF").levels = 2
    source = read(object, 1, 5)
    assert source.animation.vertex_count > 4 * len(object.data.vertices)
    assert len(source.mesh.vertices) == source.animation.vertex_count
    np.testing.assert_array_equal(source.animation.frames, scenes.played(object, range(1, 6)))


def test_the_viewport_counts_and_not_the_render():
    object = scenes.grid()
    subdivision = object.modifiers.new("Subdivision", "SUBSURF")
    subdivision.levels, subdivision.render_levels = 1, 3
    rendered_only = scenes.wave(object)
    rendered_only.show_viewport = False
    source = read(object, 1, 3)
    assert source.animation.vertex_count == len(scenes.evaluated_positions(object))
    assert not np.ptp(source.animation.frames, axis=0).any()


def test_two_objects_sharing_a_mesh():
    object = waving()
    twin = scenes.link(bpy.data.objects.new("Twin", object.data))
    scenes.wave(twin, height=0.2)
    source = read(twin, 1, 5)
    np.testing.assert_array_equal(source.animation.frames, scenes.played(twin, range(1, 6)))
    assert not np.allclose(source.animation.frames, scenes.played(object, range(1, 6)))
    assert object.data == twin.data
    assert object.data.users == 2


@pytest.mark.parametrize("mode", ["WEIGHT_PAINT", "VERTEX_PAINT", "TEXTURE_PAINT"])
def test_paint_modes_show_the_same_mesh(mode):
    object = waving()
    expected = scenes.played(object, range(1, 6))
    bpy.ops.object.mode_set(mode=mode)
    state = scenes.ui_state()
    np.testing.assert_array_equal(read(object, 1, 5).animation.frames, expected)
    assert scenes.ui_state() == state


@pytest.mark.parametrize("override", [False, True], ids=["linked", "overridden"])
@pytest.mark.parametrize("kind", ["shape keys", "modifier"])
def test_linked_library(tmp_path, override, kind):
    object = scenes.grid()
    if kind == "modifier":
        scenes.wave(object)
    else:
        block = scenes.shape_keys(object)[0]
        scenes.key_property(block, "value", {1: 0.0, 5: 1.0})
    object.data.materials.append(bpy.data.materials.new("Cloth"))
    expected = scenes.played(object, range(1, 6))
    assert np.ptp(expected, axis=0).any()
    library = tmp_path / "flag.blend"
    bpy.data.libraries.write(str(library), {object})
    scenes.empty_scene()
    with bpy.data.libraries.load(str(library), link=True) as (_, wanted):
        wanted.objects = ["Flag"]
    object = scenes.link(bpy.data.objects["Flag"])
    if override:
        object = object.override_create(remap_local_usages=True)
    assert (object.library is None) == override
    source = read(object, 1, 5)
    np.testing.assert_allclose(source.animation.frames, expected, rtol=0, atol=1e-6)
    assert source.mesh.library is None
    assert source.mesh.override_library is None
    assert [material.name for material in source.mesh.materials] == ["Cloth"]


# What changes on the way


def growing_nodes(object, frame):
    """Geometry nodes that give a mesh of another size from ``frame`` on."""
    tree = scenes.geometry_tree()
    time = tree.nodes.new("GeometryNodeInputSceneTime")
    compare = tree.nodes.new("FunctionNodeCompare")
    compare.data_type, compare.operation = "FLOAT", "GREATER_EQUAL"
    compare.inputs[1].default_value = frame
    delete = tree.nodes.new("GeometryNodeDeleteGeometry")
    tree.links.new(time.outputs["Frame"], compare.inputs[0])
    tree.links.new(compare.outputs["Result"], delete.inputs["Selection"])
    tree.links.new(tree.nodes["Group Input"].outputs[0], delete.inputs["Geometry"])
    tree.links.new(delete.outputs["Geometry"], tree.nodes["Group Output"].inputs[0])
    scenes.nodes_modifier(object, tree)
    return delete


def test_no_vertices_at_a_frame():
    object = scenes.grid()
    growing_nodes(object, 4)
    before = scenes.data_blocks()
    with pytest.raises(BadMesh, match='object "Flag" has no vertices at frame 4'):
        read(object, 1, 6)
    assert scenes.data_blocks() == before
    with pytest.raises(BadMesh, match='object "Flag" has no vertices at frame 5'):
        read(object, 5, 8)


def test_faces_change_where_the_vertices_do_not():
    object = scenes.grid()
    delete = growing_nodes(object, 4)
    delete.mode, delete.domain = "ONLY_FACE", "FACE"
    with pytest.raises(BadAnimation, match="at frame 4 its faces change from 12 to 0, its face corners change"):
        read(object, 1, 6)


def test_instances_are_no_mesh():
    object = scenes.grid()
    tree = scenes.geometry_tree()
    instance = tree.nodes.new("GeometryNodeGeometryToInstance")
    tree.links.new(tree.nodes["Group Input"].outputs[0], instance.inputs[0])
    tree.links.new(instance.outputs[0], tree.nodes["Group Output"].inputs[0])
    scenes.nodes_modifier(object, tree)
    with pytest.raises(BadMesh, match="realize the instances"):
        read(object, 1, 6)


def test_hidden_from_a_frame_on():
    """Blender stops evaluating there, and would give the last shape again and again."""
    object = waving()
    scenes.key_property(object, "hide_viewport", {1: False, 5: True})
    bpy.context.scene.frame_set(1)
    with pytest.raises(BadAnimation, match='object "Flag" is hidden at frame 5'):
        read(object, 1, 8)
    np.testing.assert_array_equal(read(object, 1, 4).animation.frames, scenes.played(object, range(1, 5)))


def test_object_removed_while_reading():
    object = waving()
    before = scenes.data_blocks()
    reading = read_animation(bpy.context, object, 1, 8)
    next(reading)
    bpy.data.objects.remove(object)
    with refusals.raises_unmet('REMOVED object "Flag"'):
        scenes.drain(reading)
    assert set(scenes.data_blocks()["meshes"]) == set(before["meshes"])


def test_edit_mode_while_reading():
    object = waving()
    reading = read_animation(bpy.context, object, 1, 8)
    next(reading)
    bpy.ops.object.mode_set(mode="EDIT")
    with refusals.raises_unmet('MODE "Flag" … Edit Mode'):
        scenes.drain(reading)
    assert object.mode == "EDIT"


# What is left behind


def test_nothing_but_the_mesh_is_left():
    object = waving()
    other = scenes.grid(name="Other")
    bpy.context.scene.frame_set(7, subframe=0.25)
    before, state, shape = scenes.data_blocks(), scenes.ui_state(), scenes.evaluated_positions(object)
    source = read(object, 1, 5)
    assert scenes.ui_state() == state
    np.testing.assert_array_equal(scenes.evaluated_positions(object), shape)
    after = scenes.data_blocks()
    assert set(after["meshes"]) - set(before["meshes"]) == {"Flag_skinned"}
    bpy.data.meshes.remove(source.mesh)
    assert scenes.data_blocks() == before
    assert other.name == "Other"


def test_closing_in_the_middle_leaves_nothing():
    object = waving()
    bpy.context.scene.frame_set(7, subframe=0.25)
    before, state, shape = scenes.data_blocks(), scenes.ui_state(), scenes.evaluated_positions(object)
    reading = read_animation(bpy.context, object, 1, 8)
    next(reading)
    next(reading)
    assert bpy.context.scene.frame_current == 2
    reading.close()
    assert scenes.data_blocks() == before
    assert scenes.ui_state() == state
    np.testing.assert_array_equal(scenes.evaluated_positions(object), shape)


# The mesh


@pytest.mark.parametrize("move", [scenes.wave, scenes.shape_keys])
def test_records_of_the_old_motion_are_not_copied(move):
    """Cycles blurs by "velocity"; an error, and all else that the extension stores, belongs to one mesh only."""
    object = scenes.grid()
    names = ("velocity", "skinning_error", "skinning_weight_color", ".skinning_helper_1", "mine")
    for name, kind in zip(names, ("FLOAT_VECTOR", "FLOAT", "FLOAT_COLOR", "INT", "FLOAT"), strict=True):
        object.data.attributes.new(name, kind, "POINT")
    move(object)
    assert [name for name in names if name in read(object, 1, 3).mesh.attributes] == ["mine"]
    assert all(name in object.data.attributes for name in names)


def test_the_mesh_is_a_copy_with_materials_uvs_and_attributes():
    object = waving()
    mesh = object.data
    mesh.uv_layers.new(name="Cloth UV")
    for index, loop in enumerate(mesh.uv_layers[0].data):
        loop.uv = (index / 100, 0.5)
    attribute = mesh.attributes.new("age", "FLOAT", "POINT")
    attribute.data.foreach_set("value", np.arange(20, dtype=np.float32))
    mesh.normals_split_custom_set([(0.0, 0.6, 0.8)] * len(mesh.loops))
    cloth, paint, thread = (bpy.data.materials.new(name) for name in ("Cloth", "Paint", "Thread"))
    for material in (cloth, thread):
        mesh.materials.append(material)
    object.material_slots[1].link = "OBJECT"
    object.material_slots[1].material = paint
    mesh.polygons[3].material_index = 1
    object.vertex_groups.new(name="pinned").add([0, 1], 1.0, "REPLACE")
    mesh["note"] = 1.0
    mesh.keyframe_insert('["note"]', frame=1)

    source = read(object, 3, 6)
    copy = source.mesh
    assert copy.name == "Flag_skinned"
    assert copy.users == 0
    assert [material.name for material in copy.materials] == ["Cloth", "Paint"]
    assert copy.polygons[3].material_index == 1
    uvs = np.array([loop.uv for loop in copy.uv_layers["Cloth UV"].data])
    np.testing.assert_allclose(uvs[:, 0], np.arange(len(uvs)) / 100, atol=1e-6)
    np.testing.assert_array_equal([value.value for value in copy.attributes["age"].data], np.arange(20))
    assert copy.has_custom_normals
    assert copy.shape_keys is None
    assert copy.animation_data is None
    owner = bpy.data.objects.new("Owner", copy)
    assert not owner.vertex_groups
    assert not any(vertex.groups for vertex in copy.vertices)
    np.testing.assert_array_equal(np.array([v.co for v in copy.vertices], np.float32), source.animation.frames[0])
    assert [group.name for group in object.vertex_groups] == ["pinned"]
    assert [material.name for material in mesh.materials] == ["Cloth", "Thread"]


def test_polygons_loose_parts_and_degenerate_faces():
    corners = [(np.cos(angle), np.sin(angle), 0) for angle in np.linspace(0, 5, 6)]
    vertices = [*corners, (5, 0, 0), (6, 0, 0), (7, 0, 0), (5, 0, 0), (9, 9, 9)]
    # A hexagon, a triangle of no area, a face that uses one place twice, a loose edge and a loose vertex.
    faces = [range(6), (6, 7, 8), (6, 7, 9)]
    object = scenes.mesh_object(vertices, faces, edges=[(7, 10)])
    bare = object.data.vertices
    bare.add(1)
    scenes.wave(object)
    source = read(object, 1, 3)
    assert source.animation.vertex_count == 12
    assert len(source.animation.triangles) == 4 + 1 + 1
    assert set(source.animation.triangles.ravel()) == set(range(10))
    hexagon = [triangle for triangle in source.animation.triangles.tolist() if max(triangle) < 6]
    edges = [frozenset(pair) for a, b, c in hexagon for pair in ((a, b), (b, c), (c, a))]
    assert {edge for edge in edges if edges.count(edge) == 1} == {frozenset((i, (i + 1) % 6)) for i in range(6)}


def test_mesh_without_faces():
    object = scenes.mesh_object([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    scenes.wave(object)
    source = read(object, 1, 3)
    assert source.animation.triangles.shape == (0, 3)
    assert source.animation.vertex_count == 3


# Memory


@pytest.mark.parametrize("kind", ["modifier", "shape keys"])
def test_more_frames_than_memory(monkeypatch, kind):
    object = scenes.grid()
    if kind == "modifier":
        scenes.wave(object)
    else:
        scenes.shape_keys(object)
    needed = 20 * 12 * 100
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    before, state = scenes.data_blocks(), scenes.ui_state()
    reading = read_animation(bpy.context, object, 1, 100)
    with pytest.raises(NotEnoughMemory, match=r'object "Flag" \(20 vertices, 100 frames\)'):
        next(reading)
    assert scenes.data_blocks() == before
    assert scenes.ui_state() == state
    monkeypatch.setattr(memory, "available_memory", lambda: needed)
    assert len(read(object, 1, 100).animation.frames) == 100


def test_memory_is_checked_before_a_simulation_is_played(monkeypatch):
    object = scenes.grid()
    scenes.cloth(object)
    monkeypatch.setattr(memory, "available_memory", lambda: 20 * 12 * 100 - 1)
    played = []

    def note(scene, depsgraph=None):
        played.append(scene.frame_current)

    bpy.app.handlers.frame_change_pre.append(note)
    try:
        with pytest.raises(NotEnoughMemory):
            read(object, 101, 200)
    finally:
        bpy.app.handlers.frame_change_pre.remove(note)
    assert played == []
