# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that help a joint: made in an armature, and taken away, without touching what the animator has there.

What a helper is stands on its bones, as a custom property, so that renaming bones or copying the rig loses nothing.
"""

from dataclasses import dataclass, replace

import bpy

from ...blender.armatures import NewBone, add_bones, check_armature, drivers_of, remove_bones, remove_if_empty
from ...blender.bone_selection import named_bones
from ...blender.character import armature_at
from ...blender.data_blocks import joined_name
from ...blender.records import read_record, write_record

LINKS, TWIST, BULGE = "LINKS", "TWIST", "BULGE"

# Parts of a helper: bones that deform, and those that only pass a rotation on.
SKIN, AIM, TURN = "SKIN", "AIM", "TURN"

COLLECTION = "Skinning Helpers"
PALETTE = "THEME09"

# On helper bones and on their bone collection.
_KEY = "skinning_helper"
_SEPARATORS = " ._-"


@dataclass(frozen=True)
class BoneRecord:
    """kind: of the helper; number: the same for all of its bones, later ones higher; index: the bone's place among
    those that deform. end: the bone that moves the helper, as it was named. made_animation: the armature had no
    animation data for the drivers."""

    kind: str
    number: int
    part: str
    index: int = 0
    end: str = ""
    made_animation: bool = False


@dataclass(frozen=True)
class Helper:
    """The bones of one helper. skin: deforming ones in their order; start: the bone that carries them, "" where that is
    gone; end: the bone that moves them, "" for none."""

    kind: str
    number: int
    skin: tuple[str, ...]
    others: tuple[str, ...]
    start: str
    end: str
    made_animation: bool

    @property
    def bones(self) -> tuple[str, ...]:
        return self.skin + self.others

    @property
    def joint(self) -> str:
        """The bone that it is called by: a bulge's is its own."""
        return {LINKS: self.end, TWIST: self.start, BULGE: self.skin[0]}[self.kind]


@dataclass(frozen=True)
class Added:
    """Of helpers that were added: the meshes and vertices whose weights they share; what the user should know."""

    armature_name: str
    mesh_count: int
    vertex_count: int
    notes: tuple[str, ...]

    def line(self, bones: str, *more: str) -> str:
        """The result in one line."""
        place = "1 mesh" if self.mesh_count == 1 else f"{self.mesh_count} meshes"
        text = f"{self.armature_name}: {bones} with weights of {self.vertex_count} vertices on {place}"
        return "; ".join([text, *more, *self.notes])


def helped_armature(context, object):
    """The armature whose joints are meant where ``object`` is active, which may be a mesh that it deforms.

    Cheap enough for a panel. Raises BadScene as ``check_armature``.
    """
    armature = armature_at(object)
    check_armature(armature)
    return armature


def deforming_parent(armature, name: str) -> str:
    """The nearest ancestor of a bone that deforms and is no helper; "" where there is none."""
    ancestors = armature.data.bones[name].parent_recursive
    return next((bone.name for bone in ancestors if bone.use_deform and bone_record(bone) is None), "")


def end_bone(armature, name: str) -> str:
    """Of the deforming bones that a bone carries the one most in line with it; "" where there is none."""
    bones = armature.data.bones
    axis = bones[name].tail_local - bones[name].head_local
    children = [
        bone
        for bone in bones[name].children_recursive
        if bone.use_deform and bone_record(bone) is None and deforming_parent(armature, bone.name) == name
    ]
    # A child at the bone's own head, such as a second one beside it, is not at its end.
    placed = [bone for bone in children if (bone.head_local - bones[name].head_local).dot(axis) > 0.5 * axis.dot(axis)]
    best = max(placed, key=lambda bone: (bone.tail_local - bone.head_local).normalized().dot(axis), default=None)
    return best.name if best is not None else ""


def bone_record(bone) -> BoneRecord | None:
    """What is noted on a bone of the armature data; None where it is no helper."""
    return read_record(bone, _KEY, BoneRecord)


def find_helpers(armature, kinds=(LINKS, TWIST, BULGE)) -> list[Helper]:
    """All helpers of the kinds, in the order in which they were made. Cheap enough for a panel."""
    groups: dict[int, list[tuple[BoneRecord, bpy.types.Bone]]] = {}
    for bone in armature.data.bones:
        record = bone_record(bone)
        if record is not None and record.kind in kinds:
            groups.setdefault(record.number, []).append((record, bone))
    found = (_helper(armature, members) for _, members in sorted(groups.items()))
    return [helper for helper in found if helper is not None]


def _helper(armature, members) -> Helper | None:
    """None where no bone of it deforms any more."""
    members = sorted(members, key=lambda member: member[0].index)
    skin = [(record, bone) for record, bone in members if record.part == SKIN]
    others = tuple(bone.name for record, bone in members if record.part != SKIN)
    if not skin:
        return None
    record, first = skin[0]
    end = _end_of(armature, record, first.name, others)
    return Helper(
        record.kind,
        record.number,
        tuple(bone.name for _, bone in skin),
        others,
        first.parent.name if first.parent is not None else "",
        end if end in armature.data.bones else "",
        any(record.made_animation for record, _ in members),
    )


