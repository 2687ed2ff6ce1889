# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes helper bones with everything made for them and all references to them, and returns their weights."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np

from ..armatures import deformed_meshes, remove_bones
from ..bone_parenting import parent_to_bone, rest_bone
from ..figures import Figure, Result
from ..weight_tools import check_meshes, check_unlocked, forget_figures
from ..wording import counted, listed, vertices_text
from .bones import remove_empty_collections
from .keyframes import find_keys
from .records import BULGE, OF_JOINTS, SOLVED, Helper, find_helpers, mark_made_animation
from .references import BoneReferences, find_references, remove_references
from .shared_again import shared_again
from .weight_notes import concerned_meshes, give_back


@dataclass(frozen=True)
class Removed(Result):
    """meshes: whose weights have changed; vertices: how many had weights of helpers of solves; painted: how many had
    weights of links or bulges that had been painted since; notes: for the user."""

    armature_name: str
    helpers: tuple[Helper, ...]
    meshes: tuple[bpy.types.Object, ...]
    vertices: int
    painted: int
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the helpers."""
        return tuple(helper.label for helper in self.helpers)

    def figures(self) -> list[Figure]:
        line = f"{vertices_text(self.painted)} painted since, whose weights went to the adjacent bones"
        solved, painted = (
            Figure("Vertices with new weights", self.vertices),
            Figure("Vertices painted since", self.painted, line=line, if_any=True),
        )
        return [
            Figure("Armature", self.armature_name),
            Figure("Removed", list(self.names)),
            solved if self.helpers[0].kind == SOLVED else painted,
        ]


def remove_helpers(
    context: bpy.types.Context,
    armature: bpy.types.Object,
    helpers: Sequence[Helper],
    meshes: Sequence[bpy.types.Object] | None = None,
) -> Removed:
    """Remove helpers of an armature with everything made for them and all references to them.

    meshes: those that may have weights of the helpers, by default the meshes that the armature deforms. Restores the
    weights that links and bulges have noted; weights of solves go to the other bones of the same vertices, see
    ``shared_again``. Raises SkinningError, and then has changed nothing.
    """
    meshes = deformed_meshes(armature) if meshes is None else meshes
    of_joints, solved = ([each for each in helpers if (each.kind == SOLVED) == kind] for kind in (False, True))
    concerned = {helper.bones: concerned_meshes(meshes, helper) for helper in helpers}
    objects = list(dict.fromkeys(ob for found in concerned.values() for ob in found))
    _check_returnable(objects, helpers)
    gone = [name for helper in helpers for name in helper.bones]
    names = [name for helper in solved for name in helper.skin]
    rows = [shared_again(ob, armature, names) for ob in objects] if solved else []
    references, children = find_references(armature, gone), _children(armature, gone)
    collections = {collection.name for name in gone for collection in armature.data.bones[name].collections}
    keys = find_keys(armature, [name for helper in solved for name in helper.bones])
    made_animation = any(helper.made_animation for helper in helpers)

    # First the step that may fail: Blender must enter Edit Mode for it.
    remove_bones(context, armature, gone, clear_animation=made_animation)
    staying = find_helpers(armature, OF_JOINTS)
    driven = next((helper for helper in staying if helper.kind == BULGE), None)
    if made_animation and driven is not None:
        mark_made_animation(armature, driven.skin[0])
    remove_empty_collections(armature, collections)
    remove_references(references)
    keys.remove()
    for child, parent, world in children:
        parent_to_bone(child, armature, armature.data.bones.get(parent), world)
    for new in rows:
        new.write(names)
    painted = _give_back(of_joints, staying, concerned)
    for ob in objects:
        forget_figures(ob)
        ob.data.update()
    return Removed(
        armature.name,
        tuple(helpers),
        tuple(objects),
        sum(len(new.vertices) for new in rows),
        painted,
        tuple(_notes(references, keys.shared)),
    )


def return_weights(armature: bpy.types.Object, helpers: Sequence[Helper], mesh_object: bpy.types.Object) -> int:
    """Return the weights that helpers of joints have taken from one mesh object, and keep their bones; the number of
    vertices whose weights were painted since. Raises SkinningError, and then has changed nothing."""
    concerned = {helper.bones: concerned_meshes([mesh_object], helper) for helper in helpers}
    _check_returnable([mesh_object], helpers)
    staying = [helper for helper in find_helpers(armature, OF_JOINTS) if helper not in helpers]
    return _give_back(list(helpers), staying, concerned)


def _check_returnable(objects: Sequence[bpy.types.Object], helpers: Sequence[Helper]) -> None:
    """Raises BadScene if the weights of helpers cannot be returned on the mesh objects."""
    check_meshes(objects, "the weights of its helper bones cannot be changed")
    ends = [name for helper in helpers if helper.kind != SOLVED for name in (*helper.carriers, helper.end) if name]
    check_unlocked(objects, [*(name for helper in helpers for name in helper.skin), *ends])


@contextmanager
def removed_on_failure(
    context: bpy.types.Context, armature: bpy.types.Object, numbers: Collection[int]
) -> Iterator[None]:
    """Remove the helpers ``numbers`` if the block that makes them fails."""
    try:
        yield
    except BaseException:
        made = [helper for helper in find_helpers(armature, OF_JOINTS) if helper.number in numbers]
        if made:
            remove_helpers(context, armature, made)
        raise


def _give_back(helpers: list[Helper], staying: list[Helper], concerned: dict) -> int:
    """Return the weights of links and bulges; the number of vertices whose weights were painted since."""
    painted, others = 0, sorted([*helpers, *staying], key=lambda helper: helper.number)
    # The latest helper first: each earlier one then finds the weights that it has written.
    for helper in reversed(helpers):
        others.remove(helper)
        later = [each for each in others if each.number > helper.number]
        painted += sum(give_back(ob, helper, later) for ob in concerned[helper.bones])
    return painted


def _children(armature: bpy.types.Object, gone: Sequence[str]) -> list[tuple[bpy.types.Object, str, np.ndarray]]:
    """Child objects of the bones ``gone``: each with its new parent bone, "" for the armature itself, and its matrix
    (4, 4) in the rest pose."""
    found = []
    for child in bpy.data.objects:
        if child.parent != armature or child.parent_type != "BONE" or child.parent_bone not in gone or child.library:
            continue
        bone = armature.data.bones[child.parent_bone]
        parent = next((each.name for each in bone.parent_recursive if each.name not in gone), "")
        own = np.array(child.matrix_parent_inverse, dtype=np.float64) @ np.array(child.matrix_basis, dtype=np.float64)
        found.append((child, parent, rest_bone(armature, bone) @ own))
    return found


def _notes(references: BoneReferences, shared: Sequence[str]) -> list[str]:
    notes = []
    if references.count:
        kinds = [(len(references.constraints), "constraint"), (len(references.drivers), "driver")]
        words = " and ".join(counted(number, noun) for number, noun in kinds if number)
        notes.append(f"{words} that referred to them removed")
    if shared:
        names = listed(f'"{name}"' for name in shared)
        notes.append(f"their keyframes stay in {names}: another armature with such bones plays the same actions")
    return notes
