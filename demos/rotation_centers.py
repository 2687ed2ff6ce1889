# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of linear blend, dual quaternion and center-of-rotation skinning side by side (Cycles on the CPU).

Run by `python3 build.py docs`. Leaves rotation_centers_cuboid.png and,
where the human rig is next to the checkout, rotation_centers_arm.png.
"""

import sys
from math import radians
from pathlib import Path

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import rendering
import rotation_center_poses as poses
from human_rig import HUMAN
from program import leave, parse_options
from rendering import turned_up

from skinning_tools.core.deform import METHODS

NAMES = {"LBS": "Linear blend", "DQS": "Dual quaternion", "CRS": "Centers of rotation"}
COLORS = {"LBS": (0.72, 0.22, 0.06), "DQS": (0.06, 0.25, 0.60), "CRS": (0.12, 0.42, 0.10)}


def main() -> int:
    options = parse_options(__doc__)
    print(draw_cuboid(options.output / "rotation_centers_cuboid.png", options.samples, options.percent), flush=True)
    if HUMAN.is_file():
        print(draw_arm(options.output / "rotation_centers_arm.png", options.samples, options.percent), flush=True)
    else:
        print("rotation_centers_arm.png left out: the human rig is not next to the checkout (../shared/data)")
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
    rendering.render(path, meshes, samples, percent, height=5.9, direction=(0.25, -1.0, 0.42))
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
    rendering.render(path, meshes, samples, percent, height=4.6, direction=(1.0, -0.4, 0.3))
    write_captions(path, dict.fromkeys(METHODS, "elbow turned 75°, hand twisted 160°"))
    return path


def build(method: str, points, triangles, rest, checks: float) -> bpy.types.Mesh:
    """A mesh with checks in the space of the rest pose, which show how each point moved."""
    mesh = rendering.shape(points, triangles, method)
    mesh.attributes.new("Rest", "FLOAT_VECTOR", "POINT").data.foreach_set("vector", rest.astype(np.float32).ravel())
    material = rendering.plain(method, COLORS[method], roughness=0.45)
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


def write_captions(path: Path, lines: dict[str, str]) -> None:
    """Names of the methods, and a line below each."""
    captions = [(NAMES[method], line) for method, line in lines.items()]
    rendering.compose(str(path), captions, apart=rendering.APART, up=-0.035)


if __name__ == "__main__":
    leave(main())
