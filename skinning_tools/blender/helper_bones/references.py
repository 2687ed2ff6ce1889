# SPDX-License-Identifier: GPL-3.0-or-later
"""References to bones of an armature anywhere in the file: constraints and drivers."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import bpy

from ..actions import bone_paths


@dataclass(frozen=True, eq=False)
class BoneReferences:
    """names: of the bones. constraints: object, bone ("" for the object itself) and name of each; drivers: data-block
    and curve of each."""

    armature: bpy.types.Object
    names: frozenset[str]
    constraints: tuple[tuple[bpy.types.Object, str, str], ...]
    drivers: tuple[tuple[bpy.types.ID, bpy.types.FCurve], ...]

    @property
    def count(self) -> int:
        return len(self.constraints) + len(self.drivers)


def find_references(armature: bpy.types.Object, names: Collection[str]) -> BoneReferences:
    """The constraints and drivers that refer to the bones ``names``, except those on these bones themselves.

    Linked and overridden data-blocks cannot be changed and do not count.
    """
    names = frozenset(names)
    used = bpy.data.user_map(subset={armature, armature.data})
    users = sorted({armature}.union(*used.values()), key=lambda block: block.name_full)
    users = [block for block in users if block.library is None and block.override_library is None]
    constraints = [
        (block, "" if owner == block else owner.name, constraint.name)
        for block in users
        if isinstance(block, bpy.types.Object)
        for owner in _constrained(block, names if block == armature else ())
        for constraint in owner.constraints
        if _constraint_names(constraint, armature, names)
    ]
    drivers = [
        (owner, curve)
        for block in users
        for owner in (block, getattr(block, "node_tree", None))
        for curve in _drivers(owner)
        if not (owner == armature and curve.data_path.startswith(bone_paths(names)))
        and _driver_names(owner, curve, armature, names)
    ]
    return BoneReferences(armature, names, tuple(constraints), tuple(drivers))


def remove_references(found: BoneReferences) -> None:
    """Remove the references; constraints with other bones lose only these. The bones may be gone already."""
    for owner_object, bone, name in found.constraints:
        owner = owner_object.pose.bones[bone] if bone else owner_object
        constraint = owner.constraints[name]
        if _only_in_part(constraint, found):
            continue
        owner.constraints.remove(constraint)
    for owner, curve in found.drivers:
        owner.animation_data.drivers.remove(curve)


def _constrained(owner_object: bpy.types.Object, left_out: Collection[str]) -> Iterator:
    yield owner_object
    if owner_object.pose is not None:
        yield from (bone for bone in owner_object.pose.bones if bone.name not in left_out)


def _constraint_names(constraint: bpy.types.Constraint, armature: bpy.types.Object, names: Collection[str]) -> bool:
    return any(
        getattr(holder, target, None) == armature and getattr(holder, subtarget, "") in names
        for holder, target, subtarget in _targets(constraint)
    )


def _targets(constraint: bpy.types.Constraint) -> Iterator[tuple[bpy.types.bpy_struct, str, str]]:
    """The owners of targets, with their property names for object and bone."""
    yield constraint, "target", "subtarget"
    yield constraint, "pole_target", "pole_subtarget"
    if constraint.type == "ARMATURE":
        yield from ((target, "target", "subtarget") for target in constraint.targets)


def _only_in_part(constraint: bpy.types.Constraint, found: BoneReferences) -> bool:
    """Remove the bones from a constraint that works without them; returns whether it does."""
    if constraint.type == "IK" and not (constraint.target == found.armature and constraint.subtarget in found.names):
        constraint.pole_target = None
        return True
    if constraint.type != "ARMATURE":
        return False
    gone = [
        target for target in constraint.targets if target.target == found.armature and target.subtarget in found.names
    ]
    if len(gone) == len(constraint.targets):
        return False
    for target in reversed(gone):
        constraint.targets.remove(target)
    return True


def _drivers(block: bpy.types.ID) -> Iterator[bpy.types.FCurve]:
    """The drivers of any data-block that uses the armature; collections, texts and others have no animation."""
    animation = getattr(block, "animation_data", None)
    return iter(animation.drivers if animation is not None else ())


def _driver_names(
    owner: bpy.types.ID, curve: bpy.types.FCurve, armature: bpy.types.Object, names: Collection[str]
) -> bool:
    bones = tuple(path.removeprefix("pose.") for path in bone_paths(names))
    if owner == armature.data and curve.data_path.startswith(bones):
        return True
    for variable in curve.driver.variables:
        for target in variable.targets:
            if variable.type == "SINGLE_PROP":
                paths = {armature: bone_paths(names), armature.data: bones}.get(target.id, ())
                if target.data_path.startswith(paths):
                    return True
            elif target.id == armature and target.bone_target in names:
                return True
    return False
