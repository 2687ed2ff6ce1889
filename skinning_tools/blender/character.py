# SPDX-License-Identifier: GPL-3.0-or-later
"""Which skinned mesh and which armature the user means: either may be the active object.

In Pose Mode no mesh can be made active. Where the armature deforms several, a field in the panels tells which one is
meant: ``Scene.skinning_mesh``. It is a name, as a pointer would keep a mesh in the file that the user deletes.
"""

import bpy
from bpy.props import StringProperty

from ..core.errors import BadScene, SkinningError
from .job_checks import active_object
from .look_ups import sharing
from .skin_reader import armature_of, check_skinned, meshes_of
from .wording import names_text


def armature_at(object: bpy.types.Object | None) -> bpy.types.Object | None:
    """The object itself where it is an armature, or the armature that deforms it; None where there is none."""
    if object is None or object.type == "ARMATURE":
        return object
    return armature_of(object) if object.type == "MESH" else None


def character_of(context: bpy.types.Context, object: bpy.types.Object | None) -> bpy.types.Object:
    """The skinned mesh that ``mesh_meant`` finds. Raises BadScene where there is none, or it cannot be read."""
    object = mesh_meant(context, object)
    check_skinned(context, object)
    return object


def mesh_meant(context: bpy.types.Context, object: bpy.types.Object | None) -> bpy.types.Object | None:
    """The mesh that an active armature deforms; any other ``object`` that is active is meant itself, whatever it is.

    Where the armature deforms several: the one that the field in the panels has, then the selected one, the visible
    one, and the one that its EigenSkin examples are of. Cheap enough for a panel. Raises BadScene where there is none,
    or more than one.
    """
    if object is None or object.type != "ARMATURE":
        return object
    chosen = chosen_mesh(context, object)
    if chosen is not None:
        return chosen
    meshes = meshes_of(object, context.view_layer)
    if not meshes:
        raise BadScene(f'The armature "{object.name}" deforms no mesh of the view layer. Bind one to it first')
    selected = [ob for ob in meshes if ob.select_get(view_layer=context.view_layer)]
    known = {item.mesh for item in object.skinning_eigenskin.examples}
    visible = [ob for ob in selected or meshes if ob.visible_get(view_layer=context.view_layer)]
    for choice in (meshes, selected, visible, [ob for ob in visible or meshes if ob in known]):
        if len(choice) == 1:
            return choice[0]
    raise BadScene(
        f'The armature "{object.name}" deforms several meshes: {names_text(meshes)}. Choose the one that is meant as '
        "Mesh in the panel, or make it active"
    )


def chosen_mesh(context: bpy.types.Context, armature: bpy.types.Object) -> bpy.types.Object | None:
    """The mesh that the field in the panels has, where the armature deforms it in this view layer; else None."""
    name = context.scene.skinning_mesh
    if not name:
        return None
    return next((ob for ob in meshes_of(armature, context.view_layer) if ob.name_full == name), None)


def on_mesh_meant(function):
    """``function``, which takes context, object and settings, of the mesh that is meant where an armature is active."""
    return lambda context, object, **settings: function(context, mesh_meant(context, object), **settings)


def target_mesh(context: bpy.types.Context) -> bpy.types.Object | None:
    """``mesh_meant`` for the active object; None where that cannot be told."""
    try:
        return mesh_meant(context, active_object(context))
    except SkinningError:
        return None


def _names_to_choose(_, context, _text) -> list[str]:
    """What the field offers. Of objects of one name from several files, their full names differ."""
    armature = armature_at(context.view_layer.objects.active)
    with sharing():
        return [ob.name_full for ob in meshes_of(armature, context.view_layer)] if armature is not None else []


def register() -> None:
    bpy.types.Scene.skinning_mesh = StringProperty(
        name="Mesh",
        description="The mesh to work on while its armature is active, as in Pose Mode. Empty chooses it: the only one "
        "that the armature deforms, or the selected or visible one",
        search=_names_to_choose,
        search_options={"SORT"},
    )


def unregister() -> None:
    del bpy.types.Scene.skinning_mesh
