# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones that joints move by drivers, in simple expressions, which Blender computes without Python.

A helper's location, and the x y z of its quaternion (1, x, y, z), which Blender normalizes, are sums over the products
of its joints' quaternion components. Blender cuts longer expressions: what does not fit into one is in custom
properties of the helper, one for each part. The variables read a joint's rotation against its parent directly from the
bone: an array of features that all helpers share would be read through paths, and is ten times slower. A bone that
does not hang from its joint's parent, as on generated rigs, passes its rotation on to a bone that does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ..actions import bone_path
from ..armatures import NewBone
from ..data_blocks import free_name
from ..drivers import new_driver, read_property, read_rotation
from ..records import write_record
from .bones import make_helper_bones, taken_names
from .records import AIM, SKIN, SOLVED, BoneRecord, mark_made_animation, next_number

if TYPE_CHECKING:
    from ...core.imitation.driven_helpers import DrivenHelper

HELPER_PREFIX, AIM_PREFIX = "HLP-", "MCH-"
# On a helper's bone: its DrivenRecord.
DRIVEN = "skinning_driven"
# Blender cuts expressions above 255 characters.
_LONGEST = 250
# Variables of each of a helper's joints; the names of parts of sums.
_NAMES = ("wxyz", "abcd", "efgh", "ijkl", "mnop")
_PART = "sum_{0}{1}"
# The length of a helper relative to its carrier.
_LENGTH = 0.3
_CHANNELS = (*(("location", axis) for axis in range(3)), *(("rotation_quaternion", axis + 1) for axis in range(3)))


@dataclass(frozen=True)
class DrivenRecord:
    """On a helper's bone: the bones whose local rotation is that of its J joints, and for location x y z and rotation
    x y z in turn the coefficients of their 9 J products."""

    joints: tuple[str, ...]
    coefficients: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class DrivenPlan:
    """specs: the bones to make. names: of the helpers, in their order. sources: the bones whose local rotation is that
    of each joint. copies: the bones that copy the rotation of a joint, by name. expressions: for each helper and
    channel the parts of the sum, the last of which is the channel's own. records: of the helpers."""

    specs: list[tuple[NewBone, BoneRecord]]
    names: tuple[str, ...]
    sources: list[tuple[str, ...]]
    copies: dict[str, str]
    expressions: list[list[list[str]]]
    records: list[DrivenRecord]


def rounded(
    armature: bpy.types.Object, bone_names: Sequence[str], helpers: "Sequence[DrivenHelper]"
) -> "list[DrivenHelper]":
    """The helpers with the coefficients that the drivers have."""
    found = []
    for helper in helpers:
        along = _axes(armature.data.bones[bone_names[helper.carrier]])
        numbers = np.vectorize(lambda number: float(_text(number)), otypes=[float])(helper.coefficients @ along)
        found.append(replace(helper, coefficients=numbers @ along.T))
    return found


def _axes(carrier: bpy.types.Bone) -> np.ndarray:
    """(6, 6): from shift and rotation along the axes of the bone to those of the armature."""
    return np.kron(np.eye(2), np.array(carrier.matrix_local, dtype=np.float64)[:3, :3])


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
    specs, names, sources, expressions, records = [], [], [], [], []
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
        matrix[:3, :3] = np.array(carrier.matrix_local, dtype=np.float64)[:3, :3]
        matrix[:3, 3] = helper.center
        name = free_name(taken, f"{HELPER_PREFIX}{carrier.name.removeprefix(HELPER_PREFIX)}_{index + 1:0{digits}}")
        taken.add(name)
        names.append(name)
        # A helper of its own for each, so that removing one leaves the others.
        record = BoneRecord(SOLVED, number + index if added else 0, SKIN)
        specs += [(spec, BoneRecord(SOLVED, number + index, AIM)) for spec in added]
        specs.append((NewBone(name, carrier.name, matrix, _LENGTH * carrier.length, True), record))
        sources.append(tuple(source_of[joint] for joint in helper.joints))
        own_axes = (helper.coefficients @ _axes(carrier)).T
        expressions.append([_parts(numbers) for numbers in own_axes])
        written = tuple(float(_text(number)) for number in own_axes.ravel())
        records.append(DrivenRecord(sources[-1], written))
    return DrivenPlan(specs, tuple(names), sources, copies, expressions, records)


