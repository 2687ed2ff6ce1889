# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid binding of whole objects: each is parented to the bone nearest to its surface. The meshes stay as they are."""

import time
from dataclasses import dataclass
from types import SimpleNamespace

from mathutils import Matrix

from ...blender import background
from ...blender.bodies import read_body, read_skeleton
from ...blender.bone_parenting import parent_to_bone, rest_bone
from ...blender.preconditions import object_label
from ...blender.wording import counted
from ...core.errors import BadScene
from ...core.progress import checkpoint
from .targets import (
    Targets,
    ancestors,
    check_armature,
    check_mesh,
    deforming_modifiers,
    deforming_parent,
    place_hidden,
)


@dataclass(frozen=True)
class Parented:
    """bones: the bone's name of each object, by the object's name."""

    armature_name: str
    bones: dict[str, str]
    seconds: float

    def summary(self) -> str:
        """The result in one line."""
        where = f'"{next(iter(self.bones.values()))}"' if len(self.bones) == 1 else ""
        count = len(set(self.bones.values()))
        return (
            f"{counted(len(self.bones), 'object')} parented to {where or counted(count, 'bone')} of "
            f'"{self.armature_name}", {self.seconds:.1f} s'
        )


def check_parentable(context, targets: Targets) -> None:
    """Raises BadScene where the objects cannot be parented to bones. Cheap enough for a panel."""
    armature = targets.armature
    check_armature(armature)
    for object in targets.meshes:
        check_mesh(context, object)
        label = object_label(object)
        if object.library is not None:
            raise BadScene(
                f"The {label} is linked from another file, so it cannot be parented. Make it local, or override it"
            )
        moved = [f'the modifier "{m.name}"' for m in deforming_modifiers(object) if m.object == armature]
        moved += ["its parent of type Armature"] * (deforming_parent(object) == armature)
        if moved:
            what = f'The {label} is deformed by "{armature.name}" already: by {moved[0]}'
            raise BadScene(f"{what}. Remove that first, or it would move twice")
        if object in ancestors(armature):
            raise BadScene(
                f'The armature "{armature.name}" is a child of {label}. Clear the armature\'s parent (Alt P)'
            )


def parent_to_bones(context, targets: Targets) -> background.Steps:
    """Generator: parent each object to the bone that its surface is nearest to on average; yields (fraction, stage),
    returns a Parented.

    Where an object stands now is where it belongs in the rest pose, whatever pose the armature is in: in the rest pose
    it stands there afterwards, and in the present one it has moved with its bone. An object that has a bone of this
    armature as its parent already is taken as it is in the rest pose. Raises SkinningError for all that the user can
    mend.
    """
    begin = time.perf_counter()
    armature = targets.armature
    place_hidden(context, armature)
    check_parentable(context, targets)
    worlds = [_rest_world(ob, armature) for ob in targets.meshes]
    # What is read of an object, at another place.
    standing = [
        SimpleNamespace(name=ob.name, data=ob.data, matrix_world=world)
        for ob, world in zip(targets.meshes, worlds, strict=True)
    ]
    skeletons = [read_skeleton(ob, armature) for ob in standing]
    bodies = [read_body(ob) for ob in standing]

    def work(progress):
        found = []
        for index, (body, skeleton) in enumerate(zip(bodies, skeletons, strict=True)):
            checkpoint(progress, index / len(bodies), "Finding the nearest bones")
            found.append(skeleton.names[_nearest_bone(body, skeleton)])
        return found

    names = yield from background.run_in_worker(work)
    for ob, world, name in zip(targets.meshes, worlds, names, strict=True):
        parent_to_bone(ob, armature, armature.data.bones[name], world)
    objects = [ob.name for ob in targets.meshes]
    return Parented(armature.name, dict(zip(objects, names, strict=True)), time.perf_counter() - begin)


def _nearest_bone(body, skeleton) -> int:
    """The bone to which the surface is nearest on average; of several that are as near, their common ancestor."""
    from ...core.binding.distances import TIE, BoneDistances
    from ...core.binding.laplacian import laplacian
    from ...core.binding.skeleton import common_ancestors

    distances, areas = BoneDistances(body, skeleton), laplacian(body)[1]
    total = sum(areas[rows] @ distances.plain(rows) for rows in distances.blocks())
    return int(common_ancestors((total <= total.min() * (1 + TIE))[None], skeleton)[0])


def _rest_world(object, armature) -> Matrix:
    """Where the object stands while the armature is in its rest pose."""
    parent = object.parent
    if parent == armature and object.parent_type == "BONE" and object.parent_bone in armature.data.bones:
        stand = Matrix(rest_bone(armature, armature.data.bones[object.parent_bone]).tolist())
    elif parent is not None and object.parent_type == "OBJECT" and armature in ancestors(parent):
        stand = _rest_world(parent, armature)
    else:
        return object.matrix_world.copy()
    return stand @ object.matrix_parent_inverse @ object.matrix_basis
