# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes that get weights of an armature: whether they can, and the modifier and parent by which it deforms them."""

from collections.abc import Iterable

import bpy
import numpy as np

from ..core.errors import BadScene
from .bodies import stretch_of
from .center_records import native_modifier
from .normal_modifiers import is_normals_modifier
from .preconditions import (
    armature_label,
    check_armature_mode,
    check_deforming,
    check_has_vertices,
    check_mode,
    check_own_mesh,
    check_visible,
    object_label,
    unmet,
)
from .temporary_scene import temporary_scene
from .wording import counted

# A new Armature modifier goes before these: they refine, simulate or shade the deformed mesh.
_AFTER_ARMATURE = {
    *("SUBSURF", "MULTIRES", "SOLIDIFY", "BEVEL", "TRIANGULATE", "DECIMATE", "WIREFRAME", "EDGE_SPLIT", "REMESH"),
    *("SMOOTH", "CORRECTIVE_SMOOTH", "LAPLACIANSMOOTH", "DISPLACE", "WEIGHTED_NORMAL", "NORMAL_EDIT"),
    *("CLOTH", "SOFT_BODY", "COLLISION", "SURFACE", "DYNAMIC_PAINT", "EXPLODE", "OCEAN", "PARTICLE_SYSTEM"),
}


def check_armature(armature: bpy.types.Object) -> None:
    """Raise BadScene if nothing can be bound to the armature object. Cheap enough for a panel."""
    check_armature_mode(armature)
    check_deforming(armature)
    sizes = np.linalg.svd(np.array(armature.matrix_world, dtype=np.float64)[:3, :3], compute_uv=False)
    if not sizes[2] > 1e-9 * sizes[0]:
        raise unmet("NO_SCALE", object=armature_label(armature))


