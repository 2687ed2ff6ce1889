# SPDX-License-Identifier: GPL-3.0-or-later
"""Blender's own Data Transfer of vertex groups, nearest face interpolated."""

import bpy
import numpy as np
from human_rig import HumanArrays  # in demos
from scipy import sparse

from skinning_tools.blender.vertex_groups import read_weights, write_weights
from skinning_tools.core.deform.influences import weight_matrix
from tests.blender import scenes


def data_transfer(human: HumanArrays, rest: np.ndarray, triangles: np.ndarray) -> sparse.csr_matrix:
    """(N, P) the weights that a mesh gets from the human, rows that sum to 1, as its Armature modifier takes them."""
    scenes.empty_scene()
    source = scenes.mesh_object(human.rest, human.quads.tolist(), name="Human")
    write_weights(source, human.names, human.bones, human.weights)
    target = scenes.mesh_object(rest, triangles.tolist(), name="Garment")
    bpy.context.view_layer.update()
    for ob in (source, target):
        ob.select_set(True)
    bpy.context.view_layer.objects.active = source
    bpy.ops.object.data_transfer(
        data_type="VGROUP_WEIGHTS",
        vert_mapping="POLYINTERP_NEAREST",
        layers_select_src="ALL",
        layers_select_dst="NAME",
    )
    weights = weight_matrix(*read_weights(target, human.names), len(human.names)).toarray()
    sums = weights.sum(axis=1, keepdims=True)
    return sparse.csr_matrix(np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0))
