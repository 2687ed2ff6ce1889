# SPDX-License-Identifier: GPL-3.0-or-later
"""The meshes to bind and their armature, and the checks on them."""

from dataclasses import dataclass

import bpy

from ...blender import look_ups
from ...blender.job_checks import active_object
from ...blender.preconditions import (
    check_mode,
    check_type,
    find_object,
    object_label,
    unmet,
)
from ...blender.skin_reader import armature_of, meshes_of
from ...blender.wording import MOST_NAMED, names_text
from ...core.errors import BadScene
from .volumes import is_volume, meshes_of_volume, volume_armature


@dataclass(frozen=True, eq=False)
class Targets:
    """meshes: objects, at least one; armature: the object to bind them to."""

    meshes: tuple[bpy.types.Object, ...]
    armature: bpy.types.Object


def check_active(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raise BadScene if there is nothing to bind for the active object. Cheap enough for a panel."""
    check_type(active, "Select the mesh to bind, or its armature together with the meshes", ("MESH", "ARMATURE"))
    assert active is not None
    if active.type == "MESH":
        check_mode(active)


def find_targets(context: bpy.types.Context, armature_name: str = "", as_objects: bool = False) -> Targets:
    """The targets by name and selection. Cheap enough for a panel.

    The armature: by name; else the active object, if it is one; else the armature of the active mesh; else the selected
    one; else the only one in the view layer. The meshes: the active one or, if an armature is active, all selected
    ones, or without a selection those that it deforms. as_objects: all selected meshes, whatever is active. An active
    volume stands for its armature and for the meshes that it was generated for. Raises BadScene if there are none, or
    more than one armature.
    """
    active = _active(context)
    armature = armature_for(context, active, armature_name)
    selected = [ob for ob in look_ups.selected_in(context.view_layer) if ob.type == "MESH" and not is_volume(ob)]
    if active.type == "MESH" and not is_volume(active):
        meshes = [active, *(ob for ob in selected if ob != active)] if as_objects else [active]
    else:
        meshes = selected or (meshes_of_volume(context, active) if is_volume(active) else [])
        meshes = meshes or _deformed(context, armature, as_objects)
    return Targets(tuple(meshes), armature)


def find_armature(context: bpy.types.Context, name: str = "") -> bpy.types.Object:
    """The armature that ``find_targets`` finds. Raises BadScene."""
    return armature_for(context, _active(context), name)


def _active(context: bpy.types.Context) -> bpy.types.Object:
    """The active object, after ``check_active``."""
    active = active_object(context)
    check_active(context, active)
    return active


def armature_for(context: bpy.types.Context, active: bpy.types.Object | None, name: str = "") -> bpy.types.Object:
    """The armature named ``name``, else the one that ``find_targets`` finds for the active object."""
    return _named(context, name) if name else _automatic(context, active)


def _named(context: bpy.types.Context, name: str) -> bpy.types.Object:
    found = find_object(context.scene, name, ("ARMATURE",))
    check_type(found, "Choose an armature", ("ARMATURE",))
    return found


def _automatic(context: bpy.types.Context, active: bpy.types.Object) -> bpy.types.Object:
    own = active if active.type == "ARMATURE" else volume_armature(active) or _present(active)
    if own is not None:
        return own
    selected = [ob for ob in look_ups.selected_in(context.view_layer) if ob.type == "ARMATURE"]
    for found in (selected, look_ups.armatures_in(context.view_layer, most=MOST_NAMED + 1)):
        if len(found) == 1:
            return found[0]
        if found:
            raise unmet("SEVERAL_ARMATURES", names=names_text(found))
    raise BadScene(f"There is no armature to bind the {object_label(active)} to. Add one, and place its bones")


def _present(mesh_object: bpy.types.Object) -> bpy.types.Object | None:
    """The armature that deforms a mesh object, or else its parent if that is an armature; else None."""
    armature = armature_of(mesh_object)
    if armature is not None:
        return armature
    return mesh_object.parent if mesh_object.parent is not None and mesh_object.parent.type == "ARMATURE" else None


def _deformed(context: bpy.types.Context, armature: bpy.types.Object, as_objects: bool) -> list:
    """The meshes that the armature deforms. Raises BadScene."""
    found = meshes_of(armature, context.view_layer)
    if found and not as_objects:
        return found
    raise BadScene(f'No selected mesh can be bound to "{armature.name}". Select the meshes too')
