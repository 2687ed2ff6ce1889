# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones from a new root to the old one, and how Make Root turns them around."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Vector

from ...blender.armatures import CONNECTED, bones_edited

# Shares of a bone's length: joints closer to each other are at one place; and how far a joint may come apart by the
# single precision of poses.
_ONE_PLACE, _HOLDS = 0.1, 1e-3


@dataclass(frozen=True)
class Way:
    """names: the bones from the new root to the old one; carrier: the bone above that, "" for none. held: whether each
    bone but the last only rotates about its joint, as far as locks tell before ``holding``. disconnected: other bones
    that are connected to the end of one of these, which moves."""

    names: tuple[str, ...]
    carrier: str
    held: tuple[bool, ...]
    disconnected: tuple[str, ...]

    @classmethod
    def of(cls, rig: bpy.types.Object, names: Sequence[str]) -> "Way":
        bones = [rig.data.bones[name] for name in names]
        top = bones[-1].parent
        held = (bone.use_connect or all(rig.pose.bones[bone.name].lock_location) for bone in bones[:-1])
        children = (child for bone in bones for child in bone.children if child not in bones)
        connected = tuple(child.name for child in children if child.use_connect)
        return cls(tuple(names), top.name if top is not None else "", tuple(held), connected)

    def holding(self, rig: bpy.types.Object, motion: np.ndarray) -> "Way":
        """The way without the joints that come apart in the motion (F, P, 4, 4) of all ``moving``: keys of a location
        play though it is locked."""
        bones = [rig.data.bones[name] for name in self.names[:-1]]
        joints = np.array([(*bone.head_local, 1.0) for bone in bones])[:, :, None]
        own, above = motion[:, : len(bones)] @ joints, motion[:, 1 : len(bones) + 1] @ joints
        slip = np.linalg.norm(own - above, axis=(2, 3)).max(axis=0)
        holds = slip <= _HOLDS * np.array([bone.length for bone in bones])
        return replace(self, held=tuple((np.array(self.held) & holds).tolist()))

    @property
    def only_turning(self) -> list[str]:
        """The bones that only rotate about their joint once they are turned around."""
        return [name for name, held in zip(self.names[1:], self.held, strict=True) if held]

    @property
    def moving(self) -> tuple[str, ...]:
        """The bones whose motion counts, the carrier last."""
        return (*self.names, self.carrier) if self.carrier else self.names

    def channels(self, motion: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """(F, n, 4, 4) of the bones, from the motion (F, P, 4, 4) of all ``moving`` and their new rest (n, 4, 4)."""
        count = len(self.names)
        own, still = motion[:, :count], np.broadcast_to(np.eye(4), motion[:, :1].shape)
        above = np.concatenate([motion[:, count:] if self.carrier else still, own[:, :-1]], axis=1)
        channels = np.linalg.inv(rest) @ np.linalg.inv(above) @ own @ rest
        channels[:, 1:][:, np.array(self.held), :3, 3] = 0.0
        return channels

    @contextmanager
    def turned(self, context: bpy.types.Context, rig: bpy.types.Object) -> Iterator[None]:
        """Context in which the bones are turned around and parented anew; they stay so unless the block raises."""
        before = {}
        with bones_edited(context, rig) as edit_bones:
            for name in (*self.names, *self.disconnected):
                before[name] = _Place.of(edit_bones[name])
            self._turn(edit_bones)
        try:
            yield
        except BaseException:
            with bones_edited(context, rig) as edit_bones:
                for name in before:
                    edit_bones[name].use_connect, edit_bones[name].parent = False, None
                for name, place in before.items():
                    place.put_back(edit_bones, name)
            raise

    def _turn(self, edit_bones: bpy.types.ArmatureEditBones) -> None:
        bones = [edit_bones[name] for name in self.names]
        for name in (*self.names, *self.disconnected):
            edit_bones[name].use_connect = False
        for bone in bones:
            bone.parent = None
        ends = [(bone.head.copy(), bone.tail.copy(), bone.z_axis.copy()) for bone in bones]
        bones[0].parent = edit_bones.get(self.carrier)
        joint = ends[0][1]
        for bone, (head, tail, up) in zip(bones, ends, strict=True):
            least = _ONE_PLACE * (tail - head).length
            # The old root has begun anywhere, and may go on ending where it does.
            places = [tail, head] if bone == bones[-1] else [head]
            end = next((place for place in places if (place - joint).length > least), joint + tail - head)
            bone.head, bone.tail = joint, end
            # X, about which the bone bends, stays.
            bone.align_roll(-up if end == head else up)
            joint = head
        for bone, above in zip(bones[1:], bones, strict=False):
            bone.parent = above
        for name in (*self.disconnected, *self.only_turning):
            bone = edit_bones[name]
            bone.use_connect = (bone.head - bone.parent.tail).length < CONNECTED * bone.parent.length


@dataclass(frozen=True)
class _Place:
    """An edit bone's ends, roll, parent and whether it is connected to it."""

    head: Vector
    tail: Vector
    roll: float
    parent: str
    connected: bool

    @classmethod
    def of(cls, bone: bpy.types.EditBone) -> "_Place":
        parent = bone.parent.name if bone.parent is not None else ""
        return cls(bone.head.copy(), bone.tail.copy(), bone.roll, parent, bone.use_connect)

    def put_back(self, edit_bones: bpy.types.ArmatureEditBones, name: str) -> None:
        bone = edit_bones[name]
        bone.head, bone.tail, bone.roll = self.head, self.tail, self.roll
        bone.parent = edit_bones.get(self.parent)
        bone.use_connect = self.connected
