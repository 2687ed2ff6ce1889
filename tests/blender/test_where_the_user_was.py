# SPDX-License-Identifier: GPL-3.0-or-later
"""Removals and cancelled jobs keep the user's selection, active object and mode.

Each operator that takes something away, after the one that has made it; and each long one, stopped on its way.
"""

from functools import partial

import bpy
import pytest

from skinning_tools.blender import background
from skinning_tools.core.errors import Cancelled
from skinning_tools.ui import boundary
from tests.blender import (
    eigenskin_scenes,
    helper_bone_scenes,
    joint_helper_scenes,
    moving_meshes,
    skinned_meshes,
)
from tests.blender.whereabouts import moved, unsettle, whereabouts

pytestmark = pytest.mark.usefixtures("extension")

run = bpy.ops.skinning


def call(name: str, **given):
    """An operator by name, as long as the extension is registered."""
    assert getattr(bpy.ops.skinning, name)(**given) == {"FINISHED"}


# Scenes: the mesh and its armature, if it has one.


def flag():
    moving_meshes.fresh_scene()
    return moving_meshes.waving_grid(), None


def arm():
    return skinned_meshes.rigged_tube()


def bent_arm():
    ob, rig = arm()
    bpy.context.scene.frame_set(5)
    return ob, rig


def baked_arm():
    ob, rig = arm()
    call("bake_rotation_centers")
    return ob, rig


def limb():
    return eigenskin_scenes.limb_with_examples()


def corrected_limb():
    ob, rig = limb()
    bpy.context.view_layer.objects.active = ob
    call("build_eigenskin")
    return ob, rig


def bar():
    return joint_helper_scenes.bar()


def jiggling():
    ob, rig, *_ = helper_bone_scenes.jiggling_rig()
    return ob, rig


def converted():
    ob, _ = flag()
    call("convert_animation", bone_count=4, iterations=3)
    return ob, None


PAIRS = {
    "result": (flag, partial(call, "convert_animation", bone_count=4, iterations=3), partial(call, "delete_result")),
    "modifier of centers": (
        baked_arm,
        partial(call, "add_center_of_rotation_modifier"),
        partial(call, "remove_center_of_rotation_modifier"),
    ),
    "EigenSkin": (limb, partial(call, "build_eigenskin"), partial(call, "remove_eigenskin")),
    "EigenSkin's keyframes": (
        corrected_limb,
        partial(call, "bake_eigenskin", frame_start=1, frame_end=3),
        partial(call, "unbake_eigenskin"),
    ),
    "bone links": (
        bar,
        partial(joint_helper_scenes.add_links, "fore.L"),
        partial(call, "remove_bone_links", all_joints=True),
    ),
    "bulge": (bar, joint_helper_scenes.add_bulge, partial(call, "remove_bulge_bone", all_bones=True)),
    "helper bones": (jiggling, helper_bone_scenes.add, partial(call, "remove_helper_bones")),
    "weight fit": (bent_arm, partial(call, "start_weight_fit"), partial(call, "cancel_weight_fit")),
    "volumes": (arm, partial(call, "generate_volumes"), partial(call, "remove_volumes")),
    "weight view": (arm, partial(call, "show_weights", mode="BONES"), partial(call, "show_weights", mode="OFF")),
    "pose test": (arm, partial(call, "pose_test"), partial(call, "hide_pose_test")),
    "error colors": (converted, partial(call, "show_error"), partial(call, "show_error")),
    "EigenSkin's error": (
        corrected_limb,
        partial(call, "show_eigenskin_error", shown="AFTER"),
        partial(call, "show_eigenskin_error", shown="OFF"),
    ),
}


def settled_in(make, active: str, mode: str):
    """The scene with the user in it; None where the place is not one to be in there."""
    ob, rig = make()
    unsettle(ob, rig)
    chosen = {"mesh": ob, "armature": rig}[active]
    if chosen is None:
        return None
    bpy.context.view_layer.objects.active = chosen
    chosen.select_set(True)
    bpy.ops.object.mode_set(mode=mode)
    return ob, rig


