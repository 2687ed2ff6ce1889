# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones of a written rig: their places, parents and bone collections."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bpy
import numpy as np
from mathutils import Vector

from ...blender import background
from ...blender.armatures import CONNECTED, edit_bones_of, lock_locations, make_bone_collection, rest_matrices
from ...blender.joint_records import note_joints
from ...core.bone_channels import JointTree
from ...core.bone_placement import Placement, place_at_joints, place_bones
from ...core.chain_names import chain_names
from ...core.geometry import diagonal
from ...core.joint_hierarchy import JointHierarchy, carried_along, hinge_axes, rigid_motion, still_joints

if TYPE_CHECKING:
    from ...core.decomposition import Decomposition

DEFORM_PREFIX, MECHANISM_PREFIX, CONTROL_PREFIX = "DEF-", "MCH-", "CTL-"
ROOT_NAME = "root"
# As a fraction of the mesh's diagonal.
_ROOT_LENGTH = 0.25


@dataclass(frozen=True)
class RigBones:
    """Names of the bones of a rig, each in the order of the decomposition's bones.

    deform: the deforming bones. mechanism: their parents, if each bone is a chain of two that can shear. controls: with
    a joint hierarchy, the bones that animators pose, parents of mechanism or deform; for rigid bones, deform itself.
    hierarchy: of the controls, or None; still: those that hardly turn against their parents, so that the motion does
    not tell the joint; mirrored: those that move exactly as their parents do, such as of a side that stands still.
    """

    deform: tuple[str, ...]
    mechanism: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    hierarchy: JointHierarchy | None = None
    still: tuple[str, ...] = ()
    mirrored: tuple[str, ...] = ()

    def tree(self, armature_object: bpy.types.Object) -> JointTree | None:
        """The joints at their positions in the armature."""
        if self.hierarchy is None:
            return None
        return JointTree(self.hierarchy, rest_matrices(armature_object, self.controls), self.controls == self.deform)


def make_bones(
    context: bpy.types.Context,
    armature_object: bpy.types.Object,
    decomposition: "Decomposition",
    hierarchy: JointHierarchy | None,
    root_bone: bool,
) -> background.Steps[RigBones]:
    """Generator: make the bones for ``decomposition``; returns RigBones. Yields (fraction, stage).

    A chain is a deforming bone and its mechanism parent in one place.
    hierarchy: the core.joint_hierarchy.JointHierarchy that parents them. root_bone: parent all to one bone at the
    origin.
    """
    bone_count = decomposition.bone_count
    placement, at_joints, still = yield from background.run_in_worker(lambda _: _placements(decomposition, hierarchy))
    chained, rigid = decomposition.bone_kind == "AFFINE", decomposition.bone_kind == "RIGID"
    digits = max(2, len(str(bone_count)))
    names: Sequence[str] = [f"bone_{number + 1:0{digits}}" for number in range(bone_count)]
    if hierarchy is not None:
        carried = np.bincount(decomposition.bones.ravel(), decomposition.weights.ravel(), bone_count)
        names = chain_names(hierarchy, placement.heads, carried)
    with edit_bones_of(context, armature_object) as edit_bones:
        parents = [_make_root(edit_bones, decomposition.rest) if root_bone else None] * bone_count
        controls: tuple[str, ...] = ()
        if hierarchy is not None:
            parents = _add(edit_bones, DEFORM_PREFIX if rigid else CONTROL_PREFIX, names, at_joints, parents)
            for bone, parent in enumerate(hierarchy.parents):
                if parent >= 0:
                    parents[bone].parent = parents[parent]
            _connect(parents, hierarchy)
            controls = deform = _names(parents)
        mechanism: tuple[str, ...] = ()
        if chained:
            parents = _add(edit_bones, MECHANISM_PREFIX, names, placement, parents)
            mechanism = _names(parents)
        if hierarchy is None or not rigid:
            deform = _names(_add(edit_bones, DEFORM_PREFIX, names, placement, parents))
    told = still if hierarchy is None else carried_along(decomposition.transforms, hierarchy)
    silent, mirrored = (tuple(controls[bone] for bone in np.flatnonzero(some)) for some in (still & ~told, told))
    bones = RigBones(deform, mechanism, controls, hierarchy, silent, mirrored)
    _show(armature_object, bones)
    return bones


