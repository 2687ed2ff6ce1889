# SPDX-License-Identifier: GPL-3.0-or-later
"""A skinned mesh as arrays deforms as with Blender's own Armature modifier; meshes that are not skinned are refused."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.skin_reader import (
    armature_of,
    bone_matrices,
    check_skinned,
    check_turning,
    read_skin,
    uses_envelopes,
)
from skinning_tools.core.errors import BadScene
from tests.blender import refusals, scenes
from tests.blender.bad_skins import (
    BAD_SCENES,
    UNEVEN_SCENES,
    add_a_second_armature,
    limit_to_a_group,
    parent_as_well,
)
from tests.blender.skinned_meshes import diagonal, expected, rigged_tube


@pytest.mark.parametrize("frame", [1, 4, 6])
def test_linear_blending_is_blenders(frame):
    ob, rig = rigged_tube()
    # Where the mesh is scaled unevenly, the matrices in its space shear; the armature's rule stays the same.
    ob.scale = (0.7, 1.3, 1.0)
    rig.scale = (1.5, 1.5, 1.5)
    bpy.context.scene.frame_set(frame)
    difference = scenes.evaluated_positions(ob) - expected(ob, "LBS")
    assert np.abs(difference).max() < 1e-6 * diagonal(ob)


def test_linear_blending_in_rest_position():
    ob, rig = rigged_tube()
    bpy.context.scene.frame_set(4)
    rig.data.pose_position = "REST"
    bpy.context.view_layer.update()
    assert np.abs(expected(ob, "LBS") - read_skin(bpy.context, ob).rest).max() < 1e-6 * diagonal(ob)


def test_names_and_weights():
    ob, rig = rigged_tube(bone_count=4)
    ob.vertex_groups.new(name="Pinned").add([0, 1], 1.0, "REPLACE")
    rig.data.bones["Bone 1"].use_deform = False
    skin = read_skin(bpy.context, ob)
    assert skin.bone_names == ("Bone 0", "Bone 2", "Bone 3")
    assert skin.armature == rig
    sums = skin.weights.sum(axis=1)
    still = sums == 0
    assert still[-16:].all()
    assert np.abs(sums[~still] - 1).max() < 1e-12
    deforming = {ob.vertex_groups[name].index: name for name in skin.bone_names}
    painted = {deforming[g.group]: g.weight for g in ob.data.vertices[240].groups if g.group in deforming}
    given = {skin.bone_names[b]: w for b, w in zip(skin.bones[240], skin.weights[240], strict=True) if w > 0}
    total = sum(painted.values())
    assert len(painted) == 2
    assert given == pytest.approx({name: weight / total for name, weight in painted.items()})


# Weights of single vertices, by group; "Held" is of no bone, and "Bone 4" does not deform.
ROWS = [
    {"Bone 1": 0.2, "Bone 2": 0.1},
    {"Bone 1": 1.0, "Bone 2": 1.0, "Bone 3": 0.5},
    {"Bone 1": 0.7},
    {"Bone 1": 5e-5, "Bone 2": 4e-5},
    {"Bone 1": 8e-5, "Bone 2": 4e-5},
    {"Bone 3": 1e-5},
    {},
    {"Held": 1.0},
    {"Held": 1.0, "Bone 2": 0.3, "Bone 3": 0.1},
    {"Bone 4": 1.0},
    {"Bone 4": 0.9, "Bone 0": 0.05},
    {"Bone 2": 0.0},
    {"Bone 2": 0.0, "Bone 3": 1.1e-4},
]


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("envelopes", [False, True])
def test_rows_of_any_sum_are_blenders(locked, envelopes):
    ob, rig = rigged_tube()
    rig.data.bones["Bone 4"].use_deform = False
    ob.vertex_groups.new(name="Held")
    vertices = range(200, 200 + len(ROWS))
    for vertex, row in zip(vertices, ROWS, strict=True):
        for group in ob.vertex_groups:
            group.remove([vertex])
        for name, weight in row.items():
            ob.vertex_groups[name].add([vertex], weight, "REPLACE")
    for group in ob.vertex_groups:
        group.lock_weight = locked
    ob.modifiers[0].use_bone_envelopes = envelopes
    assert uses_envelopes(ob) == envelopes
    bpy.context.scene.frame_set(4)
    off = np.abs(scenes.evaluated_positions(ob) - expected(ob, "LBS")).max(axis=1) / diagonal(ob)
    moved = [vertex for vertex in vertices if not envelopes or read_skin(bpy.context, ob).weights[vertex].any()]
    assert off[moved].max() < 1e-6


def test_rest_is_the_first_shape_key():
    ob, _ = rigged_tube()
    rest = read_skin(bpy.context, ob).rest
    scenes.shape_keys(ob, count=1)[0].value = 1.0
    ob.active_shape_key_index = 1
    bpy.context.view_layer.update()
    assert np.array_equal(read_skin(bpy.context, ob).rest, rest)


def test_parent_of_type_armature():
    ob, rig = rigged_tube()
    ob.modifiers.clear()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    bpy.context.scene.frame_set(4)
    assert armature_of(ob) == rig
    assert np.abs(scenes.evaluated_positions(ob) - expected(ob, "LBS")).max() < 1e-6 * diagonal(ob)


@pytest.mark.parametrize(("spoil", "parts"), BAD_SCENES, ids=[spoil.__name__ for spoil, _ in BAD_SCENES])
def test_bad_scenes(spoil, parts):
    ob, rig = rigged_tube()
    check_skinned(bpy.context, ob)
    spoil(ob, rig)
    bpy.context.view_layer.update()
    with pytest.raises(BadScene) as raised:
        read_skin(bpy.context, ob)
    refusals.assert_says(raised.value, *parts)


def test_no_object_and_no_mesh():
    _, rig = rigged_tube()
    with refusals.raises_unmet("NO_ACTIVE_OBJECT"):
        check_skinned(bpy.context, None)
    with refusals.raises_unmet("NOT_A_MESH Armature"):
        check_skinned(bpy.context, rig)


@pytest.mark.parametrize("spoil", [limit_to_a_group, add_a_second_armature, parent_as_well])
def test_what_is_refused_is_deformed_otherwise(spoil):
    ob, rig = rigged_tube()
    bpy.context.scene.frame_set(4)
    wanted = expected(ob, "LBS")
    spoil(ob, rig)
    bpy.context.view_layer.update()
    assert np.abs(scenes.evaluated_positions(ob) - wanted).max() > 0.01 * diagonal(ob)


def test_a_modifier_that_does_not_deform_is_no_second_armature():
    ob, rig = rigged_tube()
    second = ob.modifiers.new("Second", "ARMATURE")
    second.object, second.show_viewport = rig, False
    ob.modifiers.new("Empty", "ARMATURE")
    ob.modifiers[0].vertex_group = "a group that is not there"
    ob.parent = rig
    bpy.context.scene.frame_set(4)
    assert np.abs(scenes.evaluated_positions(ob) - expected(ob, "LBS")).max() < 1e-6 * diagonal(ob)


def test_an_enabled_armature_modifier_comes_before_a_disabled_one():
    ob, rig = rigged_tube()
    other = rig.copy()
    scenes.link(other)
    ob.modifiers.new("Second", "ARMATURE").object = other
    ob.modifiers["Armature"].show_viewport = False
    assert armature_of(ob) == other


@pytest.mark.parametrize(("spoil", "parts"), UNEVEN_SCENES, ids=[spoil.__name__ for spoil, _ in UNEVEN_SCENES])
def test_uneven_scale_is_refused_where_rotations_are_blended(spoil, parts):
    ob, rig = rigged_tube()
    check_turning(bpy.context, ob)
    spoil(ob, rig)
    bpy.context.view_layer.update()
    assert len(read_skin(bpy.context, ob).rest) == len(ob.data.vertices)
    with pytest.raises(BadScene) as raised:
        check_turning(bpy.context, ob)
    refusals.assert_says(raised.value, *parts)


def test_mirrored_and_turned_objects_are_scaled_evenly():
    ob, rig = rigged_tube()
    ob.scale, rig.scale = (-2, 2, 2), (1.5, 1.5, -1.5)
    bpy.context.view_layer.update()
    check_turning(bpy.context, ob)
    assert np.isfinite(expected(ob, "DQS")).all()


def test_bones_without_usable_transforms_are_named():
    ob, rig = rigged_tube()
    skin = read_skin(bpy.context, ob)
    rig.animation_data_clear()
    rig.pose.bones["Bone 2"].scale = rig.pose.bones["Bone 3"].scale = (1e30, 1e30, 1e30)
    bpy.context.view_layer.update()
    with pytest.raises(BadScene, match='"Bone 3" of "Rig" has a transform that is not a number'):
        bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    rig.pose.bones["Bone 2"].scale = rig.pose.bones["Bone 3"].scale = (1, 1, 1)
    rig.scale = (0, 0, 0)
    bpy.context.view_layer.update()
    with refusals.raises_unmet('NO_SCALE "Arm" or its armature "Rig"'):
        bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
