# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh object as it is where its armature begins: with its shape keys and the modifiers above the armature's."""

from collections.abc import Iterator
from contextlib import contextmanager

import bpy

from ..core.errors import BadMesh
from .center_records import modifier_record, native_modifier
from .data_blocks import is_alive
from .object_transform import set_parent_type
from .preconditions import object_label
from .skin_reader import armature_modifier
from .temporary_scene import evaluate_frame, temporary_scene


@contextmanager
def unskinned_copy(object: bpy.types.Object) -> Iterator[bpy.types.Object]:
    """A copy of the object, in no scene, that shares mesh and keys and ends above the armature; removed at the end."""
    copy = object.copy()
    try:
        remove_modifiers(copy, from_armature=True)
        copy.hide_viewport = False
        yield copy
    finally:
        # An undo, or another file, may have removed it meanwhile.
        if is_alive(copy):
            bpy.data.objects.remove(copy)


def remove_modifiers(object: bpy.types.Object, from_armature: bool) -> None:
    """Remove the modifiers up to the armature's, or those from it on; in both cases that of this extension."""
    own, armature = native_modifier(object), armature_modifier(object)
    place = object.modifiers.find(armature.name) if armature is not None else -1
    if own is not None:
        record = modifier_record(own)
        object.add_rest_position_attribute = record is not None and record.rest_position
    for index, modifier in reversed(list(enumerate(object.modifiers))):
        if modifier == own or index == place or (index > place) == from_armature:
            object.modifiers.remove(modifier)
    if object.parent_type == "ARMATURE":
        set_parent_type(object, "OBJECT")


def check_vertex_count(object: bpy.types.Object, evaluated: bpy.types.Mesh, frame: int) -> None:
    """Raises BadMesh where ``evaluated``, the mesh above the armature, has not the vertices of the object's mesh."""
    own, found = len(object.data.vertices), len(evaluated.vertices)
    if own != found:
        raise BadMesh(
            f"A modifier before the armature changes the vertices of {object_label(object)} from {own} to {found} at "
            f"frame {frame}. Apply it, or move it below the Armature modifier"
        )


def check_vertices(context: bpy.types.Context, object: bpy.types.Object) -> None:
    """``check_vertex_count`` at the current frame: evaluates the object, unless nothing is above its armature."""
    armature = armature_modifier(object)
    if armature is None or armature == object.modifiers[0]:
        return
    scene = context.scene
    with unskinned_copy(object) as copy, temporary_scene(scene, [copy]) as temporary:
        depsgraph = evaluate_frame(temporary, scene.frame_current_final)
        check_vertex_count(object, copy.evaluated_get(depsgraph).data, scene.frame_current)
