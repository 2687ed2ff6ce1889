# SPDX-License-Identifier: GPL-3.0-or-later
"""bpy.ops.skinning.bind: weights, groups, modifier and parent that it leaves, whom it means, and what it refuses."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.core.errors import Cancelled
from skinning_tools.scene.bind import BindSettings, bind, bind_record, check_bindable
from skinning_tools.scene.skin_reader import read_skin
from tests.blender import scenes, skinned_meshes
from tests.blender.binding_scenes import activate, armature_of_segments, check_bound, cube, dense, tube, weights_of

pytestmark = pytest.mark.usefixtures("extension")

METHODS = ("CONTAINMENT", "POINT_TO_LINE", "DELAUNAY", "RIGID")
every_method = pytest.mark.parametrize("method", METHODS)


def bound(**settings) -> None:
    assert bpy.ops.skinning.bind(**settings) == {"FINISHED"}
    bpy.context.view_layer.update()


def refused(match: str, **settings) -> None:
    """The operator fails with a text that has ``match``, and changes nothing."""
    before = scenes.data_blocks(), scenes.ui_state(), [_state(ob) for ob in bpy.data.objects]
    with pytest.raises(RuntimeError, match=match):
        bpy.ops.skinning.bind(**settings)
    assert (scenes.data_blocks(), scenes.ui_state(), [_state(ob) for ob in bpy.data.objects]) == before


def _state(ob) -> tuple:
    groups = [group.name for group in ob.vertex_groups] if ob.type == "MESH" else []
    weights = dense(ob, groups).tolist() if groups and not ob.data.is_editmode else []
    modifiers = [(m.name, m.show_viewport) for m in ob.modifiers]
    return ob.name, ob.parent and ob.parent.name, ob.parent_type, groups, weights, modifiers, list(ob.keys())


# What it leaves


@every_method
def test_every_method_binds_every_vertex_and_the_armature_moves_it(method):
    ob, rig = tube()
    world = ob.matrix_world.copy()
    bound(method=method)
    weights = check_bound(ob, rig, 1 if method == "RIGID" else 4)
    assert [group.name for group in ob.vertex_groups] == [bone.name for bone in rig.data.bones]
    # Along the tube the bones take over from each other.
    places = np.array([vertex.co.x for vertex in ob.data.vertices])
    near = ob.matrix_world @ ob.data.vertices[0].co
    assert weights[np.argmin(places)].argmax() == 0, near
    assert weights[np.argmax(places)].argmax() == 4
    assert [(m.type, m.object) for m in ob.modifiers] == [("ARMATURE", rig)]
    assert ob.parent == rig
    assert ob.parent_type == "OBJECT"
    assert np.allclose(ob.matrix_world, world, atol=1e-6)
    rest = scenes.evaluated_positions(ob)
    bpy.context.scene.frame_set(8)
    assert np.abs(scenes.evaluated_positions(ob) - rest).max() > 0.3
    # Other rooms can work with it.
    assert len(read_skin(bpy.context, ob).bone_names) == 5


@every_method
def test_at_rest_nothing_moves(method):
    ob, _ = tube()
    before = scenes.evaluated_positions(ob)
    bound(method=method)
    assert np.allclose(scenes.evaluated_positions(ob), before, atol=1e-5)


def test_the_pose_does_not_count():
    weights = []
    for frame in (1, 8):
        ob, rig = tube()
        bpy.context.scene.frame_set(frame)
        bound()
        weights.append(weights_of(ob, rig))
    assert np.array_equal(*weights)


def test_in_pose_mode_with_the_armature_active():
    ob, rig = tube()
    activate(rig, ob)
    bpy.ops.object.mode_set(mode="POSE")
    bound()
    assert bpy.context.mode == "POSE"
    check_bound(ob, rig)


def test_the_influence_limit_holds():
    ob, rig = tube(9, rings=81)
    bound(max_influences=2)
    weights = check_bound(ob, rig, 2)
    assert (weights > 0).sum(axis=1).max() == 2
    refused("Influences must be at least 1, not 0", max_influences=0, replace=True)


def test_bones_that_do_not_deform_get_nothing():
    ob, rig = tube()
    rig.data.bones["Bone 2"].use_deform = False
    bound()
    assert "Bone 2" not in ob.vertex_groups
    assert np.allclose(weights_of(ob, rig).sum(axis=1), 1, atol=1e-5)


def test_groups_stand_for_all_deforming_bones_as_blenders_own_binding_makes_them():
    made = []
    for own in (True, False):
        scenes.empty_scene()
        rig = armature_of_segments([[(0, 0, 0), (1, 0, 0)], [(1, 0, 0), (2, 0, 0)], [(40, 0, 0), (41, 0, 0)]])
        ob = cube("Box", (0.9, 0, 0))
        if own:
            bound()
        else:
            activate(rig, ob)
            bpy.ops.object.parent_set(type="ARMATURE_AUTO")
        made.append((sorted(ob.vertex_groups.keys()), ob.parent_type, [m.type for m in ob.modifiers]))
    assert made[0] == made[1]


def test_it_says_what_it_did(capfd):
    ob, _ = tube()
    bound()
    said = capfd.readouterr().out
    assert f"Arm: {len(ob.data.vertices):,} vertices bound to 5 bones, up to" in said
    record = bind_record(ob)
    assert (record.armature, record.method, record.bone_count) == ("Rig", "DELAUNAY", 5)


def test_nothing_else_of_the_object_changes():
    ob, rig = tube()
    scenes.shape_keys(ob, 2)
    ob.data.attributes.new("mine", "FLOAT", "POINT")
    before = ob.location[:], ob.rotation_euler[:], ob.scale[:], [k.name for k in ob.data.shape_keys.key_blocks]
    state = scenes.ui_state()
    bound()
    assert (
        ob.location[:],
        ob.rotation_euler[:],
        ob.scale[:],
        [k.name for k in ob.data.shape_keys.key_blocks],
    ) == before
    assert "mine" in ob.data.attributes
    assert scenes.ui_state() == state
    check_bound(ob, rig)


def test_shape_keys_do_not_count():
    """The first one is the rest shape, whatever is mixed in."""
    ob, rig = tube()
    bound()
    plain = weights_of(ob, rig)
    ob, rig = tube()
    for block in scenes.shape_keys(ob, 2):
        block.value = 1
    ob.active_shape_key_index = 2
    bound()
    assert np.array_equal(weights_of(ob, rig), plain)


def test_the_active_group_stays_and_there_is_one_where_there_was_none():
    ob, rig = tube()
    rig.data.bones.active = rig.data.bones["Bone 3"]
    bound()
    assert ob.vertex_groups.active.name == "Bone 3"
    ob, _ = tube()
    ob.vertex_groups.new(name="mine")
    bound()
    assert ob.vertex_groups.active.name == "mine"


def test_a_symmetric_character_gets_symmetric_weights():
    scenes.empty_scene()
    segments = [[(0, -1, 0), (0, 1, 0)], [(0.3, 0, 0), (2, 0, 0)], [(-0.3, 0, 0), (-2, 0, 0)]]
    rig = armature_of_segments(segments)
    rows = [(x / 4, y / 4, z / 4) for x in range(-8, 9) for y in range(-2, 3) for z in (-1, 1)]
    index = {row: number for number, row in enumerate(rows)}
    faces = [
        tuple(index[x / 4, y / 4, z / 4] for x, y in ((a, b), (a + 1, b), (a + 1, b + 1), (a, b + 1)))
        for a in range(-8, 8)
        for b in range(-2, 2)
        for z in (-1, 1)
    ]
    ob = scenes.mesh_object(rows, faces)
    ob.scale = (2, 2, 2)
    rig.scale = (2, 2, 2)
    image = [index[-x, y, z] for x, y, z in rows]
    bpy.context.view_layer.update()
    for method in METHODS:
        bound(method=method, replace=True)
        weights = weights_of(ob, rig)
        # As far as the solver goes.
        assert np.allclose(weights, weights[image][:, [0, 2, 1]], atol=1e-5), method


@pytest.mark.parametrize("scale", [(1, 1, 1), (1.7, -0.6, 1.2)])
@pytest.mark.parametrize("shape", ["ball", "cushion"])
def test_what_is_chance_in_a_symmetric_character_does_not_count(shape, scale):
    """Blender cuts quads in the two sides anyhow, and scales that are not applied leave rounding."""
    scenes.empty_scene()
    if shape == "ball":
        bpy.ops.mesh.primitive_uv_sphere_add()
    else:
        bpy.ops.mesh.primitive_cube_add()
        bpy.context.object.modifiers.new("Subdivision", "SUBSURF").levels = 4
        bpy.ops.object.modifier_apply(modifier="Subdivision")
    ob = bpy.context.object
    sides = [[[(0.2 * x, 0, 0), (0.7 * x, -0.1, 0.1)], [(0.7 * x, -0.1, 0.1), (1.2 * x, -0.2, 0.1)]] for x in (1, -1)]
    spine = [[(0, 0, -0.8), (0, 0, 0)], [(0, 0, 0), (0, 0, 0.8)]]
    rig = armature_of_segments([*spine, *sides[0], *sides[1]], parents=(-1, 0, 1, 2, 1, 4))
    placed = Matrix.Translation((3, 2, 1)) @ Matrix.Rotation(0.7, 4, (1, 2, 3))
    ob.data.transform(Matrix.Diagonal((*scale, 1)).inverted())
    ob.matrix_world, rig.matrix_world = placed @ Matrix.Diagonal((*scale, 1)), placed
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    image = np.linalg.norm(rest[:, None] * [-1, 1, 1] - rest, axis=-1).argmin(axis=1)
    activate(ob)
    for method in METHODS:
        bound(method=method, replace=True)
        weights = weights_of(ob, rig)
        np.testing.assert_allclose(weights[image][:, [0, 1, 4, 5, 2, 3]], weights, atol=1e-4, err_msg=method)


# Whom it means


def test_the_active_armature_binds_all_selected_meshes_each_by_itself(capfd):
    ob, rig = tube()
    box = cube("Box", (2.5, 0, 0))
    other = cube("Other", (0, 0, 3))
    activate(rig, ob, box)
    bound(method="RIGID")
    check_bound(ob, rig)
    check_bound(box, rig)
    assert f"2 meshes: {len(ob.data.vertices) + 8} vertices bound to 5 bones" in capfd.readouterr().out
    assert not other.vertex_groups
    assert (ob.parent, box.parent, other.parent) == (rig, rig, None)


def test_the_active_armature_alone_means_the_mesh_that_it_deforms():
    ob, rig = tube()
    activate(rig)
    refused("No mesh is selected")
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    bound()
    check_bound(ob, rig)


def test_the_active_mesh_means_itself_alone():
    ob, rig = tube()
    box = cube("Box", (2.5, 0, 0))
    activate(ob, box, rig)
    bound()
    assert not box.vertex_groups


@pytest.mark.parametrize("how", ["modifier", "parent", "selected", "only", "named"])
def test_which_armature(how):
    ob, rig = tube()
    if how != "only":
        other = armature_of_segments([[(0, 0, 0), (1, 0, 0)]], "Other")
        activate(ob)
        refused('There are several armatures: "Rig", "Other"')
    if how == "modifier":
        ob.modifiers.new("Armature", "ARMATURE").object = rig
        other.select_set(True)
    elif how == "parent":
        ob.parent = rig
        other.select_set(True)
    elif how == "selected":
        rig.select_set(True)
    bound(armature="Rig" if how == "named" else "")
    check_bound(ob, rig)
    assert [m.object for m in ob.modifiers] == [rig]


def test_whom_it_cannot_mean():
    ob, rig = tube()
    refused('no armature "Nobody" in scene "Scene". Its armatures: "Rig"', armature="Nobody")
    refused('no armature "Arm"', armature="Arm")
    bpy.context.view_layer.objects.active = None
    refused("There is no active object")
    light = scenes.link(bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN")))
    activate(light)
    refused('"Sun" is not a mesh, its type is Light')
    activate(ob)
    bpy.data.objects.remove(rig)
    refused('no armature to bind the object "Arm" to')


# Weights that are there


def test_groups_of_other_names_stay():
    ob, rig = tube()
    ob.vertex_groups.new(name="mine").add([3, 4], 0.25, "REPLACE")
    for replace in (False, True):
        bound(replace=replace)
        assert dense(ob, ["mine"])[[2, 3, 4], 0].tolist() == [0, 0.25, 0.25]
    check_bound(ob, rig)


def test_vertices_with_weights_keep_them_to_the_last_bit(capfd):
    ob, rig = tube()
    kept = list(range(100))
    ob.vertex_groups.new(name="Bone 4").add(kept, 0.3, "REPLACE")
    ob.vertex_groups.new(name="Bone 0").add(kept, 0.1, "REPLACE")
    before = weights_of(ob, rig)
    bound()
    weights = weights_of(ob, rig)
    assert np.array_equal(weights[:100], before[:100])
    assert np.allclose(weights[100:].sum(axis=1), 1, atol=1e-5)
    assert f"Arm: {len(weights) - 100} vertices bound" in (said := capfd.readouterr().out)
    assert "100 that had weights keep them" in said
    assert bind_record(ob).kept_count == 100


def test_where_all_have_weights_it_says_to_replace():
    ob, rig = tube()
    bound(method="RIGID")
    rigid = weights_of(ob, rig)
    refused(f"All {len(rigid):,} vertices of .*Enable Replace")
    bound(replace=True)
    assert not np.array_equal(weights_of(ob, rig), rigid)
    fresh = check_bound(ob, rig)
    ob, rig = tube()
    bound()
    # A parent rounds where the mesh stands.
    assert np.allclose(fresh, weights_of(ob, rig), atol=1e-5)


def test_a_group_of_zeros_is_no_weight():
    ob, rig = tube()
    ob.vertex_groups.new(name="Bone 1").add(range(len(ob.data.vertices)), 0.0, "REPLACE")
    bound()
    weights = check_bound(ob, rig)
    assert (weights[:, 1] > 0).any()
    assert sorted(ob.vertex_groups.keys()) == sorted(bone.name for bone in rig.data.bones)


@every_method
def test_locked_groups_keep_their_weights_and_count(method):
    ob, rig = tube()
    group = ob.vertex_groups.new(name="Bone 2")
    random = np.random.default_rng(0)
    values = random.uniform(0.1, 0.9, len(ob.data.vertices)) * (random.uniform(size=len(ob.data.vertices)) < 0.5)
    for vertex, value in enumerate(values):
        group.add([vertex], value, "REPLACE")
    group.lock_weight = True
    before = dense(ob, ["Bone 2"])
    bound(method=method, replace=True, max_influences=2)
    assert np.array_equal(dense(ob, ["Bone 2"]), before)
    check_bound(ob, rig, 2)


def test_a_locked_group_gets_nothing_new():
    ob, rig = tube()
    ob.vertex_groups.new(name="Bone 2").lock_weight = True
    bound()
    weights = check_bound(ob, rig)
    assert not weights[:, 2].any()


def test_all_locked_is_refused():
    ob, rig = tube(2)
    for bone in rig.data.bones:
        ob.vertex_groups.new(name=bone.name).lock_weight = True
    refused('groups of all bones of "Rig" are locked in object "Arm"')


# Modifier and parent


@pytest.mark.parametrize(
    ("stack", "place"),
    [
        (["SUBSURF"], 0),
        (["MIRROR", "SUBSURF"], 1),
        (["MIRROR"], 1),
        (["MIRROR", "SOLIDIFY", "SUBSURF"], 1),
        (["SUBSURF", "MIRROR"], 0),
        (["MULTIRES"], 0),
    ],
)
def test_the_modifier_goes_before_what_refines(stack, place):
    ob, _ = tube()
    for kind in stack:
        ob.modifiers.new(kind, kind)
    bound()
    bound(replace=True)
    kinds = [m.type for m in ob.modifiers]
    assert kinds == [*stack[:place], "ARMATURE", *stack[place:]]


def test_the_modifier_goes_before_what_refines_where_another_is_pinned_to_the_end():
    ob, _ = tube()
    for kind in ("SUBSURF", "NODES"):
        ob.modifiers.new(kind, kind)
    # As Shade Auto Smooth has it.
    ob.modifiers["NODES"].use_pin_to_last = True
    bound()
    assert [m.type for m in ob.modifiers] == ["ARMATURE", "SUBSURF", "NODES"]


def test_a_modifier_that_is_there_stays_where_it_is_and_is_switched_on(capfd):
    ob, rig = tube()
    ob.modifiers.new("Subdivision", "SUBSURF")
    modifier = ob.modifiers.new("Bones", "ARMATURE")
    modifier.object, modifier.show_viewport, modifier.use_vertex_groups = rig, False, False
    modifier.use_deform_preserve_volume = True
    bound()
    assert [m.name for m in ob.modifiers] == ["Subdivision", "Bones"]
    assert modifier.show_viewport
    assert modifier.use_vertex_groups
    assert modifier.use_deform_preserve_volume
    assert 'the modifier "Bones" was switched on' in capfd.readouterr().out


def test_a_parent_of_type_armature_is_the_modifier():
    ob, rig = tube()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    bpy.context.view_layer.update()
    bound()
    assert not ob.modifiers
    assert ob.parent_type == "ARMATURE"
    bpy.context.scene.frame_set(8)
    assert np.allclose(scenes.evaluated_positions(ob), skinned_meshes.expected(ob, "LBS"), atol=1e-4)


def test_another_parent_stays():
    ob, rig = tube()
    group = scenes.link(bpy.data.objects.new("Group", None))
    group.location = (1, 2, 3)
    ob.parent, ob.matrix_parent_inverse = group, Matrix.Translation((-1, -2, -2.9))
    activate(ob)
    bpy.context.view_layer.update()
    world = ob.matrix_world.copy()
    bound()
    assert ob.parent == group
    assert np.allclose(ob.matrix_world, world)
    check_bound(ob, rig)


def test_an_armature_below_the_mesh_does_not_become_its_parent():
    ob, rig = tube()
    rig.parent = ob
    bpy.context.view_layer.update()
    bound()
    assert ob.parent is None
    check_bound(ob, rig)


def test_several_deformers_are_refused():
    ob, rig = tube()
    other = armature_of_segments([[(0, 0, 0), (1, 0, 0)]], "Other")
    activate(ob)
    first = ob.modifiers.new("First", "ARMATURE")
    first.object = other
    refused('deformed by "Other" already .modifier "First"', armature="Rig")
    first.object = rig
    second = ob.modifiers.new("Second", "ARMATURE")
    second.object = rig
    refused('twice: by the modifier "First" and the modifier "Second"')
    second.show_viewport = False
    bound()
    assert not second.show_viewport
    check_bound(ob, rig)


def test_a_mesh_that_a_bone_carries_is_refused():
    ob, rig = tube()
    ob.parent, ob.parent_type, ob.parent_bone = rig, "BONE", "Bone 1"
    refused('parented to the bone "Bone 1" of "Rig", which would move it a second time')


# Inputs of all kinds


def test_scale_that_is_not_applied_does_not_matter():
    """Uneven scales and mirrors, against a mesh whose vertices have the same places."""
    ob, rig = tube()
    bound()
    expected = weights_of(ob, rig)
    for scale in ((-1.2, 1.2, 1.2), (0.3, 2.0, 1.0), (0.5, -3.0, -1.0)):
        ob, rig = tube()
        change = Matrix.Diagonal((*scale, 1))
        ob.data.transform(change.inverted() @ Matrix.Diagonal((1.2, 1.2, 1.2, 1)))
        if change.determinant() < 0:
            ob.data.flip_normals()
        ob.scale = scale
        bpy.context.view_layer.update()
        world = np.array([ob.matrix_world @ vertex.co for vertex in ob.data.vertices])
        bound()
        assert np.allclose(weights_of(ob, rig), expected, atol=2e-3)
        assert np.allclose([ob.matrix_world @ vertex.co for vertex in ob.data.vertices], world, atol=1e-5)


def test_an_armature_with_a_scale_of_its_own():
    ob, rig = tube()
    bound()
    expected = weights_of(ob, rig)
    ob, rig = tube()
    rig.animation_data_clear()
    rig.data.transform(Matrix.Diagonal((4, 4, 4, 1)))
    rig.scale = (0.25,) * 3
    bpy.context.view_layer.update()
    world = ob.matrix_world.copy()
    bound()
    assert np.allclose(weights_of(ob, rig), expected, atol=1e-4)
    assert np.allclose(ob.matrix_world, world, atol=1e-6)


@pytest.mark.parametrize("owner", ["mesh", "armature"])
def test_a_scale_of_zero_is_refused(owner):
    ob, rig = tube()
    rig.animation_data_clear()
    (ob if owner == "mesh" else rig).scale = (1, 0, 1)
    refused('"Arm" has a scale of zero' if owner == "mesh" else '"Rig" has a scale of zero')


@every_method
@pytest.mark.parametrize(
    "kind", ["parts", "sheet", "dirty", "no faces", "wires", "one vertex", "far bone", "tiny bone"]
)
def test_no_input_defeats_a_method(method, kind):
    scenes.empty_scene()
    rig = armature_of_segments([[(i, 0, 0), (i + 1, 0, 0)] for i in range(5)])
    if kind == "parts":
        boxes = [cube(f"Box {i}", (i / 4, 0, 0), 0.2) for i in range(20)]
        activate(boxes[0], *boxes)
        bpy.ops.object.join()
        ob = bpy.context.object
    elif kind in ("no faces", "wires"):
        vertices = [(x / 4, np.sin(x), 0) for x in range(21)]
        ob = scenes.mesh_object(vertices, edges=[(i, i + 1) for i in range(20)] if kind == "wires" else [])
    elif kind == "one vertex":
        ob = scenes.mesh_object([(1, 0, 0)])
    else:
        ob = scenes.grid(5, 2)
    if kind == "dirty":
        vertices = [vertex.co[:] for vertex in ob.data.vertices]
        faces = [tuple(face.vertices) for face in ob.data.polygons]
        count = len(vertices)
        bpy.data.objects.remove(ob)
        # Twice the same, and triangles without an area.
        ob = scenes.mesh_object(
            vertices * 2, [*faces, *([v + count for v in f] for f in faces), (0, 1, 2), (0, count, 5)]
        )
    elif kind == "far bone":
        activate(rig)
        bpy.ops.object.mode_set(mode="EDIT")
        bone = rig.data.edit_bones.new("Far")
        bone.head, bone.tail = (500, 0, 0), (500, 1, 0)
        bpy.ops.object.mode_set(mode="OBJECT")
    elif kind == "tiny bone":
        # Blender removes those of no length at all.
        activate(rig)
        bpy.ops.object.mode_set(mode="EDIT")
        bone = rig.data.edit_bones.new("Tiny")
        bone.head, bone.tail = (2, 1, 0), (2, 1, 2e-6)
        bpy.ops.object.mode_set(mode="OBJECT")
        assert "Tiny" in rig.data.bones
    activate(ob)
    bound(method=method)
    check_bound(ob, rig)


@every_method
@pytest.mark.parametrize("count", [1, 300])
def test_one_bone_and_three_hundred(method, count):
    ob, rig = tube(count, rings=3 * count, segments=6)
    bound(method=method)
    check_bound(ob, rig)


def test_no_vertices():
    tube()
    ob = scenes.mesh_object([], name="Empty")
    activate(ob)
    refused('"Empty" has no vertices')


def test_positions_that_are_no_numbers():
    ob, _ = tube()
    ob.data.vertices[7].co.x = float("nan")
    refused('"Arm" cannot be bound. Vertex 7 of the mesh has a position that is not a number')


def test_an_armature_that_deforms_nothing():
    _, rig = tube()
    for bone in rig.data.bones:
        bone.use_deform = False
    refused('No bone of the armature "Rig" deforms')


def test_edit_mode():
    ob, rig = tube()
    bpy.ops.object.mode_set(mode="EDIT")
    refused('"Arm" is in Edit Mode')
    bpy.ops.object.mode_set(mode="OBJECT")
    activate(rig, ob)
    bpy.ops.object.mode_set(mode="EDIT")
    refused('"Rig" is in Edit Mode')
    bpy.ops.object.mode_set(mode="OBJECT")


def test_weight_paint_mode():
    ob, rig = tube()
    bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
    bound()
    assert ob.mode == "WEIGHT_PAINT"
    check_bound(ob, rig)


def test_linked_meshes_are_refused(tmp_path):
    ob, _ = tube()
    path = tmp_path / "library.blend"
    bpy.data.libraries.write(str(path), {ob.data})
    with bpy.data.libraries.load(str(path), link=True) as (source, target):
        target.meshes = source.meshes
    ob.data = target.meshes[0]
    refused('mesh of object "Arm" is linked from another file')


def test_a_shared_mesh(capfd):
    ob, rig = tube()
    twin = ob.copy()
    scenes.link(twin)
    activate(rig, ob, twin)
    refused('"Arm" and "Arm.001" share one mesh')
    activate(ob)
    bound()
    check_bound(ob, rig)
    assert not twin.modifiers
    assert "1 other object with the same mesh got the weights, too" in capfd.readouterr().out


def test_a_hidden_mesh_is_refused_and_a_hidden_armature_is_not():
    ob, rig = tube()
    bound()
    expected = weights_of(ob, rig)
    for how in ("hide_viewport", "eye", "collection"):
        ob, rig = tube()
        rig.animation_data_clear()
        place = rig.location.copy()
        rig.location = (50, 60, 70)
        bpy.context.view_layer.update()
        if how == "eye":
            rig.hide_set(True)
        elif how == "hide_viewport":
            rig.hide_viewport = True
        else:
            collection = bpy.data.collections.new("Rigs")
            bpy.context.scene.collection.children.link(collection)
            collection.objects.link(rig)
            bpy.context.scene.collection.objects.unlink(rig)
            bpy.context.view_layer.layer_collection.children["Rigs"].exclude = True
        # Blender does not place what it hides.
        rig.location = place
        bound(armature="Rig")
        assert np.array_equal(weights_of(ob, rig), expected), how
    ob, _ = tube()
    ob.hide_set(True)
    bpy.context.view_layer.objects.active = ob
    refused('"Arm" is hidden')


# Limits and parts


def test_no_bone_reaches_beyond_its_limit():
    ob, rig = tube()
    bound(distance_limit=0.6)
    weights = weights_of(ob, rig)
    skin = np.array([ob.matrix_world @ vertex.co for vertex in ob.data.vertices])
    nearest = distances(skin, rig).min(axis=1, keepdims=True)
    beyond = (distances(skin, rig) > 0.6) & (distances(skin, rig) > nearest + 1e-6)
    assert beyond.any()
    assert not weights[beyond].any()
    check_bound(ob, rig)
    refused("The distance limit must not be negative, but it is -1", distance_limit=-1.0, replace=True)


def distances(points, rig) -> np.ndarray:
    """(N, P) in the world."""
    found = []
    for bone in rig.data.bones:
        head, tail = (np.array(rig.matrix_world @ end) for end in (bone.head_local, bone.tail_local))
        share = np.clip((points - head) @ (tail - head) / np.sum((tail - head) ** 2), 0, 1)
        found.append(np.linalg.norm(points - head - share[:, None] * (tail - head), axis=1))
    return np.array(found).T


def test_envelopes_are_limits():
    ob, rig = tube()
    rig.animation_data_clear()
    rig.scale = (0.5,) * 3
    for bone in rig.data.bones:
        bone.envelope_distance, bone.head_radius, bone.tail_radius = 1.0, 0.1, 0.2
    bpy.context.view_layer.update()
    bound(use_envelopes=True)
    by_envelopes = weights_of(ob, rig)
    bound(distance_limit=0.6, replace=True)
    assert np.allclose(by_envelopes, weights_of(ob, rig), atol=1e-6)
    bound(replace=True)
    assert not np.allclose(by_envelopes, weights_of(ob, rig), atol=1e-2)
    # Of both limits the smaller one counts.
    bound(distance_limit=0.4, use_envelopes=True, replace=True)
    both = weights_of(ob, rig)
    bound(distance_limit=0.4, replace=True)
    assert np.array_equal(both, weights_of(ob, rig))


def test_whole_parts():
    scenes.empty_scene()
    rig = armature_of_segments([[(i, 0, 0), (i + 1, 0, 0)] for i in range(3)])
    boxes = [cube(f"Box {i}", (0.7 + 0.5 * i, 0, 0)) for i in range(4)]
    activate(boxes[0], *boxes)
    bpy.ops.object.join()
    ob = bpy.context.object
    bound(method="RIGID", whole_parts=True)
    weights = check_bound(ob, rig, 1)
    bones = weights.argmax(axis=1).reshape(4, 8)
    assert bones.min(axis=1).tolist() == bones.max(axis=1).tolist() == [0, 1, 1, 2]


# All or nothing


def test_cancelled_it_leaves_nothing():
    ob, _ = tube()
    before = scenes.data_blocks(), _state(ob)
    steps = bind(bpy.context, check_bindable(bpy.context), BindSettings())
    next(steps)
    steps.close()
    assert (scenes.data_blocks(), _state(ob)) == before


def test_the_work_stops_where_it_is_told_to(monkeypatch):
    ob, _ = tube()

    def stop(work):
        work(lambda fraction, stage: False)
        yield

    monkeypatch.setattr("skinning_tools.scene.background.run_in_worker", stop)
    before = _state(ob)
    with pytest.raises(Cancelled):
        next(bind(bpy.context, check_bindable(bpy.context), BindSettings()))
    assert _state(ob) == before


def test_one_bad_mesh_of_several_leaves_the_others_alone():
    ob, rig = tube()
    empty = scenes.mesh_object([], name="Empty")
    activate(rig, ob, empty)
    refused('"Empty" has no vertices')


def test_a_mesh_edited_meanwhile():
    ob, _ = tube()
    steps = bind(bpy.context, check_bindable(bpy.context), BindSettings())
    next(steps)
    ob.data.vertices.add(1)
    with pytest.raises(Exception, match="was edited while it was being bound"):
        scenes.drain(steps)
