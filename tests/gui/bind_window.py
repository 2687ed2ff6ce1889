# SPDX-License-Identifier: GPL-3.0-or-later
"""Inside Blender's window: bind by the panel's button, edit volumes and mirror them, bind in Weight Paint, undo,
cancel with Esc, and parent objects to bones. Started by run.py."""

import bpy
import numpy as np
from driver import (
    after,
    begin_with,
    enable,
    idle,
    in_window,
    look_from_front,
    new_file,
    open_tab,
    passes,
    picture,
    press,
    press_button,
    undo,
)
from mathutils import Quaternion, Vector

from skinning_tools.blender import background
from skinning_tools.features.bind.panel import SKINNING_PT_bind
from skinning_tools.features.bind.volumes import volumes_of
from tests.blender.binding_scenes import activate, armature_of_segments, check_bound, cube


def body():
    return bpy.data.objects["Body"]


def rig():
    return bpy.data.objects["Rig"]


def settings():
    return bpy.context.scene.skinning_bind


def figure(levels: int) -> None:
    """A body in one piece with arms and legs, subdivided, and its armature with sides; the body is active."""
    bones = {
        "spine": ((0, 0, 0.2), (0, 0, 1.6)),
        "head": ((0, 0, 1.6), (0, 0, 2.4)),
        "upper_arm.L": ((0.4, 0, 1.3), (1.4, 0, 1.3)),
        "lower_arm.L": ((1.4, 0, 1.3), (2.4, 0, 1.3)),
        "thigh.L": ((0.42, 0, 0.1), (0.42, 0, -1.2)),
        "shin.L": ((0.42, 0, -1.2), (0.42, 0, -2.4)),
    }
    for name, ends in list(bones.items()):
        if name.endswith(".L"):
            bones[name[:-1] + "R"] = tuple((-x, y, z) for x, y, z in ends)
    names = list(bones)
    above = {"head": "spine", "upper_arm": "spine", "lower_arm": "upper_arm", "thigh": "spine", "shin": "thigh"}
    parents = [
        next((i for i, other in enumerate(names) if other in (above.get(part), f"{above.get(part)}.{side}")), -1)
        for part, _, side in (name.partition(".") for name in names)
    ]
    armature = armature_of_segments(list(bones.values()), "Rig", parents)
    # By the old names: parents come before their children in an armature.
    for index, name in enumerate(names):
        armature.data.bones[f"Bone {index}"].name = name
    armature.show_in_front = True
    blocks = [(0, z) for z in (1, 3, 5, 7, 9)] + [(s * x, 6) for s in (-1, 1) for x in (2, 4, 6, 8)]
    blocks += [(s, z) for s in (-1.5, 1.5) for z in (1, -1, -3, -5, -7, -9, -11)]
    parts = [cube(f"Part {index}", (0, 0, 0), 0.5) for index in range(len(blocks))]
    for part, (x, z) in zip(parts, blocks, strict=True):
        part.location = (0.28 * x, 0, 0.22 * z + 0.1)
        part.scale = (1.2, 0.9, 1.2)
    activate(parts[0], *parts)
    bpy.ops.object.join()
    ob = bpy.context.object
    ob.name = "Body"
    remesh = ob.modifiers.new("Remesh", "REMESH")
    remesh.mode, remesh.voxel_size = "VOXEL", 0.09 / 2**levels
    bpy.ops.object.modifier_apply(modifier="Remesh")
    activate(ob)


def pose() -> None:
    """Turn bones in the plane of the picture."""
    for name, degrees in (("lower_arm.L", -60), ("upper_arm.R", -50), ("thigh.L", -40)):
        bone = rig().pose.bones[name]
        axis = bone.bone.matrix_local.to_3x3().inverted() @ Vector((0, 1, 0))
        bone.rotation_mode = "QUATERNION"
        bone.rotation_quaternion = Quaternion(axis, np.radians(degrees))


def tests():
    enable(SKINNING_PT_bind)
    yield from begin_with(figure, 1)
    yield from bound()
    yield from by_volumes()
    yield from in_weight_paint()
    yield from cancelled()
    yield from objects_to_bones()


