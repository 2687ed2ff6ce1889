# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove Helper Bones: what Add Helper Bones has added to a rig is taken away, and the weights are shared again."""

from dataclasses import dataclass

import bpy
import numpy as np

from ...blender import actions
from ...blender.armatures import check_armature, deformed_meshes, remove_bones
from ...blender.bodies import deforming_bones
from ...blender.bone_parenting import parent_to_bone, rest_bone
from ...blender.bone_weights import BoneWeights, read_bone_weights, write_bone_weights
from ...blender.preconditions import object_label
from ...blender.skin_reader import armature_of
from ...blender.vertex_groups import active_group_kept
from ...blender.weight_tools import check_meshes, check_unlocked, forget_figures
from ...blender.wording import counted, vertices_text
from ...core.errors import BadScene, BadWeights
from .added_bones import added_helpers, added_parents, remove_empty_collections
from .bone_references import BoneReferences, find_references, remove_references
from .helpers import weights_beside
from .parts import armature_meant
from .steps import FIGURES_PROPERTY


@dataclass(frozen=True)
class HelpersRemoved:
    """helpers: the bones that deformed; vertices: how many had weights of theirs; notes: what the user ought to
    know."""

    armature_name: str
    helpers: tuple[str, ...]
    vertices: int
    notes: tuple[str, ...]

    def summary(self) -> str:
        """The result in one line."""
        done = f"{self.armature_name}: {counted(len(self.helpers), 'helper bone')} removed, the weights of "
        return "; ".join([done + f"{vertices_text(self.vertices)} shared again by the other bones", *self.notes])


@dataclass(frozen=True, eq=False)
class _NewWeights:
    """Rows ``bones`` and ``weights`` (n, K), as ``write_bone_weights`` takes them, for the ``vertices`` (n,)."""

    object: bpy.types.Object
    before: BoneWeights
    bones: np.ndarray
    weights: np.ndarray
    vertices: np.ndarray


def rig_with_helpers(context, object, name: str = ""):
    """The armature of which helper bones are meant, as ``armature_meant`` has it.

    Cheap enough for a panel. Raises BadScene where it has none, or no bones can be removed from it.
    """
    armature = armature_meant(context, object, name)
    if not added_helpers(armature):
        raise BadScene(f'The armature "{armature.name}" has no bones that Add Helper Bones has made')
    check_armature(armature)
    action = armature.animation_data.action if armature.animation_data else None
    if action is not None and action.library is not None:
        raise BadScene(
            f'The action "{action.name}" of "{armature.name}" is linked from another file, so the keyframes of its '
            "helper bones cannot be removed. Make it local, or choose another"
        )
    return armature


def remove_helper_bones(context, object, armature: str = "") -> HelpersRemoved:
    """Remove all helper bones of an armature with what was made for them and what names them.

    Their weights go to the other bones of the same vertices: locked ones stay, the others are scaled so that rows sum
    to what they did. Where there is no other to take them, the nearest deforming bone above the helper gets them, or
    the one that shares most vertices with it. Raises SkinningError, and then has changed nothing.
    """
    rig = rig_with_helpers(context, object, armature)
    helpers = added_helpers(rig)
    gone = [*helpers, *added_parents(rig, helpers)]
    meshes = [ob for ob in _meshes(rig, object) if any(name in ob.vertex_groups for name in helpers)]
    check_meshes(meshes, "the weights of its helper bones cannot be given back")
    check_unlocked(meshes, helpers)
    shared = [_without(ob, rig, helpers) for ob in meshes]
    references = find_references(rig, gone)
    children = _children(rig, gone)
    collections = {collection.name for name in gone for collection in rig.data.bones[name].collections}
    keyed_twice = _plays_elsewhere(rig, gone)

    # First what may fail: Blender has to enter Edit Mode for it.
    remove_bones(context, rig, gone, clear_animation=False)
    remove_empty_collections(rig, collections)
    remove_references(references)
    if not keyed_twice:
        paths = actions.bone_paths(gone)
        actions.remove_curves(rig, lambda path: path.startswith(paths))
    for child, parent, world in children:
        parent_to_bone(child, rig, rig.data.bones.get(parent), world)
    for new in shared:
        _write(new, helpers)
    return HelpersRemoved(
        rig.name,
        tuple(helpers),
        sum(len(new.vertices) for new in shared),
        tuple(_notes(rig, references, keyed_twice)),
    )


def _meshes(rig, object) -> list:
    """The meshes that the armature deforms, and the active one where none does: solves take that as it is, too."""
    meshes = deformed_meshes(rig)
    if object is not None and object.type == "MESH" and armature_of(object) is None:
        meshes += [object] if object.data not in [ob.data for ob in meshes] else []
    return meshes


