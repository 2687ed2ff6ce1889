# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of game characters for the gallery: clips, the skeleton found in them, weights, and a pose test.

Run by `python3 build.py demo gallery`, where the characters (Quaternius, CC0) are next to the checkout, in
../shared/data/rigs. Leaves gallery_clips.png, gallery_skeleton.png, gallery_bind.png and gallery_pose_test.png.
"""

import sys
from collections.abc import Iterable
from math import radians
from pathlib import Path

import bpy
import numpy as np
from mathutils import Euler, Matrix, Vector

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bone_drawing import with_bones
from human_rig import DATA
from program import leave, parse_options
from rendering import IN_THE_SUN, colored, compose, render, shape

import skinning_tools
from demos.objects import bone_of, triangles
from skinning_tools.blender.actions import assign_action
from skinning_tools.blender.attributes import read_attribute
from skinning_tools.blender.clip_tracks import play_clip
from skinning_tools.blender.error_display import POSE_TEST_COLORS
from skinning_tools.blender.skin_reader import armature_of
from tests.blender.scenes import world_positions

RIGS = DATA / "rigs"
SKIN = (0.62, 0.42, 0.30)
SIZE = 2.0  # the largest extent of a body at rest, in the pictures
FOX_LOOK = {"height": 2.1, "direction": (1.0, -0.55, 0.25)}
FROG_LOOK = {"height": 3.1, "direction": (0.8, -0.9, 0.5)}

BONES = 40
# The clips, and the frame of each that is shown.
CLIPS = {"Gallop": 5, "Attack": 14, "Gallop_Jump": 9}
# By hand: the artist's bone whose part of the body is turned, and how, in degrees about the world's axes.
POSE = (
    ("Neck1", (-35, 0, 0)),
    ("Head", (20, 0, 30)),
    ("Tail1", (20, 0, 0)),
    ("FrontUpperLeg.L", (-70, 0, 0)),
    ("FrontLowerLeg.L", (60, 0, 0)),
)
FROG_ACTION, FROG_FRAME = "Frog_Attack", 8

Captions = list[tuple[str, str]]


def main() -> int:
    options = parse_options(__doc__)
    if not RIGS.is_dir():
        print("The characters are not next to the checkout (../shared/data/rigs)")
        return 0
    skinning_tools.register()
    for names, convert in ((("clips", "skeleton"), convert_fox), (("bind", "pose_test"), bind_frog)):
        made = convert()
        for name in names:
            path = options.output / f"gallery_{name}.png"
            meshes, captions, look = DRAWN[name](*made)
            render(path, meshes, options.samples, options.percent, **look)
            compose(str(path), captions)
            print(path, *(f"{title}: {line}" for title, line in captions), sep="\n", flush=True)
    return 0


# Characters


def character(name: str) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The mesh and the armature of a character of one mesh, alone in a new scene, at rest."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.import_scene.gltf(filepath=str(RIGS / f"{name}.glb"))
    (mesh,) = (ob for ob in bpy.data.objects if ob.type == "MESH" and armature_of(ob) is not None)
    rig = armature_of(mesh)
    rig.animation_data_clear()
    at_rest(rig)
    return mesh, rig


def twin(mesh: bpy.types.Object, name: str) -> bpy.types.Object:
    """A copy of the mesh with an armature of its own."""
    copy, rig = mesh.copy(), armature_of(mesh).copy()
    copy.name, copy.data = name, mesh.data.copy()
    for ob in (copy, rig):
        bpy.context.scene.collection.objects.link(ob)
    copy.parent = copy.modifiers[0].object = rig
    return copy


def action_of(name: str) -> bpy.types.Action:
    return next(action for action in bpy.data.actions if action.name.rpartition("|")[2] == name)


def at_rest(rig: bpy.types.Object) -> None:
    for bone in rig.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()


def select(active: bpy.types.Object, others: Iterable[bpy.types.Object] = ()) -> None:
    """These objects alone."""
    bpy.context.view_layer.update()
    chosen = {active, *others}
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob in chosen)
    bpy.context.view_layer.objects.active = active


# Shapes


def placement(ob: bpy.types.Object) -> Matrix:
    """From the world to a picture: the middle of ``ob``, as it is shown, to the origin, its largest extent to SIZE."""
    points = world_positions(ob)
    low, high = points.min(axis=0), points.max(axis=0)
    return Matrix.Scale(SIZE / float((high - low).max()), 4) @ Matrix.Translation(-Vector((low + high) / 2))


def placed(points: np.ndarray, place: Matrix) -> np.ndarray:
    """(N, 3) by the matrix."""
    matrix = np.array(place)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def shown(ob: bpy.types.Object, place: Matrix) -> bpy.types.Mesh:
    """A copy of what the viewport shows of ``ob``, with its materials."""
    graph = bpy.context.evaluated_depsgraph_get()
    mesh = bpy.data.meshes.new_from_object(ob.evaluated_get(graph), depsgraph=graph)
    mesh.transform(place @ ob.matrix_world)
    return mesh


# The fox: many meshes that move become one character


def convert_fox() -> tuple[bpy.types.Object, bpy.types.Object]:
    """The skinned fox, and the artist's, at rest."""
    mesh, _ = character("Fox")
    sources = [twin(mesh, name) for name in CLIPS]
    for source in sources:
        assign_action(armature_of(source), action_of(source.name))
    bpy.context.scene.frame_end = round(max(action_of(name).frame_range[1] for name in CLIPS))
    select(sources[0], sources)
    bpy.ops.skinning.convert_animation(
        bone_count=BONES, bone_kind="RIGID", joint_hierarchy=True, rotation_only=True, as_clips=True
    )
    return bpy.data.objects[f"{next(iter(CLIPS))}_skinned"], mesh


