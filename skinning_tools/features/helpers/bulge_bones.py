# SPDX-License-Identifier: GPL-3.0-or-later
"""Bulge bones of an armature: their places, drivers and weights.

A driver moves or scales the bulge by an angle of another bone relative to its parent, in the pose after constraints.
The angle is computed from the bone's quaternion, which is independent of rotation mode and Euler limits, in an
expression that Blender evaluates without Python. ROTATION_DIFF measures two bones against each other, not against
their rest pose. Amount, angles and the slider are properties of the pose bone, which users can adjust and key.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ...blender import actions, background
from ...blender.armatures import NewBone
from ...blender.bodies import read_body, stretch_of, to_mesh
from ...blender.figures import Figure
from ...blender.helper_bones.bones import free_names, make_helper_bones, taken_names
from ...blender.helper_bones.records import (
    BULGE,
    SKIN,
    BoneRecord,
    check_no_helper,
    find_helpers,
    mark_made_animation,
    next_number,
)
from ...blender.helper_bones.removal import Removed, remove_helpers, removed_on_failure
from ...blender.helper_bones.shared_weights import SharedWeights
from ...blender.preconditions import armature_label, check_bone_deforms, check_bones, unmet
from ...blender.weight_tools import check_meshes, check_unlocked
from ...core.errors import BadScene
from ...core.progress import Progress, checkpoint
from .bulge_places import along_bone, carried_skin, on_axis, perpendicular, search_place, unit
from .bulge_presets import PRESETS
from .joints import bones_to_clear, end_bone, helped_armature
from .settings import BulgeSettings
from .shared_weights import Added, meshes_to_share, shares_taken

if TYPE_CHECKING:
    from ...core.binding.types import Body

AMOUNT, START, END, SLIDER = "amount", "angle_start", "angle_end", "bulge"

# A bulge bone's length relative to its radius. The driver uses the length, since Apply Scale updates it.
_LENGTH = 0.5

# Angles in radians of the unit quaternion w, x, y, z: away from the bone's direction, Y, and about an axis.
_ANGLES = {
    "BEND": "2*atan2(sqrt(x*x+z*z),sqrt(w*w+y*y))",
    "TWIST": "2*atan2(y if w>=0 else -y,abs(w))",
    "X": "2*atan2(x if w>=0 else -x,abs(w))",
    "Z": "2*atan2(z if w>=0 else -z,abs(w))",
}

_DESCRIPTIONS = {
    AMOUNT: ("How far the skin moves, relative to the bulge's radius", -1.0, 1.0),
    START: ("Angle at which the bulge begins", -math.pi, math.pi),
    END: ("Angle at which the bulge is complete", -math.pi, math.pi),
    SLIDER: ("Strength of the bulge", 0.0, 1.0),
}


@dataclass(frozen=True)
class AddedBulges(Added):
    """drivers: the bone that drives each bulge bone, "" for a slider."""

    drivers: dict[str, str]

    def added(self) -> list[Figure]:
        return [
            Figure(f"Bone {name}", driver, "by {}" if driver else "by its slider", group=("bones", name))
            for name, driver in self.drivers.items()
        ]


@dataclass(frozen=True, eq=False)
class _Plan:
    """A bulge, with lengths in the armature's space. center (3,) on the skin; outward: unit vector (3,); head (3,)."""

    name: str
    number: int
    carrier: str
    driver: str
    center: np.ndarray
    outward: np.ndarray
    head: np.ndarray
    radius: float
    amount: float


def add_bulges(
    context: bpy.types.Context, active: bpy.types.Object | None, **given: Any
) -> background.Steps[AddedBulges]:
    """Generator: add a bulge bone, by the BulgeSettings ``given``, to the armature ``active`` or the one that deforms
    it; with ``mirror`` also one on the other side.

    All meshes that the armature deforms share their weights with it within its reach. All or nothing. Raises BadScene,
    BadSettings, BadMesh, BadWeights.
    """
    armature, settings = helped_armature(context, active), BulgeSettings(**given)
    active_bone = armature.data.bones.active
    carrier = settings.bone or (active_bone.name if active_bone is not None else "")
    settings.check()
    pairs = _pairs(armature, carrier, settings)
    meshes = meshes_to_share(armature)
    yield 0.0, "Looking for the skin"
    plans, omitted = _plans(context, armature, meshes, pairs, settings)
    shared, bodies = [], {}
    for ob in meshes:
        shared.append(SharedWeights(ob, armature))
        bodies[ob] = read_body(ob), stretch_of(ob) @ to_mesh(ob, armature)[:3]
        yield 0.2, "Reading weights"

    def work(progress: Progress) -> None:
        for done, each in enumerate(shared):
            for plan in plans:
                checkpoint(progress, done / len(shared), "Sharing weights")
                _share(each, *bodies[each.mesh_object], plan, settings.along_surface)

    yield from background.run_in_worker(work)
    touched = [each for each in shared if each.changes]
    for plan in plans:
        if not any(plan.number in each.changes for each in touched):
            raise BadScene(
                f'The bone "{plan.carrier}" has no weights within the radius of the bulge, so it would move nothing. '
                "Choose another bone or center, or a larger radius"
            )
    check_meshes([each.mesh_object for each in touched], "its weights cannot be shared with a bulge bone")
    check_unlocked([each.mesh_object for each in touched], [plan.carrier for plan in plans])
    with removed_on_failure(context, armature, [plan.number for plan in plans]):
        make_helper_bones(context, armature, [_spec(armature, plan) for plan in plans])
        for plan in plans:
            _drive(armature, plan, settings)
        for each in touched:
            each.write()
    return AddedBulges(**shares_taken(armature, touched, omitted), drivers={plan.name: plan.driver for plan in plans})


