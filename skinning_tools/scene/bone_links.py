# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones in an armature: what they follow, and whose weights they take.

A link stands where its joint's child stands at rest, is carried by the parent, and copies the child's transforms with
its share as the constraint's influence: Blender then interpolates rotation, stretch and place as
core.binding.links.link_matrices does, to single precision and up to half a turn. Copying the rotation only loses the
stretch, and the Armature constraint's blend does not share angles evenly (at 150° 4.5° off with Preserve Volume, 24°
without).

Twist links copy shares of the rotation of a bone that does not deform. That one has the end bone's rotation, as a child
of the end with the same rest pose as the links carries it over, and is then swung back along the bone: what is left is
the twist. Neither needs a driver, and both follow what constraints such as IK make of the joint.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.errors import BadScene, BadSettings
from ..core.progress import checkpoint
from . import background
from .bodies import read_skeleton, stretch_of
from .eigenskin_record import has_record
from .joint_helper_removal import Removed, remove_helpers, removed_on_failure
from .joint_helper_rig import (
    AIM,
    LINKS,
    SKIN,
    TURN,
    TWIST,
    BoneRecord,
    BoneSpec,
    add_bones,
    bone_record,
    check_armature,
    deformed_meshes,
    deforming_parent,
    end_bone,
    find_helpers,
    free_names,
    mirrored_names,
    next_number,
    placed,
)
from .joint_helper_weights import RECORD, SharedWeights, check_meshes, check_unlocked
from .skin_reader import rest_positions
from .temporary_scene import evaluate_frame, temporary_scene
from .wording import counted

if TYPE_CHECKING:
    from .background import Steps

# Frames at most at which a joint's range is looked for.
_MOST_FRAMES = 500

# A joint that turns less does not move in the animation: its range is not known.
_STILL = np.radians(1.0)

# Of the bone that carries a link: long enough to be picked.
_LENGTH = 0.2

_WORDS = {LINKS: "link", TWIST: "twist"}


@dataclass(frozen=True)
class LinkSettings:
    """How links are added; angles in radians.

    count: 0 takes it from the joint's range, at most ``most``. reach: how far from the joint the blend runs, in the
    scene's units; 0 keeps the one that is there. mirror: the other side too.
    """

    kind: str = LINKS
    threshold: float = np.pi / 3
    most: int = 3
    count: int = 0
    reach: float = 0.0
    mirror: bool = False
    all_joints: bool = False

    def check(self) -> None:
        """Raises BadSettings."""
        if not 0 < self.threshold <= np.pi:
            raise BadSettings(f"The threshold must be above 0° and at most 180°, not {np.degrees(self.threshold):g}°")
        for name, value, least in (("Most", self.most, 1), ("Count", self.count, 0)):
            if value < least:
                raise BadSettings(f"{name} must be at least {least}, not {value}")
        if not (self.reach >= 0 and np.isfinite(self.reach)):
            raise BadSettings(f"The reach must not be negative, not {self.reach:g}")


@dataclass(frozen=True)
class Joint:
    """start: the parent of a bend, or the bone that is to twist; end: the child, or the bone at its end."""

    kind: str
    start: str
    end: str

    @property
    def label(self) -> str:
        return self.end if self.kind == LINKS else self.start


@dataclass(frozen=True)
class _Plan:
    """links: the names of a joint's links; others: for twist, those of the bones that pass the rotation on."""

    joint: Joint
    number: int
    links: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True)
class AddedLinks:
    """counts: links of each joint, by its name. skipped: joints that turn too little, with the angle in radians."""

    armature_name: str
    kind: str
    counts: dict[str, int]
    skipped: dict[str, float]
    mesh_count: int
    vertex_count: int
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """The result in one line."""
        number = sum(self.counts.values())
        bones = counted(number, "twist bone" if self.kind == TWIST else "link")
        joints = ", ".join(f"{name} {count}" for name, count in list(self.counts.items())[:6])
        more = f" and {len(self.counts) - 6} more" if len(self.counts) > 6 else ""
        place = "1 mesh" if self.mesh_count == 1 else f"{self.mesh_count} meshes"
        text = f"{self.armature_name}: {bones} ({joints}{more}) with weights of {self.vertex_count} vertices on {place}"
        if self.skipped:
            angles = ", ".join(f"{name} {np.degrees(turn):.0f}°" for name, turn in list(self.skipped.items())[:4])
            text += f"; turn too little: {angles}{' …' if len(self.skipped) > 4 else ''}"
        return "; ".join([text, *self.notes])


