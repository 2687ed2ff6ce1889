# SPDX-License-Identifier: GPL-3.0-or-later
"""One shape of a mesh: from a shape key, or from Blender's evaluation."""

import bpy
import numpy as np

from ..core.animation import check_finite
from ..core.errors import BadScene
from ..core.geometry import transform_points
from .attributes import read_attribute
from .object_checks import visible_modifiers
from .preconditions import object_label, unmet
from .skin_reader import Skin
from .vertex_groups import read_weights

# Modifiers that make, remove or merge vertices.
_TOPOLOGY_MODIFIERS = {
    "ARRAY", "BEVEL", "BOOLEAN", "BUILD", "DECIMATE", "EDGE_SPLIT", "EXPLODE", "FLUID", "MASK", "MESH_SEQUENCE_CACHE",
    "MIRROR", "MULTIRES", "NODES", "OCEAN", "PARTICLE_INSTANCE", "REMESH", "SCREW", "SKIN", "SOLIDIFY", "SUBSURF",
    "TRIANGULATE", "VOLUME_TO_MESH", "WELD", "WIREFRAME",
}  # fmt: skip


def shape_key_block(mesh_object: bpy.types.Object, name: str) -> bpy.types.ShapeKey:
    """The shape key ``name``, the active one if that is empty. Raises BadScene if there is none, or it is the first."""
    keys = mesh_object.data.shape_keys
    block = None
    if keys is not None:
        block = keys.key_blocks.get(name) if name else mesh_object.active_shape_key
    if block is None or block == keys.reference_key:
        which = f'no shape key "{name}"' if name else "no active shape key"
        raise BadScene(
            f"The {object_label(mesh_object)} has {which} besides the first. Choose one that holds the correct shape"
        )
    return block


def key_displacements(mesh_object: bpy.types.Object, block: bpy.types.ShapeKey) -> np.ndarray:
    """(N, 3) float64: the offsets of a shape key at value 1, limited by its vertex group."""
    shaped, relative = (np.empty((len(block.points), 3), np.float32) for _ in range(2))
    block.points.foreach_get("co", shaped.ravel())
    block.relative_key.points.foreach_get("co", relative.ravel())
    displacements = shaped.astype(np.float64) - relative
    if block.vertex_group in mesh_object.vertex_groups:
        displacements *= read_weights(mesh_object, [block.vertex_group])[1].sum(axis=1)[:, None]
    return displacements


def evaluated_shape(skin: Skin, source: bpy.types.Object, depsgraph: bpy.types.Depsgraph, frame: int) -> np.ndarray:
    """(N, 3) float32: ``source`` as evaluated in the world, in the space of the skin's object.

    frame: the current one, for messages. Raises BadMesh if its vertex count differs from the skin's, BadAnimation if a
    position is not a number.
    """
    evaluated = source.evaluated_get(depsgraph)
    if len(evaluated.data.vertices) != len(skin.rest):
        raise unmet(
            "OTHER_VERTEX_COUNT",
            other=f"evaluated {'shape' if source == skin.object else object_label(source)} at frame {frame}",
            count=len(evaluated.data.vertices),
            object=f"the mesh of {skin.label}",
            expected=len(skin.rest),
            remedy=_remedy(skin, source),
        )
    positions = read_attribute(evaluated.data, "position")
    check_finite(positions, str(frame), object_label(source))
    if source == skin.object:
        return positions
    own = np.array(skin.object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
    to_skin = np.linalg.solve(own, np.array(evaluated.matrix_world, dtype=np.float64))
    return transform_points(positions, to_skin).astype(np.float32)


def _remedy(skin: Skin, source: bpy.types.Object) -> str:
    """What to do where the evaluated ``source`` has not the skin's vertices."""
    culprits = [modifier for modifier in visible_modifiers(source) if modifier.type in _TOPOLOGY_MODIFIERS]
    if culprits and len(source.data.vertices) in (len(skin.rest), 0):
        kinds = bpy.types.Modifier.bl_rna.properties["type"].enum_items
        names = ", ".join(f'"{modifier.name}" ({kinds[modifier.type].name})' for modifier in culprits)
        return f"Meanwhile, disable the modifiers that add or remove vertices in the viewport: {names}"
    return f"Select a mesh with the same vertices, or only {skin.label} to take its own shape"