def remove_bulges(
    context: bpy.types.Context,
    active: bpy.types.Object | None,
    bones: str = "",
    all_bones: bool = False,
    mirror: bool = False,
) -> Removed:
    """Remove all bulge bones, or those among the ``bones`` or their children, and restore the weights.

    Raises BadScene.
    """
    armature = helped_armature(context, active)
    names = bones_to_clear(armature, bones, all_bones, mirror)
    helpers = find_helpers(armature, (BULGE,))
    if not helpers:
        raise BadScene(f'The armature "{armature.name}" has no bulge bones')
    if names is not None:
        wanted = set(names)
        helpers = [helper for helper in helpers if wanted & {helper.start, *helper.bones}]
        if not helpers:
            raise BadScene("None of the bones has a bulge. Select the bones that carry bulges, or remove all")
    return remove_helpers(context, armature, helpers)


def slider_names(armature: bpy.types.Object, name: str) -> list[str]:
    """The properties of a bulge bone for the panel."""
    return [key for key in (SLIDER, AMOUNT, START, END) if key in armature.pose.bones[name]]


def _pairs(armature: bpy.types.Object, carrier: str, settings: BulgeSettings) -> list[tuple[str, str]]:
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
    if preset.driven and not preset.toward:
        driver = driver or end_bone(armature, carrier)
    if preset.driven and not driver:
        raise BadScene(
            f'No driver bone is known for the bulge on "{carrier}". Name the Driver Bone: for a chest the upper arm, '
            "for a biceps the forearm"
        )
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


def _plans(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    meshes: Sequence[bpy.types.Object],
    pairs: Sequence[tuple[str, str]],
    settings: BulgeSettings,
) -> tuple[list[_Plan], tuple[str, ...]]:
    """The bulges, and notes on what Blender left out of the pose that places them."""
    preset = PRESETS[settings.preset]
    scale = np.linalg.norm(np.array(armature.matrix_world, dtype=np.float64)[:3, :3], axis=0).mean()
    if scale == 0:
        raise unmet("NO_SCALE", object=armature_label(armature))
    number, taken = next_number(armature, meshes), taken_names(armature, meshes)
    plans: list[_Plan] = []
    bones = armature.data.bones
    for place, (carrier, driver) in enumerate(pairs):
        bone = bones[carrier]
        if place == 0:
            start, outward, omitted = search_place(context, armature, carrier, driver, settings)
        else:
            # Bones of the other side may have a different roll.
            start, outward = start * [-1, 1, 1], outward * [-1, 1, 1]
        skin = carried_skin(armature, meshes, carrier)
        if settings.center == "CURSOR":
            center = np.array(skin.find_nearest(Vector(start))[0], dtype=np.float64)
            across = perpendicular(bone, center - np.array(bone.head_local, dtype=np.float64))
            outward = unit(across) if np.linalg.norm(across) > 1e-6 * bone.length else outward
        else:
            hit = skin.ray_cast(Vector(start), Vector(outward))[0]
            center = np.array(hit if hit is not None else skin.find_nearest(Vector(start))[0], dtype=np.float64)
        # Rigs divide limbs differently: the arm's position is a better measure of the chest's size.
        measured = (bones[driver].head_local - along_bone(bone, preset.place)).length if preset.toward else bone.length
        radius = settings.radius / scale or preset.radius * measured
        inside = settings.motion == "SCALE"
        head = np.array(on_axis(bone, center) if inside else center - 0.5 * radius * outward)
        named_by = next((bone for bone in (carrier, driver) if bpy.utils.flip_name(bone) != bone), carrier)
        (name,) = free_names(taken, named_by, "bulge", 1)
        amount = settings.amount or preset.amount
        plans.append(_Plan(name, number + place, carrier, driver, center, outward, head, radius, amount))
    return plans, omitted


