# SPDX-License-Identifier: GPL-3.0-or-later
"""Fitting weights to a pose: known weights come back, only what was moved changes, and bad input is refused."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest

import skinning_tools
from skinning_tools.preview import reachable
from skinning_tools.scene import error_display, fit_copies
from skinning_tools.scene.bone_weights import read_bone_weights
from skinning_tools.scene.reachable_region import read_region
from skinning_tools.scene.skin_reader import bone_matrices, read_skin
from skinning_tools.scene.vertex_groups import put_weights, read_weights
from skinning_tools.scene.weight_fit import FitSettings
from tests.blender import moving_meshes, scenes
from tests.blender.eigenskin_scenes import limb, pose
from tests.blender.skinned_meshes import rigged_tube

pytestmark = pytest.mark.usefixtures("extension")

NAMES = ["trunk", "upper", "lower"]


@pytest.fixture
def bent():
    """The limb with both joints turned, its mesh active."""
    ob, rig = limb()
    pose(rig, [("lower", "X", 70), ("upper", "Z", 40)])
    return ob, rig


def start():
    assert bpy.ops.skinning.start_weight_fit() == {"FINISHED"}
    return bpy.context.view_layer.objects.active


def fit(**given):
    assert bpy.ops.skinning.fit_weights_to_pose(**given) == {"FINISHED"}


def positions(mesh) -> np.ndarray:
    return np.array([vertex.co for vertex in mesh.vertices])


def place(copy, chosen, points) -> None:
    """Move vertices of a mesh object, by index, to points of its space."""
    for vertex, point in zip(chosen, points, strict=True):
        copy.data.vertices[int(vertex)].co = point
    copy.data.update()


def local(copy, points: np.ndarray) -> np.ndarray:
    """World points (N, 3) in the object's space."""
    inverse = np.linalg.inv(np.array(copy.matrix_world))
    return points @ inverse[:3, :3].T + inverse[:3, 3]


def move_to(copy, chosen, targets) -> None:
    """Move vertices of a copy to where ``targets`` (N, 3), in the world, have them."""
    place(copy, chosen, local(copy, targets)[chosen])


def raw_weights(ob) -> np.ndarray:
    """(N, P) as stored, of the limb's bones."""
    bones, weights = read_weights(ob, NAMES)
    result = np.zeros((len(bones), len(NAMES)))
    np.add.at(result, (np.arange(len(bones))[:, None], bones), weights)
    return result


def world(ob) -> np.ndarray:
    """(N, 3) where the viewport has the vertices."""
    evaluated = ob.evaluated_get(bpy.context.evaluated_depsgraph_get())
    points = scenes.evaluated_positions(ob)
    matrix = np.array(evaluated.matrix_world)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def with_other_weights(ob, chosen, seed=0) -> np.ndarray:
    """World positions (N, 3) of the limb with random weights at ``chosen``, which are then taken back."""
    before = read_bone_weights(ob, bpy.data.objects["Limb rig"])
    random = np.random.default_rng(seed)
    bones, weights = np.tile(np.arange(3), (len(before.bones), 1)), raw_weights(ob)
    kept = weights.copy()
    weights[chosen] = random.dirichlet(np.ones(3), len(chosen))
    put_weights(ob, NAMES, bones, weights)
    bpy.context.view_layer.update()
    result = world(ob)
    put_weights(ob, NAMES, bones, kept)
    bpy.context.view_layer.update()
    return result


def state() -> tuple:
    """All that a refused operator must leave as it was."""
    weights = [raw_weights(ob).tolist() for ob in bpy.data.objects if ob.type == "MESH"]
    # Without it deleted objects are still listed, as None.
    bpy.context.view_layer.update()
    hidden = [ob.hide_get() for ob in bpy.context.view_layer.objects]
    attributes = [[a.name for a in mesh.attributes] for mesh in bpy.data.meshes]
    return moving_meshes.state(), weights, hidden, attributes


def refused(operator: str, *parts: str, **given) -> None:
    before = state()
    with pytest.raises(RuntimeError) as raised:
        getattr(bpy.ops.skinning, operator)(**given)
    assert [part for part in parts if part not in str(raised.value)] == [], raised.value
    assert "fault of its own" not in str(raised.value)
    assert state() == before


CHOSEN = np.arange(100, 260)


# What it must show


