# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition into Rigid Parts: attribute, face sets, and objects that Blender shows where the skin was."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.features.weights import rigid_parts
from skinning_tools.features.weights.rigid_parts import partition_figures
from tests.blender import binding_scenes, refusals, scenes, skinned_meshes
from tests.blender.snapshots import refused, snapshot

pytestmark = pytest.mark.usefixtures("extension")

SEGMENTS = 16
PARTS = [f"Bone {index}" for index in range(5)]


@pytest.fixture
def tube():
    """The tube, each vertex wholly on one bone but those of two rings around each joint; not normalized."""
    ob, rig = skinned_meshes.rigged_tube(influences=1)
    for joint in range(1, 5):
        rings = list(range((8 * joint) * SEGMENTS, (8 * joint + 2) * SEGMENTS))
        ob.vertex_groups[f"Bone {joint - 1}"].add(rings, 0.3, "REPLACE")
        ob.vertex_groups[f"Bone {joint}"].add(rings, 0.3, "REPLACE")
    ob.vertex_groups.new(name="mine").add([3, 4], 0.25, "REPLACE")
    return ob, rig


def expected(ob) -> np.ndarray:
    """(M,) the bone of each face by Blender's own groups, −1 for skin."""
    names = {group.index: PARTS.index(group.name) for group in ob.vertex_groups if group.name in PARTS}
    of_vertex = []
    for vertex in ob.data.vertices:
        bones = [names[entry.group] for entry in vertex.groups if entry.group in names and entry.weight > 0]
        of_vertex.append(bones[0] if len(bones) == 1 else -1)
    faces = [{of_vertex[v] for v in face.vertices} for face in ob.data.polygons]
    return np.array([found.pop() if len(found) == 1 else -1 for found in faces])


def face_values(mesh, name) -> np.ndarray:
    attribute = mesh.attributes[name]
    assert (attribute.domain, attribute.data_type) == ("FACE", "INT")
    values = np.empty(len(mesh.polygons), np.int32)
    attribute.data.foreach_get("value", values)
    return values


def corners(objects, frame, normals=False) -> np.ndarray:
    """(L, 6) sorted world positions and, rounded, what face they are of: all face corners that Blender shows."""
    bpy.context.scene.frame_set(frame)
    depsgraph = bpy.context.evaluated_depsgraph_get()
    rows = []
    for ob in objects:
        evaluated = ob.evaluated_get(depsgraph)
        mesh, world = evaluated.data, np.array(evaluated.matrix_world)
        points = np.array([vertex.co for vertex in mesh.vertices]) @ world[:3, :3].T + world[:3, 3]
        turned = np.array([np.linalg.inv(world[:3, :3]).T @ np.array(n.vector) for n in mesh.corner_normals])
        turned /= np.linalg.norm(turned, axis=1, keepdims=True)
        for face in mesh.polygons:
            middle = points[list(face.vertices)].mean(axis=0)
            rows += [
                [*middle, *points[v], *(turned[i] if normals else ())]
                for v, i in zip(face.vertices, face.loop_indices, strict=True)
            ]
    rows = np.array(rows)
    return rows[np.lexsort(np.round(rows[:, :6], 3).T[::-1])]


def pieces() -> list:
    return [ob for ob in bpy.data.objects if ob.name.startswith("Arm_")]


def test_the_attribute_tells_the_bones(tube):
    ob, _ = tube
    before = snapshot(ob)
    assert bpy.ops.skinning.partition_rigid() == {"FINISHED"}
    values = face_values(ob.data, "skinning_rigid_part")
    names = list(ob.data["skinning_rigid_part"])
    truth = expected(ob)
    assert sorted(names) == PARTS
    assert [PARTS.index(names[value]) if value >= 0 else -1 for value in values] == truth.tolist()
    assert 0 < (truth < 0).sum() < len(truth)
    after = snapshot(ob)
    assert {name for name in before if before[name] != after[name]} <= {"attributes", "properties"}


def test_face_sets_and_the_table(tube):
    ob, _ = tube
    assert bpy.ops.skinning.partition_rigid(output="FACE_SETS") == {"FINISHED"}
    values, truth = face_values(ob.data, ".sculpt_face_set"), expected(ob)
    assert np.array_equal(values == 1, truth < 0)
    assert len(np.unique(values[truth >= 0])) == 5
    assert np.array_equal(np.unique(np.column_stack([values, truth]), axis=0).shape, (6, 2))
    figures = partition_figures(ob)
    counts = [
        len([e for e in v.groups if e.weight and ob.vertex_groups[e.group].name in PARTS]) for v in ob.data.vertices
    ]
    assert figures.shares == pytest.approx((np.bincount(counts) / len(counts)).tolist())
    assert (figures.parts, figures.rigid_faces, figures.skin_faces) == (5, (truth >= 0).sum(), (truth < 0).sum())