@pytest.mark.parametrize(
    ("active", "mode"), [("mesh", "OBJECT"), ("mesh", "WEIGHT_PAINT"), ("armature", "OBJECT"), ("armature", "POSE")]
)
@pytest.mark.parametrize("what", PAIRS)
def test_made_and_removed(what, active, mode):
    make, add, remove = PAIRS[what]
    if settled_in(make, active, mode) is None:
        pytest.skip("there is no armature")
    before = whereabouts()
    try:
        add()
    except RuntimeError as error:
        pytest.skip(f"not from here: {error}")
    if what == "result" and mode == "WEIGHT_PAINT":
        pytest.skip("Delete Result asks for Object Mode")
    remove()
    assert moved(before, whereabouts()) == []


@pytest.mark.parametrize("active", ["mesh", "armature"])
@pytest.mark.parametrize("what", PAIRS)
def test_where_the_user_has_gone_meanwhile(what, active):
    """The user may select other objects than the new ones: they stay selected when the new ones are removed."""
    make, add, remove = PAIRS[what]
    ob, rig = settled_in(make, "mesh", "OBJECT")
    if active == "armature" and rig is None:
        pytest.skip("there is no armature")
    try:
        add()
    except RuntimeError as error:
        pytest.skip(f"not from here: {error}")
    if bpy.context.view_layer.objects.active in (ob, rig) and what != "modifier of centers":
        bpy.context.view_layer.objects.active = {"mesh": ob, "armature": rig}[active]
    ob.modifiers.active = ob.modifiers["Last"]
    ob.vertex_groups.active_index = ob.vertex_groups.find("Mine")
    bpy.data.objects["Bystander"].select_set(False)
    before = whereabouts()
    if bpy.context.view_layer.objects.active not in (ob, rig):
        pytest.skip("what was made is where the user is")
    remove()
    after = whereabouts()
    for name in before.keys() & after.keys():
        changed = {key for key in before[name] if before[name][key] != after[name][key]} if name != "user" else set()
        # Objects that were hidden for a deleted one are shown again.
        assert changed <= {"shown", "key", "constraint", "bones", "color"}, (name, before[name], after[name])
    gone = before.keys() - after.keys()
    assert [each for each in before["user"][4] if each not in gone] == after["user"][4]
    assert before["user"][:4] == after["user"][:4]


def stopped_after(count: int):
    """``background.drain`` of an operator whose user presses Esc after so many steps."""

    def drain(steps, progress=None):
        try:
            for _ in range(count):
                next(steps)
        except StopIteration as end:
            return end.value
        steps.close()
        raise Cancelled

    return drain


JOBS = {
    "convert_animation": (flag, {"bone_count": 4, "iterations": 3, "residual_shapes": 1, "key_tolerance": 1.0}),
    "convert_again": (converted, {"replace": True}),
    "bake_rotation_centers": (arm, {}),
    "build_eigenskin": (limb, {}),
    "bind": (arm, {"replace": True}),
    "generate_volumes": (arm, {}),
    "smooth_weights": (arm, {}),
    "compress_weights": (arm, {}),
    "remove_rogue_weights": (arm, {}),
    "add_helper_bones": (jiggling, {"bone_count": 2}),
    "solve_weights": (jiggling, {}),
    "solve_transforms": (jiggling, {}),
    "solve_again": (jiggling, {}),
    "pose_test": (arm, {}),
    "add_bone_links": (bar, {"joints": "fore.L"}),
    "add_bulge_bone": (bar, {"bone": "upper.L"}),
}


@pytest.mark.parametrize(("active", "mode"), [("mesh", "OBJECT"), ("mesh", "WEIGHT_PAINT"), ("armature", "POSE")])
@pytest.mark.parametrize("name", JOBS)
def test_cancelled(monkeypatch, name, active, mode):
    make, given = JOBS[name]
    if settled_in(make, active, mode) is None:
        pytest.skip("there is no armature")
    if not getattr(bpy.ops.skinning, name).poll():
        pytest.skip("not from here")
    before = whereabouts()
    for count in (1, 2, 3, 4, 6, 8, 12, 16, 24, 40, 80, 200):
        monkeypatch.setattr(boundary.background, "drain", stopped_after(count))
        try:
            ended = getattr(bpy.ops.skinning, name)(**given)
        except RuntimeError as error:
            pytest.skip(f"not from here: {error}")
        if ended == {"FINISHED"}:
            break
        after = whereabouts()
        assert (moved(before, after), after.keys()) == ([], before.keys()), count
    monkeypatch.setattr(boundary.background, "drain", background.drain)
