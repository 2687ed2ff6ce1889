# SPDX-License-Identifier: GPL-3.0-or-later
"""The bones of armature objects: whether they can be changed, and changing them in any mode of the user."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np
from mathutils import Matrix, Vector

from ..core.errors import BadScene
from . import actions
from .bone_selection import selectable
from .look_ups import users_of
from .preconditions import check_armature_mode, check_own_armature, unmet
from .skin_reader import armature_of
from .temporary_scene import temporary_scene

# By purpose, in every rig that the extension makes.
BONE_COLORS = {"Deform": "THEME04", "Mechanism": "THEME09", "Control": "THEME03"}

# On a pose bone whose location the extension has locked.
_LOCKED = "skinning_location_lock"
# Shares of a bone's length: a bone that begins as near as this to its parent's end begins there; and how short a bone
# may become.
CONNECTED, _SHORTEST = 1e-4, 1e-2


def make_bone_collection(
    armature: bpy.types.Armature, name: str, bone_names: Sequence[str]
) -> bpy.types.BoneCollection:
    """A new collection of the bones, which get the color of what they are for."""
    collection = armature.collections.new(name)
    for bone_name in bone_names:
        armature.bones[bone_name].color.palette = BONE_COLORS.get(name, BONE_COLORS["Deform"])
        collection.assign(armature.bones[bone_name])
    return collection


def check_armature(armature: bpy.types.Object | None) -> None:
    """Raises BadScene if the bones of an armature object cannot be changed. Cheap enough for a panel."""
    if armature is None:
        raise unmet("NO_ARMATURE")
    check_own_armature(armature, "bones cannot be added or removed")
    check_armature_mode(armature)
    users = users_of(armature.data) if armature.data.users > 1 else []
    other = next((ob for ob in users if ob != armature), None)
    if other is not None:
        raise BadScene(
            f'The bones of "{armature.name}" are also those of "{other.name}", whose constraints would be lost. '
            "Make the armature single-user (Object > Relations > Make Single User > Object & Data)"
        )


def deformed_meshes(armature: bpy.types.Object) -> list[bpy.types.Object]:
    """The mesh objects that the armature deforms, shown or not; of several that share a mesh the first."""
    found: dict[bpy.types.Mesh, bpy.types.Object] = {}
    for ob in bpy.data.objects:
        if ob.type != "MESH" or not ob.users_scene or not len(ob.data.vertices):
            continue
        if armature_of(ob) == armature or any(m.type == "ARMATURE" and m.object == armature for m in ob.modifiers):
            found.setdefault(ob.data, ob)
    return list(found.values())


def rest_matrices(armature: bpy.types.Object, names: Sequence[str]) -> np.ndarray:
    """(P, 4, 4) float64: the bones' rest matrices as stored, which single precision has rounded."""
    rest = [armature.data.bones[name].matrix_local for name in names]
    return np.array(rest, dtype=np.float64).reshape(-1, 4, 4)


@contextmanager
def edit_bones_of(
    context: bpy.types.Context, armature_object: bpy.types.Object
) -> Iterator[bpy.types.ArmatureEditBones]:
    """The edit bones of an armature object in any scene; the user's active object and mode stay."""
    with temporary_scene(context.scene, [armature_object]) as scene:
        view_layer = scene.view_layers[0]
        view_layer.objects.active = armature_object
        with context.temp_override(
            scene=scene, view_layer=view_layer, active_object=armature_object, object=armature_object
        ):
            bpy.ops.object.mode_set(mode="EDIT")
            try:
                yield armature_object.data.edit_bones
            finally:
                bpy.ops.object.mode_set(mode="OBJECT")


@contextmanager
def bones_edited(context: bpy.types.Context, armature: bpy.types.Object) -> Iterator[bpy.types.ArmatureEditBones]:
    """The edit bones; mode, visibility, mirroring and the bones' selection are restored in any case."""
    mode, hidden, mirrors = armature.mode, armature.hide_viewport, armature.data.use_mirror_x
    active = armature.data.bones.active.name if armature.data.bones.active is not None else ""
    flags = {owner.name: (owner.select, owner.hide) for owner in selectable(armature)}
    # The names of both sides are symmetric: with X-axis mirror enabled, placing a bone would move its counterpart.
    armature.hide_viewport, armature.data.use_mirror_x = False, False
    try:
        with edit_bones_of(context, armature) as edit_bones:
            yield edit_bones
    finally:
        if mode != armature.mode:
            set_mode(context, armature, mode)
        armature.hide_viewport, armature.data.use_mirror_x = hidden, mirrors
        for owner in selectable(armature):
            owner.select, owner.hide = flags.get(owner.name, (False, False))
        armature.data.bones.active = armature.data.bones.get(active)


@dataclass(frozen=True, eq=False)
class NewBone:
    """A bone to add. parent: a name, "" for none; matrix (4, 4): at rest in the armature's space; adopts: the bone that
    becomes its child and gives it its parent, "" for none."""

    name: str
    parent: str
    matrix: np.ndarray | Matrix
    length: float
    deforms: bool
    inherit_scale: str = "FULL"
    adopts: str = ""