def add_links(context, armature, names: Iterable[str], given: LinkSettings) -> "Steps[AddedLinks]":
    """Generator: add links at the joints of the bones ``names``, or of all that turn enough with ``all_joints``.

    All meshes that the armature deforms share their weights with them. All or nothing. Raises BadScene, BadSettings,
    BadWeights.
    """
    given.check()
    check_armature(armature)
    joints = _joints(armature, names, given)
    meshes = deformed_meshes(armature)
    if not meshes:
        raise BadScene(f'The armature "{armature.name}" deforms no mesh. Bind one to it first')
    yield 0.0, "Reading weights"
    shared = []
    for ob in meshes:
        shared.append(SharedWeights(ob, armature))
        yield 0.1, "Reading weights"
    joints = _with_weights(armature, joints, shared, given.all_joints)
    counts, skipped = yield from _counts(context, armature, joints, given)
    if not counts:
        angles = ", ".join(f"{name} {np.degrees(turn):.0f}°" for name, turn in list(skipped.items())[:6])
        raise BadScene(
            f"No joint turns by more than {np.degrees(given.threshold):.0f}°"
            + (
                f" ({angles}). Lower the threshold, or set Count to add links in any case"
                if angles
                else ", as far as "
                "rotation limits and an action tell. Give the joints either, or name those that are to get links"
            )
        )
    concerned = [each for each in shared if any(each.has_weights((joint.start, joint.end)) for joint in counts)]
    objects = [each.object for each in concerned]
    check_meshes(objects, "its weights cannot be shared with links")
    check_unlocked(objects, [name for joint in counts for name in _giving(joint)])
    plans = _plans(armature, meshes, counts)
    geometry = {each.object: _Geometry.read(each.object, armature) for each in concerned}

    def work(progress):
        for done, each in enumerate(concerned):
            for plan in plans:
                checkpoint(progress, done / len(concerned), "Sharing weights")
                _share(each, geometry[each.object], plan, given.reach)

    yield from background.run_in_worker(work)
    touched = [each for each in concerned if each.changes]
    plans = _with_effect(plans, touched, given.all_joints)
    with removed_on_failure(context, armature, [plan.number for plan in plans]):
        add_bones(context, armature, [spec for plan in plans for spec in _specs(armature, plan)])
        for plan in plans:
            _constrain(armature, plan)
        for each in touched:
            each.write()
    return AddedLinks(
        armature.name,
        given.kind,
        {plan.joint.label: len(plan.links) for plan in plans},
        skipped,
        len(touched),
        sum(int(each.changed.sum()) for each in touched),
        tuple(_notes(armature, touched)),
    )


def _notes(armature, touched: list[SharedWeights]) -> Iterable[str]:
    """What the user should know besides."""
    corrected = [each.object.name for each in touched if has_record(each.object)]
    if corrected:
        yield f"build the EigenSkin of {', '.join(corrected)} anew"
    scale = np.abs(armature.matrix_world.to_scale())
    if np.ptp(scale) > 1e-4 * scale.max():
        yield "the armature is scaled unevenly, so turns are not shared evenly: apply its scale"


def remove_links(context, armature, names: Iterable[str] | None) -> Removed:
    """Remove the links of the joints of the bones ``names`` (all of them if None), and give the weights back.

    Raises BadScene.
    """
    check_armature(armature)
    helpers = find_helpers(armature, (LINKS, TWIST))
    if not helpers:
        raise BadScene(f'The armature "{armature.name}" has no bone links')
    if names is not None:
        wanted = set(names)
        helpers = [helper for helper in helpers if wanted & {helper.joint, *helper.bones}]
        if not helpers:
            raise BadScene("None of the bones has links. Select the child bones of the joints, or remove all")
    return remove_helpers(context, armature, helpers)


