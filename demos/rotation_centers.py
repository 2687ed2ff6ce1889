# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of linear blend, dual quaternion and center-of-rotation skinning side by side (Cycles on the CPU).

Run by `python3 build.py docs`. Leaves rotation_centers_cuboid.png and,
where the human rig is beside the checkout, rotation_centers_arm.png.
"""

import argparse
import sys
from math import radians
from pathlib import Path

import bpy
import numpy as np
from mathutils import Vector

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import _cycles  # exists once bpy was imported
import flag_picture
import rotation_center_poses as poses
from matplotlib import pyplot as plt

from skinning_tools.core.deform import METHODS

NAMES = {"LBS": "Linear blend", "DQS": "Dual quaternion", "CRS": "Centers of rotation"}
COLORS = {"LBS": (0.72, 0.22, 0.06), "DQS": (0.06, 0.25, 0.60), "CRS": (0.12, 0.42, 0.10)}
RESOLUTION = 1600, 600
APART = 0.32  # of the picture's width


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "demo", help="folder for the pictures")
    parser.add_argument("--samples", type=int, default=32, help="of Cycles for each pixel")
    parser.add_argument("--percent", type=int, default=100, help="of the resolution, to see the pictures sooner")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    print(draw_cuboid(options.output / "rotation_centers_cuboid.png", options.samples, options.percent), flush=True)
    if poses.HUMAN.is_file():
        print(draw_arm(options.output / "rotation_centers_arm.png", options.samples, options.percent), flush=True)
    else:
        print("rotation_centers_arm.png left out: the human rig is not beside the checkout (../shared/data)")
    return 0


def draw_cuboid(path: Path, samples: int, percent: int) -> Path:
    pose = poses.bar(poses.TWIST, poses.BEND)
    bulges = {
        method: f"{poses.bulge(pose, method, poses.BEND):+.0f}".replace("-", "\N{MINUS SIGN}") for method in METHODS
    }
    lines = {
        method: f"volume {pose.kept_volume(method):.0f} %, bulge {bulges[method]} % of the width" for method in METHODS
    }
    middle = np.array([2.15, 0.0, 0.55])
    meshes = {}
    for method, points in pose.points.items():
        mesh = build(method, points - middle, pose.triangles, pose.rest, checks=2.0)
        mesh.set_sharp_from_angle(angle=radians(40))
        meshes[method] = mesh
    render(path, meshes, samples, percent, height=5.9, direction=(0.25, -1.0, 0.42))
    write_captions(path, lines)
    return path


def draw_arm(path: Path, samples: int, percent: int) -> Path:
    pose, chosen = poses.human_arm()
    used, triangles = np.unique(pose.triangles[chosen], return_inverse=True)
    # Its Y points up, Blender's Z does.
    rest = turned_up(pose.rest[used])
    shown = turned_up(pose.points["CRS"][used])
    middle = 0.5 * (shown.min(axis=0) + shown.max(axis=0))
    meshes = {
        method: build(method, turned_up(points[used]) - middle, triangles.reshape(-1, 3), rest, checks=6.0)
        for method, points in pose.points.items()
    }
    render(path, meshes, samples, percent, height=4.6, direction=(1.0, -0.4, 0.3))
    write_captions(path, dict.fromkeys(METHODS, "elbow turned 75°, hand twisted 160°"))
    return path


def turned_up(points: np.ndarray) -> np.ndarray:
    return points[:, [0, 2, 1]] * [1.0, -1.0, 1.0]


def build(method: str, points, triangles, rest, checks: float) -> bpy.types.Mesh:
    """A mesh whose checks show how each place was moved: they lie in the space of the rest pose."""
    mesh = bpy.data.meshes.new(method)
    mesh.from_pydata(points.tolist(), [], triangles.tolist())
    mesh.shade_smooth()
    mesh.attributes.new("Rest", "FLOAT_VECTOR", "POINT").data.foreach_set("vector", rest.astype(np.float32).ravel())
    material = flag_picture.plain(method, COLORS[method], roughness=0.45)
    tree = material.node_tree
    place, pattern = tree.nodes.new("ShaderNodeAttribute"), tree.nodes.new("ShaderNodeTexChecker")
    place.attribute_name = "Rest"
    pattern.inputs["Scale"].default_value = checks
    pattern.inputs["Color1"].default_value = (*COLORS[method], 1)
    pattern.inputs["Color2"].default_value = (0.80, 0.78, 0.74, 1)
    tree.links.new(place.outputs["Vector"], pattern.inputs["Vector"])
    tree.links.new(pattern.outputs["Color"], tree.nodes["Principled BSDF"].inputs["Base Color"])
    mesh.materials.append(material)
    return mesh


def render(path: Path, meshes: dict, samples: int, percent: int, *, height: float, direction, apart=APART) -> None:
    """The ``meshes`` beside each other, seen from ``direction`` orthographic, the picture ``height`` high."""
    scene = bpy.data.scenes.new("Picture")
    width = height * RESOLUTION[0] / RESOLUTION[1]
    back = Vector(direction).normalized()
    right = Vector((0, 0, 1)).cross(back).normalized()
    for index, mesh in enumerate(meshes.values()):
        flag_picture.link(scene, mesh.name, mesh, right * (index - (len(meshes) - 1) / 2) * apart * width)
    camera = bpy.data.cameras.new("Picture Camera")
    camera.type = "ORTHO"
    camera.ortho_scale = width
    scene.camera = flag_picture.link(scene, "Picture Camera", camera, 30 * back - Vector((0, 0, 0.06 * height)))
    flag_picture.aim(scene.camera, Vector((0, 0, -0.06 * height)))
    for place, energy in (((-4, -6, 7), 3.0), ((6, -4, 2), 0.9)):
        sun = bpy.data.lights.new("Picture Sun", "SUN")
        sun.energy, sun.angle = energy, radians(12)
        flag_picture.aim(flag_picture.link(scene, "Picture Sun", sun, Vector(place)), Vector((0, 0, 0)))
    scene.world = bpy.data.worlds.new("Picture World")
    scene.world.use_nodes = True
    scene.world.node_tree.nodes["Background"].inputs["Color"].default_value = (0.30, 0.36, 0.46, 1)
    scene.render.film_transparent = True
    scene.render.engine = "CYCLES"
    scene.cycles.device = "CPU"
    scene.cycles.samples = samples
    scene.cycles.max_bounces = 2
    scene.cycles.use_denoising = _cycles.with_openimagedenoise
    scene.view_settings.view_transform = "Standard"
    scene.render.resolution_x, scene.render.resolution_y = RESOLUTION
    scene.render.resolution_percentage = percent
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGBA"
    scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True, scene=scene.name)


def write_captions(path: Path, lines: dict[str, str]) -> None:
    """Names of the methods and a line below each, on the picture in front of a plain background."""
    width, height = (pixels / 100 for pixels in RESOLUTION)
    figure = plt.figure(figsize=(width, height), dpi=100, facecolor=flag_picture.BACKGROUND)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(plt.imread(path), aspect="auto")
    axes.axis("off")
    for index, (method, line) in enumerate(lines.items()):
        x = 0.5 + (index - 1) * APART
        figure.text(x, 0.10, NAMES[method], color=flag_picture.TEXT, fontsize=17, fontweight="bold", ha="center")
        figure.text(x, 0.05, line, color=flag_picture.MUTED, fontsize=12, ha="center")
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
