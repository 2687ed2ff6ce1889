# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones of an armature: at which joints they are, how many, and whose weights they take."""

from dataclasses import dataclass

import numpy as np

from ...blender import background
from ...blender.bodies import read_skeleton, stretch_of
from ...blender.bone_selection import named_bones
from ...blender.skin_reader import rest_positions
from ...blender.weight_tools import check_meshes, check_unlocked
from ...blender.wording import counted
from ...core.errors import BadScene
from ...core.progress import checkpoint
from .joint_range import Joint, animated_turns, limited_turn
from .link_rig import LinkPlan, constrain_links, link_specs
from .removal import Removed, remove_helpers, removed_on_failure
from .rig import (
    LINKS,
    TWIST,
    Added,
    add_helper_bones,
    bone_record,
    bones_to_clear,
    deforming_parent,
    end_bone,
    find_helpers,
    free_names,
    helped_armature,
    mirrored_names,
    next_number,
)
from .settings import LinkSettings
from .weights import RECORD, SharedWeights, meshes_to_share, shares_taken

# A joint that turns less does not move in the animation: its range is not known.
_STILL = np.radians(1.0)

_WORDS = {LINKS: "link", TWIST: "twist"}


@dataclass(frozen=True)
class AddedLinks(Added):
    """counts: links of each joint, by its name. skipped: joints that turn too little, with the angle in radians."""

    kind: str
    counts: dict[str, int]
    skipped: dict[str, float]

    def summary(self) -> str:
        """The result in one line."""
        number = sum(self.counts.values())
        bones = counted(number, "twist bone" if self.kind == TWIST else "link")
        joints = ", ".join(f"{name} {count}" for name, count in list(self.counts.items())[:6])
        more = f" and {len(self.counts) - 6} more" if len(self.counts) > 6 else ""
        angles = ", ".join(f"{name} {np.degrees(turn):.0f}°" for name, turn in list(self.skipped.items())[:4])
        skipped = [f"turn too little: {angles}{' …' if len(self.skipped) > 4 else ''}"] if self.skipped else []
        return self.line(f"{bones} ({joints}{more})", *skipped)


def add_links(context, object, **given) -> background.Steps[AddedLinks]:
    """Generator: add links, as the LinkSettings ``given`` say, to the armature, or the one that deforms ``object``.

    All meshes that the armature deforms share their weights with them. All or nothing. Raises BadScene, BadSettings,
    BadWeights.
    """
    armature, given = helped_armature(context, object), LinkSettings(**given)
    names = [] if given.all_joints else named_bones(armature, given.joints or "")
    given.check()
    joints = _joints(armature, names, given)
    meshes = meshes_to_share(armature)
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
                else ", as far as their rotation limits and the action tell. Select the joints that "
                "are to get links, or limit the rotations of their bones"
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
        add_helper_bones(context, armature, [spec for plan in plans for spec in link_specs(armature, plan)])
        for plan in plans:
            constrain_links(armature, plan)
        for each in touched:
            each.write()
    scale = np.abs(armature.matrix_world.to_scale())
    uneven = np.ptp(scale) > 1e-4 * scale.max()
    notes = ["the armature is scaled unevenly, so turns are not shared evenly: apply its scale"] if uneven else []
    counts = {plan.joint.label: len(plan.links) for plan in plans}
    return AddedLinks(**shares_taken(armature, touched, notes), kind=given.kind, counts=counts, skipped=skipped)


def remove_links(context, object, joints: str = "", all_joints: bool = False, mirror: bool = False) -> Removed:
    """Remove the links of the ``joints``, or of all, and give the weights back. Raises BadScene."""
    armature = helped_armature(context, object)
    names = bones_to_clear(armature, joints, all_joints, mirror)
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
            raise BadScene(f'The bone "{name}" is a link, twist or bulge bone itself. Choose a bone of the skeleton')
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
    from ...core.binding.links import link_count

    if given.count and not given.all_joints:
        return dict.fromkeys(joints, given.count), {}
    limits = {joint: limited_turn(armature, joint) for joint in joints}
    waiting = [joint for joint in joints if limits[joint] is None]
    seen = (yield from animated_turns(context, armature, waiting)) if waiting else {}
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


def _plans(armature, meshes, counts: dict[Joint, int]) -> list[LinkPlan]:
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
        plans.append(LinkPlan(joint, number, tuple(names[:count]), tuple(names[count:])))
    return plans


def _with_effect(plans: list[LinkPlan], touched: list[SharedWeights], skip: bool) -> list[LinkPlan]:
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


def _share(each: SharedWeights, geometry: _Geometry, plan: LinkPlan, reach: float) -> None:
    """Give a joint's links their weights on a mesh."""
    from ...core.binding.links import joint_radius, link_weights, twist_weights

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
