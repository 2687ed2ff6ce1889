# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes that were modeled in a pose of their armature, and binding there."""

import bpy
import numpy as np

from skinning_tools.blender.control_points import read_positions, stored_shapes
from skinning_tools.blender.vertex_groups import put_weights
from tests.blender import scenes, skinned_meshes
from tests.blender.binding_scenes import activate, bound, tube

# Blender skins in single precision, and the scenes are a few units large.
SINGLE = 1e-5

# The frame of the pose in which meshes are modeled; at frame 1 the armature is at rest.
POSE = 8


def modeled(frame=POSE, name="Arm", rig=None, curl=0.0) -> tuple:
    """A tube that was modeled around the armature's pose at a frame, not bound; the armature in that pose; and the
    shape (N, 3) that the tube would have at rest. rig: of an earlier tube, beside which another is made. curl: an angle
    by which each bone bends instead."""
    if rig is None:
        ob, rig = skinned_meshes.rigged_tube(4, rings=17, segments=8)
        rig.select_set(False)
    else:
        x, y, z = np.meshgrid(np.linspace(0, 4, 17), (-0.2, 0.2), (-0.2, 0.2), indexing="ij")
        ob = scenes.mesh_object(np.stack([x, y, z], axis=-1).reshape(-1, 3), name=name)
        ob.matrix_world = bpy.data.objects["Arm"].matrix_world
        ob.modifiers.new("Armature", "ARMATURE").object = rig
    straight = shapes_of(ob)[0]
    bones, weights = skinned_meshes.bone_weights(straight[:, 0], 4, 2)
    put_weights(ob, [bone.name for bone in rig.data.bones], bones, weights)
    if curl:
        rig.animation_data_clear()
        for bone in rig.pose.bones:
            bone.rotation_mode, bone.rotation_euler = "XYZ", (0, 0, curl)
    bpy.context.scene.frame_set(frame)
    bent = scenes.evaluated_positions(ob)
    ob.vertex_groups.clear()
    ob.modifiers.clear()
    ob.data.vertices.foreach_set("co", bent.ravel())
    activate(ob)
    bpy.context.view_layer.update()
    return ob, rig, straight


def closeness(ob, straight: np.ndarray, bent: np.ndarray) -> float:
    """How far the rest shape is from the straight one, as a share of how far the pose's shape is."""
    left, all_of_it = (np.linalg.norm(shape - straight, axis=1) for shape in (shapes_of(ob)[0], bent))
    return float(np.median(left) / np.median(all_of_it))


def shapes_of(ob) -> list[np.ndarray]:
    """(N, 3) positions in the mesh, and in each of its shape keys."""
    return [read_positions(points, name) for points, name in stored_shapes(ob.data)]


def bound_in_pose(*objects, **given) -> None:
    """Bind the active object; none of the ``objects`` moves in the pose."""
    before = [scenes.world_positions(ob) for ob in objects]
    bound(in_pose=True, **given)
    for ob, there in zip(objects, before, strict=True):
        np.testing.assert_allclose(scenes.world_positions(ob), there, atol=SINGLE)


def twisted() -> tuple:
    """A straight tube along two bones, the second of which is twisted by half a turn."""
    ob, rig = tube(2, rings=17, segments=8)
    rig.animation_data_clear()
    rig.pose.bones["Bone 1"].rotation_mode = "XYZ"
    rig.pose.bones["Bone 1"].rotation_euler = (0, np.pi, 0)
    bpy.context.view_layer.update()
    return ob, rig
