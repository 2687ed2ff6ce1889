# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig with several actions, for the tests of solves over clips."""

import bpy
import numpy as np

from skinning_tools.blender import actions
from tests.blender import partial_scenes, scenes

CLIPS = ("Bend", "Twist", "Wave")


def rig_of_clips():
    """The tube with three actions of 6, 9 and 12 frames, the second the present one; and a target, the same mesh with
    Corrective Smooth, that the same armature deforms."""
    ob, armature = partial_scenes.tube()
    bpy.data.actions.remove(armature.animation_data.action)
    for number, name in enumerate(CLIPS):
        add_clip(armature, name, 6 + 3 * number, axis=number)
    armature.animation_data.action = bpy.data.actions["Twist"]
    target = ob.copy()
    target.name, target.data = "Target", ob.data.copy()
    scenes.home().objects.link(target)
    target.modifiers.new("Smooth", "CORRECTIVE_SMOOTH")
    bpy.context.scene.frame_set(3)
    partial_scenes.select(target, ob)
    return ob, armature, target


def add_clip(armature, name, count, axis, bones=partial_scenes.BONES, amount=0.7):
    """An action in which the bones turn about an axis."""
    action = actions.new_action(armature, name)
    times = np.arange(1.0, count + 1)
    container = actions.curve_container(armature)
    for place, bone in enumerate(bones):
        armature.pose.bones[bone].rotation_mode = "XYZ"
        values = np.zeros((count, 3))
        values[:, axis] = amount * np.sin(np.pi * times / count + place)
        actions.write_channels(container, f"{actions.bone_path(bone)}.rotation_euler", values, times, bone)
    action.use_fake_user = True
    return action
