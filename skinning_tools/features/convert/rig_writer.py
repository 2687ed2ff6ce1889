# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a decomposition as an ordinary Blender rig: skinned meshes, armature, vertex groups, shape keys and motion."""

from contextlib import ExitStack
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender import actions
from ...blender.data_blocks import with_ending
from ...blender.error_display import ERROR_ATTRIBUTE
from ...blender.object_transform import inherit_transform
from ...blender.vertex_groups import put_weights, write_weights
from .residual_keys import add_residual_keys, assign_residual_action, key_residual_values
from .rig_bones import RigBones, make_bones
from .rig_motion import write_motion

# What a conversion makes, by the end of its name.
_KINDS = {
    "skinned": ("objects",),
    "rig": ("objects", "armatures"),
    "skinning": ("actions", "collections"),
    "shapes": ("actions",),
}

# Weights up to this are left out, as Blender's glTF exporter leaves them out: what plays elsewhere is then what is
# measured here. The other weights share them, so a vertex moves by no more than the sum of those left out times how far
# apart its bones would take it.
_TRACE = 1.001e-4


@dataclass(frozen=True)
class Rig:
    """A written rig.

    object: the skinned mesh object, child of ``armature``, the armature object, whose motion is ``action``. others:
    those of the other sources, likewise children of it. collection holds all. bones: the deforming ones have
    the names of the vertex groups. shape_names: the shape keys of the residual shapes, whose motion is
    ``shape_action``: None without, and the same as ``action`` where actions have slots.
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
        """All skinned objects, in the order of the source's parts."""
        return self.object, *self.others

    @property
    def data_blocks(self) -> tuple[bpy.types.ID, ...]:
        """All that the rig consists of."""
        skinned = [block for ob in self.objects for block in (ob, ob.data)]
        blocks = *skinned, self.armature, self.armature.data, self.action, self.collection
        return blocks if self.shape_action in (None, self.action) else (*blocks, self.shape_action)


def write_rig(context, source, decomposition, root_bone: bool = False, hierarchy=None) -> Rig:
    """Write ``decomposition`` (core.decomposition.Decomposition) of ``source`` (a SourceAnimation) into the scene.

    root_bone: whether all bones are under one at the origin, which stands still. hierarchy: the
    core.joint_hierarchy.JointHierarchy that they hang in, if any. Each skinned object takes over the
    mesh of its part of the source. They all have the transform of the armature, which is where the source's object is
    in world space at every frame of its animation, and none depends on a source. Selection, active object, mode and
    frame stay as they are. All or nothing: where it raises, nothing but the source's meshes is left. Raises BadScene
    where the transform of the source cannot be followed.
    """
    names, other_names = _free_names(source.object.name, [part.object.name for part in source.others])
    with ExitStack() as undo:
        made: list[bpy.types.ID] = []
        undo.callback(bpy.data.batch_remove, made)
        armature_object = _new_object(names["rig"], bpy.data.armatures.new(names["rig"]), made)
        made.append(armature_object.data)
        mesh_names = (names["skinned"], *other_names)
        mesh_objects = [_new_object(name, part.mesh, made) for name, part in zip(mesh_names, source.parts, strict=True)]
        collection = bpy.data.collections.new(names["skinning"])
        made.append(collection)

        bones = make_bones(context, armature_object, decomposition, hierarchy, root_bone)
        for mesh_object, name, part in zip(mesh_objects, mesh_names, source.parts, strict=True):
            _write_mesh(mesh_object, name, decomposition, part.vertices, bones.deform)
            _attach(mesh_object, armature_object)
            # What shaders and the viewport ask the object for, rather than its mesh.
            mesh_object.color, mesh_object.pass_index = part.object.color, part.object.pass_index
        action = inherit_transform(
            context, source.object, armature_object, names["skinning"], source.animation.frame_numbers
        )
        made.append(action)
        times = actions.key_times(context.scene, source.animation.frame_numbers)
        write_motion(armature_object, bones, decomposition, times)
        shape_names, shape_action = (), None
        if decomposition.residual is not None:
            for mesh_object, part in zip(mesh_objects, source.parts, strict=True):
                shape_names = add_residual_keys(mesh_object, decomposition.residual.shapes[:, part.vertices])
            shape_action = assign_residual_action(mesh_objects, action, names["shapes"])
            if shape_action != action:
                made.append(shape_action)
            key_residual_values(mesh_objects[0], shape_names, decomposition.residual.values, times)

        for ob in (armature_object, *mesh_objects):
            collection.objects.link(ob)
        _home_collection(context, source.object).children.link(collection)
        undo.pop_all()
    first, *others = mesh_objects
    return Rig(first, armature_object, action, collection, bones, shape_names, shape_action, tuple(others))


