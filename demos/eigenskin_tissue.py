# SPDX-License-Identifier: GPL-3.0-or-later
"""A limb of soft tissue, simulated by Blender's soft body, and its corrections by the operators.

The tissue is a lattice of springs around two bones, which hold it along their middle and at the ends of the limb; the
skin follows the lattice. Up to about 70° of bending its shape is a matter of the pose alone. Beyond, the inner side
gives way all at once, and on the way back at a smaller angle.
"""

from dataclasses import dataclass
from math import radians

import bpy
import numpy as np
from mathutils import Quaternion, Vector

from demos.objects import armature, triangles
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.features.eigenskin.writer import mute_eigenskin
from tests.blender import scenes

HALF, CAP = 2.0, 0.4
JOINT = "lower"

# The largest angle, in degrees, up to which the tissue's shape depends on the pose only.
LARGEST = 66.0

# Frames for 20°, and frames for the tissue to settle.
TRAVEL, HOLD = 4, 16

# Points of the lattice along the limb and across it, and how thick it is.
ALONG, ACROSS, THICKNESS = 17, 5, 1.0

# A turn of the joint, in radians, as a rotation vector in the bone's own space: x bends it, y twists it.
Turn = tuple[float, float, float]


@dataclass(eq=False)
class SoftLimb:
    """body: skinned, to be corrected. target: the same skin on the simulated ``tissue``. All are in a new scene."""

    body: bpy.types.Object
    target: bpy.types.Object
    tissue: bpy.types.Object
    rig: bpy.types.Object

    @classmethod
    def build(cls, rings: int = 40, segments: int = 24) -> "SoftLimb":
        scenes.empty_scene()
        rig = armature("Rig", ("upper", JOINT), ((-HALF, 0, 0), (0, 0, 0)), ((0, 0, 0), (HALF, 0, 0)), (-1, 0))
        vertices, faces = limb(rings, segments)
        body = scenes.mesh_object(vertices, faces, name="Body")
        body.data.shade_smooth()
        lower = _step(vertices[:, 0], -0.45, 0.45)
        write_weights(body, ["upper", JOINT], np.tile([0, 1], (len(vertices), 1)), np.column_stack([1 - lower, lower]))
        target = body.copy()
        target.name, target.data = "Target", body.data.copy()
        scenes.link(target)
        body.modifiers.new("Armature", "ARMATURE").object = rig
        return cls(body, target, _add_tissue(target, rig), rig)

    def pose_joint(self, axes, smallest: float, largest: float, steps: int, hold: int = HOLD) -> int:
        """Key the training poses, in degrees about each of ``axes``; returns the last frame."""
        self._activate(self.rig)
        bpy.ops.skinning.eigenskin_pose_joints(
            bone_names=JOINT,
            axes=axes,
            angle_min=radians(smallest),
            angle_max=radians(largest),
            steps=steps,
            frames_per_pose=TRAVEL,
            hold_frames=hold,
        )
        return self._last_frame()

    def key_turns(self, turns: list[Turn], hold: int = HOLD) -> list[int]:
        """Key further poses after the existing ones; returns the frames at which they have settled."""
        bone, frame = self.rig.pose.bones[JOINT], self._last_frame()
        before, frames = Quaternion(), []
        for turn in turns:
            turned = _quaternion(turn)
            # No faster than on the way through the training poses.
            way = before.rotation_difference(turned).angle
            frame += max(TRAVEL, round(TRAVEL * way / radians(20)))
            for at in (frame, frame + hold):
                bone.rotation_quaternion = turned
                bone.keyframe_insert("rotation_quaternion", frame=at)
            before, frame = turned, frame + hold
            frames.append(frame)
        self.rig.data.update_tag()
        return frames

    def add_examples(self) -> None:
        """Simulate the training poses and store them as examples."""
        self._let_simulate(self._last_frame())
        self._activate(self.body)
        self.target.select_set(True)
        bpy.ops.skinning.eigenskin_add_frames()

    def simulated(self, frames: list[int]) -> np.ndarray:
        """(F, N, 3) the tissue at ascending ``frames``; call it after ``add_examples``, which simulates the first."""
        found = []
        for frame in range(1, frames[-1] + 1):
            bpy.context.scene.frame_set(frame)
            if frame in frames:
                found.append(scenes.evaluated_positions(self.target))
        return np.array(found)

    def correct(self, components: int) -> None:
        self._activate(self.body)
        bpy.ops.skinning.build_eigenskin(components=components)

    def shown(self, turns: list[Turn], corrected: bool = True) -> np.ndarray:
        """(F, N, 3) the body as Blender shows it with the joint turned. Ends the animation of the joint."""
        mute_eigenskin(self.body, not corrected)
        self.target.hide_viewport = self.tissue.hide_viewport = True
        self.rig.animation_data_clear()
        found = []
        for turn in turns:
            self.rig.pose.bones[JOINT].rotation_quaternion = _quaternion(turn)
            bpy.context.view_layer.update()
            found.append(scenes.evaluated_positions(self.body))
        return np.array(found)

    @property
    def triangles(self) -> np.ndarray:
        """(T, 3)."""
        return triangles(self.body.data)

    @property
    def thickness(self) -> float:
        """The radius of the limb at rest where it bends."""
        rest = np.array([vertex.co for vertex in self.body.data.vertices])
        away = np.abs(rest[:, 0])
        return float(np.ptp(rest[away < away.min() + 1e-6, 2]))

    def _activate(self, object) -> None:
        for other in bpy.context.view_layer.objects:
            other.select_set(other == object)
        bpy.context.view_layer.objects.active = object

    def _last_frame(self) -> int:
        return round(self.rig.animation_data.action.frame_range[1])

    def _let_simulate(self, last: int) -> None:
        bpy.context.scene.frame_start, bpy.context.scene.frame_end = 1, last
        cache = self.tissue.modifiers["Softbody"].point_cache
        cache.frame_start, cache.frame_end = 1, last