def bound():
    """Generator: the button, a pose, and one undo."""
    yield from open_tab("Skinning")
    yield after(0.5)
    picture("bind_1_panel")
    yield from press_button("skinning.bind")
    yield lambda: idle() and body().vertex_groups
    yield after(0.5)
    check_bound(body(), rig())
    pose()
    yield after(0.5)
    picture("bind_2_delaunay_posed")
    yield from undo()
    assert not body().vertex_groups
    assert not body().modifiers
    assert body().parent is None
    passes("the button binds, and one undo takes it all away")


def by_volumes():
    """Generator: volumes, one edited and mirrored, and a binding by them."""
    settings().method = "CONTAINMENT"
    yield after(0.5)
    yield from press_button("skinning.generate_volumes")
    yield lambda: idle() and len(volumes_of(rig())) == 10
    yield after(0.5)
    picture("bind_3_volumes")
    volume = next(ob for ob in volumes_of(rig()) if ob["skinning_volume"]["bone"] == "upper_arm.L")
    with in_window():
        activate(volume)
        bpy.ops.transform.resize(value=(1.6, 1.6, 1.6))
        bpy.ops.transform.rotate(value=0.2, orient_axis="Y")
    yield after(0.3)
    yield from press_button("skinning.mirror_volumes", across=0.3)
    yield after(0.5)
    picture("bind_4_volumes_mirrored")
    other = next(ob for ob in volumes_of(rig()) if ob["skinning_volume"]["bone"] == "upper_arm.R")
    mirrored = np.array(other.matrix_world.translation) * [-1, 1, 1]
    assert np.allclose(mirrored, volume.matrix_world.translation, atol=1e-5)
    passes("volumes are shown, edited with the ordinary tools and mirrored")

    yield from press_button("skinning.bind")
    yield lambda: idle() and body().vertex_groups
    check_bound(body(), rig())
    passes("with a volume active, the mesh that it was made for is bound")


def in_weight_paint():
    """Generator: a second binding, in another mode; then the volumes go."""
    settings().replace = True
    with in_window():
        activate(body(), rig())
        bpy.ops.object.mode_set(mode="WEIGHT_PAINT")
    yield after(0.5)
    yield from press_button("skinning.bind")
    yield lambda: idle() and body().vertex_groups
    yield after(0.5)
    check_bound(body(), rig())
    assert body().mode == "WEIGHT_PAINT"
    picture("bind_5_weight_paint")
    with in_window():
        bpy.ops.object.mode_set(mode="OBJECT")
    yield from press_button("skinning.remove_volumes", across=0.75)
    yield after(0.5)
    assert not volumes_of(rig())
    passes("binding in Weight Paint uses the volumes; they are removed")


def cancelled():
    """Generator: a binding that takes long, and Esc."""
    yield from begin_with(figure, levels=3)
    yield from open_tab("Skinning")
    settings().method = "DELAUNAY"
    yield after(0.5)
    yield from press_button("skinning.bind")
    yield lambda: background.running_job() is not None and background.running_job().fraction > 0.2
    picture("bind_6_running")
    press("ESC")
    yield lambda: idle()
    yield after(0.5)
    assert not body().vertex_groups
    assert not body().modifiers
    passes(f"Esc stops the binding of {len(body().data.vertices):,} vertices, and nothing is left")


def objects_to_bones():
    """Generator: a figure of separate objects."""
    yield from new_file()
    with in_window():
        figure(0)
        bpy.ops.mesh.separate(type="LOOSE")
    yield after(0.3)
    with in_window():
        bpy.data.objects.remove(body())
        parts = [cube(f"Part {x}", (x, 0, 1.3), 0.5) for x in (-2, -1, 1, 2)]
        parts += [cube("Head", (0, 0, 2), 0.6), cube("Chest", (0, 0, 1), 0.7)]
        activate(rig(), *parts)
    look_from_front()
    yield from open_tab("Skinning")
    settings().method, settings().as_objects = "RIGID", True
    yield after(0.5)
    yield from press_button("skinning.bind")
    yield lambda: idle() and bpy.data.objects["Head"].parent is not None
    pose()
    yield after(0.5)
    picture("bind_7_objects")
    assert bpy.data.objects["Head"].parent_bone == "head"
    assert bpy.data.objects["Part 2"].parent_bone == "lower_arm.L"
    passes("objects are parented to bones")
