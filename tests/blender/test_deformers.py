# SPDX-License-Identifier: GPL-3.0-or-later
"""The core's skinning against Blender's own armature modifier, with and without Preserve Volume."""

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion, Vector

from skinning_tools.core.deform import convex_influences, skin_frame
from tests.blender import scenes

BONES = 5


pytestmark = pytest.mark.usefixtures("empty")


def armature(parented=False, inherit_scale="FULL"):
    """An armature object of five bones in all directions."""
    data = bpy.data.armatures.new("Rig")
    object = scenes.link(bpy.data.objects.new("Rig", data))
    bpy.ops.object.mode_set(mode="EDIT")
    random = np.random.default_rng(3)
    for index in range(BONES):
        bone = data.edit_bones.new(f"Bone {index}")
        bone.head = random.normal(size=3)
        bone.tail = bone.head + Vector(random.normal(size=3))
        bone.roll = random.uniform(-3, 3)
        if parented and index:
            bone.parent = data.edit_bones[index - 1]
            bone.inherit_scale = inherit_scale
    bpy.ops.object.mode_set(mode="OBJECT")
    return object


def pose(rig, random, scale=None):
    """Random rotations and translations; ``scale``: function of the bone's index to its three scales."""
    for index, bone in enumerate(rig.pose.bones):
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion(random.normal(size=4)).normalized()
        bone.location = random.normal(size=3)
        if scale:
            bone.scale = scale(index)
    bpy.context.view_layer.update()


def skinned_mesh(rig, rest, bones, weights, preserve_volume):
    """A mesh whose vertex groups hold each vertex's influences in the order of the slots."""
    object = scenes.mesh_object(rest, [(0, 1, 2)])
    for bone in rig.data.bones:
        object.vertex_groups.new(name=bone.name)
    for vertex, (row, values) in enumerate(zip(bones.tolist(), weights.tolist(), strict=True)):
        for bone, value in zip(row, values, strict=True):
            if value > 0:
                object.vertex_groups[bone].add([vertex], value, "REPLACE")
    modifier = object.modifiers.new("Armature", "ARMATURE")
    modifier.object = rig
    modifier.use_deform_preserve_volume = preserve_volume
    return object


def matrices(rig) -> np.ndarray:
    """(P, 3, 4) rest pose to pose, in the armature's space."""
    deforming = [bone.matrix @ bone.bone.matrix_local.inverted() for bone in rig.pose.bones]
    return np.array(deforming, dtype=np.float64)[:, :3]


def influences(random, count=300):
    """Random positions, bones in ascending order, float32 weights that sum to 1."""
    bones = np.sort([random.choice(BONES, 4, replace=False) for _ in range(count)], axis=1).astype(np.int32)
    weights = random.dirichlet(np.full(4, 0.7), count).astype(np.float32)
    weights[:40] = [1, 0, 0, 0]
    weights[40:80] = [0.5, 0.5, 0, 0]
    return random.normal(size=(count, 3)).astype(np.float32), bones, weights


def differences(rig, method, bones, weights, rest):
    """(N,) the distances between Blender's positions and the core's."""
    object = skinned_mesh(rig, rest, bones, weights, method == "DQS")
    shown = scenes.evaluated_positions(object)
    convex = convex_influences(bones, weights, len(rest), BONES)
    return np.linalg.norm(skin_frame(rest, *convex, matrices(rig), method) - shown, axis=1)


@pytest.mark.parametrize("method", ["LBS", "DQS"])
@pytest.mark.parametrize("seed", range(4))
def test_rigid_bones_deform_as_in_blender(method, seed):
    random = np.random.default_rng(seed)
    rig = armature(parented=seed % 2 == 1)
    pose(rig, random)
    rest, bones, weights = influences(random)
    assert differences(rig, method, bones, weights, rest).max() < 1e-5


@pytest.mark.parametrize("method", ["LBS", "DQS"])
@pytest.mark.parametrize(
    "scale",
    [lambda index: [0.5 + index] * 3, lambda index: (0.4, 1.3 + index, 2.0)],
    ids=["uniform", "along the bone's axes"],
)
def test_scaled_bones_deform_as_in_blender(method, scale):
    """Scales along a bone's own axes leave its stretch symmetric, so Blender's rotation is the polar one."""
    random = np.random.default_rng(5)
    rig = armature()
    pose(rig, random, scale)
    rest, bones, weights = influences(random)
    assert differences(rig, method, bones, weights, rest).max() < 2e-5


@pytest.mark.parametrize("kind", ["sheared", "mirrored"])
def test_bones_whose_rotation_is_a_matter_of_choice(kind):
    """Blender's dual quaternions keep two of a sheared or mirrored bone's axes, which nobody else knows: there only
    what has one bone agrees. Linear blending takes no rotation apart."""
    random = np.random.default_rng(6)
    rig = armature(parented=kind == "sheared")
    pose(rig, random, lambda index: (1.4, 0.7, 1.1) if kind == "sheared" else (-1.0, 1.5, 0.7))
    linear = matrices(rig)[..., :3]
    if kind == "mirrored":
        assert np.linalg.det(linear).max() < 0
    rest, bones, weights = influences(random)
    tolerance = 1e-5 * np.abs(linear).max()
    assert differences(rig, "LBS", bones, weights, rest).max() < tolerance
    found = differences(rig, "DQS", bones, weights, rest)
    assert found[:40].max() < tolerance
    assert found.max() > 1e-3


@pytest.mark.parametrize("method", ["LBS", "DQS"])
def test_weights_that_do_not_sum_to_one_and_vertices_without_any(method):
    random = np.random.default_rng(7)
    rig = armature()
    pose(rig, random)
    rest, bones, weights = influences(random)
    weights[80:160] *= random.uniform(0.2, 1.0, (80, 1)).astype(np.float32)
    weights[160:170] = 0
    found = differences(rig, method, bones, weights, rest)
    assert found.max() < 1e-5


def test_the_two_methods_differ_here():
    """The comparison with Preserve Volume would not pass by linear blending."""
    random = np.random.default_rng(8)
    rig = armature()
    pose(rig, random)
    rest, bones, weights = influences(random)
    convex = convex_influences(bones, weights, len(rest), BONES)
    by_method = [skin_frame(rest, *convex, matrices(rig), method) for method in ("LBS", "DQS")]
    assert np.linalg.norm(by_method[0] - by_method[1], axis=1).max() > 0.1


def test_matrices_are_those_of_blender():
    """The transforms are the identity at rest."""
    rig = armature()
    np.testing.assert_allclose(matrices(rig), np.tile(np.eye(3, 4), (BONES, 1, 1)), atol=1e-6)
    assert Matrix(np.vstack([matrices(rig)[0], [0, 0, 0, 1]])).determinant() == pytest.approx(1)
