# SPDX-License-Identifier: GPL-3.0-or-later
"""Which joints of a skeleton the user has decided, told by what each pose bone notes of its joint: that outlasts new
names, and a bone that was cut out of another has none."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import bpy
import numpy as np

from .bodies import named_parents
from .records import read_record, write_record

_JOINT = "skinning_joint"
# Shares of a bone's length: a head that moved by less is where it was, or on the line of a bone that was cut.
_SAME_PLACE = 1e-3


@dataclass(frozen=True)
class _Joint:
    """name, parent: of the bone, and of the bone that carried it ("" for none), at that time; head: in the armature's
    space."""

    name: str
    parent: str
    head: tuple[float, ...]


def note_joints(armature: bpy.types.Object, names: Sequence[str], changed: Collection[str] | None = None) -> None:
    """Note the present joints of the bones ``names``, or only of those that have ``changed``; each is carried by its
    nearest ancestor among ``names``."""
    for name, parent in zip(names, named_parents(armature, names), strict=True):
        if changed is not None and name not in changed:
            continue
        head = tuple(armature.data.bones[name].head_local)
        write_record(armature.pose.bones[name], _JOINT, _Joint(name, names[parent] if parent >= 0 else "", head))


def has_note(bone: bpy.types.PoseBone) -> bool:
    """Whether the bone's joint was noted, of any bone that a conversion has found or a solve has kept."""
    return _JOINT in bone


def undecided_joints(armature: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(P,) bool: the bones ``names`` whose heads nobody has placed.

    They hang from another bone than was noted, which is not one cut out of that, with their heads where they were; or
    they were cut out of another bone, and are still on its line. In skeletons without notes, there are none.
    """
    parents, notes = named_parents(armature, names), _own_notes(armature, names)
    found = np.zeros(len(names), bool)
    if not any(notes):
        return found
    for index in np.flatnonzero(parents >= 0):
        bone, note, above = armature.data.bones[names[index]], notes[index], int(parents[index])
        if note is None:
            found[index] = _is_between(bone, armature.data.bones[names[above]])
            continue
        while above >= 0 and notes[above] is None:
            above = int(parents[above])
        carrier = notes[above] if above >= 0 else None
        same = (carrier.name if carrier is not None else "") == note.parent
        moved = np.linalg.norm(np.subtract(bone.head_local, note.head))
        found[index] = not same and moved <= _SAME_PLACE * bone.length
    return found


def abandoned_joints(armature: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(P,) bool: the bones ``names`` that none carries now, where one has carried several of them. If it has carried
    only one, that is the new root."""
    notes, free = _own_notes(armature, names), named_parents(armature, names) < 0
    former = [note.parent if note is not None and loose else "" for note, loose in zip(notes, free, strict=True)]
    return np.array([name != "" and former.count(name) > 1 for name in former], dtype=bool)


def _own_notes(armature: bpy.types.Object, names: Sequence[str]) -> list[_Joint | None]:
    """What each bone notes of its joint; None for a duplicate, which has its original's note. The original is the bone
    of the noted name, or the first with that note if all have other names."""
    notes = [read_record(armature.pose.bones[name], _JOINT, _Joint) for name in names]
    owners: dict[str, str] = {}
    for name, note in zip(names, notes, strict=True):
        if note is not None and (name == note.name or note.name not in owners):
            owners[note.name] = name
    return [
        note if note is not None and owners[note.name] == name else None
        for name, note in zip(names, notes, strict=True)
    ]


def _is_between(bone: bpy.types.Bone, parent: bpy.types.Bone) -> bool:
    """Whether a bone begins on the straight line from its parent's head to its own tail."""
    start, head, end = (np.array(each) for each in (parent.head_local, bone.head_local, bone.tail_local))
    whole, part = end - start, head - start
    length = np.linalg.norm(whole)
    along = part @ whole / max(length, np.finfo(float).tiny)
    off = np.sqrt(max(part @ part - along**2, 0.0))
    return bool(off <= _SAME_PLACE * length and _SAME_PLACE * length < along < (1 - _SAME_PLACE) * length)