def test_positions_of_known_weights_come_back(bent):
    """Through Blender's own evaluation, to 1e-4, in the world."""
    ob, _ = bent
    targets = with_other_weights(ob, CHOSEN)
    plain = world(ob)
    assert np.abs(targets - plain).max() > 0.1
    copy = start()
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(world(ob) - targets).max() < 1e-4
    assert not fit_copies.copies_of(ob, bpy.context.scene)


def test_only_moved_vertices_change(bent):
    ob, _ = bent
    for group in ob.vertex_groups:
        # Weights that do not sum to 1 stay as they are, too.
        group.add([5, 6, 7], 0.2, "REPLACE")
    before = raw_weights(ob)
    targets = with_other_weights(ob, CHOSEN)
    copy = start()
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    changed = np.flatnonzero((raw_weights(ob) != before).any(axis=1))
    assert set(changed) <= set(CHOSEN)
    assert len(changed) > 100


def test_copy_is_where_the_mesh_is_and_starting_and_cancelling_leave_nothing(bent):
    ob, _ = bent
    before, shown = state(), world(ob)
    copy = start()
    assert copy != ob
    assert np.abs(world(copy) - shown).max() < 1e-5
    assert ob.hide_get()
    assert not copy.modifiers
    assert copy.data.shape_keys is None
    assert bpy.context.selected_objects == [copy]
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    assert state() == before


def test_two_poses_settle_the_weights_themselves(bent):
    """Six numbers are enough for three weights."""
    ob, rig = bent
    wanted = raw_weights(ob)
    random = np.random.default_rng(3)
    wanted[CHOSEN] = random.dirichlet(np.ones(3), len(CHOSEN))
    for turns in ([("lower", "X", 70), ("upper", "Z", 40)], [("lower", "Z", -50), ("upper", "X", 60)]):
        pose(rig, turns)
        targets = with_other_weights(ob, CHOSEN, seed=3)
        bpy.context.view_layer.objects.active = ob if not fit_copies.copies_of(ob, bpy.context.scene) else rig
        move_to(start(), CHOSEN, targets)
    first, second = fit_copies.copies_of(ob, bpy.context.scene)
    assert first.hide_get()
    assert not second.hide_get()
    fit(candidates="ALL", max_influences=3)
    assert np.abs(raw_weights(ob) - wanted)[CHOSEN].max() < 1e-3
    assert not bpy.data.objects.get("Limb_fit")
    assert not ob.hide_get()


def test_one_copy_may_be_shown_at_a_time_and_kept(bent):
    ob, _ = bent
    first = start()
    second = start()
    assert bpy.ops.skinning.show_fit_copy(name=first.name) == {"FINISHED"}
    assert bpy.context.view_layer.objects.active == first
    assert (first.hide_get(), second.hide_get(), ob.hide_get()) == (False, True, True)
    refused("show_fit_copy", "no posed copy", name="Limb")
    first.data.vertices[150].co.z += 0.05
    fit(keep_copies=True)
    assert fit_copies.copies_of(ob, bpy.context.scene) == [first, second]
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    assert not ob.hide_get()


@pytest.mark.parametrize("mode", ["OBJECT", "EDIT", "SCULPT"])
def test_fit_from_the_mode_that_the_copy_is_in(bent, mode):
    """The armature in Pose Mode is given back as it was."""
    ob, rig = bent
    targets = with_other_weights(ob, CHOSEN)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    copy = start()
    move_to(copy, CHOSEN, targets)
    bpy.ops.object.mode_set(mode=mode)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(world(ob) - targets).max() < 1e-4
    assert bpy.context.view_layer.objects.active == rig
    assert rig.mode == "POSE"
    assert bpy.context.selected_objects == [rig]


def test_vertices_moved_in_edit_mode_count(bent):
    """Where the mesh itself is not up to date."""
    ob, _ = bent
    start()
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.transform.translate(value=(0, 0, 0.05))
    fit()
    assert ob.data.attributes["skinning_fit_error"].data[100].value > 0
    assert "Limb_fit" not in bpy.data.objects


def test_a_pose_that_is_not_keyed_is_what_counts(bent):
    ob, rig = bent
    bone = rig.pose.bones["lower"]
    bone.keyframe_insert("rotation_quaternion", frame=1)
    pose(rig, [("lower", "Z", -60)])
    shown = world(ob)
    copy = start()
    assert np.abs(world(copy) - shown).max() < 1e-5
    assert np.abs(world(ob) - shown).max() < 1e-5


