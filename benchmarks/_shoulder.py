# SPDX-License-Identifier: GPL-3.0-or-later
"""What the shoulder of the human rig keeps in Blender, by its own bones and with helpers: volume, and cross-section."""

import bpy
import numpy as np
from mathutils import Vector

from skinning_tools.blender.skin_reader import mesh_triangles
from skinning_tools.blender.vertex_groups import read_weights
from tests.blender import joint_helper_scenes, scenes

CHEST, ARM, FOREARM = "spine01", "upperarm01.L", "lowerarm01.L"
# Directions of the left arm: x to the character's left, y up, z to its front.
POSES = {
    "raised 90°": (1.0, 0.0, 0.0),
    "raised 150°": (np.sin(np.radians(150)), -np.cos(np.radians(150)), 0.0),
    "forward": (0.0, 0.0, 1.0),
    "reach across": (-0.6, 0.0, 0.8),
}


def shoulders(human) -> dict[str, dict[str, tuple[float, float]]]:
    """By what is added and by pose: the change of the body's volume in liters, and the area, relative to the rest pose,
    of the ring around the shoulder on which the arm's bones have half of the weight."""
    import skinning_tools

    skinning_tools.register()
    body, rig = joint_helper_scenes.human(human)
    rest, triangles = scenes.evaluated_positions(body).astype(float), mesh_triangles(body.data)
    ring = _ring(body, rig, triangles)
    bones = rig.data.bones
    straight = (bones[FOREARM].head_local - bones[ARM].head_local).normalized()

    def kept() -> dict[str, tuple[float, float]]:
        found = {}
        for label, direction in POSES.items():
            _point(rig, straight, Vector(direction).normalized())
            points = scenes.evaluated_positions(body).astype(float)
            change = _volume(points, triangles) - _volume(rest, triangles)
            found[label] = change, _area(points, ring) / _area(rest, ring)
        return found

    results = {"its own bones": kept()}
    for preset in ("CLAVICLE", "SCAPULA"):
        bpy.ops.skinning.add_bulge_bone(bone=CHEST, driver_bone=ARM, preset=preset)
        results["clavicle" if preset == "CLAVICLE" else "clavicle and scapula"] = kept()
    bpy.ops.skinning.add_bone_links(joints=ARM, count=3)
    results["the same, and three links"] = kept()
    return results


def _point(rig, straight: Vector, direction: Vector) -> None:
    """Turn the arm the shortest way from its direction at rest."""
    bone = rig.pose.bones[ARM]
    axes = bone.bone.matrix_local.to_3x3()
    bone.rotation_mode = "QUATERNION"
    turn = straight.rotation_difference(direction).to_matrix()
    bone.rotation_quaternion = (axes.transposed() @ turn @ axes).to_quaternion()
    bpy.context.view_layer.update()


def _volume(points: np.ndarray, triangles: np.ndarray) -> float:
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    return float(np.einsum("ij,ij->", np.cross(a, b), c)) / 6


def _ring(body, rig, triangles: np.ndarray) -> tuple[np.ndarray, ...]:
    """The line on the skin on which the arm's bones have half of the weight, as directed pieces: the two edges (S, 2)
    on which each begins and ends, and how far along these."""
    arm = [ARM, *(bone.name for bone in rig.data.bones[ARM].children_recursive)]
    above = read_weights(body, arm)[1].sum(axis=1) - 0.5
    sides = triangles[:, [[0, 1], [1, 2], [2, 0]]]
    first, second = above[sides].transpose(2, 0, 1)
    rising, falling = (first < 0) & (second >= 0), (first >= 0) & (second < 0)
    cut = rising.any(axis=1)
    pieces = []
    for crossing in (rising, falling):
        edges = sides[cut, crossing[cut].argmax(axis=1)]
        values = above[edges]
        pieces += [edges, values[:, 0] / (values[:, 0] - values[:, 1])]
    return tuple(pieces)


def _area(points: np.ndarray, ring: tuple[np.ndarray, ...]) -> float:
    """The area of the ring's shadow in the direction in which that is largest."""
    edges, share, other_edges, other_share = ring
    begin, end = (
        points[pair[:, 0]] * (1 - part[:, None]) + points[pair[:, 1]] * part[:, None]
        for pair, part in ((edges, share), (other_edges, other_share))
    )
    return float(np.linalg.norm(np.cross(begin - begin[0], end - begin[0]).sum(axis=0))) / 2
