# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading bodies, skeletons and weights for binding, and writing weights back."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from skinning_tools.blender.bodies import read_body, read_skeleton, stretch_of
from skinning_tools.blender.bone_weights import read_bone_weights, write_bone_weights
from skinning_tools.blender.vertex_groups import read_weights
from skinning_tools.core.deform.influences import weight_matrix
from tests.blender import refusals, scenes, skinned_meshes


@pytest.fixture
def tube():
    return skinned_meshes.rigged_tube()


def stored(object, name: str) -> np.ndarray:
    _, weights = read_weights(object, [name])
    return weights.sum(axis=1)


def test_skin_and_bones_are_where_the_world_has_them(tube):
    ob, rig = tube
    ob.scale = (1.2, -0.5, 3.0)
    bpy.context.view_layer.update()
    body, skeleton = read_body(ob), read_skeleton(ob, rig)
    world = np.array(ob.matrix_world)
    vertices = np.array([world @ [*vertex.co, 1] for vertex in ob.data.vertices])[:, :3]
    rig_world = np.array(rig.matrix_world)
    heads = np.array([rig_world @ [*bone.head_local, 1] for bone in rig.data.bones])[:, :3]
    expected = np.linalg.norm(vertices[:, None] - heads, axis=-1)
    # The space has a rotation, a mirror and an origin of its own; distances are those of the world.
    assert np.allclose(np.linalg.norm(body.rest[:, None] - skeleton.heads, axis=-1), expected, atol=1e-5)
    assert np.allclose(skeleton.lengths, np.linalg.norm(rig_world[:3, :3], axis=0)[0], atol=1e-6)


def test_quads_can_be_cut_the_other_way_where_they_are_convex():
    scenes.empty_scene()
    points = [(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0), (5, 1, 0), (3, 1, 0), (1, 5, 0), (0.5, 3.5, 0), (4, 0, 0)]
    # Convex, with a corner inward, with a straight corner, and a triangle.
    faces = [(0, 1, 2, 3), (1, 4, 2, 5), (2, 6, 7, 3), (1, 8, 4)]
    ob = scenes.mesh_object(points, faces)
    body = read_body(ob)

    def cuts(triangles):
        return sorted(tuple(np.roll(t, -np.argmin(t)).tolist()) for t in triangles if set(t) <= {0, 1, 2, 3})

    both = [[(0, 1, 2), (0, 2, 3)], [(0, 1, 3), (1, 2, 3)]]
    assert sorted([cuts(body.triangles), cuts(body.others)]) == both
    rest = ~np.isin(body.triangles, [0, 1, 2, 3]).all(axis=1)
    assert rest.sum() == 5
    assert np.array_equal(body.others[rest], body.triangles[rest])


def test_an_even_scale_keeps_a_symmetric_mesh_symmetric_to_the_last_bit(tube):
    ob, _ = tube
    ob.matrix_world = Matrix.Rotation(0.7, 4, (1, 2, 3)) @ Matrix.Diagonal((3, 3, 3, 1))
    stretch = stretch_of(ob)
    assert np.array_equal(stretch, np.diag(np.diag(stretch)))
    assert len(set(np.diag(stretch))) == 1


def test_the_pose_does_not_count(tube):
    ob, rig = tube
    before = read_skeleton(ob, rig)
    bpy.context.scene.frame_set(8)
    after = read_skeleton(ob, rig)
    assert np.array_equal(before.heads, after.heads)
    assert np.array_equal(before.tails, after.tails)


def test_parents_are_the_nearest_deforming_ancestors(tube):
    ob, rig = tube
    rig.data.bones["Bone 1"].use_deform = rig.data.bones["Bone 2"].use_deform = False
    skeleton = read_skeleton(ob, rig)
    assert skeleton.names == ("Bone 0", "Bone 3", "Bone 4")
    assert skeleton.parents.tolist() == [-1, 0, 1]


def test_an_armature_that_deforms_nothing_is_named(tube):
    ob, rig = tube
    for bone in rig.data.bones:
        bone.use_deform = False
    with refusals.raises_unmet('NO_DEFORMING_BONE "Rig"'):
        read_skeleton(ob, rig)


def test_a_scale_of_zero_is_named(tube):
    ob, _ = tube
    ob.scale = (1, 0, 1)
    bpy.context.view_layer.update()
    with refusals.raises_unmet('NO_SCALE "Arm"'):
        read_body(ob)


def test_writing_what_was_read_changes_nothing_that_deforms(tube):
    ob, rig = tube
    ob.vertex_groups.new(name="mine").add([3], 0.25, "REPLACE")
    before = read_bone_weights(ob, rig)
    write_bone_weights(ob, before, before.bones, before.weights)
    after = read_bone_weights(ob, rig)
    assert np.allclose(after.totals[after.bound], 1, atol=1e-6)
    assert np.array_equal(before.bound, after.bound)
    dense = [weight_matrix(w.bones, w.weights, len(w.names)).toarray() for w in (before, after)]
    assert np.allclose(*dense, atol=1e-6)
    assert stored(ob, "mine")[3] == 0.25


def test_a_locked_group_stays_to_the_last_bit_and_keeps_its_share(tube):
    ob, rig = tube
    ob.vertex_groups["Bone 1"].lock_weight = True
    locked_before = stored(ob, "Bone 1")
    before = read_bone_weights(ob, rig)
    assert before.locked.tolist() == [False, True, False, False, False]
    write_bone_weights(ob, before, before.bones, before.weights)
    after = read_bone_weights(ob, rig)
    assert np.array_equal(stored(ob, "Bone 1"), locked_before)
    share = [np.where(w.bones == 1, w.weights, 0).sum(axis=1) for w in (before, after)]
    assert np.allclose(*share, atol=1e-6)


def test_groups_are_made_only_where_a_bone_needs_one(tube):
    ob, rig = tube
    ob.vertex_groups.remove(ob.vertex_groups["Bone 4"])
    ob.vertex_groups.remove(ob.vertex_groups["Bone 3"])
    before = read_bone_weights(ob, rig)
    bones, weights = before.bones.copy(), before.weights.copy()
    bones[0], weights[0] = 4, [1.0] + [0.0] * (weights.shape[1] - 1)
    write_bone_weights(ob, before, bones, weights)
    assert "Bone 4" in ob.vertex_groups
    assert "Bone 3" not in ob.vertex_groups
    assert stored(ob, "Bone 4")[0] == 1
