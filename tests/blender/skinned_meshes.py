# SPDX-License-Identifier: GPL-3.0-or-later
"""Meshes skinned to animated armatures, for the tests of centers of rotation."""

import bmesh
import bpy
import numpy as np
from mathutils import Matrix

from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.core.deform import skin_frame
from skinning_tools.features.centers.baking import read_centers
from tests.blender import scenes


def rigged_tube(
    bone_count=5, rings=41, segments=16, influences=3, name="Arm", seed=0
) -> tuple[bpy.types.Object, bpy.types.Object]:
    """A tube along x, a unit per bone, and its armature, neither at the origin; the last ring has no weights."""
    scenes.empty_scene()
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 8
    rig = armature("Rig", bone_count)
    x, angle = np.meshgrid(np.linspace(0, bone_count, rings), np.arange(segments) * 2 * np.pi / segments, indexing="ij")
    vertices = np.stack([x, 0.3 * np.cos(angle), 0.3 * np.sin(angle)], axis=-1).reshape(-1, 3)
    corners = np.arange(rings * segments).reshape(rings, segments)
    turned = np.roll(corners, -1, axis=1)
    faces = np.stack([corners[:-1], turned[:-1], turned[1:], corners[1:]], axis=-1).reshape(-1, 4)
    ob = scenes.mesh_object(vertices, faces.tolist(), name=name)
    bones, weights = bone_weights(vertices[:, 0], bone_count, influences)
    weights[-segments:] = 0
    write_weights(ob, [bone.name for bone in rig.data.bones], bones, weights)
    ob.modifiers.new("Armature", "ARMATURE").object = rig
    rig.location, rig.rotation_euler = (0.5, -0.3, 0.2), (0.1, 0.2, 0.3)
    ob.location, ob.rotation_euler, ob.scale = (-0.2, 0.1, 0.4), (0.05, -0.1, 0.2), (1.2, 1.2, 1.2)
    animate(rig, seed=seed)
    scene.frame_set(1)
    bpy.context.view_layer.objects.active = ob
    return ob, rig


def cut(tube: bpy.types.Object, first: int, segments: int = 16) -> list[bpy.types.Object]:
    """The tube's faces before and from the ring ``first`` on, as two objects at other places and scales, which both
    have the ring's vertices."""
    import bmesh

    halves = []
    for name, is_kept in (("Lower", lambda ring: ring <= first), ("Upper", lambda ring: ring >= first)):
        half = tube.copy()
        half.data = tube.data.copy()
        half.name = name
        scenes.link(half)
        mesh = bmesh.new()
        mesh.from_mesh(half.data)
        mesh.verts.ensure_lookup_table()
        gone = [vertex for vertex in mesh.verts if not is_kept(vertex.index // segments)]
        bmesh.ops.delete(mesh, geom=gone, context="VERTS")
        mesh.to_mesh(half.data)
        mesh.free()
        halves.append(half)
    turned = Matrix.Translation((0.3, 0.1, -0.2)) @ Matrix.Rotation(0.4, 4, "Y") @ Matrix.Scale(0.5, 4)
    halves[1].data.transform(turned.inverted())
    halves[1].matrix_world = halves[1].matrix_world @ turned
    bpy.context.view_layer.update()
    return halves


def armature(name: str, bone_count: int) -> bpy.types.Object:
    """An armature in the scene with a chain of bones along x, a unit each."""
    rig = scenes.link(bpy.data.objects.new(name, bpy.data.armatures.new(name)))
    bpy.ops.object.mode_set(mode="EDIT")
    parent = None
    for index in range(bone_count):
        bone = rig.data.edit_bones.new(f"Bone {index}")
        bone.head, bone.tail, bone.parent = (index, 0, 0), (index + 1, 0, 0), parent
        bone.roll = 0.3 * index
        parent = bone
    bpy.ops.object.mode_set(mode="OBJECT")
    return rig


def bone_weights(places: np.ndarray, bone_count: int, influences: int) -> tuple[np.ndarray, np.ndarray]:
    """(N, K) bones nearest to each place along the chain, and weights that do not sum to one."""
    distances = np.abs(places[:, None] - (np.arange(bone_count) + 0.5))
    bones = np.argsort(distances, axis=1, kind="stable")[:, :influences]
    weights = np.clip(1.2 - np.take_along_axis(distances, bones, axis=1), 0, None) ** 2
    return bones, weights


def animate(rig, degrees=50.0, stretch=0.2, seed=0) -> None:
    """Key random turns, moves and scales of all bones at the frames 1, 4 and 8; at rest at frame 1."""
    random = np.random.default_rng(seed)
    for bone in rig.pose.bones:
        bone.rotation_mode = "XYZ"
        for frame in (1, 4, 8):
            share = 0.0 if frame == 1 else 1.0
            bone.rotation_euler = share * np.radians(degrees) * random.uniform(-1, 1, 3)
            bone.location = share * 0.1 * random.uniform(-1, 1, 3)
            bone.scale = 1 + share * stretch * random.uniform(-1, 1, 3)
            for path in ("rotation_euler", "location", "scale"):
                bone.keyframe_insert(path, frame=frame)


def half_turn(rig, axis: int, sign: float, frames=(1, 8)) -> None:
    """Key every other bone to exactly half a turn about its own axis 0, 1 or 2, the rest to none."""
    for index, bone in enumerate(rig.pose.bones):
        for frame in frames:
            bone.rotation_euler = [sign * np.pi * (index % 2) * (axis == each) for each in range(3)]
            bone.location, bone.scale = (0, 0, 0), (1, 1, 1)
            for path in ("rotation_euler", "location", "scale"):
                bone.keyframe_insert(path, frame=frame)


def mirror(rig, axis: int, frames=(1, 8)) -> None:
    """Key every other bone to a scale of −1 along its own axis 0, 1 or 2, the rest to none: as half a turn, to core."""
    half_turn(rig, axis, 0.0, frames)
    for bone in list(rig.pose.bones)[1::2]:
        for frame in frames:
            bone.scale = [-1.0 if axis == each else 1.0 for each in range(3)]
            bone.keyframe_insert("scale", frame=frame)


def random_rolls(rig, seed=0) -> None:
    """Give the bones other rolls, which is where the rounding of half turns comes from."""
    random = np.random.default_rng(seed)
    active = bpy.context.view_layer.objects.active
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in rig.data.edit_bones:
        bone.roll = random.uniform(-np.pi, np.pi)
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = active


def expected(object, method="CRS", rest=None) -> np.ndarray:
    """(N, 3) what core.deform makes of the skin at the current frame; ``rest`` in place of the rest positions."""
    skin = read_skin(bpy.context, object)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    centers = read_centers(object)[0] if method == "CRS" else None
    rest = skin.rest if rest is None else rest
    return skin_frame(rest, skin.bones, skin.weights, matrices, method, centers)


def diagonal(object) -> float:
    """Of the bounding box of the mesh at rest, in the object's space."""
    return float(np.linalg.norm(np.ptp(np.array([vertex.co for vertex in object.data.vertices]), axis=0)))


def split(ob, vertices) -> None:
    """Double the vertices of a mesh object along the edges between them, as at the UV seams of an imported mesh."""
    mesh = bmesh.new()
    mesh.from_mesh(ob.data)
    edges = [edge for edge in mesh.edges if all(vertex.index in vertices for vertex in edge.verts)]
    bmesh.ops.split_edges(mesh, edges=edges)
    mesh.to_mesh(ob.data)
    mesh.free()
