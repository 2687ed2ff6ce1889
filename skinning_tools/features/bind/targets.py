# SPDX-License-Identifier: GPL-3.0-or-later
"""The meshes to bind and their armature, and the checks on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import bpy

from ...blender import look_ups
from ...blender.control_points import HOOKED_TYPES, SKIN_TYPES
from ...blender.job_checks import active_object
from ...blender.preconditions import (
    check_mode,
    check_type,
    find_object,
    object_label,
    unmet,
)
from ...blender.skin_reader import armature_of, skins_of
from ...blender.wording import MOST_NAMED, names_text
from ...core.errors import BadScene
from .volumes import is_volume, meshes_of_volume, volume_armature

_BINDABLE = (*SKIN_TYPES, *HOOKED_TYPES)

_REMEDY = "Select the mesh, lattice or curve to bind, or its armature together with the meshes"


@dataclass(frozen=True, eq=False)
class Targets:
    """meshes: mesh and lattice objects, or curves and surfaces, at least one; armature: the object to bind them to."""

    meshes: tuple[bpy.types.Object, ...]
    armature: bpy.types.Object


def check_active(context: bpy.types.Context, active: bpy.types.Object | None) -> None:
    """Raise BadScene if there is nothing to bind for the active object. Cheap enough for a panel."""
    check_type(active, _REMEDY, (*_BINDABLE, "ARMATURE"))
    assert active is not None
    if active.type in _BINDABLE:
        check_mode(active)


def find_targets(context: bpy.types.Context, armature_name: str = "", as_objects: bool = False) -> Targets:
    """The targets by name and selection. Cheap enough for a panel.

    The armature: by name; else the active object, if it is one; else the armature of the active mesh; else the selected
    one; else the only one in the view layer. The meshes: the active one or, if an armature is active, all selected
    ones, without these the selected curves and surfaces, or if nothing else is selected those that it deforms.
    as_objects: all selected meshes, whatever is active. An active volume stands for its armature and for the meshes
    that it was generated for. Raises BadScene if there are none, or more than one armature, or if what is selected
    cannot be bound.
    """
    active = _active(context)
    armature = armature_for(context, active, armature_name)
    chosen = [ob for ob in look_ups.selected_in(context.view_layer) if ob.type in _BINDABLE and not is_volume(ob)]
    # Curves that are selected beside meshes are often those of the rig.
    selected = [ob for ob in chosen if ob.type in SKIN_TYPES] or chosen
    if active.type in _BINDABLE and not is_volume(active):
        meshes = [active, *(ob for ob in selected if ob != active)] if as_objects else [active]
    else:
        meshes = selected or (meshes_of_volume(context, active) if is_volume(active) else [])
        if not meshes:
            for ob in look_ups.selected_in(context.view_layer):
                if not is_volume(ob):
                    check_type(ob, "Convert it to a mesh, or deselect it", (*_BINDABLE, "ARMATURE"))
            meshes = _deformed(context, armature, as_objects)
    _check_cages(meshes)
    return Targets(tuple(meshes), armature)


def _check_cages(obs: Sequence[bpy.types.Object]) -> None:
    """Raise BadScene if one of ``obs`` already follows the armature by another one, a lattice around it."""
    for ob in obs:
        for modifier in ob.modifiers:
            if modifier.type == "LATTICE" and modifier.show_viewport and modifier.object in obs:
                remedy = "Deselect it: bound, too, it would move twice"
                raise unmet("ALREADY_DEFORMED", object=ob, deformer=object_label(modifier.object), remedy=remedy)


def find_armature(context: bpy.types.Context, name: str = "") -> bpy.types.Object:
    """The armature that ``find_targets`` finds. Raises BadScene."""
    return armature_for(context, _active(context), name)


def _active(context: bpy.types.Context) -> bpy.types.Object:
    """The active object, after ``check_active``."""
    active = active_object(context)
    check_active(context, active)
    return active


def armature_for(context: bpy.types.Context, active: bpy.types.Object | None, name: str) -> bpy.types.Object:
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
    """The armature that deforms a mesh object, or whose bones hook a curve, or else its parent if that is an armature;
    else None."""
    armature = armature_of(mesh_object)
    if armature is not None:
        return armature
    hooked = [m.object for m in mesh_object.modifiers if m.type == "HOOK" and m.object is not None]
    armature = next((ob for ob in hooked if ob.type == "ARMATURE"), None)
    if armature is not None and mesh_object.type in HOOKED_TYPES:
        return armature
    return mesh_object.parent if mesh_object.parent is not None and mesh_object.parent.type == "ARMATURE" else None


def _deformed(context: bpy.types.Context, armature: bpy.types.Object, as_objects: bool) -> list:
    """The meshes that the armature deforms. Raises BadScene."""
    found = skins_of(armature, context.view_layer)
    if found and not as_objects:
        return found
    raise BadScene(f'No selected mesh can be bound to "{armature.name}". Select the meshes too')
