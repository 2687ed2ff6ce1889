# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendering for the documentation: meshes side by side (Cycles on the CPU), colors of errors, captions."""

from math import radians
from pathlib import Path

import bpy

# isort: split
import _cycles  # exists after bpy is imported
import matplotlib

matplotlib.use("Agg")

import numpy as np
from mathutils import Vector
from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb

RESOLUTION = 1600, 600
APART = 0.32  # from one mesh to the next, of the picture's width
COLORS = LinearSegmentedColormap.from_list("error", ["#e9eff2", "#a9d4e5", "#fbd14b", "#ee6c1f", "#8e0b1e"])
BACKGROUND, TEXT, MUTED = "#14181f", "#f2f4f7", "#98a2b3"
# The part of the error colors in use: the lightest would lose their shading in the sun.
IN_THE_SUN = 0.6


# Meshes


def shape(points: np.ndarray, triangles: np.ndarray, name: str = "Shape") -> bpy.types.Mesh:
    """A smooth mesh of points (N, 3) and triangles (T, 3)."""
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(points.tolist(), [], triangles.tolist())
    mesh.shade_smooth()
    return mesh


def turned_up(points: np.ndarray) -> np.ndarray:
    """(N, 3) whose Y points up, with Z up as in Blender."""
    return points[:, [0, 2, 1]] * [1.0, -1.0, 1.0]


def plain(name: str, color, *, metallic: float = 0.0, roughness: float = 0.5) -> bpy.types.Material:
    material = bpy.data.materials.new(name)
    material.use_nodes = True
    shader = material.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*color, 1)
    shader.inputs["Metallic"].default_value = metallic
    shader.inputs["Roughness"].default_value = roughness
    return material


def colored_by_error(
    mesh: bpy.types.Mesh, error: np.ndarray, largest: float, brightness: float = 1.0
) -> bpy.types.Mesh:
    """``mesh`` with a material that shows ``error`` (N,) from 0 to ``largest`` by color."""
    colors = COLORS(np.clip(error / largest, 0, 1)).astype(np.float32)
    # The color bar's colors are for the screen; Blender's are linear.
    rgb = colors[:, :3]
    colors[:, :3] = brightness * np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return colored(mesh, colors)


def colored(mesh: bpy.types.Mesh, colors: np.ndarray) -> bpy.types.Mesh:
    """``mesh`` with a material that shows ``colors`` (N, 4) float32, linear, of its vertices."""
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


# Scene


def link(scene, name: str, data, location: Vector, rotation=(0, 0, 0)) -> bpy.types.Object:
    ob = bpy.data.objects.new(name, data)
    ob.location, ob.rotation_euler = location, rotation
    scene.collection.objects.link(ob)
    return ob


def aim(ob: bpy.types.Object, target: Vector) -> None:
    """Turn a camera or light towards ``target``."""
    ob.rotation_euler = (target - ob.location).to_track_quat("-Z", "Y").to_euler()


def sky(scene, color, strength: float = 1.0) -> None:
    """Even light from everywhere."""
    scene.world = bpy.data.worlds.new("Picture World")
    scene.world.use_nodes = True
    background = scene.world.node_tree.nodes["Background"]
    background.inputs["Color"].default_value = (*color, 1)
    background.inputs["Strength"].default_value = strength


def render_scene(
    scene, path: Path, resolution: tuple[int, int], samples: int, percent: int = 100, *, bounces=2, denoised=True
) -> None:
    """Render with Cycles on the CPU, as PNG, in the materials' colors. Other settings of ``scene`` stay."""
    scene.render.engine = "CYCLES"
    scene.cycles.device = "CPU"
    scene.cycles.samples, scene.cycles.max_bounces = samples, bounces
    scene.cycles.use_denoising = denoised and _cycles.with_openimagedenoise
    scene.view_settings.view_transform = "Standard"
    scene.render.resolution_x, scene.render.resolution_y = resolution
    scene.render.resolution_percentage = percent
    scene.render.image_settings.file_format = "PNG"
    scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True, scene=scene.name)


