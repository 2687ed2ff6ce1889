# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake Deformers: weights and driven helper bones imitate modifiers, and everything can be taken back."""

import json
from functools import partial
from itertools import pairwise

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Quaternion

from skinning_tools import command_line
from skinning_tools.blender.background import drain
from skinning_tools.blender.helper_bones.driven import DRIVEN
from skinning_tools.blender.records import read_record
from skinning_tools.blender.skeletons import skeleton_of
from skinning_tools.core.imitation.skeleton import relative_turns, to_vectors
from skinning_tools.features.deformers import bake as bake_module
from skinning_tools.features.deformers import subject
from skinning_tools.features.deformers.bake import bake_deformers
from skinning_tools.features.deformers.figures import FIGURES, BakeFigures
from skinning_tools.features.deformers.joint_ranges import joint_ranges
from skinning_tools.features.deformers.teacher import EARLIER
from tests.blender import moving_meshes, omission_scenes, refusals, scenes, skinned_meshes
from tests.blender.partial_scenes import cancelled_at

pytestmark = pytest.mark.usefixtures("extension")

bake = partial(refusals.finished, "bake_deformers", pose_count=24)
restore = partial(refusals.finished, "restore_weights")
refused = partial(refusals.refused, "bake_deformers")
BONES = tuple(f"Bone {index}" for index in range(5))


@pytest.fixture
def tube():
    """The tube with Preserve Volume and Corrective Smooth; its armature has no action."""
    ob, rig = skinned_meshes.rigged_tube(rings=21, segments=8)
    ob.vertex_groups["Bone 4"].add(list(range(len(ob.data.vertices) - 8, len(ob.data.vertices))), 1.0, "REPLACE")
    rig.animation_data_clear()
    bpy.data.batch_remove(bpy.data.actions)
    for bone in rig.pose.bones:
        bone.rotation_mode = "QUATERNION"
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    ob.modifiers["Armature"].use_deform_preserve_volume = True
    ob.modifiers.new("Smooth", "CORRECTIVE_SMOOTH").iterations = 5
    return ob, rig


def weights_of(ob) -> list[dict[str, float]]:
    names = [group.name for group in ob.vertex_groups]
    return [{names[each.group]: each.weight for each in vertex.groups} for vertex in ob.data.vertices]


def figures(ob) -> BakeFigures:
    return read_record(ob.data, FIGURES, BakeFigures)


def copies(ob):
    """The mesh as it is now, and as linear blending alone has it."""
    target, plain = ob.copy(), ob.copy()
    for each in (target, plain):
        each.data = ob.data.copy()
        scenes.link(each)
    plain.modifiers.remove(plain.modifiers["Smooth"])
    plain.modifiers["Armature"].use_deform_preserve_volume = False
    bpy.context.view_layer.objects.active = ob
    return target, plain


def imitated(ob, target, plain, rig, seed=5, angle=0.6) -> float:
    """The share of the target's effect at random poses, as Blender evaluates the rig itself."""
    rng, sums = np.random.default_rng(seed), np.zeros(2)
    for _ in range(10):
        for name in BONES[1:]:
            rig.pose.bones[name].rotation_quaternion = Quaternion(rng.normal(size=3), angle * rng.random() ** 0.5)
        bpy.context.view_layer.update()
        wanted = scenes.evaluated_positions(target)
        sums += [((scenes.evaluated_positions(each) - wanted) ** 2).sum() for each in (ob, plain)]
    return 1 - np.sqrt(sums[0] / sums[1])


def test_weights_imitate_and_can_be_restored(tube):
    ob, rig = tube
    target, plain = copies(ob)
    before, blocks, state = weights_of(ob), scenes.data_blocks(), scenes.ui_state()
    bake()
    assert scenes.data_blocks() == blocks
    assert scenes.ui_state() == state
    assert all(tuple(bone.rotation_quaternion) == (1, 0, 0, 0) for bone in rig.pose.bones)
    smooth, armature = ob.modifiers["Smooth"], ob.modifiers["Armature"]
    assert (smooth.show_viewport, smooth.show_render, armature.use_deform_preserve_volume) == (False, False, False)
    assert weights_of(ob) != before
    assert max(len(groups) for groups in weights_of(ob)) <= 4
    assert (figures(ob).what, figures(ob).helpers) == ("Preserve Volume, Smooth", 0)
    assert figures(ob).imitated > 0.02
    assert imitated(ob, target, plain, rig) > 0.02
    restore()
    assert weights_of(ob) == before
    assert (smooth.show_viewport, smooth.show_render, armature.use_deform_preserve_volume) == (True, True, True)
    assert not [key for key in list(ob.data.keys()) if key.startswith("skinning_")]


