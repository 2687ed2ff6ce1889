# SPDX-License-Identifier: GPL-3.0-or-later
"""Helper bones in an armature: their names, their bone collections, and making them."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, count

import bpy

from ..armatures import BONE_COLORS, NewBone, add_bones, remove_if_empty
from ..data_blocks import joined_name
from ..records import write_record
from .records import KEY, PARENT, SOLVED, BoneRecord

# By kind of helper. All but the collection of solves are hidden at first: their bones lie inside the animator's.
OF_JOINTS_COLLECTION, SOLVED_COLLECTION, PARENT_COLLECTION = "Skinning Helpers", "Helper Bones", "Mechanism"

_SEPARATORS = " ._-"


def make_helper_bones(
    context: bpy.types.Context, armature: bpy.types.Object, bones: Sequence[tuple[NewBone, BoneRecord]]
) -> None:
    """Make the bones, in the given order, with their records, each only in the bone collection of its kind. Helpers of
    joints have locked transforms.

    Mode, selection, pose and the rest of the armature stay exactly the same, except for the parents of adopted bones.
    """
    if not bones:
        return
    add_bones(context, armature, [spec for spec, _ in bones])
    for spec, record in bones:
        bone, pose = armature.data.bones[spec.name], armature.pose.bones[spec.name]
        name = PARENT_COLLECTION if record.part == PARENT else SOLVED_COLLECTION
        name = name if record.kind == SOLVED else OF_JOINTS_COLLECTION
        collection = _collection(armature.data, name)
        for other in list(bone.collections):
            other.unassign(bone)
        collection.assign(bone)
        bone.color.palette = BONE_COLORS["Deform" if name == SOLVED_COLLECTION else "Mechanism"]
        write_record(bone, KEY, record)
        if record.kind == SOLVED:
            pose.rotation_mode = "QUATERNION"
        else:
            pose.lock_location = pose.lock_rotation = pose.lock_scale = (True, True, True)
            pose.lock_rotation_w = pose.lock_rotations_4d = True


def _collection(data: bpy.types.Armature, name: str) -> bpy.types.BoneCollection:
    """The bone collection for helpers, even if it was renamed; a new one if there is none."""
    own = [each for each in data.collections_all if made_as(each) == name]
    if own:
        found = own[0]
    else:
        active = data.collections.active_index
        found = data.collections.new(name)
        found[KEY] = name
        data.collections.active_index = active
    if name != SOLVED_COLLECTION and not len(found.bones):
        found.is_visible = False
    return found


def made_as(collection: bpy.types.BoneCollection) -> str:
    """The original name of a bone collection for helpers; "" for other collections."""
    noted = collection.get(KEY)
    if isinstance(noted, str):
        return noted
    # Earlier versions marked only the collection of joints, without its name.
    if noted:
        return OF_JOINTS_COLLECTION
    return collection.name if collection.name in (SOLVED_COLLECTION, PARENT_COLLECTION) else ""


def remove_empty_collections(armature: bpy.types.Object, names: Collection[str]) -> None:
    """Remove the empty bone collections that were made for helpers: all that are noted as such, and of those that
    earlier versions made the ones called ``names``."""
    for collection in list(armature.data.collections_all):
        if made_as(collection) and (collection.get(KEY) or collection.name in names):
            remove_if_empty(armature.data, collection)


def helper_name(bone: str, word: str) -> str:
    """``word`` added to a bone's name before its side suffix, so that Blender still finds the other side."""
    flipped = bpy.utils.flip_name(bone)
    same = next((at for at, pair in enumerate(zip(bone, flipped, strict=False)) if pair[0] != pair[1]), len(bone))
    head = bone[:same].rstrip(_SEPARATORS) if flipped != bone else bone
    side = bone[len(head) :] if head and head != bone else ""
    head = head if side else bone
    return joined_name(head, f"_{word}{side}")


def taken_names(armature: bpy.types.Object, meshes: Iterable[bpy.types.Object]) -> set[str]:
    """The names of the armature's bones and of the mesh objects' vertex groups."""
    return {each.name for owned in (armature.data.bones, *(ob.vertex_groups for ob in meshes)) for each in owned}


def free_names(taken: set[str], bone: str, word: str, wanted: int) -> list[str]:
    """Free names for ``wanted`` helpers of a bone, numbered if there are several; adds them to ``taken``."""

    def names(stem: str) -> list[str]:
        words = [stem] if wanted == 1 else [f"{stem}_{index + 1}" for index in range(wanted)]
        return [helper_name(bone, each) for each in words]

    candidates = (names(stem) for stem in chain([word], (f"{word}{number}" for number in count(2))))
    found = next(each for each in candidates if not taken.intersection(each))
    taken.update(found)
    return found
