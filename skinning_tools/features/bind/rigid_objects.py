# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid binding of whole objects: each is parented to the bone nearest to its surface. The meshes do not change."""

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

import bpy
import numpy as np
from mathutils import Matrix

from ...blender import background
from ...blender.bodies import deforming_bones, read_body, read_skeleton
from ...blender.bone_parenting import parent_to_bone, rest_bone
from ...blender.figures import Figure, Result, each
from ...blender.preconditions import check_movable, check_posed, check_visible, object_label, unmet
from ...blender.skinnable import (
    ancestors,
    check_armature,
    check_mesh,
    deforming_modifiers,
    deforming_parent,
)
from ...blender.wording import counted
from ...core.errors import BadScene
from ...core.progress import Progress, checkpoint
from .in_pose import present_matrices
from .targets import Targets

if TYPE_CHECKING:
    from ...core.binding.types import Body, Skeleton


@dataclass(frozen=True)
class Parented(Result):
    """bones: the name of the bone for each object, by the object's name."""

    armature_name: str
    bones: dict[str, str]
    seconds: float

    def figures(self) -> list[Figure]:
        return each("{}", self.bones, "bones")

    def summary(self) -> str:
        """The result in one line."""
        where = f'"{next(iter(self.bones.values()))}"' if len(self.bones) == 1 else ""
        count = len(set(self.bones.values()))
        return (
            f"{counted(len(self.bones), 'object')} parented to {where or counted(count, 'bone')} of "
            f'"{self.armature_name}", {self.seconds:.1f} s'
        )


def check_parentable(context: bpy.types.Context, targets: Targets, in_pose: bool) -> None:
    """Raise BadScene if the objects cannot be parented to bones, as ``parent_to_bones`` does it. Cheap enough for a
    panel."""
    armature = targets.armature
    check_armature(armature)
    if in_pose:
        check_posed(armature)
        check_visible(context.scene, context.view_layer, armature)
    for mesh_object in targets.meshes:
        check_mesh(context, mesh_object)
        label = object_label(mesh_object)
        check_movable(mesh_object, label, "it cannot be parented")
        moved = [f'the modifier "{m.name}"' for m in deforming_modifiers(mesh_object) if m.object == armature]
        moved += ["its parent of type Armature"] * (deforming_parent(mesh_object) == armature)
        if moved:
            raise unmet(
                "ALREADY_DEFORMED",
                object=mesh_object,
                deformer=f'"{armature.name}", by {moved[0]}',
                remedy="Remove that first, or the object would move twice",
            )
        if mesh_object in ancestors(armature):
            raise BadScene(
                f'The armature "{armature.name}" is a child of {label}. Clear the armature\'s parent (Alt P)'
            )


def parent_to_bones(context: bpy.types.Context, targets: Targets, in_pose: bool) -> background.Steps:
    """Generator: parent each object to the bone that its surface is nearest to on average; yields (fraction, stage),
    returns a Parented.

    The present place of an object is its place in the rest pose, whatever the armature's pose: in the rest pose it is
    there afterwards, and in the present pose it moves with its bone. For an object already parented to a bone of this
    armature, its place in the rest pose counts. in_pose: the present place of an object is its place in the present
    pose, where it stays. After ``check_parentable``; raises SkinningError for problems that the user can fix.
    """
    begin = time.perf_counter()
    armature = targets.armature
    posed: list = [None] * len(targets.meshes)
    worlds = [_rest_world(ob, armature) for ob in targets.meshes]
    if in_pose:
        deforming = deforming_bones(armature)
        posed = [present_matrices(context, ob, armature, deforming) for ob in targets.meshes]
        worlds = [ob.matrix_world.copy() for ob in targets.meshes]
    # The object's data, at another place.
    standing = [
        SimpleNamespace(name=ob.name, data=ob.data, matrix_world=world)
        for ob, world in zip(targets.meshes, worlds, strict=True)
    ]
    skeletons = [read_skeleton(ob, armature, None, each) for ob, each in zip(standing, posed, strict=True)]
    bodies = [read_body(ob) for ob in standing]

    def work(progress: Progress) -> list[str]:
        found = []
        for index, (body, skeleton) in enumerate(zip(bodies, skeletons, strict=True)):
            checkpoint(progress, index / len(bodies), "Finding the nearest bones")
            found.append(skeleton.names[_nearest_bone(body, skeleton)])
        return found

    names = yield from background.run_in_worker(work)
    for ob, world, name, matrices in zip(targets.meshes, worlds, names, posed, strict=True):
        if matrices is not None:
            back = Matrix(np.vstack([matrices[skeletons[0].names.index(name)], [0, 0, 0, 1]]).tolist())
            world = world @ back.inverted()
        parent_to_bone(ob, armature, armature.data.bones[name], world)
    objects = [ob.name for ob in targets.meshes]
    return Parented(armature.name, dict(zip(objects, names, strict=True)), time.perf_counter() - begin)


def _nearest_bone(body: "Body", skeleton: "Skeleton") -> int:
    """The bone nearest to the surface on average; among equally near bones, their common ancestor."""
    from ...core.binding.distances import TIE, BoneDistances
    from ...core.binding.laplacian import laplacian
    from ...core.binding.skeleton import common_ancestors

    distances, areas = BoneDistances(body, skeleton), laplacian(body)[1]
    total = sum(areas[rows] @ distances.plain(rows) for rows in distances.blocks())
    return int(common_ancestors((total <= total.min() * (1 + TIE))[None], skeleton)[0])


def _rest_world(mesh_object: bpy.types.Object, armature: bpy.types.Object) -> Matrix:
    """The object's world matrix with the armature in its rest pose."""
    parent = mesh_object.parent
    if parent == armature and mesh_object.parent_type == "BONE" and mesh_object.parent_bone in armature.data.bones:
        stand = Matrix(rest_bone(armature, armature.data.bones[mesh_object.parent_bone]).tolist())
    elif parent is not None and mesh_object.parent_type == "OBJECT" and armature in ancestors(parent):
        stand = _rest_world(parent, armature)
    else:
        return mesh_object.matrix_world.copy()
    return stand @ mesh_object.matrix_parent_inverse @ mesh_object.matrix_basis