def test_another_object(bent):
    ob, _ = bent
    targets = with_other_weights(ob, CHOSEN)
    other = scenes.mesh_object(targets, name="Target")
    other.location.x += 5
    other.data.transform(other.matrix_basis.inverted())
    bpy.context.view_layer.objects.active = ob
    fit(source="OBJECT", target="Target", candidates="ALL", max_influences=3)
    assert np.abs(world(ob) - targets).max() < 1e-4
    assert "Target" in bpy.data.objects


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_shape_key(bent, value):
    """One that moves each vertex by what known weights would: it is muted then, as it would act twice."""
    ob, _ = bent
    targets = with_other_weights(ob, CHOSEN)
    skin = read_skin(bpy.context, ob)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    transforms = np.einsum("nk,nkij->nij", skin.weights, matrices[skin.bones])
    wanted = local(ob, targets) - transforms[..., 3]
    wanted = np.linalg.solve(transforms[..., :3], wanted[..., None])[..., 0]
    ob.shape_key_add(name="Basis")
    other = ob.shape_key_add(name="Other")
    block = ob.shape_key_add(name="Wanted", from_mix=False)
    block.points.foreach_set("co", wanted.astype(np.float32).ravel())
    block.value, other.value = value, 0.5
    bpy.context.view_layer.update()
    if value:
        assert np.abs(world(ob) - targets).max() < 1e-4
    fit(source="SHAPE_KEY", shape_key="Wanted", candidates="ALL", max_influences=3)
    assert block.mute == bool(value)
    block.mute = True
    assert np.abs(world(ob) - targets).max() < 1e-4


def test_shape_keys_that_are_on_are_part_of_what_the_bones_move(bent):
    ob, _ = bent
    scenes.shape_keys(ob, count=1)
    ob.data.shape_keys.key_blocks["Key 1"].value = 0.05
    bpy.context.view_layer.update()
    targets, shown = with_other_weights(ob, CHOSEN), world(ob)
    copy = start()
    assert np.abs(world(copy) - shown).max() < 1e-5
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(world(ob) - targets).max() < 1e-4


def test_modifiers_above_and_below(bent):
    """What is above the armature is part of the copy, what is below is not."""
    ob, _ = bent
    cast = ob.modifiers.new("Cast", "CAST")
    cast.factor = 0.3
    ob.modifiers.move(1, 0)
    bpy.context.view_layer.update()
    targets, shown = with_other_weights(ob, CHOSEN), world(ob)
    ob.modifiers.new("Subdivision", "SUBSURF")
    copy = start()
    assert np.abs(world(copy) - shown).max() < 1e-5
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    ob.modifiers.remove(ob.modifiers["Subdivision"])
    assert np.abs(world(ob) - targets).max() < 1e-4


@pytest.mark.parametrize("scale", [(-1.2, 1.2, 1.2), (0.5, 3.0, 1.0), (1.0, -2.0, 0.3)])
def test_scale_that_is_not_applied(bent, scale):
    ob, _ = bent
    ob.scale = scale
    bpy.context.view_layer.update()
    targets, shown = with_other_weights(ob, CHOSEN), world(ob)
    copy = start()
    assert np.abs(world(copy) - shown).max() < 1e-5
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(world(ob) - targets).max() < 1e-4


def test_sheared_by_its_parent(bent):
    ob, _ = bent
    parent = scenes.link(bpy.data.objects.new("Parent", None))
    parent.scale = (1, 2, 0.5)
    ob.parent = parent
    bpy.context.view_layer.objects.active = ob
    bpy.context.view_layer.update()
    targets, shown = with_other_weights(ob, CHOSEN), world(ob)
    copy = start()
    assert np.abs(world(copy) - shown).max() < 1e-5
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(world(ob) - targets).max() < 1e-4


def test_armature_as_parent_without_a_modifier(bent):
    ob, rig = bent
    ob.modifiers.clear()
    ob.parent, ob.parent_type = rig, "ARMATURE"
    bpy.context.view_layer.update()
    targets, shown = with_other_weights(ob, CHOSEN), world(ob)
    copy = start()
    assert np.abs(world(copy) - shown).max() < 1e-5
    move_to(copy, CHOSEN, targets)
    fit(candidates="ALL", max_influences=3)
    assert np.abs(world(ob) - targets).max() < 1e-4


