# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones of an armature: their joints, their number, and the weights they take."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np

from ...blender import background
from ...blender.bodies import read_skeleton, stretch_of
from ...blender.bone_selection import named_bones
from ...blender.figures import Figure, each
from ...blender.helper_bones.bones import free_names, make_helper_bones, taken_names
from ...blender.helper_bones.link_rig import Joint, LinkPlan, constrain_links, link_specs
from ...blender.helper_bones.records import (
    BETWEEN,
    LINKS,
    TWIST,
    bone_record,
    check_no_helper,
    deforming_parent,
    find_helpers,
    next_number,
)
from ...blender.helper_bones.removal import Removed, remove_helpers, removed_on_failure
from ...blender.helper_bones.shared_weights import SharedWeights
from ...blender.preconditions import check_bone_deforms, unmet
from ...blender.skin_reader import rest_positions
from ...blender.weight_tools import check_meshes, check_unlocked
from ...core.errors import BadScene, BadSettings
from ...core.geometry import unit
from ...core.progress import Progress, checkpoint
from .bulge_places import inside_of_bend
from .joint_range import animated_ranges, limited_range
from .joints import bones_to_clear, end_bone, helped_armature, mirrored_names, unit_scale
from .settings import LinkSettings
from .shared_weights import Added, meshes_to_share, shares_taken

# A joint that turns less does not move in the animation: its range is unknown.
_STILL = np.radians(1.0)

_WORDS = {LINKS: "link", TWIST: "twist"}


@dataclass(frozen=True)
class AddedLinks(Added):
    """counts: links of each joint, by its name. skipped: joints that turn too little, with the angle in radians."""

    kind: str
    counts: dict[str, int]
    skipped: dict[str, float]

    def added(self) -> list[Figure]:
        word = "Twist bones" if self.kind == TWIST else "Links"
        skipped = {name: math.degrees(turn) for name, turn in self.skipped.items()}
        return [
            *each(f"{word} of {{}}", self.counts, "added"),
            *each("Range of {}", skipped, "skipped_degrees", "{:.0f}°, none"),
        ]


def add_links(
    context: bpy.types.Context, active: bpy.types.Object | None, **given: Any
) -> background.Steps[AddedLinks]:
    """Generator: add links, by the LinkSettings ``given``, to the armature ``active`` or the one that deforms it.

    All meshes that the armature deforms share their weights with the links. All or nothing. Raises BadScene,
    BadSettings, BadWeights.
    """
    armature, settings = helped_armature(context, active), LinkSettings(**given)
    names = [] if settings.all_joints else named_bones(armature, settings.joints or "")
    joints = _joints(armature, names, settings)
    meshes = meshes_to_share(armature)
    yield 0.0, "Reading weights"
    shared = []
    for ob in meshes:
        shared.append(SharedWeights(ob, armature))
        yield 0.1, "Reading weights"
    joints = _with_weights(armature, joints, shared, settings.all_joints)
    counts, skipped, omitted = yield from _counts(context, armature, joints, settings)
    if not counts:
        raise _nothing_turns(settings.threshold, skipped)
    concerned = [each for each in shared if any(each.has_weights((joint.start, joint.end)) for joint in counts)]
    objects = [each.mesh_object for each in concerned]
    check_meshes(objects, "its weights cannot be shared with links")
    check_unlocked(objects, [name for joint in counts for name in _giving(joint)])
    plans, unseen = _plans(context, armature, meshes, counts, settings)
    geometry = {each.mesh_object: _Geometry.read(each.mesh_object, armature) for each in concerned}

    def work(progress: Progress) -> None:
        for done, each in enumerate(concerned):
            for plan in plans:
                checkpoint(progress, done / len(concerned), "Sharing weights")
                _share(each, geometry[each.mesh_object], plan, settings.reach)

    yield from background.part_of(background.run_in_worker(work), 0.5, 1.0)
    touched = [each for each in concerned if each.changes]
    plans = _with_effect(plans, touched, settings.all_joints)
    with removed_on_failure(context, armature, [plan.number for plan in plans]):
        make_helper_bones(context, armature, [spec for plan in plans for spec in link_specs(armature, plan)])
        for plan in plans:
            constrain_links(armature, plan)
        for each in touched:
            each.write()
    scale = np.abs(armature.matrix_world.to_scale())
    uneven = np.ptp(scale) > 1e-4 * scale.max()
    notes = ["the armature is scaled unevenly, so links do not share turns evenly: apply its scale"] if uneven else []
    by_name = {plan.joint.label: len(plan.links) for plan in plans}
    return AddedLinks(
        **shares_taken(armature, touched, list(dict.fromkeys([*notes, *omitted, *unseen]))),
        kind=settings.kind,
        counts=by_name,
        skipped=skipped,
    )


def _nothing_turns(threshold: float, skipped: dict[str, float]) -> BadScene:
    """Why no joint gets links. skipped: the ranges of the joints that turn too little, in radians."""
    angles = ", ".join(f"{name} {np.degrees(turn):.0f}°" for name, turn in list(skipped.items())[:6])
    most = np.degrees(threshold)
    return BadScene(
        f"No joint moves through more than {most:.0f}° ({angles}). Lower the threshold, or set Count to add links "
        "in any case"
        if angles
        else f"No joint moves through more than {most:.0f}°, judging by their rotation limits and the actions. "
        "Select the joints to link, or limit the rotations of their bones"
    )


