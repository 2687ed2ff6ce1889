# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of an EigenSkin, poses with their right shapes: reading the rig and its pose, storing and reading examples.

The armature lists its examples (``Object.skinning_eigenskin``). Their arrays are in a mesh data-block without faces,
one per character, that no object shows: plain data that the file keeps whether the extension is there or not. For the
example ``uid`` it has a point attribute of that name, the posed shape in the character's object space, where wanted
another ``<uid> normal``, and a custom property of that name with the pose.
"""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ...blender.preconditions import check_own_object, object_label, unmet
from ...blender.skin_reader import Skin, armature_of, bone_matrices, bone_names, mesh_triangles, read_skin
from ...core import quaternions
from ...core.errors import BadScene
from .example_pose import check_posed_bones, for_bones, is_stored, local_rotations, stored_pose

if TYPE_CHECKING:
    from ...core.eigenskin import Examples, Rig

STORAGE_ENDING = "examples"
_NORMAL_ENDING = " normal"


def read_rig(context, object) -> "tuple[Skin, Rig]":
    """The skinned mesh and its joints: the bones that deform it, and all their ancestors.

    Raises BadScene as ``read_skin``, and for a mesh that shape keys cannot correct.
    """
    skin = read_skin(context, object)
    check_correctable(object)
    return skin, rig_of(skin)


def rig_of(skin: Skin) -> "Rig":
    """The joints of a mesh that was read."""
    from ...core.eigenskin import Rig

    names = joint_names(skin.armature, skin.bone_names)
    order = {name: index for index, name in enumerate(names)}
    bones = skin.armature.data.bones
    parents = [order[bones[name].parent.name] if bones[name].parent else -1 for name in names]
    return Rig(
        skin.rest,
        skin.bones,
        skin.weights,
        names,
        np.array(parents, int),
        np.array([order[name] for name in skin.bone_names], int),
    )


def joint_names(armature, deforming) -> tuple[str, ...]:
    """The bones named in ``deforming`` and all their ancestors, each after its parent."""
    wanted = set(deforming)
    for name in deforming:
        wanted.update(bone.name for bone in armature.data.bones[name].parent_recursive)
    return tuple(bone.name for bone in armature.data.bones if bone.name in wanted)


def check_storable(armature) -> None:
    """Raises BadScene where the file would not keep examples on the armature."""
    check_own_object(armature, "no examples can be stored with it")


def check_correctable(object) -> None:
    """Raises BadScene where shape keys cannot correct the mesh."""
    label = object_label(object)
    keys = object.data.shape_keys
    if keys is not None and not keys.use_relative:
        raise BadScene(
            f"The shape keys of {label} are absolute, so that they cannot be added to each other. "
            "Enable Relative in the mesh's shape keys"
        )
    if np.linalg.matrix_rank(np.array(object.matrix_world)) < 4:
        raise unmet("NO_SCALE", object=label)


def current_pose(skin: Skin, rig: "Rig", depsgraph) -> tuple[np.ndarray, np.ndarray]:
    """The pose as the depsgraph is now: rotations (J, 4) of the joints and matrices (P, 3, 4) of the deforming bones.

    A rotation is that of the pose bone in its local space, constraints included, w x y z: what a driver variable of
    the type Transform Channel reads there. Raises BadScene where a bone is gone.
    """
    matrices = bone_matrices(skin, depsgraph)
    return local_rotations(skin.armature.evaluated_get(depsgraph), rig.joint_names), matrices


def current_channels(skin: Skin, depsgraph) -> dict[str, list[float]]:
    """What the user, an action or drivers have set each bone to (16 numbers, row by row), of those not at rest.

    Controls among them: what poses the armature again.
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
    normals: np.ndarray | None = None,
    channels: dict[str, list[float]] | None = None,
):
    """Add an example to the armature's list, make it the active one and return its item.

    rotations (J, 4) and matrices (P, 3, 4) as from ``current_pose``, shape (N, 3) and normals (N, 3) posed, in the
    mesh object's space, channels as from ``current_channels``. The name is made unique in the list. Blender may move
    the items when there is one more: do not keep them.
    """
    group = skin.armature.skinning_eigenskin
    storage = _storage(skin)
    uid = uuid.uuid4().hex[:16]
    for ending, vectors in (("", shape), (_NORMAL_ENDING, normals)):
        if vectors is not None:
            attribute = storage.attributes.new(uid + ending, "FLOAT_VECTOR", "POINT")
            attribute.data.foreach_set("vector", np.ascontiguousarray(vectors, np.float32).ravel())
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
def all_or_none(armature) -> Iterator[None]:
    """Where the body fails, the examples that it has added are removed."""
    examples = armature.skinning_eigenskin.examples
    before = len(examples)
    try:
        yield
    except BaseException:
        while len(examples) > before:
            remove_example(armature, len(examples) - 1)
        raise


