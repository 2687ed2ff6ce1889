# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones that joints move by drivers, in simple expressions, which Blender computes without Python.

A helper's location, and the x y z of its quaternion (1, x, y, z), which Blender normalizes, are sums over products of
components of its joints' quaternions. The variables read a joint's rotation against its parent directly from the bone:
Blender takes as long for any other variable, so nothing that helpers could share would be faster. A bone that does not
hang from its joint's parent, as on generated rigs, passes its rotation on to a bone that does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...core.imitation.channels import PRODUCTS
from ..armatures import NewBone
from ..data_blocks import free_name
from ..drivers import new_driver, read_rotation
from ..records import write_record
from .bones import make_helper_bones, taken_names
from .records import AIM, SKIN, SOLVED, BoneRecord, mark_made_animation, next_number

if TYPE_CHECKING:
    from ...core.imitation.driven_helpers import DrivenHelper

HELPER_PREFIX, AIM_PREFIX = "HLP-", "MCH-"
# On a helper's bone: its DrivenRecord.
DRIVEN = "skinning_driven_by"
# The length of a helper relative to its carrier.
_LENGTH = 0.3
# Characters of an expression in Blender, and the least coefficient of one.
_LONGEST, _LEAST = 250, 1e-9
_CHANNELS = (*(("location", axis) for axis in range(3)), *(("rotation_quaternion", axis + 1) for axis in range(3)))


@dataclass(frozen=True)
class DrivenRecord:
    """On a helper's bone: the bones whose local rotation is that of its J joints, and for location x y z and rotation
    x y z in turn the coefficients of their 9 J products."""

    joints: tuple[str, ...]
    coefficients: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class DrivenPlan:
    """specs: the bones to make. names: of the helpers, in their order; records: what moves each. copies: the bones that
    copy the rotation of a joint, by name."""

    specs: list[tuple[NewBone, BoneRecord]]
    names: tuple[str, ...]
    records: list[DrivenRecord]
    copies: dict[str, str]


def rounded(helpers: "Sequence[DrivenHelper]") -> "list[DrivenHelper]":
    """The helpers with the coefficients that the drivers have."""
    return [
        replace(helper, coefficients=np.stack([_fitting(channel) for channel in helper.coefficients.T], axis=1))
        for helper in helpers
    ]


def _fitting(channel: np.ndarray) -> np.ndarray:
    """(9 J,) the coefficients with five digits, or as many as one expression has room for."""
    for digits in range(5, 1, -1):
        found = np.array([float(f"{number:.{digits}g}") if abs(number) > _LEAST else 0.0 for number in channel])
        if len(_sum_of_products(found.reshape(-1, len(PRODUCTS)))[0]) <= _LONGEST:
            break
    return found


def plan_driven_bones(
    armature: bpy.types.Object,
    meshes: Sequence[bpy.types.Object],
    bone_names: Sequence[str],
    parents: np.ndarray,
    helpers: "Sequence[DrivenHelper]",
) -> DrivenPlan:
    """The bones and drivers for ``helpers``, whose bones are indices into ``bone_names``, with their joints' parents
    (P,). Changes nothing."""
    taken = taken_names(armature, meshes)
    data, number = armature.data, next_number(armature, meshes)
    specs, names, records = [], [], []
    copies: dict[str, str] = {}
    source_of: dict[int, str] = {}
    digits = max(2, len(str(len(helpers))))
    for index, helper in enumerate(helpers):
        carrier = data.bones[bone_names[helper.carrier]]
        own, added = tuple(source_of.get(joint, "") for joint in helper.joints), []
        for joint, known in zip(helper.joints, own, strict=True):
            if known:
                continue
            name, above = bone_names[joint], bone_names[parents[joint]]
            source_of[joint] = name
            if not _hangs_from(data.bones[name], above):
                made = free_name(taken, f"{AIM_PREFIX}{name}")
                taken.add(made)
                source_of[joint], copies[made] = made, name
                matrix = np.array(data.bones[name].matrix_local, dtype=np.float64)
                added.append(NewBone(made, above, matrix, data.bones[name].length, False))
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = helper.axes, helper.center
        name = free_name(taken, f"{HELPER_PREFIX}{carrier.name.removeprefix(HELPER_PREFIX)}_{index + 1:0{digits}}")
        taken.add(name)
        names.append(name)
        # A helper of its own for each, so that removing one leaves the others.
        record = BoneRecord(SOLVED, number + index if added else 0, SKIN)
        specs += [(spec, BoneRecord(SOLVED, number + index, AIM)) for spec in added]
        specs.append((NewBone(name, carrier.name, matrix, _LENGTH * carrier.length, True), record))
        own_sources = tuple(source_of[joint] for joint in helper.joints)
        records.append(DrivenRecord(own_sources, tuple(helper.coefficients.T.ravel().tolist())))
    return DrivenPlan(specs, tuple(names), records, copies)


