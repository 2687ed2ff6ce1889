# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of an EigenSkin, poses with their correct shapes: reading the rig and its pose, storing and reading
examples.

The armature lists its examples (``Object.skinning_eigenskin``). Their arrays are in a mesh data-block without faces,
one per character, that no object shows: plain data that the file keeps with or without the extension. For the example
``uid`` it has a point attribute of that name with the posed shape in the character's object space, and a custom
property of that name with the pose.
"""

import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.attributes import read_attribute, remove_attributes, write_attribute
from ...blender.helper_bones.records import is_of_joint
from ...blender.preconditions import check_own_object, object_label, unmet
from ...blender.skin_reader import Skin, armature_of, bone_matrices, bone_names, mesh_triangles, read_skin
from ...core import quaternions
from .example_pose import check_posed_bones, for_bones, half_bones, is_stored, local_rotations, stored_pose
from .settings import SkinningEigenskinExample

if TYPE_CHECKING:
    from ...core.eigenskin import Examples, Rig

STORAGE_ENDING = "examples"


def read_rig(context: bpy.types.Context, mesh_object: bpy.types.Object) -> "tuple[Skin, Rig]":
    """The skinned mesh and its joints: the bones that deform it, and all their ancestors.

    Raises BadScene like ``read_skin``, and for a mesh that shape keys cannot correct.
    """
    skin = read_skin(context, mesh_object)
    check_correctable(mesh_object)
    return skin, rig_of(skin)


def rig_of(skin: Skin) -> "Rig":
    """The joints of a skin."""
    from ...core.eigenskin import Rig

    names = joint_names(skin.armature, skin.bone_names)
    order = {name: index for index, name in enumerate(names)}
    bones = skin.armature.data.bones
    parents = [order[bones[name].parent.name] if bones[name].parent else -1 for name in names]
    joints = [
        next(each.name for each in _with_ancestors(bones[name]) if each.name in order) for name in skin.bone_names
    ]
    return Rig(
        skin.rest,
        skin.bones,
        skin.weights,
        names,
        np.array(parents, int),
        np.array([order[name] for name in joints], int),
    )


def joint_names(armature: bpy.types.Object, deforming: Sequence[str]) -> tuple[str, ...]:
    """The bones in ``deforming`` and all their ancestors, each after its parent, but for helpers of joints: what they
    do follows from the other bones."""
    wanted = {bone.name for name in deforming for bone in _with_ancestors(armature.data.bones[name])}
    return tuple(bone.name for bone in armature.data.bones if bone.name in wanted and not is_of_joint(bone))


def _with_ancestors(bone: bpy.types.Bone) -> list[bpy.types.Bone]:
    return [bone, *bone.parent_recursive]


def check_storable(armature: bpy.types.Object) -> None:
    """Raise BadScene if the file would not keep examples on the armature."""
    check_own_object(armature, "no examples can be stored with it")


def check_correctable(mesh_object: bpy.types.Object) -> None:
    """Raise BadScene if shape keys cannot correct the mesh."""
    keys = mesh_object.data.shape_keys
    if keys is not None and not keys.use_relative:
        raise unmet("ABSOLUTE_KEYS", object=mesh_object, consequence="they cannot be added to each other", otherwise="")
    if np.linalg.matrix_rank(np.array(mesh_object.matrix_world)) < 4:
        raise unmet("NO_SCALE", object=mesh_object)


def current_pose(skin: Skin, rig: "Rig", depsgraph: bpy.types.Depsgraph) -> tuple[np.ndarray, np.ndarray]:
    """The depsgraph's present pose: rotations (J, 4) of the joints and matrices (P, 3, 4) of the deforming bones.

    A rotation is that of the pose bone in its local space, constraints included, w x y z, as read by a driver variable
    of the type Transform Channel. Raises BadScene if a bone is missing.
    """
    matrices = bone_matrices(skin, depsgraph)
    return local_rotations(skin.armature.evaluated_get(depsgraph), rig.joint_names), matrices


def current_channels(skin: Skin, depsgraph: bpy.types.Depsgraph) -> dict[str, list[float]]:
    """The channels of all bones not at rest (16 numbers, row by row), from the user, an action or drivers.

    Includes control bones, so that the channels can pose the armature again.
    """
    armature = skin.armature.evaluated_get(depsgraph)
    rest = np.eye(4)
    bases = {bone.name: np.array(bone.matrix_basis, dtype=np.float64) for bone in armature.pose.bones}
    return {name: basis.ravel().tolist() for name, basis in bases.items() if np.abs(basis - rest).max() > 1e-6}


def store_example(
    skin: Skin,
    name: str,
    kind: str,
    rotations: np.ndarray,
    matrices: np.ndarray,
    shape: np.ndarray,
    frame: int = 0,
    channels: dict[str, list[float]] | None = None,
) -> SkinningEigenskinExample:
    """Add an example to the armature's list, make it the active one and return its item.

    rotations (J, 4) and matrices (P, 3, 4) from ``current_pose``, shape (N, 3) posed, in the mesh object's space,
    channels from ``current_channels``. The name is made unique in the list. Do not keep items: Blender
    may move them when one is added.
    """
    group = skin.armature.skinning_eigenskin
    storage = _storage(skin)
    uid = uuid.uuid4().hex[:16]
    write_attribute(storage, uid, "FLOAT_VECTOR", shape)
    storage[uid] = {
        "joints": json.dumps(joint_names(skin.armature, skin.bone_names)),
        "rotations": np.asarray(rotations, dtype=np.float64).ravel().tolist(),
        "bones": json.dumps(skin.bone_names),
        "matrices": np.asarray(matrices, dtype=np.float64).ravel().tolist(),
        "channels": json.dumps(channels or {}),
    }
    taken = {item.name for item in group.examples}
    item = group.examples.add()
    item.name = unique_name(name, taken)
    item.uid, item.mesh, item.storage, item.kind, item.frame = uid, skin.object, storage, kind, frame
    group.active_index = len(group.examples) - 1
    return item


@contextmanager
def all_or_none(armature: bpy.types.Object) -> Iterator[None]:
    """Context that removes the examples added in it after an exception."""
    examples = armature.skinning_eigenskin.examples
    before = len(examples)
    try:
        yield
    except BaseException:
        while len(examples) > before:
            remove_example(armature, len(examples) - 1)
        raise


def remove_example(armature: bpy.types.Object, index: int) -> None:
    """Remove an example from the armature's list, and its arrays unless a copy of the armature uses them."""
    group = armature.skinning_eigenskin
    item = group.examples[index]
    storage, uid = item.storage, item.uid
    group.examples.remove(index)
    group.active_index = max(0, min(group.active_index - (group.active_index > index), len(group.examples) - 1))
    if storage is None or storage.library is not None or _is_used(storage, uid):
        return
    remove_attributes(storage, (uid,))
    storage.pop(uid, None)
    if not any(hasattr(value, "keys") and "rotations" in value for value in storage.values()):
        bpy.data.meshes.remove(storage)


