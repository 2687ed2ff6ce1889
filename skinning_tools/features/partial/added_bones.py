# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that solves add to an existing armature: helpers, and parents that let a bone shear."""

import numpy as np

from ...blender.armatures import BONE_COLORS, NewBone, add_bones, remove_if_empty

HELPERS, MECHANISM = "Helper Bones", "Mechanism"
HELPER_PREFIX, MECHANISM_PREFIX = "HLP-", "MCH-"

# On the bones themselves, so that they are found whatever they are called by now; and what it says of each.
_KEY = "skinning_added_bone"
_HELPER, _PARENT = "HELPER", "PARENT"

_LONGEST_NAME = 63
_SAME_PLACE = 1e-5


def add_new_bones(context, armature, specs: list[NewBone]) -> None:
    """Make the bones, in the order given. All that is there stays as it is, to the last bit, but for the parents of
    adopted bones."""
    if not specs:
        return
    add_bones(context, armature, specs)
    for spec in specs:
        name = HELPERS if spec.deforms else MECHANISM
        collection = armature.data.collections_all.get(name) or armature.data.collections.new(name)
        if not len(collection.bones) and name == MECHANISM:
            # They lie inside those that deform.
            collection.is_visible = False
        bone = armature.data.bones[spec.name]
        collection.assign(bone)
        bone.color.palette = BONE_COLORS["Deform" if spec.deforms else "Mechanism"]
        bone[_KEY] = _HELPER if spec.deforms else _PARENT
        armature.pose.bones[spec.name].rotation_mode = "QUATERNION"


def added_helpers(armature) -> list[str]:
    """The bones that Add Helper Bones has made in an armature object, in its order. Cheap enough for a panel."""
    return [bone.name for bone in armature.data.bones if bone.get(_KEY) == _HELPER]


def added_parents(armature, names) -> list[str]:
    """The parents that were made for the bones ``names`` alone, to let them shear."""
    parents = (armature.data.bones[name].parent for name in names)
    return list(dict.fromkeys(bone.name for bone in parents if bone is not None and bone.get(_KEY) == _PARENT))


def remove_empty_collections(armature, names) -> None:
    """Remove those of the bone collections ``names`` that were made for added bones and have nothing in them."""
    for name in {HELPERS, MECHANISM} & set(names):
        remove_if_empty(armature.data, armature.data.collections_all.get(name))


def chain_parents(armature, names) -> dict[str, str]:
    """For those of the bones that have one, the parent with which they can shear: at the same place, not deforming,
    theirs alone."""
    found = {}
    for name in names:
        bone = armature.data.bones[name]
        parent = bone.parent
        if parent is None or parent.use_deform or len(parent.children) != 1 or bone.use_connect:
            continue
        plain = bone.use_inherit_rotation and bone.inherit_scale == "FULL" and bone.use_local_location
        distance = np.abs(np.array(bone.matrix_local) - np.array(parent.matrix_local)).max()
        if plain and distance <= _SAME_PLACE * max(1.0, np.abs(np.array(bone.head_local)).max()):
            found[name] = parent.name
    return found


def missing_chains(armature, names) -> list[NewBone]:
    """The parents that the bones lack to be able to shear."""
    have = chain_parents(armature, names)
    taken = {bone.name for bone in armature.data.bones}
    specs = []
    for name in names:
        if name in have:
            continue
        bone = armature.data.bones[name]
        made = free_name(taken, f"{MECHANISM_PREFIX}{name}")
        matrix = np.array(bone.matrix_local, dtype=np.float64)
        specs.append(NewBone(made, "", matrix, bone.length, False, adopts=name))
    return specs


def moved_otherwise(armature, names) -> list[str]:
    """Those of the bones whose location would be along other axes if they had a new parent at their place."""
    bones = (armature.data.bones[name] for name in names)
    return [
        bone.name
        for bone in bones
        if not (bone.use_local_location and (bone.use_inherit_rotation or bone.parent is None))
    ]


def free_name(taken: set[str], wanted: str) -> str:
    """``wanted``, shortened and numbered where that is needed; added to ``taken``."""
    base = wanted.encode()[: _LONGEST_NAME - 4].decode(errors="ignore")
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}.{number:03}"
    taken.add(name)
    return name