def test_the_armature_may_move_on_and_the_file_be_saved(bent, tmp_path):
    """As the copy has the pose that it was made in."""
    ob, rig = bent
    targets = with_other_weights(ob, CHOSEN)
    move_to(start(), CHOSEN, targets)
    pose(rig)
    rig.location.x += 3
    ob.location.x += 1
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    ob, rig = bpy.data.objects["Limb"], bpy.data.objects["Limb rig"]
    assert ob.hide_get()
    fit(candidates="ALL", max_influences=3)
    assert not ob.hide_get()
    assert bpy.context.view_layer.objects.active == ob
    rig.location.x -= 3
    ob.location.x -= 1
    pose(rig, [("lower", "X", 70), ("upper", "Z", 40)])
    assert np.abs(world(ob) - targets).max() < 1e-4


def test_where_the_copy_stands_does_not_count(bent):
    ob, _ = bent
    targets = with_other_weights(ob, CHOSEN)
    copy = start()
    move_to(copy, CHOSEN, targets)
    copy.location.x += 3
    fit(candidates="ALL", max_influences=3)
    assert np.abs(world(ob) - targets).max() < 1e-4


def test_shared_mesh_is_told(bent, capfd):
    ob, _ = bent
    other = ob.copy()
    bpy.context.scene.collection.objects.link(other)
    copy = start()
    assert copy.data != ob.data
    assert not other.hide_get()
    copy.data.vertices[150].co.z += 0.05
    fit()
    assert "shared by 2 users" in capfd.readouterr().out


def test_a_copy_that_is_edited_beside_another_mesh_is_left_first(bent):
    copy = start()
    assert copy.hide_render
    other = scenes.grid()
    copy.select_set(True)
    bpy.ops.object.mode_set(mode="EDIT")
    assert (copy.mode, other.mode) == ("EDIT", "EDIT")
    assert bpy.ops.skinning.show_fit_copy.poll() is False, "the grid is active, and has no copy"
    bpy.context.view_layer.objects.active = bpy.data.objects["Limb rig"]
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    assert "Limb_fit" not in bpy.data.objects
    assert bpy.context.view_layer.objects.active.name == "Limb rig"


# Which bones, which vertices


def test_locked_groups_stay_to_the_last_bit(bent):
    ob, _ = bent
    before = raw_weights(ob)
    copy = start()
    place(copy, CHOSEN, positions(copy.data)[CHOSEN] + 0.1)
    ob.vertex_groups["upper"].lock_weight = True
    fit(candidates="ALL", max_influences=3)
    after = raw_weights(ob)
    assert np.array_equal(after[:, 1], before[:, 1])
    assert (after[CHOSEN] != before[CHOSEN]).any()
    assert np.abs(after.sum(axis=1) - 1).max() < 1e-6


def select_bones(rig, *names) -> None:
    for bone in rig.pose.bones:
        # Selection moved from bones to pose bones in Blender 5.0.
        (bone if hasattr(bone, "select") else bone.bone).select = bone.name in names


def test_selected_bones_alone(bent):
    ob, rig = bent
    select_bones(rig, "upper", "lower", "root")
    copy = start()
    place(copy, CHOSEN, positions(copy.data)[CHOSEN] + 0.1)
    fit(candidates="SELECTED", max_influences=3)
    assert not raw_weights(ob)[CHOSEN, 0].any()
    assert raw_weights(ob)[:, 0].any()


def test_adjoining_bones(bent):
    ob, _ = bent
    tip = np.arange(340, 372)
    assert not raw_weights(ob)[tip, :2].any()
    targets = raw_weights(ob)
    copy = start()
    place(copy, tip, positions(copy.data)[tip] + 0.1)
    fit(candidates="NEAR")
    assert raw_weights(ob)[tip, 1].any()
    assert not raw_weights(ob)[tip, 0].any()
    assert np.array_equal(raw_weights(ob)[:340], targets[:340])


def test_only_selected_vertices(bent):
    ob, _ = bent
    before = raw_weights(ob)
    copy = start()
    place(copy, CHOSEN, positions(copy.data)[CHOSEN] + 0.1)
    for vertex in copy.data.vertices:
        vertex.select = vertex.index in (150, 151)
    fit(vertices="SELECTED")
    changed = np.flatnonzero((raw_weights(ob) != before).any(axis=1))
    assert set(changed) <= {150, 151}
    assert len(changed)


