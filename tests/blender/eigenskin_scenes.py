# SPDX-License-Identifier: GPL-3.0-or-later
"""A limb whose joint collapses under linear blending, poses of it, and examples of how it should look there."""

import bpy
import numpy as np
from mathutils import Quaternion

from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.core.deform import skin_frame
from skinning_tools.features.eigenskin.examples import current_channels, current_pose, read_rig, store_example
from tests.blender import scenes

AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}

# (bone, axis, degrees): each a pose of one joint.
POSES = (
    *(("lower", "X", degrees) for degrees in (-90, -60, -30, 30, 60, 90)),
    *(("upper", axis, degrees) for axis in "XYZ" for degrees in (-50, 50)),
)


def limb(rings=31, segments=12, name="Limb") -> tuple[bpy.types.Object, bpy.types.Object]:
    """A tube along x in a new scene and its armature: "root", which deforms nothing, "trunk", "upper" and "lower"."""
    scenes.empty_scene()
    rig = _armature(f"{name} rig")
    ob = _tube(name, -1, 2, rings, segments)
    x = np.array([vertex.co.x for vertex in ob.data.vertices])
    upper, lower = _step(x, -0.3, 0.3), _step(x, 0.7, 1.3)
    weights = np.column_stack([1 - upper, upper - lower, lower])
    write_weights(ob, ["trunk", "upper", "lower"], np.tile([0, 1, 2], (len(x), 1)), weights)
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    ob.location, ob.rotation_euler = (0.1, -0.2, 0.3), (0.2, 0.1, -0.3)
    rig.location, rig.rotation_euler = (-0.3, 0.2, 0.1), (-0.1, 0.3, 0.2)
    bpy.context.view_layer.update()
    return ob, rig


def _tube(name: str, start: float, end: float, rings: int, segments: int) -> bpy.types.Object:
    """An open tube along x, the only object selected."""
    x, angle = np.meshgrid(np.linspace(start, end, rings), np.arange(segments) * 2 * np.pi / segments, indexing="ij")
    vertices = np.stack([x, 0.3 * np.cos(angle), 0.25 * np.sin(angle)], axis=-1).reshape(-1, 3)
    corners = np.arange(rings * segments).reshape(rings, segments)
    turned = np.roll(corners, -1, axis=1)
    faces = np.stack([corners[:-1], turned[:-1], turned[1:], corners[1:]], axis=-1).reshape(-1, 4)
    for other in list(bpy.context.view_layer.objects.selected):
        other.select_set(False)
    return scenes.mesh_object(vertices, faces.tolist(), name=name)


def _armature(name: str) -> bpy.types.Object:
    rig = scenes.link(bpy.data.objects.new(name, bpy.data.armatures.new(name)))
    bpy.ops.object.mode_set(mode="EDIT")
    _add_bone(rig, "root", (-1, 0, -0.5), (-1, 0, 0), 0.1, None).use_deform = False
    _add_bone(rig, "trunk", (-1, 0, 0), (0, 0, 0), 0.0, "root")
    _add_bone(rig, "upper", (0, 0, 0), (1, 0, 0.02), 0.3, "trunk")
    _add_bone(rig, "lower", (1, 0, 0.02), (2, 0, 0), 0.2, "upper")
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def _add_bone(rig, name: str, head, tail, roll: float, parent: str | None):
    """Add a bone to an armature in Edit Mode."""
    bone = rig.data.edit_bones.new(name)
    bone.head, bone.tail, bone.roll = head, tail, roll
    bone.parent = rig.data.edit_bones[parent] if parent else None
    return bone


