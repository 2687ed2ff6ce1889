# SPDX-License-Identifier: GPL-3.0-or-later
"""EigenSkin inside Blender: errors on a soft limb, and building, playing and sizes on the human rig."""

import time

import bpy
import eigenskin_human as human
import numpy as np
from eigenskin_tissue import LARGEST, SoftLimb
from mathutils import Quaternion, Vector

import skinning_tools
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.core.deform import skin_frame
from skinning_tools.core.eigenskin import EigenSkinSettings, build_eigenskin, example_errors
from skinning_tools.features.eigenskin.drivers import drivers_of
from skinning_tools.features.eigenskin.examples import current_pose, read_examples, read_rig, store_example
from skinning_tools.features.eigenskin.record import eigenskin_record
from skinning_tools.features.eigenskin.writer import mute_eigenskin, write_eigenskin
from tests.blender import scenes

UNSEEN = 25

# Degrees; on the way to this angle the soft limb folds.
FOLDED = 120.0

# Examples of every joint of the human rig, in degrees: about one axis, or about three.
HINGE_TURNS, BALL_TURNS = (-60, -40, -20, 20, 40, 60), (-40, 40)

# Consecutive updates before the next variant.
_ROUND = 8

_POSES = 100


def tissue(most: int) -> list[tuple[str, int, list[float], list[float]]]:
    """(joint, examples, errors at the examples, errors at UNSEEN other poses) of the soft limb with 0 to ``most``
    components, relative to plain linear blending: bent about one axis, about two and twisted, and bent so far about
    one that its inner side folds all at once."""
    skinning_tools.register()
    random = np.random.default_rng(0)
    rows = []
    for name, axis_count, smallest, largest, steps in (
        ("hinge", 1, -LARGEST, LARGEST, 3),
        ("ball", 3, -LARGEST, LARGEST, 3),
        ("hinge that folds", 1, 0.0, FOLDED, 6),
    ):
        limb = SoftLimb.build()
        limb.pose_joint([axis < axis_count for axis in range(3)], smallest, largest, steps)
        angles = np.radians(random.uniform(smallest, largest, UNSEEN))
        turns = sorted(tuple(angle * np.eye(3)[index % axis_count]) for index, angle in enumerate(angles))
        frames = limb.key_turns(turns)
        limb.add_examples()
        wanted = limb.simulated(frames)
        items = limb.rig.skinning_eigenskin.examples
        seen, unseen = [1.0], [1.0]
        for components in range(1, most + 1):
            limb.correct(components)
            shown, plain = limb.shown(turns), limb.shown(turns, corrected=False)
            before, after = ([getattr(item, name) for item in items] for name in ("error_before", "error_after"))
            seen.append(np.linalg.norm(after) / np.linalg.norm(before))
            unseen.append(np.linalg.norm(shown - wanted) / np.linalg.norm(plain - wanted))
        rows.append((name, len(items), seen, unseen))
    return rows


def build_stages(runs: int) -> tuple[list[tuple[str, list[float], list[float]]], str]:
    """(stage, seconds of the processor, seconds on the wall) of ``runs`` builds of the human rig, the last row for the
    whole operator; and a description of the build."""
    ob, _ = character_with_examples()
    rows: dict[str, list[np.ndarray]] = {}
    for _ in range(runs):
        for name, seconds in _build_by_stages(ob).items():
            rows.setdefault(name, []).append(seconds)
        clock = _Clock()
        bpy.ops.skinning.build_eigenskin()
        clock.tick("all, by the operator")
        rows.setdefault("all, by the operator", []).extend(clock.seconds.values())
    record = eigenskin_record(ob)
    what = (
        f"{len(bpy.data.objects['Rig'].skinning_eigenskin.examples)} examples of {len(record.supports)} joints, "
        f"{len(ob.data.vertices):,} vertices, {sum(len(support.keys) for support in record.supports)} shape keys"
    )
    return [(name, *np.transpose(seconds).tolist()) for name, seconds in rows.items()], what


def _build_by_stages(ob) -> dict[str, np.ndarray]:
    """Seconds of the processor and on the wall by the stage of a build."""
    clock = _Clock()
    skin, rig = read_rig(bpy.context, ob)
    examples = read_examples(ob, rig, skin.armature)
    clock.tick("reading the examples")
    model = build_eigenskin(rig, examples, EigenSkinSettings(), progress=lambda _, stage: clock.tick(stage.lower()))
    clock.tick("finding components")
    example_errors(rig, examples, model)
    clock.tick("measuring the errors")
    write_eigenskin(ob, skin.armature, rig, model)
    clock.tick("shape keys and drivers")
    return clock.seconds


