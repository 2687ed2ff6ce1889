# SPDX-License-Identifier: GPL-3.0-or-later
"""Limbs for the tests of bone links and bulge bones, the operators that add and remove these, and all that must be as
before once they are gone."""

import subprocess

import bpy
import numpy as np
from mathutils import Matrix, Quaternion

from skinning_tools.blender.helper_bones.records import find_helpers
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.core.smooth_step import smooth_step
from tests.blender import another_process, scenes
from tests.core.skinned_shapes import chain_weights, cuboid

COLUMNS, ROWS = 60, 12
# Between them a bulge of ``add_bulge`` grows.
BULGE_START, BULGE_END = np.radians(20), np.radians(120)


def bar(joints=(3.0,), reach=1.0, name="Bar", apart=True) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The cuboid along x in a new scene, its bones "upper.L", "fore.L", "hand.L" meeting at ``joints``.

    apart: mesh and armature are in other places, so that their spaces differ, and so do the limb's and its bones' axes.
    """
    scenes.empty_scene()
    places = [0.0, *joints, 6.0]
    rig = scenes.link(bpy.data.objects.new(f"{name} rig", bpy.data.armatures.new(f"{name} rig")))
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    for bone_name, head, tail in zip(("upper.L", "fore.L", "hand.L"), places[:-1], places[1:], strict=False):
        bone = rig.data.edit_bones.new(bone_name)
        bone.head, bone.tail, bone.roll, bone.parent = (head, 0, 0), (tail, 0, 0), 0.4, parent
        parent = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    rest, triangles = cuboid(COLUMNS, ROWS)
    ob = scenes.mesh_object(rest, triangles.tolist(), name=name)
    write_weights(ob, rig.data.bones.keys(), *chain_weights(rest[:, 0], joints, reach))
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    for each, turn in ((ob, 0.3), (rig, -0.2)) if apart else ():
        each.matrix_world = Matrix.Translation((turn, 2 * turn, -turn)) @ Matrix.Rotation(turn, 4, (1, 2, 3))
    bpy.context.view_layer.objects.active = rig
    bpy.context.view_layer.update()
    return ob, rig


def pose(rig, **turns) -> None:
    """Turn bones from rest: their names, "_" for ".", and (axis, degrees)."""
    for name, (axis, degrees) in turns.items():
        bone = rig.pose.bones[name.replace("_", ".")]
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion(axis, np.radians(degrees))
    bpy.context.view_layer.update()


def animate(rig, name: str, degrees: float) -> None:
    """Key a bone that turns about its X axis by ``degrees`` up to frame 10, and back to frame 20."""
    bone = rig.pose.bones[name]
    bone.rotation_mode = "XYZ"
    for frame, angle in ((1, 0), (10, degrees), (20, 0)):
        bone.rotation_euler = (np.radians(angle), 0, 0)
        bone.keyframe_insert("rotation_euler", frame=frame)


def add_links(*joints, **given):
    return bpy.ops.skinning.add_bone_links(joints=",".join(joints), **given)


def remove_links(*joints, **given):
    return bpy.ops.skinning.remove_bone_links(joints=",".join(joints), **given)


def add_bulge(bone="upper.L", **given):
    angles = {"angle_start": BULGE_START, "angle_end": BULGE_END}
    return bpy.ops.skinning.add_bulge_bone(bone=bone, **angles | given)


def bulge_of(rig) -> str:
    """The bone of the bulge that was added last."""
    return find_helpers(rig)[-1].skin[0]


def bulge_share(degrees: float) -> float:
    """How far a bulge of ``add_bulge`` has grown, 0 to 1, where the driver bone bends by ``degrees``."""
    return float(smooth_step(np.array([(np.radians(degrees) - BULGE_START) / (BULGE_END - BULGE_START)]))[0])


def evaluated_bone(rig, name: str):
    """The pose bone as drivers and constraints leave it."""
    bpy.context.view_layer.update()
    return rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones[name]


def ring_areas(points, columns=COLUMNS, rows=ROWS) -> np.ndarray:
    """Area of each ring of the cuboid."""
    rings = np.asarray(points, dtype=np.float64)[:-2].reshape(columns + 1, 4 * rows, 3)
    following = np.roll(rings, -1, axis=1)
    middle = rings.mean(axis=1, keepdims=True)
    return np.linalg.norm(np.cross(rings - middle, following - middle).sum(axis=1), axis=1) / 2


def moved(rig, name: str) -> np.ndarray:
    """(3, 4) the transform that a bone applies to rest positions, in the armature's space."""
    evaluated = rig.evaluated_get(bpy.context.evaluated_depsgraph_get())
    pose_matrix = np.array(evaluated.pose.bones[name].matrix, dtype=np.float64)
    return (pose_matrix @ np.linalg.inv(np.array(rig.data.bones[name].matrix_local, dtype=np.float64)))[:3]


