# SPDX-License-Identifier: GPL-3.0-or-later
"""The keyframes of helper bones in all actions of their armature. Left there, they would move later helpers."""

from collections.abc import Sequence
from dataclasses import dataclass

import bpy

from .. import actions


@dataclass(frozen=True, eq=False)
class HelperKeys:
    """Keyframes of bones. beginnings: of their data paths; containers: of the curves to remove; shared: the names of
    the armature's actions that another armature with such bones plays, too, and that therefore keep the keyframes."""

    beginnings: tuple[str, ...]
    containers: tuple
    shared: tuple[str, ...]

    def remove(self) -> None:
        for container in self.containers:
            actions.remove_curves_of(container, lambda path: path.startswith(self.beginnings))


def find_keys(armature: bpy.types.Object, names: Sequence[str]) -> HelperKeys:
    """The keyframes of the bones ``names`` in the actions of the file, but for those of libraries.

    Actions that nothing plays are those of the armature, unless another one has such bones.
    """
    beginnings = actions.bone_paths(names)
    others = [
        ob
        for ob in bpy.data.objects
        if ob.type == "ARMATURE" and ob != armature and any(name in ob.pose.bones for name in names)
    ]
    own, theirs = actions.played_slots(armature), {each for ob in others for each in actions.played_slots(ob)}
    containers, shared = [], []
    for action in bpy.data.actions if names else ():
        if action.library is not None:
            continue
        for slot, found in actions.containers_by_slot(action):
            keyed = [each for each in found if any(curve.data_path.startswith(beginnings) for curve in each.fcurves)]
            mine = (action, slot) in own
            if (action, slot) not in theirs and (mine or not others):
                containers += keyed
            elif keyed and mine:
                shared.append(action.name)
    return HelperKeys(beginnings, tuple(containers), tuple(shared))