def arms(name="Arms") -> tuple[bpy.types.Object, bpy.types.Object]:
    """A tube along x, symmetric in it, in a new scene, and its armature: "chest", "upper.L", "lower.L" and the right
    side, whose rolls are not the left side's mirrored."""
    scenes.empty_scene()
    rig = scenes.link(bpy.data.objects.new(f"{name} rig", bpy.data.armatures.new(name)))
    bpy.ops.object.mode_set(mode="EDIT")
    _add_bone(rig, "chest", (0, 0, -0.5), (0, 0, 0), 0.0, None)
    for ending, sign in (("L", 1), ("R", -1)):
        upper = _add_bone(rig, f"upper.{ending}", (0.5 * sign, 0, 0), (1.5 * sign, 0.02, 0), 0.3, "chest")
        _add_bone(rig, f"lower.{ending}", upper.tail, (2.5 * sign, 0, 0.1), 0.4 * sign + 0.2, upper.name)
    bpy.ops.object.mode_set(mode="OBJECT")
    ob = _tube(name, -2.5, 2.5, 51, 12)
    x = np.array([vertex.co.x for vertex in ob.data.vertices])
    names, weights = ["chest"], [np.ones(len(x))]
    for ending, sign in (("L", 1), ("R", -1)):
        upper, lower = _step(sign * x, 0.2, 0.8), _step(sign * x, 1.2, 1.8)
        names += [f"upper.{ending}", f"lower.{ending}"]
        weights += [upper - lower, lower]
        weights[0] = weights[0] - upper
    write_weights(ob, names, np.tile(np.arange(5), (len(x), 1)), np.column_stack(weights))
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    bpy.context.view_layer.update()
    return ob, rig


def _step(values: np.ndarray, start: float, end: float) -> np.ndarray:
    """A smooth step: 0 up to ``start``, 1 from ``end`` on."""
    share = np.clip((values - start) / (end - start), 0, 1)
    return share * share * (3 - 2 * share)


def pose(rig, turns=()) -> None:
    """Put the armature into the rest pose but for ``turns``: (bone, axis "X", "Y" or "Z", degrees) each."""
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
        bone.matrix_basis.identity()
        bone.location, bone.scale, bone.rotation_quaternion = (0, 0, 0), (1, 1, 1), (1, 0, 0, 0)
    for bone, axis, degrees in turns:
        rig.pose.bones[bone].rotation_quaternion = Quaternion(AXES[axis], np.radians(degrees))
    bpy.context.view_layer.update()


def posed_limb(turns) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The limb in the pose of ``turns``, its mesh active."""
    ob, rig = limb()
    pose(rig, turns)
    return ob, rig


def link_limb(path) -> None:
    """Save the limb to a separate file; a new scene has mesh and armature linked from it, with the mesh active."""
    link_objects(path, "Limb", "Limb rig")


def link_objects(path, mesh_name: str, armature_name: str) -> None:
    """The same of a mesh and an armature with other names."""
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    scenes.empty_scene()
    with bpy.data.libraries.load(str(path), link=True) as (_, loaded):
        loaded.objects = [mesh_name, armature_name]
    for member in loaded.objects:
        scenes.link(member)
    bpy.context.view_layer.objects.active = bpy.data.objects[mesh_name]


def limb_in_pose_mode() -> tuple[bpy.types.Object, bpy.types.Object]:
    """The limb with Preserve Volume, which examples are taken from, its armature in Pose Mode with joints selected."""
    ob, rig = limb()
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    scenes.select_bones(rig, "upper", "lower")
    return ob, rig


def limb_with_examples(poses=POSES, **given) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The limb at rest, with examples of single-joint ``poses``: its shape by dual quaternions. Needs the extension."""
    ob, rig = limb(**given)
    for turn in poses:
        add_example(ob, rig, [turn])
    pose(rig)
    return ob, rig


def add_example(ob, rig, turns):
    """Pose the armature and store the limb's shape by dual quaternions as an example; returns its item."""
    pose(rig, turns)
    skin, joints = read_rig(bpy.context, ob)
    depsgraph = bpy.context.evaluated_depsgraph_get()
    rotations, matrices = current_pose(skin, joints, depsgraph)
    shape = skin_frame(skin.rest, skin.bones, skin.weights, matrices, "DQS")
    name = ", ".join(f"{bone} {axis} {degrees:+d}°" for bone, axis, degrees in turns)
    channels = current_channels(skin, depsgraph)
    return store_example(skin, name, "EVALUATED", rotations, matrices, shape, channels=channels)


def misses(frame: int) -> float:
    """How far "Limb" is from "Target" at a frame."""
    bpy.context.scene.frame_set(frame)
    limb, target = (bpy.data.objects[name] for name in ("Limb", "Target"))
    return float(np.abs(scenes.evaluated_positions(limb) - scenes.evaluated_positions(target)).max())
