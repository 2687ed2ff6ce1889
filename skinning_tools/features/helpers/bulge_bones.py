# SPDX-License-Identifier: GPL-3.0-or-later
"""Bulge bones of an armature, which move, scale or turn with another bone: their places and weights.

A bone of the shoulder girdle takes weights from its carrier and from the bones between that and the arm. Each of these
carries one skin bone of the helper, so that nothing changes while the arm is at rest, whatever the others do; all of
them turn as the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import bpy
import numpy as np
from mathutils import Matrix

from ...blender import background
from ...blender.armatures import NewBone
from ...blender.bodies import read_body, stretch_of, to_mesh
from ...blender.figures import Figure
from ...blender.helper_bones.bones import free_names, make_helper_bones, taken_names
from ...blender.helper_bones.records import (
    BULGE,
    SKIN,
    BoneRecord,
    find_helpers,
    next_number,
)
from ...blender.helper_bones.removal import Removed, remove_helpers, removed_on_failure
from ...blender.helper_bones.shared_weights import SharedWeights
from ...blender.weight_tools import check_meshes, check_unlocked
from ...core.errors import BadScene
from ...core.progress import Progress, checkpoint
from .bulge_drivers import AMOUNT, END, REACH, SLIDER, START, drive
from .bulge_plans import LENGTH, BulgePlan, bulge_pairs, bulge_plans
from .bulge_presets import PRESETS
from .joints import bones_to_clear, helped_armature
from .settings import BulgeSettings
from .shared_weights import Added, meshes_to_share, shares_taken

if TYPE_CHECKING:
    from ...core.binding.types import Body


@dataclass(frozen=True)
class AddedBulges(Added):
    """drivers: the bone that drives each bulge bone, "" for a slider."""

    drivers: dict[str, str]

    def added(self) -> list[Figure]:
        return [
            Figure(f"Bone {name}", driver, "by {}" if driver else "by its slider", group=("bones", name))
            for name, driver in self.drivers.items()
        ]


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
    pairs = bulge_pairs(armature, carrier, settings)
    every_mesh = meshes_to_share(armature)
    meshes = _chosen(armature, every_mesh, settings.mesh)
    yield 0.0, "Looking for the skin"
    plans, omitted = bulge_plans(context, armature, meshes, pairs, settings, next_number(armature, every_mesh))
    shared, bodies = [], {}
    for ob in meshes:
        shared.append(SharedWeights(ob, armature))
        bodies[ob] = read_body(ob), stretch_of(ob) @ to_mesh(ob, armature)[:3]
        yield 0.2, "Reading weights"

    def regions(progress: Progress) -> dict:
        found = {}
        for done, each in enumerate(shared):
            for plan in plans:
                checkpoint(progress, done / len(shared), "Measuring the skin")
                found[each, plan.number] = _region(each, *bodies[each.mesh_object], plan, settings.along_surface)
        return found

    found = yield from background.part_of(background.run_in_worker(regions), 0.2, 0.7)
    plans = [_with_effect(plan, shared, found) for plan in plans]
    names = taken_names(armature, every_mesh)
    plans = [_named(plan, names, PRESETS[settings.preset].word) for plan in plans]

    def work(progress: Progress) -> None:
        for done, each in enumerate(shared):
            for plan in plans:
                checkpoint(progress, done / len(shared), "Sharing weights")
                _share(each, plan, _regions_apart(each, plan, plans, found))

    yield from background.part_of(background.run_in_worker(work), 0.7, 1.0)
    touched = [each for each in shared if each.changes]
    check_meshes([each.mesh_object for each in touched], "its weights cannot be shared with a bulge bone")
    check_unlocked([each.mesh_object for each in touched], [name for plan in plans for name in plan.carriers])
    with removed_on_failure(context, armature, [plan.number for plan in plans]):
        make_helper_bones(context, armature, [spec for plan in plans for spec in _specs(plan)])
        for plan in plans:
            _move(armature, plan)
        for each in touched:
            each.write()
    drivers = {plan.names[0]: plan.driver for plan in plans}
    return AddedBulges(**shares_taken(armature, touched, omitted), drivers=drivers)


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
        helpers = [helper for helper in helpers if wanted & {*helper.carriers, *helper.bones}]
        if not helpers:
            raise BadScene("None of the bones has a bulge. Select the bones that carry bulges, or remove all")
    return remove_helpers(context, armature, helpers)


def slider_names(armature: bpy.types.Object, name: str) -> list[str]:
    """The properties of a bulge bone for the panel."""
    return [key for key in (SLIDER, AMOUNT, REACH, START, END) if key in armature.pose.bones[name]]


def _chosen(armature: bpy.types.Object, meshes: list, name: str) -> list:
    """The mesh objects, or the one of that name. Raises BadScene if it is not among them."""
    if not name:
        return meshes
    found = [ob for ob in meshes if ob.name == name]
    if not found:
        known = ", ".join(ob.name for ob in meshes)
        raise BadScene(
            f'The armature "{armature.name}" deforms no mesh "{name}". Its meshes: {known}. Choose one of them'
        )
    return found


def _with_effect(plan: BulgePlan, shared: Sequence[SharedWeights], regions: dict) -> BulgePlan:
    """The plan with those of its carriers that have weights to give. Raises BadScene if there are none."""
    giving = [
        name
        for name in plan.carriers
        if any((each.weights_of(name) * regions[each, plan.number]).any() for each in shared)
    ]
    if not giving:
        raise BadScene(
            f'The bone "{plan.carriers[0]}" has no weights within the radius of the bulge, so it would move nothing. '
            "Choose another bone or center, or a larger radius"
        )
    return replace(plan, carriers=tuple(giving))


def _named(plan: BulgePlan, taken: set[str], word: str) -> BulgePlan:
    sided = next((name for name in (plan.carriers[0], plan.driver) if bpy.utils.flip_name(name) != name), None)
    return replace(plan, names=tuple(free_names(taken, sided or plan.carriers[0], word, len(plan.carriers))))


def _region(each: SharedWeights, body: "Body", to_body: np.ndarray, plan: BulgePlan, along_surface: bool) -> np.ndarray:
    """(N,) how much of its carriers' weights a helper takes on a mesh."""
    from ...core.binding.bulge import draped_region, soft_region

    center = to_body[:, :3] @ plan.center + to_body[:, 3]
    radius = plan.radius * abs(np.linalg.det(to_body[:, :3])) ** (1 / 3)
    near = np.linalg.norm(body.rest - center, axis=1) <= radius
    if plan.limb is not None and each.has_weights(plan.carriers):
        head = to_body[:, :3] @ plan.head + to_body[:, 3]
        return draped_region(body.rest, head, to_body[:, :3] @ plan.limb, center, radius)
    if not each.has_weights(plan.carriers) or not near.any():
        return np.zeros(len(body.rest))
    region = soft_region(body, center, radius, along_surface=along_surface)
    if along_surface:
        # For a mesh that only lies beside the bulge, such as a sleeve, the center moves to its nearest point.
        region = np.minimum(region, soft_region(body, center, radius, along_surface=False))
    return region


