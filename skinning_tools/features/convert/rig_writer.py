# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a decomposition as an ordinary Blender rig: skinned meshes, armature, vertex groups, shape keys and motion."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender import actions, background
from ...blender.animation.animation_reader import SourceAnimation
from ...blender.attributes import write_attribute
from ...blender.data_blocks import remove_living
from ...blender.error_display import ERROR_ATTRIBUTE
from ...blender.object_transform import inherit_transform
from ...blender.residual_keys import assign_residual_action, key_residual_values, put_residual_keys
from ...blender.result_objects import (
    follow_armature,
    free_names,
    home_collection,
    name_for_results,
    new_object,
    without_traces,
)
from ...blender.vertex_groups import write_weights_in_parts
from ...core.joint_hierarchy import JointHierarchy
from .rig_bones import RigBones, make_bones
from .rig_motion import write_motion

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition

# The fraction of the time to write a rig after which the bones are made, and the skinned objects.
_BONES, _SKINNED = 0.1, 0.5
# The endings of the names of the data-blocks that a conversion makes.
_KINDS = {
    "skinned": ("objects",),
    "rig": ("objects", "armatures"),
    "skinning": ("actions", "collections"),
    "shapes": ("actions",),
}


@dataclass(frozen=True)
class Rig:
    """A written rig.

    object: the skinned mesh object, child of ``armature``, the armature object, whose motion is ``action``. others:
    the skinned meshes of the other sources, also its children. collection: holds all. bones: the deforming bones
    have the names of the vertex groups. shape_names: the shape keys of the residual shapes. shape_action: their
    motion, None without shapes, and the same as ``action`` if actions have slots.
    """

    object: bpy.types.Object
    armature: bpy.types.Object
    action: bpy.types.Action
    collection: bpy.types.Collection
    bones: RigBones
    shape_names: tuple[str, ...] = ()
    shape_action: bpy.types.Action | None = None
    others: tuple[bpy.types.Object, ...] = ()

    @property
    def bone_names(self) -> tuple[str, ...]:
        """The deforming bones."""
        return self.bones.deform

    @property
    def objects(self) -> tuple[bpy.types.Object, ...]:
        """All skinned objects, in the order of the sources."""
        return self.object, *self.others

    @property
    def data_blocks(self) -> tuple[bpy.types.ID, ...]:
        """All data-blocks of the rig."""
        skinned = [block for ob in self.objects for block in (ob, ob.data)]
        blocks = *skinned, self.armature, self.armature.data, self.action, self.collection
        return blocks if self.shape_action in (None, self.action) else (*blocks, self.shape_action)