def draw_clips(fox: bpy.types.Object, artists: bpy.types.Object) -> tuple[dict, Captions, dict]:
    """Frames of several clips, played by one armature with one set of weights."""
    errors = {clip["source"]: clip["e_rms"] for clip in fox["skinning_report"]["clips"]}
    place, meshes, captions = placement(artists), {}, []
    for name, frame in CLIPS.items():
        play_clip(armature_of(fox), [fox], name)
        bpy.context.scene.frame_set(frame)
        meshes[name] = shown(fox, place)
        captions.append((name.replace("_", " "), f"frame {frame}; E_RMS of the clip {errors[name]:.2f} ‰"))
    return meshes, captions, FOX_LOOK


def draw_skeleton(fox: bpy.types.Object, artists: bpy.types.Object) -> tuple[dict, Captions, dict]:
    """A frame of a source, the skeleton that was found, and a pose that no clip has."""
    rig, report, place = armature_of(fox), fox["skinning_report"], placement(artists)
    name, frame = next(iter(CLIPS.items()))
    bpy.context.scene.frame_set(frame)
    meshes = {"source": shown(bpy.data.objects[name], place)}
    rig.animation_data_clear()
    at_rest(rig)
    points = placed(world_positions(fox), place)
    meshes["found"] = with_bones(points, triangles(fox.data), rig, place @ rig.matrix_world, SKIN)
    for name, degrees in POSE:
        bone = rig.pose.bones[bone_of(name, artists, fox)]
        rest = (rig.matrix_world @ bone.bone.matrix_local).to_quaternion()
        turn = Euler([radians(angle) for angle in degrees]).to_quaternion()
        bone.rotation_quaternion = rest.inverted() @ turn @ rest
    meshes["posed"] = shown(fox, place)
    captions = [
        ("Moving meshes", f"{len(CLIPS)} clips of {report['vertex_count']:,} vertices, {report['frame_count']} frames"),
        ("Their skeleton", f"{report['bone_count']} bones, {report['joint_count']} joints, "
         f"E_RMS {report['e_rms']:.2f} ‰"),
        ("Posed by hand", f"{len(POSE)} bones turned"),
    ]  # fmt: skip
    return meshes, captions, FOX_LOOK


# The frog: weights


def bind_frog() -> tuple[bpy.types.Object, ...]:
    """The frog with the artist's weights, with automatic weights, and with those of Bind."""
    artists, _ = character("Frog")
    automatic, bound = twin(artists, "Automatic"), twin(artists, "Bound")
    for ob in (automatic, bound):
        ob.vertex_groups.clear()
    # The operator would lose the scale of a mesh that is a child already.
    rig, matrix = armature_of(automatic), automatic.matrix_world.copy()
    automatic.parent = None
    automatic.matrix_world = matrix
    select(rig, [automatic])
    bpy.ops.object.parent_set(type="ARMATURE_AUTO")
    select(armature_of(bound), [bound])
    bpy.ops.skinning.bind()
    return artists, automatic, bound


def draw_bind(artists, automatic, bound) -> tuple[dict, Captions, dict]:
    """One pose with the weights of each."""
    place, meshes = placement(artists), {}
    for title, ob in (("The artist's weights", artists), ("Automatic weights", automatic), ("Bind", bound)):
        assign_action(armature_of(ob), action_of(FROG_ACTION))
        bpy.context.scene.frame_set(FROG_FRAME)
        meshes[title] = shown(ob, place)
    wanted, points = (placed(world_positions(ob), place) for ob in (artists, bound))
    away = np.linalg.norm(points - wanted, axis=1).mean() / SIZE
    without = sum(not vertex.groups for vertex in automatic.data.vertices)
    lines = (
        f"{len(points):,} vertices, frame {FROG_FRAME} of {FROG_ACTION}",
        f"{without:,} vertices without weights",
        f"{100 * away:.1f} % of the body's size away, on average",
    )
    return meshes, list(zip(meshes, lines, strict=True)), FROG_LOOK


def draw_pose_test(artists, automatic, bound) -> tuple[dict, Captions, dict]:
    """What tears, and what touches, when each bone turns."""
    meshes, captions = {}, []
    for title, ob in (("The artist's weights", artists), ("Bind", bound)):
        rig = armature_of(ob)
        rig.animation_data_clear()
        at_rest(rig)
        place = placement(ob)
        select(ob)
        bpy.ops.skinning.pose_test()
        found, colors = ob["skinning_pose_test"], read_attribute(ob.data, POSE_TEST_COLORS)
        mesh = shape(placed(world_positions(ob), place), triangles(ob.data))
        meshes[title] = colored(mesh, IN_THE_SUN * colors)
        captions.append((title, f"{found['torn']:,} torn edges, {found['touching']:,} touching faces"))
    return meshes, captions, FROG_LOOK


DRAWN = {"clips": draw_clips, "skeleton": draw_skeleton, "bind": draw_bind, "pose_test": draw_pose_test}


if __name__ == "__main__":
    leave(main())
