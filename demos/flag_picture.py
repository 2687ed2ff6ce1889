# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's pictures: source, result and error side by side (Cycles on the CPU), and the error over time."""

from math import radians

import bpy
import numpy as np
from mathutils import Vector
from matplotlib import pyplot as plt
from rendering import BACKGROUND, MUTED, TEXT, aim, dark, link, plain, render_scene, sky

RESOLUTION = 1600, 660
SPACING = 2.3


def render(path: str, meshes: list[bpy.types.Mesh], samples: int) -> None:
    """The ``meshes`` on flag poles next to each other, in studio light, without a display or a GPU."""
    scene = bpy.data.scenes.new("Picture")
    for index, mesh in enumerate(meshes):
        place = Vector(((index - (len(meshes) - 1) / 2) * SPACING, 0, 0))
        flag = link(scene, "Picture Flag", mesh, place + Vector((-0.9, 0, 0)))
        smooth = flag.modifiers.new("Smooth", "SUBSURF")
        smooth.levels = smooth.render_levels = 1
        link(scene, "Picture Pole", pole(), place + Vector((-0.93, 0, 0)))
    link(scene, "Picture Wall", plane(60, wall()), Vector((0, 9, 0.6)), (radians(90), 0, 0))

    sun = bpy.data.lights.new("Picture Sun", "SUN")
    # From afar, so that all flags have the same light.
    sun.energy, sun.angle, sun.color = 3.4, radians(9), (1.0, 0.95, 0.88)
    aim(link(scene, "Picture Sun", sun, Vector((-3.0, -5.5, 4.0))), Vector((0, 0, 0)))
    light(scene, (0, 1.9, 5.0), (0, 0.2, 0.4), size=7.0, power=500, color=(1.0, 0.9, 0.8))
    sky(scene, (0.30, 0.36, 0.46), 0.9)

    camera = bpy.data.cameras.new("Picture Camera")
    camera.lens = 85
    scene.camera = link(scene, "Picture Camera", camera, Vector((0.0, -16.7, 0.9)))
    aim(scene.camera, Vector((0.0, 0, 0.43)))

    # The wall, most of the picture, needs few samples; the folds get the rest.
    scene.cycles.use_adaptive_sampling = True
    scene.cycles.adaptive_threshold, scene.cycles.adaptive_min_samples = 0.05, 4
    scene.cycles.use_light_tree = False  # three lights: sampling each costs less than choosing among them
    scene.cycles.denoising_prefilter = "FAST"
    render_scene(scene, path, RESOLUTION, samples)


def plot_error(path: str, frames, root_mean_square, largest, title: str) -> None:
    """The error over time: both curves (F,) in per mille of the flag's enclosing ball."""
    figure, axes = plt.subplots(figsize=(12, 4.6), dpi=100, facecolor=BACKGROUND)
    axes.fill_between(frames, largest, color="#f97066", alpha=0.18, linewidth=0)
    axes.plot(frames, largest, color="#f97066", linewidth=1.6, label="largest distance of a vertex")
    axes.fill_between(frames, root_mean_square, color="#53b1fd", alpha=0.35, linewidth=0)
    axes.plot(frames, root_mean_square, color="#53b1fd", linewidth=2.2, label="E_RMS of the frame")
    axes.set_xlim(frames[0], frames[-1])
    axes.set_ylim(0, 1.15 * max(largest))
    axes.set_ylabel("‰ of the enclosing ball's radius", color=MUTED)
    dark(axes, title, "frame")
    axes.legend(frameon=False, labelcolor=TEXT, loc="upper right", ncols=2)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def light(scene, location, target, *, size: float, power: float, color) -> None:
    lamp = bpy.data.lights.new("Picture Light", "AREA")
    lamp.size, lamp.energy, lamp.color = size, power, color
    aim(link(scene, "Picture Light", lamp, Vector(location)), Vector(target))


def wall() -> bpy.types.Material:
    return plain("Wall", (0.030, 0.042, 0.062), roughness=0.9)


def plane(size: float, material: bpy.types.Material) -> bpy.types.Mesh:
    mesh = bpy.data.meshes.new("Plane")
    half = size / 2
    corners = [(-half, -half, 0), (half, -half, 0), (half, half, 0), (-half, half, 0)]
    mesh.from_pydata(corners, [], [(0, 1, 2, 3)])
    mesh.materials.append(material)
    return mesh


def pole() -> bpy.types.Mesh:
    """A slender metal cylinder with a rounded top, for a flag that hangs from z = 0 to 1.2."""
    profile = [(0.028, -1.6), (0.028, 1.27), (0.045, 1.28), (0.05, 1.31), (0.04, 1.345), (0.0, 1.36)]
    sides = 32
    angles = np.arange(sides) * 2 * np.pi / sides
    points = [(r * np.cos(a), r * np.sin(a), z) for r, z in profile for a in angles]
    faces = [
        (row * sides + k, row * sides + (k + 1) % sides, (row + 1) * sides + (k + 1) % sides, (row + 1) * sides + k)
        for row in range(len(profile) - 1)
        for k in range(sides)
    ]
    mesh = bpy.data.meshes.new("Pole")
    mesh.from_pydata(points, [], faces)
    mesh.shade_smooth()
    mesh.materials.append(plain("Pole", (0.8, 0.78, 0.74), metallic=1.0, roughness=0.3))
    return mesh
