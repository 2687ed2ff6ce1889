# SPDX-License-Identifier: GPL-3.0-or-later
"""Finished corrections for tests: built from poses of a rigged mesh, or artificial; and their evaluation by Blender."""

import bpy
import numpy as np
from mathutils import Quaternion
from scipy.spatial.transform import Rotation

from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.core.deform import skin_frame, vertex_normals
from skinning_tools.core.eigenskin import (
    EigenSkin,
    EigenSkinSettings,
    Examples,
    NormalBasis,
    PoseSpace,
    Rig,
    Support,
    build_eigenskin,
)
from skinning_tools.core.quaternions import normalized
from skinning_tools.features.eigenskin.examples import current_pose, read_rig
from skinning_tools.features.eigenskin.record import eigenskin_record
from skinning_tools.features.eigenskin.writer import Written, write_eigenskin
from tests.blender.binding_scenes import dense
from tests.blender.eigenskin_scenes import POSES, pose

# Joints of the limb.
UPPER, LOWER = 2, 3


def examples(ob, rig, poses) -> tuple[Rig, Examples]:
    """The shapes of the mesh by dual quaternions in ``poses``, lists of (bone, axis, degrees)."""
    names, found = [], []
    for turns in poses:
        pose(rig, turns)
        skin, joints = read_rig(bpy.context, ob)
        rotations, matrices = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())
        shape = skin_frame(skin.rest, skin.bones, skin.weights, matrices, "DQS")
        names.append(" ".join(f"{bone} {axis} {degrees}" for bone, axis, degrees in turns))
        found.append((rotations, matrices, shape))
    pose(rig)
    return joints, Examples(tuple(names), *(np.array(part) for part in zip(*found, strict=True)))


def built(ob, rig, poses=None, **settings) -> tuple[Rig, EigenSkin]:
    """The corrections of ``ob`` from ``poses``, by default each joint's own."""
    joints, given = examples(ob, rig, [[turn] for turn in POSES] if poses is None else poses)
    return joints, build_eigenskin(joints, given, EigenSkinSettings(**settings))


def corrected(ob, rig, normals=False, **given) -> tuple[Rig, EigenSkin, Written]:
    """The corrections of ``built``, written to the mesh."""
    joints, model = built(ob, rig, **given)
    return joints, model, write_eigenskin(ob, rig, joints, model, normals)


def with_shown_normals(ob, rig, joints=None, model=None) -> tuple[Rig, EigenSkin, np.ndarray]:
    """Random corrections, or those of ``model``, written to the mesh with their normals shown; and the rest normals."""
    skin, found = read_rig(bpy.context, ob)
    joints = joints or found
    model = model or any_model(joints, size=0.5)
    normals = vertex_normals(skin.rest, skin.triangles)
    write_eigenskin(ob, rig, joints, model, normals=True, shown_normals=normals)
    return joints, model, normals