def write_rig(
    context: bpy.types.Context,
    source: SourceAnimation,
    decomposition: "Decomposition",
    root_bone: bool = False,
    hierarchy: JointHierarchy | None = None,
    action_name: str = "",
    rows: slice = slice(None),
) -> background.Steps[Rig]:
    """Generator: write ``decomposition`` (core.decomposition.Decomposition) of ``source`` (a SourceAnimation) into the
    scene; returns a Rig. Yields (fraction, stage).

    root_bone: parent all bones to one at the origin, which stands still. hierarchy: the
    core.joint_hierarchy.JointHierarchy that parents them, if any. action_name: "" for the usual one.
    rows: the frames of ``decomposition`` that ``source`` has, of clips those of the first.
    Each skinned object takes over the mesh of its part of the source. All of them have the transform of the armature,
    which follows the source object in world space at every frame, and none depends on a source. Selection, active
    object, mode and frame stay. After an exception, or when closed, only the source's meshes are left. Raises BadScene
    if the transform of the source cannot be followed.
    """
    names, other_names = free_names(
        name_for_results(source.object), _KINDS, [part.object.name for part in source.others]
    )
    with ExitStack() as undo:
        made: list[bpy.types.ID] = []
        undo.callback(remove_living, made)
        armature_object = new_object(names["rig"], bpy.data.armatures.new(names["rig"]), made)
        made.append(armature_object.data)
        named = zip((names["skinned"], *other_names), source.parts, strict=True)
        mesh_objects = [new_object(name, part.mesh, made) for name, part in named]
        collection = bpy.data.collections.new(names["skinning"])
        made.append(collection)

        making = make_bones(context, armature_object, decomposition, hierarchy, root_bone)
        bones = yield from background.part_of(making, 0.0, _BONES)
        skinning = _write_meshes(mesh_objects, source, decomposition, bones, armature_object)
        yield from background.part_of(skinning, _BONES, _SKINNED)
        action = inherit_transform(
            context, source.object, armature_object, action_name or names["skinning"], source.animation.frame_numbers
        )
        made.append(action)
        times = actions.key_times(context.scene, source.animation.frame_numbers)
        own = replace(decomposition, transforms=decomposition.transforms[rows])
        yield from background.part_of(write_motion(armature_object, bones, own, times), _SKINNED, 1.0)
        shape_names: tuple[str, ...] = ()
        shape_action = None
        if decomposition.residual is not None:
            residual, offset = decomposition.residual.from_zero_to_one()
            shape_names = _put_residual_keys(mesh_objects, source, residual.shapes, offset)
            shape_action = assign_residual_action(mesh_objects, action, names["shapes"])
            if shape_action != action:
                made.append(shape_action)
            key_residual_values(mesh_objects[0], shape_names, residual.values[rows], times)
        for ob in (armature_object, *mesh_objects):
            collection.objects.link(ob)
        home_collection(context, source.object).children.link(collection)
        undo.pop_all()
    first, *others = mesh_objects
    return Rig(first, armature_object, action, collection, bones, shape_names, shape_action, tuple(others))


def _write_meshes(
    mesh_objects: Sequence[bpy.types.Object],
    source: SourceAnimation,
    decomposition: "Decomposition",
    bones: RigBones,
    armature_object: bpy.types.Object,
) -> background.Steps:
    """Generator: rest shapes, weights and places of the skinned objects; yields (fraction, stage)."""
    count = len(decomposition.rest)
    for mesh_object, part in zip(mesh_objects, source.parts, strict=True):
        writing = _write_mesh(mesh_object, decomposition, part.vertices, bones.deform)
        yield from background.part_of(writing, part.vertices.start / count, part.vertices.stop / count)
        follow_armature(mesh_object, armature_object)
        # Object properties that shaders and the viewport read.
        mesh_object.color, mesh_object.pass_index = part.object.color, part.object.pass_index


def _put_residual_keys(
    mesh_objects: Sequence[bpy.types.Object], source: SourceAnimation, shapes: np.ndarray, offset: np.ndarray | None
) -> tuple[str, ...]:
    """Give each object its part of the residual ``shapes`` (S, N, 3), and of their ``offset`` (N, 3); returns the names
    of the shape keys."""
    names: tuple[str, ...] = ()
    for mesh_object, part in zip(mesh_objects, source.parts, strict=True):
        own_offset = None if offset is None else offset[part.vertices]
        names = put_residual_keys(mesh_object, shapes[:, part.vertices], own_offset)
    return names


def write_error_attribute(rig: Rig, vertex_error: np.ndarray) -> None:
    """Store the largest error of each vertex over time, (N,) in scene units, as a point attribute of its object."""
    start = 0
    for ob in rig.objects:
        own = vertex_error[start : start + len(ob.data.vertices)]
        write_attribute(ob.data, ERROR_ATTRIBUTE, "FLOAT", own)
        start += len(own)


def _write_mesh(
    mesh_object: bpy.types.Object, decomposition: "Decomposition", vertices: slice, bone_names: Sequence[str]
) -> background.Steps[None]:
    mesh = mesh_object.data
    mesh.name = mesh_object.name
    rest = decomposition.rest[vertices]
    write_attribute(mesh, "position", "FLOAT_VECTOR", rest)
    mesh.update()
    mesh_object.vertex_groups.clear()
    bones, weights = decomposition.bones[vertices], without_traces(decomposition.weights[vertices])
    # With several objects, each has only the groups it uses: most bones belong to the others.
    yield from write_weights_in_parts(mesh_object, bone_names, bones, weights, len(rest) == len(decomposition.rest))
