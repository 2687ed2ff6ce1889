# SPDX-License-Identifier: GPL-3.0-or-later
"""One shape of a mesh: of a shape key by itself, or as Blender has evaluated it."""

import bpy
import numpy as np

from ..core.animation import check_finite
from ..core.errors import BadMesh, BadScene
from .object_checks import visible_modifiers
from .preconditions import object_label
from .skin_reader import Skin
from .vertex_groups import read_weights

# Modifiers that make, remove or merge vertices.
_TOPOLOGY_MODIFIERS = {
    "ARRAY", "BEVEL", "BOOLEAN", "BUILD", "DECIMATE", "EDGE_SPLIT", "EXPLODE", "FLUID", "MASK", "MESH_SEQUENCE_CACHE",
    "MIRROR", "MULTIRES", "NODES", "OCEAN", "PARTICLE_INSTANCE", "REMESH", "SCREW", "SKIN", "SOLIDIFY", "SUBSURF",
    "TRIANGULATE", "VOLUME_TO_MESH", "WELD", "WIREFRAME",
}  # fmt: skip


def shape_key_block(object: bpy.types.Object, name: str = "") -> bpy.types.ShapeKey:
    """The shape key ``name``, the active one where that is empty. Raises BadScene where it is none beside the first."""
    keys = object.data.shape_keys
    block = None
    if keys is not None:
        block = keys.key_blocks.get(name) if name else object.active_shape_key
    if block is None or block == keys.reference_key:
        which = f'no shape key "{name}"' if name else "no shape key that is active"
        raise BadScene(
            f"The {object_label(object)} has {which} beside the first. Choose one that holds the right shape"
        )
    return block


def key_displacements(object: bpy.types.Object, block: bpy.types.ShapeKey) -> np.ndarray:
    """(N, 3) float64: what a shape key adds at value 1, its vertex group included."""
    shaped, relative = (np.empty((len(block.points), 3), np.float32) for _ in range(2))
    block.points.foreach_get("co", shaped.ravel())
    block.relative_key.points.foreach_get("co", relative.ravel())
    displacements = shaped.astype(np.float64) - relative
    if block.vertex_group in object.vertex_groups:
        displacements *= read_weights(object, [block.vertex_group])[1].sum(axis=1)[:, None]
    return displacements


def evaluated_shape(skin: Skin, source: bpy.types.Object, depsgraph: bpy.types.Depsgraph, frame: int) -> np.ndarray:
    """(N, 3) float32: ``source`` as evaluated, where it is in the world, in the space of the skin's object.

    frame: the current one, for messages. Raises BadMesh where it has not the skin's vertices, BadAnimation where a
    position is no number.
    """
    evaluated = source.evaluated_get(depsgraph)
    if len(evaluated.data.vertices) != len(skin.rest):
        raise BadMesh(_other_count(skin, source, len(evaluated.data.vertices), frame))
    positions = np.empty((len(skin.rest), 3), np.float32)
    evaluated.data.attributes["position"].data.foreach_get("vector", positions.ravel())
    check_finite(positions, str(frame), object_label(source))
    if source == skin.object:
        return positions
    own = np.array(skin.object.evaluated_get(depsgraph).matrix_world, dtype=np.float64)
    to_skin = np.linalg.solve(own, np.array(evaluated.matrix_world, dtype=np.float64))
    return (positions @ to_skin[:3, :3].T + to_skin[:3, 3]).astype(np.float32)


def _other_count(skin: Skin, source, count: int, frame: int) -> str:
    expected = len(skin.rest)
    label = "shape" if source == skin.object else object_label(source)
    text = (
        f"The evaluated {label} has {count:,} vertices at frame {frame}, but the mesh of {skin.label} has "
        f"{expected:,} without its modifiers. "
    )
    culprits = [modifier for modifier in visible_modifiers(source) if modifier.type in _TOPOLOGY_MODIFIERS]
    if culprits and len(source.data.vertices) in (expected, 0):
        kinds = bpy.types.Modifier.bl_rna.properties["type"].enum_items
        names = ", ".join(f'"{modifier.name}" ({kinds[modifier.type].name})' for modifier in culprits)
        return text + f"Disable in the viewport what makes or removes vertices meanwhile: {names}"
    return text + f"Select a mesh with the same vertices, or only {skin.label} to take its own shape"
