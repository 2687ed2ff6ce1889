# SPDX-License-Identifier: GPL-3.0-or-later
"""The Geometry Nodes modifier deforms as core.deform does, without the extension, and gives way without a trace."""

import os
import subprocess

import bpy
import numpy as np
import pytest

from skinning_tools.core.deform import skin_frame
from skinning_tools.scene import crs_modifier
from skinning_tools.scene.crs_record import CRS_PROPERTY, native_modifier, set_input
from skinning_tools.scene.rotation_centers import bake_record, read_centers
from skinning_tools.scene.skin_reader import armature_modifier, bone_matrices, read_skin
from skinning_tools.scene.vertex_groups import write_weights
from tests.blender import another_process, moving_meshes, scenes
from tests.blender.skinned_meshes import animate, diagonal, expected, half_turn, mirror, random_rolls, rigged_tube

pytestmark = [
    pytest.mark.usefixtures("extension"),
    pytest.mark.skipif(bpy.app.version < (5, 1, 0), reason="geometry nodes read bones from Blender 5.1 on"),
]

FRAMES = (1, 3, 4, 6, 8)
TOLERANCE = 1e-5


def add(ob):
    """Bake and add; returns the modifier."""
    bpy.context.view_layer.objects.active = ob
    bpy.ops.skinning.bake_rotation_centers()
    assert bpy.ops.skinning.add_center_of_rotation_modifier() == {"FINISHED"}
    return native_modifier(ob)


def refused(*parts: str) -> None:
    before = moving_meshes.state()
    with pytest.raises(RuntimeError) as raised:
        bpy.ops.skinning.add_center_of_rotation_modifier()
    assert [part for part in parts if part not in str(raised.value)] == [], raised.value
    assert "fault of its own" not in str(raised.value)
    assert moving_meshes.state() == before


def deforms_as_core(ob, frames=FRAMES, rest=None) -> None:
    bpy.context.view_layer.update()
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        difference = scenes.evaluated_positions(ob) - expected(ob, rest=rest)
        assert np.abs(difference).max() < TOLERANCE * diagonal(ob), frame


@pytest.mark.parametrize("influences", [1, 2, 4, 8, 11, 16])
def test_deforms_as_core(influences):
    ob, _ = rigged_tube(bone_count=16, influences=influences)
    if influences == 1:
        # One vertex that blends, as there is nothing to bake without.
        ob.vertex_groups["Bone 3"].add([300], 1.0, "REPLACE")
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
    """Both ways are as near: rounding must not choose."""
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
    ob.modifiers.clear()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    add(ob)
    deforms_as_core(ob)
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    bpy.context.scene.frame_set(4)
    assert np.abs(scenes.evaluated_positions(ob) - expected(ob, "LBS")).max() < TOLERANCE * diagonal(ob)


def test_later_modifiers_stay_later():
    ob, _ = rigged_tube()
    ob.modifiers.new("Smooth", "SUBSURF")
    add(ob)
    assert [modifier.type for modifier in ob.modifiers] == ["ARMATURE", "NODES", "SUBSURF"]


@pytest.mark.parametrize("shown", [(True, True), (True, False)])
def test_removing_restores(shown):
    ob, _ = rigged_tube()
    armature = ob.modifiers["Armature"]
    armature.show_viewport, armature.show_render = shown
    bpy.ops.skinning.bake_rotation_centers()
    blocks, names = scenes.data_blocks(), sorted(attribute.name for attribute in ob.data.attributes)
    bpy.context.scene.frame_set(4)
    before = scenes.evaluated_positions(ob)
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.ops.skinning.add_center_of_rotation_modifier()
    assert (armature.show_viewport, armature.show_render) == (False, False)
    assert bpy.ops.skinning.remove_center_of_rotation_modifier() == {"FINISHED"}
    bpy.context.view_layer.update()
    assert scenes.data_blocks() == blocks
    assert sorted(attribute.name for attribute in ob.data.attributes) == names
    assert (armature.show_viewport, armature.show_render) == shown
    assert [modifier.name for modifier in ob.modifiers] == ["Armature"]
    assert np.array_equal(scenes.evaluated_positions(ob), before)


def test_baking_again_brings_it_up_to_date():
    ob, _ = rigged_tube()
    modifier = add(ob)
    set_input(modifier, "Factor", 0.25)
    ob.vertex_groups["Bone 1"].add([200, 300], 0.9, "REPLACE")
    bpy.ops.skinning.bake_rotation_centers()
    assert len([found for found in ob.modifiers if found.type == "NODES"]) == 1
    set_input(modifier, "Factor", 1.0)
    deforms_as_core(ob)


def test_adding_again_keeps_the_factor():
    ob, _ = rigged_tube()
    set_input(add(ob), "Factor", 0.25)
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.context.scene.frame_set(4)
    linear, turned = expected(ob, "LBS"), expected(ob)
    blend = linear + 0.25 * (turned - linear)
    assert np.abs(scenes.evaluated_positions(ob) - blend).max() < TOLERANCE * diagonal(ob)


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
def test_renders(tmp_path):
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