def _without(object, rig, helpers: list[str]) -> _NewWeights:
    """The weights of a mesh object where helpers have none. Raises BadWeights."""
    names = [name for name in deforming_bones(rig) if name not in helpers]
    count = len(names)
    before = read_bone_weights(object, rig, [*names, *helpers])
    vertices = np.flatnonzero(((before.bones >= count) & (before.weights > 0)).any(axis=1))
    bones, weights = before.bones[vertices].astype(np.int64), before.weights[vertices]
    helping = bones >= count
    free = ~helping & ~before.locked[bones]
    given = np.where(helping, weights, 0.0).sum(axis=1, keepdims=True)
    taking = np.where(free, weights, 0.0).sum(axis=1, keepdims=True)
    alone = taking <= 0
    scale = np.divide(taking + given, taking, out=np.ones_like(taking), where=~alone)
    new_bones, new_weights = bones.copy(), np.where(free, weights * scale, np.where(helping, 0.0, weights))
    left = helping & (weights > 0) & alone
    for slot in np.unique(bones[left]):
        here = left & (bones == slot)
        new_bones[here] = _receiver(rig, before, int(slot), count, int(here.any(axis=1).sum()), object)
        new_weights[here] = weights[here]
    return _NewWeights(object, before, new_bones, new_weights, vertices)


def _receiver(rig, before: BoneWeights, helper: int, count: int, vertices: int, object) -> int:
    """Which of the first ``count`` of the bones of ``before`` takes the weights of a helper where no other bone of the
    vertex can. Raises BadWeights."""
    free = [name for name, locked in zip(before.names[:count], before.locked, strict=False) if not locked]
    above = next((bone.name for bone in rig.data.bones[before.names[helper]].parent_recursive if bone.name in free), "")
    if above:
        return before.names.index(above)
    if count:
        beside = weights_beside(before.bones, before.weights, count, helper)
        beside[before.locked[:count]] = 0.0
        if beside.any():
            return int(np.argmax(beside))
    raise BadWeights(
        f'{vertices_text(vertices)} of {object_label(object)} have weights of "{before.names[helper]}", and no bone is '
        "free to take them. Unlock vertex groups (the padlock), or assign these vertices to another bone"
    )


def _write(new: _NewWeights, helpers: list[str]) -> None:
    object, groups = new.object, new.object.vertex_groups
    write_bone_weights(object, new.before, new.bones, new.weights, new.vertices, keep_totals=True)
    with active_group_kept(object):
        for name in helpers:
            if name in groups:
                groups.remove(groups[name])
    forget_figures(object)
    if FIGURES_PROPERTY in object:
        del object[FIGURES_PROPERTY]
    object.data.update()


def _plays_elsewhere(rig, names) -> bool:
    """Whether another armature with such bones plays the same action: then the keyframes are its, too."""
    action, slot = _played(rig)
    others = (ob for ob in bpy.data.objects if ob.type == "ARMATURE" and ob != rig)
    return action is not None and any(
        _played(ob) == (action, slot) and any(name in ob.pose.bones for name in names) for ob in others
    )


def _played(object) -> tuple:
    animation = object.animation_data
    action = animation.action if animation else None
    slot = animation.action_slot_handle if action is not None and hasattr(action, "slots") else None
    return action, slot


def _children(rig, gone) -> list[tuple[bpy.types.Object, str, np.ndarray]]:
    """Objects that hang on the bones ``gone``: each with the bone that it goes to, "" for the armature itself, and
    where it is in the rest pose (4, 4)."""
    found = []
    for child in bpy.data.objects:
        if child.parent != rig or child.parent_type != "BONE" or child.parent_bone not in gone or child.library:
            continue
        bone = rig.data.bones[child.parent_bone]
        parent = next((each.name for each in bone.parent_recursive if each.name not in gone), "")
        own = np.array(child.matrix_parent_inverse, dtype=np.float64) @ np.array(child.matrix_basis, dtype=np.float64)
        found.append((child, parent, rest_bone(rig, bone) @ own))
    return found


def _notes(rig, references: BoneReferences, keyed_twice: bool) -> list[str]:
    notes = []
    if references.count:
        kinds = [(len(references.constraints), "constraint"), (len(references.drivers), "driver")]
        words = " and ".join(counted(number, noun) for number, noun in kinds if number)
        notes.append(f"{words} that named them removed")
    if keyed_twice:
        notes.append(
            f'their keyframes stay in the action "{rig.animation_data.action.name}", which another armature plays, too'
        )
    return notes