def _regions_apart(each: SharedWeights, plan: BulgePlan, plans: Sequence[BulgePlan], found: dict) -> list[np.ndarray]:
    """(N,) for each of a helper's carriers how much it takes of the weights that the helpers before it have left, so
    that both sides of a body take the same."""
    regions = []
    for carrier in plan.carriers:
        sharing = [other for other in plans if carrier in other.carriers]
        scale = 1 / np.maximum(sum(found[each, other.number] for other in sharing), 1.0)
        taken = sum((found[each, other.number] * scale for other in sharing if other.number < plan.number), 0 * scale)
        own = found[each, plan.number] * scale
        regions.append(np.divide(own, 1 - taken, out=np.zeros_like(own), where=taken < 1))
    return regions


def _share(each: SharedWeights, plan: BulgePlan, regions: Sequence[np.ndarray]) -> None:
    """Give a helper's bones their weights on a mesh, by the regions (N,) of their carriers."""
    from ...core.binding.bulge import add_soft_bone

    own = each.add_names(plan.names)
    if not any(region.any() for region in regions):
        return
    carriers = [each.index(name) for name in plan.carriers]
    # A locked carrier is reported for all meshes at once.
    locked = each.locked & ~np.isin(np.arange(len(each.locked)), carriers)
    rows = each.bones, each.weights
    for bone, carrier, region in zip(own, carriers, regions, strict=True):
        rows = add_soft_bone(*rows, bone, region, carrier=carrier, max_influences=each.max_influences, locked=locked)
    each.take(plan.number, own, carriers, *rows)


def _specs(plan: BulgePlan) -> list[tuple[NewBone, BoneRecord]]:
    """The bones of a helper: of one that moves or scales, Y points outward and Z along its carrier as far as
    possible."""
    matrix = Matrix(plan.axes.tolist()).to_4x4()
    matrix.translation = plan.head
    return [
        (
            NewBone(name, carrier, matrix, LENGTH * plan.radius, True),
            BoneRecord(BULGE, plan.number, SKIN, index, plan.driver),
        )
        for index, (name, carrier) in enumerate(zip(plan.names, plan.carriers, strict=True), 1)
    ]


def _move(armature: bpy.types.Object, plan: BulgePlan) -> None:
    """Give a helper's first bone its properties and drivers; the others turn as it does."""
    first, *others = plan.names
    if plan.turns:
        armature.pose.bones[first].rotation_mode = "XYZ"
    drive(armature, first, plan.driver, plan.values, plan.curves, plan.turns)
    for name in others:
        constraint = armature.pose.bones[name].constraints.new("COPY_ROTATION")
        constraint.target, constraint.subtarget = armature, first
        constraint.target_space = constraint.owner_space = "LOCAL"
