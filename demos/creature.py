# SPDX-License-Identifier: GPL-3.0-or-later
"""A four-legged creature of tubes that walks, with a skeleton, weights and a soft belly, made in code."""

from dataclasses import dataclass
from math import pi

import bpy
import numpy as np
from mathutils import Euler, Vector

from demos.objects import armature
from skinning_tools.core.binding.bind import bind
from skinning_tools.core.binding.types import Body, Skeleton
from tests.blender import scenes

FRAMES = 40
FRONT, BACK, SIDE = 0.62, -0.78, 0.27

# Name: parent, head, tail, thickness of the flesh at the head and at the tail. Head to the right (x), z up.
BONES = {
    "spine": ("", (-0.30, 0, 1.20), (0.15, 0, 1.22), 0.30, 0.31),
    "chest": ("spine", (0.15, 0, 1.22), (0.62, 0, 1.25), 0.31, 0.29),
    "hip": ("spine", (-0.30, 0, 1.20), (-0.80, 0, 1.18), 0.30, 0.25),
    "neck": ("chest", (0.62, 0, 1.25), (1.00, 0, 1.72), 0.20, 0.14),
    "head": ("neck", (1.00, 0, 1.72), (1.45, 0, 1.62), 0.19, 0.11),
    "tail 1": ("hip", (-0.85, 0, 1.22), (-1.20, 0, 1.12), 0.11, 0.08),
    "tail 2": ("tail 1", (-1.20, 0, 1.12), (-1.50, 0, 0.95), 0.08, 0.065),
    "tail 3": ("tail 2", (-1.50, 0, 0.95), (-1.75, 0, 0.72), 0.065, 0.05),
}
LEG = (("upper", 1.08, 0.60, 0.15, 0.105), ("lower", 0.60, 0.16, 0.105, 0.085))
FOOT_LENGTH, SOLE = 0.20, 0.07


def _with_legs() -> dict:
    bones = dict(BONES)
    for place, x, parent in (("front", FRONT, "chest"), ("hind", BACK, "hip")):
        # Knees of the hind legs point backwards.
        bow = -0.06 if place == "hind" else 0.04
        for side, y in (("L", SIDE), ("R", -SIDE)):
            above, foot = parent, (x + FOOT_LENGTH, y, SOLE)
            for name, top, low, thick, thin in LEG:
                head = (x if name == "upper" else x + bow, y, top)
                tail = (x + bow if name == "upper" else x, y, low)
                bones[f"{place} {name}.{side}"] = (above, head, tail, thick, thin)
                above = f"{place} {name}.{side}"
            bones[f"{place} foot.{side}"] = (above, (x, y, LEG[1][2]), foot, 0.085, 0.08)
    return bones


ALL_BONES = _with_legs()


@dataclass(frozen=True, eq=False)
class Creature:
    """body: a mesh object that walks; rig: the armature that moves it, except for its belly's own motion."""

    body: bpy.types.Object
    rig: bpy.types.Object


def build(resolution: float = 0.045, soft: bool = True) -> Creature:
    """An empty file with the creature in it, FRAMES long. resolution: the length of its edges, meters; soft: whether
    its belly swings."""
    scenes.empty_scene()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, FRAMES
    rest, faces = flesh(resolution)
    body = scenes.mesh_object(rest, faces, name="Creature")
    body.data.shade_smooth()
    rig = skeleton()
    write_weights(body, *bind(_body(rest, faces), _skeleton()))
    body.modifiers.new("Armature", "ARMATURE").object = rig
    walk(rig)
    if soft:
        hang(body, rest)
    scene.frame_set(1)
    return Creature(body, rig)


@dataclass(frozen=True, eq=False)
class Skin:
    """The creature at rest as arrays: bones and weights (N, K) of its skeleton's bones, by binding."""

    body: Body
    skeleton: Skeleton
    bones: np.ndarray
    weights: np.ndarray


def bound_flesh(resolution: float = 0.045) -> Skin:
    """The creature as arrays; leaves an empty file."""
    scenes.empty_scene()
    body, skeleton = _body(*flesh(resolution)), _skeleton()
    return Skin(body, skeleton, *bind(body, skeleton))