def made_up(joints: Rig, spaces: dict[int, PoseSpace], seed=0, pairs=(), size=1.0, components=3) -> EigenSkin:
    """Random corrections for ``spaces``, and for ``pairs`` of joints with all pairs of their centres."""
    random = np.random.default_rng(seed)
    count = len(joints.rest)
    supports = []
    for joint in [*((joint,) for joint in spaces), *pairs]:
        centers = None
        basis_count = len(spaces[joint[0]].centers)
        if len(joint) == 2:
            numbers = [np.arange(len(spaces[part].centers) - 1) for part in joint]
            centers = np.stack(np.meshgrid(*numbers, indexing="ij"), axis=-1).reshape(-1, 2)
            basis_count = len(centers)
        vertices = np.sort(random.choice(count, count // 2, replace=False))
        mask = np.zeros(count, np.float32)
        mask[vertices] = random.uniform(0.1, 1.0, len(vertices))
        supports.append(
            Support(
                " + ".join(joints.joint_names[part] for part in joint),
                joint,
                mask,
                vertices,
                0.1 * random.normal(size=(components, len(vertices), 3)),
                NormalBasis(
                    vertices,
                    0.1 * random.normal(size=(components, len(vertices), 3)),
                    size * random.normal(size=(basis_count, components)),
                    np.full(components, 10.0),
                ),
                size * random.normal(size=(basis_count, components)),
                centers,
                np.full(components, 10.0),
                np.sort(random.uniform(0.1, 1.0, components + 2))[::-1],
            )
        )
    return EigenSkin(joints.joint_names, count, spaces, tuple(supports), ())


def hinge(degrees=(-90, -60, -30, 30, 60, 90), axis=(1.0, 0.0, 0.0), radius=1.1) -> PoseSpace:
    """The rest pose, and rotations about one axis."""
    axis = np.array(axis) / np.linalg.norm(axis)
    half = np.radians([0, *degrees]) / 2
    return PoseSpace(np.column_stack([np.cos(half), np.sin(half)[:, None] * axis]), axis, radius)


def ball(count=6, radius=1.1, seed=0) -> PoseSpace:
    """The rest pose, and ``count`` random rotations."""
    centers = np.roll(Rotation.random(count, random_state=seed).as_quat(), 1, axis=1)
    return PoseSpace(np.concatenate([[[1.0, 0.0, 0.0, 0.0]], centers]), None, radius)


def turn(rig, rotations) -> None:
    """Give each pose bone named in ``rotations`` that rotation, w x y z."""
    for name, rotation in rotations.items():
        bone = rig.pose.bones[name]
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion(rotation)
    bpy.context.view_layer.update()


def turn_at_random(rig, random, most=np.pi) -> None:
    """Rotate every bone by up to ``most`` radians."""
    for bone in rig.pose.bones:
        vector = random.normal(size=3)
        vector *= random.uniform(0, most) / np.linalg.norm(vector)
        turn(rig, {bone.name: np.roll(Rotation.from_rotvec(vector).as_quat(), 1)})


def shown_values(ob) -> np.ndarray:
    """(C,) float32: the values of the corrections' shape keys as they are evaluated, in the order of the components."""
    key = ob.data.shape_keys.evaluated_get(bpy.context.evaluated_depsgraph_get())
    names = [name for support in eigenskin_record(ob).supports for name in support.keys]
    return np.array([key.key_blocks[name].value for name in names])


def expected_values(ob, joints: Rig, model: EigenSkin) -> np.ndarray:
    """(C,) core's values for the pose that Blender shows."""
    return model.values(shown_rotations(ob, joints)[None])[0]


def slopes(ob, joints: Rig, model: EigenSkin) -> np.ndarray:
    """(C,) how fast core's values change with the quaternions of the pose that Blender shows."""
    rotations = shown_rotations(ob, joints)
    # Both ways along each component of each joint's quaternion.
    steps = 1e-6 * np.eye(rotations.size).reshape(-1, *rotations.shape)
    values = [model.values(normalized(rotations + side * steps)) for side in (-1, 1)]
    return np.linalg.norm(np.subtract(*values) / 2e-6, axis=0)


def shown_rotations(ob, joints: Rig) -> np.ndarray:
    """(J, 4) of the joints, relative to their parents' rest."""
    skin, _ = read_rig(bpy.context, ob)
    return current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())[0]


def plain_positions(ob) -> np.ndarray:
    """(N, 3) the rest pose, deformed by linear blending in the present pose."""
    skin = read_skin(bpy.context, ob)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    return skin_frame(skin.rest, skin.bones, skin.weights, matrices, "LBS")


def any_model(joints: Rig, **given) -> EigenSkin:
    """Random corrections of the limb's joints "upper" and "lower"."""
    return made_up(joints, {UPPER: ball(3), LOWER: hinge((-60, 60))}, **given)


def weights_of(ob, name: str) -> np.ndarray:
    """(N,) the weights of the vertex group, 0 for vertices that are not in it."""
    return dense(ob, [name])[:, 0]
