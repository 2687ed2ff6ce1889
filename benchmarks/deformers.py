# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of Preserve Volume with Corrective Smooth weights and driven helper bones imitate on the human rig.

The figures are of Blender's evaluation of the rig itself, with its drivers and without scripts, at random poses that
the bake has not seen: 1 − ‖baked − target‖ / ‖plain − target‖ over all vertices and poses.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT), str(ROOT.parent / "shared" / "tools")]

from _tables import Tables  # noqa: E402 (beside this file)

RIG = ROOT.parent / "shared" / "data" / "human_rig.npz"
# Helper bones, influences and poses.
RUNS = ((0, 4, 260), (0, 8, 260), (20, 4, 260), (20, 8, 260), (60, 8, 260))
POSES = 40
COLUMNS = (
    *("helpers", "influences", "poses", "helpers used", "reported", "limbs", "all joints", "drivers", "variables"),
    *("ms posed", "ms played", "seconds"),
)
UPDATES = 100
# Largest angles in degrees of the test poses: of the joints with such names, of fingers, of the others.
WIDE, MIDDLE, FINGERS = (
    ("upperarm01", "upperleg01", "lowerarm01", "lowerleg01"),
    ("wrist", "foot", "neck03", "head"),
    40,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table as Markdown, too")
    parser.add_argument("--run", nargs=3, type=int, metavar=("HELPERS", "INFLUENCES", "POSES"), help="one bake only")
    options = parser.parse_args()
    if not RIG.is_file():
        print("The human rig is not next to the checkout (../shared/data).")
        return 1
    if options.run:
        print(json.dumps(bake(*options.run)), flush=True)
        return 0
    tables = Tables(first=10)
    tables.begin(
        "Preserve Volume and Corrective Smooth, baked",
        f"*Reported*: the figure of the operator, at poses from its own ranges. *Limbs*: {POSES} poses with shoulders, "
        "hips, elbows and knees turned by up to 80° about any axis, hands, feet and head by 40°, the others by 20°, "
        "face and toes by 15°. *All joints*: every joint, face and fingers too, turned by up to 45°. *Posed* and "
        "*played*: the milliseconds of processor time that helpers and drivers add to Blender's evaluation of the "
        "armature alone, after new rotations of all bones, and at another frame of an action with keys for all bones; "
        f"the shortest of {2 * UPDATES} each, and how many times as long as the same armature without helpers that is. "
        "*Seconds* of processor time of the bake.",
        *COLUMNS,
    )
    for run in RUNS:
        command = [sys.executable, __file__, "--run", *map(str, run)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            print(done.stderr)
            return 1
        found = json.loads(lines[-1])
        shares = (f"{found[key]:.1%}" for key in ("reported", "limbs", "all"))
        counts = map(str, (found["drivers"], found["variables"]))
        times = (f"{found[kind]['added']:.2f} ({found[kind]['ratio']:.1f} ×)" for kind in ("posed", "played"))
        tables.row(*map(str, run), str(found["used"]), *shares, *counts, *times, f"{found['seconds']:.0f}")
    if options.write:
        command = "`python3 build.py bench deformers --write docs/bake_deformers_figures.md`"
        tables.write(options.write, "Deformers baked to weights", f"Made by {command}.")
    return 0


def bake(helpers: int, influences: int, poses: int) -> dict:
    """The figures of one bake."""
    import bpy
    import human_rig
    import numpy as np
    from mathutils import Quaternion

    import skinning_tools

    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    skinning_tools.register()
    mesh, rig, _ = human_rig.build(RIG)
    mesh.modifiers[0].use_deform_preserve_volume = True
    mesh.modifiers.new("smooth", "CORRECTIVE_SMOOTH").iterations = 10
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
    target, plain = (mesh.copy() for _ in range(2))
    for ob in (target, plain):
        ob.data = mesh.data.copy()
        bpy.context.collection.objects.link(ob)
    plain.modifiers.remove(plain.modifiers[1])
    plain.modifiers[0].use_deform_preserve_volume = False
    own = [bone.name for bone in rig.pose.bones]
    bare = rig.copy()
    bare.data = rig.data.copy()
    at_start = time.process_time()
    bpy.ops.skinning.bake_deformers(helper_bones=helpers, max_influences=influences, pose_count=poses)
    seconds = time.process_time() - at_start

    def positions(ob):
        data = ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
        found = np.empty(3 * len(data.vertices), np.float32)
        data.attributes["position"].data.foreach_get("vector", found)
        return found.astype(float)

    def pose(rng, limbs):
        for name in own:
            most = _largest(name) if limbs else 45
            axis = rng.normal(size=3)
            angle = math.radians(most) * math.sqrt(rng.random()) if name != "root" else 0.0
            rig.pose.bones[name].rotation_quaternion = Quaternion(axis, angle)
        bpy.context.view_layer.update()

    found = {"reported": mesh.data["skinning_baked_deformers"]["imitated"], "seconds": seconds}
    for kind in ("limbs", "all"):
        rng, sums = np.random.default_rng(7), np.zeros(2)
        for _ in range(POSES):
            pose(rng, kind == "limbs")
            wanted = positions(target)
            sums += [((positions(ob) - wanted) ** 2).sum() for ob in (mesh, plain)]
        found[kind] = 1 - math.sqrt(sums[0] / sums[1])
    drivers = list(rig.animation_data.drivers) if rig.animation_data else []
    assert all(curve.driver.is_simple_expression for curve in drivers)
    found["used"] = len(rig.pose.bones) - len(own)
    found["drivers"] = len(drivers)
    found["variables"] = sum(len(curve.driver.variables) for curve in drivers)
    for ob in (mesh, target, plain):
        bpy.data.objects.remove(ob)
    for kind, timed in (("posed", _posed_time), ("played", _played_time)):
        times = [[timed(each, own) for each in (bare, rig)] for _ in range(2)]
        without, helped = np.min(times, axis=0)
        found[kind] = {"added": max(helped - without, 0.0), "ratio": helped / without}
    return found


def _largest(name: str) -> float:
    """The largest angle of a joint in the poses of limbs, in degrees."""
    if any(part in name for part in WIDE):
        return 80
    if name.startswith(MIDDLE):
        return 40
    if name.startswith("finger"):
        return FINGERS
    body = ("spine", "neck", "clavicle", "shoulder", "upper", "lower", "pelvis")
    return 20 if name.startswith(body) else 15


def _posed_time(rig, own) -> float:
    """Milliseconds of an update after a new pose."""
    import bpy
    import numpy as np

    rng = np.random.default_rng(1)

    def pose(_):
        for name in own:
            rig.pose.bones[name].rotation_quaternion = rng.normal(size=4)
        rig.update_tag()

    return _shortest(rig, pose, lambda _: bpy.context.view_layer.update())


def _played_time(rig, own) -> float:
    """Milliseconds of a change of the frame, with keys for all bones."""
    import bpy
    import numpy as np

    rng = np.random.default_rng(1)
    for frame in (1, 20, 40):
        for name in own:
            rig.pose.bones[name].rotation_quaternion = rng.normal(size=4)
            rig.pose.bones[name].keyframe_insert("rotation_quaternion", frame=frame)
    scene = bpy.context.scene
    return _shortest(rig, lambda _: None, lambda step: scene.frame_set(1 + step % 39, subframe=0.5))


def _shortest(rig, prepare, update) -> float:
    """The shortest of many updates of a scene that has only the rig, in milliseconds of processor time."""
    import bpy

    objects = bpy.context.scene.collection.objects
    for ob in list(objects):
        objects.unlink(ob)
    objects.link(rig)
    times = []
    for step in range(UPDATES):
        prepare(step)
        begin = time.process_time_ns()
        update(step)
        times.append(time.process_time_ns() - begin)
    return min(times) / 1e6


if __name__ == "__main__":
    import os

    code = main()
    sys.stdout.flush()
    os._exit(code)