def flesh(resolution: float) -> tuple[np.ndarray, list]:
    """Vertices (N, 3) and quads of the union of all tubes, even and smooth."""
    parts = [_tube(*bone[1:]) for bone in ALL_BONES.values()]
    counts = np.cumsum([0] + [len(points) for points, _ in parts])
    points = np.concatenate([points for points, _ in parts])
    faces = [[int(i + start) for i in face] for (_, own), start in zip(parts, counts, strict=False) for face in own]
    raw = scenes.mesh_object(points, faces, name="Tubes")
    remesh = raw.modifiers.new("Remesh", "REMESH")
    remesh.mode, remesh.voxel_size = "VOXEL", resolution
    smooth = raw.modifiers.new("Smooth", "CORRECTIVE_SMOOTH")
    smooth.rest_source, smooth.use_only_smooth, smooth.iterations, smooth.factor = "ORCO", True, 12, 0.5
    mesh = bpy.data.meshes.new_from_object(raw.evaluated_get(bpy.context.evaluated_depsgraph_get()))
    places = np.array([vertex.co for vertex in mesh.vertices], dtype=np.float64)
    quads = [list(polygon.vertices) for polygon in mesh.polygons]
    bpy.data.objects.remove(raw)
    bpy.data.meshes.remove(mesh)
    return places, quads


def _tube(head, tail, thick: float, thin: float, sides: int = 24, steps: int = 8) -> tuple[np.ndarray, list]:
    """A cone with round ends from ``head`` to ``tail``: points (n, 3), faces outwards."""
    head, tail = np.array(head, float), np.array(tail, float)
    length = np.linalg.norm(tail - head)
    along = (tail - head) / length
    across = np.cross(along, [0.0, 1.0, 0.0] if abs(along[1]) < 0.9 else [1.0, 0.0, 0.0])
    across /= np.linalg.norm(across)
    other = np.cross(along, across)
    # From pole to pole, the tube itself in the middle.
    down, up = np.linspace(-pi / 2, 0, steps)[1:], np.linspace(0, pi / 2, steps)[:-1]
    rows = [(thick * np.sin(a), thick * np.cos(a)) for a in down]
    rows += [(length + thin * np.sin(a), thin * np.cos(a)) for a in up]
    turn = 2 * pi * np.arange(sides) / sides
    circle = np.cos(turn)[:, None] * across + np.sin(turn)[:, None] * other
    rings = [head + place * along + radius * circle for place, radius in rows]
    points = np.concatenate([[head - thick * along], *rings, [tail + thin * along]])
    last, count = len(points) - 1, len(rings)
    faces = [[0, 1 + (k + 1) % sides, 1 + k] for k in range(sides)]
    for ring in range(count - 1):
        low, high = 1 + ring * sides, 1 + (ring + 1) * sides
        faces += [[low + k, low + (k + 1) % sides, high + (k + 1) % sides, high + k] for k in range(sides)]
    faces += [[last - sides + k, last - sides + (k + 1) % sides, last] for k in range(sides)]
    return points, faces


def skeleton(name: str = "Skeleton") -> bpy.types.Object:
    """The armature of ALL_BONES."""
    bones = _skeleton()
    return armature(name, bones.names, bones.heads, bones.tails, bones.parents)


def nearest_bones(body) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, 1) of the one bone that is nearest to each vertex, with weight 1."""
    rest = np.array([vertex.co for vertex in body.data.vertices], dtype=np.float64)
    return bind(_body(rest, [list(polygon.vertices) for polygon in body.data.polygons]), _skeleton(), "RIGID")


def write_weights(body, bones: np.ndarray, weights: np.ndarray) -> None:
    """Vertex groups named as ALL_BONES, from rows (N, K)."""
    body.vertex_groups.clear()
    groups = [body.vertex_groups.new(name=name) for name in ALL_BONES]
    for vertex, (row, shares) in enumerate(zip(bones, weights, strict=True)):
        for bone, share in zip(row, shares, strict=True):
            if share > 0:
                groups[bone].add([vertex], float(share), "REPLACE")


def walk(rig) -> None:
    """Key a walk: the legs of a diagonal together, head and tail a little later."""
    for frame in range(1, FRAMES + 1):
        phase = 4 * pi * (frame - 1) / (FRAMES - 1)
        for name, bone in rig.pose.bones.items():
            bone.rotation_mode = "QUATERNION"
            bone.rotation_quaternion = turned(bone.bone, _angles(name, phase))
            bone.keyframe_insert("rotation_quaternion", frame=frame)
        spine = rig.pose.bones["spine"]
        spine.location = spine.bone.matrix_local.to_3x3().inverted() @ _swing(phase)
        spine.keyframe_insert("location", frame=frame)


def _swing(phase: float) -> Vector:
    return Vector((0.02 * np.sin(2 * phase), 0.03 * np.sin(phase), 0.03 * np.cos(2 * phase)))


def turned(bone, angles):
    """The pose bone's rotation for turns about the axes of the world, seen from rest."""
    rest = bone.matrix_local.to_3x3()
    return (rest.inverted() @ Euler(angles).to_matrix() @ rest).to_quaternion()


