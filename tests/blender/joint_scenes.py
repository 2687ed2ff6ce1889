# SPDX-License-Identifier: GPL-3.0-or-later
"""Bars that bend at joints, and their conversions."""

import bpy
import numpy as np

from skinning_tools.blender.skin_reader import rest_positions
from skinning_tools.core.geometry import diagonal, transform_points
from tests.blender import moving_meshes
from tests.blender.partial_scenes import select
from tests.core.skinned_shapes import about, chain_weights, cuboid

FRAMES = range(1, 9)
JOINTS = (0.0, 2.0, 4.0)


def turn_about_joint(bone, frame, joints=JOINTS):
    """(4, 4): of one part of the arm against the part before, about their joint."""
    turn, joint = 0.5 * np.sin(frame * (bone + 1)), [joints[bone], 0, 0]
    step = np.eye(4)
    step[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    step[:3, 3] = joint - step[:3, :3] @ joint
    return step


def bending_bar(joints):
    """A bar of parts that bend against each other in every frame, in the plane of x and y."""
    moving_meshes.fresh_scene()
    rest, triangles = cuboid()
    bones, weights = chain_weights(rest[:, 0], joints[1:], reach=0.1)
    ob = moving_meshes.add_object("Arm", rest, triangles.tolist())
    frames = np.zeros((len(FRAMES), *rest.shape))
    for moved, frame in zip(frames, FRAMES, strict=True):
        place = np.eye(4)
        for bone in range(len(joints)):
            place = place @ turn_about_joint(bone, frame, joints)
            moved += weights[:, bones[0] == bone] * transform_points(rest, place)
    moving_meshes.key_each_frame(ob, frames, FRAMES[0])
    return ob


def turning_bar(name, turns):
    """A bar whose second part has the ``turns`` (F,), a scipy Rotation, about the joint, one a frame."""
    rest, triangles = cuboid()
    weights = chain_weights(rest[:, 0], JOINTS[1:2], reach=0.1)[1]
    turned = [transform_points(rest, about(matrix, (JOINTS[1], 0, 0))) for matrix in turns.as_matrix()]
    ob = moving_meshes.add_object(name, rest, triangles.tolist())
    moving_meshes.key_each_frame(ob, np.array([weights[:, :1] * rest + weights[:, 1:] * each for each in turned]), 1)
    return ob


def convert(ob, **given):
    select(ob)
    assert bpy.ops.skinning.convert_animation(**{"bone_count": 3, **given}) == {"FINISHED"}
    mesh = max((other for other in bpy.data.objects if "_skinned" in other.name), key=lambda other: other.name)
    return mesh, mesh.parent


def size_of(ob):
    return diagonal(rest_positions(ob.data))
