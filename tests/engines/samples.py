# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs to be exported: conversions of the three bone kinds, and a limb with EigenSkin corrections. They need the
extension."""

from pathlib import Path

import bpy
import numpy as np

from tests.blender import eigenskin_models, eigenskin_scenes, moving_meshes, scenes

FRAME_COUNT = 8


def affine_bands(folder: Path) -> bpy.types.Object:
    """A grid in three soft bands that turn, stretch and shear, as a point cache: affine bones can follow it exactly."""
    moving_meshes.fresh_scene(FRAME_COUNT)
    rest, faces = moving_meshes.grid(33, 13)
    bands = np.clip(1.5 - np.abs(rest[:, :1] - (-0.9, 0.0, 0.9)) / 0.45, 0, 1)
    bands /= bands.sum(axis=1, keepdims=True)
    random = np.random.default_rng(4)
    ends = random.normal(size=(3, 3, 4)) * (0.45, 0.45, 0.45, 0.3)
    shares = np.sin(np.linspace(0, 2.5, FRAME_COUNT))
    matrices = np.eye(3, 4) + shares[:, None, None, None] * ends
    places = np.column_stack([rest, np.ones(len(rest))])
    frames = np.einsum("nb,fbij,nj->fni", bands, matrices, places)
    scenes.write_pc2(folder / "bands.pc2", frames)
    ob = moving_meshes.add_object("Bands", rest, faces)
    scenes.point_cache(ob, folder / "bands.pc2", "PC2")
    _place(ob)
    return ob


def swaying_tube() -> bpy.types.Object:
    """A closed tube that shape keys bend and bulge more than a few bones can. Not flat, so that its bones are well
    determined."""
    moving_meshes.fresh_scene(FRAME_COUNT)
    rings, segments = 25, 16
    height, angle = np.meshgrid(np.linspace(-1, 1, rings), np.arange(segments) * 2 * np.pi / segments, indexing="ij")
    radius = 0.3 * np.sqrt(1.02 - height**2)
    rest = np.stack([height, radius * np.cos(angle), radius * np.sin(angle)], axis=-1).reshape(-1, 3)
    corners = np.arange(rings * segments).reshape(rings, segments)
    turned = np.roll(corners, -1, axis=1)
    faces = np.stack([corners[:-1], corners[1:], turned[1:], turned[:-1]], axis=-1).reshape(-1, 4)
    caps = [corners[0].tolist(), corners[-1, ::-1].tolist()]
    ob = moving_meshes.add_object("Tube", rest, [*faces.tolist(), *caps])
    moving_meshes.add_waving_keys(ob)
    _place(ob)
    return ob


def waving_flag() -> bpy.types.Object:
    """A grid that shape keys bend, flat at the first frame: affine bones flatten their vertices there."""
    moving_meshes.fresh_scene(FRAME_COUNT)
    ob = moving_meshes.waving_grid(columns=25, rows=17)
    _place(ob)
    return ob


def _place(ob) -> None:
    """Move the object away from the origin, rotate and scale it."""
    ob.location, ob.rotation_euler, ob.scale = (0.4, -0.2, 0.3), (0.2, 0.1, -0.3), (1.5, 1.5, 1.5)
    bpy.context.view_layer.update()


def convert(ob, **given) -> bpy.types.Object:
    """The skinned copy of ``ob``, which is the active object."""
    assert bpy.ops.skinning.convert_animation(**({"bone_count": 4} | given)) == {"FINISHED"}
    return bpy.context.scene.objects[f"{ob.name}_skinned"]


def corrected_limb() -> bpy.types.Object:
    """A limb that bends, with EigenSkin corrections as keyframes, over the frames 1 to FRAME_COUNT."""
    ob, rig = eigenskin_scenes.limb()
    eigenskin_models.corrected(ob, rig)
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, FRAME_COUNT
    for frame, angle in ((1, 0.0), (FRAME_COUNT // 2, 1.2), (FRAME_COUNT, -1.4)):
        half, third = angle / 2, angle / 3
        turns = {"lower": (np.cos(half), np.sin(half), 0, 0), "upper": (np.cos(third), 0, np.sin(third), 0)}
        eigenskin_models.turn(rig, turns)
        for name in turns:
            rig.pose.bones[name].keyframe_insert("rotation_quaternion", frame=frame)
    # As after Parent with Armature Deform. Otherwise USD files of Blender 4 put the mesh in the wrong place.
    placed = ob.matrix_world.copy()
    ob.parent = rig
    ob.matrix_world = placed
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.skinning.bake_eigenskin(frame_start=1, frame_end=FRAME_COUNT) == {"FINISHED"}
    return ob