def by_table(table, helper, rig) -> np.ndarray:
    """(4, 4): the matrix of a helper bone in the armature, from a saved table and the bones as they stand."""
    rest = {each["name"]: np.array(each["rest"]) for each in (*table["joints"], *table["helpers"])}
    bones = rig.pose.bones
    products = []
    for name in helper["joints"]:
        joint = next(each for each in table["joints"] if each["name"] == name)
        at_rest = np.linalg.inv(np.array(rig.data.bones[joint["parent"]].matrix_local)) @ rest[name]
        turned = np.linalg.inv(np.array(bones[joint["parent"]].matrix)) @ np.array(bones[name].matrix)
        quaternion = np.array(Matrix(np.linalg.inv(at_rest) @ turned).to_quaternion())
        parts = dict(zip("xyz", np.copysign(1.0, quaternion[0]) * quaternion[1:], strict=True))
        products += [np.prod([parts[letter] for letter in text]) for text in table["products"]]
    local = Quaternion((1.0, *np.array(helper["rotation"]) @ products)).normalized().to_matrix().to_4x4()
    local.translation = np.array(helper["location"]) @ products
    parent = helper["parent"]
    at_rest = np.linalg.inv(np.array(rig.data.bones[parent].matrix_local)) @ rest[helper["name"]]
    return np.array(bones[parent].matrix) @ at_rest @ np.array(local)


def test_driven_helpers_imitate_more_without_scripts_and_are_removed_again(tube, tmp_path):
    ob, rig = tube
    target, plain = copies(ob)
    before = weights_of(ob)
    bake()
    by_weights = imitated(ob, target, plain, rig)
    restore()
    result, _ = scenes.drain(bake_deformers(bpy.context, ob, helper_bones=4, pose_count=60))
    assert result.summary().count("helper bone") == 1
    helpers = [bone.name for bone in rig.data.bones if bone.name.startswith("HLP-")]
    assert helpers
    drivers = rig.animation_data.drivers
    assert all(curve.driver.is_simple_expression for curve in drivers)
    assert max(len(curve.driver.expression) for curve in drivers) <= 250
    found = imitated(ob, target, plain, rig)
    assert found > by_weights + 0.1
    refusals.finished("save_helper_table", filepath=str(tmp_path / "helpers.json"))
    table = json.loads((tmp_path / "helpers.json").read_text("utf-8"))
    assert (table["schema"], table["schema_version"]) == ("skinning_tools.driven_helpers", 2)
    assert [each["name"] for each in table["helpers"]] == helpers
    for each in table["helpers"]:
        np.testing.assert_allclose(rig.pose.bones[each["name"]].matrix, by_table(table, each, rig), atol=1e-5)
    helper = rig.data.bones[helpers[0]]
    stored = helper[DRIVEN].to_dict()
    helper[DRIVEN] = {**stored, "coefficients": stored["coefficients"][:-1]}
    refusals.refused("save_helper_table", f'"{helper.name}" is damaged', filepath=str(tmp_path / "other.json"))
    helper[DRIVEN] = stored
    for bone in rig.pose.bones:
        bone.rotation_quaternion = (1, 0, 0, 0)
    bpy.context.view_layer.update()
    assert np.allclose(scenes.evaluated_positions(ob), scenes.evaluated_positions(plain), atol=1e-5)
    restore()
    assert weights_of(ob) == before
    assert [bone.name for bone in rig.data.bones] == list(BONES)
    assert rig.animation_data is None
    refusals.refused("save_helper_table", "no helper bones that joints drive", filepath=str(tmp_path / "other.json"))


def test_helpers_stay_for_a_duplicate(tube, capfd):
    ob, rig = tube
    before = weights_of(ob)
    bake(helper_bones=2)
    helpers = {bone.name for bone in rig.data.bones if bone.name.startswith("HLP-")}
    assert helpers
    twin = ob.copy()
    twin.data = ob.data.copy()
    twin.name = "Twin"
    scenes.link(twin)
    baked = weights_of(twin)
    bpy.context.view_layer.objects.active = ob
    capfd.readouterr()
    restore()
    assert "helper bones stay for Twin" in capfd.readouterr().out
    assert weights_of(ob) == before
    assert weights_of(twin) == baked
    assert helpers <= set(rig.data.bones.keys())
    bpy.context.view_layer.objects.active = twin
    restore()
    assert weights_of(twin) == before
    assert [bone.name for bone in rig.data.bones] == list(BONES)