def _share(each: SharedWeights, body: "Body", to_body: np.ndarray, plan: _Plan, along_surface: bool) -> None:
    """Give a bulge bone its weights on a mesh."""
    from ...core.binding.bulge import add_soft_bone, soft_region

    (own,) = each.add_names([plan.name])
    carrier = each.index(plan.carrier)
    center = to_body[:, :3] @ plan.center + to_body[:, 3]
    radius = plan.radius * abs(np.linalg.det(to_body[:, :3])) ** (1 / 3)
    near = np.linalg.norm(body.rest - center, axis=1) <= radius
    if not each.has_weights([plan.carrier]) or not near.any():
        return
    region = soft_region(body, center, radius, along_surface=along_surface)
    if along_surface:
        # For a mesh that only lies beside the bulge, such as a sleeve, the center moves to its nearest point.
        region = np.minimum(region, soft_region(body, center, radius, along_surface=False))
    # A locked carrier is reported for all meshes at once.
    locked = each.locked & (np.arange(len(each.locked)) != carrier)
    rows = add_soft_bone(
        each.bones,
        each.weights,
        own,
        region,
        carrier=carrier,
        max_influences=each.max_influences,
        locked=locked,
    )
    each.take(plan.number, [own], [carrier], *rows)


def _spec(armature: bpy.types.Object, plan: _Plan) -> tuple[NewBone, BoneRecord]:
    """The bone: its Y axis points outward, its Z axis along its carrier as far as possible."""
    carrier = armature.data.bones[plan.carrier]
    along = np.array(carrier.tail_local - carrier.head_local, dtype=np.float64)
    along = along - plan.outward * (plan.outward @ along)
    along = unit(along if np.linalg.norm(along) > 1e-9 else np.cross(plan.outward, np.roll(plan.outward, 1)))
    matrix = Matrix(np.column_stack([np.cross(plan.outward, along), plan.outward, along]).tolist()).to_4x4()
    matrix.translation = plan.head
    record = BoneRecord(BULGE, plan.number, SKIN, 1, plan.driver)
    return NewBone(plan.name, plan.carrier, matrix, _LENGTH * plan.radius, True), record


def _drive(armature: bpy.types.Object, plan: _Plan, settings: BulgeSettings) -> None:
    """Give a bulge bone its properties and drivers."""
    bone = armature.pose.bones[plan.name]
    values = {AMOUNT: plan.amount}
    if plan.driver:
        values |= {START: settings.angle_start, END: settings.angle_end}
        share = f"smoothstep({START},{END},{_ANGLES[settings.measure]})"
    else:
        values |= {SLIDER: 0.0}
        share = SLIDER
    for key, value in values.items():
        description, least, most = _DESCRIPTIONS[key]
        bone[key] = float(value)
        angle = key in (START, END)
        bone.id_properties_ui(key).update(
            description=description,
            default=float(value),
            soft_min=least,
            soft_max=most,
            subtype="ANGLE" if angle else "FACTOR" if key == SLIDER else "NONE",
        )
        # Lets an animator key the slider in a library override.
        bone.property_overridable_library_set(f'["{key}"]', True)
    if armature.animation_data is None:
        mark_made_animation(armature, plan.name)
    if settings.motion == "MOVE":
        curves = [(bone.driver_add("location", 1), f"{1 / _LENGTH:g}*length*{AMOUNT}*{share}")]
    else:
        curves = [(bone.driver_add("scale", axis), f"1+{AMOUNT}*{share}") for axis in range(3)]
    for curve, expression in curves:
        for modifier in list(curve.modifiers):
            curve.modifiers.remove(modifier)
        paths = {key: f'["{key}"]' for key in values}
        if settings.motion == "MOVE":
            paths["length"] = ".bone.length"
        _fill(curve.driver, armature, plan, paths, expression)


def _fill(
    driver: bpy.types.Driver, armature: bpy.types.Object, plan: _Plan, paths: dict[str, str], expression: str
) -> None:
    """Set up a driver. paths: of the variables' properties, relative to the pose bone."""
    driver.type = "SCRIPTED"
    for name, path in paths.items():
        variable = driver.variables.new()
        variable.name = name
        target = variable.targets[0]
        target.id = armature
        target.data_path = actions.bone_path(plan.name) + path
    for channel in "wxyz" if plan.driver else "":
        variable = driver.variables.new()
        variable.name, variable.type = channel, "TRANSFORMS"
        target = variable.targets[0]
        target.id, target.bone_target = armature, plan.driver
        target.transform_type, target.rotation_mode = f"ROT_{channel.upper()}", "QUATERNION"
        target.transform_space = "LOCAL_SPACE"
    driver.expression = expression