def add_bones(context: bpy.types.Context, armature: bpy.types.Object, specs: Sequence[NewBone]) -> None:
    """Make the bones, in the given order. Existing bones stay bit-identical, except for the parents of adopted
    bones."""
    with bones_edited(context, armature) as edit_bones:
        for spec in specs:
            bone = edit_bones.new(spec.name)
            bone.head, bone.tail = (0, 0, 0), (0, spec.length, 0)
            bone.matrix = Matrix(spec.matrix)
            bone.length = spec.length
            bone.use_deform, bone.inherit_scale = spec.deforms, spec.inherit_scale
            bone.use_connect = False
            if spec.adopts:
                _adopt(bone, edit_bones[spec.adopts])
            elif spec.parent:
                bone.parent = edit_bones[spec.parent]


def _adopt(bone: bpy.types.EditBone, child: bpy.types.EditBone) -> None:
    """Insert ``bone`` between a bone and its parent, with the bone's inheritance settings."""
    for name in ("use_inherit_rotation", "inherit_scale", "use_local_location"):
        setattr(bone, name, getattr(child, name))
    connected, bone.parent = child.use_connect, child.parent
    child.use_connect = False
    bone.use_connect = connected
    child.parent = bone
    child.use_inherit_rotation, child.inherit_scale, child.use_local_location = True, "FULL", True


def place_heads(context: bpy.types.Context, armature: bpy.types.Object, heads: Mapping[str, Vector]) -> None:
    """Move the heads of bones, and the tails of the parents that they are connected to, in the armature's space. Rolls
    stay as near as they can. A bone whose head comes to its tail, or whose parent is there, is turned around; one whose
    parent would be left without length is disconnected from it."""
    with bones_edited(context, armature) as edit_bones:
        turned = {name for name in heads if _hangs_by_its_tail(edit_bones[name])}
        for name, head in heads.items():
            bone = edit_bones[name]
            least, up, parent = _SHORTEST * bone.length, bone.z_axis.copy(), bone.parent
            if bone.use_connect and (head - parent.head).length < least:
                bone.use_connect = False
            above = parent.z_axis.copy() if bone.use_connect else None
            turns = name in turned or (bone.tail - head).length < least
            if turns and (bone.head - head).length >= least:
                for child in bone.children:
                    child.use_connect = False
                # X, about which the bone bends, stays.
                bone.tail, up = bone.head.copy(), -up
            bone.head = head
            bone.align_roll(up)
            if above is not None:
                parent.align_roll(above)


def _hangs_by_its_tail(bone: bpy.types.EditBone) -> bool:
    """Whether the parent is nearer to the bone's tail than to its head, as in a chain parented the other way."""
    ends = (bone.parent.head, bone.parent.tail) if bone.parent else ()
    to_head, to_tail = (min(((end - place).length for end in ends), default=0.0) for place in (bone.head, bone.tail))
    return to_tail < to_head


def set_mode(context: bpy.types.Context, armature: bpy.types.Object, mode: str) -> None:
    """Change the mode of an armature object in any scene."""
    with temporary_scene(context.scene, [armature]) as scene:
        view_layer = scene.view_layers[0]
        view_layer.objects.active = armature
        with context.temp_override(scene=scene, view_layer=view_layer, active_object=armature, object=armature):
            bpy.ops.object.mode_set(mode=mode)


def remove_bones(
    context: bpy.types.Context, armature: bpy.types.Object, names: Sequence[str], clear_animation: bool
) -> None:
    """Remove bones with their drivers; other bones parented to them get their parents.

    clear_animation: also remove the armature's animation data if it becomes empty.
    """
    for curve in drivers_of(armature, names):
        armature.animation_data.drivers.remove(curve)
    with bones_edited(context, armature) as edit_bones:
        for name in names:
            bone = edit_bones[name]
            for child in bone.children:
                # A connected bone would move to its new parent's tail.
                child.use_connect = False
                child.parent = bone.parent
            edit_bones.remove(bone)
    animation = armature.animation_data
    used = animation is None or animation.action or len(animation.drivers) or len(animation.nla_tracks)
    if clear_animation and not used:
        armature.animation_data_clear()


def remove_if_empty(data: bpy.types.Armature, collection: bpy.types.BoneCollection | None) -> None:
    """Remove a bone collection of armature data if it exists and is empty."""
    if collection is not None and not len(collection.bones) and not len(collection.children):
        data.collections.remove(collection)


def lock_locations(armature: bpy.types.Object, held: Mapping[str, bool]) -> None:
    """Lock the location of the bones that are ``held`` at their joints, and unlock it where another was locked by this,
    since it has keys. What the user has locked stays so."""
    for name, holds in held.items():
        bone = armature.pose.bones[name]
        if holds and not all(bone.lock_location):
            bone.lock_location, bone[_LOCKED] = (True, True, True), True
        elif not holds and bone.pop(_LOCKED, False):
            bone.lock_location = (False, False, False)


def drivers_of(armature: bpy.types.Object, names: Iterable[str]) -> list:
    """The driver curves of the pose bones ``names``."""
    if armature.animation_data is None:
        return []
    paths = actions.bone_paths(names)
    return [curve for curve in armature.animation_data.drivers if curve.data_path.startswith(paths)]
