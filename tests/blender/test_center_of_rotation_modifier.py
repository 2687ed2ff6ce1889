# SPDX-License-Identifier: GPL-3.0-or-later
"""The Center of Rotation modifier deforms as core.deform does, also without the extension and in renders."""

import os
import subprocess

import bpy
import numpy as np
import pytest

from skinning_tools.blender.center_records import set_input
from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.blender.vertex_groups import write_weights
from skinning_tools.core.deform import skin_frame
from skinning_tools.features.centers import modifier as crs_modifier
from skinning_tools.features.centers.baking import read_centers
from tests.blender import another_process, scenes
from tests.blender.crs_scenes import FRAMES, TOLERANCE, add, deforms_as_core
from tests.blender.skinned_meshes import animate, diagonal, expected, half_turn, mirror, random_rolls, rigged_tube

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="geometry nodes read bones from Blender 5.1 on"),
]


@pytest.mark.parametrize("influences", [1, 2, 4, 8, 11, 16])
def test_deforms_as_core(influences):
    ob, _ = rigged_tube(bone_count=16, rings=33, segments=8, influences=influences)
    if influences == 1:
        # One vertex that blends, as there is nothing to bake without.
        ob.vertex_groups["Bone 3"].add([100], 1.0, "REPLACE")
    if influences > 4:
        random = np.random.default_rng(1)
        ob.vertex_groups.clear()
        bones = np.array([random.permutation(16)[:influences] for _ in ob.data.vertices])
        write_weights(ob, [f"Bone {index}" for index in range(16)], bones, random.uniform(0.1, 1, bones.shape))
        assert read_skin(bpy.context, ob).bones.shape[1] == influences
    add(ob)
    deforms_as_core(ob)
    if influences > 1:
        bpy.context.scene.frame_set(4)
        # It does something that linear blending does not.
        assert np.abs(expected(ob) - expected(ob, "LBS")).max() > 100 * TOLERANCE * diagonal(ob)


def test_mirrored_and_strongly_stretched_bones():
    ob, rig = rigged_tube()
    animate(rig, degrees=170.0, stretch=0.8, seed=3)
    for frame in (1, 8):
        rig.pose.bones["Bone 2"].scale = (-1.0, 0.4, 1.7)
        rig.pose.bones["Bone 2"].keyframe_insert("scale", frame=frame)
    add(ob)
    # At frame 1 the mirrored bone is turned half around: both ways are as near, and either may be taken.
    deforms_as_core(ob, frames=FRAMES[1:])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("turn", [1.0, -1.0, None], ids=["half turn", "half turn back", "mirrored"])
def test_half_turns_go_the_same_way_around(turn, axis, seed):
    """Both directions are equally near: rounding must not choose."""
    ob, rig = rigged_tube()
    random_rolls(rig, seed)
    if turn is None:
        mirror(rig, axis)
    else:
        half_turn(rig, axis, turn)
    add(ob)
    deforms_as_core(ob, frames=(1,))
    assert np.abs(expected(ob) - expected(ob, "LBS")).max() > 100 * TOLERANCE * diagonal(ob)


def test_flattened_and_vanished_bones():
    ob, rig = rigged_tube()
    for frame in (1, 8):
        for name, scale in (("Bone 1", (1, 0, 1)), ("Bone 3", (0, 0, 0))):
            rig.pose.bones[name].scale = scale
            rig.pose.bones[name].keyframe_insert("scale", frame=frame)
    add(ob)
    deforms_as_core(ob)


def test_moving_objects():
    ob, rig = rigged_tube()
    scenes.key_property(ob, "location", {1: (0, 0, 0), 8: (1, 2, 3)})
    scenes.key_property(ob, "rotation_euler", {1: (0, 0, 0), 8: (1, 0.5, 0.2)})
    scenes.key_property(rig, "location", {1: (0, 0, 0), 8: (-1, 0, 2)})
    ob.parent = rig
    add(ob)
    deforms_as_core(ob)


def test_shape_keys_come_first():
    ob, _ = rigged_tube()
    rest = read_skin(bpy.context, ob).rest
    block = scenes.shape_keys(ob, count=1)[0]
    offsets = np.random.default_rng(0).normal(scale=0.1, size=rest.shape)
    block.points.foreach_set("co", (rest + offsets).astype(np.float32).ravel())
    block.value = 0.5
    add(ob)
    deforms_as_core(ob, rest=rest + 0.5 * offsets)


def test_factor_blends_against_linear_blending():
    ob, _ = rigged_tube()
    modifier = add(ob)
    factors = np.random.default_rng(0).uniform(0, 1, len(ob.data.vertices))
    group = ob.vertex_groups.new(name="About centers")
    for vertex, factor in enumerate(factors.tolist()):
        group.add([vertex], factor, "REPLACE")
    set_input(modifier, "Factor", attribute="About centers")
    bpy.context.scene.frame_set(4)
    linear, turned = expected(ob, "LBS"), expected(ob)
    blend = linear + factors[:, None] * (turned - linear)
    assert np.abs(scenes.evaluated_positions(ob) - blend).max() < TOLERANCE * diagonal(ob)