def limb(rings: int, segments: int) -> tuple[np.ndarray, list]:
    """Vertices (N, 3) and faces of a closed limb along x, thicker where muscles would be."""
    rounds = np.radians([15, 30, 45, 60, 75])
    tip = HALF + CAP * np.sin(rounds)
    x = np.concatenate([-tip[::-1], np.linspace(-HALF, HALF, rings), tip])
    upper = 0.4 + 0.1 * np.exp(-(((x + 1.1) / 0.6) ** 2))
    lower = 0.28 + 0.14 * np.exp(-(((x - 0.7) / 0.7) ** 2))
    share = _step(x, -0.8, 0.8)
    radius = (1 - share) * upper + share * lower
    radius[: len(rounds)] *= np.cos(rounds)[::-1]
    radius[-len(rounds) :] *= np.cos(rounds)
    angle = np.arange(segments) * 2 * np.pi / segments
    around = radius[:, None, None] * np.stack([np.zeros(segments), np.cos(angle), np.sin(angle)], axis=-1)
    around[..., 0] = x[:, None]
    vertices = np.vstack([around.reshape(-1, 3), [[-HALF - CAP, 0, 0], [HALF + CAP, 0, 0]]])
    corners = np.arange(len(x) * segments).reshape(len(x), segments)
    turned = np.roll(corners, -1, axis=1)
    faces = np.stack([corners[:-1], turned[:-1], turned[1:], corners[1:]], axis=-1).reshape(-1, 4).tolist()
    first, last = len(vertices) - 2, len(vertices) - 1
    faces += [(first, after, before) for before, after in zip(corners[0].tolist(), turned[0].tolist(), strict=True)]
    faces += [(last, before, after) for before, after in zip(corners[-1].tolist(), turned[-1].tolist(), strict=True)]
    return vertices, faces


def _add_tissue(target, rig) -> bpy.types.Object:
    """The object whose soft body moves ``target``."""
    lattice = bpy.data.lattices.new("Tissue")
    lattice.points_u, lattice.points_v, lattice.points_w = ALONG, ACROSS, ACROSS
    tissue = scenes.link(bpy.data.objects.new("Tissue", lattice))
    size = np.array([2 * (HALF + CAP), THICKNESS, THICKNESS])
    points = np.array([point.co for point in lattice.points])
    tissue.scale = size / np.ptp(points, axis=0)
    points *= tissue.scale
    lower = _step(points[:, 0], -0.45, 0.45)
    away, from_bone = np.abs(points[:, 0]), np.hypot(points[:, 1], points[:, 2])
    held = np.maximum(_step(away, 1.6, 2.3), (from_bone < 0.1) * _step(away, 0.1, 0.3))
    for name, weights in (("upper", 1 - lower), (JOINT, lower), ("held", held)):
        group = tissue.vertex_groups.new(name=name)
        for index, weight in enumerate(weights.tolist()):
            group.add([index], weight, "REPLACE")
    tissue.modifiers.new("Armature", "ARMATURE").object = rig
    soft = tissue.modifiers.new("Softbody", "SOFT_BODY").settings
    soft.effector_weights.gravity = 0.0
    # So viscous that it creeps into its shape, without swinging past it.
    soft.mass, soft.friction, soft.damping = 0.5, 20.0, 50.0
    soft.use_goal, soft.vertex_group_goal = True, "held"
    soft.goal_default, soft.goal_min, soft.goal_max = 1.0, 0.0, 1.0
    soft.goal_spring, soft.goal_friction = 0.9, 8.0
    soft.use_edges, soft.use_stiff_quads = True, True
    soft.pull, soft.push, soft.bend, soft.shear = 0.9, 0.8, 10.0, 1.0
    target.modifiers.new("Tissue", "LATTICE").object = tissue
    return tissue


def _quaternion(turn: Turn) -> Quaternion:
    vector = Vector(turn)
    return Quaternion(vector, vector.length) if vector.length else Quaternion()


def _step(values: np.ndarray, start: float, end: float) -> np.ndarray:
    """0 up to ``start``, 1 from ``end`` on, smooth in between."""
    share = np.clip((values - start) / (end - start), 0, 1)
    return share * share * (3 - 2 * share)