def _giving(joint: Joint) -> tuple[str, ...]:
    """The bones whose weights a joint's links share."""
    return (joint.start, joint.end) if joint.kind == LINKS else (joint.start,)


def _joints(armature, names, given: LinkSettings) -> list[Joint]:
    """Raises BadScene where a bone that was asked for has no such joint, or has links already."""
    if given.all_joints:
        names = [bone.name for bone in armature.data.bones if bone.use_deform and bone_record(bone) is None]
    else:
        names = list(names)
        if not names:
            raise BadScene(
                f'No bone of "{armature.name}" is selected. Select the child bones of the joints in Pose Mode'
            )
    if given.mirror:
        names = mirrored_names(armature, names)
    linked = {(helper.start, helper.end) for helper in find_helpers(armature, (LINKS, TWIST))}
    joints = []
    for name in names:
        bone = armature.data.bones[name]
        if given.kind == LINKS:
            joint = Joint(LINKS, deforming_parent(armature, name), name)
            lacking = f'The bone "{name}" has no parent that deforms, so there is no joint to link'
        else:
            joint = Joint(TWIST, name, end_bone(armature, name))
            lacking = f'The bone "{name}" carries no deforming bone at its end, whose twist it could share'
        if given.all_joints:
            if joint.start and joint.end and (joint.start, joint.end) not in linked:
                joints.append(joint)
            continue
        if not bone.use_deform:
            raise BadScene(f'The bone "{name}" does not deform. Choose bones that do')
        if bone_record(bone) is not None:
            raise BadScene(f'The bone "{name}" is a helper bone itself. Choose a bone of the skeleton')
        if not (joint.start and joint.end):
            raise BadScene(lacking)
        if (joint.start, joint.end) in linked:
            raise BadScene(
                f'The joint of "{joint.start}" and "{joint.end}" has links or twist bones already. Remove them first'
            )
        joints.append(joint)
    return joints


def _with_weights(armature, joints: list[Joint], shared: list[SharedWeights], skip: bool) -> list[Joint]:
    """The joints that move vertices. Raises BadScene where one does not, unless these are to be skipped."""
    found = [joint for joint in joints if any(each.has_weights([_giving(joint)[-1]]) for each in shared)]
    if not skip and len(found) < len(joints):
        lost = next(joint for joint in joints if joint not in found)
        raise BadScene(
            f'The bone "{_giving(lost)[-1]}" of "{armature.name}" has no weights on any mesh. Bind one first'
        )
    return found


def _counts(context, armature, joints: list[Joint], given: LinkSettings):
    """Generator: the number of links of each joint that gets any, and the turns of the joints, by name, that do not."""
    from ..core.binding.links import link_count

    if given.count and not given.all_joints:
        return dict.fromkeys(joints, given.count), {}
    limits = {joint: _limited_turn(armature, joint) for joint in joints}
    waiting = [joint for joint in joints if limits[joint] is None]
    seen = (yield from _animated_turns(context, armature, waiting)) if waiting else {}
    counts, skipped = {}, {}
    for joint in joints:
        turn = limits[joint] if limits[joint] is not None else seen.get(joint)
        if turn is None or (limits[joint] is None and turn < _STILL):
            # Nothing tells how far it turns: as for a half turn where the joint was asked for.
            turn = 0.0 if given.all_joints else np.pi
        number = link_count(turn, given.threshold, given.most)
        if number:
            counts[joint] = given.count or number
        elif not given.all_joints:
            skipped[joint.label] = turn
    return counts, skipped


def _limited_turn(armature, joint: Joint) -> float | None:
    """The largest turn that the limits of a joint's end bone allow: those of a Limit Rotation constraint, else of IK.
    None where it has neither."""
    from ..core.binding.links import turn_of_limits

    bone = armature.pose.bones[joint.end]
    ranges = next((found for found in map(_constraint_limits, bone.constraints) if found), None) or _ik_limits(bone)
    if ranges is None:
        return None
    lowest, highest = np.array(ranges).T
    if joint.kind == TWIST:
        return float(min(max(abs(lowest[1]), abs(highest[1])), np.pi))
    return turn_of_limits(lowest, highest)


