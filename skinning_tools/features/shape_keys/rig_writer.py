# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a solved face as objects: skinned mesh, armature with sliders, and the hidden mesh between them."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np
from mathutils import Matrix

from ...blender.actions import existing_curves
from ...blender.armatures import NewBone, add_bones, make_bone_collection
from ...blender.attributes import write_attribute
from ...blender.data_blocks import clear_shape_keys, local_copy
from ...blender.object_transform import inherit_transform
from ...blender.result_objects import follow_armature, free_names, home_collection, new_object, without_traces
from ...blender.skin_reader import armature_of
from ...blender.vertex_groups import write_weights
from ...core.bone_placement import place_bones
from ...core.geometry import diagonal
from . import sliders
from .body import Body, copied_armature
from .reading import ShapeKeys

if TYPE_CHECKING:
    from ...core.shape_rig.types import ShapeRig

_KINDS = {"skinned": ("objects",), "rig": ("objects", "armatures"), "sliders": ("objects", "meshes", "collections")}
# As a share of the mesh's diagonal: the distance from a bone of the points that turn it. They are far away, so that
# rounding does not turn it.
_REACH = 0.2


@dataclass(frozen=True)
class FaceRig:
    """A written rig. object: the skinned mesh object; helper: what the sliders move; slider_names: the custom
    properties of ``armature``, in the order of the shapes."""

    object: bpy.types.Object
    armature: bpy.types.Object
    helper: bpy.types.Object
    collection: bpy.types.Collection
    slider_names: tuple[str, ...]
    bone_names: tuple[str, ...]
    data_blocks: tuple[bpy.types.ID, ...]


def write_rig(context: bpy.types.Context, source: ShapeKeys, shape_rig: "ShapeRig", body: Body | None) -> FaceRig:
    """Write ``shape_rig`` (a core.shape_rig.ShapeRig) of ``source``, or of its face on a ``body``.

    All or nothing; the source is not touched.
    """
    from ...core.shape_rig import bone_names as naming

    names, _ = free_names(source.mesh_object.name, _KINDS)
    with ExitStack() as undo:
        made: list[bpy.types.ID] = []
        undo.callback(bpy.data.batch_remove, made)
        mesh_object = _skinned_copy(source, names["skinned"], made)
        helper = new_object(names["sliders"], bpy.data.meshes.new(names["sliders"]), made)
        made.append(helper.data)
        collection = bpy.data.collections.new(names["sliders"])
        made.append(collection)
        if body is None:
            armature = new_object(names["rig"], bpy.data.armatures.new(names["rig"]), made)
            made.append(armature.data)
            _take_place(context, source.mesh_object, armature, names["rig"], made)
            to_armature = np.eye(4)
        else:
            armature = copied_armature(body.skin.armature, names["rig"], made)
            to_armature = np.array(armature.matrix_world.inverted() @ source.mesh_object.matrix_world, dtype=np.float64)

        rest = source.rest if body is None else source.rest[body.vertices]
        keys = [slider.name for slider in source.sliders]
        # Names of vertex groups are bone names, and share a space with those of attributes.
        taken = {*armature.data.bones.keys(), *mesh_object.data.attributes.keys()}
        taken |= set(mesh_object.vertex_groups.keys()) if body is not None else set()
        bone_names = naming(shape_rig, rest, keys, taken)
        _add_bones(context, armature, bone_names, rest, shape_rig, to_armature, body.head if body else "")
        weights = without_traces(shape_rig.weights)
        if body is None:
            mesh_object.vertex_groups.clear()
            write_weights(mesh_object, bone_names, shape_rig.bones, weights)
            follow_armature(mesh_object, armature)
            # Before those that smooth or subdivide, where the shape keys were.
            mesh_object.modifiers.move(len(mesh_object.modifiers) - 1, 0)
        else:
            _share_head(mesh_object, body, bone_names, shape_rig.bones, weights)
            _follow_copy(mesh_object, body.skin.armature, armature)
        slider_names = sliders.add_properties(armature, source.sliders)
        reach = _REACH * diagonal(rest)
        sliders.fill_helper(helper, armature, bone_names, to_armature, shape_rig, slider_names, reach)
        sliders.attach_helper(helper, armature, to_armature, body.head if body else "")
        sliders.follow_helper(armature, helper, bone_names)
        for ob in (armature, mesh_object, helper):
            collection.objects.link(ob)
        home_collection(context, source.mesh_object).children.link(collection)
        undo.pop_all()
    return FaceRig(mesh_object, armature, helper, collection, slider_names, bone_names, tuple(made))


