# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds helper bones to a rig and removes them, and reads all data that must be the same afterwards."""

import bpy
import numpy as np

from skinning_tools.blender.helper_bones.records import SOLVED, find_helpers
from skinning_tools.blender.vertex_groups import read_columns
from tests.blender import refusals, scenes
from tests.blender.partial_scenes import BONES, FRAMES, keys_of, moving_copy, select, tube, weights_of

# Weights are stored in single precision: weights that are scaled and scaled back differ by a few of its steps.
ROUNDING = 5e-7


def jiggling_rig():
    """The tube with its moving rig, and a target whose flesh also jiggles. Rows of weights sum to 1."""
    ob, armature = tube()
    for name, column in zip(BONES, weights_of(ob, armature).T.astype(np.float32), strict=True):
        for index in np.flatnonzero(column):
            ob.vertex_groups[name].add([int(index)], float(column[index]), "REPLACE")
    rest = np.array([vertex.co for vertex in ob.data.vertices])
    wanted = scenes.played(ob, FRAMES)
    for row, shape in enumerate(wanted):
        near = np.exp(-((rest[:, 0] - 1.6) ** 2) / 0.2)
        shape[:, 2] += (0.25 * np.sin(0.9 * row) * near).astype(np.float32)
    target = moving_copy(ob, wanted)
    select(target, ob)
    return ob, armature, target, wanted


def add(**given):
    assert bpy.ops.skinning.add_helper_bones(**{"bone_count": 2, **given}) == {"FINISHED"}


def remove(**given):
    assert bpy.ops.skinning.remove_helper_bones(**given) == {"FINISHED"}


def added_helpers(armature) -> list[str]:
    """The bones of solves that deform."""
    return [name for helper in find_helpers(armature, (SOLVED,)) for name in helper.skin]


def stored(ob, names=BONES) -> np.ndarray:
    """(G, N) the weights of the vertex groups."""
    return np.maximum(read_columns(ob, names), 0.0)


def structure(armature) -> dict[str, tuple]:
    return {
        bone.name: (
            np.array(bone.matrix_local).tobytes(),
            tuple(bone.head_local),
            tuple(bone.tail_local),
            bone.parent and bone.parent.name,
            bone.use_connect,
            [collection.name for collection in bone.collections],
        )
        for bone in armature.data.bones
    }


def state(ob, armature) -> tuple:
    """All data that an operator must not change when it refuses its input."""
    groups = [(group.name, group.lock_weight) for group in ob.vertex_groups]
    keys = {key: values.tobytes() for key, values in keys_of(armature.animation_data.action).items()}
    names = [group.name for group in ob.vertex_groups]
    return structure(armature), groups, keys, read_columns(ob, names).tobytes(), scenes.ui_state()


def refused(ob, rig, *parts, **given) -> None:
    refusals.refused("remove_helper_bones", *parts, state=lambda: state(ob, rig), **given)