def _constraint_limits(constraint) -> list[tuple[float, float]] | None:
    """(least, most) by axis."""
    if constraint.type != "LIMIT_ROTATION" or not constraint.enabled or constraint.influence == 0:
        return None
    if constraint.owner_space != "LOCAL" or not any(getattr(constraint, f"use_limit_{axis}") for axis in "xyz"):
        return None
    return [
        (getattr(constraint, f"min_{axis}"), getattr(constraint, f"max_{axis}"))
        if getattr(constraint, f"use_limit_{axis}")
        else (-np.pi, np.pi)
        for axis in "xyz"
    ]


def _ik_limits(bone) -> list[tuple[float, float]] | None:
    if not any(getattr(bone, f"use_ik_limit_{axis}") for axis in "xyz"):
        return None
    ranges = []
    for axis in "xyz":
        locked, limited = getattr(bone, f"lock_ik_{axis}"), getattr(bone, f"use_ik_limit_{axis}")
        limits = (getattr(bone, f"ik_min_{axis}"), getattr(bone, f"ik_max_{axis}")) if limited else (-np.pi, np.pi)
        ranges.append((0.0, 0.0) if locked else limits)
    return ranges


def _animated_turns(context, armature, joints: list[Joint]):
    """Generator: the largest turn from rest of each joint over the armature's animation; {} where it has none."""
    frames = _frames(context.scene, armature)
    if not len(frames):
        return {}
    names = list(dict.fromkeys(name for joint in joints for name in (joint.start, joint.end)))
    poses = []
    with temporary_scene(context.scene, [armature]) as scene:
        hidden = armature.hide_viewport
        armature.hide_viewport = False
        try:
            for done, frame in enumerate(frames):
                evaluated = armature.evaluated_get(evaluate_frame(scene, float(frame)))
                poses.append([np.array(evaluated.pose.bones[name].matrix) for name in names])
                yield 0.1 + 0.4 * done / len(frames), "Looking for the joints' range"
        finally:
            armature.hide_viewport = hidden
    rest = np.array([np.array(armature.data.bones[name].matrix_local) for name in names], dtype=np.float64)
    moved = np.array(poses, dtype=np.float64) @ np.linalg.inv(rest)
    order = {name: index for index, name in enumerate(names)}
    return {
        joint: _turn_between(joint, moved[:, order[joint.start]], moved[:, order[joint.end]], rest[order[joint.start]])
        for joint in joints
    }


def _turn_between(joint: Joint, start: np.ndarray, end: np.ndarray, rest: np.ndarray) -> float:
    """The largest angle between two bones' matrices (F, 4, 4) from rest to pose."""
    from ..core import quaternions
    from ..core.binding.links import largest_turn, swing_and_twist
    from ..core.deform.polar import polar_decomposition

    usable = np.isfinite(start).all(axis=(1, 2)) & np.isfinite(end).all(axis=(1, 2))
    turns = [polar_decomposition(matrices[usable, :3, :3])[0] for matrices in (start, end)]
    relative = quaternions.from_matrices(turns[0].swapaxes(1, 2) @ turns[1])
    return largest_turn(swing_and_twist(relative, rest[:3, 1])[1] if joint.kind == TWIST else relative)


def _frames(scene, armature) -> np.ndarray:
    """Frames at which an armature that is animated is looked at: its action's, else the scene's; none where nothing
    moves it."""
    animation = armature.animation_data
    if animation is not None and animation.action is not None:
        first, last = animation.action.frame_range
    elif (animation is not None and (animation.nla_tracks or animation.drivers)) or _is_constrained(armature):
        first, last = scene.frame_start, scene.frame_end
    else:
        return np.zeros(0)
    number = int(last) - int(first) + 1
    return np.unique(np.linspace(int(first), int(last), max(min(number, _MOST_FRAMES), 1)).round())


def _is_constrained(armature) -> bool:
    own = {name for helper in find_helpers(armature) for name in helper.bones}
    return any(len(bone.constraints) for bone in armature.pose.bones if bone.name not in own)