def test_the_seed_decides(tube):
    ob, _ = tube
    found = []
    for seed in (0, 0, 1):
        bake(seed=seed)
        found.append(weights_of(ob))
        restore()
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_locked_groups_keep_their_weights(tube):
    ob, _ = tube
    ob.vertex_groups["Bone 1"].lock_weight = True
    before = [groups.get("Bone 1") for groups in weights_of(ob)]
    bake()
    assert [groups.get("Bone 1") for groups in weights_of(ob)] == before


def test_controls_move_deforming_bones_without_parents(tube):
    """As on generated rigs: helpers read the joint between two deforming bones that have no deforming parents."""
    ob, rig = tube
    with bpy.context.temp_override(active_object=rig, object=rig):
        bpy.context.view_layer.objects.active = rig
        bpy.ops.object.mode_set(mode="EDIT")
        for name in BONES:
            bone = rig.data.edit_bones[name]
            control = rig.data.edit_bones.new(f"ORG-{name}")
            control.head, control.tail, control.roll, control.use_deform = bone.head, bone.tail, bone.roll, False
        for first, second in pairwise(BONES):
            rig.data.edit_bones[f"ORG-{second}"].parent = rig.data.edit_bones[f"ORG-{first}"]
        for name in BONES:
            rig.data.edit_bones[name].use_connect = False
            rig.data.edit_bones[name].parent = None
        bpy.ops.object.mode_set(mode="OBJECT")
    for name in BONES:
        constraint = rig.pose.bones[name].constraints.new("COPY_TRANSFORMS")
        constraint.target, constraint.subtarget = rig, f"ORG-{name}"
        rig.pose.bones[f"ORG-{name}"].rotation_mode = "QUATERNION"
    bpy.context.view_layer.objects.active = ob
    assert skeleton_of(rig, BONES).parents.tolist() == [-1, 0, 1, 2, 3]
    target, plain = copies(ob)
    own = [bone.name for bone in rig.data.bones]
    bake(helper_bones=4, pose_count=60)
    rng, sums = np.random.default_rng(2), np.zeros(2)
    for _ in range(10):
        for name in BONES[1:]:
            control = rig.pose.bones[f"ORG-{name}"]
            control.rotation_quaternion = Quaternion(rng.normal(size=3), 0.6 * rng.random())
        bpy.context.view_layer.update()
        wanted = scenes.evaluated_positions(target)
        sums += [((scenes.evaluated_positions(each) - wanted) ** 2).sum() for each in (ob, plain)]
    assert 1 - np.sqrt(sums[0] / sums[1]) > 0.1
    restore()
    assert [bone.name for bone in rig.data.bones] == own


def test_poses_stay_within_limits(tube, monkeypatch):
    ob, rig = tube
    limit = rig.pose.bones["Bone 2"].constraints.new("LIMIT_ROTATION")
    limit.owner_space = "LOCAL"
    limit.use_limit_x = limit.use_limit_y = limit.use_limit_z = True
    limit.max_x, limit.min_x = 0.5, 0.2
    taken = []
    from skinning_tools.features.deformers.posed_rig import PosedRig

    shape = PosedRig.shape

    def noted(self, motion):
        taken.append(motion)
        return shape(self, motion)

    monkeypatch.setattr(PosedRig, "shape", noted)
    told = drain(bake_deformers(bpy.context, ob, pose_count=8)).summary()
    assert 'the limits of "Bone 2" exclude its rest pose, so that no pose has it at rest' in told
    vectors = to_vectors(relative_turns(skeleton_of(rig, BONES), np.array([each[:5] for each in taken])))
    # The first is at rest.
    assert np.abs(vectors[1:, 2, 1:]).max() < 1e-6
    assert vectors[1:, 2, 0].min() > 0.2 * 0.7**6 - 1e-6
    assert vectors[1:, 2, 0].max() < 0.5 + 1e-6


