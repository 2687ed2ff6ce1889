# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that keys on an armature's bones take effect: what would override them before, and the poses after."""

from collections.abc import Callable, Generator, Sequence

import bpy
import numpy as np

from ...blender import actions
from ...blender.preconditions import armature_label, check_movable, check_not_tweaked
from ...blender.temporary_scene import evaluate_frame, temporary_scene
from ...core.errors import BadScene
from ...core.geometry import diagonal
from .bone_keys import transform_paths

# Tolerance between a pose and its keys, relative to a bone's matrix and to the armature: keys and their evaluation are
# in single precision.
_SAME_POSE = 2e-3
_IK = {"IK", "SPLINE_IK"}


def check_keyable(
    armature: bpy.types.Object,
    names: Sequence[str],
    but: Callable[[bpy.types.PoseBone], bpy.types.Constraint | None] = lambda bone: None,
) -> None:
    """Raise BadScene if keys on the bones would be overridden or cannot be made; names: the existing bones to key,
    empty if only new bones are keyed; but: the constraint of a bone that will be changed with the keys."""
    check_movable(armature, armature_label(armature), "its bones cannot be keyed")
    _check_nla(armature, new_only=not names)
    animation = armature.animation_data
    driven = {curve.data_path for curve in animation.drivers} if animation is not None else set()
    keyed = {curve.data_path: curve for curve in actions.existing_curves(armature)}
    for name in names:
        bone = armature.pose.bones[name]
        for constraint in bone.constraints:
            if constraint != but(bone) and _acts(constraint, driven, keyed):
                raise BadScene(
                    f'The constraint "{constraint.name}" of the bone "{name}" would override its keys. Disable or '
                    "remove it"
                )
        paths = driven & set(transform_paths(name))
        if paths:
            raise BadScene(
                f'The bone "{name}" of "{armature.name}" is driven ({min(paths).rpartition(".")[2]}), which would '
                "override its keys. Remove the driver"
            )
    _check_chains(armature, set(names), driven, keyed)


def _check_nla(armature: bpy.types.Object, new_only: bool) -> None:
    """Raise BadScene if the Nonlinear Animation changes how the armature's action plays."""
    animation = armature.animation_data
    if animation is None:
        return
    check_not_tweaked(animation, armature_label(armature))
    if not animation.use_nla or not len(animation.nla_tracks):
        return
    solo = next((track.name for track in animation.nla_tracks if track.is_solo), None)
    if solo is not None:
        raise BadScene(
            f'The NLA track "{solo}" of "{armature.name}" is soloed, so keys of an action would have no effect. Turn '
            "its Solo off in the Nonlinear Animation editor (the star)"
        )
    # If no strip keys a bone, combining does not change its keys.
    modes = {"REPLACE", "COMBINE"} if new_only else {"REPLACE"}
    if animation.action_blend_type not in modes or animation.action_influence < 1:
        raise BadScene(
            f'The action of "{armature.name}" is mixed with its NLA tracks, so its keys would be overridden. '
            "Set its Action Blending to Replace and its Influence to 1 in the Nonlinear Animation editor"
        )


def _acts(constraint: bpy.types.Constraint, driven: set[str], keyed: dict) -> bool:
    """Whether a constraint is on now or, if animated, at any time."""
    path = constraint.path_from_id("influence")
    curve, owner = keyed.get(path), path.rpartition(".")[0]
    animated = {f"{owner}.mute", f"{owner}.enabled"} & {*driven, *keyed}
    if constraint.mute and not animated:
        return False
    if curve is not None:
        return any(point.co[1] > 0 for point in curve.keyframe_points)
    return path in driven or constraint.influence > 0


def _check_chains(armature: bpy.types.Object, names: set[str], driven: set[str], keyed: dict) -> None:
    """Raise BadScene if the inverse kinematics of any bone move one of ``names``."""
    for bone in armature.pose.bones:
        for constraint in bone.constraints:
            if constraint.type not in _IK or constraint.target is None or not _acts(constraint, driven, keyed):
                continue
            moved = next((each.name for each in _chain(bone, constraint) if each.name in names), None)
            if moved is not None:
                raise BadScene(
                    f'The constraint "{constraint.name}" of the bone "{bone.name}" also moves the bone "{moved}" and '
                    "would override its keys. Disable or remove it"
                )


def _chain(bone: bpy.types.PoseBone, constraint: bpy.types.Constraint) -> list[bpy.types.PoseBone]:
    """The bones that inverse kinematics move, starting from the tip."""
    bones = [bone, *bone.parent_recursive]
    if constraint.type == "IK" and not constraint.use_tail:
        bones = bones[1:]
    return bones[: constraint.chain_count or None]


def check_followed(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    poses: dict[str, np.ndarray],
    numbers: np.ndarray,
    label: str,
) -> Generator[float, None, None]:
    """Generator: check that Blender evaluates the bones of ``armature``, which may be in no scene, to ``poses``
    (F, 4, 4), in its space, at the frames ``numbers``; yields fractions.

    Other things than the bones' own keys, such as constraints of bones in between, may move them. Raises BadScene with
    the first frame, the uppermost such bone, and ``label`` as the armature's name.
    """
    bones = armature.data.bones
    names = sorted(poses, key=lambda name: len(bones[name].parent_recursive))
    wanted = np.array([poses[name] for name in names])
    heads = np.array([bone.head_local for bone in bones], dtype=np.float64)
    size = diagonal(heads) + max(bone.length for bone in bones)
    with temporary_scene(context.scene, [armature]) as scene:
        for row, number in enumerate(numbers):
            evaluated = armature.evaluated_get(evaluate_frame(scene, number)).pose.bones
            off = np.abs(np.array([evaluated[name].matrix for name in names]) - wanted[:, row])
            linear = off[:, :3, :3].max(axis=(1, 2)) / np.abs(wanted[:, row, :3, :3]).max(axis=(1, 2)).clip(1e-9)
            astray = np.maximum(linear, off[:, :3, 3].max(axis=1) / size) > _SAME_POSE
            if astray.any():
                raise BadScene(
                    f'The bone "{names[int(np.argmax(astray))]}" of "{label}" would not follow its keys at '
                    f"frame {number:g}: a constraint, a driver or an animated rotation mode overrides them, on "
                    "the bone or on one of its parents. Disable or remove that"
                )
            yield (row + 1) / len(numbers)