def remove_links(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    joints: str = "",
    all_joints: bool = False,
    mirror: bool = False,
) -> Removed:
    """Remove the links of the ``joints``, or of all joints, and restore the weights. Raises BadScene."""
    armature = helped_armature(context, active)
    names = bones_to_clear(armature, joints, all_joints, mirror)
    helpers = find_helpers(armature, (LINKS, TWIST))
    if not helpers:
        raise BadScene(f'The armature "{armature.name}" has no bone links')
    if names is not None:
        wanted = set(names)
        helpers = [helper for helper in helpers if wanted & {helper.label, *helper.bones}]
        if not helpers:
            raise BadScene("None of the bones has links. Select the child bones of the joints, or remove all")
    return remove_helpers(context, armature, helpers)


def _giving(joint: Joint) -> tuple[str, ...]:
    """The bones whose weights a joint's links share."""
    return (joint.start, joint.end) if joint.kind == LINKS else (joint.start,)


def _joints(armature: bpy.types.Object, names: Sequence[str], settings: LinkSettings) -> list[Joint]:
    """The joints to link. Raises BadScene if a named bone has no such joint, or has links already; with
    ``mirror``, only if all joints have."""
    if settings.all_joints:
        names = [bone.name for bone in armature.data.bones if bone.use_deform and bone_record(bone) is None]
    else:
        names = list(names)
        if not names:
            remedy = "Select the child bones of the joints in Pose Mode"
            raise unmet("NO_BONE_SELECTED", armature=armature, remedy=remedy)
    if settings.mirror:
        names = mirrored_names(armature, names)
    linked = {(helper.start, helper.end) for helper in find_helpers(armature, (*BETWEEN, TWIST))}
    joints: list[Joint] = []
    present: list[Joint] = []
    for name in names:
        if settings.kind == LINKS:
            joint = Joint(LINKS, deforming_parent(armature, name), name)
            lacking = f'The bone "{name}" has no parent that deforms, so there is no joint to link'
        else:
            joint = Joint(TWIST, name, end_bone(armature, name))
            lacking = f'The bone "{name}" has no deforming child at its end whose twist it could share'
        if settings.all_joints:
            if joint.start and joint.end and (joint.start, joint.end) not in linked:
                joints.append(joint)
            continue
        check_bone_deforms(armature, name)
        check_no_helper(armature, name)
        if not (joint.start and joint.end):
            raise BadScene(lacking)
        (present if (joint.start, joint.end) in linked else joints).append(joint)
    if present and not (settings.mirror and joints):
        raise BadScene(
            f'The joint of "{present[0].start}" and "{present[0].end}" already has links, twist bones or a '
            "half-rotation bone. Remove them first"
        )
    return joints


def _with_weights(
    armature: bpy.types.Object, joints: list[Joint], shared: list[SharedWeights], skip: bool
) -> list[Joint]:
    """The joints that move vertices. Raises BadScene if one does not, unless ``skip``."""
    found = [joint for joint in joints if any(each.has_weights([_giving(joint)[-1]]) for each in shared)]
    if not skip and len(found) < len(joints):
        lost = next(joint for joint in joints if joint not in found)
        raise unmet("BONE_WITHOUT_WEIGHTS", armature=armature, bone=_giving(lost)[-1])
    return found


def _counts(
    context: bpy.types.Context, armature: bpy.types.Object, joints: list[Joint], settings: LinkSettings
) -> background.Steps[tuple[dict[Joint, int], dict[str, float], tuple[str, ...]]]:
    """Generator: the number of links of each joint that gets any; the ranges of the other joints, by name; and notes on
    what Blender left out of the animation."""
    from ...core.binding.links import link_count

    if settings.count and not settings.all_joints:
        return dict.fromkeys(joints, settings.count), {}, ()
    limits = {joint: limited_range(armature, joint) for joint in joints}
    waiting = [joint for joint in joints if limits[joint] is None]
    seen, omitted = (yield from animated_ranges(context, armature, waiting)) if waiting else ({}, ())
    counts, skipped = {}, {}
    for joint in joints:
        turn = limits[joint] if limits[joint] is not None else seen.get(joint)
        if turn is None or (limits[joint] is None and turn < _STILL):
            # The range is unknown: a joint that the user named gets links as for a half turn.
            turn = 0.0 if settings.all_joints else np.pi
        number = link_count(turn, settings.threshold, settings.most)
        if number:
            counts[joint] = settings.count or number
        elif not settings.all_joints:
            skipped[joint.label] = turn
    return counts, skipped, omitted