def make_driven_bones(context: bpy.types.Context, armature: bpy.types.Object, plan: DrivenPlan) -> None:
    """Make the bones of a plan, with their constraints and drivers."""
    make_helper_bones(context, armature, plan.specs)
    for made, name in plan.copies.items():
        constraint = armature.pose.bones[made].constraints.new("COPY_ROTATION")
        constraint.target, constraint.subtarget = armature, name
    if armature.animation_data is None and plan.names:
        mark_made_animation(armature, plan.names[0])
    for name, sources, channels, record in zip(plan.names, plan.sources, plan.expressions, plan.records, strict=True):
        write_record(armature.data.bones[name], DRIVEN, record)
        bone = armature.pose.bones[name]
        parts = {
            _PART.format("xyzuvw"[channel], place): text
            for channel, texts in enumerate(channels)
            for place, text in enumerate(texts[:-1])
        }
        for key, text in parts.items():
            bone[key] = 0.0
            _fill(new_driver(bone, f'["{key}"]'), armature, name, sources, text, ())
        # Channel by channel of one array: Blender writes whole arrays.
        for (path, axis), letter, texts in zip(_CHANNELS, "xyzuvw", channels, strict=True):
            if texts:
                keys = [_PART.format(letter, place) for place in range(len(texts) - 1)]
                _fill(new_driver(bone, path, axis), armature, name, sources, "+".join([*keys, texts[-1]]), keys)


def _hangs_from(bone: bpy.types.Bone, above: str) -> bool:
    return bone.parent is not None and bone.parent.name == above and bone.use_inherit_rotation


def _parts(numbers: np.ndarray) -> list[str]:
    """The sums over the features of the joints, nine numbers each, in as few texts as fit; none if all are zero."""
    products = [_of_joint(numbers[9 * joint : 9 * joint + 9], _NAMES[joint]) for joint in range(len(numbers) // 9)]
    parts: list[str] = []
    for text in filter(None, products):
        if parts and len(parts[-1]) + len(text) + 1 <= _LONGEST - 24:
            parts[-1] += text if text.startswith("-") else f"+{text}"
        else:
            parts.append(text)
    return parts


def _of_joint(numbers: np.ndarray, names: str) -> str:
    """The sum over a joint's products, in the order of ``PRODUCTS``, with common factors taken out."""
    w, x, y, z = tuple(names)
    groups = ((w, ((0, x), (1, y), (2, z))), (x, ((3, x), (6, y), (7, z))), (y, ((4, y), (8, z))), (z, ((5, z),)))
    texts = []
    for factor, members in groups:
        inner = "".join(f"{_text(numbers[place])}*{name}" for place, name in members if float(_text(numbers[place])))
        if inner:
            texts.append(f"+{factor}*({inner.removeprefix('+')})")
    return "".join(texts).removeprefix("+")


def _text(number: float) -> str:
    """A signed number of five digits."""
    return (
        f"{number:+.5g}".replace("+0.", "+.").replace("-0.", "-.").replace("e-0", "e-") if abs(number) > 1e-9 else "+0"
    )


def _fill(
    driver: bpy.types.Driver,
    armature: bpy.types.Object,
    name: str,
    sources: Sequence[str],
    text: str,
    keys: Sequence[str],
) -> None:
    for key in keys:
        read_property(driver, key, armature, f'{bone_path(name)}["{key}"]')
    for letters, source in zip(_NAMES, sources, strict=False):
        for letter, channel in zip(letters, "WXYZ", strict=True):
            if _uses(text, letter):
                read_rotation(driver, letter, armature, source, channel)
    driver.expression = text


def _uses(text: str, letter: str) -> bool:
    return any(before + letter in text for before in ("*", "+", "-", "(")) or text.startswith(letter)