def test_undo():
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    bpy.context.preferences.edit.use_global_undo = True
    bpy.ops.ed.undo_push(message="Baked")
    bpy.ops.skinning.add_center_of_rotation_modifier("EXEC_DEFAULT", True)
    bpy.ops.ed.undo()
    ob = bpy.data.objects["Arm"]
    assert [(modifier.name, modifier.show_viewport) for modifier in ob.modifiers] == [("Armature", True)]
    assert len(bpy.data.node_groups) == 0


def test_bake_is_needed():
    rigged_tube()
    refused('"Arm" has no centers of rotation', "Bake")


def test_bake_older_than_the_weights():
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    ob.vertex_groups["Bone 1"].add([300], 0.1, "REPLACE")
    refused("centers of rotation", '"Arm"', "older than its mesh or weights", "again")


def test_modifier_that_makes_vertices():
    ob, _ = rigged_tube()
    ob.modifiers.new("Halves", "MIRROR")
    ob.modifiers.move(1, 0)
    bpy.ops.skinning.bake_rotation_centers()
    refused('"Halves"', '"Arm"', "makes vertices")


def test_mesh_that_is_shared_with_other_bones():
    ob, rig = rigged_tube()
    other, other_rig = ob.copy(), rig.copy()
    other.name, other_rig.data = "Other", rig.data.copy()
    scenes.link(other_rig)
    scenes.link(other).modifiers["Armature"].object = other_rig
    add(ob)
    other_rig.data.bones["Bone 0"].use_deform = False
    bpy.context.view_layer.objects.active = other
    bpy.ops.object.select_all(action="DESELECT")
    refused('"Other" shares its mesh', '"Arm"', "Make Single User")


def test_twins_share_what_the_modifier_reads():
    ob, _ = rigged_tube()
    other = ob.copy()
    scenes.link(other).name = "Other"
    add(ob)
    bpy.context.view_layer.objects.active = other
    bpy.ops.skinning.add_center_of_rotation_modifier()
    bpy.context.view_layer.objects.active = ob
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    deforms_as_core(other)


def test_of_very_many_influences_the_strongest_are_kept_in_their_order():
    ob, rig = rigged_tube(bone_count=24)
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


# The rig changes after the modifier was added


def rename_a_bone(ob, rig):
    rig.data.bones["Bone 1"].name = "Spine"


def remove_a_group(ob, rig):
    ob.vertex_groups.remove(ob.vertex_groups["Bone 5"])


def forbid_deforming(ob, rig):
    rig.data.bones["Bone 5"].use_deform = False


def choose_another_armature(ob, rig):
    other = rig.copy()
    other.data = rig.data.copy()
    scenes.link(other).location = (0.3, 0.2, 0.1)
    ob.modifiers["Armature"].object = other
    bpy.context.view_layer.objects.active = ob


def damage_the_record(ob, rig):
    native_modifier(ob).node_group[CRS_PROPERTY] = 1


@pytest.mark.parametrize(
    "change", [rename_a_bone, remove_a_group, forbid_deforming, choose_another_armature, damage_the_record]
)
def test_change_of_the_rig_is_told_and_an_update_mends_it(change):
    ob, rig = rigged_tube(bone_count=6)
    for group in list(ob.vertex_groups)[5:]:
        ob.vertex_groups.remove(group)
    # Without weights: nothing that the centers depend on changes with it.
    ob.vertex_groups.new(name="Bone 5")
    add(ob)
    assert crs_modifier.is_current(ob)
    change(ob, rig)
    bpy.context.view_layer.update()
    assert not crs_modifier.is_current(ob)
    assert bpy.ops.skinning.add_center_of_rotation_modifier() == {"FINISHED"}
    assert crs_modifier.is_current(ob)
    deforms_as_core(ob)
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    assert armature_modifier(ob).show_viewport
    assert armature_modifier(ob).show_render


def test_renamed_armature_modifier_is_turned_on_again():
    ob, rig = rigged_tube()
    add(ob)
    ob.modifiers["Armature"].name = "Rig deform"
    other = ob.modifiers.new("Armature", "ARMATURE")
    other.object, other.show_viewport = rig, False
    ob.modifiers.move(2, 0)
    ob.modifiers["Armature"].object = rig.copy()
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    shown = {modifier.name: (modifier.show_viewport, modifier.show_render) for modifier in ob.modifiers}
    assert shown == {"Armature": (False, True), "Rig deform": (True, True)}


def test_removing_without_an_armature_modifier_left():
    ob, _ = rigged_tube()
    add(ob)
    ob.modifiers.remove(ob.modifiers["Armature"])
    assert bpy.ops.skinning.remove_center_of_rotation_modifier() == {"FINISHED"}
    assert not ob.modifiers


def test_disabled_armature_modifier_stays_disabled():
    ob, _ = rigged_tube()
    ob.modifiers["Armature"].show_viewport = False
    add(ob)
    bpy.ops.skinning.remove_center_of_rotation_modifier()
    assert (ob.modifiers["Armature"].show_viewport, ob.modifiers["Armature"].show_render) == (False, True)