def test_parent_of_type_armature():
    ob, rig = rigged_tube()
    place = scenes.deforming_parent(ob, rig)
    add(ob)
    deforms_as_core(ob)
    np.testing.assert_allclose(np.array(ob.matrix_world), place, atol=1e-5)
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    bpy.context.scene.frame_set(4)
    np.testing.assert_allclose(np.array(ob.matrix_world), place, atol=1e-5)
    assert np.abs(scenes.evaluated_positions(ob) - expected(ob, "LBS")).max() < TOLERANCE * diagonal(ob)


def test_later_modifiers_stay_later():
    ob, _ = rigged_tube()
    ob.modifiers.new("Smooth", "SUBSURF")
    add(ob)
    assert [modifier.type for modifier in ob.modifiers] == ["ARMATURE", "NODES", "SUBSURF"]


def test_work_at_a_vertex_does_not_grow_with_the_bones():
    counts = []
    for bone_count in (5, 70):
        ob, _ = rigged_tube(bone_count=bone_count, rings=4 * bone_count + 1)
        tree = add(ob).node_group
        # All that is left to the vertices is in the group itself; the bones are in groups of their own.
        counts.append(len([node for node in tree.nodes if node.bl_idname not in ("GeometryNodeGroup",)]))
        deforms_as_core(ob, frames=(4,))
    assert counts[0] == counts[1]


def test_without_centers_and_bones_it_does_no_harm():
    ob, rig = rigged_tube()
    add(ob)
    bpy.context.scene.frame_set(4)
    linear = expected(ob, "LBS")
    ob.data.attributes.remove(ob.data.attributes["rotation_center"])
    ob.data.update()
    assert np.abs(scenes.evaluated_positions(ob) - linear).max() < TOLERANCE * diagonal(ob)
    rest = read_skin(bpy.context, ob).rest
    bpy.data.objects.remove(rig)
    bpy.context.view_layer.update()
    assert np.abs(scenes.evaluated_positions(ob) - rest).max() < TOLERANCE * diagonal(ob)


PLAY = """
import bpy, numpy as np, sys
assert "skinning_tools" not in sys.modules
path, out, frames = ARGUMENTS
bpy.ops.wm.open_mainfile(filepath=path, use_scripts=False)
positions = []
for frame in frames:
    bpy.context.scene.frame_set(frame)
    evaluated = bpy.data.objects["Arm"].evaluated_get(bpy.context.evaluated_depsgraph_get())
    positions.append([tuple(vertex.co) for vertex in evaluated.data.vertices])
np.save(out, np.array(positions))
"""


def test_plays_without_the_extension_and_scripts(tmp_path):
    ob, _ = rigged_tube()
    add(ob)
    path, out = tmp_path / "shot.blend", tmp_path / "played.npy"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    script = PLAY.replace("ARGUMENTS", repr((str(path), str(out), FRAMES)))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        another_process.command(script), cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=False
    )
    for frame, positions in zip(FRAMES, np.load(out), strict=True):
        bpy.context.scene.frame_set(frame)
        assert np.abs(positions - expected(ob)).max() < TOLERANCE * diagonal(ob)


def rendered(path) -> np.ndarray:
    """Pixels of the scene by Cycles, whose renders Blender can make without a graphics card."""
    render = bpy.context.scene.render
    render.engine, render.filepath = "CYCLES", str(path)
    render.resolution_x = render.resolution_y = 64
    bpy.context.scene.cycles.samples = 1
    bpy.ops.render.render(write_still=True)
    image = bpy.data.images.load(str(path))
    pixels = np.array(image.pixels)
    bpy.data.images.remove(image)
    return pixels


@pytest.mark.skipif(not bpy.app.build_options.cycles, reason="this build has no Cycles")
def test_a_render_shows_what_core_says(tmp_path):
    ob, rig = rigged_tube()
    animate(rig, degrees=100.0)
    add(ob)
    scene = bpy.context.scene
    camera = scenes.link(bpy.data.objects.new("Eye", bpy.data.cameras.new("Eye")))
    camera.location, camera.rotation_euler = (2.5, -12, 0), (np.pi / 2, 0, 0)
    camera.data.type, camera.data.ortho_scale = "ORTHO", 8
    scene.camera = camera
    scene.world = bpy.data.worlds.new("World")
    scene.world.color = (1, 1, 1)
    scene.frame_set(4)
    images = {"native": rendered(tmp_path / "native.png")}
    still = scenes.mesh_object(expected(ob), [tuple(face.vertices) for face in ob.data.polygons], name="Still")
    still.matrix_world = ob.matrix_world
    ob.hide_render = True
    images["core"] = rendered(tmp_path / "core.png")
    still.data.attributes["position"].data.foreach_set("vector", expected(ob, "LBS").astype(np.float32).ravel())
    images["linear"] = rendered(tmp_path / "linear.png")
    errors = {name: np.abs(images[name] - images["core"]).mean() for name in ("native", "linear")}
    assert errors["linear"] > 1e-4
    assert errors["native"] < 0.05 * errors["linear"]


