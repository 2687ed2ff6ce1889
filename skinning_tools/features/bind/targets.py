# SPDX-License-Identifier: GPL-3.0-or-later
"""Which meshes are to be bound to which armature, and why they cannot be."""

from dataclasses import dataclass

import bpy
import numpy as np

from ...blender import look_ups
from ...blender.bodies import check_deforming, stretch_of
from ...blender.job_checks import active_object
from ...blender.preconditions import (
    armature_label,
    check_armature_mode,
    check_has_vertices,
    check_mode,
    check_own_mesh,
    check_visible,
    object_label,
    unmet,
)
from ...blender.skin_reader import armature_of, meshes_of
from ...blender.temporary_scene import temporary_scene
from ...blender.wording import MOST_NAMED, names_text
from ...core.errors import BadScene
from .volumes import is_volume, meshes_of_volume, volume_armature


@dataclass(frozen=True, eq=False)
class Targets:
    """meshes: objects, at least one; armature: the object that they are bound to."""

    meshes: tuple[bpy.types.Object, ...]
    armature: bpy.types.Object


def check_active(context, object) -> None:
    """Raises BadScene where the active ``object`` tells nothing to bind. Cheap enough for a panel."""
    if object is None:
        raise BadScene("There is no active object. Select the mesh to bind, or its armature together with the meshes")
    if object.type == "MESH":
        check_mode(object)
    elif object.type != "ARMATURE":
        kind = object.bl_rna.properties["type"].enum_items[object.type].name
        raise BadScene(f"The {object_label(object)} is not a mesh, its type is {kind}. Select a mesh or an armature")


def find_targets(context, armature_name: str = "", as_objects: bool = False) -> Targets:
    """What the user means. Cheap enough for a panel.

    The armature: the named one; else the active object, where it is one; else the one that the active mesh has
    already; else the one that is selected, too; else the only one in the view layer. The meshes: the active one, or,
    where an armature is active, all selected ones, or those that it deforms where none is selected. as_objects: all
    selected ones count, whatever is active. An active volume stands for its armature, and for the
    meshes that it was made for. Raises BadScene where there are none, or more than one armature.
    """
    active = active_object(context)
    armature = find_armature(context, armature_name)
    selected = [ob for ob in look_ups.selected_in(context.view_layer) if ob.type == "MESH" and not is_volume(ob)]
    if active.type == "MESH" and not is_volume(active):
        meshes = [active, *(ob for ob in selected if ob != active)] if as_objects else [active]
    else:
        meshes = selected or (meshes_of_volume(context, active) if is_volume(active) else [])
        meshes = meshes or _deformed(context, armature, as_objects)
    return Targets(tuple(meshes), armature)


def find_armature(context, name: str = ""):
    """The armature as ``find_targets`` finds it. Raises BadScene."""
    active = active_object(context)
    check_active(context, active)
    return armature_for(context, active, name)


def armature_for(context, object, name: str = ""):
    """The armature named ``name``, or else the one that ``find_targets`` finds where ``object`` is active."""
    return _named(context, name) if name else _automatic(context, object)


def check_armature(armature) -> None:
    """Raises BadScene where nothing can be bound to the armature object. Cheap enough for a panel."""
    check_armature_mode(armature)
    check_deforming(armature)
    sizes = np.linalg.svd(np.array(armature.matrix_world, dtype=np.float64)[:3, :3], compute_uv=False)
    if not sizes[2] > 1e-9 * sizes[0]:
        raise unmet("NO_SCALE", object=armature_label(armature))


def check_mesh(context, object) -> None:
    """Raises BadScene where a mesh object cannot be read for binding. Cheap enough for a panel."""
    check_mode(object)
    check_visible(context.scene, context.view_layer, object)
    check_has_vertices(object)
    stretch_of(object)


def check_skinnable(context, targets: Targets) -> None:
    """Raises BadScene where weights and a modifier cannot be given to the meshes. Cheap enough for a panel."""
    check_armature(targets.armature)
    users: dict = {}
    for object in targets.meshes:
        check_mesh(context, object)
        check_own_mesh(object, "no weights can be stored in it")
        other = users.setdefault(object.data, object)
        if other != object:
            raise BadScene(
                f'The objects "{other.name}" and "{object.name}" share one mesh, and with it their weights. Bind one '
                "of them, or give each its own (Object > Relations > Make Single User > Object & Data)"
            )
        _check_deformers(object, targets.armature)
        if object.parent == targets.armature and object.parent_type == "BONE":
            raise BadScene(
                f'The {object_label(object)} is parented to the bone "{object.parent_bone}" of '
                f'"{targets.armature.name}", which would move it a second time. Clear its parent first (Alt P)'
            )