def _placements(
    decomposition: "Decomposition", hierarchy: JointHierarchy | None
) -> tuple[Placement, Placement, np.ndarray]:
    """The bones where their vertices are, and at their joints, if there is a hierarchy; which of these do not turn."""
    skin = decomposition.rest, decomposition.bones, decomposition.weights
    # A bone that stretches along other axes than its own needs these axes: it cannot shear.
    own_axes = decomposition.bone_axes if decomposition.bone_kind == "SCALED" else None
    placement = place_bones(*skin, decomposition.bone_count, own_axes=own_axes)
    if hierarchy is None:
        return placement, placement, np.zeros(decomposition.bone_count, bool)
    motion = rigid_motion(decomposition.transforms, *skin)
    at_joints = place_at_joints(placement, hierarchy, *skin, hinge_axes(motion, hierarchy))
    return placement, at_joints, still_joints(motion, hierarchy)


def _add(
    edit_bones: bpy.types.ArmatureEditBones,
    prefix: str,
    names: Sequence[str],
    placement: Placement,
    parents: Sequence[bpy.types.EditBone | None],
) -> list:
    """Add a child bone to each of ``parents``; only bones with the deforming prefix deform."""
    made = []
    for number, parent in enumerate(parents):
        bone = edit_bones.new(f"{prefix}{names[number]}")
        bone.head = placement.heads[number]
        bone.tail = placement.heads[number] + placement.lengths[number] * placement.axes[number, :, 1]
        bone.align_roll(Vector(placement.axes[number, :, 2]))
        bone.parent = parent
        bone.use_connect = False
        bone.inherit_scale = "FULL"
        bone.use_deform = prefix == DEFORM_PREFIX
        made.append(bone)
    return made


def _connect(edit_bones: Sequence[bpy.types.EditBone], hierarchy: JointHierarchy) -> None:
    """Connect the bones that only rotate to the end of their parent, where they begin there. Others can only rotate,
    too, since their location is locked; see ``_show``."""
    for bone in np.flatnonzero(hierarchy.holding):
        child, parent = edit_bones[bone], edit_bones[hierarchy.parents[bone]]
        child.use_connect = (child.head - parent.tail).length < CONNECTED * parent.length


def _names(edit_bones: Iterable[bpy.types.EditBone]) -> tuple[str, ...]:
    return tuple(bone.name for bone in edit_bones)


def _make_root(edit_bones: bpy.types.ArmatureEditBones, rest: np.ndarray) -> bpy.types.EditBone:
    """Add a bone at the origin without keyframes."""
    bone = edit_bones.new(ROOT_NAME)
    bone.head = (0.0, 0.0, 0.0)
    bone.tail = (0.0, _ROOT_LENGTH * diagonal(rest), 0.0)
    bone.use_deform = False
    return bone


def _show(armature_object: bpy.types.Object, bones: RigBones) -> None:
    """Make bone collections; those of bones that animators do not pose are hidden. Joints that hold cannot be moved."""
    armature = armature_object.data
    armature.display_type = "OCTAHEDRAL"
    armature_object.show_in_front = True
    deform = make_bone_collection(armature, "Deform", bones.deform)
    if bones.mechanism:
        make_bone_collection(armature, "Mechanism", bones.mechanism).is_visible = False
    if bones.controls and bones.controls != bones.deform:
        make_bone_collection(armature, "Control", bones.controls)
        deform.is_visible = False
    if bones.hierarchy is not None:
        note_joints(armature_object, bones.controls)
        lock_locations(armature_object, dict(zip(bones.controls, bones.hierarchy.holding.tolist(), strict=True)))
