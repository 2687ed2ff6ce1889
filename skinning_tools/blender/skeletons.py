# SPDX-License-Identifier: GPL-3.0-or-later
"""The joints between an armature's deforming bones."""

from collections.abc import Sequence

import bpy
import numpy as np

from ..core.imitation.skeleton import Skeleton
from .armatures import rest_matrices


def skeleton_of(armature: bpy.types.Object, names: Sequence[str]) -> Skeleton:
    """The joints of the bones ``names``.

    The parent of a bone: its nearest ancestor among them; else that of the bone which its constraints copy, as on
    generated rigs, where controls move deforming bones that have no deforming parents.
    """
    index = {name: place for place, name in enumerate(names)}
    copied: dict[str, str] = {}
    for name in names:
        for target in copied_bones(armature, name):
            copied.setdefault(target, name)
    parents = np.full(len(names), -1)
    for place, name in enumerate(names):
        found = _above(armature, name, index, {})
        if found is None:
            chains = (_above(armature, target, index, copied) for target in copied_bones(armature, name))
            found = next((each for each in chains if each is not None and each != name), None)
        if found is not None and not _is_above(parents, place, index[found]):
            parents[place] = index[found]
    return Skeleton(parents, rest_matrices(armature, names))


def _is_above(parents: np.ndarray, bone: int, below: int) -> bool:
    """Whether ``bone`` is an ancestor of ``below``, or the same."""
    while below >= 0:
        if below == bone:
            return True
        below = int(parents[below])
    return False


def _above(armature: bpy.types.Object, name: str, index: dict[str, int], copied: dict[str, str]) -> str | None:
    for bone in armature.data.bones[name].parent_recursive:
        if bone.name in index:
            return bone.name
        if bone.name in copied:
            return copied[bone.name]
    return None


def copied_bones(armature: bpy.types.Object, name: str) -> list[str]:
    """The armature's own bones that a bone copies."""
    return [
        constraint.subtarget
        for constraint in armature.pose.bones[name].constraints
        if constraint.type in ("COPY_TRANSFORMS", "COPY_ROTATION", "CHILD_OF")
        and constraint.target == armature
        and constraint.subtarget in armature.data.bones
        and constraint.subtarget != name
    ]