def deforming_modifiers(object) -> list:
    """The Armature modifiers that have an armature and are on."""
    return [m for m in object.modifiers if m.type == "ARMATURE" and m.object is not None and m.show_viewport]


def deforming_parent(object):
    """The armature that deforms the object as its parent of type Armature, or None."""
    parent = object.parent
    return parent if parent is not None and object.parent_type == parent.type == "ARMATURE" else None


def ancestors(object) -> list:
    """The object's parent, that one's parent, and so on."""
    found = []
    while object.parent is not None:
        object = object.parent
        found.append(object)
    return found


def place_hidden(context, armature) -> None:
    """Bring ``matrix_world`` of an armature up to date where it is hidden, as Blender then may not place it."""
    if armature.visible_get(view_layer=context.view_layer):
        return
    # What another object depends on is placed in any case.
    follower = bpy.data.objects.new("skinning_tools", None)
    try:
        follower.constraints.new("COPY_TRANSFORMS").target = armature
        with temporary_scene(context.scene, [follower]) as scene:
            # `frame_set` would place an evaluated copy alone.
            scene.frame_current, scene.frame_subframe = context.scene.frame_current, context.scene.frame_subframe
            scene.view_layers[0].update()
    finally:
        bpy.data.objects.remove(follower)


def _check_deformers(object, armature) -> None:
    """Raises BadScene where another armature moves the mesh, or this one would twice."""
    label = object_label(object)
    modifiers, parent = deforming_modifiers(object), deforming_parent(object)
    for modifier in modifiers:
        if modifier.object != armature:
            raise BadScene(
                f'The {label} is deformed by "{modifier.object.name}" already (modifier "{modifier.name}"). Disable '
                f'that modifier in the viewport, or remove it, to bind it to "{armature.name}"'
            )
    if parent not in (None, armature):
        raise BadScene(
            f'The {label} is deformed by its parent "{parent.name}" already. Clear its parent (Alt P) to bind it to '
            f'"{armature.name}"'
        )
    names = [f'the modifier "{modifier.name}"' for modifier in modifiers] + ["its parent"] * (parent is not None)
    if len(names) > 1:
        raise BadScene(f'"{armature.name}" deforms the {label} twice: by {" and ".join(names)}. Remove one of them')


def _named(context, name: str):
    found = context.scene.objects.get(name)
    if found is None or found.type != "ARMATURE":
        known = ", ".join(f'"{ob.name}"' for ob in context.scene.objects if ob.type == "ARMATURE") or "none"
        raise BadScene(f'There is no armature "{name}" in scene "{context.scene.name}". Its armatures: {known}')
    return found


def _automatic(context, active):
    own = active if active.type == "ARMATURE" else volume_armature(active) or _present(active)
    if own is not None:
        return own
    selected = [ob for ob in look_ups.selected_in(context.view_layer) if ob.type == "ARMATURE"]
    for found in (selected, look_ups.armatures_in(context.view_layer, most=MOST_NAMED + 1)):
        if len(found) == 1:
            return found[0]
        if found:
            names = names_text(found)
            raise BadScene(f"There are several armatures: {names}. Choose one in the panel, or select it with the mesh")
    raise BadScene(f"There is no armature to bind the {object_label(active)} to. Add one, and place its bones")


def _present(object):
    """The armature that a mesh object has: what deforms it, or else its parent; None without one."""
    armature = armature_of(object)
    if armature is not None:
        return armature
    return object.parent if object.parent is not None and object.parent.type == "ARMATURE" else None


def _deformed(context, armature, as_objects: bool) -> list:
    """The meshes that the armature deforms. Raises BadScene."""
    found = meshes_of(armature, context.view_layer)
    if found and not as_objects:
        return found
    raise BadScene(f'No mesh is selected that could be bound to "{armature.name}". Select the meshes, too')
