# SPDX-License-Identifier: GPL-3.0-or-later
"""The channels that bones are keyed with, from the matrices of a decomposition, and the motion between the keys."""

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import affine_chain, quaternions
from .bone_order import parents_first
from .bone_placement import extents_along
from .joint_hierarchy import JointHierarchy, inverse_motion, rigid_motion

if TYPE_CHECKING:
    from .decomposition import Decomposition

JOINT_CHANNELS = ("joint_location", "joint_rotation")
_CONSTANT = ("child_scale", "tree")


@dataclass(frozen=True, eq=False)
class JointTree:
    """P joints, one for each bone: hierarchy, and rest (P, 4, 4), their matrices at rest.

    bare: whether the bones are the joints themselves, as rigid bones may be; otherwise each is a child of its joint.
    """

    hierarchy: JointHierarchy
    rest: np.ndarray
    bare: bool

    def posed(self, local: np.ndarray) -> np.ndarray:
        """(..., P, 4, 4) object-space motion of the joints from ``local`` (..., P, 4, 4), in their rest frames and
        relative to their parents."""
        motion = self.rest @ local @ np.linalg.inv(self.rest)
        for bone in parents_first(self.hierarchy.parents):
            parent = self.hierarchy.parents[bone]
            if parent >= 0:
                motion[..., bone, :, :] = motion[..., parent, :, :] @ motion[..., bone, :, :]
        return motion


@dataclass(frozen=True, eq=False)
class BoneChannels:
    """Channels of P bones over F frames, in the bones' rest frames, quaternions (w, x, y, z).

    location (F, P, 3), rotation (F, P, 4), scale (F, P, 3) or None; for chains of two bones those of the parents, with
    child_rotation (F, P, 4) and child_scale (P, 3), the same in all frames, of their children; else None.
    Where the bones hang from joints: tree, and the joints' joint_location (F, P, 3) and joint_rotation (F, P, 4); the
    others are relative to the joints, and None where the bones are the joints.
    """

    location: np.ndarray | None = None
    rotation: np.ndarray | None = None
    scale: np.ndarray | None = None
    child_rotation: np.ndarray | None = None
    child_scale: np.ndarray | None = None
    joint_location: np.ndarray | None = None
    joint_rotation: np.ndarray | None = None
    tree: JointTree | None = None

    def moving(self) -> dict[str, np.ndarray]:
        """The channels that change over time, by name: (F, P, …)."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: values for name, values in named if values is not None and name not in _CONSTANT}

    def object_matrices(self, bone_rest: np.ndarray) -> np.ndarray:
        """(F, P, 3, 4) of bones at rest at ``bone_rest`` (P, 4, 4), in object space: M = rest · L · rest⁻¹.

        Quaternions may be of any length, as between two keys.
        """
        moving = self.moving()
        joints = {name: moving.pop(name) for name in JOINT_CHANNELS if name in moving}
        if not moving:
            return self._carried(joints)[..., :3, :]
        local = square(rest_frame_matrices(self.child_scale, **moving))
        matrices = bone_rest @ local @ np.linalg.inv(bone_rest)
        return (self._carried(joints) @ matrices if joints else matrices)[..., :3, :]

    def _carried(self, joints: dict[str, np.ndarray]) -> np.ndarray:
        """(F, P, 4, 4) object-space motion of the joints by their channels."""
        assert self.tree is not None
        return self.tree.posed(square(joint_frame_matrices(**joints)))

    def at_keys(self, rows: dict, times: np.ndarray) -> "BoneChannels":
        """The channels as they are with keys at the frames ``rows[name][bone]`` only, linear in between.

        times (F,): where the frames are.
        """
        channels: dict[str, Any] = {name: values.copy() for name, values in self.moving().items()}
        for name, values in channels.items():
            for bone, kept in enumerate(rows[name]):
                for column in values[:, bone].T:
                    column[:] = np.interp(times, times[kept], column[kept])
        return replace(self, **channels)


def bone_channels(decomposition: "Decomposition", rest: np.ndarray, tree: JointTree | None = None) -> BoneChannels:
    """The channels of a core.decomposition.Decomposition on bones whose rest matrices are ``rest`` (P, 4, 4).

    tree: the joints that the bones hang from; they move rigidly, as close to their bones as possible.
    """
    if tree is None:
        return _free_channels(decomposition, rest)
    skin = decomposition.rest, decomposition.bones, decomposition.weights
    motion = square(rigid_motion(decomposition.transforms, *skin))
    parents = tree.hierarchy.parents
    relative = np.where((parents >= 0)[:, None, None], inverse_motion(motion[:, parents]) @ motion, motion)
    location, rotation = affine_chain.rigid_channels(affine_chain.in_rest_frame(relative[..., :3, :], tree.rest))
    # Where joints hold, what is left is rounding.
    location[:, tree.hierarchy.holding] = 0.0
    if tree.bare:
        return BoneChannels(joint_location=location, joint_rotation=rotation, tree=tree)
    left = (inverse_motion(motion) @ square(decomposition.transforms))[..., :3, :]
    channels = _free_channels(replace(decomposition, transforms=left), rest)
    return replace(channels, joint_location=location, joint_rotation=rotation, tree=tree)


def _free_channels(decomposition: "Decomposition", rest: np.ndarray) -> BoneChannels:
    matrices = affine_chain.in_rest_frame(decomposition.transforms, rest)
    if decomposition.bone_kind == "AFFINE":
        extents = extents_along(
            rest[:, :3, :3], decomposition.rest, decomposition.bones, decomposition.weights, len(rest)
        )
        chain = affine_chain.split(matrices, extents)
        return BoneChannels(chain.location, chain.rotation, chain.scale, chain.child_rotation, chain.child_scale)
    if decomposition.bone_kind == "SCALED":
        return BoneChannels(*affine_chain.scaled_channels(matrices))
    return BoneChannels(*affine_chain.rigid_channels(matrices))


def square(matrices: np.ndarray) -> np.ndarray:
    """(..., 4, 4) of ``matrices`` (..., 3, 4)."""
    last = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (*matrices.shape[:-2], 1, 4))
    return np.concatenate([matrices, last], axis=-2)


def joint_frame_matrices(*, joint_location: np.ndarray, joint_rotation: np.ndarray) -> np.ndarray:
    """(..., 3, 4) of joints, relative to their parents, from channels (..., 3) and (..., 4)."""
    return rest_frame_matrices(None, location=joint_location, rotation=joint_rotation)


def rest_frame_matrices(
    child_scale: np.ndarray | None,
    *,
    location: np.ndarray,
    rotation: np.ndarray,
    scale: np.ndarray | None = None,
    child_rotation: np.ndarray | None = None,
) -> np.ndarray:
    """(..., 3, 4) from channels (..., 3) and (..., 4) as Blender makes them: quaternions are normalized."""
    linear = quaternions.to_matrices(quaternions.normalized(rotation))
    if scale is not None:
        linear = linear * scale[..., None, :]
    if child_rotation is not None:
        assert child_scale is not None
        linear = linear @ (quaternions.to_matrices(quaternions.normalized(child_rotation)) * child_scale[..., None, :])
    return np.concatenate([linear, location[..., None]], axis=-1)
