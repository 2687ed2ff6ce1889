# SPDX-License-Identifier: GPL-3.0-or-later
"""Half-rotation bones under an EigenSkin: what Blender shows, and that nothing of them stays."""

import bpy
import numpy as np
import pytest

from skinning_tools.blender.helper_bones.records import HALF, find_helpers
from skinning_tools.core.errors import BadScene
from skinning_tools.features.eigenskin import build as build_module
from skinning_tools.features.eigenskin.examples import current_pose, read_examples, read_rig
from skinning_tools.features.eigenskin.record import eigenskin_record
from tests.blender import eigenskin_scenes, refusals, scenes
from tests.blender.joint_helper_scenes import state
from tests.blender.snapshots import snapshot

pytestmark = pytest.mark.usefixtures("extension")


def build(**given):
    return bpy.ops.skinning.build_eigenskin(**{"half_rotation": True, **given})


def half_names(rig) -> list[str]:
    return [name for helper in find_helpers(rig, (HALF,)) for name in helper.skin]


def everything(ob, rig) -> tuple:
    """With the weights of a vertex in any order."""
    return state(rig, [ob]), {key: value for key, value in snapshot(ob).items() if key != "weights"}


def left_over(ob, rig, targets) -> float:
    """How far the mesh as Blender shows it is from its examples' shapes."""
    left = []
    for turn, target in zip(eigenskin_scenes.POSES, targets, strict=True):
        eigenskin_scenes.pose(rig, [turn])
        left.append(scenes.evaluated_positions(ob) - target)
    eigenskin_scenes.pose(rig)
    return float(np.linalg.norm(left))


def test_fewer_shape_keys_do(limb):
    ob, rig = limb
    skin, joints = read_rig(bpy.context, ob)
    targets = read_examples(ob, joints).shapes
    plain = left_over(ob, rig, targets)
    build(components=2, half_rotation=False)
    without = left_over(ob, rig, targets)
    bpy.ops.skinning.remove_eigenskin()
    build(components=2)
    left = left_over(ob, rig, targets)
    assert left < 0.5 * without < 0.5 * plain
    assert half_names(rig) == ["upper_half", "lower_half"]
    assert not any(curve.driver.variables[0].targets[0].bone_target in half_names(rig) for curve in _drivers(ob))
    # As far as the report says, which counts from the skin without the bones, by a rebuild, too.
    for _ in range(2):
        items = rig.skinning_eigenskin.examples
        told = np.sqrt(
            np.array([[item.error_before**2, item.error_after**2] for item in items]).sum(0) * len(skin.rest)
        )
        assert told == pytest.approx([plain, left], rel=1e-3)
        build(components=2)


def _drivers(ob):
    return ob.data.shape_keys.animation_data.drivers


def test_removal_returns_weights_and_bones_exactly(limb):
    ob, rig = limb
    before = everything(ob, rig)
    build()
    assert len(half_names(rig)) == 2
    assert bpy.ops.skinning.remove_eigenskin() == {"FINISHED"}
    assert everything(ob, rig) == before


def test_existing_bones_stay_as_they_are(limb):
    _, rig = limb
    before = state(rig, [])["bones"]
    build()
    names = half_names(rig)
    assert [bone for bone in state(rig, [])["bones"] if bone[0] not in names] == before
    assert all(rig.pose.bones[name].lock_rotation[0] for name in names)


def test_matrices_of_stored_examples_are_what_blender_shows(limb):
    """Examples from before the bones were made, and mirrored ones, do not have them."""
    ob, rig = limb
    build()
    skin, joints = read_rig(bpy.context, ob)
    assert joints.joint_names == ("root", "trunk", "upper", "lower")
    examples = read_examples(ob, joints)
    for turn, rotations, matrices in zip(eigenskin_scenes.POSES, examples.rotations, examples.matrices, strict=True):
        eigenskin_scenes.pose(rig, [turn])
        shown = current_pose(skin, joints, bpy.context.evaluated_depsgraph_get())
        np.testing.assert_allclose(rotations, shown[0], atol=1e-5)
        np.testing.assert_allclose(matrices, shown[1], atol=1e-5)


