# SPDX-License-Identifier: GPL-3.0-or-later
"""Which skinned mesh and which armature the user means: either may be the active object."""

import bpy

from ..core.errors import BadScene, SkinningError
from .job_checks import active_object
from .skin_reader import armature_of, check_skinned, meshes_of
from .wording import names_text


def armature_at(object):
    """The object itself where it is an armature, or the armature that deforms it; None where there is none."""
    if object is None or object.type == "ARMATURE":
        return object
    return armature_of(object) if object.type == "MESH" else None


def character_of(context, object) -> bpy.types.Object:
    """The skinned mesh that is meant where ``object`` is active: itself, or what an active armature deforms.

    Where an armature deforms several, the selected one, then the one that its EigenSkin examples are of. Cheap enough
    for a panel. Raises BadScene where there is none, or more than one.
    """
    if object is None or object.type != "ARMATURE":
        check_skinned(context, object)
        return object
    meshes = meshes_of(object, context.view_layer)
    if not meshes:
        raise BadScene(f'The armature "{object.name}" deforms no mesh of the view layer. Bind one to it first')
    selected = [ob for ob in meshes if ob.select_get(view_layer=context.view_layer)]
    known = {item.mesh for item in object.skinning_eigenskin.examples}
    for choice in (meshes, selected, [ob for ob in selected or meshes if ob in known]):
        if len(choice) == 1:
            check_skinned(context, choice[0])
            return choice[0]
    raise BadScene(
        f'The armature "{object.name}" deforms several meshes: {names_text(meshes)}. Make the one that is meant active'
    )


def target_mesh(context):
    """The mesh that the user means: the active object, or the mesh that an active armature deforms; None where that
    cannot be told."""
    object = active_object(context)
    if object is None or object.type != "ARMATURE":
        return object
    try:
        return character_of(context, object)
    except SkinningError:
        return None
