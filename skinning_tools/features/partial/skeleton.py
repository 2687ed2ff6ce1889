# SPDX-License-Identifier: GPL-3.0-or-later
"""The skeleton that Solve Again finds: which bones have joints, and what their user should know."""

from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.armatures import check_armature
from ...blender.bodies import named_parents
from ...blender.joint_records import abandoned_joints, has_note, undecided_joints
from ...blender.wording import counted, listed, vertices_text


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The deforming bones ``names`` (P) of an armature as the user has them now.

    held (P): whether each turns about its joint. One on a bone that does not deform, such as a root, moves freely.
    movable (P,) bool: whose joints the solve finds. abandoned (P,) bool: bones that move freely now, and that another
    has carried. known (P,) bool: bones that a conversion has found or a solve has kept.
    """

    armature: bpy.types.Object
    names: tuple[str, ...]
    held: list[bool]
    movable: np.ndarray
    abandoned: np.ndarray
    known: np.ndarray

    @classmethod
    def of(
        cls, armature: bpy.types.Object, names: tuple[str, ...], *, rotation_only: bool, find_joints: bool
    ) -> "Skeleton":
        """Raises BadScene if there are joints to find and the armature's bones cannot be changed."""
        above = named_parents(armature, names)
        held = [
            armature.data.bones[name].use_connect or bool(rotation_only and parent >= 0)
            for name, parent in zip(names, above, strict=True)
        ]
        movable = undecided_joints(armature, names) & find_joints
        if movable.any():
            check_armature(armature)
        abandoned = abandoned_joints(armature, names) & ~np.array(held)
        known = np.array([has_note(armature.pose.bones[name]) for name in names])
        return cls(armature, names, held, movable, abandoned, known)

    def notes(self, follow: np.ndarray, new: np.ndarray, kept_small: np.ndarray) -> list[str]:
        """What became of the bones, where their user may not expect it. follow (P,): the numbers of their vertices;
        new (P,) bool: those that had none before; kept_small (P,) bool: those that were kept from taking over more."""
        notes = []
        stray = np.flatnonzero(new & (named_parents(self.armature, self.names) < 0) & (follow > 0))
        if len(stray):
            told = listed([f"{self.names[index]} ({vertices_text(int(follow[index]))})" for index in stray])
            notes.append(
                f"{counted(len(stray), 'new bone')} moving freely, without a parent that deforms: {told}. To let a "
                "bone turn about a joint, parent it in Edit Mode"
            )
        alone = self._named(self.abandoned)
        if alone:
            notes.append(
                f"{counted(len(alone), 'bone')} moving freely, because the parent is gone or does not deform: "
                f"{listed(alone)}. A bone gets a joint when you parent it, in Edit Mode, to one that deforms; one may "
                "stay the root"
            )
        small = self._named(kept_small)
        if small:
            notes.append(
                f"{counted(len(small), 'small bone')} kept from taking over vertices of others that move alike: "
                f"{listed(small)}. To give a bone more vertices, paint weights"
            )
        idle = self._named(follow == 0)
        if idle:
            notes.append(
                f"{counted(len(idle), 'bone')} without vertices: {listed(idle)}. Place a bone inside the mesh to give "
                "it some"
            )
        placed = self._named(self.movable)
        if placed:
            notes.append(f"{counted(len(placed), 'new joint')} found: {listed(placed)}")
        return notes

    def ways_to_less_error(self) -> list[str]:
        """Advice on bones of the skeleton that do not deform any more, and on those that take joints along wherever
        their own channels do."""
        parents = {name: self.armature.data.bones[name].parent for name in self._named(np.array(self.held))}
        taken = {name: parent.name for name, parent in parents.items() if parent.name not in self.names}
        idle = [bone.name for bone in self.armature.pose.bones if has_note(bone) and bone.name not in self.names]
        ways = [f"turn on Deform of {listed(idle)}"] if idle else []
        if taken:
            carriers = listed(list(dict.fromkeys(taken.values())))
            ways.append(
                f"parent {listed(list(taken))} to bones that deform, as others ({carriers}) take the joints along "
                "by their own keys and pose"
            )
        return ways

    def _named(self, chosen: np.ndarray) -> list[str]:
        return [name for name, mine in zip(self.names, chosen, strict=True) if mine]
