# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a decomposition as an ordinary Blender rig: skinned meshes, armature, vertex groups, shape keys and motion."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import bpy
import numpy as np
from mathutils import Vector

from ..core.bone_channels import bone_channels
from ..core.bone_placement import Placement, place_bones
from . import actions
from .error_display import ERROR_ATTRIBUTE
from .object_transform import inherit_transform
from .residual_keys import add_residual_keys, assign_residual_action, key_residual_values
from .result_names import free_names
from .temporary_scene import temporary_scene
from .vertex_groups import put_weights, write_weights

BONE_COLORS = {"Deform": "THEME04", "Mechanism": "THEME09"}
# Of the channels of a bone (core.bone_channels) and, where it is a chain, of its child.
BONE_PROPERTIES = {
    "location": "location",
    "rotation": "rotation_quaternion",
    "scale": "scale",
    "child_rotation": "rotation_quaternion",
}
DEFORM_PREFIX, MECHANISM_PREFIX = "DEF-bone_", "MCH-bone_"
ROOT_NAME = "root"
# Of the mesh's diagonal.
_ROOT_LENGTH = 0.25
# Weights up to this are the solver's rounding. They sum to one, and Blender divides by what is left.
_NO_WEIGHT = 1e-6


@dataclass(frozen=True)
class Rig:
    """A written rig.

    object: the skinned mesh object, child of ``armature``, the armature object, whose motion is ``action``. others:
    those of the other sources, likewise children of it. collection holds all. bone_names: the deforming bones, in the
    order of the decomposition's; the vertex groups have the same names. shape_names: the shape keys of the residual
    shapes, whose motion is ``shape_action``: None without, and the same as ``action`` where actions have slots.
    """

    object: bpy.types.Object
    armature: bpy.types.Object
    action: bpy.types.Action
    collection: bpy.types.Collection
    bone_names: tuple[str, ...]
    shape_names: tuple[str, ...] = ()
    shape_action: bpy.types.Action | None = None
    others: tuple[bpy.types.Object, ...] = ()

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


def write_rig(context, source, decomposition, root_bone: bool = False) -> Rig:
    """Write ``decomposition`` (core.decomposition.Decomposition) of ``source`` (a SourceAnimation) into the scene.

    root_bone: whether all bones are under one at the origin, which stands still. Each skinned object takes over the
    mesh of its part of the source. They all have the transform of the armature, which is where the source's object is
    in world space at every frame of its animation, and none depends on a source. Selection, active object, mode and
    frame stay as they are. All or nothing: where it raises, nothing but the source's meshes is left. Raises BadScene
    where the transform of the source cannot be followed.
    """
    names, other_names = free_names(source.object.name, [part.object.name for part in source.others])
    with ExitStack() as undo:
        made: list[bpy.types.ID] = []
        undo.callback(bpy.data.batch_remove, made)
        armature_object = _new_object(names["rig"], bpy.data.armatures.new(names["rig"]), made)
        made.append(armature_object.data)
        mesh_names = (names["skinned"], *other_names)
        mesh_objects = [_new_object(name, part.mesh, made) for name, part in zip(mesh_names, source.parts, strict=True)]
        collection = bpy.data.collections.new(names["skinning"])
        made.append(collection)

        bone_names = _make_bones(context, armature_object, decomposition, root_bone)
        for mesh_object, name, part in zip(mesh_objects, mesh_names, source.parts, strict=True):
            _write_mesh(mesh_object, name, decomposition, part.vertices, bone_names)
            _attach(mesh_object, armature_object)
            # What shaders and the viewport ask the object for, rather than its mesh.
            mesh_object.color, mesh_object.pass_index = part.object.color, part.object.pass_index
        action = inherit_transform(
            context, source.object, armature_object, names["skinning"], source.animation.frame_numbers
        )
        made.append(action)
        times = actions.key_times(context.scene, source.animation.frame_numbers)
        _write_motion(armature_object, bone_names, decomposition, times)
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
    return Rig(first, armature_object, action, collection, bone_names, shape_names, shape_action, tuple(others))


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


def _new_object(name: str, data, made: list) -> bpy.types.Object:
    ob = bpy.data.objects.new(name, data)
    made.append(ob)
    return ob


def _make_bones(context, armature_object, decomposition, root_bone: bool = False) -> tuple[str, ...]:
    """Make the bones, each with its mechanism bone at the same place where ``decomposition`` may shear."""
    placement = place_bones(
        decomposition.rest,
        decomposition.bones,
        decomposition.weights,
        decomposition.bone_count,
        # What stretches along axes of its own must be a bone with these axes: it could not shear.
        own_axes=decomposition.bone_axes if decomposition.bone_kind == "SCALED" else None,
    )
    chained = decomposition.bone_kind == "AFFINE"
    armature = armature_object.data
    with edit_bones_of(context, armature_object) as edit_bones:
        root = _make_root(edit_bones, decomposition.rest) if root_bone else None
        names = tuple(
            _make_bone(edit_bones, number, placement, chained, root) for number in range(decomposition.bone_count)
        )
    armature.display_type = "OCTAHEDRAL"
    armature_object.show_in_front = True
    _make_bone_collection(armature, "Deform", names)
    if chained:
        mechanism = _make_bone_collection(armature, "Mechanism", [armature.bones[name].parent.name for name in names])
        # They lie inside the deforming ones.
        mechanism.is_visible = False
    return names