def test_a_rebuild_keeps_them_and_adds_those_of_new_joints():
    ob, rig = eigenskin_scenes.limb_with_examples([("lower", "X", 60)])
    bpy.context.view_layer.objects.active = ob
    before = everything(ob, rig)[0]["meshes"]
    build()
    assert half_names(rig) == ["lower_half"]
    eigenskin_scenes.add_example(ob, rig, [("upper", "Z", 50)])
    eigenskin_scenes.pose(rig)
    build()
    assert half_names(rig) == ["lower_half", "upper_half"]
    assert eigenskin_record(ob).half_rotations == (1, 2)
    state_before = everything(ob, rig)
    build()
    assert state(rig, [])["bones"] == state_before[0]["bones"]
    bpy.ops.skinning.remove_eigenskin()
    assert everything(ob, rig)[0]["meshes"] == before


def test_without_them_only_after_removal(limb):
    ob, rig = limb
    build()
    refusals.refused(
        "build_eigenskin", "half-rotation bones", "Remove EigenSkin first", state=lambda: everything(ob, rig)
    )


def test_small_turns_get_none():
    ob, rig = eigenskin_scenes.limb_with_examples([("lower", "X", 20), ("upper", "X", 60)])
    bpy.context.view_layer.objects.active = ob
    build()
    assert half_names(rig) == ["upper_half"]


def test_a_joint_with_links_keeps_those(limb):
    ob, rig = limb
    bpy.ops.skinning.add_bone_links(joints="lower", count=1)
    build()
    assert half_names(rig) == ["upper_half"]
    assert [support.name for support in eigenskin_record(ob).supports] == ["upper", "lower"]
    with pytest.raises(RuntimeError, match="half-rotation bone"):
        bpy.ops.skinning.add_bone_links(joints="upper", count=1)


def test_locked_groups_are_refused(limb):
    ob, rig = limb
    ob.vertex_groups["upper"].lock_weight = True
    before = everything(ob, rig)
    with pytest.raises(RuntimeError, match="locked"):
        build()
    assert everything(ob, rig) == before
    ob.vertex_groups["upper"].lock_weight = False
    build()
    ob.vertex_groups["upper"].lock_weight = True
    assert build() == {"FINISHED"}, "the bones are there, and no weight has to change"
    assert ob.vertex_groups["upper"].lock_weight
    refusals.refused("remove_eigenskin", "locked", state=lambda: everything(ob, rig))


def test_a_failure_leaves_nothing(limb, monkeypatch):
    ob, rig = limb
    before = everything(ob, rig)

    def fails(*_, **__):
        assert half_names(rig)
        raise BadScene("The shape keys cannot be written. Try again")

    monkeypatch.setattr(build_module, "write_eigenskin", fails)
    with pytest.raises(RuntimeError, match="cannot be written"):
        build()
    assert everything(ob, rig) == before


def test_a_copy_of_the_mesh_keeps_the_bones(limb):
    ob, rig = limb
    weights = state(rig, [ob])["meshes"][0]["weights"]
    bones = state(rig, [])["bones"]
    build()
    copy = scenes.link(ob.copy())
    copy.data = ob.data.copy()
    shared = state(rig, [copy])["meshes"]
    bpy.context.view_layer.objects.active = ob
    bpy.ops.skinning.remove_eigenskin()
    assert state(rig, [ob])["meshes"][0]["weights"] == weights
    assert len(half_names(rig)) == 2
    assert state(rig, [copy])["meshes"] == shared
    bpy.context.view_layer.objects.active = copy
    bpy.ops.skinning.remove_eigenskin()
    assert state(rig, [copy])["meshes"][0]["weights"] == weights
    assert state(rig, [])["bones"] == bones
