# SPDX-License-Identifier: GPL-3.0-or-later
"""A mesh object as input to its Armature modifier: with its shape keys and the modifiers above."""

from collections.abc import Iterator
from contextlib import contextmanager

import bpy
import numpy as np

from ..core.errors import BadMesh
from .attributes import read_attribute, write_attribute
from .center_records import modifier_record, native_modifier
from .data_blocks import clear_shape_keys, temporary_copy
from .normal_modifiers import is_normals_modifier
from .object_transform import set_parent_type
from .preconditions import object_label
from .skin_reader import armature_modifier, rest_positions
from .temporary_scene import evaluate_frame, temporary_scene


@contextmanager
def unskinned_copy(mesh_object: bpy.types.Object) -> Iterator[bpy.types.Object]:
    """A copy of the object, in no scene, with the same mesh and keys and only the modifiers above the armature;
    temporary."""
    with temporary_copy(mesh_object) as copy:
        remove_modifiers(copy, from_armature=True)
        yield copy


@contextmanager
def rest_copy(mesh_object: bpy.types.Object) -> Iterator[bpy.types.Object]:
    """A copy of the object, in no scene, whose own mesh has the rest positions and no shape keys, and which no parent
    deforms; temporary."""
    with temporary_copy(mesh_object, own_data=True) as copy:
        rest = rest_positions(copy.data)
        if copy.data.shape_keys is not None:
            clear_shape_keys(copy)
        write_attribute(copy.data, "position", "FLOAT_VECTOR", rest)
        if copy.parent_type == "ARMATURE":
            set_parent_type(copy, "OBJECT")
        yield copy


def remove_modifiers(mesh_object: bpy.types.Object, from_armature: bool) -> None:
    """Remove the modifiers above the armature's, or from it on; in both cases also the extension's own modifiers."""
    own, armature = native_modifier(mesh_object), armature_modifier(mesh_object)
    place = mesh_object.modifiers.find(armature.name) if armature is not None else -1
    if own is not None:
        record = modifier_record(own)
        mesh_object.add_rest_position_attribute = record is not None and record.rest_position
    for index, modifier in reversed(list(enumerate(mesh_object.modifiers))):
        if modifier == own or is_normals_modifier(modifier) or index == place or (index > place) == from_armature:
            mesh_object.modifiers.remove(modifier)
    if mesh_object.parent_type == "ARMATURE":
        set_parent_type(mesh_object, "OBJECT")


def check_vertex_count(mesh_object: bpy.types.Object, evaluated: bpy.types.Mesh, frame: int) -> None:
    """Raises BadMesh if ``evaluated``, the mesh above the armature, differs from the object's mesh in its vertex
    count."""
    own, found = len(mesh_object.data.vertices), len(evaluated.vertices)
    if own != found:
        raise BadMesh(
            f"A modifier before the armature changes the number of vertices of {object_label(mesh_object)} from {own} "
            f"to {found} at frame {frame}. Apply it, or move it below the Armature modifier"
        )


def check_vertices(context: bpy.types.Context, mesh_object: bpy.types.Object) -> None:
    """``check_vertex_count`` at the current frame: evaluates the object if anything is above its armature."""
    if _modifiers_above(mesh_object):
        shape_before_armature(context, mesh_object)


def is_shaped_before_armature(mesh_object: bpy.types.Object) -> bool:
    """Whether a shape key or a modifier may move the vertices before the armature does. Cheap."""
    keys = mesh_object.data.shape_keys
    blocks = keys.key_blocks[1:] if keys is not None else ()
    # A pinned key is shown whatever its value; keys on an absolute time line have no values.
    pinned = keys is not None and (not keys.use_relative or mesh_object.show_only_shape_key)
    shown = any(modifier.show_viewport for modifier in _modifiers_above(mesh_object))
    return shown or pinned or any(block.value and not block.mute for block in blocks)


def shape_before_armature(context: bpy.types.Context, mesh_object: bpy.types.Object) -> np.ndarray:
    """(N, 3) float64: the positions that the armature gets at the current frame, in the object's space, with shape keys
    and the modifiers above. Evaluates the object.

    Raises BadMesh as ``check_vertex_count``.
    """
    scene = context.scene
    with unskinned_copy(mesh_object) as copy, temporary_scene(scene, [copy]) as temporary:
        mesh = copy.evaluated_get(evaluate_frame(temporary, scene.frame_current_final)).data
        check_vertex_count(mesh_object, mesh, scene.frame_current)
        return read_attribute(mesh, "position").astype(np.float64)


def _modifiers_above(mesh_object: bpy.types.Object) -> list[bpy.types.Modifier]:
    """The modifiers above the armature's, without the one that shows normals, which moves no vertex; none if the
    armature is the parent, which deforms first."""
    armature = armature_modifier(mesh_object)
    place = mesh_object.modifiers.find(armature.name) if armature is not None else 0
    return [modifier for modifier in mesh_object.modifiers[:place] if not is_normals_modifier(modifier)]
