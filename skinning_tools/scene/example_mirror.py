# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of one side of a character made from those of the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..core.errors import BadScene
from .eigenskin_examples import (
    check_storable,
    example_items,
    read_examples,
    read_rig,
    remove_example,
    same_poses,
    store_example,
    stored_pose,
    unique_name,
)
from .example_sources import POSE_MARKER, pose_name
from .skin_reader import Skin

DIRECTIONS = (
    ("LEFT_TO_RIGHT", "Left to Right", "Make examples of the right side from those of the left side"),
    ("RIGHT_TO_LEFT", "Right to Left", "Make examples of the left side from those of the right side"),
)

# Across X, as Blender mirrors poses.
_FLIP = np.diag([-1.0, 1.0, 1.0])

# Of the mesh's extent: how far bones may be from the mirror images of their counterparts.
_ASYMMETRY = 0.005


@dataclass(frozen=True)
class Mirrored:
    """names: of the new examples; replaced: how many older ones had their poses; left_out: how many examples pose both
    sides, or neither."""

    object_name: str
    names: tuple[str, ...]
    replaced: int
    left_out: int

    def summary(self) -> str:
        """The result in one line."""
        text = f"{self.object_name}: {len(self.names)} examples mirrored"
        if self.replaced:
            text += f", {self.replaced} older ones of the same poses replaced"
        if self.left_out:
            text += f"; {self.left_out} that pose both sides or neither left out"
        return text


def mirror_examples(context, object, direction: str) -> Mirrored:
    """Mirror the enabled examples that pose one side, told by the names of bones, across the mesh's local X.

    Examples of the other side with one of the new poses are replaced. All or nothing. Raises BadScene, BadExamples.
    """
    from ..core.eigenskin import rotation_angles
    from ..core.eigenskin.mirror import mirrored_examples
    from ..core.eigenskin.pose_space import SAME_ROTATION
    from ..core.rotation_centers import mirror_pairs

    skin, rig = read_rig(context, object)
    armature = skin.armature
    check_storable(armature)
    examples = read_examples(object, rig, armature)
    sides = np.array([side_of(name) for name in rig.joint_names])
    posed = rotation_angles(examples.rotations) > SAME_ROTATION
    left, right = (posed[:, sides == side].any(axis=1) for side in ("LEFT", "RIGHT"))
    source, target = (left, right) if direction == "LEFT_TO_RIGHT" else (right, left)
    chosen = np.flatnonzero(source & ~target)
    if not len(chosen):
        side, example = ("left", ".L") if direction == "LEFT_TO_RIGHT" else ("right", ".R")
        raise BadScene(
            f"No example of {skin.label} poses the {side} side alone. Bones of a side have names that end in "
            f'"{example}", for instance'
        )
    _check_symmetric(skin, rig.joint_names)
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
        _counterparts(skin, rig.joint_names),
        _counterparts(skin, skin.bone_names),
        mirror_pairs(skin.rest),
    )
    items = [item for item in example_items(armature, object) if item.enabled]
    sources = [(items[row].kind, items[row].frame, stored_pose(items[row]).channels) for row in chosen]
    replaced = {item.uid for item in same_poses(armature, object, rig, mirrored.rotations)}
    examples_of_all = armature.skinning_eigenskin.examples
    before = len(examples_of_all)
    try:
        for row, (kind, frame, channels) in enumerate(sources):
            store_example(
                skin,
                mirrored_name(mirrored.names[row], rig, mirrored.rotations[row]),
                kind,
                mirrored.rotations[row],
                mirrored.matrices[row],
                mirrored.shapes[row],
                frame,
                channels=_mirrored_channels(skin, channels),
            )
    except BaseException:
        while len(examples_of_all) > before:
            remove_example(armature, len(examples_of_all) - 1)
        raise
    for index in reversed(range(before)):
        if examples_of_all[index].uid in replaced:
            remove_example(armature, index)
    made = list(examples_of_all)[-len(chosen) :]
    for row, item in enumerate(made):
        # The names of those that were replaced are free now.
        others = {other.name for other in examples_of_all if other != item}
        item.name = unique_name(mirrored_name(mirrored.names[row], rig, mirrored.rotations[row]), others)
    return Mirrored(object.name, tuple(item.name for item in made), len(replaced), int((left == right).sum()))


def side_of(name: str) -> str:
    """ "LEFT" or "RIGHT" by the name of a bone, "" where it names no side."""
    flipped = bpy.utils.flip_name(name)
    changed = next((own for own, other in zip(name, flipped, strict=False) if own != other), "")
    return {"l": "LEFT", "r": "RIGHT"}.get(changed.lower(), "")


def mirrored_name(name: str, rig, rotations: np.ndarray) -> str:
    """What the mirror image of an example is called, whose rotations are (J, 4)."""
    if POSE_MARKER.search(name):
        return pose_name(rig, rotations)
    for joint in sorted(rig.joint_names, key=len, reverse=True):
        if side_of(joint) and joint in name:
            return name.replace(joint, bpy.utils.flip_name(joint))
    flipped = bpy.utils.flip_name(name)
    return flipped if flipped != name else f"{name} mirrored"


def _counterparts(skin: Skin, names: Sequence[str]) -> np.ndarray:
    """(J,) the place of each bone's counterpart, its own where the bone is on no side."""
    order = {name: index for index, name in enumerate(names)}
    found = []
    for name in names:
        flipped = bpy.utils.flip_name(name)
        if flipped not in order:
            raise BadScene(
                f'The bone "{name}" has no counterpart "{flipped}" that moves {skin.label} too. Rename the bones, or '
                "give both weights"
            )
        found.append(order[flipped])
    return np.array(found, int)


def _check_symmetric(skin: Skin, names: Sequence[str]) -> None:
    """Raises BadScene where a bone is not at rest where the mirror image of its counterpart is."""
    counterparts = _counterparts(skin, names)
    to_mesh = np.array(skin.object.matrix_world.inverted() @ skin.armature.matrix_world)
    bones = [skin.armature.data.bones[name] for name in names]
    ends = np.array([[bone.head_local, bone.tail_local] for bone in bones]) @ to_mesh[:3, :3].T + to_mesh[:3, 3]
    strayed = np.abs(ends[counterparts] * (-1, 1, 1) - ends).max(axis=(1, 2))
    worst = int(np.argmax(strayed))
    if strayed[worst] > _ASYMMETRY * np.linalg.norm(np.ptp(skin.rest, axis=0)):
        raise BadScene(
            f'The bones "{names[worst]}" and "{names[counterparts[worst]]}" do not mirror each other at rest across '
            f"the local X axis of {skin.label}. Make the armature symmetric, and the object's origin in its middle"
        )


def _rest_frames(skin: Skin, names: Sequence[str]) -> np.ndarray:
    """(J, 3, 3) the axes of bones at rest, in the mesh object's space, as columns."""
    to_mesh = np.array(skin.object.matrix_world.inverted() @ skin.armature.matrix_world)[:3, :3]
    frames = np.array([np.array(skin.armature.data.bones[name].matrix_local)[:3, :3] for name in names])
    frames = to_mesh @ frames
    return frames / np.linalg.norm(frames, axis=1, keepdims=True)


def _mirrored_channels(skin: Skin, channels: dict[str, list[float]]) -> dict[str, list[float]]:
    """What to set the other side's bones to; nothing where one has no counterpart in the armature."""
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