def state(rig, meshes) -> dict:
    """Everything that helpers could leave behind, and the user's selection and mode."""
    animation = rig.animation_data
    return {
        "data-blocks": scenes.data_blocks(),
        "place": scenes.ui_state(),
        "bones": [
            (
                bone.name,
                bone.parent and bone.parent.name,
                np.array(bone.matrix_local).tolist(),
                bone.use_deform,
                sorted(each.name for each in bone.collections),
                sorted(bone.keys()),
            )
            for bone in rig.data.bones
        ],
        "pose": [
            (
                bone.name,
                len(bone.constraints),
                np.array(bone.matrix_basis).tolist(),
                sorted(bone.keys()),
                bone.rotation_mode,
            )
            for bone in rig.pose.bones
        ],
        "collections": [(each.name, each.is_visible) for each in rig.data.collections_all],
        "active bone": rig.data.bones.active and rig.data.bones.active.name,
        "drivers": None if animation is None else [curve.data_path for curve in animation.drivers],
        "keys": sorted(rig.keys()) + sorted(rig.data.keys()),
        "mode": rig.mode,
        "meshes": [mesh_state(ob) for ob in meshes],
    }


def mesh_state(ob) -> dict:
    return {
        "groups": [group.name for group in ob.vertex_groups],
        "active": ob.vertex_groups.active and ob.vertex_groups.active.name,
        "weights": [sorted((group.group, group.weight) for group in vertex.groups) for vertex in ob.data.vertices],
        "attributes": sorted(attribute.name for attribute in ob.data.attributes),
        "keys": sorted(ob.data.keys()),
    }


def human(path) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The human of the sample file in a new scene, Y up in its own space and turned upright, with its own weights."""
    scenes.empty_scene()
    data = np.load(path)
    names = data["bone_names"].tolist()
    rig = scenes.link(bpy.data.objects.new("Human rig", bpy.data.armatures.new("Human rig")))
    bpy.ops.object.mode_set(mode="EDIT")
    for index, name in enumerate(names):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail = data["heads"][index].tolist(), data["tails"][index].tolist()
        if data["parents"][index] >= 0:
            bone.parent = rig.data.edit_bones[names[data["parents"][index]]]
    bpy.ops.object.mode_set(mode="OBJECT")
    ob = scenes.mesh_object(data["rest"], data["quads"].tolist(), name="Human")
    write_weights(ob, names, data["influence_bones"], data["influence_weights"])
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    for each in (ob, rig):
        each.rotation_euler = (np.pi / 2, 0, 0)
    bpy.context.view_layer.objects.active = rig
    bpy.context.view_layer.update()
    return ob, rig


def play_elsewhere(path, object_name: str, output) -> None:
    """Open a file in a process without the extension and with scripts off; the evaluated points go to ``output``."""
    code = f"""
import os, sys
import bpy, numpy as np
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.context.preferences.filepaths.use_scripts_auto_execute = False
bpy.ops.wm.open_mainfile(filepath={str(path)!r}, use_scripts=False)
assert not hasattr(bpy.types.Object, "skinning_joint_helpers")
assert not any("skinning_tools" in name for name in sys.modules)
ob = bpy.data.objects[{object_name!r}].evaluated_get(bpy.context.evaluated_depsgraph_get())
np.save({str(output)!r}, np.array([vertex.co for vertex in ob.data.vertices], np.float32))
sys.stdout.flush()
os._exit(0)
"""
    subprocess.run(another_process.command(code), check=True)