def _plans(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    meshes: Sequence[bpy.types.Object],
    counts: dict[Joint, int],
    settings: LinkSettings,
) -> tuple[list[LinkPlan], list[str]]:
    """The links of each joint, and notes on what Blender left out of the pose that shows the inside of bends."""
    from ...core.binding.links import link_shares

    taken = taken_names(armature, meshes)
    plans: list[LinkPlan] = []
    notes: list[str] = []
    for number, (joint, count) in enumerate(counts.items(), next_number(armature, meshes)):
        offsets, omitted = _offsets(context, armature, joint, count, settings)
        notes += omitted
        words = [(_WORDS[joint.kind], count)]
        if joint.kind == TWIST:
            words += [("twist_aim", 1), ("twist_turn", 1)]
        elif offsets is not None:
            words += [("link_aim", count)]
        names = []
        for word, wanted in words:
            names += free_names(taken, joint.label, word, wanted)
        shares = tuple(link_shares(count, settings.bias, settings.ease).tolist())
        plans.append(LinkPlan(joint, number, tuple(names[:count]), tuple(names[count:]), shares, offsets))
    return plans, notes


def _offsets(
    context: bpy.types.Context, armature: bpy.types.Object, joint: Joint, count: int, settings: LinkSettings
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """(n, 3) where a joint's links stand, from the joint in the armature's space, None at the joint itself; and notes
    on what Blender left out of the pose if that decides."""
    if joint.kind == TWIST or not (settings.across or (settings.spread and count > 1)):
        return None, ()
    start, end = (armature.data.bones[name] for name in (joint.start, joint.end))
    first, second = (np.array(bone.matrix_local.col[1][:3], dtype=np.float64) for bone in (start, end))
    along = _along(first, second)
    offsets = np.linspace(-settings.spread, settings.spread, count)[:, None] * along if count > 1 else np.zeros((1, 3))
    omitted: tuple[str, ...] = ()
    if settings.across:
        inside, omitted = inside_of_bend(context, armature, start, joint.end)
        offsets = offsets + settings.across * unit(inside - along * (along @ inside))
    offsets = offsets / unit_scale(armature)
    if np.linalg.norm(offsets, axis=1).max() > start.length + end.length:
        raise BadSettings(
            f'Spread and Across place links of "{joint.end}" farther from the joint than its bones are long. Lower them'
        )
    return offsets, omitted


def _with_effect(plans: list[LinkPlan], touched: list[SharedWeights], skip: bool) -> list[LinkPlan]:
    """The plans whose links got weights. Raises BadScene if one did not or, with ``skip``, if none did."""
    found = [plan for plan in plans if any(plan.number in each.changes for each in touched)]
    if not found or (not skip and len(found) < len(plans)):
        joint = next(plan.joint for plan in plans if plan not in found)
        if joint.kind == TWIST:
            raise BadScene(
                f'No vertex with weights of "{joint.start}" is beside it, so twist bones have no weights to take. '
                "Check the rest positions of mesh and armature"
            )
        raise BadScene(
            f'No vertex has weights of both "{joint.start}" and "{joint.end}", so links between them have no weights '
            "to take. Smooth the weights at the joint, or set Reach to blend them again"
        )
    return found


@dataclass(frozen=True, eq=False)
class _Geometry:
    """A mesh's rest positions and all bones at rest, in the space used for binding."""

    rest: np.ndarray
    heads: dict[str, np.ndarray]
    tails: dict[str, np.ndarray]

    @classmethod
    def read(cls, mesh_object: bpy.types.Object, armature: bpy.types.Object) -> "_Geometry":
        names = armature.data.bones.keys()
        skeleton = read_skeleton(mesh_object, armature, names)
        rest = rest_positions(mesh_object.data) @ stretch_of(mesh_object).T
        return cls(rest, dict(zip(names, skeleton.heads, strict=True)), dict(zip(names, skeleton.tails, strict=True)))


def _share(each: SharedWeights, geometry: _Geometry, plan: LinkPlan, reach: float) -> None:
    """Give a joint's links their weights on a mesh."""
    from ...core.binding.links import joint_radius, link_weights, twist_weights

    joint = plan.joint
    own = each.add_names(plan.links)
    start = each.index(joint.start)
    if not each.has_weights(_giving(joint)):
        return
    common: dict[str, Any] = {"max_influences": each.max_influences, "locked": each.locked}
    if joint.kind == TWIST:
        head, tail = geometry.heads[joint.start], geometry.tails[joint.start]
        chain = np.array([start, *own])
        rows = twist_weights(geometry.rest, each.bones, each.weights, chain, head, tail, **common)
        each.take(plan.number, own, [start], *rows)
        return
    end = each.index(joint.end)
    if reach > 0:
        place = geometry.heads[joint.end]
        along = _along(*(unit(geometry.tails[name] - geometry.heads[name]) for name in (joint.start, joint.end)))
        radius = joint_radius(geometry.rest, each.bones, each.weights, end, place, along)
        common |= {"joint": place, "direction": along, "reach": reach, "radius": radius}
    rows = link_weights(geometry.rest, each.bones, each.weights, np.array([start, *own, end]), **common)
    each.take(plan.number, own, [start, end], *rows)


def _along(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The direction (3,) of a joint between bones of the directions ``first`` and ``second``: that of the second where
    they fold back onto each other."""
    return unit(first + second if np.linalg.norm(first + second) > 1e-6 else second)