def _end_of(armature, record: BoneRecord, first: str, others) -> str:
    """By what Blender keeps up to date when bones are renamed, where that is there."""
    bones = armature.data.bones
    if record.kind == TWIST:
        aims = [bones[name] for name in others if bone_record(bones[name]).part == AIM]
        return aims[0].parent.name if aims and aims[0].parent is not None else record.end
    if record.kind == LINKS:
        constraints = armature.pose.bones[first].constraints
        return next((c.subtarget for c in constraints if c.type == "COPY_TRANSFORMS"), record.end)
    for curve in drivers_of(armature, [first]):
        for variable in curve.driver.variables:
            if variable.type == "TRANSFORMS":
                return variable.targets[0].bone_target
    return record.end


def next_number(armature, meshes, record_key: str) -> int:
    """A number that no helper of the armature, or noted on one of the mesh objects, has had."""
    taken = [helper.number for helper in find_helpers(armature)]
    for ob in meshes:
        stored = ob.data.get(record_key)
        taken += [int(name) for name in stored if name.isdecimal()] if hasattr(stored, "keys") else []
    return max(taken, default=0) + 1


def helper_name(bone: str, word: str) -> str:
    """``word`` added to a bone's name before what tells its side, so that Blender still finds the other side."""
    flipped = bpy.utils.flip_name(bone)
    same = next((at for at, pair in enumerate(zip(bone, flipped, strict=False)) if pair[0] != pair[1]), len(bone))
    head = bone[:same].rstrip(_SEPARATORS) if flipped != bone else bone
    side = bone[len(head) :] if head and head != bone else ""
    head = head if side else bone
    return joined_name(head, f"_{word}{side}")


def free_names(armature, meshes, bone: str, word: str, count: int, taken) -> list[str]:
    """Names of ``count`` helper bones, numbered where they are several, that no bone and no vertex group has."""
    used = {*armature.data.bones.keys(), *taken}
    for ob in meshes:
        used.update(ob.vertex_groups.keys())
    variant = 1
    while True:
        stem = word if variant == 1 else f"{word}{variant}"
        words = [stem] if count == 1 else [f"{stem}_{index + 1}" for index in range(count)]
        names = [helper_name(bone, each) for each in words]
        if not used.intersection(names):
            return names
        variant += 1


def mirrored_names(armature, names) -> list[str]:
    """The ``names`` and those of the other side that are there, each once."""
    flipped = (bpy.utils.flip_name(name) for name in names)
    return list(dict.fromkeys([*names, *(name for name in flipped if name in armature.data.bones)]))


def bones_to_clear(armature, text: str, everything: bool, mirror: bool) -> list[str] | None:
    """The bones whose helpers are to go, as ``named_bones`` has them, with ``mirror`` those of the other side, too.

    None for all that there are, with ``everything``. Raises BadScene.
    """
    if everything:
        return None
    names = named_bones(armature, text)
    return mirrored_names(armature, names) if mirror else names


def add_helper_bones(context, armature, bones: list[tuple[NewBone, BoneRecord]]) -> None:
    """Make the bones, locked against the animator and in a bone collection of their own, which is hidden at first.

    Mode, selection, pose and what else is in the armature stay.
    """
    add_bones(context, armature, [spec for spec, _ in bones])
    collection = _own_collection(armature.data) or _new_collection(armature.data)
    for spec, record in bones:
        bone, pose = armature.data.bones[spec.name], armature.pose.bones[spec.name]
        for other in list(bone.collections):
            other.unassign(bone)
        collection.assign(bone)
        bone.color.palette = PALETTE
        write_record(bone, _KEY, record)
        pose.lock_location = pose.lock_rotation = pose.lock_scale = (True, True, True)
        pose.lock_rotation_w = pose.lock_rotations_4d = True


def remove_helper_bones(context, armature, names, clear_animation: bool) -> None:
    """As ``armatures.remove_bones``; their bone collection goes with the last of them."""
    remove_bones(context, armature, names, clear_animation)
    remove_if_empty(armature.data, _own_collection(armature.data))


def placed(matrix, head):
    """A copy of a rest matrix with another head."""
    result = matrix.copy()
    result.translation = head
    return result


def mark_made_animation(armature, name: str) -> None:
    """Note on a helper bone that the armature's animation data was made for its drivers."""
    bone = armature.data.bones[name]
    write_record(bone, _KEY, replace(bone_record(bone), made_animation=True))


def _own_collection(data):
    return next((each for each in data.collections_all if each.get(_KEY)), None)


def _new_collection(data):
    active = data.collections.active_index
    collection = data.collections.new(COLLECTION)
    collection[_KEY] = True
    collection.is_visible = False
    data.collections.active_index = active
    return collection
