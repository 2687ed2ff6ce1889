# SPDX-License-Identifier: GPL-3.0-or-later
"""What bulge bones are to be made: by whom they are carried and driven, their places, properties and expressions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Vector

from ...blender.helper_bones.records import check_no_helper
from ...blender.preconditions import check_bone_deforms, check_bones
from ...core.errors import BadScene
from ...core.geometry import unit
from .bulge_drivers import AMOUNT, END, REACH, SLIDER, START, Curve, grown, measured_angle, reached, turned
from .bulge_places import (
    along_bone,
    between,
    carried_skin,
    front_and_up,
    girdle_ends,
    limb,
    met_skin,
    on_axis,
    perpendicular,
    search_place,
    sideways,
)
from .bulge_presets import PRESETS, BulgePreset
from .joints import end_bone, unit_scale
from .settings import BulgeSettings

# A bulge bone's length relative to its radius. The driver uses the length, since Apply Scale updates it.
LENGTH = 0.5


@dataclass(frozen=True, eq=False)
class BulgePlan:
    """A helper, with lengths in the armature's space. names: of its bones; carriers: the bone that carries each of them
    and gives it weight; driver: the bone that drives them, "" for a slider. center (3,) on the skin; head (3,) and axes
    (3, 3) of its bones at rest, the axes as columns; values: of its properties; turns: whether its motion is to
    turn; limb (3,): of cloth, from the head to the end of the limb that pushes it out."""

    names: tuple[str, ...]
    number: int
    carriers: tuple[str, ...]
    driver: str
    center: np.ndarray
    head: np.ndarray
    axes: np.ndarray
    radius: float
    values: dict[str, float]
    curves: tuple[Curve, ...]
    turns: bool
    limb: np.ndarray | None = None


def bulge_pairs(armature: bpy.types.Object, carrier: str, settings: BulgeSettings) -> list[tuple[str, str]]:
    """(carrier, driver bone) of each bulge; the driver may be "". Raises BadScene."""
    bones = armature.data.bones
    if not carrier:
        raise BadScene(f'No bone of "{armature.name}" is active. Select the bone to carry the bulge')
    named = [name for name in (carrier, settings.driver_bone) if name]
    check_bones(armature, named)
    check_bone_deforms(armature, carrier)
    for name in named:
        check_no_helper(armature, name)
    preset = PRESETS[settings.preset]
    driver = settings.driver_bone
    if preset.child_drives:
        driver = driver or end_bone(armature, carrier)
    if (preset.driven or settings.motion == "TURN") and not driver:
        raise BadScene(
            f'No driver bone is known for the bulge on "{carrier}". Name the Driver Bone: for a chest or a shoulder '
            "the upper arm, for a biceps the forearm, for a skirt the thigh"
        )
    if driver == carrier:
        raise BadScene(f'The bone "{carrier}" cannot drive a bulge on itself. Choose another Driver Bone')
    pairs = [(carrier, driver)]
    if settings.mirror:
        other = tuple(bpy.utils.flip_name(name) for name in pairs[0])
        if other == pairs[0]:
            raise BadScene(f'The names of "{carrier}" and its driver have no side, such as ".L", to mirror')
        missing = [name for name in other if name and name not in bones]
        if missing:
            raise BadScene(f'The armature "{armature.name}" has no bone "{missing[0]}" on the other side')
        pairs.append(other)
    return pairs


def bulge_plans(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    meshes: Sequence[bpy.types.Object],
    pairs: Sequence[tuple[str, str]],
    settings: BulgeSettings,
    number: int,
) -> tuple[list[BulgePlan], tuple[str, ...]]:
    """The helpers, not named yet, and notes on what Blender left out of the pose that places them."""
    preset = PRESETS[settings.preset]
    scale = unit_scale(armature)
    plans: list[BulgePlan] = []
    bones = armature.data.bones
    for place, (carrier, driver) in enumerate(pairs):
        bone = bones[carrier]
        if place == 0:
            start, outward, omitted = search_place(context, armature, carrier, driver, settings)
        else:
            # Bones of the other side may have a different roll.
            start, outward = start * [-1, 1, 1], outward * [-1, 1, 1]
        carriers = (carrier, *between(armature, carrier, driver)) if preset.girdle is not None else (carrier,)
        skin = carried_skin(armature, meshes, [*carriers, driver] if preset.girdle is not None else carriers)
        if settings.center == "CURSOR":
            center = np.array(skin.find_nearest(Vector(start))[0], dtype=np.float64)
            across = perpendicular(bone, center - np.array(bone.head_local, dtype=np.float64))
            if preset.girdle is None:
                outward = unit(across) if np.linalg.norm(across) > 1e-6 * bone.length else outward
        else:
            # Of a skirt that does not reach that far down, the part that is highest above its hem is met first.
            ends = np.array(bones[driver].head_local if preset.beside_driver else start, dtype=np.float64)
            center = met_skin(skin, [start + share * (ends - start) for share in np.linspace(0, 0.8, 9)], outward)
        radius = settings.radius / scale or preset.radius * _measured(armature, carrier, driver, preset)
        plan = BulgePlan((), number + place, carriers, driver, center, center, np.eye(3), radius, {}, (), False)
        plans.append(_placed(armature, plan, outward, settings))
    return plans, omitted


def _measured(armature: bpy.types.Object, carrier: str, driver: str, preset: BulgePreset) -> float:
    """The length that a preset's radius is relative to."""
    bones = armature.data.bones
    if preset.girdle is not None:
        return float(np.linalg.norm(np.subtract(*girdle_ends(armature, carrier, driver))))
    if preset.beside_driver:
        return float(np.linalg.norm(limb(armature, driver)))
    # Rigs divide limbs differently: the arm's position is a better measure of the chest's size.
    return (
        (bones[driver].head_local - along_bone(bones[carrier], preset.place)).length
        if preset.toward
        else bones[carrier].length
    )


