# SPDX-License-Identifier: GPL-3.0-or-later
"""Examples of an EigenSkin, poses with their right shapes: reading the rig and its pose, storing and reading examples.

The armature lists its examples (``Object.skinning_eigenskin``). Their arrays are in a mesh data-block without faces,
one per character, that no object shows: plain data that the file keeps whether the extension is there or not. For the
example ``uid`` it has a point attribute of that name, the posed shape in the character's object space, where wanted
another ``<uid> normal``, and a custom property of that name with the pose.
"""

import json
import uuid
from typing import TYPE_CHECKING

import bpy
import numpy as np

from ..core.errors import BadScene
from .object_checks import object_label
from .skin_reader import Skin, bone_matrices, mesh_triangles, read_skin

if TYPE_CHECKING:
    from ..core.eigenskin import Examples, Rig

STORAGE_ENDING = "examples"
_NORMAL_ENDING = " normal"


def read_rig(context, object) -> "tuple[Skin, Rig]":
    """The skinned mesh and its joints: the bones that deform it, and all their ancestors.

    Raises BadScene as ``read_skin``, and for a mesh whose corrections could not be told from other deformation.
    """
    skin = read_skin(context, object)
    check_correctable(object)
    return skin, rig_of(skin)


def rig_of(skin: Skin) -> "Rig":
    """The joints of a mesh that was read."""
    from ..core.eigenskin import Rig

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


def check_correctable(object) -> None:
    """Raises BadScene where shape keys cannot correct the mesh, or it is unclear what moves it."""
    label = object_label(object)
    keys = object.data.shape_keys
    if keys is not None and not keys.use_relative:
        raise BadScene(
            f"The shape keys of {label} are absolute, so that they cannot be added to each other. "
            "Enable Relative in the mesh's shape keys"
        )
    enabled = [
        modifier
        for modifier in object.modifiers
        if modifier.type == "ARMATURE" and modifier.object and modifier.show_viewport
    ]
    if len(enabled) > 1:
        names = " and ".join(f'"{modifier.name}"' for modifier in enabled)
        raise BadScene(
            f"The {label} has several Armature modifiers, {names}. Disable all but the one that is to be corrected"
        )


def current_pose(skin: Skin, rig: "Rig", depsgraph) -> tuple[np.ndarray, np.ndarray]:
    """The pose as the depsgraph is now: rotations (J, 4) of the joints and matrices (P, 3, 4) of the deforming bones.

    A rotation is that of the pose bone in its local space, constraints included, w x y z: what a driver variable of
    the type Transform Channel reads there. Raises BadScene where a bone is gone.
    """
    matrices = bone_matrices(skin, depsgraph)
    armature = skin.armature.evaluated_get(depsgraph)
    rotations = np.empty((len(rig.joint_names), 4))
    for index, name in enumerate(rig.joint_names):
        bone = armature.pose.bones.get(name)
        if bone is None:
            raise BadScene(f'The armature "{skin.armature.name}" has no bone "{name}" any more. Start again')
        local = armature.convert_space(pose_bone=bone, matrix=bone.matrix, from_space="POSE", to_space="LOCAL")
        rotations[index] = local.to_quaternion()
    return rotations / np.linalg.norm(rotations, axis=1, keepdims=True), matrices


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
    mesh object's space, channels as from ``current_channels``. The name is made unique in the list.
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
    item.name = _unique(name, taken)
    item.uid, item.mesh, item.storage, item.kind, item.frame = uid, skin.object, storage, kind, frame
    group.active_index = len(group.examples) - 1
    return item


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
    if not any("rotations" in value for value in storage.values() if hasattr(value, "keys")):
        bpy.data.meshes.remove(storage)


def example_items(armature, object) -> list:
    """The items of the armature's examples that are of the mesh ``object``."""
    return [item for item in armature.skinning_eigenskin.examples if item.mesh == object]