def write_error_attribute(rig: Rig, vertex_error: np.ndarray) -> None:
    """Leave the largest error of each vertex over time, (N,) in scene units, as a point attribute of its object."""
    start = 0
    for ob in rig.objects:
        attributes = ob.data.attributes
        if ERROR_ATTRIBUTE in attributes:
            attributes.remove(attributes[ERROR_ATTRIBUTE])
        attribute = attributes.new(ERROR_ATTRIBUTE, "FLOAT", "POINT")
        own = vertex_error[start : start + len(ob.data.vertices)]
        attribute.data.foreach_set("value", np.ascontiguousarray(own, dtype=np.float32))
        start += len(own)


def _free_names(name: str, others=()) -> tuple[dict[str, str], tuple[str, ...]]:
    """Names of what a conversion of the object ``name`` makes, and those of the skinned objects of ``others``.

    All have the same number where one is in use already. Too long a name is shortened at its end, so that what tells
    the new ones apart stays.
    """
    for number in range(1000):
        suffix = f".{number:03}" if number else ""
        names = {ending: f"{with_ending(name, ending)}{suffix}" for ending in _KINDS}
        skinned = tuple(f"{with_ending(other, 'skinned')}{suffix}" for other in others)
        wanted = [(kind, names[ending]) for ending, kinds in _KINDS.items() for kind in kinds]
        wanted += [("objects", each) for each in skinned]
        if not any(getattr(bpy.data, kind).get((each, None)) for kind, each in wanted):
            return names, skinned
    names = {ending: with_ending(name, ending) for ending in _KINDS}
    return names, tuple(with_ending(other, "skinned") for other in others)


def _new_object(name: str, data, made: list) -> bpy.types.Object:
    ob = bpy.data.objects.new(name, data)
    made.append(ob)
    return ob


def _write_mesh(mesh_object, name: str, decomposition, vertices: slice, bone_names) -> None:
    mesh = mesh_object.data
    mesh.name = name
    rest = np.ascontiguousarray(decomposition.rest[vertices], dtype=np.float32)
    mesh.attributes["position"].data.foreach_set("vector", rest.ravel())
    mesh.update()
    mesh_object.vertex_groups.clear()
    bones, weights = decomposition.bones[vertices], decomposition.weights[vertices]
    weights = np.where(weights > _TRACE, weights, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    # One of several has only the groups that it uses: most bones belong to the others.
    write = write_weights if len(rest) == len(decomposition.rest) else put_weights
    write(mesh_object, bone_names, bones, weights)


def _attach(mesh_object, armature_object) -> None:
    mesh_object.parent = armature_object
    modifier = mesh_object.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature_object
    modifier.use_vertex_groups = True
    modifier.use_bone_envelopes = False
    modifier.use_deform_preserve_volume = False


def _home_collection(context, source_object) -> bpy.types.Collection:
    """Where the result's collection goes: beside the source, where that is local and shown; else the scene's own."""
    waiting = [context.view_layer.layer_collection]
    while waiting:
        layer = waiting.pop()
        waiting += layer.children
        collection = layer.collection
        local = collection.library is None and collection.override_library is None
        if local and not layer.exclude and layer.is_visible and source_object in collection.objects.values():
            return collection
    return context.scene.collection