def test_threshold(bent):
    ob, _ = bent
    before = raw_weights(ob)
    copy = start()
    copy.data.vertices[151].co.z += 0.02
    copy.data.vertices[150].co.z += 0.2
    fit(threshold=0.1, candidates="ALL")
    changed = np.flatnonzero((raw_weights(ob) != before).any(axis=1))
    assert changed.tolist() == [150]


def test_vertices_without_weights(capfd):
    ob, rig = rigged_tube()
    bpy.context.scene.frame_set(8)
    last = np.arange(len(ob.data.vertices) - 16, len(ob.data.vertices))
    copy = start()
    chosen = np.concatenate([[300], last])
    place(copy, chosen, positions(copy.data)[chosen] + 0.2)
    fit(keep_copies=True)
    assert "16 vertices without weights left alone" in capfd.readouterr().out
    assert not read_bone_weights(ob, rig).bound[last].any()
    for vertex in copy.data.vertices:
        vertex.select = vertex.index in last
    refused(
        "fit_weights_to_pose", "No bone moves 16 vertices", "Choose other bones than Own Bones", vertices="SELECTED"
    )
    fit(candidates="ALL")
    assert read_bone_weights(ob, rig).bound[last].all()


def test_report_tells_what_is_left_and_a_heat_map_shows_it(bent, capfd):
    ob, _ = bent
    copy = start()
    # Far away, where no bone reaches, and one within the segment between two bones.
    place(copy, [150, 151], positions(copy.data)[[150, 151]] + 3)
    fit()
    printed = capfd.readouterr().out
    assert "weights of 2 vertices fitted" in printed
    assert "2 of 2 cannot reach their places with these bones" in printed
    errors = np.array([item.value for item in ob.data.attributes["skinning_fit_error"].data])
    assert np.flatnonzero(errors).tolist() == [150, 151]
    assert errors[150] > 3
    assert bpy.ops.skinning.show_fit_error() == {"FINISHED"}
    assert error_display.shows_colors(ob)
    assert bpy.ops.skinning.show_fit_error(show=False) == {"FINISHED"}
    assert not error_display.shows_colors(ob)


def test_undo_takes_one_step(bent):
    bpy.context.preferences.edit.use_global_undo = True
    ob, _ = bent
    bpy.ops.ed.undo_push(message="Limb")
    copy = start()
    bpy.ops.ed.undo_push(message="Started")
    copy.data.vertices[150].co.z += 0.1
    bpy.ops.ed.undo_push(message="Moved")
    before = raw_weights(ob)
    fit()
    bpy.ops.ed.undo_push(message="Fitted")
    assert (raw_weights(ob) != before).any()
    bpy.ops.ed.undo()
    ob = bpy.data.objects["Limb"]
    assert np.array_equal(raw_weights(ob), before)
    assert [copy.name for copy in fit_copies.copies_of(ob, bpy.context.scene)] == ["Limb_fit"]
    assert ob.hide_get()


# Bad input


def test_rest_pose_is_refused():
    ob, rig = limb()
    refused("start_weight_fit", 'The pose of "Limb rig" moves all bones', "Pose the armature first")
    pose(rig, [("root", "X", 40)])
    refused("start_weight_fit", "moves all bones of", "alike")
    rig.data.pose_position = "REST"
    refused("start_weight_fit", "shows its rest position")
    ob.shape_key_add(name="Basis")
    ob.shape_key_add(name="Key")
    rig.data.pose_position = "POSE"
    refused("fit_weights_to_pose", "moves all bones of", source="SHAPE_KEY", shape_key="Key")


def test_bones_that_move_alike_are_named(bent):
    _, rig = bent
    pose(rig, [("upper", "Z", 40)])
    copy = start()
    tip = np.arange(340, 372)
    place(copy, tip, positions(copy.data)[tip] + 0.1)
    select_bones(rig, "upper", "lower")
    refused("fit_weights_to_pose", '"upper", "lower"', "in the same place in this pose", candidates="SELECTED")
    refused("fit_weights_to_pose", "32 vertices", "one bone each moves them", "Choose other bones than Own Bones")


def test_nothing_moved_or_selected(bent):
    _, rig = bent
    copy = start()
    refused("fit_weights_to_pose", 'No vertex of "Limb_fit" was moved')
    for vertex in copy.data.vertices:
        vertex.select = False
    refused("fit_weights_to_pose", "No vertex of the posed copies is selected", vertices="SELECTED")
    copy.data.vertices[150].co.z += 0.1
    select_bones(rig)
    refused("fit_weights_to_pose", "No bone of", "is selected", candidates="SELECTED")
    select_bones(rig, "root")
    refused("fit_weights_to_pose", "that deforms is selected", candidates="SELECTED")