def remove_example(armature, index: int) -> None:
    """Remove an example from the armature's list, and its arrays where no copy of the armature uses them."""
    group = armature.skinning_eigenskin
    item = group.examples[index]
    storage, uid = item.storage, item.uid
    group.examples.remove(index)
    group.active_index = max(0, min(group.active_index - (group.active_index > index), len(group.examples) - 1))
    if storage is None or storage.library is not None or _is_used(storage, uid):
        return
    for name in (uid, uid + _NORMAL_ENDING):
        if name in storage.attributes:
            storage.attributes.remove(storage.attributes[name])
    storage.pop(uid, None)
    if not any(hasattr(value, "keys") and "rotations" in value for value in storage.values()):
        bpy.data.meshes.remove(storage)


def example_items(armature, object) -> list:
    """The items of the armature's examples that are of the mesh ``object``."""
    return [item for item in armature.skinning_eigenskin.examples if item.mesh == object]


def same_poses(armature, object, rig: "Rig", rotations: np.ndarray) -> dict[str, np.ndarray]:
    """The mesh's examples that have one of the poses ``rotations`` (F, J, 4): by their uid, which of these."""
    from ...core.eigenskin import is_turned

    found = {}
    for item in example_items(armature, object):
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


def replace_examples(armature, uids, names) -> tuple[str, ...]:
    """Remove the examples ``uids`` and call the last ones of the list ``names``, as far as these are free now.

    Returns the names that they got.
    """
    examples = armature.skinning_eigenskin.examples
    for index in reversed(range(len(examples))):
        if examples[index].uid in uids:
            remove_example(armature, index)
    made = list(examples)[len(examples) - len(names) :]
    for name, item in zip(names, made, strict=True):
        item.name = unique_name(name, {other.name for other in examples if other != item})
    return tuple(item.name for item in made)


def read_examples(object, rig: "Rig", armature=None, normals: bool = False) -> "Examples":
    """The enabled examples of ``object``, for the joints and bones that ``rig`` has now.

    A bone that has got its weights since follows its parent, turned as it was set to where that is known. normals: with
    those of the shapes, computed from their triangles where none were stored.
    Raises BadExamples where an example is of another mesh, of other bones, or damaged.
    """
    from ...core.deform import vertex_normals
    from ...core.eigenskin import Examples

    armature = armature or armature_of(object)
    items = [item for item in example_items(armature, object) if item.enabled]
    deforming = [rig.joint_names[joint] for joint in rig.joint_of_bone]
    count = len(items)
    rotations = np.empty((count, len(rig.joint_names), 4))
    matrices = np.empty((count, len(deforming), 3, 4))
    shapes = np.empty((count, *rig.rest.shape), np.float32)
    directions = np.empty_like(shapes) if normals else None
    triangles = mesh_triangles(object.data) if normals else None
    for row, item in enumerate(items):
        pose = stored_pose(item)
        check_posed_bones(item, pose, rig, armature)
        rotations[row], matrices[row] = for_bones(item, pose, rig.joint_names, deforming, armature)
        _read_vectors(item, object, item.uid, shapes[row])
        if not normals:
            continue
        if item.uid + _NORMAL_ENDING in item.storage.attributes:
            _read_vectors(item, object, item.uid + _NORMAL_ENDING, directions[row])
        else:
            directions[row] = vertex_normals(shapes[row], triangles)
    return Examples(tuple(item.name for item in items), rotations, matrices, shapes, directions)


def new_bones(object, armature=None) -> tuple[str, ...]:
    """The deforming bones that an enabled example of ``object`` does not know, so that they follow their parents."""
    armature = armature or armature_of(object)
    items = [item for item in example_items(armature, object) if item.enabled and is_stored(item)]
    known = [stored_pose(item).bones for item in items]
    return tuple(name for name in bone_names(object, armature) if any(name not in bones for bones in known))


def _storage(skin: Skin) -> bpy.types.Mesh:
    """The data-block for examples of the skin's mesh as it is now: that of the others, or a new one."""
    vertex_count = len(skin.rest)
    for item in example_items(skin.armature, skin.object):
        if item.storage is not None and len(item.storage.vertices) == vertex_count and item.storage.library is None:
            return item.storage
    storage = bpy.data.meshes.new(f"{skin.object.name} {STORAGE_ENDING}")
    storage.vertices.add(vertex_count)
    return storage


def _read_vectors(item, object, name: str, result: np.ndarray) -> None:
    from ...core.eigenskin import BadExamples

    data = item.storage.attributes[name].data
    if len(data) != len(result):
        raise BadExamples(
            f'The example "{item.name}" has {len(data):,} vertices, but the {object_label(object)} has '
            f"{len(result):,}. Disable or remove the example, or undo the change of the mesh"
        )
    data.foreach_get("vector", result.ravel())


def _is_used(storage, uid: str) -> bool:
    """Whether any armature's list has the example."""
    return any(
        item.uid == uid and item.storage == storage
        for ob in bpy.data.objects
        if ob.type == "ARMATURE"
        for item in ob.skinning_eigenskin.examples
    )


def unique_name(name: str, taken: set[str]) -> str:
    """``name`` itself, or with the first free number after it."""
    if name not in taken:
        return name
    number = 1
    while f"{name}.{number:03d}" in taken:
        number += 1
    return f"{name}.{number:03d}"
