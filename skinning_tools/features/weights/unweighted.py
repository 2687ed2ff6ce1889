# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the vertices that no bone moves, of one or several meshes, and select them in Edit Mode."""

from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.bodies import deforming_bones
from ...blender.character import chosen_mesh, mesh_meant
from ...blender.control_points import SKIN_TYPES
from ...blender.figures import Figure, each
from ...blender.look_ups import selected_in
from ...blender.preconditions import check_deforming, check_own_mesh, check_type, check_visible, unmet
from ...blender.skin_reader import armature_of, skins_of
from ...blender.vertex_groups import read_weights
from ...blender.weight_tools import edit_vertices, out_of_edit_mode
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene


@dataclass(frozen=True)
class Unweighted:
    """The vertices that no bone moves, (n,) indices by the name of the mesh."""

    vertices: dict[str, np.ndarray]

    @property
    def counts(self) -> dict[str, int]:
        """Their number by the name of the mesh."""
        return {name: len(vertices) for name, vertices in self.vertices.items()}

    def figures(self) -> list[Figure]:
        """The figures for the command line; the JSON report has the indices as well."""
        meshes = {name: {"count": len(each), "indices": each.tolist()} for name, each in self.vertices.items()}
        return [
            Figure("Vertices without weights", sum(self.counts.values())),
            *each("Of {}", meshes, "meshes", "{count}"),
        ]

    def summary(self) -> str:
        """The result in one line."""
        found = {name: count for name, count in self.counts.items() if count}
        where = next(iter(self.counts)) if len(self.counts) == 1 else counted(len(self.counts), "mesh", "meshes")
        if not found:
            return f"{where}: bones move every vertex"
        text = f"{where}: {vertices_text(sum(found.values()))} without weights selected"
        if len(self.counts) == 1:
            return text
        return f"{text} ({', '.join(f'{name} {count:,}' for name, count in found.items())})"


def meshes_to_search(context: bpy.types.Context, active: bpy.types.Object | None) -> list:
    """The meshes to search: an active mesh and the selected meshes that an armature deforms; for an active armature,
    the mesh in the panel's field, else the selected meshes, else all that it deforms. Lattices count as meshes.

    Cheap enough for a panel. Raises BadScene.
    """
    selected = [ob for ob in selected_in(context.view_layer) if ob.type in SKIN_TYPES and armature_of(ob) is not None]
    if active is not None and active.type == "ARMATURE":
        chosen = chosen_mesh(context, active)
        meshes = [chosen] if chosen is not None else [ob for ob in selected if armature_of(ob) == active]
        if not meshes:
            meshes = skins_of(active, context.view_layer)
        meshes = meshes or [mesh_meant(context, active)]
    else:
        own = [active] if active is not None and active.type in SKIN_TYPES and armature_of(active) is not None else []
        meshes = list(dict.fromkeys([*own, *selected])) or [active]
    for ob in meshes:
        _check(context, ob)
    return meshes


def find_unweighted(context: bpy.types.Context, active: bpy.types.Object | None) -> Unweighted:
    """Select the vertices without weights in Edit Mode, of all meshes that have such vertices; else change nothing.

    A vertex counts if the weights of its deforming bones, locked vertex groups included, add up to a sum that Blender
    treats as zero. Raises BadScene.
    """
    meshes = meshes_to_search(context, active)
    found = {ob: _unweighted(ob) for ob in meshes}
    chosen = {ob: vertices for ob, vertices in found.items() if len(vertices)}
    if chosen:
        edit_vertices(context, chosen)
    return Unweighted({ob.name: vertices for ob, vertices in found.items()})


def count_unweighted(context: bpy.types.Context, target: bpy.types.Object) -> Unweighted:
    """The vertices without weights of a mesh object, or of all meshes that an armature deforms. Changes nothing.

    Raises BadScene.
    """
    check_type(target, "Name a mesh, or an armature", (*SKIN_TYPES, "ARMATURE"))
    meshes = [target] if target.type in SKIN_TYPES else skins_of(target, context.view_layer)
    if not meshes:
        raise unmet("NO_DEFORMED_MESH", armature=target, remedy="Name another armature, or a mesh")
    for ob in meshes:
        if armature_of(ob) is None:
            raise unmet("NOT_SKINNED", object=ob)
        check_deforming(armature_of(ob))
    return Unweighted({ob.name: _unweighted(ob) for ob in meshes})


def _check(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    if mesh_object is None or mesh_object.type not in SKIN_TYPES or armature_of(mesh_object) is None:
        raise BadScene("No mesh that an armature deforms is active or selected. Select such meshes, or their armature")
    check_visible(context.scene, context.view_layer, mesh_object)
    check_own_mesh(mesh_object, "its vertices cannot be selected")
    check_deforming(armature_of(mesh_object))


def _unweighted(mesh_object: bpy.types.Object) -> np.ndarray:
    """(n,) indices of the vertices without weights."""
    from ...core.deform.influences import LEAST_TOTAL_WEIGHT

    with out_of_edit_mode(mesh_object):
        _, weights = read_weights(mesh_object, deforming_bones(armature_of(mesh_object)))
    return np.flatnonzero(~(weights.sum(axis=1) > LEAST_TOTAL_WEIGHT))
