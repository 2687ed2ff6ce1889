# SPDX-License-Identifier: GPL-3.0-or-later
"""A limb in a pose whose weights are fitted: vertices of its posed copy moved, its weights, and where it is shown."""

from functools import partial

import bpy
import numpy as np

from skinning_tools.blender.vertex_groups import put_weights
from tests.blender import moving_meshes, refusals, scenes
from tests.blender.binding_scenes import dense

NAMES = ["trunk", "upper", "lower"]
# Vertices of the limb's middle, to be moved.
CHOSEN = np.arange(100, 260)


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
    """Convert world points (N, 3) to the object's space."""
    inverse = np.linalg.inv(np.array(copy.matrix_world))
    return points @ inverse[:3, :3].T + inverse[:3, 3]


def move_to(copy, chosen, targets) -> None:
    """Move vertices of a copy to where ``targets`` (N, 3), in the world, have them."""
    place(copy, chosen, local(copy, targets)[chosen])


def raw_weights(ob) -> np.ndarray:
    """(N, P) the stored weights of the limb's bones."""
    return dense(ob, NAMES)


def memberships(ob) -> list[list[tuple[int, float]]]:
    """The groups of each vertex in their order, with the weights."""
    return [[(each.group, each.weight) for each in vertex.groups] for vertex in ob.data.vertices]


def with_other_weights(ob, chosen, seed=0) -> np.ndarray:
    """World positions (N, 3) of the limb with random weights at ``chosen``, which are then taken back."""
    kept = raw_weights(ob)
    bones, weights = np.tile(np.arange(3), (len(kept), 1)), kept.copy()
    weights[chosen] = np.random.default_rng(seed).dirichlet(np.ones(3), len(chosen))
    put_weights(ob, NAMES, bones, weights)
    bpy.context.view_layer.update()
    result = scenes.world_positions(ob)
    put_weights(ob, NAMES, bones, kept)
    bpy.context.view_layer.update()
    return result


def state() -> tuple:
    """All data that an operator must not change when it refuses its input."""
    weights = [raw_weights(ob).tolist() for ob in bpy.data.objects if ob.type == "MESH"]
    # Without it deleted objects are still listed, as None.
    bpy.context.view_layer.update()
    hidden = [ob.hide_get() for ob in bpy.context.view_layer.objects]
    attributes = [[a.name for a in mesh.attributes] for mesh in bpy.data.meshes]
    return moving_meshes.state(), weights, hidden, attributes


refused = partial(refusals.refused, state=state)
