# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bones of an armature are helpers, and of which bones.

The record of a helper is a custom property of its bones, so that renaming bones or copying the rig loses nothing.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import bpy

from ...core.errors import BadScene
from ..armatures import drivers_of
from ..records import read_record, write_record

# Kinds of helpers: of a joint, and from a solve.
LINKS, TWIST, BULGE, SOLVED = "LINKS", "TWIST", "BULGE", "SOLVED"
# A link half-way, under the corrections of an EigenSkin.
HALF = "HALF"
OF_JOINTS = (LINKS, TWIST, BULGE, HALF)
# The helpers at a joint, between its two bones.
BETWEEN = (LINKS, HALF)

# Parts of a helper: bones that deform; bones that only pass a rotation on; the parent that lets a bone shear, which
# solves also give to the rig's own bones.
SKIN, AIM, TURN, PARENT = "SKIN", "AIM", "TURN", "PARENT"

# On helper bones and on their bone collections.
KEY = "skinning_helper"
# On the bones of solves in files of earlier versions, instead of the record.
_EARLIER_KEY = "skinning_added_bone"
_EARLIER_PARTS = {"HELPER": SKIN, "PARENT": PARENT}

# On a mesh: the changes of its weights by helpers, by the helper's number.
WEIGHT_RECORDS = "skinning_helpers"


@dataclass(frozen=True)
class BoneRecord:
    """kind: of the helper; number: the same for all its bones, higher for later helpers, 0 for solves; index: the
    bone's position among the deforming ones. end: the original name of the bone that moves the helper. made_animation:
    the armature had no animation data for the drivers."""

    kind: str
    number: int
    part: str
    index: int = 0
    end: str = ""
    made_animation: bool = False


@dataclass(frozen=True)
class Helper:
    """The bones of one helper. skin: deforming ones in their order; carriers: the bone that carries each of them, "" if
    it is gone; end: the bone that moves them, "" for none."""

    kind: str
    number: int
    skin: tuple[str, ...]
    others: tuple[str, ...]
    carriers: tuple[str, ...]
    end: str
    made_animation: bool

    @property
    def start(self) -> str:
        """The bone that carries the first of them."""
        return self.carriers[0]

    @property
    def givers(self) -> tuple[str, ...]:
        """The bones that gave the helper its weights."""
        return tuple(dict.fromkeys((*self.carriers, self.end) if self.kind in BETWEEN else self.carriers))

    @property
    def bones(self) -> tuple[str, ...]:
        return self.skin + self.others

    @property
    def label(self) -> str:
        """The name of the helper: of its start bone, or of its own bone for bulges and solves."""
        return {LINKS: self.end, HALF: self.end, TWIST: self.start}.get(self.kind, self.skin[0])


def bone_record(bone: bpy.types.Bone) -> BoneRecord | None:
    """The record of a bone of the armature data; None if it is not a helper."""
    part = _EARLIER_PARTS.get(bone.get(_EARLIER_KEY))
    return BoneRecord(SOLVED, 0, part) if part is not None else read_record(bone, KEY, BoneRecord)


def is_of_joint(bone: bpy.types.Bone) -> bool:
    """Whether a bone of the armature data is a helper of a joint, which moves it."""
    record = bone_record(bone)
    return record is not None and record.kind in OF_JOINTS


def check_no_helper(armature: bpy.types.Object, name: str) -> None:
    """Raises BadScene where a bone is part of a helper itself."""
    if bone_record(armature.data.bones[name]) is not None:
        raise BadScene(f'The bone "{name}" is a helper bone itself. Choose a bone of the skeleton')


def deforming_parent(armature: bpy.types.Object, name: str) -> str:
    """The nearest deforming ancestor of a bone that is not a helper; "" if there is none."""
    ancestors = armature.data.bones[name].parent_recursive
    return next((bone.name for bone in ancestors if bone.use_deform and bone_record(bone) is None), "")


def find_helpers(armature: bpy.types.Object, kinds: Collection[str] = (*OF_JOINTS, SOLVED)) -> list[Helper]:
    """All helpers of the kinds, in the order of their creation. Cheap enough for a panel."""
    groups: dict[tuple[int, str], list[tuple[BoneRecord, bpy.types.Bone]]] = {}
    for bone in armature.data.bones:
        record = bone_record(bone)
        if record is not None and record.kind in kinds and record.part != PARENT:
            groups.setdefault((record.number, "" if record.number else bone.name), []).append((record, bone))
    found = (_helper(armature, members) for _, members in sorted(groups.items(), key=lambda item: item[0][0]))
    return [helper for helper in found if helper is not None]


def _helper(armature: bpy.types.Object, members: Sequence[tuple[BoneRecord, bpy.types.Bone]]) -> Helper | None:
    """The helper of these bones; None if none of them deforms any longer."""
    members = sorted(members, key=lambda member: member[0].index)
    skin = [(record, bone) for record, bone in members if record.part == SKIN]
    others = [bone.name for record, bone in members if record.part != SKIN]
    if not skin:
        return None
    record, first = skin[0]
    carriers = []
    for _, bone in skin:
        carrier = bone.parent
        above = bone_record(carrier) if carrier is not None else None
        if above is not None and above.part == PARENT:
            others.append(carrier.name)
            carrier = carrier.parent
        carriers.append(carrier.name if carrier is not None else "")
    end = _end_of(armature, record, first.name, [bone for each, bone in members if each.part == AIM])
    return Helper(
        record.kind,
        record.number,
        tuple(bone.name for _, bone in skin),
        tuple(others),
        tuple(carriers),
        end if end in armature.data.bones else "",
        any(record.made_animation for record, _ in members),
    )


def _end_of(armature: bpy.types.Object, record: BoneRecord, first: str, aims: list[bpy.types.Bone]) -> str:
    """The name of the end bone, if possible from references that Blender updates when bones are renamed."""
    if record.kind == TWIST or aims:
        return aims[0].parent.name if aims and aims[0].parent is not None else record.end
    if record.kind in BETWEEN:
        constraints = armature.pose.bones[first].constraints
        return next((c.subtarget for c in constraints if c.type == "COPY_TRANSFORMS"), record.end)
    for curve in drivers_of(armature, [first]) if record.kind == BULGE else ():
        for variable in curve.driver.variables:
            if variable.type == "TRANSFORMS":
                return variable.targets[0].bone_target
    return record.end


def next_number(armature: bpy.types.Object, meshes: Iterable[bpy.types.Object]) -> int:
    """A number that no helper of the armature, and no note on one of the mesh objects, has."""
    taken = [helper.number for helper in find_helpers(armature)]
    for ob in meshes:
        stored = ob.data.get(WEIGHT_RECORDS)
        taken += [int(name) for name in stored if name.isdecimal()] if hasattr(stored, "keys") else []
    return max(taken, default=0) + 1


def mark_made_animation(armature: bpy.types.Object, name: str) -> None:
    """Note on a helper bone that the armature's animation data was made for its drivers."""
    bone = armature.data.bones[name]
    record = bone_record(bone)
    assert record is not None
    write_record(bone, KEY, replace(record, made_animation=True))