def test_locked_groups_that_leave_nothing(bent):
    ob, _ = bent
    copy = start()
    copy.data.vertices[150].co.z += 0.1
    for group in ob.vertex_groups:
        group.lock_weight = True
    for candidates in ("OWN", "ALL"):
        refused("fit_weights_to_pose", "are locked", candidates=candidates)


def test_no_copy_yet(bent):
    refused("fit_weights_to_pose", 'no posed copy of object "Limb" yet')
    refused("show_fit_copy", "no posed copy")
    refused("cancel_weight_fit", "no posed copy")
    refused("show_fit_error", "were fitted yet")


def test_copy_with_other_vertices(bent):
    copy = start()
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.subdivide()
    refused("fit_weights_to_pose", 'The copy "Limb_fit" has', "vertices of one of them were added or removed")
    bpy.ops.object.mode_set(mode="OBJECT")
    refused("fit_weights_to_pose", "vertices of one of them were added or removed")
    assert copy.mode == "OBJECT"


def test_copy_with_as_many_but_other_vertices(bent):
    copy = start()
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="DESELECT")
    bpy.ops.object.mode_set(mode="OBJECT")
    copy.data.vertices[10].select = True
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.delete(type="VERT")
    bpy.ops.object.mode_set(mode="OBJECT")
    copy.data.vertices.add(1)
    copy.data.vertices[50].co.z += 0.1
    refused("fit_weights_to_pose", "are not those it was made with")


def test_mesh_edited_meanwhile(bent):
    ob, _ = bent
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    ob.data.vertices[3].co.x += 0.1
    refused("fit_weights_to_pose", 'was edited after "Limb_fit" was copied')
    ob.data.vertices.add(2)
    refused("fit_weights_to_pose", "were added or removed")
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}


def test_armature_changed_meanwhile(bent):
    ob, rig = bent
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    rig.data.bones["upper"].name = "humerus"
    refused("fit_weights_to_pose", 'deforming bone "humerus"', "Undo what was renamed")
    rig.data.bones["humerus"].name = "upper"
    rig.data.bones["lower"].use_deform = False
    refused("fit_weights_to_pose", 'has no deforming bone "lower"')
    rig.data.bones["lower"].use_deform = True
    bpy.data.objects.remove(rig)
    refused("fit_weights_to_pose", "No armature deforms")
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    assert not ob.hide_get()


def test_mesh_deleted_meanwhile(bent):
    ob, _ = bent
    copy = start()
    bpy.data.objects.remove(ob)
    refused("fit_weights_to_pose", 'The mesh that "Limb_fit" was copied from is gone')
    assert bpy.ops.skinning.cancel_weight_fit() == {"FINISHED"}
    with pytest.raises(ReferenceError):
        copy.name  # noqa: B018 - that it raises is the point


def test_deformation_that_is_not_linear(bent):
    ob, rig = bent
    modifier = ob.modifiers["Armature"]
    modifier.use_deform_preserve_volume = True
    refused("start_weight_fit", 'The modifier "Armature"', "preserves volume", "Disable Preserve Volume")
    modifier.use_deform_preserve_volume = False
    modifier.show_viewport = False
    refused("start_weight_fit", "is disabled in the viewport")
    modifier.show_viewport = True
    rig.data.bones["lower"].bbone_segments = 8
    rig.pose.bones["lower"].bbone_curveinx = 0.5
    bpy.context.view_layer.update()
    refused("start_weight_fit", "by more than its weights say", "Bendy Bones")
    rig.data.bones["lower"].bbone_segments = 1
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    modifier.use_deform_preserve_volume = True
    refused("fit_weights_to_pose", "preserves volume")


def test_modifier_above_that_makes_vertices(bent):
    ob, _ = bent
    ob.modifiers.new("Mirror", "MIRROR")
    ob.modifiers.move(1, 0)
    refused("start_weight_fit", "A modifier before the armature changes the vertices")


def test_poses_whose_keys_differ_are_not_mixed(bent):
    ob, rig = bent
    block = scenes.shape_keys(ob, count=1)[0]
    for value, turn in ((0.0, 60), (0.2, -40)):
        block.value = value
        pose(rig, [("lower", "X", turn), ("upper", "Z", 40)])
        copy = start()
        copy.data.vertices[150].co.z += 0.1
    refused("fit_weights_to_pose", "differently in the 2 poses")


