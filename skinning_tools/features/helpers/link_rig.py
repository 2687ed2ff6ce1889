# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones of a joint's links, and the constraints that make them follow it.

A link stands where its joint's child stands at rest, is carried by the parent, and copies the child's transforms with
its share as the constraint's influence: Blender then interpolates rotation, stretch and place as
core.binding.links.link_matrices does, to single precision and up to half a turn. Copying the rotation only loses the
stretch, and the Armature constraint's blend does not share angles evenly (at 150° 4.5° off with Preserve Volume, 24°
without).

Twist links copy shares of the rotation of a bone that does not deform. That one has the end bone's rotation, as a child
of the end with the same rest pose as the links carries it over, and is then swung back along the bone: what is left is
the twist. Neither needs a driver, and both follow what constraints such as IK make of the joint.
"""

from dataclasses import dataclass

from ...blender.armatures import NewBone
from .joint_range import Joint
from .rig import AIM, LINKS, SKIN, TURN, BoneRecord, placed

# Of the bone that carries a link: long enough to be picked.
_LENGTH = 0.2


@dataclass(frozen=True)
class LinkPlan:
    """links: the names of a joint's links; others: for twist, those of the bones that pass the rotation on."""

    joint: Joint
    number: int
    links: tuple[str, ...]
    others: tuple[str, ...]


def link_specs(armature, plan: LinkPlan) -> list[tuple[NewBone, BoneRecord]]:
    """The bones of a joint's links."""
    joint, count = plan.joint, len(plan.links)
    start, end = (armature.data.bones[name] for name in (joint.start, joint.end))

    def spec(name, parent, matrix, length, part, index=0):
        record = BoneRecord(joint.kind, plan.number, part, index, joint.end)
        return NewBone(name, parent.name, matrix, length, part == SKIN), record

    if joint.kind == LINKS:
        return [
            spec(name, start, end.matrix_local, _LENGTH * end.length, SKIN, index)
            for index, name in enumerate(plan.links, 1)
        ]
    axis = start.tail_local - start.head_local
    specs = [
        spec(
            name,
            start,
            placed(start.matrix_local, start.head_local + axis * (index / (count + 1))),
            start.length / (count + 1),
            SKIN,
            index,
        )
        for index, name in enumerate(plan.links, 1)
    ]
    aim, turn = plan.others
    specs.append(spec(aim, end, placed(start.matrix_local, end.head_local), _LENGTH * start.length, AIM))
    # At the head: where a bone tracks to must not be where it is.
    specs.append(spec(turn, start, start.matrix_local, _LENGTH * start.length, TURN))
    return specs


def constrain_links(armature, plan: LinkPlan) -> None:
    """Make the links of a joint follow it."""
    from ...core.binding.links import link_shares

    shares = link_shares(len(plan.links))
    if plan.joint.kind == LINKS:
        for name, share in zip(plan.links, shares, strict=True):
            _follow(armature, name, "COPY_TRANSFORMS", plan.joint.end, float(share))
        return
    aim, turn = plan.others
    _follow(armature, turn, "COPY_ROTATION", aim)
    track = _follow(armature, turn, "DAMPED_TRACK", plan.joint.start)
    track.track_axis, track.head_tail = "TRACK_Y", 1.0
    for name, share in zip(plan.links, shares, strict=True):
        _follow(armature, name, "COPY_ROTATION", turn, float(share))


def _follow(armature, name: str, kind: str, target: str, influence=1.0):
    constraint = armature.pose.bones[name].constraints.new(kind)
    constraint.target, constraint.subtarget = armature, target
    if kind != "DAMPED_TRACK":
        # In the world's space a mirrored armature has no rotations to copy.
        constraint.target_space = constraint.owner_space = "POSE"
    constraint.influence = influence
    return constraint
