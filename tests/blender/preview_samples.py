# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples for the tests of the preview."""

import bpy
import numpy as np

from skinning_tools.blender.center_records import BakeRecord
from skinning_tools.blender.skin_reader import read_skin
from skinning_tools.features.centers.baking import write_centers
from tests.blender import skinned_meshes


def posed_tube() -> bpy.types.Object:
    """A rigged mesh in mid-animation, with centers of rotation."""
    ob, _ = skinned_meshes.rigged_tube()
    add_centers(ob)
    bpy.context.scene.frame_set(4)
    return ob


def add_centers(ob, seed=3) -> None:
    """Artificial centers, anywhere near their vertices."""
    random = np.random.default_rng(seed)
    skin = read_skin(bpy.context, ob)
    valid = np.count_nonzero(skin.weights, axis=1) > 1
    centers = np.where(valid[:, None], skin.rest + 0.2 * random.normal(size=skin.rest.shape), skin.rest)
    write_centers(ob, centers, valid, BakeRecord("rotation_center", 0.1, 0.1, False, int(valid.sum()), "of a test"))