def check_mesh(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """Raise BadScene if a mesh object cannot be read for binding. Cheap enough for a panel."""
    check_mode(mesh_object)
    check_visible(context.scene, context.view_layer, mesh_object)
    check_has_vertices(mesh_object)
    stretch_of(mesh_object)


def check_skinnable(context: bpy.types.Context, meshes: Iterable[bpy.types.Object], armature: bpy.types.Object) -> None:
    """Raise BadScene if the meshes cannot get weights and a modifier. Cheap enough for a panel."""
    check_armature(armature)
    users: dict = {}
    for mesh_object in meshes:
        check_mesh(context, mesh_object)
        check_own_mesh(mesh_object, "no weights can be stored in it")
        other = users.setdefault(mesh_object.data, mesh_object)
        if other != mesh_object:
            raise unmet("MESH_SHARED", object=mesh_object, other=other, meaning="which is to be bound, too")
        _check_deformers(mesh_object, armature)
        if mesh_object.parent == armature and mesh_object.parent_type == "BONE":
            raise BadScene(
                f'The {object_label(mesh_object)} is parented to the bone "{mesh_object.parent_bone}" of '
                f'"{armature.name}", which would move it a second time. Clear its parent first (Alt P)'
            )


def deforming_modifiers(mesh_object: bpy.types.Object) -> list[bpy.types.ArmatureModifier]:
    """The Armature modifiers that have an armature and are turned on."""
    return [m for m in mesh_object.modifiers if m.type == "ARMATURE" and m.object is not None and m.show_viewport]


def deforming_parent(mesh_object: bpy.types.Object) -> bpy.types.Object | None:
    """The armature that deforms the object as its parent of type Armature, or None."""
    parent = mesh_object.parent
    return parent if parent is not None and mesh_object.parent_type == parent.type == "ARMATURE" else None


def modifiers_above(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> list[bpy.types.Modifier]:
    """The modifiers turned on in the viewport that are applied before the armature deforms the object, as it does or
    will after ``attach``; without the one that shows normals, which moves no vertex."""
    if deforming_parent(mesh_object) == armature:
        return []
    modifier = _own_modifier(mesh_object, armature)
    place = mesh_object.modifiers.find(modifier.name) if modifier is not None else _new_place(mesh_object)
    return [m for m in mesh_object.modifiers[:place] if m.show_viewport and not is_normals_modifier(m)]


def ancestors(ob: bpy.types.Object) -> list[bpy.types.Object]:
    """The object's parent, its parent, and so on."""
    found = []
    while ob.parent is not None:
        ob = ob.parent
        found.append(ob)
    return found


def place_hidden(context: bpy.types.Context, armature: bpy.types.Object) -> None:
    """Update ``matrix_world`` of a hidden armature, which Blender may not evaluate."""
    if armature.visible_get(view_layer=context.view_layer):
        return
    # Objects that others depend on are always evaluated.
    follower = bpy.data.objects.new("skinning_tools", None)
    try:
        follower.constraints.new("COPY_TRANSFORMS").target = armature
        with temporary_scene(context.scene, [follower]) as scene:
            # `frame_set` would update only an evaluated copy.
            scene.frame_current, scene.frame_subframe = context.scene.frame_current, context.scene.frame_subframe
            scene.view_layers[0].update()
    finally:
        bpy.data.objects.remove(follower)


def _check_deformers(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Raise BadScene if another armature deforms the mesh, or this one would deform it twice."""
    modifiers, parent = deforming_modifiers(mesh_object), deforming_parent(mesh_object)
    for modifier in modifiers:
        if modifier.object != armature:
            raise unmet(
                "ALREADY_DEFORMED",
                object=mesh_object,
                deformer=f'"{modifier.object.name}" (modifier "{modifier.name}")',
                remedy=f'Disable that modifier in the viewport, or remove it, to bind the mesh to "{armature.name}"',
            )
    if parent not in (None, armature):
        raise unmet(
            "ALREADY_DEFORMED",
            object=mesh_object,
            deformer=f'its parent "{parent.name}"',
            remedy=f'Clear its parent (Alt P) to bind it to "{armature.name}"',
        )
    names = [f'the modifier "{modifier.name}"' for modifier in modifiers]
    names += [f'its parent "{armature.name}"'] * (parent is not None)
    if len(names) > 1:
        raise unmet("DEFORMED_TWICE", object=mesh_object, first=names[0], second=names[1], remedy="Remove one of them")


def attach(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> list[str]:
    """Make the armature the object's parent and deform it by vertex groups; returns notes for the user."""
    notes = []
    if deforming_parent(mesh_object) != armature:
        modifier = _own_modifier(mesh_object, armature)
        if modifier is None:
            modifier = _new_modifier(mesh_object, armature)
        elif not (modifier.show_viewport and modifier.show_render) and native_modifier(mesh_object) is None:
            modifier.show_viewport = modifier.show_render = True
            notes.append(f'the modifier "{modifier.name}" was turned on')
        if not modifier.use_vertex_groups:
            modifier.use_vertex_groups = True
            notes.append(f'the modifier "{modifier.name}" now uses vertex groups')
    parent_to_armature(mesh_object, armature)
    others = sum(ob.data == mesh_object.data for ob in bpy.data.objects) - 1
    if others:
        notes.append(f"{counted(others, 'other object')} with the same mesh also got the weights")
    return notes


def parent_to_armature(ob: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Make the armature the object's parent, where it is, if it has none and is above it nowhere."""
    if ob.parent is None and ob not in ancestors(armature):
        ob.parent = armature
        ob.matrix_parent_inverse = armature.matrix_world.inverted()


def _own_modifier(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> bpy.types.ArmatureModifier | None:
    """The modifier for the armature, one that is turned on rather than another; None without any."""
    own = [m for m in mesh_object.modifiers if m.type == "ARMATURE" and m.object == armature]
    return next((m for m in own if m.show_viewport), own[0] if own else None)


def _new_place(mesh_object: bpy.types.Object) -> int:
    """The place of a new Armature modifier among the object's modifiers."""
    modifiers = mesh_object.modifiers
    # Modifiers that are pinned to the end, such as Smooth by Angle, stay after a new one.
    after = (i for i, m in enumerate(modifiers) if m.type in _AFTER_ARMATURE or m.use_pin_to_last)
    return next(after, len(modifiers))


def _new_modifier(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> bpy.types.ArmatureModifier:
    place = _new_place(mesh_object)
    modifier = mesh_object.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature
    modifier.use_vertex_groups, modifier.use_bone_envelopes = True, False
    if place < len(mesh_object.modifiers) - 1:
        name = modifier.name
        mesh_object.modifiers.move(mesh_object.modifiers.find(name), place)
        modifier = mesh_object.modifiers[name]
    return modifier