@contextmanager
def edit_bones_of(context, armature_object) -> Iterator[bpy.types.ArmatureEditBones]:
    """The edit bones of an armature object, wherever it is: active object and mode of the user's scene stay."""
    with temporary_scene(context.scene, [armature_object]) as scene:
        view_layer = scene.view_layers[0]
        view_layer.objects.active = armature_object
        with context.temp_override(
            scene=scene, view_layer=view_layer, active_object=armature_object, object=armature_object
        ):
            bpy.ops.object.mode_set(mode="EDIT")
            try:
                yield armature_object.data.edit_bones
            finally:
                bpy.ops.object.mode_set(mode="OBJECT")


def _make_root(edit_bones, rest: np.ndarray):
    """A bone at the origin that nothing keys."""
    bone = edit_bones.new(ROOT_NAME)
    bone.head = (0.0, 0.0, 0.0)
    bone.tail = (0.0, _ROOT_LENGTH * float(np.linalg.norm(np.ptp(rest, axis=0))), 0.0)
    bone.use_deform = False
    return bone


def _make_bone(edit_bones, number: int, placement: Placement, chained: bool, root=None) -> str:
    """Returns the deforming bone's name."""
    digits = max(2, len(str(len(placement.heads))))
    parent = root
    for prefix in (MECHANISM_PREFIX, DEFORM_PREFIX) if chained else (DEFORM_PREFIX,):
        bone = edit_bones.new(f"{prefix}{number + 1:0{digits}}")
        bone.head = placement.heads[number]
        bone.tail = placement.heads[number] + placement.lengths[number] * placement.axes[number, :, 1]
        bone.align_roll(Vector(placement.axes[number, :, 2]))
        bone.parent = parent
        bone.use_connect = False
        bone.inherit_scale = "FULL"
        bone.use_deform = prefix == DEFORM_PREFIX
        parent = bone
    return bone.name


def _make_bone_collection(armature, name: str, bone_names) -> bpy.types.BoneCollection:
    collection = armature.collections.new(name)
    for bone_name in bone_names:
        armature.bones[bone_name].color.palette = BONE_COLORS[name]
        collection.assign(armature.bones[bone_name])
    return collection


def _write_mesh(mesh_object, name: str, decomposition, vertices: slice, bone_names) -> None:
    mesh = mesh_object.data
    mesh.name = name
    rest = np.ascontiguousarray(decomposition.rest[vertices], dtype=np.float32)
    mesh.attributes["position"].data.foreach_set("vector", rest.ravel())
    mesh.update()
    mesh_object.vertex_groups.clear()
    bones, weights = decomposition.bones[vertices], decomposition.weights[vertices]
    if len(rest) == len(decomposition.rest):
        write_weights(mesh_object, bone_names, bones, weights)
    else:
        # One of several has only the groups that it uses: most bones belong to the others, but for rounding.
        put_weights(mesh_object, bone_names, bones, np.where(weights > _NO_WEIGHT, weights, 0.0))


def _attach(mesh_object, armature_object) -> None:
    mesh_object.parent = armature_object
    modifier = mesh_object.modifiers.new("Armature", "ARMATURE")
    modifier.object = armature_object
    modifier.use_vertex_groups = True
    modifier.use_bone_envelopes = False
    modifier.use_deform_preserve_volume = False


def rest_matrices(armature_object, bone_names) -> np.ndarray:
    """(P, 4, 4) float64: where the bones really are at rest, which in single precision is not quite where they were
    asked to be."""
    return np.array([armature_object.data.bones[name].matrix_local for name in bone_names], dtype=np.float64)


def _write_motion(armature_object, bone_names, decomposition, times: np.ndarray) -> None:
    channels = bone_channels(decomposition, rest_matrices(armature_object, bone_names))
    writer = partial(_write_bones, actions.curve_container(armature_object), times=times)
    moving = channels.moving()
    if channels.child_scale is not None:
        child_scale = np.broadcast_to(channels.child_scale, channels.scale.shape)
        parents = [armature_object.data.bones[name].parent.name for name in bone_names]
        child_rotation = moving.pop("child_rotation")
        writer(parents, **_properties(moving))
        writer(bone_names, rotation_quaternion=child_rotation, scale=child_scale)
    else:
        writer(bone_names, **_properties(moving))


def _properties(channels: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Channels by the names of Blender's properties."""
    return {BONE_PROPERTIES[name]: values for name, values in channels.items()}


def bone_path(bone_name: str, property_name: str) -> str:
    """The data path of a pose bone's property."""
    return f'pose.bones["{bpy.utils.escape_identifier(bone_name)}"].{property_name}'


def _write_bones(container, bone_names, *, times: np.ndarray, **channels: np.ndarray) -> None:
    """Key the properties ``channels``, each (F, P, D), of P bones."""
    for index, name in enumerate(bone_names):
        for channel, values in channels.items():
            actions.write_channels(container, bone_path(name, channel), values[:, index], times, name)


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
