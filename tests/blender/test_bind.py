# SPDX-License-Identifier: GPL-3.0-or-later
"""bpy.ops.skinning.bind: the weights and groups that it writes, and its treatment of existing weights."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.blender.skin_reader import read_skin
from skinning_tools.features.bind.bind import bind_record
from tests.blender import scenes
from tests.blender.binding_scenes import (
    METHODS,
    activate,
    armature_of_segments,
    bound,
    check_bound,
    cube,
    dense,
    every_method,
    refused,
    tube,
    weights_of,
)

pytestmark = pytest.mark.usefixtures("extension")


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
    refused("OUT_OF_RANGE Influences … at least 1 … 0", max_influences=0, replace=True)


def test_bones_that_do_not_deform_get_nothing():
    ob, rig = tube()
    rig.data.bones["Bone 2"].use_deform = False
    bound()
    assert "Bone 2" not in ob.vertex_groups
    assert np.allclose(weights_of(ob, rig).sum(axis=1), 1, atol=1e-6)


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


def test_it_reports_what_it_did(capfd):
    ob, _ = tube()
    bound()
    said = capfd.readouterr().out
    assert f"Arm: {len(ob.data.vertices):,} vertices bound, 5 bones, up to" in said
    record = bind_record(ob)
    assert (record.armature, record.method, record.bone_count) == ("Rig", "AUTOMATIC", 5)


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
    """The first one is the rest shape, whichever keys are mixed in."""
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
def test_asymmetry_by_chance_does_not_count(shape, scale):
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


# Weights that are there


@pytest.mark.parametrize("method", ["AUTOMATIC", "DELAUNAY", "POINT_TO_LINE"])
def test_which_way_large_faces_are_cut_does_not_matter(method):
    """Both sides of a symmetric body have bumpy faces of ten corners, whose diagonals Blender chooses by their first
    corner."""
    scenes.empty_scene()
    random = np.random.default_rng(4)
    ring = np.radians(np.arange(0, 360, 30))
    x = np.linspace(0, 6, 13)
    points = np.array([(place, 0.6 * np.cos(angle), 0.6 * np.sin(angle)) for place in x for angle in ring])
    points += 0.05 * random.normal(size=points.shape) * (points[:, :1] > 0)
    # Four columns of a band of two rows make a face.
    sides = [
        [24 * row + (4 * side + step) % 12 for step in range(5)]
        + [24 * (row + 1) + (4 * side + step) % 12 for step in range(4, -1, -1)]
        for row in range(6)
        for side in range(3)
    ]
    used, index = np.unique(np.concatenate(sides), return_inverse=True)
    faces = [*index.reshape(-1, 10).tolist(), np.flatnonzero(used >= 144).tolist()]
    points = points[used]
    inner = points[:, 0] == 0
    image = np.where(inner, np.arange(len(points)), len(points) + np.cumsum(~inner) - 1)
    other = [np.roll(image[face][::-1], 3).tolist() for face in faces]
    both = np.concatenate([points, points[~inner] * [-1, 1, 1]])
    ob = scenes.mesh_object(both, faces + other)
    limbs = [[[(0.3 * x, 0, 0), (3 * x, 0, 0)], [(3 * x, 0, 0), (6 * x, 0, 0)]] for x in (1, -1)]
    rig = armature_of_segments([[(0, -0.3, 0), (0, 0.3, 0)], *limbs[0], *limbs[1]], parents=[-1, 0, 1, 0, 3])
    activate(rig, ob)
    bound(method=method)
    weights = check_bound(ob, rig)
    np.testing.assert_allclose(weights[: len(points)], weights[image][:, [0, 3, 4, 1, 2]], atol=1e-5)


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
    assert np.allclose(weights[100:].sum(axis=1), 1, atol=1e-6)
    assert f"Arm: {len(weights) - 100} vertices bound" in (said := capfd.readouterr().out)
    assert "earlier weights of 100 vertices kept" in said
    assert bind_record(ob).kept_count == 100


def test_if_all_have_weights_it_advises_replace():
    ob, rig = tube()
    bound(method="RIGID")
    rigid = weights_of(ob, rig)
    refused(f"All {len(rigid):,} vertices of", "Enable Replace")
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
    refused("OUT_OF_RANGE Distance Limit … at least 0 … -1", distance_limit=-1.0, replace=True)


def distances(points, rig) -> np.ndarray:
    """(N, P) in world space."""
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
