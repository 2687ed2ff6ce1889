# SPDX-License-Identifier: GPL-3.0-or-later
"""Sliders that move bones: custom properties, a hidden mesh whose points they move, and bones that follow the points.

Each bone has three points: where it is, and where its y and z axes point. A slider is the shape key of these points:
so sliders add up, play without scripts, and are as many as there are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import bpy
import numpy as np
from mathutils import Matrix

from ...blender.actions import property_path
from ...blender.armatures import rest_matrices
from ...blender.drivers import follow_property
from ...blender.preconditions import armature_label
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from .faces import active_label, face_of
from .reading import Slider

if TYPE_CHECKING:
    from ...core.shape_rig.types import ShapeRig

# Sliders may go beyond the ranges that shape keys commonly have: no less, no more is possible in Blender.
_LEAST, _MOST = -10.0, 10.0
POINTS = "at", "y", "z"
# On the armature object: the names of its sliders.
SLIDERS_PROPERTY = "skinning_sliders"


def add_properties(armature_object: bpy.types.Object, sliders: tuple[Slider, ...]) -> tuple[str, ...]:
    """A custom property at 0 for each slider; their names, numbered where the armature has such a property already."""
    names = []
    for slider in sliders:
        name, number = slider.name, 1
        while name in armature_object:
            name, number = f"{slider.name[:58]}.{number:03}", number + 1
        armature_object[name] = 0.0
        armature_object.id_properties_ui(name).update(
            min=slider.least, max=slider.most, soft_min=slider.least, soft_max=slider.most, default=0.0, step=1,
            description=f"Shape key {slider.name}",
        )  # fmt: skip
        armature_object.property_overridable_library_set(property_path(name), True)
        names.append(name)
    armature_object[SLIDERS_PROPERTY] = names
    return tuple(names)


def fill_helper(
    helper: bpy.types.Object,
    armature_object: bpy.types.Object,
    bone_names: Sequence[str],
    to_armature: np.ndarray,
    shape_rig: "ShapeRig",
    names: Sequence[str],
    reach: float,
) -> None:
    """Make the points of all bones in the object ``helper``, and their shape keys with a driver for each slider.

    to_armature (4, 4): from the mesh's space, in which the points are. reach: how far those of the axes are from the
    bone.
    """
    from ...core.shape_rig import motions

    rest = np.linalg.solve(to_armature, rest_matrices(armature_object, bone_names))
    rest[:, :3, :3] /= np.linalg.norm(rest[:, :3, :3], axis=1, keepdims=True)
    points = np.repeat(rest[:, None, :3, 3], 3, axis=1)
    points[:, 1:] += reach * rest[:, :3, 1:3].transpose(0, 2, 1)
    helper.data.from_pydata(points.reshape(-1, 3).tolist(), [], [])
    for bone, name in enumerate(bone_names):
        for number, point in enumerate(POINTS):
            helper.vertex_groups.new(name=group_name(name, point)).add([3 * bone + number], 1.0, "REPLACE")
    helper.shape_key_add(name="Basis")
    keys = helper.data.shape_keys
    added = motions(shape_rig.turns, shape_rig.moves)
    for name, motion in zip(names, added, strict=True):
        changes = np.repeat(motion[:, None, :, 3], 3, axis=1)
        changes[:, 1:] += reach * np.einsum("pij,pjk->pki", motion[:, :, :3], rest[:, :3, 1:3])
        block = helper.shape_key_add(name=name)
        block.points.foreach_set("co", (points + changes).astype(np.float32).ravel())
        block.slider_min, block.slider_max, block.value = _LEAST, _MOST, 0.0
        follow_property(block, "value", armature_object, property_path(name))
    keys.name = helper.name


def group_name(bone_name: str, point: str) -> str:
    """The vertex group of one of a bone's points."""
    return f"{bone_name}:{point}"


def follow_helper(armature_object: bpy.types.Object, helper: bpy.types.Object, bone_names: Sequence[str]) -> None:
    """Constrain the bones to their points."""
    for name in bone_names:
        constraints = armature_object.pose.bones[name].constraints
        place = constraints.new("COPY_LOCATION")
        place.target, place.subtarget = helper, group_name(name, "at")
        aim = constraints.new("DAMPED_TRACK")
        aim.target, aim.subtarget, aim.track_axis = helper, group_name(name, "y"), "TRACK_Y"
        roll = constraints.new("LOCKED_TRACK")
        roll.target, roll.subtarget = helper, group_name(name, "z")
        roll.track_axis, roll.lock_axis = "TRACK_Z", "LOCK_Y"


def attach_helper(
    helper: bpy.types.Object, armature_object: bpy.types.Object, to_armature: np.ndarray, head: str
) -> None:
    """Let the helper move with the armature, or with the bone ``head`` of it."""
    helper.parent = armature_object
    helper.matrix_basis = Matrix(to_armature)
    if head:
        bone = armature_object.data.bones[head]
        helper.parent_type, helper.parent_bone = "BONE", head
        # Blender places children at the bone's tail.
        tail = bone.matrix_local @ Matrix.Translation((0.0, bone.length, 0.0))
        helper.matrix_parent_inverse = tail.inverted()
    helper.hide_viewport = helper.hide_render = helper.hide_select = True


def helpers_of(armature_object: bpy.types.Object) -> list[tuple[bpy.types.Object, list[str]]]:
    """The helpers that the bones of an armature follow, each with the names of its bones in the order of its points.
    Raises BadScene if there is none, or one is missing."""
    found: dict[bpy.types.Object | None, dict[str, str]] = {}
    for bone in armature_object.pose.bones:
        for constraint in bone.constraints:
            if constraint.type == "COPY_LOCATION" and constraint.subtarget == group_name(bone.name, POINTS[0]):
                found.setdefault(constraint.target, {})[constraint.subtarget] = bone.name
    if not found or None in found:
        raise BadScene(
            f"The bones of {armature_label(armature_object)} follow no mesh of sliders. Undo its deletion, or convert "
            "the shape keys again"
        )
    return [
        (helper, [bones[group.name] for group in list(helper.vertex_groups)[:: len(POINTS)]])
        for helper, bones in found.items()
        if helper is not None
    ]


def rig_and_sliders(active: bpy.types.Object | None) -> tuple[bpy.types.Object, list[str]] | None:
    """The armature of a face and the names of its sliders, for the armature or the mesh; else None. Cheap."""
    if active is None:
        return None
    rig = armature_of(active) or active.parent if active.type == "MESH" else active
    if rig is None or SLIDERS_PROPERTY not in rig:
        return None
    return rig, [name for name in rig[SLIDERS_PROPERTY] if name in rig]


def face_rig(context: bpy.types.Context, active: bpy.types.Object | None) -> tuple[bpy.types.Object, list[str]]:
    """As ``rig_and_sliders``, also for the mesh with the shape keys: of the last face that was made from it. Raises
    BadScene if there are none."""
    face = face_of(active)
    found = rig_and_sliders(active) or (rig_and_sliders(face.mesh) if face is not None else None)
    if found is None:
        raise BadScene(f"The {active_label(active)} is no face with sliders. Convert its shape keys to bones first")
    return found
