# SPDX-License-Identifier: GPL-3.0-or-later
"""The corrected normals of an EigenSkin, shown by modifiers, without scripts."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.actions import value_path
from skinning_tools.blender.before_armature import is_shaped_before_armature
from skinning_tools.blender.normal_modifiers import is_normals_modifier
from skinning_tools.blender.skin_reader import bone_matrices, read_skin
from skinning_tools.blender.skinnable import modifiers_above
from skinning_tools.core.deform import transformed_normals, vertex_transforms
from skinning_tools.features.eigenskin import writer
from skinning_tools.features.eigenskin.examples import read_rig
from skinning_tools.features.eigenskin.record import present_record
from skinning_tools.features.eigenskin.writer import remove_eigenskin
from tests.blender import eigenskin_models as models
from tests.blender import refusals, scenes
from tests.blender.eigenskin_scenes import limb, limb_with_examples, pose
from tests.blender.snapshots import snapshot

pytestmark = pytest.mark.usefixtures("extension")

can_show = pytest.mark.skipif(bpy.app.version < (4, 5, 0), reason="Set Mesh Normal is new in 4.5")


@pytest.fixture
def shown():
    """A limb with random corrections, whose normals are shown: (object, rig, joints, model, rest normals)."""
    ob, rig = limb()
    return ob, rig, *models.with_shown_normals(ob, rig)


def normals_of(ob) -> np.ndarray:
    """(N, 3) as Blender shows them."""
    mesh = ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    found = np.empty((len(mesh.corner_normals), 3), np.float32)
    mesh.corner_normals.foreach_get("vector", found.ravel())
    corners = np.empty(len(mesh.loops), np.int32)
    mesh.loops.foreach_get("vertex_index", corners)
    result = np.zeros((len(mesh.vertices), 3))
    result[corners] = found
    return result


def expected_normals(ob, joints, model, normals) -> np.ndarray:
    skin = read_skin(bpy.context, ob)
    matrices = bone_matrices(skin, bpy.context.evaluated_depsgraph_get())
    values = model.normal_values(models.shown_rotations(ob, joints)[None])[0]
    transforms = vertex_transforms(skin.rest, skin.bones, skin.weights, matrices)
    return transformed_normals(normals + model.normal_corrections(values), transforms)


@can_show
def test_the_normals_shown_are_those_of_core(shown):
    ob, rig, joints, model, normals = shown
    random = np.random.default_rng(0)
    for _ in range(5):
        models.turn_at_random(rig, random, most=1.0)
        plain = models.expected_values(ob, joints, model)
        expected = expected_normals(ob, joints, model, normals)
        assert np.abs(expected - transformed_normals(normals, np.tile(np.eye(3), (len(normals), 1, 1)))).max() > 0.1
        # Tangents of 0.01 in single precision, and normals packed in 16 bits.
        np.testing.assert_allclose(normals_of(ob), expected, atol=1e-3)
        np.testing.assert_allclose(models.shown_values(ob), plain, atol=1e-5)
    found = ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    assert (len(found.vertices), len(found.edges)) == (len(ob.data.vertices), len(ob.data.edges))


def test_drivers_compute_the_values():
    ob, rig = limb()
    _, joints = read_rig(bpy.context, ob)
    pairs = [(models.UPPER, models.LOWER)]
    model = models.any_model(joints, pairs=pairs, size=8.0)
    models.write_eigenskin(ob, rig, joints, model, normals=True)
    random, limits = np.random.default_rng(1), []
    for _ in range(5):
        models.turn_at_random(rig, random)
        key = ob.data.shape_keys.evaluated_get(bpy.context.evaluated_depsgraph_get())
        expected = model.normal_values(models.shown_rotations(ob, joints)[None])[0]
        np.testing.assert_allclose(key["skinning_eigenskin_normals"][:], expected, atol=1e-4)
        limits.append(np.abs(expected).max())
    assert np.max(limits) == 10.0


@can_show
def test_muted_and_removed(shown):
    ob, *_ = shown
    trees = set(bpy.data.node_groups)
    bpy.ops.skinning.mute_eigenskin(mute=True)
    assert not any(modifier.show_viewport for modifier in ob.modifiers if is_normals_modifier(modifier))
    bpy.ops.skinning.mute_eigenskin(mute=False)
    assert [modifier.type for modifier in ob.modifiers if modifier.show_viewport] == ["NODES", "ARMATURE", "NODES"]
    bpy.ops.skinning.remove_eigenskin()
    assert [modifier.type for modifier in ob.modifiers] == ["ARMATURE"]
    assert not trees & set(bpy.data.node_groups)
    assert not [name for name in sorted(ob.data.attributes.keys()) if "normal" in name]


def test_the_build_shows_them_where_blender_can():
    ob, _ = limb_with_examples()
    refusals.finished("build_eigenskin", show_normals=True)
    own = [modifier for modifier in ob.modifiers if is_normals_modifier(modifier)]
    assert len(own) == (2 if bpy.app.version >= (4, 5, 0) else 0)
    assert any(name.endswith(" normal") for name in sorted(ob.data.attributes.keys()))
    refusals.finished("build_eigenskin", show_normals=True)
    assert len(ob.modifiers) == 1 + len(own)
    refusals.finished("build_eigenskin")
    assert len(ob.modifiers) == 1
    assert not any(name.endswith("normal") for name in sorted(ob.data.attributes.keys()))


def own_modifiers(ob) -> list:
    return [modifier for modifier in ob.modifiers if is_normals_modifier(modifier)]


@can_show
def test_weights_are_fitted_and_dragged_below_them(shown):
    ob, rig, *_ = shown
    pose(rig, [("lower", "X", 70), ("upper", "Z", 40)])
    refusals.finished("drag_vertex", vertex=150, position=scenes.world_positions(ob)[150])
    refusals.finished("start_weight_fit")


@can_show
def test_they_follow_the_bones_after_a_bake_to_keyframes(shown):
    ob, rig, joints, model, normals = shown
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 1, 2
    random = np.random.default_rng(3)
    for frame in (1, 2):
        models.turn_at_random(rig, random, most=1.0)
        for bone in rig.pose.bones:
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    refusals.finished("bake_eigenskin")
    for frame in (1, 2):
        scene.frame_set(frame)
        np.testing.assert_allclose(normals_of(ob), expected_normals(ob, joints, model, normals), atol=1e-3)
    # Those of the shape keys are muted, with all that nothing else reads.
    muted = {curve.data_path for curve in ob.data.shape_keys.animation_data.drivers if curve.mute}
    assert {value_path(block.name) for block in ob.data.shape_keys.key_blocks[1:]} <= muted


@can_show
def test_a_failure_to_show_them_leaves_nothing(monkeypatch):
    ob, rig = limb()
    before = snapshot(ob)
    with monkeypatch.context() as patch:
        patch.setattr(writer, "show_normals", fails)
        with pytest.raises(ValueError, match="no normals"):
            models.with_shown_normals(ob, rig)
    assert snapshot(ob) == before
    models.with_shown_normals(ob, rig)
    with monkeypatch.context() as patch:
        patch.setattr(writer, "show_normals", fails)
        with pytest.raises(ValueError, match="no normals"):
            models.with_shown_normals(ob, rig)
    # The new corrections are whole: only their normals are not shown.
    assert not own_modifiers(ob)
    assert len(present_record(ob).supports) == len([group for group in ob.vertex_groups if "support" in group.name])
    remove_eigenskin(ob)
    assert snapshot(ob) == before


def fails(*_):
    raise ValueError("no normals")


@can_show
def test_a_rebuild_of_muted_corrections_leaves_them_muted(shown):
    ob, rig, joints, model, _ = shown
    bpy.ops.skinning.mute_eigenskin(mute=True)
    models.with_shown_normals(ob, rig, joints, model)
    assert [modifier.show_viewport for modifier in own_modifiers(ob)] == [False, False]
    assert [modifier.show_render for modifier in own_modifiers(ob)] == [False, False]


@can_show
def test_they_are_no_modifiers_before_the_armature(shown):
    ob, rig, *_ = shown
    assert [modifier.type for modifier in ob.modifiers] == ["NODES", "ARMATURE", "NODES"]
    assert modifiers_above(ob, rig) == []
    for block in ob.data.shape_keys.key_blocks:
        block.mute = True
    assert not is_shaped_before_armature(ob)
    pose(rig, [("lower", "X", 70)])
    refusals.finished("bind", armature=rig.name, in_pose=True, replace=True)


@can_show
def test_a_duplicate_shows_those_of_its_own_values(shown):
    ob, rig, joints, model, normals = shown
    for each in (ob, rig):
        each.select_set(True)
    assert bpy.ops.object.duplicate() == {"FINISHED"}
    copy, rig_copy = (
        next(each for each in bpy.context.selected_objects if each.type == kind) for kind in ("MESH", "ARMATURE")
    )
    models.turn_at_random(rig, np.random.default_rng(4), most=1.0)
    models.turn_at_random(rig_copy, np.random.default_rng(5), most=1.0)
    np.testing.assert_allclose(normals_of(copy), expected_normals(copy, joints, model, normals), atol=1e-3)
    np.testing.assert_allclose(normals_of(ob), expected_normals(ob, joints, model, normals), atol=1e-3)
