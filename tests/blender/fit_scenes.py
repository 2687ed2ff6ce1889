# SPDX-License-Identifier: GPL-3.0-or-later
"""A limb in a pose whose weights are fitted: vertices of its posed copy moved, its weights, and where it is shown."""

from functools import partial

import bpy
import numpy as np

from skinning_tools.scene.bone_weights import read_bone_weights
from skinning_tools.scene.vertex_groups import put_weights, read_weights
from tests.blender import moving_meshes, refusals, scenes

NAMES = ["trunk", "upper", "lower"]


def start():
    assert bpy.ops.skinning.start_weight_fit() == {"FINISHED"}
    return bpy.context.view_layer.objects.active


def fit(**given):
    assert bpy.ops.skinning.fit_weights_to_pose(**given) == {"FINISHED"}


def positions(mesh) -> np.ndarray:
    return np.array([vertex.co for vertex in mesh.vertices])


def place(copy, chosen, points) -> None:
    """Move vertices of a mesh object, by index, to points of its space."""
    for vertex, point in zip(chosen, points, strict=True):
        copy.data.vertices[int(vertex)].co = point
    copy.data.update()


def local(copy, points: np.ndarray) -> np.ndarray:
    """World points (N, 3) in the object's space."""
    inverse = np.linalg.inv(np.array(copy.matrix_world))
    return points @ inverse[:3, :3].T + inverse[:3, 3]


def move_to(copy, chosen, targets) -> None:
    """Move vertices of a copy to where ``targets`` (N, 3), in the world, have them."""
    place(copy, chosen, local(copy, targets)[chosen])


def raw_weights(ob) -> np.ndarray:
    """(N, P) as stored, of the limb's bones."""
    bones, weights = read_weights(ob, NAMES)
    result = np.zeros((len(bones), len(NAMES)))
    np.add.at(result, (np.arange(len(bones))[:, None], bones), weights)
    return result


def world(ob) -> np.ndarray:
    """(N, 3) where the viewport has the vertices."""
    evaluated = ob.evaluated_get(bpy.context.evaluated_depsgraph_get())
    points = scenes.evaluated_positions(ob)
    matrix = np.array(evaluated.matrix_world)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def with_other_weights(ob, chosen, seed=0) -> np.ndarray:
    """World positions (N, 3) of the limb with random weights at ``chosen``, which are then taken back."""
    before = read_bone_weights(ob, bpy.data.objects["Limb rig"])
    random = np.random.default_rng(seed)
    bones, weights = np.tile(np.arange(3), (len(before.bones), 1)), raw_weights(ob)
    kept = weights.copy()
    weights[chosen] = random.dirichlet(np.ones(3), len(chosen))
    put_weights(ob, NAMES, bones, weights)
    bpy.context.view_layer.update()
    result = world(ob)
    put_weights(ob, NAMES, bones, kept)
    bpy.context.view_layer.update()
    return result


def state() -> tuple:
    """All that a refused operator must leave as it was."""
    weights = [raw_weights(ob).tolist() for ob in bpy.data.objects if ob.type == "MESH"]
    # Without it deleted objects are still listed, as None.
    bpy.context.view_layer.update()
    hidden = [ob.hide_get() for ob in bpy.context.view_layer.objects]
    attributes = [[a.name for a in mesh.attributes] for mesh in bpy.data.meshes]
    return moving_meshes.state(), weights, hidden, attributes


refused = partial(refusals.refused, state=state)


CHOSEN = np.arange(100, 260)


def select_bones(rig, *names) -> None:
    for bone in rig.pose.bones:
        # Selection moved from bones to pose bones in Blender 5.0.
        (bone if hasattr(bone, "select") else bone.bone).select = bone.name in names
