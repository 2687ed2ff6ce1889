# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers of bulge bones: the angles of other bones that move, scale or turn them.

An angle is of a bone relative to its parent, in the pose after constraints. It is computed from the bone's quaternion,
which is independent of rotation mode and Euler limits, in an expression that Blender evaluates without Python.
ROTATION_DIFF measures two bones against each other, not against their rest pose. Amount, angles and the slider are
properties of the pose bone, which users can adjust and key.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import bpy
import numpy as np

from ...blender.actions import bone_path
from ...blender.drivers import new_driver, read_property, read_rotation
from ...blender.helper_bones.records import mark_made_animation

AMOUNT, START, END, SLIDER, REACH = "amount", "angle_start", "angle_end", "bulge", "reach"

# Description, least and most in the panel, and subtype.
_PROPERTIES = {
    AMOUNT: ("How far the skin moves, relative to the bulge's radius", -1.0, 1.0, "NONE"),
    START: ("Angle at which the bulge begins", -math.pi, math.pi, "ANGLE"),
    END: ("Angle at which the bulge is complete", -math.pi, math.pi, "ANGLE"),
    SLIDER: ("Strength of the bulge", 0.0, 1.0, "FACTOR"),
    REACH: ("Share of the arm's reach across the body by which the bone turns forward", -1.0, 1.0, "NONE"),
}
_TURNING = {
    AMOUNT: "Share of the other bone's angle by which the bone turns",
    START: "Angle up to which the bone stays at rest",
    END: "Angle from which on the bone turns no farther",
}

# Angles in radians of the unit quaternion w, x, y, z: away from the bone's direction, Y, and about an axis.
_ANGLES = {
    "BEND": "2*atan2(sqrt(x*x+z*z),sqrt(w*w+y*y))",
    "TWIST": "2*atan2(y if w>=0 else -y,abs(w))",
    "X": "2*atan2(x if w>=0 else -x,abs(w))",
    "Z": "2*atan2(z if w>=0 else -z,abs(w))",
}
_ALONG = "1-2*(x*x+z*z)"


@dataclass(frozen=True)
class Angle:
    """An angle of a bone: the expression for it, and its value at rest in radians."""

    expression: str
    at_rest: float = 0.0


@dataclass(frozen=True)
class Curve:
    """A channel of a pose bone and the expression that drives it."""

    path: str
    index: int
    expression: str


def measured_angle(
    measure: str, bone: bpy.types.Bone, outward: np.ndarray, up: np.ndarray, across: np.ndarray
) -> Angle:
    """The angle ``measure`` of a bone of the armature data. outward, up and across (3,): unit vectors at rest in the
    armature's space, toward the skin, upward, and across the body to its front.

    The bone's direction in the pose is that of its Y axis, in the space of its parent. RAISE is its angle from hanging
    down, ACROSS how far it points across, from −90° to 90°, OUT how far it has swung toward the skin.
    """
    to_bone = np.array(bone.matrix_local, dtype=np.float64)[:3, :3].T
    if measure == "RAISE":
        down = -to_bone @ up
        return Angle(f"acos(clamp({_component(down)},-1,1))", math.acos(np.clip(down[1], -1, 1)))
    if measure == "ACROSS":
        toward = to_bone @ across
        return Angle(f"asin(clamp({_component(toward)},-1,1))", math.asin(np.clip(toward[1], -1, 1)))
    if measure == "OUT":
        toward = (to_bone @ outward) * [1, 0, 1]
        return Angle(f"atan2({_component(toward / np.linalg.norm(toward))},{_ALONG})")
    return Angle(_ANGLES[measure])


def _component(direction: np.ndarray) -> str:
    """The expression for the component along ``direction`` (3,) of a bone's Y axis turned by the quaternion."""
    x, y, z = direction
    return f"{2 * x:.5f}*(x*y-w*z){y:+.5f}*({_ALONG}){2 * z:+.5f}*(y*z+w*x)"


def grown(angle: Angle) -> str:
    """The expression for how far a bulge has grown, 0 to 1, and 0 at rest."""
    share = f"smoothstep({START},{END},{angle.expression})"
    return f"({share}-smoothstep({START},{END},{angle.at_rest:.5f}))" if angle.at_rest else share


def turned(angle: Angle) -> str:
    """The expression for the turn of a bone that follows an angle, from START to END, by a share; 0 at rest."""
    return f"{AMOUNT}*(clamp({angle.expression},{START},{END})-clamp({angle.at_rest:.5f},{START},{END}))"


def reached(angle: Angle, sign: int) -> str:
    """The expression for the turn of a bone that follows the whole of an angle, in the direction of ``sign``."""
    return f"{'-' if sign < 0 else ''}{REACH}*({angle.expression}{-angle.at_rest:+.5f})"


def drive(
    armature: bpy.types.Object,
    name: str,
    source: str,
    values: Mapping[str, float],
    curves: tuple[Curve, ...],
    turning: bool,
) -> None:
    """Give a bone properties of the given values, and drivers by the bone ``source``, "" for none. turning: whether
    the properties are those of a bone that turns."""
    bone = armature.pose.bones[name]
    for key, value in values.items():
        description, least, most, subtype = _PROPERTIES[key]
        bone[key] = float(value)
        bone.id_properties_ui(key).update(
            description=_TURNING.get(key, description) if turning else description,
            default=float(value),
            soft_min=least,
            soft_max=most,
            subtype=subtype,
        )
        # Lets an animator key the slider in a library override.
        bone.property_overridable_library_set(f'["{key}"]', True)
    if armature.animation_data is None:
        mark_made_animation(armature, name)
    for curve in curves:
        driver = new_driver(bone, curve.path, curve.index)
        for key in values:
            if key in curve.expression:
                read_property(driver, key, armature, f'{bone_path(name)}["{key}"]')
        if "length" in curve.expression:
            read_property(driver, "length", armature, f"{bone_path(name)}.bone.length")
        for channel in "wxyz" if source else "":
            read_rotation(driver, channel, armature, source, channel.upper())
        driver.expression = curve.expression
