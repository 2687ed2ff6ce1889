# SPDX-License-Identifier: GPL-3.0-or-later
"""Cloth that Blender simulates for the tables of the decomposition: a flag in the wind and a skirt on walking legs.

Each function needs bpy and a process of its own, and gives frames (F, N, 3) float32 in world space and triangles
(T, 3). Blender's cloth is the same in every run of one version.
"""

from math import pi, radians, sin

import bpy
import flag_scene  # in demos
import numpy as np

FLAG_FRAMES, SKIRT_FRAMES = 200, 360
COLUMNS, ROWS = 85, 60
WAIST, HEM, LENGTH = 0.16, 0.42, 0.75
_PINNED_ROWS = 2
# Frames in which the cloth falls onto the legs before the walk, and frames per step of both legs.
_SETTLING, _CYCLE = 30, 32
_LEG_RADIUS, _LEG_LENGTH, _HIPS = 0.085, 0.8, 0.095


def flag() -> tuple[np.ndarray, np.ndarray]:
    """The demo's flag in the wind, its surface subdivided once."""
    flag_scene.empty_file()
    cloth = flag_scene.add_cloth(FLAG_FRAMES)
    cloth.modifiers.new("Subdivision", "SUBSURF").levels = 1
    return flag_scene.played_frames(cloth, flag_scene.FIRST_FRAME, FLAG_FRAMES)


def skirt() -> tuple[np.ndarray, np.ndarray]:
    """A wide skirt on hips that sway and turn, with two walking legs in it."""
    flag_scene.empty_file()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1 - _SETTLING, SKIRT_FRAMES
    hips = bpy.data.objects.new("Hips", None)
    scene.collection.objects.link(hips)
    legs = [_leg(side) for side in (-1, 1)]
    cloth = bpy.data.objects.new("Skirt", _skirt_mesh())
    scene.collection.objects.link(cloth)
    for ob in (*legs, cloth):
        ob.parent = hips
    for frame in range(1 - _SETTLING, SKIRT_FRAMES + 1):
        _pose(frame, hips, legs)
    for leg in legs:
        _add_collision(leg)
    _add_cloth(cloth)
    return flag_scene.played_frames(cloth, 1 - _SETTLING, SKIRT_FRAMES)


def _skirt_mesh() -> bpy.types.Mesh:
    """A cone without ends around the Z axis, waist at the origin's height."""
    v, u = np.meshgrid(np.linspace(0, 1, ROWS), 2 * pi * np.arange(COLUMNS) / COLUMNS, indexing="ij")
    radius = WAIST + (HEM - WAIST) * v
    points = np.stack([radius * np.cos(u), radius * np.sin(u), -LENGTH * v], axis=-1).reshape(-1, 3)
    index = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
    right = np.roll(index, -1, axis=1)
    faces = np.stack([index[:-1], index[1:], right[1:], right[:-1]], axis=-1).reshape(-1, 4)
    mesh = bpy.data.meshes.new("Skirt")
    mesh.from_pydata(points.tolist(), [], faces.tolist())
    return mesh


def _leg(side: int) -> bpy.types.Object:
    """A capsule below its origin, the hip joint."""
    rings, around = 24, 20
    angle = np.linspace(0, pi, rings)
    height = _LEG_RADIUS * np.cos(angle) - np.where(angle > pi / 2, _LEG_LENGTH, 0.0)
    u = 2 * pi * np.arange(around) / around
    radius = _LEG_RADIUS * np.sin(angle)[:, None]
    heights = np.repeat(height[:, None], around, axis=1)
    points = np.stack([radius * np.cos(u), radius * np.sin(u), heights], axis=-1).reshape(-1, 3)
    index = np.arange(rings * around).reshape(rings, around)
    right = np.roll(index, -1, axis=1)
    faces = np.stack([index[:-1], index[1:], right[1:], right[:-1]], axis=-1).reshape(-1, 4)
    mesh = bpy.data.meshes.new("Leg")
    mesh.from_pydata(points.tolist(), [], faces.tolist())
    leg = bpy.data.objects.new("Leg", mesh)
    leg.location = side * _HIPS, 0, -0.05
    bpy.context.scene.collection.objects.link(leg)
    return leg


def _pose(frame: int, hips: bpy.types.Object, legs: list[bpy.types.Object]) -> None:
    """Keys of one frame: the walk starts softly, and turns now and then."""
    phase = 2 * pi * frame / _CYCLE
    strength = min(max(frame / _CYCLE, 0.0), 1.0)
    hips.location = 0.02 * strength * sin(phase), 0.0, 0.02 * strength * sin(2 * phase)
    hips.rotation_euler = 0.0, 0.06 * strength * sin(phase), strength * (0.25 * sin(phase) + 1.2 * sin(0.17 * phase))
    hips.keyframe_insert("location", frame=frame)
    hips.keyframe_insert("rotation_euler", frame=frame)
    for leg, side in zip(legs, (-1, 1), strict=True):
        leg.rotation_euler = radians(28) * strength * side * sin(phase), 0.0, 0.0
        leg.keyframe_insert("rotation_euler", frame=frame)


def _add_collision(leg: bpy.types.Object) -> None:
    leg.modifiers.new("Collision", "COLLISION")
    leg.collision.thickness_outer = 0.01
    leg.collision.cloth_friction = 2


def _add_cloth(cloth: bpy.types.Object) -> None:
    pinned = cloth.vertex_groups.new(name="Waist")
    pinned.add(list(range(_PINNED_ROWS * COLUMNS)), 1.0, "REPLACE")
    modifier = cloth.modifiers.new("Cloth", "CLOTH")
    modifier.point_cache.frame_start = 1 - _SETTLING
    modifier.point_cache.frame_end = SKIRT_FRAMES
    settings = modifier.settings
    settings.quality = 6
    settings.mass = 0.15
    settings.air_damping = 1
    settings.tension_stiffness = settings.compression_stiffness = 15
    settings.shear_stiffness = 5
    settings.bending_stiffness = 0.05
    settings.vertex_group_mass = pinned.name
    modifier.collision_settings.distance_min = 0.01
    modifier.collision_settings.collision_quality = 3