def test_the_table_alone_changes_nothing(tube):
    ob, _ = tube
    before = snapshot(ob)
    assert bpy.ops.skinning.partition_rigid(output="NONE") == {"FINISHED"}
    after = snapshot(ob)
    assert {name for name in before if before[name] != after[name]} == {"properties"}
    assert partition_figures(ob).parts == 5


def test_small_parts_stay_with_the_skin(tube):
    ob, _ = tube
    sizes = np.bincount(expected(ob)[expected(ob) >= 0])
    assert sorted(sizes) == [80, 80, 80, 80, 112]
    bpy.ops.skinning.partition_rigid(least_faces=80)
    assert partition_figures(ob).parts == 5
    bpy.ops.skinning.partition_rigid(least_faces=81)
    assert (partition_figures(ob).parts, partition_figures(ob).rigid_faces) == (1, 112)


@pytest.mark.parametrize("parented", [False, True])
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("frame", [1, 5])
def test_objects_are_where_the_skin_was_at_every_frame(tube, parented, relative, frame):
    """Also where the armature moves as an object, bones stretch, and the mesh's scale is uneven and not applied."""
    ob, rig = tube
    ob.scale, ob.delta_location, ob.rotation_mode = (1.2, -0.6, 2.0), (0.1, 0.2, 0.3), "QUATERNION"
    for bone in rig.data.bones:
        bone.use_relative_parent = relative
    if parented:
        ob.parent = rig
        ob.matrix_parent_inverse = Matrix.Translation((0.4, 0, 0)) @ Matrix.Rotation(0.3, 4, "Y")
        scenes.key_property(rig, "location", {1: (0, 0, 0), 8: (2, 1, 0)})
    bpy.context.scene.frame_set(frame)
    before = [corners([ob], number) for number in range(1, 9)]
    bpy.context.scene.frame_set(frame)
    blocks = snapshot(ob)
    assert bpy.ops.skinning.partition_rigid(output="OBJECTS") == {"FINISHED"}
    made = pieces()
    assert sorted(ob.name for ob in made) == [*(f"Arm_{name}" for name in PARTS), "Arm_skin"]
    for number, rows in zip(range(1, 9), before, strict=True):
        assert np.allclose(corners(made, number), rows, atol=2e-5), number
    for piece in made:
        if piece.name != "Arm_skin":
            assert (piece.parent, piece.parent_type, f"Arm_{piece.parent_bone}") == (rig, "BONE", piece.name)
            assert not [modifier for modifier in piece.modifiers if modifier.type == "ARMATURE"]
            assert [group.name for group in piece.vertex_groups] == ["mine"]
    after = snapshot(ob)
    assert {name for name in blocks if blocks[name] != after[name]} <= {"file", "user", "properties"}
    assert (ob.hide_get(), ob.hide_render) == (True, True)
    assert bpy.context.view_layer.objects.active in made
    assert {piece for piece in made if piece.select_get()} == set(made)


