# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs with a target that they should follow, for the tests of partial solves."""

import bpy
import numpy as np

from skinning_tools.blender.animation.animation_reader import SourceAnimation
from skinning_tools.blender.bone_weights import read_bone_weights
from skinning_tools.blender.fit_poses import bare_skin
from skinning_tools.blender.records import read_record
from skinning_tools.blender.skin_reader import bone_matrices
from skinning_tools.core.animation import ErrorMeter, unit_scale
from skinning_tools.core.decomposition import Decomposition
from skinning_tools.core.deform.influences import weight_matrix
from skinning_tools.features.partial.outcome import FIGURES_PROPERTY, PartialFigures
from tests.blender import moving_meshes, rig_samples, scenes, skinned_meshes

FRAMES = range(1, 9)
BONES = tuple(f"Bone {index}" for index in range(5))


def tube(stretch=0.0, move=0.0, seed=0) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The tube of ``skinned_meshes`` with its rig; all vertices have weights, its bones turn and, if asked to, stretch
    and move."""
    ob, rig = skinned_meshes.rigged_tube(seed=seed)
    last = list(range(len(ob.data.vertices) - 16, len(ob.data.vertices)))
    ob.vertex_groups["Bone 4"].add(last, 1.0, "REPLACE")
    for curve in curves(rig.animation_data.action):
        for point in curve.keyframe_points:
            if curve.data_path.endswith("location"):
                point.co[1] *= move / 0.1
            if curve.data_path.endswith("scale"):
                point.co[1] = 1 + (point.co[1] - 1) * stretch / 0.2
        curve.update()
    bpy.context.scene.frame_set(1)
    return ob, rig


def rigged_at_rest(**options):
    """The tube at rest: its armature has an action in which nothing moves; the target, and its positions."""
    ob, armature = tube(**options)
    wanted = scenes.played(ob, FRAMES)
    target = moving_copy(ob, wanted)
    for curve in curves(armature.animation_data.action):
        rest = float(curve.data_path.endswith("scale"))
        for point in curve.keyframe_points:
            point.co[1] = rest
        curve.update()
    bpy.context.scene.frame_set(1)
    select(target, ob)
    assert error(ob, wanted) > 50
    return ob, armature, target, wanted


def add_bone(armature, name, parent=None, child=None):
    """A bone that does not deform, its parent, and what becomes its child; returns its pose bone."""
    active = bpy.context.view_layer.objects.active
    selected = bpy.context.selected_objects
    select(armature)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = armature.data.edit_bones
    bone = bones.new(name)
    bone.head, bone.tail, bone.use_deform = (0.3, 0.4, 0.5), (0.3, 1.4, 0.5), False
    if parent:
        bone.parent = bones[parent]
    if child:
        bones[child].parent = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    select(*selected, active)
    return armature.pose.bones[name]


def curves(action) -> list:
    """All curves of an action with one slot at most."""
    if not hasattr(action, "layers"):
        return list(action.fcurves)
    return [c for layer in action.layers for strip in layer.strips for bag in strip.channelbags for c in bag.fcurves]


def keys_of(action, bones=None) -> dict[tuple[str, int], np.ndarray]:
    """The keys (n, 2) of an action's curves, of the named bones alone where given."""
    wanted = None if bones is None else tuple(f'pose.bones["{name}"]' for name in bones)
    found = {}
    for curve in curves(action):
        if wanted is None or curve.data_path.startswith(wanted):
            keys = np.empty((len(curve.keyframe_points), 2), np.float32)
            curve.keyframe_points.foreach_get("co", keys.ravel())
            found[curve.data_path, curve.array_index] = keys
    return found


def moving_copy(object, positions, numbers=FRAMES, name="Target") -> bpy.types.Object:
    """A copy of a mesh object without armature that has ``positions`` (F, N, 3) at the frames, by shape keys."""
    copy = object.copy()
    copy.data = object.data.copy()
    copy.name = name
    copy.modifiers.clear()
    copy.vertex_groups.clear()
    scenes.home().objects.link(copy)
    copy.shape_key_add(name="Basis", from_mix=False)
    for number, shape in zip(numbers, positions, strict=True):
        block = copy.shape_key_add(name=f"Frame {number}", from_mix=False)
        block.points.foreach_set("co", np.ascontiguousarray(shape, np.float32).ravel())
        for other in (number - 1, number, number + 1):
            block.value = float(other == number)
            block.keyframe_insert("value", frame=other)
    for curve in curves(copy.data.shape_keys.animation_data.action):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    bpy.context.scene.frame_set(bpy.context.scene.frame_current)
    return copy


def select(*objects) -> None:
    """Select these, the last one active."""
    for other in bpy.context.view_layer.objects:
        other.select_set(other in objects)
    bpy.context.view_layer.objects.active = objects[-1]


def error(object, positions, numbers=FRAMES) -> float:
    """E_RMS of what the viewport shows of an object."""
    meter = ErrorMeter(unit_scale(positions), positions.shape[1])
    for expected, actual in zip(positions, scenes.played(object, numbers), strict=True):
        meter.add(expected, actual)
    return meter.e_rms


def figures(object) -> PartialFigures | None:
    """The figures that the last partial solve stored on the object; None if there was none."""
    return read_record(object, FIGURES_PROPERTY, PartialFigures)


def cancelled_at(fraction: float, steps) -> None:
    """Run a solve until its progress comes to ``fraction``, and cancel it there."""
    while next(steps)[0] < fraction:
        pass
    steps.close()


def weights_of(object, armature) -> np.ndarray:
    """(N, P) of the deforming bones."""
    read = read_bone_weights(object, armature)
    return weight_matrix(read.bones, read.weights, len(read.names)).toarray()


def matrices_of(object, armature, names, numbers=FRAMES) -> np.ndarray:
    """(F, P, 3, 4): what the bones do to the mesh at the frames."""
    scene, found = bpy.context.scene, []
    for number in numbers:
        scene.frame_set(number)
        found.append(bone_matrices(bare_skin(object, armature, names), bpy.context.evaluated_depsgraph_get()))
    return np.array(found)


def wolf(path, kind="RIGID"):
    """Exact skinning: mesh and armature as a conversion would write them, the animation as a target, and the data."""
    data = dict(np.load(path))
    scene = moving_meshes.fresh_scene(len(data["frames"]))
    weights = data["weights"].astype(float)
    weights /= weights.sum(axis=1, keepdims=True)
    bones = np.argsort(-weights, axis=1, kind="stable")[:, :13].astype(np.int32)
    result = Decomposition(
        data["rest"].astype(float), data["transforms"].astype(float), bones,
        np.take_along_axis(weights, bones, axis=1), kind, bone_axes=np.tile(np.eye(3), (21, 1, 1)),
        e_rms=0.0, max_error=0.0, history=(), dimension=1,
    )  # fmt: skip
    origin = moving_meshes.add_object("Wolf", data["rest"], data["triangles"])
    source = SourceAnimation(
        origin, rig_samples.Animation(data["frames"], data["triangles"]), "test", origin.data.copy()
    )
    rig = rig_samples.write_rig(source, result)
    target = moving_copy(origin, data["frames"], range(1, len(data["frames"]) + 1))
    bpy.data.objects.remove(origin)
    scene.frame_set(1)
    select(target, rig.object)
    return rig.object, rig.armature, target, data | {"weights": weights}
