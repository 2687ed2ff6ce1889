# SPDX-License-Identifier: GPL-3.0-or-later
"""Make examples of one side of a character from those of the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.bodies import to_mesh
from ...blender.preconditions import unmet
from ...blender.skin_reader import Skin
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene
from ...core.geometry import MIRROR_X, diagonal, transform_points
from .example_pose import stored_pose
from .example_sources import POSE_MARKER, check_addable, pose_name
from .examples import (
    all_or_none,
    example_items,
    read_examples,
    read_rig,
    replace_examples,
    same_poses,
    store_example,
)

if TYPE_CHECKING:
    from ...core.eigenskin.types import Examples, Rig

# The mirror plane is X = 0, as for poses in Blender.
_FLIP = np.diag(MIRROR_X)

# The largest distance of a bone from the mirror image of its counterpart, as a share of the mesh's extent.
_ASYMMETRY = 0.005


@dataclass(frozen=True)
class Mirrored:
    """A finished mirroring. names: of the new examples. replaced: number of older examples with the same poses.
    left_out: number of examples that pose both sides or neither. alone: number of vertices without a counterpart, which
    have the shape of linear blending."""

    object_name: str
    names: tuple[str, ...]
    replaced: int
    left_out: int
    alone: int

    def summary(self) -> str:
        """The result in one line."""
        text = f"{self.object_name}: {counted(len(self.names), 'example')} mirrored"
        if self.replaced:
            text += f", {counted(self.replaced, 'of the same pose')} replaced"
        if self.left_out:
            text += f"; {self.left_out} that pose both sides or neither left out"
        if self.alone:
            text += f"; no correction for {vertices_text(self.alone)} without a counterpart"
        return text


def mirror_examples(context: bpy.types.Context, active: bpy.types.Object | None, direction: str) -> Mirrored:
    """Mirror the enabled examples that pose one side across the mesh's local X axis. The names of bones tell the side.

    Examples of the other side with the same pose are replaced. All or nothing. Raises BadScene, BadExamples.
    """
    from ...core.eigenskin import is_turned, mirrored_examples
    from ...core.rotation_centers import mirror_pairs

    mesh_object = check_addable(context, active)
    skin, rig = read_rig(context, mesh_object)
    examples = read_examples(mesh_object, rig)
    sides = np.array([side_of(name) for name in rig.joint_names])
    posed = is_turned(examples.rotations)
    left, right = (posed[:, sides == side].any(axis=1) for side in ("LEFT", "RIGHT"))
    source, target = (left, right) if direction == "LEFT_TO_RIGHT" else (right, left)
    chosen = np.flatnonzero(source & ~target)
    if not len(chosen):
        side, example = ("left side", ".L") if direction == "LEFT_TO_RIGHT" else ("right side", ".R")
        raise BadScene(
            f"No example of {skin.label} poses the {side} alone. Bones of a side have names that end in "
            f'"{example}", for instance'
        )
    _check_counterparts(skin, rig.joint_names, np.any(posed[chosen], axis=0))
    _check_symmetric(skin, rig.joint_names)
    partners = mirror_pairs(skin.rest)
    mirrored = mirrored_examples(
        replace(
            examples,
            names=tuple(examples.names[row] for row in chosen),
            rotations=examples.rotations[chosen],
            matrices=examples.matrices[chosen],
            shapes=examples.shapes[chosen],
        ),
        rig,
        _rest_frames(skin, rig.joint_names),
        _counterparts(rig.joint_names),
        _counterparts(skin.bone_names),
        partners,
    )
    names, replaced = _exchange(skin, rig, mirrored, chosen)
    return Mirrored(mesh_object.name, names, replaced, int((left == right).sum()), int((partners < 0).sum()))


def _exchange(skin: Skin, rig: "Rig", mirrored: "Examples", chosen: np.ndarray) -> tuple[tuple[str, ...], int]:
    """Store the mirror images of the enabled examples ``chosen``, and remove older examples with the same poses.

    Returns the names of the new examples and the number of removed ones.
    """
    armature, examples = skin.armature, list(skin.armature.skinning_eigenskin.examples)
    items = [item for item in example_items(armature, skin.object) if item.enabled]
    sources = [(items[row].kind, items[row].frame, stored_pose(items[row]).channels) for row in chosen]
    names = [
        mirrored_name(name, rig, rotations) for name, rotations in zip(mirrored.names, mirrored.rotations, strict=True)
    ]
    replaced = same_poses(armature, skin.object, rig, mirrored.rotations)
    # Mirroring there and back keeps the names.
    older = {row: item.name for item in reversed(examples) if item.uid in replaced for row in replaced[item.uid]}
    names = [older.get(row, name) for row, name in enumerate(names)]
    with all_or_none(armature):
        for row, (kind, frame, channels) in enumerate(sources):
            store_example(
                skin,
                names[row],
                kind,
                mirrored.rotations[row],
                mirrored.matrices[row],
                mirrored.shapes[row],
                frame,
                channels=_mirrored_channels(skin, channels),
            )
    return replace_examples(armature, replaced, names), len(replaced)


def side_of(name: str) -> str:
    """The side that a bone's name has: "LEFT", "RIGHT", or "" for none."""
    flipped = bpy.utils.flip_name(name)
    changed = next((own for own, other in zip(name, flipped, strict=False) if own != other), "")
    return {"l": "LEFT", "r": "RIGHT"}.get(changed.lower(), "")


