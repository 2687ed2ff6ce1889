# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a solved face as objects: skinned meshes, armature with sliders, and the hidden meshes between them."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np
from mathutils import Matrix

from ...blender.actions import existing_curves
from ...blender.armatures import NewBone, add_bones, make_bone_collection
from ...blender.attributes import write_attribute
from ...blender.data_blocks import clear_shape_keys, local_copy, with_ending
from ...blender.object_transform import inherit_transform
from ...blender.result_objects import follow_armature, free_names, home_collection, new_object, without_traces
from ...blender.skin_reader import armature_of
from ...blender.vertex_groups import write_weights
from ...core.bone_placement import place_bones
from ...core.geometry import diagonal
from . import sliders
from .body import Body, copied_armature
from .parts import FaceParts, Group, Part

if TYPE_CHECKING:
    from ...core.shape_rig.types import ShapeRig

_KINDS = {"skinned": ("objects",), "rig": ("objects", "armatures"), "sliders": ("objects", "meshes", "collections")}
# As a share of the mesh's diagonal: the distance from a bone of the points that turn it. They are far away, so that
# rounding does not turn it.
_REACH = 0.2


@dataclass(frozen=True)
class FaceRig:
    """A written rig. objects: the skinned mesh objects, in the order of the parts; slider_names: the custom properties
    of ``armature``, in the order of the face's sliders; bone_names: of all groups."""

    objects: tuple[bpy.types.Object, ...]
    armature: bpy.types.Object
    collection: bpy.types.Collection
    slider_names: tuple[str, ...]
    bone_names: tuple[str, ...]
    data_blocks: tuple[bpy.types.ID, ...]


def write_rig(context: bpy.types.Context, source: FaceParts, shape_rigs: Sequence["ShapeRig"]) -> FaceRig:
    """Write ``shape_rigs`` (core.shape_rig.ShapeRig), the solutions of the groups of ``source``.

    All or nothing; the source is not touched.
    """
    first = source.first.mesh_object
    others = [part.mesh_object.name for part in source.parts[1:]]
    names, other_names = free_names(first.name, _KINDS, others)
    with ExitStack() as undo:
        made: list[bpy.types.ID] = []
        undo.callback(bpy.data.batch_remove, made)
        skinned = names["skinned"], *other_names
        objects = [_skinned_copy(part, name, made) for part, name in zip(source.parts, skinned, strict=True)]
        copies = {part.mesh_object: ob for part, ob in zip(source.parts, objects, strict=True)}
        more = (with_ending(group.parts[0].mesh_object.name, "sliders") for group in source.groups[1:])
        helpers = [new_object(name, bpy.data.meshes.new(name), made) for name in (names["sliders"], *more)]
        made += [helper.data for helper in helpers]
        collection = bpy.data.collections.new(names["sliders"])
        made.append(collection)
        armature, to_armature = _armature(context, source.first, names["rig"], made)
        slider_names = sliders.add_properties(armature, source.sliders)
        properties = {slider.name: name for slider, name in zip(source.sliders, slider_names, strict=True)}
        bone_names: list[str] = []
        for group, shape_rig, helper in zip(source.groups, shape_rigs, helpers, strict=True):
            found = _write_group(context, group, shape_rig, armature, to_armature, copies)
            rest, keys = group.shapes.rest, [properties[slider.name] for slider in group.sliders]
            reach = _REACH * diagonal(rest)
            sliders.fill_helper(helper, armature, found, to_armature, shape_rig, keys, reach)
            sliders.attach_helper(helper, armature, to_armature, group.head)
            sliders.follow_helper(armature, helper, found)
            bone_names += found
        _show_bones(armature, bone_names, on_body=source.first.body is not None)
        for ob in (armature, *objects, *helpers):
            collection.objects.link(ob)
        home_collection(context, first).children.link(collection)
        undo.pop_all()
    return FaceRig(tuple(objects), armature, collection, slider_names, tuple(bone_names), tuple(made))


def _armature(context: bpy.types.Context, first: Part, name: str, made: list) -> tuple[bpy.types.Object, np.ndarray]:
    """The armature object, a copy of the body's if there is one, and (4, 4) to it from the first mesh's space."""
    if first.body is not None:
        armature = copied_armature(first.body.skin.armature, name, made)
        matrix = armature.matrix_world.inverted() @ first.mesh_object.matrix_world
        return armature, np.array(matrix, dtype=np.float64)
    armature = new_object(name, bpy.data.armatures.new(name), made)
    made.append(armature.data)
    _take_place(context, first.mesh_object, armature, name, made)
    return armature, np.eye(4)


def _write_group(
    context: bpy.types.Context,
    group: Group,
    shape_rig: "ShapeRig",
    armature: bpy.types.Object,
    to_armature: np.ndarray,
    copies: Mapping[bpy.types.Object, bpy.types.Object],
) -> tuple[str, ...]:
    """The bones of a group, and their weights in its meshes; the bones' names."""
    from ...core.shape_rig import bone_names as naming

    # Names of vertex groups are bone names, and share a space with those of attributes. All meshes follow all bones.
    taken = {*armature.data.bones.keys()}
    for ob in copies.values():
        taken |= {*ob.data.attributes.keys(), *(ob.vertex_groups.keys() if group.head else ())}
    rest = group.shapes.rest
    bone_names = naming(shape_rig, rest, [slider.name for slider in group.sliders], taken)
    _add_bones(context, armature, bone_names, rest, shape_rig, to_armature, group.head)
    weights = without_traces(shape_rig.weights)
    for part, rows in group.rows():
        mesh_object, bones = copies[part.mesh_object], shape_rig.bones[rows]
        if part.body is None:
            mesh_object.vertex_groups.clear()
            write_weights(mesh_object, bone_names, bones, weights[rows])
            follow_armature(mesh_object, armature)
            # Before those that smooth or subdivide, where the shape keys were.
            mesh_object.modifiers.move(len(mesh_object.modifiers) - 1, 0)
        else:
            _share_head(mesh_object, part.body, bone_names, bones, weights[rows])
            _follow_copy(mesh_object, part.body.skin.armature, armature)
    return bone_names


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


def _skinned_copy(part: Part, name: str, made: list) -> bpy.types.Object:
    """A copy of the part's mesh at its neutral, without keys; where no armature deforms it, on its own, in its place in
    the space of the first mesh."""
    copy = local_copy(part.mesh_object)
    made.append(copy)
    copy.name = name
    copy.data = part.mesh_object.data.copy()
    made.append(copy.data)
    copy.data.name = name
    clear_shape_keys(copy)
    copy.data.animation_data_clear()
    if armature_of(copy) is None:
        copy.animation_data_clear()
        copy.constraints.clear()
        copy.parent = None
        copy.delta_location = copy.delta_rotation_euler = (0.0, 0.0, 0.0)
        copy.delta_rotation_quaternion, copy.delta_scale = (1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        copy.matrix_basis = Matrix.Identity(4) if part.to_face is None else Matrix(part.to_face)
    write_attribute(copy.data, "position", "FLOAT_VECTOR", part.keys.rest)
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


def _show_bones(armature: bpy.types.Object, names: Sequence[str], on_body: bool) -> None:
    make_bone_collection(armature.data, "Face" if on_body else "Deform", names)
    armature.show_in_front = True
    if not on_body:
        # Thick bones would hide the expressions that the sliders make.
        armature.data.display_type = "STICK"