@pytest.mark.parametrize("custom", [False, True])
def test_pieces_look_like_the_mesh(tube, custom):
    """Shading across the cuts, UV maps, materials, colors, seams."""
    ob, _ = tube
    mesh = ob.data
    mesh.polygons.foreach_set("use_smooth", np.ones(len(mesh.polygons), bool))
    for name in ("Red", "Blue"):
        mesh.materials.append(bpy.data.materials.new(name))
    random = np.random.default_rng(0)
    mesh.polygons.foreach_set("material_index", random.integers(0, 2, len(mesh.polygons)).astype(np.int32))
    uv = mesh.uv_layers.new(name="Map")
    uv.data.foreach_set("uv", random.random(2 * len(mesh.loops)).astype(np.float32))
    mark = mesh.attributes.new("mark", "INT", "POINT")
    mark.data.foreach_set("value", np.arange(len(mesh.vertices), dtype=np.int32))
    if custom:
        directions = random.normal(size=(len(mesh.loops), 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        mesh.normals_split_custom_set(directions)
    before = corners([ob], 1, normals=True)
    assert bpy.ops.skinning.partition_rigid(output="OBJECTS") == {"FINISHED"}
    after = corners(pieces(), 1, normals=True)
    assert np.allclose(before[:, :6], after[:, :6], atol=2e-5)
    assert np.abs(before[:, 6:] - after[:, 6:]).max() < 1e-4

    def looks(meshes):
        rows = []
        for mesh in meshes:
            numbers = [item.value for item in mesh.attributes["mark"].data]
            maps = mesh.uv_layers["Map"].data
            for face in mesh.polygons:
                rows += [
                    (numbers[v], mesh.materials[face.material_index].name, *maps[i].uv)
                    for v, i in zip(face.vertices, face.loop_indices, strict=True)
                ]
        return sorted(rows)

    assert looks([piece.data for piece in pieces()]) == looks([mesh])
    assert not [name for piece in pieces() for name in snapshot(piece)["attributes"] if name[0].startswith("skinning_")]


def test_a_tolerance_leaves_no_gaps(tube):
    """The border's vertices follow one bone in the skin, too."""
    ob, _ = tube
    ob.vertex_groups["Bone 4"].add(list(range(7 * SEGMENTS)), 0.01, "REPLACE")
    for group in ob.vertex_groups:
        group.lock_weight = True
    before = snapshot(ob)["weights"]
    bpy.ops.skinning.partition_rigid(output="OBJECTS", tolerance=0.1)
    assert snapshot(ob)["weights"] == before
    assert len(pieces()) == 6
    bpy.context.scene.frame_set(5)
    depsgraph = bpy.context.evaluated_depsgraph_get()
    borders = {}
    for piece in pieces():
        evaluated = piece.evaluated_get(depsgraph)
        for old, new in zip(piece.data.vertices, evaluated.data.vertices, strict=True):
            borders.setdefault(tuple(np.round(old.co, 5)), []).append(evaluated.matrix_world @ new.co)
    shared = [np.array(places) for places in borders.values() if len(places) > 1]
    # Two at each joint, and one before the last ring, which has no weights.
    assert len(shared) == 9 * SEGMENTS
    assert max(np.ptp(places, axis=0).max() for places in shared) < 1e-5


def test_shape_keys_go_along_where_they_move_something(tube):
    ob, _ = tube
    ob.shape_key_add(name="Basis", from_mix=False)
    key = ob.shape_key_add(name="Swell", from_mix=False)
    for index in range(4 * SEGMENTS):
        key.points[index].co.z += 0.2
    key.value = 0.5
    key.driver_add("value").driver.expression = "0.75"
    bpy.context.view_layer.update()
    before = corners([ob], 6)
    assert bpy.ops.skinning.partition_rigid(output="OBJECTS") == {"FINISHED"}
    assert np.allclose(corners(pieces(), 6), before, atol=2e-5)
    with_keys = {piece.name for piece in pieces() if piece.data.shape_keys is not None}
    assert with_keys == {"Arm_Bone 0", "Arm_skin"}
    assert len(bpy.data.shape_keys) == 3


def test_loose_parts_stay_with_the_skin(tube):
    ob, _ = tube
    count = len(ob.data.vertices)
    ob.data.vertices.add(2)
    ob.data.edges.add(1)
    ob.data.edges[-1].vertices = (count, count + 1)
    ob.vertex_groups["Bone 1"].add([count, count + 1], 1, "REPLACE")
    bpy.ops.skinning.partition_rigid(output="OBJECTS")
    by_name = {piece.name: piece.data for piece in pieces()}
    bone_of = expected(ob)
    skin_vertices = {v for face in ob.data.polygons if bone_of[face.index] < 0 for v in face.vertices}
    assert len(by_name["Arm_skin"].vertices) == len(skin_vertices) + 2
    assert sum(len(mesh.polygons) for mesh in by_name.values()) == len(ob.data.polygons)


def test_all_faces_rigid(tube):
    ob, _ = tube
    for group in ob.vertex_groups:
        group.remove(list(range(len(ob.data.vertices))))
    ob.vertex_groups["Bone 2"].add(list(range(len(ob.data.vertices))), 0.4, "REPLACE")
    before = corners([ob], 7)
    assert bpy.ops.skinning.partition_rigid(output="OBJECTS") == {"FINISHED"}
    (piece,) = pieces()
    assert piece.name == "Arm_Bone 2"
    assert np.allclose(corners([piece], 7), before, atol=2e-5)


@pytest.mark.parametrize("mode", ["WEIGHT_PAINT", "POSE"])
def test_the_mode_stays(tube, mode):
    ob, rig = tube
    binding_scenes.activate(rig if mode == "POSE" else ob)
    bpy.ops.object.mode_set(mode=mode)
    assert bpy.ops.skinning.partition_rigid() == {"FINISHED"}
    assert bpy.ops.skinning.partition_rigid(output="OBJECTS") == {"FINISHED"}
    assert len(pieces()) == 6
    assert ob.hide_get()
    if mode == "POSE":
        assert (bpy.context.view_layer.objects.active, rig.mode) == (rig, "POSE")


def test_a_mesh_that_is_a_child_by_armature_deform(tube):
    ob, rig = tube
    ob.modifiers.clear()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    bpy.context.view_layer.update()
    before = corners([ob], 6)
    bpy.ops.skinning.partition_rigid(output="OBJECTS")
    assert np.allclose(corners(pieces(), 6), before, atol=2e-5)


def test_other_modifiers_and_what_moves_the_mesh_are_noted(tube, capfd):
    ob, _ = tube
    ob.modifiers.new("Smooth", "SUBSURF")
    scenes.key_property(ob, "location", {1: (0, 0, 0), 8: (2, 1, 0)})
    bpy.ops.skinning.partition_rigid(output="OBJECTS")
    said = capfd.readouterr().out
    assert 'each object has "Smooth" of its own' in said
    assert "moves relative to its armature" in said
    assert all([modifier.name for modifier in piece.modifiers][-1:] == ["Smooth"] for piece in pieces())


def test_reasons_to_refuse(tube):
    ob, rig = tube
    partition = bpy.ops.skinning.partition_rigid
    refused(ob, partition, "tolerance", tolerance=0.5)
    refused(ob, partition, "nothing to separate", output="OBJECTS", least_faces=100000)
    mirror = ob.modifiers.new("Mirror", "MIRROR")
    ob.modifiers.move(1, 0)
    refused(ob, partition, '"Mirror"', "before the armature", output="OBJECTS")
    mirror.show_viewport = False
    assert partition(output="NONE") == {"FINISHED"}
    wire = scenes.mesh_object([(0, 0, 0), (1, 0, 0)], edges=[(0, 1)], name="Wire")
    wire.vertex_groups.new(name="Bone 0").add([0, 1], 1, "REPLACE")
    wire.modifiers.new("Armature", "ARMATURE").object = rig
    refused(wire, partition, '"Wire"', "no faces")


def test_a_failure_leaves_nothing(tube, monkeypatch):
    ob, _ = tube
    scenes.shape_keys(ob, 1)
    monkeypatch.setattr("skinning_tools.features.weights.rigid_pieces._follow_bone", lambda *_: 1 / 0)
    before = scenes.data_blocks(), scenes.ui_state()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        bpy.ops.skinning.partition_rigid(output="OBJECTS")
    assert (scenes.data_blocks(), scenes.ui_state()) == before
    assert not ob.hide_get()


def test_cancelling_during_the_separation_leaves_nothing(tube):
    ob, _ = tube
    scenes.shape_keys(ob, 1)
    before = scenes.data_blocks(), scenes.ui_state()
    steps = rigid_parts.partition(bpy.context, ob, "OBJECTS")
    while next(steps)[1] != "Separating rigid parts":
        pass
    assert scenes.data_blocks() != before[0]
    steps.close()
    assert (scenes.data_blocks(), scenes.ui_state()) == before


def test_a_linked_mesh_can_be_separated_but_not_marked(tube, tmp_path):
    path = str(tmp_path / "library.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (_, wanted):
        wanted.objects = ["Arm", "Rig"]
    for linked in wanted.objects:
        scenes.link(linked)
    linked = bpy.data.objects["Arm"]
    binding_scenes.activate(linked)
    for operator in (
        bpy.ops.skinning.partition_rigid,
        bpy.ops.skinning.smooth_weights,
        bpy.ops.skinning.compress_weights,
        bpy.ops.skinning.find_rogue_weights,
        bpy.ops.skinning.remove_rogue_weights,
    ):
        with refusals.raises_unmet('LINKED mesh of object "Arm"'):
            operator()
    assert bpy.ops.skinning.partition_rigid(output="OBJECTS") == {"FINISHED"}
    assert {piece.data.library for piece in pieces()} == {None}
    assert len(pieces()) == 6


def test_the_pieces_of_an_overridden_character_stand_on_their_own(tube, tmp_path):
    own = scenes.overridden(tube, tmp_path / "library.blend")
    binding_scenes.activate(own["MESH"])
    frames = (1, 5)
    before = [corners([own["MESH"]], frame) for frame in frames]
    assert bpy.ops.skinning.partition_rigid(output="OBJECTS") == {"FINISHED"}
    scenes.reopened(tmp_path / "shot.blend")
    made = pieces()
    assert len(made) == 6
    assert {piece.override_library for piece in made} == {None}
    for frame, rows in zip(frames, before, strict=True):
        assert np.allclose(corners(made, frame), rows, atol=2e-5), frame
