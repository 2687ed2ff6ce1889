# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's pictures: source, result and error side by side (Cycles on the CPU), and the error over time."""

from math import radians

import _cycles
import bpy
import matplotlib

matplotlib.use("Agg")

import numpy as np
from mathutils import Vector
from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, Normalize

RESOLUTION = 1600, 660
SPACING = 2.3
COLORS = LinearSegmentedColormap.from_list("error", ["#e9eff2", "#a9d4e5", "#fbd14b", "#ee6c1f", "#8e0b1e"])
BACKGROUND, TEXT, MUTED = "#14181f", "#f2f4f7", "#98a2b3"


def render(path: str, meshes: list[bpy.types.Mesh], samples: int) -> None:
    """The ``meshes`` on flag poles beside each other, lit as in a studio, without a display or a GPU."""
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
    scene.world = bpy.data.worlds.new("Picture World")
    scene.world.use_nodes = True
    background = scene.world.node_tree.nodes["Background"]
    background.inputs["Color"].default_value = (0.30, 0.36, 0.46, 1)
    background.inputs["Strength"].default_value = 0.9

    camera = bpy.data.cameras.new("Picture Camera")
    camera.lens = 85
    scene.camera = link(scene, "Picture Camera", camera, Vector((0.0, -16.7, 0.9)))
    aim(scene.camera, Vector((0.0, 0, 0.43)))

    scene.render.engine = "CYCLES"
    scene.cycles.device = "CPU"
    scene.cycles.samples = samples
    # The wall, most of the picture, is done after a few samples; the folds get the rest.
    scene.cycles.use_adaptive_sampling = True
    scene.cycles.adaptive_threshold, scene.cycles.adaptive_min_samples = 0.05, 4
    scene.cycles.max_bounces = 2
    scene.cycles.use_light_tree = False  # three lights: sampling each costs less than choosing among them
    scene.cycles.use_denoising = _cycles.with_openimagedenoise
    scene.cycles.denoising_prefilter = "FAST"
    scene.view_settings.view_transform = "Standard"
    scene.render.resolution_x, scene.render.resolution_y = RESOLUTION
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "PNG"
    scene.render.filepath = path
    bpy.ops.render.render(write_still=True, scene=scene.name)


def compose(
    path: str, captions: list[tuple[str, str]], largest: float = 0.0, label: str = "", apart: float = 0.325
) -> None:
    """Write the ``captions`` (title, line below) and, where it has a ``label``, a color bar from 0 to ``largest`` onto
    the picture.

    apart: from one caption to the next, as a share of the picture's width. Where that is little, the color bar is below
    the captions."""
    picture = plt.imread(path)
    height, width = picture.shape[:2]
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(picture, aspect="auto")
    axes.axis("off")
    wide = apart > 0.3
    size, up = (17, 0.0) if wide else (14, 0.04)
    for index, (title, line) in enumerate(captions):
        x = 0.5 + (index - (len(captions) - 1) / 2) * apart
        figure.text(x, 0.135 + up, title, color=TEXT, fontsize=size, fontweight="bold", ha="center")
        figure.text(x, 0.085 + up, line, color=MUTED, fontsize=0.7 * size, ha="center")
    if label:
        bar = figure.add_axes((0.715, 0.93, 0.22, 0.02) if wide else (0.39, 0.085, 0.22, 0.015))
        scale = plt.cm.ScalarMappable(Normalize(0, largest), COLORS)
        colorbar = figure.colorbar(scale, cax=bar, orientation="horizontal", extend="max")
        colorbar.outline.set_visible(False)
        colorbar.ax.tick_params(colors=TEXT, labelsize=11, length=0)
        colorbar.set_label(label, color=MUTED, fontsize=11)
    figure.savefig(path)
    plt.close(figure)


def plot_error(path: str, frames, root_mean_square, largest, title: str) -> None:
    """The error over time: both curves (F,) in per mille of the flag's enclosing ball."""
    figure, axes = plt.subplots(figsize=(12, 4.6), dpi=100, facecolor=BACKGROUND)
    axes.set_facecolor(BACKGROUND)
    axes.fill_between(frames, largest, color="#f97066", alpha=0.18, linewidth=0)
    axes.plot(frames, largest, color="#f97066", linewidth=1.6, label="largest distance of a vertex")
    axes.fill_between(frames, root_mean_square, color="#53b1fd", alpha=0.35, linewidth=0)
    axes.plot(frames, root_mean_square, color="#53b1fd", linewidth=2.2, label="E_RMS of the frame")
    axes.set_xlim(frames[0], frames[-1])
    axes.set_ylim(0, 1.15 * max(largest))
    axes.set_xlabel("frame", color=MUTED)
    axes.set_ylabel("‰ of the enclosing ball's radius", color=MUTED)
    axes.set_title(title, color=TEXT, loc="left", fontsize=14, fontweight="bold", pad=14)
    axes.tick_params(colors=MUTED)
    axes.grid(axis="y", color="#344054", linewidth=0.6)
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False, labelcolor=TEXT, loc="upper right", ncols=2)
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def colored_by_error(mesh: bpy.types.Mesh, error: np.ndarray, largest: float) -> bpy.types.Mesh:
    """``mesh`` with a material that shows ``error`` (N,) from 0 to ``largest`` by color."""
    colors = COLORS(np.clip(error / largest, 0, 1)).astype(np.float32)
    # The color bar's colors are for the screen; Blender's are linear.
    rgb = colors[:, :3]
    colors[:, :3] = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    mesh.attributes.new("Error Color", "FLOAT_COLOR", "POINT").data.foreach_set("color", colors.ravel())
    material = bpy.data.materials.new("Error")
    material.use_nodes = True
    nodes = material.node_tree.nodes
    attribute = nodes.new("ShaderNodeAttribute")
    attribute.attribute_name = "Error Color"
    nodes["Principled BSDF"].inputs["Roughness"].default_value = 0.7
    material.node_tree.links.new(attribute.outputs["Color"], nodes["Principled BSDF"].inputs["Base Color"])
    mesh.materials.clear()
    mesh.materials.append(material)
    return mesh


def link(scene, name: str, data, location: Vector, rotation=(0, 0, 0)) -> bpy.types.Object:
    ob = bpy.data.objects.new(name, data)
    ob.location, ob.rotation_euler = location, rotation
    scene.collection.objects.link(ob)
    return ob


def aim(ob: bpy.types.Object, target: Vector) -> None:
    """Turn a camera or light towards ``target``."""
    ob.rotation_euler = (target - ob.location).to_track_quat("-Z", "Y").to_euler()


def light(scene, location, target, *, size: float, power: float, color) -> None:
    lamp = bpy.data.lights.new("Picture Light", "AREA")
    lamp.size, lamp.energy, lamp.color = size, power, color
    aim(link(scene, "Picture Light", lamp, Vector(location)), Vector(target))


def plain(name: str, color, *, metallic: float = 0.0, roughness: float = 0.5) -> bpy.types.Material:
    material = bpy.data.materials.new(name)
    material.use_nodes = True
    shader = material.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*color, 1)
    shader.inputs["Metallic"].default_value = metallic
    shader.inputs["Roughness"].default_value = roughness
    return material


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
