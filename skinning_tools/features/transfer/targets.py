# SPDX-License-Identifier: GPL-3.0-or-later
"""The mesh that weights come from, and the meshes that get them."""

from collections.abc import Sequence
from dataclasses import dataclass

import bpy

from ...blender.bodies import stretch_of
from ...blender.character import mesh_meant
from ...blender.look_ups import selected_in
from ...blender.preconditions import check_mode, check_type, find_object, object_label
from ...blender.skin_reader import armature_of, check_skinned
from ...blender.skinnable import check_skinnable
from ...blender.wording import names_text, sentence
from ...core.errors import BadScene


@dataclass(frozen=True, eq=False)
class Targets:
    """source: a skinned mesh object; meshes: those that get its weights, at least one."""

    source: bpy.types.Object
    meshes: tuple[bpy.types.Object, ...]


def check_active(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raise BadScene if no mesh can get weights. Cheap enough for a panel."""
    mesh_object = mesh_meant(context, active)
    check_type(mesh_object, "Select the mesh that should get weights")
    check_mode(mesh_object)


def find_targets(
    context: bpy.types.Context, active: bpy.types.Object | None, source: str = "", mirror: bool = False
) -> Targets:
    """The source by its name, and as targets all other selected meshes, with the active one. Without a name, the other
    one of two selected meshes is the source, or the only one of several that has weights.

    mirror: a mesh may be its own source, and is without another. Cheap enough for a panel. Raises BadScene.
    """
    check_active(context, active)
    own = mesh_meant(context, active)
    selected = [ob for ob in selected_in(context.view_layer) if ob.type == "MESH" and ob != own]
    if source:
        found = find_object(context.scene, source)
    elif mirror and not selected:
        found = own
    elif len(selected) == 1:
        found = selected[0]
        if _is_skinned(context, own) and not _is_skinned(context, found):
            raise BadScene(
                f"{sentence(object_label(found))} has no weights to take. To give it those of {object_label(own)}, "
                "make it the active one"
            )
    elif len(skinned := [ob for ob in selected if _is_skinned(context, ob)]) == 1:
        found = skinned[0]
    elif selected:
        raise BadScene(f"Several meshes could be the source: {names_text(selected)}. Choose one as Source")
    else:
        raise BadScene(f"No mesh to take weights from is chosen for {object_label(own)}. Choose it as Source")
    return targets_of(context, found, [own, *selected], mirror)


def _is_skinned(context: bpy.types.Context, mesh_object: bpy.types.Object) -> bool:
    try:
        check_skinned(context, mesh_object)
    except BadScene:
        return False
    return True


def targets_of(
    context: bpy.types.Context, source: bpy.types.Object, meshes: Sequence[bpy.types.Object], mirror: bool
) -> Targets:
    """``source`` with all others of ``meshes``, or with itself for mirrored weights. Raises BadScene."""
    check_type(source, "Choose a mesh as Source")
    check_skinned(context, source)
    stretch_of(source)
    others = [ob for ob in meshes if ob != source]
    if not others and not mirror:
        raise BadScene(
            f'"{source.name}" is the source itself. Choose the mesh that should get its weights, or Mirror to take '
            "them from the other side"
        )
    check_skinnable(context, others or [source], armature_of(source))
    return Targets(source, tuple(others or [source]))
