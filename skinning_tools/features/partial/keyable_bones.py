# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether keys on an armature's bones have their way: what would overrule them, and whether they did."""

from collections.abc import Iterator

import bpy
import numpy as np

from ...blender import actions
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...core.errors import BadScene
from .bone_keys import transform_paths

# Of the size of a bone's matrix and of the armature: by less a pose does not differ from its keys, which are in single
# precision as all that evaluates them.
_SAME_POSE = 2e-3
_IK = {"IK", "SPLINE_IK"}


def check_keyable(armature, names) -> None:
    """Raises BadScene where keys on the bones would not have their way, or cannot be made; names: those that are there
    already, none where only new ones are to be keyed."""
    override = armature.override_library
    if armature.library is not None or (override is not None and override.is_system_override):
        raise BadScene(
            f'The armature "{armature.name}" is linked from another file. Make an editable library override of it '
            "(Object > Library Override > Make), or make it local (Object > Relations > Make Local > Selected Objects)"
        )
    _check_nla(armature, new_only=not names)
    animation = armature.animation_data
    driven = {curve.data_path for curve in animation.drivers} if animation is not None else set()
    keyed = {curve.data_path: curve for curve in actions.existing_curves(armature)}
    for name in names:
        for constraint in armature.pose.bones[name].constraints:
            if _acts(constraint, driven, keyed):
                raise BadScene(
                    f'The constraint "{constraint.name}" of the bone "{name}" would overrule its keys. Disable or '
                    "remove it"
                )
        paths = driven & set(transform_paths(name))
        if paths:
            raise BadScene(
                f'The bone "{name}" of "{armature.name}" is driven ({min(paths).rpartition(".")[2]}), which would '
                "overrule its keys. Remove the driver"
            )
    _check_chains(armature, set(names), driven, keyed)


def _check_nla(armature, new_only: bool) -> None:
    """Raises BadScene where the Nonlinear Animation does not play the armature's action as it is."""
    animation = armature.animation_data
    if animation is None:
        return
    if animation.use_tweak_mode:
        raise BadScene(
            f'An NLA strip of "{armature.name}" is being edited. Leave Tweak Mode in the Nonlinear Animation editor '
            "(Tab)"
        )
    if not animation.use_nla or not len(animation.nla_tracks):
        return
    solo = next((track.name for track in animation.nla_tracks if track.is_solo), None)
    if solo is not None:
        raise BadScene(
            f'The NLA track "{solo}" of "{armature.name}" plays alone, so that keys of an action would not. Switch its '
            "Solo off in the Nonlinear Animation editor (the star)"
        )
    # Where no strip keys a bone, combining leaves its keys as they are.
    modes = {"REPLACE", "COMBINE"} if new_only else {"REPLACE"}
    if animation.action_blend_type not in modes or animation.action_influence < 1:
        raise BadScene(
            f'The action of "{armature.name}" is mixed with its NLA tracks, so that its keys would not have their way. '
            "Set its Action Blending to Replace and its Influence to 1 in the Nonlinear Animation editor"
        )


def _acts(constraint, driven: set[str], keyed: dict) -> bool:
    """Whether a constraint is on now, or at any time as it is animated."""
    path = constraint.path_from_id("influence")
    curve, owner = keyed.get(path), path.rpartition(".")[0]
    animated = {f"{owner}.mute", f"{owner}.enabled"} & {*driven, *keyed}
    if constraint.mute and not animated:
        return False
    if curve is not None:
        return any(point.co[1] > 0 for point in curve.keyframe_points)
    return path in driven or constraint.influence > 0


def _check_chains(armature, names: set[str], driven: set[str], keyed: dict) -> None:
    """Raises BadScene where inverse kinematics of any bone move one of ``names``."""
    for bone in armature.pose.bones:
        for constraint in bone.constraints:
            if constraint.type not in _IK or constraint.target is None or not _acts(constraint, driven, keyed):
                continue
            moved = next((each.name for each in _chain(bone, constraint) if each.name in names), None)
            if moved is not None:
                raise BadScene(
                    f'The constraint "{constraint.name}" of the bone "{bone.name}" moves the bone "{moved}", too, and '
                    "would overrule its keys. Disable or remove it"
                )


def _chain(bone, constraint) -> list[bpy.types.PoseBone]:
    """The bones that inverse kinematics move, from their tip on."""
    bones = [bone, *bone.parent_recursive]
    if constraint.type == "IK" and not constraint.use_tail:
        bones = bones[1:]
    return bones[: constraint.chain_count or None]


def check_followed(context, armature, poses: dict[str, np.ndarray], numbers, label: str) -> Iterator[float]:
    """Generator: whether the bones of ``armature``, which may be in no scene, really are in the ``poses`` (F, 4, 4), in
    its space, at the frames ``numbers``; yields fractions.

    What is not in the bones themselves, such as constraints of bones in between, may move them otherwise than their
    keys say. Raises BadScene with the first frame, the uppermost such bone, and ``label`` as the armature's name.
    """
    bones = armature.data.bones
    names = sorted(poses, key=lambda name: len(bones[name].parent_recursive))
    wanted = np.array([poses[name] for name in names])
    heads = np.array([bone.head_local for bone in bones], dtype=np.float64)
    size = np.linalg.norm(np.ptp(heads, axis=0)) + max(bone.length for bone in bones)
    with temporary_scene(context.scene, [armature]) as scene:
        for row, number in enumerate(numbers):
            evaluated = armature.evaluated_get(evaluate_frame(scene, number)).pose.bones
            off = np.abs(np.array([evaluated[name].matrix for name in names]) - wanted[:, row])
            linear = off[:, :3, :3].max(axis=(1, 2)) / np.abs(wanted[:, row, :3, :3]).max(axis=(1, 2)).clip(1e-9)
            astray = np.maximum(linear, off[:, :3, 3].max(axis=1) / size) > _SAME_POSE
            if astray.any():
                raise BadScene(
                    f'The bone "{names[int(np.argmax(astray))]}" of "{label}" would not go where its keys take it at '
                    f"frame {number:g}: a constraint, a driver or an animated rotation mode stands against them, of "
                    "its own or of a bone above it. Disable or remove that"
                )
            yield (row + 1) / len(numbers)
