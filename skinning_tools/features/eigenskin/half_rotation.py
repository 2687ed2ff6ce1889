# SPDX-License-Identifier: GPL-3.0-or-later
"""The half-rotation bones under an EigenSkin: which joints get one, and making and removing them.

They are bone links, each the only one of its joint, of the mesh of the EigenSkin alone: other meshes keep their
weights, and may have such bones of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.armatures import check_armature, deformed_meshes
from ...blender.bone_weights import read_bone_weights
from ...blender.data_blocks import temporary_copy
from ...blender.helper_bones.bones import free_names, make_helper_bones, taken_names
from ...blender.helper_bones.link_rig import Joint, LinkPlan, constrain_links, link_specs
from ...blender.helper_bones.records import (
    BETWEEN,
    HALF,
    TWIST,
    Helper,
    deforming_parent,
    find_helpers,
    is_of_joint,
    next_number,
)
from ...blender.helper_bones.removal import remove_helpers, removed_on_failure, return_weights
from ...blender.helper_bones.shared_weights import SharedWeights
from ...blender.preconditions import check_bones, check_own_mesh, object_label
from ...blender.skin_reader import Skin, armature_of
from ...blender.weight_tools import check_unlocked
from ...core.errors import BadScene
from .example_pose import joint_place
from .record import eigenskin_record

if TYPE_CHECKING:
    from ...core.eigenskin import Examples, HalfRotations, Rig

_WORD = "half"


@dataclass(frozen=True, eq=False)
class HalfPlan:
    """The bones to make, in the order of ``halves``. skipped: taught joints that have links or twist bones already."""

    armature: bpy.types.Object
    shared: SharedWeights
    halves: "HalfRotations"
    plans: tuple[LinkPlan, ...]
    bone_names: tuple[str, ...]
    stretch: np.ndarray
    skipped: tuple[str, ...]

    def applied(self, examples: "Examples") -> "tuple[Rig, Examples]":
        """The rig and ``examples`` with the bones, and their weights taken, but not written."""
        indices = [self.shared.index(name) for name in self.bone_names]
        for count, plan in enumerate(self.plans, 1):
            indices += self.shared.add_names(plan.links)
            bones, weights = self.halves.rows(count, self.shared.max_influences)
            ends = [self.shared.index(name) for name in (plan.joint.start, plan.joint.end)]
            self.shared.take(plan.number, indices[-1:], ends, np.array(indices)[bones], weights)
        return self.halves.applied(examples, self.shared.max_influences, self.stretch)

    def notes(self) -> list[str]:
        if not self.skipped:
            return []
        return [f"{', '.join(self.skipped)}: no half-rotation bone, since the joint has links or twist bones"]


def half_helpers(mesh_object: bpy.types.Object) -> list[Helper]:
    """The half-rotation bones under the EigenSkin of a mesh."""
    record, armature = eigenskin_record(mesh_object), armature_of(mesh_object)
    if record is None or armature is None or not record.half_rotations:
        return []
    return [helper for helper in find_helpers(armature, (HALF,)) if helper.number in record.half_rotations]


def check_kept(mesh_object: bpy.types.Object, wanted: bool) -> None:
    """Raises BadScene if the last build has made half-rotation bones that are not ``wanted`` any more."""
    if not wanted and half_helpers(mesh_object):
        raise BadScene(
            f"The corrections of {object_label(mesh_object)} are built on half-rotation bones. Remove EigenSkin first, "
            "which returns their weights, or turn Half-Rotation Bones on again"
        )


def check_helped(mesh_object: bpy.types.Object) -> None:
    """Raises BadScene if half-rotation bones of a mesh cannot be made or removed. Cheap enough for a panel."""
    check_armature(armature_of(mesh_object))
    check_own_mesh(mesh_object, "its weights cannot be shared with half-rotation bones")


def plan_bones(mesh_object: bpy.types.Object, skin: Skin, rig: "Rig", rotations: np.ndarray) -> HalfPlan:
    """The half-rotation bones for the joints that examples with ``rotations`` (E, J, 4) turn, but for those that have
    one under the present EigenSkin. Raises BadScene."""
    from ...core.eigenskin import far_turned, half_rotations

    check_helped(mesh_object)
    armature = skin.armature
    own = {helper.number for helper in half_helpers(mesh_object)}
    others = [each for each in find_helpers(armature, (*BETWEEN, TWIST)) if each.kind != HALF or each.number in own]
    present = {(each.start, each.end): each.kind for each in others}
    order = {name: index for index, name in enumerate(skin.bone_names)}
    pairs, skipped = [], []
    for joint in np.flatnonzero(far_turned(rotations)):
        end = rig.joint_names[joint]
        start = deforming_parent(armature, end)
        if end not in order or start not in order:
            continue
        if (start, end) in present:
            skipped += [end] if present[start, end] != HALF else []
        else:
            pairs.append((start, end))
    check_unlocked([mesh_object], [name for pair in pairs for name in pair])
    shared = SharedWeights(mesh_object, armature)
    fixed = np.array([is_of_joint(armature.data.bones[name]) for name in skin.bone_names], bool)
    fixed |= shared.locked[[shared.index(name) for name in skin.bone_names]]
    places = [joint_place(mesh_object, armature, end) for _, end in pairs]
    joints = [(order[start], order[end], place) for (start, end), (place, _) in zip(pairs, places, strict=True)]
    halves = half_rotations(rig, rotations, joints, fixed)
    meshes = deformed_meshes(armature)
    taken, plans = taken_names(armature, meshes), []
    for number, (start, end) in enumerate(zip(halves.starts, halves.ends, strict=True), next_number(armature, meshes)):
        joint = Joint(HALF, skin.bone_names[start], skin.bone_names[end])
        plans.append(LinkPlan(joint, number, tuple(free_names(taken, joint.label, _WORD, 1)), ()))
    stretch = places[0][1] if places else np.eye(3)
    return HalfPlan(armature, shared, halves, tuple(plans), skin.bone_names, stretch, tuple(skipped))


@contextmanager
def bones_made(context: bpy.types.Context, plan: HalfPlan | None) -> Iterator[tuple[int, ...]]:
    """Make the bones for the block, with their weights; yields their numbers. Removes them if the block fails."""
    if plan is None or not plan.plans:
        yield ()
        return
    check_bones(
        plan.armature, [name for each in plan.plans for name in (each.joint.start, each.joint.end)], "BONE_GONE"
    )
    numbers = tuple(each.number for each in plan.plans)
    with removed_on_failure(context, plan.armature, numbers):
        make_helper_bones(
            context, plan.armature, [spec for each in plan.plans for spec in link_specs(plan.armature, each)]
        )
        for each in plan.plans:
            constrain_links(plan.armature, each)
        plan.shared.write()
        yield numbers


def without_bones(mesh_object: bpy.types.Object, skin: Skin, rig: "Rig") -> "Rig":
    """The rig of a mesh with the weights that it had without its half-rotation bones."""
    helpers = half_helpers(mesh_object)
    if not helpers:
        return rig
    with temporary_copy(mesh_object, own_data=True) as copy:
        # The user's locks are of the mesh that stays.
        for group in copy.vertex_groups:
            group.lock_weight = False
        return_weights(skin.armature, helpers, copy)
        earlier = read_bone_weights(copy, skin.armature, skin.bone_names)
    return replace(rig, bones=earlier.bones, weights=earlier.weights)


def remove_bones_of(context: bpy.types.Context, mesh_object: bpy.types.Object) -> int:
    """Remove the half-rotation bones under the EigenSkin of a mesh, and return their weights; the number of bones.

    Bones that a copy of the mesh uses, too, stay for it. Raises SkinningError, and then has changed nothing.
    """
    helpers, armature = half_helpers(mesh_object), armature_of(mesh_object)
    if not helpers:
        return 0
    check_helped(mesh_object)
    copies = [eigenskin_record(other) for other in deformed_meshes(armature) if other.data != mesh_object.data]
    used = {number for record in copies if record is not None for number in record.half_rotations}
    alone = [helper for helper in helpers if helper.number not in used]
    return_weights(armature, [helper for helper in helpers if helper.number in used], mesh_object)
    if alone:
        remove_helpers(context, armature, alone)
    return len(alone)