def _share_head(
    mesh_object: bpy.types.Object, body: Body, bone_names: Sequence[str], bones: np.ndarray, weights: np.ndarray
) -> None:
    """Give the head's weights of the face's vertices to the bones of the face; all others stay."""
    chosen = body.vertices
    all_bones = np.zeros((len(body.shares), bones.shape[1]), np.int32)
    all_weights = np.zeros(all_bones.shape)
    all_bones[chosen], all_weights[chosen] = bones, weights * body.given[chosen, None]
    write_weights(mesh_object, bone_names, all_bones, all_weights)
    mesh_object.vertex_groups[body.head].remove(chosen.tolist())


def _follow_copy(mesh_object: bpy.types.Object, original: bpy.types.Object, armature: bpy.types.Object) -> None:
    """Let what followed the body's armature follow its copy."""
    for modifier in mesh_object.modifiers:
        if modifier.type == "ARMATURE" and modifier.object == original:
            modifier.object = armature
    if mesh_object.parent == original:
        inverse = mesh_object.matrix_parent_inverse.copy()
        mesh_object.parent = armature
        mesh_object.matrix_parent_inverse = inverse


def _skinned_copy(source: ShapeKeys, name: str, made: list) -> bpy.types.Object:
    """A copy of the source at its neutral, without keys; on its own where no armature deforms it."""
    copy = local_copy(source.mesh_object)
    made.append(copy)
    copy.name = name
    copy.data = source.mesh_object.data.copy()
    made.append(copy.data)
    copy.data.name = name
    clear_shape_keys(copy)
    copy.data.animation_data_clear()
    if armature_of(copy) is None:
        copy.animation_data_clear()
        copy.constraints.clear()
        copy.parent = None
        copy.matrix_basis = Matrix.Identity(4)
        copy.delta_location = copy.delta_rotation_euler = (0.0, 0.0, 0.0)
        copy.delta_rotation_quaternion, copy.delta_scale = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    write_attribute(copy.data, "position", "FLOAT_VECTOR", source.rest)
    copy.data.update()
    return copy


def _take_place(
    context: bpy.types.Context, source_object: bpy.types.Object, armature: bpy.types.Object, name: str, made: list
) -> None:
    """Put the armature where the source is, with what moves it."""
    action = inherit_transform(context, source_object, armature, name, np.array([float(context.scene.frame_current)]))
    if not existing_curves(armature):
        armature.animation_data.action = None
        bpy.data.actions.remove(action)
    else:
        made.append(action)


def _add_bones(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    names: Sequence[str],
    rest: np.ndarray,
    shape_rig: "ShapeRig",
    to_armature: np.ndarray,
    parent: str,
) -> None:
    """The bones, in the order of the solution."""
    from ...core.shape_rig import mirrored_axes

    placement = place_bones(rest, shape_rig.bones, shape_rig.weights, shape_rig.bone_count)
    axes, lengths = placement.axes, placement.lengths
    if shape_rig.partners is not None:
        axes, lengths = mirrored_axes(axes, lengths, shape_rig.partners)
    specs = []
    size = np.cbrt(abs(np.linalg.det(to_armature[:3, :3])))
    for number, name in enumerate(names):
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = axes[number], shape_rig.pivots[number]
        matrix = to_armature @ matrix
        matrix[:3, :3] /= size
        specs.append(NewBone(name, parent, matrix, size * float(lengths[number]), deforms=True))
    add_bones(context, armature, specs)
    make_bone_collection(armature.data, "Deform" if not parent else "Face", names)
    armature.show_in_front = True
    if not parent:
        # Thick bones would hide the expressions that the sliders make.
        armature.data.display_type = "STICK"