def _angles(name: str, phase: float) -> tuple[float, float, float]:
    """Radians about x, y and z."""
    part, _, side = name.partition(".")
    if part.startswith(("front", "hind")):
        step = phase + (pi if (side == "L") == part.startswith("front") else 0.0)
        if "upper" in part:
            return 0.06 * np.sin(step), 0.55 * np.sin(step), 0.0
        # A leg bends while it swings to the front.
        bend = 0.5 - 0.5 * np.cos(step + 0.4)
        if "lower" in part:
            return 0.0, (-0.75 if part.startswith("hind") else 0.75) * -bend, 0.0
        return 0.0, 0.5 * bend - 0.25 * np.sin(step), 0.0
    turns = {
        "spine": (0.05 * np.sin(phase), 0.04 * np.sin(2 * phase), 0.0),
        "chest": (0.06 * np.sin(phase + 0.3), 0.05 * np.sin(2 * phase + 0.5), 0.14 * np.sin(phase)),
        "hip": (-0.06 * np.sin(phase), 0.05 * np.sin(2 * phase), 0.14 * np.sin(phase + 2.8)),
        "neck": (0.0, 0.16 * np.sin(2 * phase + 0.8), 0.22 * np.sin(phase + 0.6)),
        "head": (0.10 * np.sin(phase), 0.20 * np.sin(2 * phase + 1.7), 0.24 * np.sin(phase + 1.4)),
        "tail 1": (0.0, 0.10 * np.sin(2 * phase), 0.35 * np.sin(phase + 2.2)),
        "tail 2": (0.0, 0.12 * np.sin(2 * phase + 0.7), 0.40 * np.sin(phase + 1.5)),
        "tail 3": (0.0, 0.15 * np.sin(2 * phase + 1.4), 0.45 * np.sin(phase + 0.8)),
    }
    return turns[part]


def hang(body, rest: np.ndarray) -> None:
    """Shape keys that swing the belly sideways and up and down, which no bone does."""
    below = np.exp(
        -(((rest[:, 0] + 0.05) / 0.30) ** 2) - ((rest[:, 1] / 0.28) ** 2) - ((rest[:, 2] - 0.92) / 0.16) ** 2
    )
    body.shape_key_add(name="Basis")
    for name, shift, speed, lag in (("Belly Down", (0, 0, -0.13), 2, 0.9), ("Belly Side", (0, 0.15, 0.02), 1, 0.5)):
        key = body.shape_key_add(name=name)
        key.slider_min = -1.0
        key.data.foreach_set("co", (rest + below[:, None] * shift).astype(np.float32).ravel())
        for frame in range(1, FRAMES + 1):
            key.value = np.sin(speed * 4 * pi * (frame - 1) / (FRAMES - 1) - lag)
            key.keyframe_insert("value", frame=frame)


def _body(rest, faces) -> Body:
    quads = np.array(faces)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    sides = np.stack([quads, np.roll(quads, -1, axis=1)], axis=-1).reshape(-1, 2)
    return Body(rest, triangles, sides)


def _skeleton() -> Skeleton:
    names = list(ALL_BONES)
    parents = np.array([names.index(bone[0]) if bone[0] else -1 for bone in ALL_BONES.values()])
    heads, tails = (np.array([bone[i] for bone in ALL_BONES.values()], float) for i in (1, 2))
    return Skeleton(heads, tails, parents, tuple(names))