def test_joints_turn_as_far_as_in_any_action(tube, monkeypatch):
    ob, rig = tube
    found, bone = [], rig.pose.bones["Bone 1"]
    for turned in ((0.6, 0.8, 0.0, 0.0), (0.995, 0.0, 0.1, 0.0)):
        if rig.animation_data is not None:
            rig.animation_data.action.use_fake_user = True
            rig.animation_data.action = None
        scenes.key_property(bone, "rotation_quaternion", {1: (1, 0, 0, 0), 5: turned})
    calm = rig.animation_data.action
    bpy.context.scene.render.frame_map_new = 200

    def noted(*given):
        found.append(joint_ranges(*given))
        return found[-1]

    monkeypatch.setattr(subject, "joint_ranges", noted)
    drain(bake_deformers(bpy.context, ob, pose_count=8))
    # In the active one it hardly turns.
    assert found[0][0].high[1, 0] > 0.99 * 2 * np.arccos(0.6)
    assert rig.animation_data.action == calm


def test_the_sides_of_a_seam_are_one(tube):
    """Corrective Smooth takes them for borders, and tears them apart; but not where it counts as whole."""
    ob, _ = tube
    bake()
    whole, imitating = weights_of(ob), figures(ob).imitated
    restore()
    ob.modifiers["Smooth"].rest_source = "BIND"
    skinned_meshes.split(ob, range(80, 88))
    bpy.ops.object.correctivesmooth_bind(modifier="Smooth")
    # Bound to the vertices that there are.
    told = drain(bake_deformers(bpy.context, ob, pose_count=24)).summary()
    assert 'object "Arm" is split, and its target tears it open at 8 pairs of vertices' in told
    restore()
    ob.modifiers["Smooth"].rest_source = "ORCO"
    bpy.ops.object.correctivesmooth_bind(modifier="Smooth")
    told = drain(bake_deformers(bpy.context, ob, pose_count=24)).summary()
    assert 'object "Arm" is split along seams, whose sides count as one vertex' in told
    places = {tuple(vertex.co): groups for vertex, groups in zip(ob.data.vertices, weights_of(ob), strict=True)}
    assert len(places) == len(whole) == len(ob.data.vertices) - 8
    assert weights_of(ob) == [places[tuple(vertex.co)] for vertex in ob.data.vertices]
    assert figures(ob).imitated == pytest.approx(imitating, abs=0.02)


def test_blocked_scripts_are_noted(tube, tmp_path):
    """The joints turn as far as in the action, which plays otherwise where scripts may run."""
    _, rig = tube
    scenes.key_property(rig.pose.bones["Bone 1"], "rotation_quaternion", {1: (1, 0, 0, 0), 5: (0.8, 0.6, 0, 0)})
    omission_scenes.driver(rig.pose.bones["Bone 4"])
    omission_scenes.reopened(tmp_path)
    told = drain(bake_deformers(bpy.context, bpy.context.object, pose_count=8)).summary()
    assert 'object "Rig"' in told
    assert "script" in told


def test_a_lattice_that_follows_the_armature_is_not_harmed(tube):
    ob, rig = tube
    lattice = bpy.data.objects.new("Cage", bpy.data.lattices.new("Cage"))
    scenes.link(lattice)
    lattice.parent, lattice.scale = rig, (6, 2, 2)
    ob.modifiers.new("Cage", "LATTICE").object = lattice
    lattice.data.points[0].co_deform.x -= 0.4
    bpy.context.view_layer.objects.active = ob
    blocks = scenes.data_blocks()
    bake()
    assert scenes.data_blocks() == blocks
    assert ob.modifiers["Cage"].object == lattice
    assert figures(ob).what == "Preserve Volume, Smooth, Cage"


def test_nothing_to_bake(tube):
    ob, _ = tube
    ob.modifiers.remove(ob.modifiers["Smooth"])
    ob.modifiers["Armature"].use_deform_preserve_volume = False
    refused("Nothing but its weights deforms")


def test_a_modifier_between_that_adds_vertices(tube):
    ob, _ = tube
    ob.modifiers.new("Subdivision", "SUBSURF")
    ob.modifiers.move(2, 1)
    refused("changes its vertices before")
    ob.modifiers.move(1, 2)
    bake()
    assert ob.modifiers["Subdivision"].show_viewport


def test_all_weights_locked(tube):
    ob, _ = tube
    for group in ob.vertex_groups:
        group.lock_weight = True
    refused("every weight is locked")