def test_other_objects_that_do_not_fit(bent):
    ob, _ = bent
    other = scenes.mesh_object([(0, 0, 0)], name="Dot")
    scenes.link(bpy.data.objects.new("Nothing", None))
    bpy.context.view_layer.objects.active = ob
    source = {"source": "OBJECT"}
    refused("fit_weights_to_pose", "No object is chosen", **source)
    refused("fit_weights_to_pose", 'no object "Gone"', target="Gone", **source)
    refused("fit_weights_to_pose", "1 vertices", "372", target="Dot", **source)
    refused("fit_weights_to_pose", "is not a mesh", target="Nothing", **source)
    refused("fit_weights_to_pose", "No vertex has to go farther", target="Limb", **source)
    other.hide_set(True)
    refused("fit_weights_to_pose", "is hidden", target="Dot", **source)


def test_shape_keys_that_are_not_there(bent):
    refused("fit_weights_to_pose", "no shape key that is active", source="SHAPE_KEY")
    refused("fit_weights_to_pose", 'no shape key "Gone"', source="SHAPE_KEY", shape_key="Gone")


def test_settings_out_of_range(bent):
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    refused("fit_weights_to_pose", "must not be negative", max_influences=-1)
    refused("fit_weights_to_pose", "must not be negative", threshold=-0.5)


def test_linked_mesh(bent, tmp_path):
    path = str(tmp_path / "library.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    scenes.empty_scene()
    with bpy.data.libraries.load(path, link=True) as (_, loaded):
        loaded.objects = ["Limb", "Limb rig"]
    for ob in loaded.objects:
        scenes.link(ob)
    bpy.context.view_layer.objects.active = bpy.data.objects["Limb"]
    refused("start_weight_fit", "is linked from another file, so its weights cannot be changed")


@pytest.mark.parametrize("what", ["nothing", "camera", "bare", "edited", "hidden"])
def test_objects_that_cannot_start(bent, what):
    ob, _ = bent
    if what == "nothing":
        bpy.context.view_layer.objects.active = None
    elif what == "camera":
        scenes.link(bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera")))
    elif what == "bare":
        scenes.grid()
    elif what == "edited":
        bpy.ops.object.mode_set(mode="EDIT")
    else:
        ob.hide_set(True)
    text = {
        "nothing": "no active object",
        "camera": "is not a mesh",
        "bare": "No armature deforms",
        "edited": "is in Edit Mode",
        "hidden": "is hidden",
    }
    refused("start_weight_fit", text[what])
    if what == "edited":
        bpy.ops.object.mode_set(mode="OBJECT")


def test_dyntopo_is_refused(bent):
    copy = start()
    copy.data.vertices[50].co.z += 0.1
    bpy.ops.object.mode_set(mode="SCULPT")
    bpy.ops.sculpt.dynamic_topology_toggle()
    with pytest.raises(RuntimeError, match="Dyntopo is on"):
        bpy.ops.skinning.fit_weights_to_pose()


# The reachable region


def select_only(copy, index: int) -> None:
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="DESELECT")
    bpy.ops.object.mode_set(mode="OBJECT")
    copy.data.vertices[index].select = True


def region(**given):
    return read_region(bpy.context, FitSettings(**given))


@pytest.mark.parametrize("mode", ["OBJECT", "EDIT"])
def test_region_of_a_copys_vertex(bent, mode):
    """Where each bone alone puts it, in the pose that the copy was made in."""
    ob, rig = bent
    alone = []
    before = raw_weights(ob)
    for bone in range(3):
        put_weights(ob, NAMES, np.full((len(before), 1), bone), np.ones((len(before), 1)))
        bpy.context.view_layer.update()
        alone.append(world(ob)[150])
    put_weights(ob, NAMES, np.tile(np.arange(3), (len(before), 1)), before)
    bpy.context.view_layer.update()
    copy = start()
    pose(rig)
    copy.location.x += 0.5
    bpy.context.view_layer.update()
    select_only(copy, 150)
    bpy.ops.object.mode_set(mode=mode)
    found = region(candidates="ALL")
    assert found.bones == tuple(NAMES)
    assert np.abs(found.predictions - alone - (0.5, 0, 0)).max() < 1e-4
    assert np.abs(found.place - found.landing).max() < 1e-4
    assert len(found.edges) == 3
    assert region().bones == tuple(np.array(NAMES)[before[150] > 0])
    if mode == "EDIT":
        # Twice as far as the second bone: the end of the way there is what can be reached.
        beyond = local(copy, (2 * found.predictions[1] - found.predictions[2])[None])[0]
        bpy.ops.transform.translate(value=np.array(copy.matrix_world.to_3x3()) @ (beyond - positions(copy.data)[150]))
        far = region(candidates="ALL")
        assert np.abs(far.predictions - found.predictions).max() < 1e-6
        assert np.linalg.norm(far.place - found.place) > 0.05
        spread = np.linalg.norm(far.predictions - far.place, axis=1).min()
        assert np.linalg.norm(far.landing - far.place) <= spread + 1e-6


def test_region_of_the_mesh_follows_the_pose(bent):
    ob, rig = bent
    select_only(ob, 150)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="POSE")
    first = region(candidates="ALL")
    assert first.landing is None
    assert np.abs(first.place - world(ob)[150]).max() < 1e-4
    pose(rig, [("lower", "X", -70)])
    assert np.abs(region(candidates="ALL").predictions - first.predictions).max() > 0.1
    select_bones(rig, "lower")
    assert region(candidates="SELECTED").bones == ("lower",)
    ob.vertex_groups["lower"].lock_weight = True
    assert region(candidates="SELECTED") is None