def mirrored_name(name: str, rig: "Rig", rotations: np.ndarray) -> str:
    """The name of an example's mirror image with rotations (J, 4)."""
    if POSE_MARKER.search(name):
        turned = pose_name(rig, rotations)
        if POSE_MARKER.search(turned):
            return turned
    for joint in sorted(rig.joint_names, key=len, reverse=True):
        if side_of(joint) and joint in name:
            return name.replace(joint, bpy.utils.flip_name(joint))
    flipped = bpy.utils.flip_name(name)
    return flipped if flipped != name else f"{name} mirrored"


def _counterparts(names: Sequence[str]) -> np.ndarray:
    """(J,) index of each bone's counterpart: its own index if its name has no side, −1 without a counterpart."""
    order = {name: index for index, name in enumerate(names)}
    return np.array([order.get(bpy.utils.flip_name(name), -1) for name in names], int)


def _check_counterparts(skin: Skin, names: Sequence[str], posed: np.ndarray) -> None:
    """Raise BadScene if one of the bones ``posed`` (J,) has no counterpart."""
    for index in np.flatnonzero(posed & (_counterparts(names) < 0)):
        raise unmet(
            "NO_COUNTERPART",
            bone=names[index],
            other=bpy.utils.flip_name(names[index]),
            does=f"moves {skin.label} too",
            remedy="Rename the bones, give both weights, or disable the examples that pose it",
        )


def _check_symmetric(skin: Skin, names: Sequence[str]) -> None:
    """Raise BadScene if a bone's rest position is not the mirror image of its counterpart's."""
    counterparts = _counterparts(names)
    paired = np.flatnonzero(counterparts >= 0)
    bones = [skin.armature.data.bones[name] for name in names]
    ends = np.array([[bone.head_local, bone.tail_local] for bone in bones])
    ends = transform_points(ends, to_mesh(skin.object, skin.armature))
    strayed = np.abs(ends[counterparts[paired]] * (-1, 1, 1) - ends[paired]).max(axis=(1, 2))
    worst = paired[np.argmax(strayed)]
    if strayed.max() > _ASYMMETRY * diagonal(skin.rest):
        raise BadScene(
            f'The bones "{names[worst]}" and "{names[counterparts[worst]]}" do not mirror each other at rest across '
            f"the local X axis of {skin.label}. Make the armature symmetric, and the object's origin in its middle"
        )


def _rest_frames(skin: Skin, names: Sequence[str]) -> np.ndarray:
    """(J, 3, 3) the axes of bones at rest, in the mesh object's space, as columns."""
    from ...core.rotations import polar_decomposition

    frames = np.array([np.array(skin.armature.data.bones[name].matrix_local)[:3, :3] for name in names])
    return polar_decomposition(to_mesh(skin.object, skin.armature)[:3, :3] @ frames)[0]


def _mirrored_channels(skin: Skin, channels: dict[str, list[float]]) -> dict[str, list[float]]:
    """The channels of the other side's bones; none if a bone has no counterpart in the armature."""
    names = list(channels)
    flipped = [bpy.utils.flip_name(name) for name in names]
    if not names or not all(name in skin.armature.data.bones for name in (*names, *flipped)):
        return {}
    turns = np.swapaxes(_rest_frames(skin, flipped), 1, 2) @ _FLIP @ _rest_frames(skin, names)
    bases = np.array(list(channels.values())).reshape(-1, 4, 4)
    result = np.tile(np.eye(4), (len(names), 1, 1))
    result[:, :3, :3] = turns @ bases[:, :3, :3] @ np.swapaxes(turns, 1, 2)
    result[:, :3, 3] = np.einsum("bij,bj->bi", turns, bases[:, :3, 3])
    return dict(zip(flipped, result.reshape(-1, 16).tolist(), strict=True))
