# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of a creature made in code: the skeleton found in its walk, weights and helper bones solved for.

Run by `python3 build.py docs`. Leaves joint_hierarchy.png, partial_weights.png, partial_helpers.png,
pose_test.png and error_over_bones.png.
"""

import sys
from pathlib import Path

import bpy
import numpy as np
from mathutils import Matrix, Vector

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import creature
import rendering
from bone_drawing import with_bones
from program import leave, parse_options
from rendering import IN_THE_SUN, colored, colored_by_error, compose, render, shape

import skinning_tools
from demos.objects import bone_of, triangles
from skinning_tools.blender.attributes import read_attribute
from skinning_tools.blender.error_display import POSE_TEST_COLORS
from skinning_tools.blender.skin_reader import rest_positions
from skinning_tools.core.animation import Animation
from skinning_tools.core.curve_picture import curve_picture
from skinning_tools.core.decomposition import Settings, decompose
from tests.blender import scenes
from tests.blender.partial_scenes import select

BONES, HELPERS, INFLUENCES = 24, 4, 4
MOST_BONES, TARGET = 60, 0.5
SKIN = (0.62, 0.42, 0.30)
MIDDLE = np.array([-0.12, 0.0, 0.72])
LOOK = {"height": 3.5, "direction": (0.35, -1.0, 0.2)}
NUMBERS = range(1, creature.FRAMES + 1)

# By hand, radians about the world's axes: the part of the body, and how its bone is turned.
POSE = (
    ("hip", (0.0, 0.35, 0.0)),
    ("chest", (0.0, -0.30, 0.0)),
    ("neck", (0.0, -0.35, -0.5)),
    ("head", (0.0, 0.5, -0.4)),
    ("front upper.R", (0.0, -1.1, 0.0)),
    ("front lower.R", (0.0, 1.5, 0.0)),
    ("tail 1", (0.0, 1.4, 0.0)),
)


def main() -> int:
    options = parse_options(__doc__)
    skinning_tools.register()
    for name, draw in (
        ("error_over_bones", draw_curve),
        ("joint_hierarchy", draw_joints),
        ("partial_weights", draw_weights),
        ("partial_helpers", draw_helpers),
        ("pose_test", draw_pose_test),
    ):
        path = options.output / f"{name}.png"
        print(path, draw(path, options.samples, options.percent), sep="\n", flush=True)
    return 0


# Error over bones


def draw_curve(path: Path, _samples: int, _percent: int) -> str:
    """The search for the fewest bones that reach TARGET."""
    made = creature.build()
    animation = Animation(played(made.body), triangles(made.body.data))
    found = decompose(animation, Settings(bone_count=MOST_BONES, target_error=TARGET))
    path.write_bytes(curve_picture(found.curve, TARGET, found.bone_count))
    return f"{found.bone_count} bones reach {TARGET}"


# Joint hierarchy


def draw_joints(path: Path, samples: int, percent: int) -> str:
    """The animation, the skeleton that is found in it, and a pose that was never in it."""
    body = creature.build(soft=False).body
    select(body)
    bpy.ops.skinning.convert_animation(bone_count=BONES, bone_kind="RIGID", joint_hierarchy=True)
    skinned = bpy.data.objects["Creature_skinned"]
    rig, report = skinned.parent, skinned["skinning_report"]
    bpy.context.scene.frame_set(6)
    meshes = {"animation": plain(scenes.evaluated_positions(body), triangles(body.data))}
    rig.animation_data_clear()
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    meshes["found"] = boned(skinned, rig)
    for part, angles in POSE:
        bone = rig.pose.bones[bone_of(part, body, skinned)]
        bone.rotation_quaternion = creature.turned(bone.bone, angles)
    meshes["posed"] = boned(skinned, rig)
    render(path, meshes, samples, percent, **LOOK)
    captions = [
        ("An animation", f"{report['vertex_count']:,} vertices, {report['frame_count']} frames, no bones"),
        ("Its skeleton", f"{report['bone_count']} rigid bones, {report['joint_count']} joints, "
         f"E_RMS {report['e_rms']:.2f} ‰"),
        ("Posed by hand", f"{len(POSE)} bones turned"),
    ]  # fmt: skip
    compose(str(path), captions)
    return f"{distances_text(body, rig)}"


def distances_text(body, rig) -> str:
    """The distances of found joints from the creature's own joints."""
    bpy.context.scene.frame_set(1)
    made = body.modifiers["Armature"].object.pose.bones
    real = np.array([bone.head for bone in made if bone.parent])
    found = np.array([bone.head_local for bone in rig.data.bones if bone.parent])
    gaps = np.linalg.norm(real[:, None] - found[None], axis=-1).min(axis=1)
    size = np.linalg.norm(np.ptp(scenes.evaluated_positions(body), axis=0))
    near = int((gaps < 0.03 * size).sum())
    return f"{near} of {len(real)} joints have a found one nearer than 3 % of the creature's size"