def test_a_second_bake_asks_for_the_first_weights(tube):
    bake()
    tube[0].modifiers["Smooth"].show_viewport = True
    refused("baked before")


def test_the_active_armature_stands_for_its_mesh(tube):
    ob, rig = tube
    before = weights_of(ob)
    bpy.context.view_layer.objects.active = rig
    bake()
    assert weights_of(ob) != before
    restore()
    assert weights_of(ob) == before


def test_nothing_to_restore_and_edited_meshes(tube):
    ob, _ = tube
    refusals.refused("restore_weights", "no weights from before")
    bake()
    ob.data.vertices.add(1)
    refusals.refused("restore_weights", "was edited after the bake")


def test_an_effect_that_no_pose_shows(tube):
    ob, _ = tube
    ob.modifiers["Armature"].use_deform_preserve_volume = False
    ob.modifiers["Smooth"].factor = 0.0
    refused("moves no vertex")


def test_a_mesh_without_size(tube):
    ob, _ = tube
    ob.data.vertices.foreach_set("co", np.zeros(3 * len(ob.data.vertices)))
    refused("All vertices of", "lie at one point at rest", "Give it a shape")


@pytest.mark.parametrize("failing", ["write_bone_weights", "store", "write_record"])
def test_a_write_that_fails_leaves_nothing(tube, failing, monkeypatch):
    ob, rig = tube
    ob["skinning_compression"], ob["skinning_partition"], ob.data[FIGURES] = [2.5, 1.0], [3, 4], {"what": "earlier"}
    before, blocks, weights = moving_meshes.state(), scenes.data_blocks(), weights_of(ob)
    real, written = getattr(bake_module, failing), []

    def write(target, *given):
        real(target, *given)
        if target in (ob, ob.data):
            written.append(target)
            raise MemoryError("none left")

    monkeypatch.setattr(bake_module, failing, write)
    with pytest.raises(RuntimeError, match=r"none left|[Mm]emory"):
        bpy.ops.skinning.bake_deformers(pose_count=16, helper_bones=2)
    assert written
    assert (moving_meshes.state(), scenes.data_blocks(), weights_of(ob)) == (before, blocks, weights)
    assert [bone.name for bone in rig.data.bones] == list(BONES)
    assert rig.animation_data is None
    assert not rig.data.collections_all
    assert ob.modifiers["Armature"].use_deform_preserve_volume
    assert ob.modifiers["Smooth"].show_viewport
    assert [key for key in ob.data.keys() if key.startswith("skinning_")] == [FIGURES]  # noqa: SIM118
    assert ob.data[FIGURES].to_dict() == {"what": "earlier"}
    assert (list(ob["skinning_compression"]), list(ob["skinning_partition"])) == ([2.5, 1.0], [3, 4])


def test_damaged_earlier_weights_and_a_modifier_that_is_gone(tube, capfd):
    ob, _ = tube
    bake()
    for key, index, value in (("columns", 0, 99), ("vertices", 0, 10**6), ("vertices", -1, -1)):
        stored = ob.data[EARLIER].to_dict()
        damaged = {**stored, key: list(stored[key])}
        damaged[key][index] = value
        ob.data[EARLIER] = damaged
        refusals.refused("restore_weights", "are damaged")
        ob.data[EARLIER] = stored
    # A modifier that is gone cannot be on again.
    ob.modifiers.remove(ob.modifiers["Smooth"])
    capfd.readouterr()
    restore()
    assert "back; Preserve Volume on again\n" in capfd.readouterr().out


@pytest.mark.parametrize("fraction", [0.1, 0.35, 0.95])
def test_cancelling_leaves_nothing(tube, fraction):
    ob, _ = tube
    before, blocks = moving_meshes.state(), scenes.data_blocks()
    cancelled_at(fraction, bake_deformers(bpy.context, ob, pose_count=16, helper_bones=2))
    assert moving_meshes.state() == before
    assert scenes.data_blocks() == blocks


def test_the_command_line(tube, tmp_path):
    path, end = tmp_path / "tube.blend", ["--object", "Arm", "--overwrite"]
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert command_line.main(["bake-deformers", "--poses", "16", *end]) == 0
    scenes.reopened(path)
    assert figures(bpy.data.objects["Arm"]).poses == 16
    assert command_line.main(["restore-weights", *end]) == 0
    scenes.reopened(path)
    assert figures(bpy.data.objects["Arm"]) is None
