# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the skinned mesh and the armature to work on: either may be the active object.

In Pose Mode no mesh can be made active. If the armature deforms several, the field ``Scene.skinning_mesh`` in the
panels selects one. It is a name, as a pointer would keep a deleted mesh in the file.
"""

from collections.abc import Callable

import bpy
from bpy.props import StringProperty

from ..core.errors import SkinningError
from .control_points import SKIN_TYPES
from .job_checks import active_object
from .look_ups import sharing
from .preconditions import unmet
from .skin_reader import armature_of, check_skinned, meshes_of
from .wording import names_text


def armature_at(ob: bpy.types.Object | None) -> bpy.types.Object | None:
    """The object itself if it is an armature, or the armature that deforms it; None if there is none."""
    if ob is None or ob.type == "ARMATURE":
        return ob
    return armature_of(ob) if ob.type in SKIN_TYPES else None


def character_of(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object:
    """The skinned mesh that ``mesh_meant`` finds. Raises BadScene if there is none, or it cannot be read."""
    mesh_object = mesh_meant(context, active)
    check_skinned(context, mesh_object)
    return mesh_object


def mesh_meant(context: bpy.types.Context, active: bpy.types.Object | None) -> bpy.types.Object | None:
    """The mesh that an active armature deforms; any other active object is returned itself.

    If the armature deforms several: the mesh named in the panels' field, else the selected one, the visible one, or the
    one with the EigenSkin examples. Cheap enough for a panel. Raises BadScene if none or several remain.
    """
    if active is None or active.type != "ARMATURE":
        return active
    chosen = chosen_mesh(context, active)
    if chosen is not None:
        return chosen
    meshes = meshes_of(active, context.view_layer)
    if not meshes:
        raise unmet("NO_DEFORMED_MESH", armature=active, remedy="Bind one first")
    selected = [ob for ob in meshes if ob.select_get(view_layer=context.view_layer)]
    known = {item.mesh for item in active.skinning_eigenskin.examples}
    visible = [ob for ob in selected or meshes if ob.visible_get(view_layer=context.view_layer)]
    for choice in (meshes, selected, visible, [ob for ob in visible or meshes if ob in known]):
        if len(choice) == 1:
            return choice[0]
    raise unmet("SEVERAL_MESHES", armature=active, names=names_text(meshes))


def chosen_mesh(context: bpy.types.Context, armature: bpy.types.Object) -> bpy.types.Object | None:
    """The mesh named in the panels' field if the armature deforms it in this view layer; else None."""
    name = context.scene.skinning_mesh
    if not name:
        return None
    return next((ob for ob in meshes_of(armature, context.view_layer) if ob.name_full == name), None)


def on_mesh_meant(function: Callable) -> Callable:
    """``function``, which takes context, object and settings, called with ``mesh_meant`` in place of an active
    armature."""
    return lambda context, active, **settings: function(context, mesh_meant(context, active), **settings)


def meshes_meant(context: bpy.types.Context, active: bpy.types.Object | None) -> list[bpy.types.Object]:
    """The meshes of one character that a tool works on as one body, the one whose space counts first.

    With a selected mesh active in Object Mode: it, and the other selected ones that its armature deforms. With an
    armature active: the mesh named in the panels' field if there is one, else the selected ones that it deforms, else
    the visible ones. Otherwise the one mesh that ``mesh_meant`` finds. Of objects that share a mesh, the first. Cheap
    enough for a panel. Raises BadScene like ``mesh_meant`` if there is none.
    """
    view_layer = context.view_layer
    if active is not None and active.type == "ARMATURE" and chosen_mesh(context, active) is None:
        meshes = meshes_of(active, view_layer)
        found = [ob for ob in meshes if ob.select_get(view_layer=view_layer)]
        found = found or [ob for ob in meshes if ob.visible_get(view_layer=view_layer)]
        if not found:
            return [mesh_meant(context, active)]  # type: ignore[list-item]
    else:
        first = mesh_meant(context, active)
        if first is None or first.type != "MESH":
            return [first]  # type: ignore[list-item] # for the check on its type
        found = [first, *_selected_beside(view_layer, first)]
    return list({ob.data: ob for ob in reversed(found)}.values())[::-1]


def _selected_beside(view_layer: bpy.types.ViewLayer, first: bpy.types.Object) -> list[bpy.types.Object]:
    """The other selected meshes of the armature of ``first``, if that is selected itself, and active in Object Mode."""
    # Where a caller names another mesh as the active one, the selection does not belong to it.
    chosen = first == view_layer.objects.active and first.select_get(view_layer=view_layer)
    armature = armature_of(first) if chosen and first.mode == "OBJECT" else None
    others = meshes_of(armature, view_layer) if armature is not None else []
    return [ob for ob in others if ob != first and ob.select_get(view_layer=view_layer)]


def on_meshes_meant(function: Callable) -> Callable:
    """``function``, which takes context, objects and settings, called with ``meshes_meant``."""
    return lambda context, active, **settings: function(context, meshes_meant(context, active), **settings)


def check_one_character(meshes: list[bpy.types.Object]) -> None:
    """Raises BadScene unless the same armature deforms all the mesh objects, none of which shares its mesh with
    another."""
    users: dict = {}
    for ob in meshes:
        other = users.setdefault(ob.data, ob)
        if other != ob:
            raise unmet("MESH_SHARED", object=ob, other=other, meaning="which is chosen, too")
        armature, common = armature_of(ob), armature_of(meshes[0])
        if armature != common:
            raise unmet("OTHER_ARMATURE", object=ob, other=meshes[0], armature=common)


def target_mesh(context: bpy.types.Context, kinds: tuple[str, ...] = ("MESH",)) -> bpy.types.Object | None:
    """The mesh that ``mesh_meant`` finds for the active object; None if there is none, or several.

    kinds: SKIN_TYPES for panels that show lattices as well.
    """
    try:
        found = mesh_meant(context, active_object(context))
    except SkinningError:
        return None
    return found if found is not None and found.type in kinds else None


def _names_to_choose(_: bpy.types.Scene, context: bpy.types.Context, _text: str) -> list[str]:
    """The names that the field offers: full names, which differ for objects of one name from several files."""
    armature = armature_at(context.view_layer.objects.active)
    with sharing():
        return [ob.name_full for ob in meshes_of(armature, context.view_layer)] if armature is not None else []


def register() -> None:
    bpy.types.Scene.skinning_mesh = StringProperty(
        name="Mesh",
        description="The mesh to work on while its armature is active, as in Pose Mode. If empty: the only mesh "
        "that the armature deforms, or the selected or visible one",
        search=_names_to_choose,
        search_options={"SORT"},
    )


def unregister() -> None:
    del bpy.types.Scene.skinning_mesh
