# SPDX-License-Identifier: GPL-3.0-or-later
"""The channels that bones are keyed with, from the matrices of a decomposition, and what they make in between."""

from dataclasses import dataclass, fields, replace

import numpy as np

from . import affine_chain, quaternions
from .bone_placement import extents_along


@dataclass(frozen=True, eq=False)
class BoneChannels:
    """Channels of P bones over F frames, in the bones' rest frames, quaternions (w, x, y, z).

    location (F, P, 3), rotation (F, P, 4), scale (F, P, 3) or None; for chains of two bones those of the parents, with
    child_rotation (F, P, 4) and child_scale (P, 3), the same in all frames, of their children; else None.
    """

    location: np.ndarray
    rotation: np.ndarray
    scale: np.ndarray | None = None
    child_rotation: np.ndarray | None = None
    child_scale: np.ndarray | None = None

    def moving(self) -> dict[str, np.ndarray]:
        """The channels that change over time, by name: (F, P, …)."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: values for name, values in named if values is not None and name != "child_scale"}

    def matrices(self) -> np.ndarray:
        """(F, P, 3, 4) in the rest frames; quaternions of any length, as between two keys."""
        return rest_frame_matrices(self.child_scale, **self.moving())

    def at_keys(self, rows: dict, times: np.ndarray) -> "BoneChannels":
        """The channels as they are with keys at the frames ``rows[name][bone]`` only, linear in between.

        times (F,): where the frames are.
        """
        channels = {name: values.copy() for name, values in self.moving().items()}
        for name, values in channels.items():
            for bone, kept in enumerate(rows[name]):
                for column in values[:, bone].T:
                    column[:] = np.interp(times, times[kept], column[kept])
        return replace(self, **channels)


def bone_channels(decomposition, rest: np.ndarray) -> BoneChannels:
    """The channels of a core.decomposition.Decomposition on bones whose rest matrices are ``rest`` (P, 4, 4)."""
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


def rest_frame_matrices(child_scale, *, location, rotation, scale=None, child_rotation=None) -> np.ndarray:
    """(..., 3, 4) from channels (..., 3) and (..., 4) as Blender makes them: quaternions are normalized."""
    linear = quaternions.to_matrices(_unit(rotation))
    if scale is not None:
        linear = linear * scale[..., None, :]
    if child_rotation is not None:
        linear = linear @ (quaternions.to_matrices(_unit(child_rotation)) * child_scale[..., None, :])
    return np.concatenate([linear, location[..., None]], axis=-1)


def _unit(rotation: np.ndarray) -> np.ndarray:
    return rotation / np.linalg.norm(rotation, axis=-1, keepdims=True)