def example_items(armature: bpy.types.Object, mesh_object: bpy.types.Object) -> list:
    """The items of the armature's examples for the mesh ``mesh_object``."""
    return [item for item in armature.skinning_eigenskin.examples if item.mesh == mesh_object]


def same_poses(
    armature: bpy.types.Object, mesh_object: bpy.types.Object, rig: "Rig", rotations: np.ndarray
) -> dict[str, np.ndarray]:
    """The mesh's examples with one of the poses ``rotations`` (F, J, 4): indices into these, by uid."""
    from ...core.eigenskin import is_turned

    found = {}
    for item in example_items(armature, mesh_object):
        if not is_stored(item):
            continue
        pose = stored_pose(item)
        known = [joint for joint, name in enumerate(rig.joint_names) if name in pose.joints]
        own = pose.rotations[[pose.joints.index(rig.joint_names[joint]) for joint in known]]
        between = quaternions.product(quaternions.conjugate(own), rotations[:, known])
        rows = np.flatnonzero(~is_turned(between).any(axis=1))
        if len(rows):
            found[item.uid] = rows
    return found


def replace_examples(armature: bpy.types.Object, uids: dict[str, np.ndarray], names: Sequence[str]) -> tuple[str, ...]:
    """Remove the examples ``uids`` and rename the last ones of the list to ``names``, if these are free now.

    Returns their new names.
    """
    examples = armature.skinning_eigenskin.examples
    for index in reversed(range(len(examples))):
        if examples[index].uid in uids:
            remove_example(armature, index)
    made = list(examples)[len(examples) - len(names) :]
    for name, item in zip(names, made, strict=True):
        item.name = unique_name(name, {other.name for other in examples if other != item})
    return tuple(item.name for item in made)