def read_examples(object, rig: "Rig", armature=None, normals: bool = False) -> "Examples":
    """The enabled examples of ``object``, for the joints and bones that ``rig`` has now.

    normals: with those of the shapes, computed from their triangles where none were stored.
    Raises BadExamples where an example is of another mesh, of other bones, or damaged.
    """
    from ..core.deform import vertex_normals
    from ..core.eigenskin import Examples
    from .skin_reader import armature_of

    armature = armature or armature_of(object)
    items = [item for item in example_items(armature, object) if item.enabled]
    names = [bone.name for bone in armature.data.bones]
    deforming = [rig.joint_names[joint] for joint in rig.joint_of_bone]
    count, vertex_count = len(items), len(rig.rest)
    rotations = np.empty((count, len(rig.joint_names), 4))
    matrices = np.empty((count, len(deforming), 3, 4))
    shapes = np.empty((count, vertex_count, 3), np.float32)
    directions = np.empty_like(shapes) if normals else None
    triangles = mesh_triangles(object.data) if normals else None
    for row, item in enumerate(items):
        pose = _pose(item)
        _check_bones(item, pose, rig.joint_names, names)
        joint_rows = [pose["joint_rows"].get(name) for name in rig.joint_names]
        bone_rows = [pose["bone_rows"].get(name) for name in deforming]
        missing = [name for name, place in zip(deforming, bone_rows, strict=True) if place is None]
        if missing:
            raise _unknown_bone(item, missing[0])
        rotations[row], matrices[row] = pose["rotations"][joint_rows], pose["matrices"][bone_rows]
        _read_vectors(item, object, item.uid, shapes[row])
        if normals:
            if item.uid + _NORMAL_ENDING in item.storage.attributes:
                _read_vectors(item, object, item.uid + _NORMAL_ENDING, directions[row])
            else:
                directions[row] = vertex_normals(shapes[row], triangles)
    return Examples(tuple(item.name for item in items), rotations, matrices, shapes, directions)


def _storage(skin: Skin) -> bpy.types.Mesh:
    """The data-block for examples of the skin's mesh as it is now: that of the others, or a new one."""
    vertex_count = len(skin.rest)
    for item in example_items(skin.armature, skin.object):
        if item.storage is not None and len(item.storage.vertices) == vertex_count and item.storage.library is None:
            return item.storage
    storage = bpy.data.meshes.new(f"{skin.object.name} {STORAGE_ENDING}")
    storage.vertices.add(vertex_count)
    return storage


def _pose(item) -> dict:
    """The stored pose: rotations (J, 4), matrices (P, 3, 4), and at which row each joint and bone is.

    Raises BadExamples where the data is not there.
    """
    from ..core.eigenskin import BadExamples

    stored = item.storage.get(item.uid) if item.storage is not None else None
    if stored is None or item.uid not in item.storage.attributes:
        raise BadExamples(f'The example "{item.name}" has lost its shape. Remove the example, and add it again')
    return {
        "joint_rows": {name: row for row, name in enumerate(json.loads(stored["joints"]))},
        "bone_rows": {name: row for row, name in enumerate(json.loads(stored["bones"]))},
        "rotations": np.array(stored["rotations"], dtype=np.float64).reshape(-1, 4),
        "matrices": np.array(stored["matrices"], dtype=np.float64).reshape(-1, 3, 4),
        "channels": json.loads(stored["channels"]),
    }


def _check_bones(item, pose: dict, joints, bones) -> None:
    """Raises BadExamples where the example poses a bone that is gone, or does not know one that there is now."""
    from ..core.eigenskin import BadExamples, rotation_angles
    from ..core.eigenskin.pose_space import SAME_ROTATION

    for name in joints:
        if name not in pose["joint_rows"]:
            raise _unknown_bone(item, name)
    for name, row in pose["joint_rows"].items():
        if name not in bones and rotation_angles(pose["rotations"][row]) > SAME_ROTATION:
            raise BadExamples(
                f'The example "{item.name}" poses the bone "{name}", which the armature has no more. '
                "Rename the bone back, or disable the example"
            )


def _unknown_bone(item, name: str):
    from ..core.eigenskin import BadExamples

    return BadExamples(
        f'The example "{item.name}" does not know the bone "{name}", which was added, renamed or given weights since. '
        "Change that back, or add the example again"
    )


def _read_vectors(item, object, name: str, result: np.ndarray) -> None:
    from ..core.eigenskin import BadExamples

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


def _unique(name: str, taken: set[str]) -> str:
    """``name`` itself, or with the first free number after it."""
    if name not in taken:
        return name
    number = 1
    while f"{name}.{number:03d}" in taken:
        number += 1
    return f"{name}.{number:03d}"