def test_locked_groups_narrow_the_region(bent):
    ob, _ = bent
    chosen = int(np.argmax((raw_weights(ob)[:, 1:] > 0.3).all(axis=1)))
    select_only(ob, chosen)
    whole = region(candidates="ALL")
    ob.vertex_groups["lower"].lock_weight = True
    rest = region(candidates="ALL")
    assert rest.bones == ("trunk", "upper")
    length = [np.linalg.norm(each.predictions[1] - each.predictions[0]) for each in (whole, rest)]
    assert length[1] == pytest.approx(length[0] * (1 - raw_weights(ob)[chosen, 2]), rel=1e-4)


def test_no_region_without_a_vertex(bent):
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    assert region() is None
    bpy.ops.mesh.select_all(action="DESELECT")
    assert region() is None
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.view_layer.objects.active = None
    assert region() is None
    scenes.grid()
    select_only(bpy.context.view_layer.objects.active, 0)
    assert region() is None


def test_drawing_comes_and_goes_without_a_trace(bent):
    handlers = list(bpy.app.handlers.load_pre)
    shown = bpy.context.window_manager.skinning_reachable
    for end in ("off", "load", "unregister", "twice"):
        assert bpy.ops.skinning.show_reachable() == {"FINISHED"}
        assert shown.shown
        if end == "off":
            bpy.ops.skinning.show_reachable(show=False)
        elif end == "load":
            bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
        elif end == "unregister":
            skinning_tools.unregister()
            skinning_tools.register()
        else:
            bpy.ops.skinning.show_reachable()
            bpy.ops.skinning.show_reachable(show=False)
        shown = bpy.context.window_manager.skinning_reachable
        assert not shown.shown
        assert not reachable._handles
        assert bpy.app.handlers.load_pre == handlers


def test_a_fault_in_drawing_ends_it_with_the_reason(bent, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("so it is")

    monkeypatch.setattr(reachable, "read_region", fail)
    overlay = SimpleNamespace(show_overlays=True)
    context = SimpleNamespace(space_data=SimpleNamespace(overlay=overlay), scene=bpy.context.scene)
    monkeypatch.setattr(reachable, "bpy", SimpleNamespace(context=context, app=bpy.app, types=bpy.types))
    reachable.start()
    reachable._draw()
    assert bpy.app.timers.is_registered(reachable._end)
    reachable._end()
    assert not reachable._handles
    assert "so it is" in bpy.context.window_manager.skinning_reachable.failure
    reachable.stop()


def test_labels_do_not_cover_each_other():
    points = np.array([[100.0, 100.0], [101.0, 101.0], [102.0, 99.0], [400.0, 100.0], [np.nan, np.nan]])
    places = reachable.label_places(points, 1.0)
    heights = np.sort(places[:3, 1])
    assert (np.diff(heights) >= reachable.LINE_HEIGHT - 1e-9).all()
    assert places[3, 1] == 96