def render(path: Path, meshes: dict, samples: int, percent: int, *, height: float, direction, apart=APART) -> None:
    """The ``meshes`` beside each other, seen from ``direction`` orthographic, the picture ``height`` high.

    They are in front of the plain background."""
    scene = bpy.data.scenes.new("Picture")
    width = height * RESOLUTION[0] / RESOLUTION[1]
    back = Vector(direction).normalized()
    right = Vector((0, 0, 1)).cross(back).normalized()
    for index, mesh in enumerate(meshes.values()):
        link(scene, mesh.name, mesh, right * (index - (len(meshes) - 1) / 2) * apart * width)
    camera = bpy.data.cameras.new("Picture Camera")
    camera.type = "ORTHO"
    camera.ortho_scale = width
    scene.camera = link(scene, "Picture Camera", camera, 30 * back - Vector((0, 0, 0.06 * height)))
    aim(scene.camera, Vector((0, 0, -0.06 * height)))
    for place, energy in (((-4, -6, 7), 3.0), ((6, -4, 2), 0.9)):
        sun = bpy.data.lights.new("Picture Sun", "SUN")
        sun.energy, sun.angle = energy, radians(12)
        aim(link(scene, "Picture Sun", sun, Vector(place)), Vector((0, 0, 0)))
    sky(scene, (0.30, 0.36, 0.46))
    scene.render.film_transparent = True
    scene.render.image_settings.color_mode = "RGBA"
    render_scene(scene, path, RESOLUTION, samples, percent)
    picture = plt.imread(path)
    covered = picture[..., 3:]
    plt.imsave(path, np.clip(picture[..., :3] * covered + np.array(to_rgb(BACKGROUND)) * (1 - covered), 0, 1))


# Captions and plots


def compose(
    path: str,
    captions: list[tuple[str, str]],
    largest: float = 0.0,
    label: str = "",
    apart: float = 0.325,
    up: float = 0.0,
) -> None:
    """Write the ``captions`` (title, line below) and, with a ``label``, a color bar from 0 to ``largest`` onto the
    picture.

    apart: from one caption to the next, as a share of the picture's width. Where that is little, the color bar is below
    the captions. up: how much higher than usual they are, as a share of the height."""
    picture = plt.imread(path)
    height, width = picture.shape[:2]
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(picture, aspect="auto")
    axes.axis("off")
    wide = apart > 0.3
    # Readable where a page shows the picture at half its width.
    size, line_size, up = (21, 15, up) if wide else (14, 10, up + 0.04)
    for index, (title, line) in enumerate(captions):
        x = 0.5 + (index - (len(captions) - 1) / 2) * apart
        figure.text(x, 0.14 + up, title, color=TEXT, fontsize=size, fontweight="bold", ha="center")
        figure.text(x, 0.085 + up, line, color=TEXT, fontsize=line_size, ha="center")
    if label:
        bar = figure.add_axes((0.715, 0.93, 0.22, 0.02) if wide else (0.39, 0.085, 0.22, 0.015))
        scale = plt.cm.ScalarMappable(Normalize(0, largest), COLORS)
        colorbar = figure.colorbar(scale, cax=bar, orientation="horizontal", extend="max")
        colorbar.outline.set_visible(False)
        colorbar.ax.tick_params(colors=TEXT, labelsize=line_size, length=0)
        colorbar.set_label(label, color=TEXT, fontsize=line_size)
    figure.savefig(path)
    plt.close(figure)


def dark(axes, title: str, unit: str) -> None:
    """The look of a plot beside the pictures: its title, and the ``unit`` of its x axis."""
    axes.set_facecolor(BACKGROUND)
    axes.set_xlabel(unit, color=MUTED)
    axes.set_title(title, color=TEXT, loc="left", fontsize=14, fontweight="bold", pad=14)
    axes.tick_params(colors=MUTED, which="both")
    axes.grid(axis="y", color="#344054", linewidth=0.6)
    axes.spines[:].set_visible(False)