def test_adding_is_one_undo_step():
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    bpy.context.preferences.edit.use_global_undo = True
    bpy.ops.ed.undo_push(message="Baked")
    bpy.ops.skinning.add_center_of_rotation_modifier("EXEC_DEFAULT", True)
    bpy.ops.ed.undo()
    ob = bpy.data.objects["Arm"]
    assert [(modifier.name, modifier.show_viewport) for modifier in ob.modifiers] == [("Armature", True)]
    assert len(bpy.data.node_groups) == 0


def test_of_very_many_influences_the_strongest_are_kept_in_their_order():
    ob, rig = rigged_tube(bone_count=24, segments=8)
    # Far apart, so that the order of the sum tells.
    animate(rig, degrees=170.0, seed=2)
    random = np.random.default_rng(5)
    ob.vertex_groups.clear()
    bones = np.array([random.permutation(24)[:20] for _ in ob.data.vertices])
    weights = random.uniform(0.1, 1, bones.shape)
    write_weights(ob, [f"Bone {index}" for index in range(24)], bones, weights)
    add(ob)
    skin = read_skin(bpy.context, ob)
    kept = skin.weights * (np.argsort(np.argsort(-skin.weights, axis=1), axis=1) < crs_modifier.MOST_SLOTS)
    kept /= kept.sum(axis=1, keepdims=True)
    for frame in (4, 6):
        bpy.context.scene.frame_set(frame)
        matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
        centers = read_centers(ob)[0]
        wanted = skin_frame(skin.rest, skin.bones, kept, matrices, "CRS", centers)
        difference = np.linalg.norm(scenes.evaluated_positions(ob) - wanted, axis=1)
        # Where a sum nearly vanishes, single precision may take the other side.
        assert np.quantile(difference, 0.95) < TOLERANCE * diagonal(ob)
        by_weight = np.argsort(-kept, axis=1)
        other = skin_frame(
            skin.rest,
            np.take_along_axis(skin.bones, by_weight, axis=1),
            np.take_along_axis(kept, by_weight, axis=1),
            matrices,
            "CRS",
            centers,
        )
        assert np.quantile(np.linalg.norm(other - wanted, axis=1), 0.8) > 100 * TOLERANCE * diagonal(ob)


def test_names_of_vertex_groups_are_not_taken():
    ob, _ = rigged_tube()
    ob.vertex_groups.new(name="skinning_influences_1")
    add(ob)
    deforms_as_core(ob)


def joined(ob, other) -> None:
    bpy.context.view_layer.update()
    for each in bpy.context.view_layer.objects:
        each.select_set(each in (ob, other))
    bpy.context.view_layer.objects.active = ob
    assert bpy.ops.object.join() == {"FINISHED"}


@pytest.mark.parametrize("influences", [2, 3, 10])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_a_mesh_joined_to_it_stays_where_it_is(influences, weighted, factor):
    """The joined mesh has no influences in the modifier; the mesh's own vertices still move."""
    ob, _ = rigged_tube(bone_count=10, influences=influences)
    set_input(add(ob), "Factor", factor)
    moving = {}
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        moving[frame] = scenes.evaluated_positions(ob)
    other = scenes.grid(5, 4)
    other.location, other.rotation_euler = (3, 4, 5), (1, 2, 3)
    if weighted:
        other.vertex_groups.new(name=ob.vertex_groups[0].name).add(range(len(other.data.vertices)), 1.0, "REPLACE")
    count = len(ob.data.vertices)
    joined(ob, other)
    stays = np.array([vertex.co for vertex in ob.data.vertices[count:]])
    assert np.abs(stays).max() > 1.0
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        shown = scenes.evaluated_positions(ob)
        assert np.abs(shown[count:] - stays).max() < TOLERANCE
        assert np.abs(shown[:count] - moving[frame]).max() < TOLERANCE * diagonal(ob)


def test_a_mesh_joined_to_it_moves_once_it_is_baked_again():
    ob, _ = rigged_tube()
    add(ob)
    other = scenes.grid(5, 4)
    other.vertex_groups.new(name=ob.vertex_groups[0].name).add(range(len(other.data.vertices)), 1.0, "REPLACE")
    joined(ob, other)
    bpy.ops.skinning.bake_rotation_centers()
    deforms_as_core(ob)
