# SPDX-License-Identifier: GPL-3.0-or-later
"""Vertices that no bone moves, of one mesh or several: counted, and selected in Edit Mode."""

from dataclasses import dataclass

import numpy as np

from ...blender.bodies import check_deforming, deforming_bones
from ...blender.character import chosen_mesh, mesh_meant
from ...blender.look_ups import selected_in
from ...blender.preconditions import check_own_mesh, check_visible
from ...blender.skin_reader import armature_of, meshes_of
from ...blender.vertex_groups import read_weights
from ...blender.weight_tools import edit_vertices, out_of_edit_mode
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene


@dataclass(frozen=True)
class Unweighted:
    """Of each mesh, by its name, how many of its vertices no bone moves."""

    counts: dict[str, int]

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


def meshes_to_search(context, object) -> list:
    """The meshes that are meant where ``object`` is active: an active mesh and the selected ones that an armature
    deforms; of an active armature the one in the panel's field, else those selected, else all that it deforms.

    Cheap enough for a panel. Raises BadScene.
    """
    selected = [ob for ob in selected_in(context.view_layer) if ob.type == "MESH" and armature_of(ob) is not None]
    if object is not None and object.type == "ARMATURE":
        chosen = chosen_mesh(context, object)
        meshes = [chosen] if chosen is not None else [ob for ob in selected if armature_of(ob) == object]
        if not meshes:
            meshes = meshes_of(object, context.view_layer)
        meshes = meshes or [mesh_meant(context, object)]
    else:
        own = [object] if object is not None and object.type == "MESH" and armature_of(object) is not None else []
        meshes = list(dict.fromkeys([*own, *selected])) or [object]
    for ob in meshes:
        _check(context, ob)
    return meshes


def find_unweighted(context, object) -> Unweighted:
    """Select the vertices without weights in Edit Mode, of all meshes that have some; nothing changes where none has.

    A vertex is one where the weights of the bones that deform add up to what Blender takes as none, in locked vertex
    groups as well. Raises BadScene.
    """
    meshes = meshes_to_search(context, object)
    found = {ob: _unweighted(ob) for ob in meshes}
    chosen = {ob: vertices for ob, vertices in found.items() if len(vertices)}
    if chosen:
        edit_vertices(context, chosen)
    return Unweighted({ob.name: len(vertices) for ob, vertices in found.items()})


def _check(context, object) -> None:
    if object is None or object.type != "MESH" or armature_of(object) is None:
        raise BadScene("No mesh that an armature deforms is active or selected. Select some, or their armature")
    check_visible(context.scene, context.view_layer, object)
    check_own_mesh(object, "its vertices cannot be selected")
    check_deforming(armature_of(object))


def _unweighted(object) -> np.ndarray:
    """(n,) indices."""
    from ...core.deform.influences import LEAST_TOTAL_WEIGHT

    with out_of_edit_mode(object):
        _, weights = read_weights(object, deforming_bones(armature_of(object)))
    return np.flatnonzero(~(weights.sum(axis=1) > LEAST_TOTAL_WEIGHT))
