# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones: add and remove."""

import bpy
from bpy.props import BoolProperty, StringProperty

from ....blender import dependencies
from ....blender.bone_selection import named_bones
from ....blender.job_checks import active_object
from ....ui.boundary import Checked, reported
from ....ui.jobs import SkinningJob
from .. import bone_links, joint_helper_settings
from ..joint_helper_rig import bones_to_clear, helped_armature


class SKINNING_OT_add_bone_links(Checked, SkinningJob, bpy.types.Operator):
    """Add bones at joints that share their turn, so that the skin keeps its volume. They follow by constraints \
and take weights of all meshes that the armature deforms"""

    bl_idname = "skinning.add_bone_links"
    bl_label = "Add Bone Links"

    __annotations__ = (
        {
            "joints": StringProperty(
                name="Joints",
                description="Child bones of the joints, or bones that twist, separated by commas. Empty stands for the "
                "selected ones",
                options={"SKIP_SAVE"},
            )
        }
        | joint_helper_settings.link_annotations("soft_min")
        | joint_helper_settings.mirror_annotations()
    )

    require = staticmethod(helped_armature)

    def prepare(self, context):
        """Take what the caller did not give from the armature's settings, as the panel shows them."""
        armature = helped_armature(context, active_object(context))
        names = [name for name in joint_helper_settings.LINK_NAMES if name != "all_joints" or not self.joints]
        self.fill(names, armature.skinning_joint_helpers)

    def steps(self, context):
        dependencies.require_dependencies()
        armature = helped_armature(context, active_object(context))
        given = bone_links.LinkSettings(**{name: getattr(self, name) for name in joint_helper_settings.LINK_NAMES})
        names = [] if given.all_joints else named_bones(armature, self.joints)
        return (yield from bone_links.add_links(context, armature, names, given))

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_remove_bone_links(Checked, bpy.types.Operator):
    """Remove links and twist bones with all that they added, and give their weights back"""

    bl_idname = "skinning.remove_bone_links"
    bl_label = "Remove Bone Links"
    bl_options = {"REGISTER", "UNDO"}

    joints: StringProperty(
        name="Joints",
        description="Child bones of the joints, or bones that twist, separated by commas. Empty stands for the "
        "selected ones",
        options={"SKIP_SAVE"},
    )
    all_joints: BoolProperty(name="All Joints", description="Remove all that there are", options={"SKIP_SAVE"})
    mirror: BoolProperty(name="Mirror", description="Remove those of the other side, too", options={"SKIP_SAVE"})

    require = staticmethod(helped_armature)

    def execute(self, context):
        with reported(self):
            armature = helped_armature(context, active_object(context))
            names = bones_to_clear(armature, self.joints, self.all_joints, self.mirror)
            self.report({"INFO"}, bone_links.remove_links(context, armature, names).summary())
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [SKINNING_OT_add_bone_links, SKINNING_OT_remove_bone_links]