def boned(skinned, rig) -> bpy.types.Mesh:
    """The present mesh, transparent, with the armature's bones in it."""
    points = scenes.evaluated_positions(skinned) - MIDDLE
    return with_bones(points, triangles(skinned.data), rig, Matrix.Translation(-Vector(MIDDLE)), SKIN)


# Partial solves


def draw_weights(path: Path, samples: int, percent: int) -> str:
    """A mesh whose vertices all follow their nearest bone, and the same mesh with solved weights."""
    made = creature.build()
    copy = badly_bound(made)
    select(made.body, copy)
    before = played(copy)
    bpy.ops.skinning.solve_weights(max_influences=INFLUENCES)
    captions = ("Nearest bone alone", "Solved weights")
    return draw_partial(path, made, copy, before, captions, samples, percent)


def draw_helpers(path: Path, samples: int, percent: int) -> str:
    """A belly without bones in the rig, without and with helper bones."""
    made = creature.build()
    copy = bound(made)
    select(made.body, copy)
    before = played(copy)
    bpy.ops.skinning.add_helper_bones(bone_count=HELPERS)
    return draw_partial(path, made, copy, before, ("The rig's own bones", f"{HELPERS} helper bones"), samples, percent)


def draw_pose_test(path: Path, samples: int, percent: int) -> str:
    """What tears on a mesh whose vertices all follow their nearest bone, and on the same mesh with its own weights."""
    made, meshes, captions = creature.build(), {}, []
    for title, copy in (("Nearest bone alone", badly_bound(made)), ("Automatic weights", bound(made))):
        select(copy)
        bpy.ops.skinning.pose_test()
        found, colors = copy["skinning_pose_test"], read_attribute(copy.data, POSE_TEST_COLORS)
        mesh = shape(rest_positions(copy.data) - MIDDLE, triangles(copy.data))
        meshes[title] = colored(mesh, IN_THE_SUN * colors)
        captions.append((title, f"{found['torn']:,} torn edges, {found['touching']:,} touching faces"))
    render(path, meshes, samples, percent, **LOOK)
    compose(str(path), captions)
    return "; ".join(f"{title}: {line}" for title, line in captions)


def draw_partial(path: Path, made, copy, before: np.ndarray, titles, samples: int, percent: int) -> str:
    """Target, before and after at the frame that was worst before, colored by their distance from the target."""
    wanted, after = played(made.body), played(copy)
    errors = [np.linalg.norm(shape - wanted, axis=2) for shape in (before, after)]
    frame = int(np.argmax(np.square(errors[0]).sum(axis=1)))
    figures = copy["skinning_partial_solve"]
    e_rms = figures["e_rms_before"], figures["e_rms"]
    largest = float(np.quantile(errors[0][frame], 0.995))
    faces = triangles(made.body.data)
    meshes = {"target": plain(wanted[frame] - MIDDLE, faces, moved=False)}
    for title, points, error in zip(titles, (before, after), errors, strict=True):
        mesh = shape(points[frame] - MIDDLE, faces)
        meshes[title] = colored_by_error(mesh, error[frame], largest, IN_THE_SUN)
    render(path, meshes, samples, percent, **LOOK)
    captions = [("Target", f"frame {frame + 1}")]
    captions += [(title, f"E_RMS {value:.2f} ‰") for title, value in zip(titles, e_rms, strict=True)]
    label = "mm from the target"
    compose(str(path), captions, 1000 * largest, label)
    return f"E_RMS {e_rms[0]:.2f} before, {e_rms[1]:.2f} after"


def bound(made) -> bpy.types.Object:
    """A copy of the creature with its weights, moved only by its bones."""
    copy = made.body.copy()
    copy.data = made.body.data.copy()
    copy.shape_key_clear()
    copy.name = "Copy"
    bpy.context.scene.collection.objects.link(copy)
    return copy


def badly_bound(made) -> bpy.types.Object:
    copy = bound(made)
    creature.write_weights(copy, *creature.nearest_bones(copy))
    return copy


def played(ob) -> np.ndarray:
    """(F, N, 3) float32: what the viewport shows, frame by frame."""
    return scenes.played(ob, NUMBERS)


def plain(points, triangles, moved: bool = True) -> bpy.types.Mesh:
    """A mesh in the color of skin."""
    mesh = shape(points - MIDDLE if moved else points, triangles)
    mesh.materials.append(rendering.plain("Skin", SKIN, roughness=0.6))
    return mesh


if __name__ == "__main__":
    leave(main())
