# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones of a written rig: where they are, what hangs from what, and in which collections they are shown."""

from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Vector

from ...blender.armatures import BONE_COLORS, edit_bones_of
from ...core.bone_channels import JointTree
from ...core.bone_placement import Placement, place_at_joints, place_bones
from ...core.joint_hierarchy import JointHierarchy

DEFORM_PREFIX, MECHANISM_PREFIX, CONTROL_PREFIX = "DEF-bone_", "MCH-bone_", "CTL-bone_"
ROOT_NAME = "root"
# Of the mesh's diagonal.
_ROOT_LENGTH = 0.25


@dataclass(frozen=True)
class RigBones:
    """Names of the bones of a rig, each in the order of the decomposition's bones.

    deform: those that move vertices. mechanism: their parents, where each is a chain of two that can shear. controls:
    where there is a hierarchy of joints, the bones that turn about each other in it, which deform or mechanism hang
    from; for rigid bones deform itself. hierarchy: of the controls, or None.
    """

    deform: tuple[str, ...]
    mechanism: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    hierarchy: JointHierarchy | None = None

    def tree(self, armature_object) -> JointTree | None:
        """The joints as they are in the armature."""
        if self.hierarchy is None:
            return None
        return JointTree(self.hierarchy, rest_matrices(armature_object, self.controls), self.controls == self.deform)


def make_bones(context, armature_object, decomposition, hierarchy=None, root_bone: bool = False) -> RigBones:
    """Make the bones for ``decomposition``; its chains are two bones at one place, a deforming one in a mechanism one.

    hierarchy: a core.joint_hierarchy.JointHierarchy that they hang in. root_bone: all are under one at the origin.
    """
    bone_count = decomposition.bone_count
    skin = decomposition.rest, decomposition.bones, decomposition.weights
    placement = place_bones(
        *skin,
        bone_count,
        # What stretches along axes of its own must be a bone with these axes: it could not shear.
        own_axes=decomposition.bone_axes if decomposition.bone_kind == "SCALED" else None,
    )
    chained, rigid = decomposition.bone_kind == "AFFINE", decomposition.bone_kind == "RIGID"
    with edit_bones_of(context, armature_object) as edit_bones:
        parents = [_make_root(edit_bones, decomposition.rest) if root_bone else None] * bone_count
        controls = ()
        if hierarchy is not None:
            at_joints = place_at_joints(placement, hierarchy, *skin)
            parents = _add(edit_bones, DEFORM_PREFIX if rigid else CONTROL_PREFIX, at_joints, parents)
            for bone, parent in enumerate(hierarchy.parents):
                if parent >= 0:
                    parents[bone].parent = parents[parent]
            controls = deform = _names(parents)
        mechanism = ()
        if chained:
            parents = _add(edit_bones, MECHANISM_PREFIX, placement, parents)
            mechanism = _names(parents)
        if hierarchy is None or not rigid:
            deform = _names(_add(edit_bones, DEFORM_PREFIX, placement, parents))
    bones = RigBones(deform, mechanism, controls, hierarchy)
    _show(armature_object, bones)
    return bones


def _add(edit_bones, prefix: str, placement: Placement, parents) -> list:
    """A bone in each of ``parents``; only those named for deforming deform."""
    digits = max(2, len(str(len(parents))))
    made = []
    for number, parent in enumerate(parents):
        bone = edit_bones.new(f"{prefix}{number + 1:0{digits}}")
        bone.head = placement.heads[number]
        bone.tail = placement.heads[number] + placement.lengths[number] * placement.axes[number, :, 1]
        bone.align_roll(Vector(placement.axes[number, :, 2]))
        bone.parent = parent
        bone.use_connect = False
        bone.inherit_scale = "FULL"
        bone.use_deform = prefix == DEFORM_PREFIX
        made.append(bone)
    return made


def _names(edit_bones) -> tuple[str, ...]:
    return tuple(bone.name for bone in edit_bones)


def _make_root(edit_bones, rest: np.ndarray):
    """A bone at the origin that nothing keys."""
    bone = edit_bones.new(ROOT_NAME)
    bone.head = (0.0, 0.0, 0.0)
    bone.tail = (0.0, _ROOT_LENGTH * float(np.linalg.norm(np.ptp(rest, axis=0))), 0.0)
    bone.use_deform = False
    return bone


def _show(armature_object, bones: RigBones) -> None:
    """Collections, of which those stay hidden that lie inside what an animator takes hold of."""
    armature = armature_object.data
    armature.display_type = "OCTAHEDRAL"
    armature_object.show_in_front = True
    deform = _make_bone_collection(armature, "Deform", bones.deform)
    if bones.mechanism:
        _make_bone_collection(armature, "Mechanism", bones.mechanism).is_visible = False
    if bones.controls and bones.controls != bones.deform:
        _make_bone_collection(armature, "Control", bones.controls)
        deform.is_visible = False


def _make_bone_collection(armature, name: str, bone_names) -> bpy.types.BoneCollection:
    collection = armature.collections.new(name)
    for bone_name in bone_names:
        armature.bones[bone_name].color.palette = BONE_COLORS[name]
        collection.assign(armature.bones[bone_name])
    return collection


def rest_matrices(armature_object, bone_names) -> np.ndarray:
    """(P, 4, 4) float64: where the bones really are at rest, which in single precision is not quite where they were
    asked to be."""
    return np.array([armature_object.data.bones[name].matrix_local for name in bone_names], dtype=np.float64)