def updates(repeats: int) -> tuple[list[tuple[str, str, int, list[float], list[float]]], str]:
    """(joints, what plays, drivers, seconds on the wall, seconds of the processor) of updates of the human rigin poses
    of all joints with corrections; and a description of the setup."""
    rows = []
    for joints, degrees, axis_count in (("hinges", HINGE_TURNS, 1), ("balls", BALL_TURNS, 3)):
        ob, rig_object = corrected_character(degrees, axis_count)
        curves = list(drivers_of(ob.data.shape_keys))
        bones = [rig_object.pose.bones[name] for name in human.MANY]
        random = np.random.default_rng(0)
        poses = [[_turned(vector) for vector in random.normal(scale=0.3, size=(len(bones), 3))] for _ in range(_POSES)]
        ways = {
            "linear blending": (True, True),
            "shape keys and drivers": (False, False),
            # With the values that the drivers left.
            "shape keys alone": (False, True),
        }
        seconds = {name: ([], []) for name in ways}
        for turn in range(-1, max(repeats // _ROUND, 1)):
            for name, (keys_muted, drivers_muted) in ways.items():
                mute_eigenskin(ob, keys_muted)
                for curve in curves:
                    curve.mute = drivers_muted
                for index in range(_ROUND + 2):
                    for bone, rotation in zip(bones, poses[(turn * _ROUND + index) % _POSES], strict=True):
                        bone.rotation_quaternion = rotation
                    start = time.perf_counter(), time.process_time()
                    bpy.context.view_layer.update()
                    ends = time.perf_counter(), time.process_time()
                    # The first updates process the changed muting.
                    if turn >= 0 and index >= 2:
                        for taken, end, begin in zip(seconds[name], ends, start, strict=True):
                            taken.append(end - begin)
        rows += [(joints, name, len(curves) if name.endswith("drivers") else 0, *seconds[name]) for name in ways]
    return rows, f"Blender {bpy.app.version_string}, {len(ob.data.vertices):,} vertices, {len(human.MANY)} joints"


def sizes() -> list[tuple[str, int, int, int]]:
    """(joint, vertices of its support, shape keys, vertices of the mesh) of the human rig's corrections."""
    ob, _ = corrected_character()
    rows = []
    for support in eigenskin_record(ob).supports:
        group = ob.vertex_groups[support.group].index
        count = sum(any(entry.group == group for entry in vertex.groups) for vertex in ob.data.vertices)
        rows.append((support.name, count, len(support.keys), len(ob.data.vertices)))
    return rows


def corrected_character(degrees=HINGE_TURNS, axis_count: int = 1) -> tuple[bpy.types.Object, bpy.types.Object]:
    """As ``character_with_examples``, and its corrections are built."""
    ob, rig = character_with_examples(degrees, axis_count)
    bpy.ops.skinning.build_eigenskin(components=3)
    return ob, rig


def character_with_examples(degrees=HINGE_TURNS, axis_count: int = 1) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The human rig in a new scene, the mesh, active, and its armature, with examples of each of human.MANY: turned
    by ``degrees`` about so many of its axes, with the shapes of dual quaternion skinning."""
    if not hasattr(bpy.types.Object, "skinning_eigenskin"):
        skinning_tools.register()
    body = human.Character.read()
    ob, rig_object = _character(body)
    for name in human.MANY:
        bone = rig_object.pose.bones[name]
        to_bone = np.array(bone.bone.matrix_local.to_3x3()).T
        for number, (_, vector) in enumerate(human.turns_about(name, body.axes(name)[:axis_count], degrees)):
            bone.rotation_quaternion = _turned(to_bone @ vector)
            bpy.context.view_layer.update()
            skin, rig = read_rig(bpy.context, ob)
            rotations, matrices = current_pose(skin, rig, bpy.context.evaluated_depsgraph_get())
            shape = skin_frame(skin.rest, skin.bones, skin.weights, matrices, "DQS")
            store_example(skin, f"{name} {number}", "EVALUATED", rotations, matrices, shape)
        bone.rotation_quaternion = Quaternion()
    bpy.context.view_layer.update()
    return ob, rig_object


def _character(body: human.Character) -> tuple[bpy.types.Object, bpy.types.Object]:
    scenes.empty_scene()
    names = body.rig.joint_names
    rig = scenes.link(bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig")))
    bpy.ops.object.mode_set(mode="EDIT")
    bones = [rig.data.edit_bones.new(name) for name in names]
    for bone, head, tail, parent in zip(bones, body.heads, body.tails, body.rig.parents, strict=True):
        bone.head, bone.tail = head, tail
        bone.parent = bones[parent] if parent >= 0 else None
    bpy.ops.object.mode_set(mode="OBJECT")
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    ob = scenes.mesh_object(body.rig.rest, body.triangles.tolist(), name="Human")
    write_weights(ob, list(names), body.rig.bones, body.rig.weights)
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    bpy.context.view_layer.update()
    return ob, rig


def _turned(vector) -> Quaternion:
    turn = Vector(vector)
    return Quaternion(turn, turn.length)


class _Clock:
    """seconds: of the processor and on the wall, by what they were spent on."""

    def __init__(self):
        self.seconds: dict[str, np.ndarray] = {}
        self._last = self._now()

    def tick(self, name: str) -> None:
        """Count the time since the last tick as ``name``."""
        now = self._now()
        self.seconds[name] = self.seconds.get(name, np.zeros(2)) + now - self._last
        self._last = now

    @staticmethod
    def _now() -> np.ndarray:
        return np.array([time.process_time(), time.perf_counter()])
