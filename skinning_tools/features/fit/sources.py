# SPDX-License-Identifier: GPL-3.0-or-later
"""The target positions of a mesh's vertices in a pose: from posed copies, another object, or a shape key."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ...blender.active_vertex import selected_vertices
from ...blender.animation.frame_guard import frame_kept
from ...blender.animation.omissions import Omissions, texts_of
from ...blender.bone_weights import BoneWeights
from ...blender.fit_poses import MeshPose, bare_skin, check_bent, read_pose
from ...blender.object_checks import check_object
from ...blender.preconditions import find_object
from ...blender.shapes import evaluated_shape, key_displacements, shape_key_block
from ...blender.skin_reader import armature_of
from ...core.errors import BadScene
from . import posed_copies
from .settings import FitSettings


@dataclass(frozen=True, eq=False)
class Wanted:
    """A pose, and the target positions (N, 3) of the vertices in it, in the mesh object's space. selected (N,): the
    vertices selected in the source of the shape; key: the shape key, if that is the source."""

    pose: MeshPose
    targets: np.ndarray
    selected: np.ndarray
    key: str = ""


def read_wanted(
    context: bpy.types.Context,
    original: bpy.types.Object,
    before: BoneWeights,
    settings: FitSettings,
    frames: tuple[int, ...],
    copies: Sequence[bpy.types.Object],
) -> tuple[list[Wanted], tuple[str, ...]]:
    """The pose or poses with their target positions, and notes for the user. frames: empty for the present pose.

    The current frame stays. Raises BadScene, BadMesh.
    """
    if settings.source == "COPIES":
        for copy in copies:
            posed_copies.check_bones(copy, original, before.names)
        found = [Wanted(*posed_copies.read_copy(copy, original)) for copy in copies]
        # The order of the bones at that time.
        return [replace(wanted, pose=_reordered(wanted.pose, before.names)) for wanted in found], ()
    scene = context.scene
    targets = [target_object(context, settings)] if settings.source == "OBJECT" else []
    numbers = sorted(frames) or [scene.frame_current]
    omissions = Omissions(context, targets, numbers, [armature_of(original)], same_vertices=True)
    found = []
    with frame_kept(scene) if frames else nullcontext():
        for frame in frames or (None,):
            if frame is not None:
                scene.frame_set(frame)
            if settings.source == "OBJECT":
                found.append(_of_object(context, original, settings))
            else:
                found.append(_of_key(context, original, before, settings))
    for wanted in found:
        check_bent(original, wanted.pose)
    return found, texts_of(omissions.finish())


def _of_object(context: bpy.types.Context, original: bpy.types.Object, settings: FitSettings) -> Wanted:
    target = target_object(context, settings)
    check_object(context, target)
    pose = read_pose(context, original)
    skin = replace(bare_skin(original, armature_of(original), ()), rest=pose.rest)
    shape = evaluated_shape(skin, target, context.evaluated_depsgraph_get(), context.scene.frame_current)
    return Wanted(pose, shape.astype(np.float64), selected_vertices(original.data))


def _of_key(
    context: bpy.types.Context, original: bpy.types.Object, before: BoneWeights, settings: FitSettings
) -> Wanted:
    """The pose without the key, and the positions to which the bones move the vertices with the key."""
    from ...core.deform import skin_frame

    block = shape_key_block(original, settings.shape_key)
    muted = block.mute
    block.mute = True
    try:
        pose = read_pose(context, original)
    finally:
        block.mute = muted
        context.view_layer.update()
    moved = pose.rest + key_displacements(original, block)
    return Wanted(
        pose,
        skin_frame(moved, before.bones, before.weights, pose.matrices),
        selected_vertices(original.data),
        block.name,
    )


def target_object(context: bpy.types.Context, settings: FitSettings) -> bpy.types.Object:
    """The object that the source OBJECT names. Raises BadScene."""
    if not settings.target:
        raise BadScene("No object with the target positions is chosen. Choose one as Object")
    return find_object(context.scene, settings.target)


def _reordered(pose: MeshPose, names: Sequence[str]) -> MeshPose:
    """The same pose with the bones in the order ``names``."""
    place = {name: index for index, name in enumerate(pose.bones)}
    return replace(pose, bones=tuple(names), matrices=pose.matrices[[place[name] for name in names]])
