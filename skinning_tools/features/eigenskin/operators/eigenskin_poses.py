# SPDX-License-Identifier: GPL-3.0-or-later
"""Pose Joints: the operator around features.eigenskin.joint_poses."""

import math

import bpy
from bpy.props import BoolProperty, BoolVectorProperty, FloatProperty, IntProperty, StringProperty

from ....blender.bone_selection import named_bones
from ....blender.character import armature_at
from ....blender.job_checks import active_object
from ....blender.wording import counted
from ....core.errors import BadScene, SkinningError
from ....ui.boundary import Checked, reported
from .. import joint_poses


def check_posable(context, object) -> None:
    """Raises BadScene where neither an armature nor a mesh that one deforms is active."""
    if armature_at(object) is None:
        raise BadScene("There is no active armature. Select the bones to pose in Pose Mode")


class SKINNING_OT_eigenskin_pose_joints(Checked, bpy.types.Operator):
    """Key each selected bone through its range, one at a time, for a simulation or a sculptor to fill in the shapes"""

    bl_idname = "skinning.eigenskin_pose_joints"
    bl_label = "Pose Joints"
    bl_options = {"REGISTER", "UNDO"}

    bone_names: StringProperty(
        name="Bones",
        description="Names of the bones, separated by commas. Empty stands for the selected ones",
        options={"SKIP_SAVE", "HIDDEN"},
    )
    axes: BoolVectorProperty(
        name="Axes",
        description="Axes of the bone's own space to turn about. Axes whose rotation is locked are left out",
        size=3,
        subtype="XYZ",
        default=(True, False, False),
    )
    angle_min: FloatProperty(name="From", description="Smallest angle", default=-math.pi / 2, subtype="ANGLE")
    angle_max: FloatProperty(name="To", description="Largest angle", default=math.pi / 2, subtype="ANGLE")
    use_limits: BoolProperty(
        name="Use Limits",
        description="Where a bone has a Limit Rotation constraint or limits for IK, turn it so far instead",
        default=False,
    )
    steps: IntProperty(
        name="Steps", description="Poses from rest to each end of the range", default=3, soft_min=1, soft_max=10
    )
    frames_per_pose: IntProperty(
        name="Frames per Pose",
        description="Frames from one pose to the next",
        default=10,
        soft_min=1,
        soft_max=100,
    )
    hold_frames: IntProperty(
        name="Hold",
        description="Frames that each pose is held, so that a simulation settles",
        default=0,
        soft_min=0,
        soft_max=100,
    )
    frame_start: IntProperty(name="Frame Start", description="First frame, in the rest pose", default=1)

    require = staticmethod(check_posable)

    def invoke(self, context, event):
        return context.window_manager.invoke_props_dialog(self)

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        layout.row(heading="Axes").prop(self, "axes", text="", toggle=True)
        column = layout.column(align=True)
        column.prop(self, "angle_min")
        column.prop(self, "angle_max")
        layout.prop(self, "use_limits")
        for name in ("steps", "frames_per_pose", "hold_frames", "frame_start"):
            layout.prop(self, name)
        layout.label(text=self.outcome(context), icon="INFO")

    def outcome(self, context) -> str:
        """What the present settings make, for the dialog: where each pose ends up on the timeline is hard to guess."""
        armature = armature_at(active_object(context))
        try:
            count, last = joint_poses.planned_poses(armature, named_bones(armature, self.bone_names), self._range())
        except SkinningError as error:
            return str(error)
        return f"{counted(count, 'pose')}, the last frame is {last}"

    def execute(self, context):
        with reported(self):
            armature = armature_at(active_object(context))
            names, given = named_bones(armature, self.bone_names), self._range()
            self.report({"INFO"}, joint_poses.pose_joints(context, armature, names, given).summary())
            return {"FINISHED"}
        return {"CANCELLED"}

    def _range(self) -> joint_poses.PoseRange:
        return joint_poses.PoseRange(
            tuple(self.axes),
            self.angle_min,
            self.angle_max,
            self.use_limits,
            self.steps,
            self.frames_per_pose,
            self.hold_frames,
            self.frame_start,
        )


registry = [SKINNING_OT_eigenskin_pose_joints]