def _placed(armature: bpy.types.Object, plan: BulgePlan, outward: np.ndarray, settings: BulgeSettings) -> BulgePlan:
    """The plan with the rest place of its bones, their properties and the expressions that drive them."""
    preset, bones = PRESETS[settings.preset], armature.data.bones
    carrier = bones[plan.carriers[0]]
    front, up = front_and_up(armature)
    values = {AMOUNT: settings.amount or preset.amount}
    angle = None
    if plan.driver:
        values |= {START: settings.angle_start, END: settings.angle_end}
        of_arm = preset.girdle is not None or settings.measure == "ACROSS"
        side = sideways(armature, carrier.name, plan.driver) if of_arm else up
        angle = measured_angle(settings.measure, bones[plan.driver], outward, up, unit(front - side))
    else:
        values |= {SLIDER: 0.0}
    if settings.motion != "TURN":
        share = grown(angle) if angle is not None else SLIDER
        inside = settings.motion == "SCALE"
        head = on_axis(carrier, plan.center) if inside else plan.center - 0.5 * plan.radius * outward
        along = _across(np.array(carrier.matrix_local.col[1][:3], dtype=np.float64), outward)
        axes = np.column_stack([np.cross(outward, along), outward, along])
        curves = [Curve("location", 1, f"{1 / LENGTH:g}*length*{AMOUNT}*{share}")]
        if inside:
            curves = [Curve("scale", axis, f"1+{AMOUNT}*{share}") for axis in range(3)]
        return replace(plan, head=head, axes=axes, values=values, curves=tuple(curves))
    assert angle is not None
    # X is the axis of the turn: away from Y, toward Z.
    head, away, toward = np.array(bones[plan.driver].head_local, dtype=np.float64), outward, outward
    curves = [Curve("rotation_euler", 0, turned(angle))]
    if preset.girdle is None:
        along = np.array(bones[plan.driver].matrix_local.col[1][:3], dtype=np.float64)
        away, toward = along, _across(outward, along)
        if preset.beside_driver:
            plan = replace(plan, limb=limb(armature, plan.driver))
    else:
        inner, joint = girdle_ends(armature, carrier.name, plan.driver)
        head = inner + preset.girdle.pivot * (joint - inner)
        away, toward = side, up
    axes = np.column_stack([np.cross(away, toward), away, toward])
    if preset.reach:
        values |= {REACH: preset.reach}
        reach = measured_angle("ACROSS", bones[plan.driver], outward, up, unit(front - side))
        curves.append(Curve("rotation_euler", 2, reached(reach, -1 if axes[:, 0] @ front > 0 else 1)))
    return replace(plan, head=head, axes=axes, values=values, curves=tuple(curves), turns=True)


def _across(vector: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """The unit vector across ``axis`` nearest to ``vector``."""
    across = vector - axis * (axis @ vector)
    return unit(across if np.linalg.norm(across) > 1e-9 else np.cross(axis, np.roll(axis, 1)))