# Objects that share a mesh


def twin_of(ob, name="Other"):
    other = ob.copy()
    other.name = name
    scenes.link(other)
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    return other


@pytest.mark.parametrize("given", [{"sigma": 0.5}, {"attribute_name": "other", "sigma": 0.5}])
def test_a_bake_brings_twins_up_to_date(given):
    ob, _ = rigged_tube()
    add(ob)
    other = twin_of(ob)
    bpy.ops.skinning.bake_rotation_centers(**given)
    for each in (ob, other):
        deforms_as_core(each)


def test_more_influences_reach_the_twins():
    ob, _ = rigged_tube(bone_count=12, influences=6)
    add(ob)
    other = twin_of(ob)
    for group in ob.vertex_groups:
        group.add(list(range(200, 300)), 0.1, "ADD")
    ob.data.update()
    slots = len(native_modifier(ob).node_group.nodes)
    bpy.ops.skinning.bake_rotation_centers()
    assert len(native_modifier(ob).node_group.nodes) > slots
    for each in (ob, other):
        deforms_as_core(each)


def test_a_bake_of_the_twin_without_the_modifier_counts_for_the_one_with():
    ob, _ = rigged_tube()
    other = twin_of(ob)
    add(ob)
    bpy.context.view_layer.objects.active = other
    bpy.ops.skinning.bake_rotation_centers(attribute_name="other", sigma=0.5)
    assert native_modifier(other) is None
    deforms_as_core(ob)


def test_a_renamed_bone_is_mended_for_twins_at_once():
    ob, rig = rigged_tube()
    add(ob)
    other = twin_of(ob)
    rig.data.bones["Bone 1"].name = "Spine"
    bpy.ops.skinning.add_center_of_rotation_modifier()
    assert crs_modifier.is_current(other)
    deforms_as_core(other)


# All or nothing


def test_a_fault_leaves_the_object_as_it_was(monkeypatch):
    ob, rig = rigged_tube()
    ob.modifiers.clear()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    bpy.context.view_layer.update()
    bpy.ops.skinning.bake_rotation_centers()
    before = moving_meshes.state(), sorted(ob.data.attributes.keys()), ob.parent_type, len(ob.modifiers)

    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(crs_modifier, "build_tree", fail)
    with pytest.raises(RuntimeError, match="fault of its own"):
        bpy.ops.skinning.add_center_of_rotation_modifier()
    assert (moving_meshes.state(), sorted(ob.data.attributes.keys()), ob.parent_type, len(ob.modifiers)) == before


def test_names_of_vertex_groups_are_not_taken():
    ob, _ = rigged_tube()
    ob.vertex_groups.new(name="skinning_influences_1")
    add(ob)
    deforms_as_core(ob)


def subdividing_nodes(ob):
    tree = scenes.geometry_tree("Finer")
    node = tree.nodes.new("GeometryNodeSubdivideMesh")
    tree.links.new(tree.nodes["Group Input"].outputs[0], node.inputs[0])
    tree.links.new(node.outputs[0], tree.nodes["Group Output"].inputs[0])
    modifier = scenes.nodes_modifier(ob, tree)
    ob.modifiers.move(ob.modifiers.find(modifier.name), 0)
    bpy.context.view_layer.update()


def test_nodes_that_make_vertices():
    ob, _ = rigged_tube()
    bpy.ops.skinning.bake_rotation_centers()
    subdividing_nodes(ob)
    refused('"Arm"', "changes the vertices", "move it below")


def test_nodes_that_make_vertices_stop_a_bake_before_it_writes():
    ob, _ = rigged_tube()
    add(ob)
    subdividing_nodes(ob)
    record = bake_record(ob)
    with pytest.raises(RuntimeError, match="changes the vertices"):
        bpy.ops.skinning.bake_rotation_centers(sigma=0.5)
    assert bake_record(ob) == record


def test_linked_objects_keep_their_modifier(tmp_path):
    ob, rig = rigged_tube()
    add(ob)
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {ob, rig})
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (found, linked):
        linked.objects = found.objects
    for each in linked.objects:
        bpy.context.scene.collection.objects.link(each)
    ob = next(each for each in linked.objects if each.type == "MESH")
    bpy.context.view_layer.objects.active = ob
    with pytest.raises(RuntimeError, match="linked from another file"):
        bpy.ops.skinning.remove_center_of_rotation_modifier()
    override = ob.override_create(remap_local_usages=True)
    bpy.context.view_layer.objects.active = override
    bpy.context.view_layer.update()
    with pytest.raises(RuntimeError, match="linked from another file"):
        bpy.ops.skinning.remove_center_of_rotation_modifier()
    assert native_modifier(override) is not None


def test_nothing_to_remove():
    rigged_tube()
    with pytest.raises(RuntimeError, match="has no Center of Rotation modifier"):
        bpy.ops.skinning.remove_center_of_rotation_modifier()