def _plans(armature, meshes, counts: dict[Joint, int]) -> list[_Plan]:
    taken: set[str] = set()
    plans = []
    for number, (joint, count) in enumerate(counts.items(), next_number(armature, meshes, RECORD)):
        words = [(_WORDS[joint.kind], count)]
        if joint.kind == TWIST:
            words += [("twist_aim", 1), ("twist_turn", 1)]
        names = []
        for word, wanted in words:
            names += free_names(armature, meshes, joint.label, word, wanted, {*taken, *names})
        taken.update(names)
        plans.append(_Plan(joint, number, tuple(names[:count]), tuple(names[count:])))
    return plans


def _with_effect(plans: list[_Plan], touched: list[SharedWeights], skip: bool) -> list[_Plan]:
    """The plans whose links got weights. Raises BadScene where one did not, or none where these are to be skipped."""
    found = [plan for plan in plans if any(plan.number in each.changes for each in touched)]
    if not found or (not skip and len(found) < len(plans)):
        joint = next(plan.joint for plan in plans if plan not in found)
        if joint.kind == TWIST:
            raise BadScene(
                f'No vertex with weights of "{joint.start}" is beside it, so twist bones have nothing to take. '
                "Check where mesh and armature are at rest"
            )
        raise BadScene(
            f'No vertex has weights of both "{joint.start}" and "{joint.end}", so links between them have nothing to '
            "take. Smooth the weights at the joint, or set Reach to blend them anew"
        )
    return found


def _specs(armature, plan: _Plan) -> list[BoneSpec]:
    """The bones of a joint's links."""
    joint, count = plan.joint, len(plan.links)
    start, end = (armature.data.bones[name] for name in (joint.start, joint.end))

    def spec(name, parent, matrix, length, part, index=0):
        return BoneSpec(name, parent.name, matrix, length, BoneRecord(joint.kind, plan.number, part, index, joint.end))

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


def _constrain(armature, plan: _Plan) -> None:
    """Make the links of a joint follow it."""
    from ..core.binding.links import link_shares

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


@dataclass(frozen=True, eq=False)
class _Geometry:
    """A mesh's rest positions and all bones at rest in the space that binding works in."""

    rest: np.ndarray
    heads: dict[str, np.ndarray]
    tails: dict[str, np.ndarray]

    @classmethod
    def read(cls, object, armature) -> "_Geometry":
        names = armature.data.bones.keys()
        skeleton = read_skeleton(object, armature, names)
        rest = rest_positions(object.data) @ stretch_of(object).T
        return cls(rest, dict(zip(names, skeleton.heads, strict=True)), dict(zip(names, skeleton.tails, strict=True)))


def _share(each: SharedWeights, geometry: _Geometry, plan: _Plan, reach: float) -> None:
    """Give a joint's links their weights on a mesh."""
    from ..core.binding.links import joint_radius, link_weights, twist_weights

    joint = plan.joint
    own = each.add_names(plan.links)
    start = each.index(joint.start)
    if not each.has_weights(_giving(joint)):
        return
    common = {"max_influences": each.max_influences, "locked": each.locked}
    if joint.kind == TWIST:
        head, tail = geometry.heads[joint.start], geometry.tails[joint.start]
        rows = twist_weights(geometry.rest, each.bones, each.weights, [start, *own], head, tail, **common)
        each.take(plan.number, own, [start], *rows)
        return
    end = each.index(joint.end)
    if reach > 0:
        place = geometry.heads[joint.end]
        along = sum(_direction(geometry, name) for name in (joint.start, joint.end))
        # Of bones that fold back onto each other, one will do.
        along = along if np.linalg.norm(along) > 1e-6 else _direction(geometry, joint.end)
        radius = joint_radius(geometry.rest, each.bones, each.weights, end, place, along)
        common |= {"joint": place, "direction": along, "reach": reach, "radius": radius}
    rows = link_weights(geometry.rest, each.bones, each.weights, [start, *own, end], **common)
    each.take(plan.number, own, [start, end], *rows)


def _direction(geometry: _Geometry, name: str) -> np.ndarray:
    along = geometry.tails[name] - geometry.heads[name]
    length = np.linalg.norm(along)
    return along / length if length > 0 else along