def read_examples(mesh_object: bpy.types.Object, rig: "Rig", normals: bool = False) -> "Examples":
    """The enabled examples of ``mesh_object``, for the joints and bones that ``rig`` has now.

    A bone with newer weights follows its parent, with its stored rotation if known. normals: also those of the shapes.
    Raises BadExamples if an example belongs to another mesh or other bones, or is damaged.
    """
    from ...core.deform import vertex_normals
    from ...core.eigenskin import Examples

    armature = armature_of(mesh_object)
    items = [item for item in example_items(armature, mesh_object) if item.enabled]
    deforming, halves = bone_names(mesh_object, armature), half_bones(mesh_object, armature)
    count = len(items)
    rotations = np.empty((count, len(rig.joint_names), 4))
    matrices = np.empty((count, len(deforming), 3, 4))
    shapes = np.empty((count, *rig.rest.shape), np.float32)
    for row, item in enumerate(items):
        pose = stored_pose(item)
        check_posed_bones(item, pose, rig, armature)
        rotations[row], matrices[row] = for_bones(item, pose, rig.joint_names, deforming, armature, halves)
        shapes[row] = _read_shape(item, mesh_object, len(rig.rest))
    directions = None
    if normals:
        triangles = mesh_triangles(mesh_object.data)
        directions = np.array([vertex_normals(shape, triangles) for shape in shapes], np.float32)
    return Examples(tuple(item.name for item in items), rotations, matrices, shapes, directions)


def new_bones(mesh_object: bpy.types.Object) -> tuple[str, ...]:
    """The deforming bones that an enabled example of the object does not have, so that they follow their parents."""
    armature = armature_of(mesh_object)
    items = [item for item in example_items(armature, mesh_object) if item.enabled and is_stored(item)]
    known = [stored_pose(item).bones for item in items]
    halves = half_bones(mesh_object, armature)
    names = (name for name in bone_names(mesh_object, armature) if name not in halves)
    return tuple(name for name in names if any(name not in bones for bones in known))


def _storage(skin: Skin) -> bpy.types.Mesh:
    """The data-block for examples of the skin's present mesh: the existing one, or a new one."""
    vertex_count = len(skin.rest)
    for item in example_items(skin.armature, skin.object):
        if item.storage is not None and len(item.storage.vertices) == vertex_count and item.storage.library is None:
            return item.storage
    storage = bpy.data.meshes.new(f"{skin.object.name} {STORAGE_ENDING}")
    storage.vertices.add(vertex_count)
    return storage


def _read_shape(item: SkinningEigenskinExample, mesh_object: bpy.types.Object, count: int) -> np.ndarray:
    from ...core.eigenskin import BadExamples

    shape = read_attribute(item.storage, item.uid)
    if len(shape) != count:
        raise BadExamples(
            f'The example "{item.name}" has {len(shape):,} vertices, but the {object_label(mesh_object)} has '
            f"{count:,}. Disable or remove the example, or undo the change of the mesh"
        )
    return shape


def _is_used(storage: bpy.types.Mesh, uid: str) -> bool:
    """Whether any armature's list has the example."""
    return any(
        item.uid == uid and item.storage == storage
        for ob in bpy.data.objects
        if ob.type == "ARMATURE"
        for item in ob.skinning_eigenskin.examples
    )


def unique_name(name: str, taken: set[str]) -> str:
    """``name`` itself, or ``name`` with the first free number after it."""
    if name not in taken:
        return name
    number = 1
    while f"{name}.{number:03d}" in taken:
        number += 1
    return f"{name}.{number:03d}"