def make_driven_bones(context: bpy.types.Context, armature: bpy.types.Object, plan: DrivenPlan) -> None:
    """Make the bones of a plan, with their constraints and drivers."""
    make_helper_bones(context, armature, plan.specs)
    for made, name in plan.copies.items():
        constraint = armature.pose.bones[made].constraints.new("COPY_ROTATION")
        constraint.target, constraint.subtarget = armature, name
    if armature.animation_data is None and plan.names:
        mark_made_animation(armature, plan.names[0])
    for name, record in zip(plan.names, plan.records, strict=True):
        write_record(armature.data.bones[name], DRIVEN, record)
        # Not -1 for the products: helpers that no joint drives have no numbers.
        numbers = np.reshape(record.coefficients, (len(_CHANNELS), len(record.joints), len(PRODUCTS)))
        # Channel by channel of one array: Blender writes whole arrays.
        for (path, axis), channel in zip(_CHANNELS, numbers, strict=True):
            if channel.any():
                _drive(new_driver(armature.pose.bones[name], path, axis), armature, record.joints, channel)


def _hangs_from(bone: bpy.types.Bone, above: str) -> bool:
    return bone.parent is not None and bone.parent.name == above and bone.use_inherit_rotation


def _drive(driver: bpy.types.Driver, armature: bpy.types.Object, joints: Sequence[str], numbers: np.ndarray) -> None:
    """Make the driver the sum of the products of the joints' components, by the numbers (J, 9) of these."""
    driver.expression, used = _sum_of_products(numbers)
    for joint, names in zip(joints, used, strict=True):
        for axis, name in names.items():
            read_rotation(driver, name, armature, joint, axis)


def _sum_of_products(numbers: np.ndarray) -> tuple[str, list[dict[str, str]]]:
    """The expression, and for each of J joints the names of those of its components X Y Z that are in it."""
    texts: list[str] = []
    used: list[dict[str, str]] = []
    for own in numbers:
        names = [f"{axis}{len(texts)}" for axis in "xyz"]
        text, found = _of_joint(own, names)
        texts += [text] if text else []
        used.append({axis: name for axis, name in zip("XYZ", names, strict=True) if name in found})
    return "".join(texts).removeprefix("+"), used


def _of_joint(numbers: np.ndarray, names: Sequence[str]) -> tuple[str, set[str]]:
    """The sum over a joint's products, in the order of ``PRODUCTS``, with common factors taken out; and the names that
    are in it."""
    x, y, z = names
    text, used = "", set()
    for factor, own, members in ((x, 0, ((3, x), (6, y), (7, z))), (y, 1, ((4, y), (8, z))), (z, 2, ((5, z),))):
        inner = _text(numbers[own]) if numbers[own] else ""
        for place, name in members:
            if numbers[place]:
                inner += f"{_text(numbers[place])}*{name}"
                used |= {factor, name}
        if inner:
            text += f"+{factor}*({inner.removeprefix('+')})"
            used.add(factor)
    return text, used


def _text(number: float) -> str:
    """A signed number of five digits."""
    return f"{number:+.5g}".replace("+0.", "+.").replace("-0.", "-.").replace("e-0", "e-")
