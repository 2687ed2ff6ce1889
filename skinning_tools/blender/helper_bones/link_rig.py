# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones of a joint's links, and the constraints that make them follow it.

A link is at the rest position of its joint's child, has the same parent, and copies the child's transforms with its
share as the constraint's influence: Blender then interpolates rotation, stretch and place as
core.binding.links.link_matrices does, to single precision and up to half a turn. Copying the rotation only loses the
stretch, and the Armature constraint's blend does not share angles evenly (at 150° 4.5° off with Preserve Volume, 24°
without). A link that stands beside the joint copies a bone that does not deform, which the child carries there.

Twist links copy shares of the rotation of a bone that does not deform. That bone has the end bone's rotation, taken
from a child of the end with the rest pose of the links, and is then swung back along the bone, so that only the twist
is left. Neither kind needs a driver, and both follow the joint under constraints such as IK.
"""

from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ..armatures import NewBone
from .records import AIM, SKIN, TURN, TWIST, BoneRecord

# Length relative to the link's parent: long enough to click.
_LENGTH = 0.2


@dataclass(frozen=True)
class Joint:
    """start: the parent of a bend, or the twisting bone; end: the child, or the bone at its end."""

    kind: str
    start: str
    end: str

    @property
    def label(self) -> str:
        return self.start if self.kind == TWIST else self.end


@dataclass(frozen=True)
class LinkPlan:
    """links: the names of a joint's links; others: the names of the bones that pass on the rotation of a twist, or the
    child's transforms to the links' places. shares: of the turn, by default in even steps; offsets (n, 3): where the
    links stand, from the joint in the armature's space; None at the joint."""

    joint: Joint
    number: int
    links: tuple[str, ...]
    others: tuple[str, ...]
    shares: tuple[float, ...] = ()
    offsets: np.ndarray | None = None


def link_specs(armature: bpy.types.Object, plan: LinkPlan) -> list[tuple[NewBone, BoneRecord]]:
    """The bones of a joint's links."""
    joint, count = plan.joint, len(plan.links)
    start, end = (armature.data.bones[name] for name in (joint.start, joint.end))

    def spec(
        name: str, parent: bpy.types.Bone, matrix: Matrix, length: float, part: str, index: int = 0
    ) -> tuple[NewBone, BoneRecord]:
        record = BoneRecord(joint.kind, plan.number, part, index, joint.end)
        return NewBone(name, parent.name, matrix, length, part == SKIN), record

    if joint.kind != TWIST:
        offsets = np.zeros((count, 3)) if plan.offsets is None else plan.offsets
        places = [_placed(end.matrix_local, end.head_local + Vector(offset)) for offset in offsets]
        length = _LENGTH * end.length
        links = [
            spec(name, start, place, length, SKIN, index)
            for index, (name, place) in enumerate(zip(plan.links, places, strict=True), 1)
        ]
        aims = [] if plan.offsets is None else zip(plan.others, places, strict=True)
        return [*links, *(spec(name, end, place, length, AIM) for name, place in aims)]
    axis = start.tail_local - start.head_local
    specs = [
        spec(
            name,
            start,
            _placed(start.matrix_local, start.head_local + axis * (index / (count + 1))),
            start.length / (count + 1),
            SKIN,
            index,
        )
        for index, name in enumerate(plan.links, 1)
    ]
    aim, turn = plan.others
    specs.append(spec(aim, end, _placed(start.matrix_local, end.head_local), _LENGTH * start.length, AIM))
    # At the head: a bone cannot track a target at its own position.
    specs.append(spec(turn, start, start.matrix_local, _LENGTH * start.length, TURN))
    return specs


def constrain_links(armature: bpy.types.Object, plan: LinkPlan) -> None:
    """Make the links of a joint follow it."""
    from ...core.binding.links import link_shares

    shares = plan.shares or link_shares(len(plan.links))
    if plan.joint.kind != TWIST:
        followed = plan.others or [plan.joint.end] * len(plan.links)
        for name, target, share in zip(plan.links, followed, shares, strict=True):
            _follow(armature, name, "COPY_TRANSFORMS", target, float(share))
        return
    aim, turn = plan.others
    _follow(armature, turn, "COPY_ROTATION", aim)
    track = _follow(armature, turn, "DAMPED_TRACK", plan.joint.start)
    track.track_axis, track.head_tail = "TRACK_Y", 1.0
    for name, share in zip(plan.links, shares, strict=True):
        _follow(armature, name, "COPY_ROTATION", turn, float(share))


def _follow(
    armature: bpy.types.Object, name: str, kind: str, target: str, influence: float = 1.0
) -> bpy.types.Constraint:
    constraint = armature.pose.bones[name].constraints.new(kind)
    constraint.target, constraint.subtarget = armature, target
    if kind != "DAMPED_TRACK":
        # In world space, the matrices of a mirrored armature are not rotations.
        constraint.target_space = constraint.owner_space = "POSE"
    constraint.influence = influence
    return constraint


def _placed(matrix: Matrix, head: Vector) -> Matrix:
    """A copy of a rest matrix with another head."""
    result = matrix.copy()
    result.translation = head
    return result
