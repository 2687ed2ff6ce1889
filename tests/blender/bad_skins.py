# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenes in which no armature deforms a mesh properly: ways to break the skinned tube, and the expected messages."""

import bpy


def remove_armature(ob, rig):
    ob.modifiers.clear()


def remove_groups(ob, rig):
    ob.vertex_groups.clear()


def rename_groups(ob, rig):
    for group in ob.vertex_groups:
        group.name = f"{group.name} of another rig"


def forbid_deforming(ob, rig):
    for bone in rig.data.bones:
        bone.use_deform = False


def scale_unevenly(ob, rig):
    rig.scale = (1, 2, 1)


def scale_the_mesh_unevenly(ob, rig):
    ob.scale = (1, 2, 1)


def scale_to_nothing(ob, rig):
    rig.scale = (0, 0, 0)


def enter_edit_mode(ob, rig):
    bpy.ops.object.mode_set(mode="EDIT")


def edit_the_armature(ob, rig):
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")


def hide(ob, rig):
    ob.hide_set(True)


def ignore_groups(ob, rig):
    ob.modifiers[0].use_vertex_groups = False


def limit_to_a_group(ob, rig):
    ob.modifiers[0].vertex_group = "Bone 1"


def add_a_second_armature(ob, rig):
    ob.modifiers.new("Second", "ARMATURE").object = rig


def parent_as_well(ob, rig):
    ob.parent, ob.parent_type = rig, "ARMATURE"


def remove_vertices(ob, rig):
    ob.data.clear_geometry()


# What is wrong with the scene, and parts of the message.
BAD_SCENES = [
    (remove_armature, ['NOT_SKINNED "Arm"']),
    (remove_groups, ['NO_VERTEX_GROUPS "Arm"']),
    (rename_groups, ['NO_GROUP_OF_A_BONE object "Arm"', '"Rig"']),
    (forbid_deforming, ['"Arm"', "Deform"]),
    (enter_edit_mode, ['MODE "Arm" … Edit Mode']),
    (edit_the_armature, ['ARMATURE_IN_EDIT_MODE "Rig"']),
    (hide, ['HIDDEN "Arm"']),
    (ignore_groups, ['"Armature"', "vertex groups"]),
    (limit_to_a_group, ['"Armature"', '"Arm"', 'only deforms its vertex group "Bone 1"']),
    (add_a_second_armature, ['DEFORMED_TWICE "Arm" … "Armature" … "Second"']),
    (parent_as_well, ['DEFORMED_TWICE "Arm" … "Rig" … "Armature"']),
    (remove_vertices, ['NO_VERTICES "Arm"']),
]


# What only matters to what blends rotations.
UNEVEN_SCENES = [
    (scale_unevenly, ['"Rig"', "UNEVEN_SCALE (1, 2, 1)", "Apply"]),
    (scale_the_mesh_unevenly, ['"Arm"', "UNEVEN_SCALE (1, 2, 1)", "Apply"]),
    (scale_to_nothing, ['"Rig"', "UNEVEN_SCALE (0, 0, 0)"]),
]
