# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links and twist bones: add and remove."""

import bpy
from bpy.props import BoolProperty, StringProperty

from ..scene import bone_links, dependencies, joint_helper_settings
from ..scene.character import armature_at
from ..scene.job_checks import active_object
from ..scene.joint_helper_rig import check_armature, mirrored_names, named_bones
from .boundary import Checked, SkinningJob, reported


class _OnArmature(Checked):
    """Mix-in of what works on the active armature, or the one that deforms the active mesh."""

    @staticmethod
    def require(context, object):
        check_armature(armature_at(object))


class SKINNING_OT_add_bone_links(_OnArmature, SkinningJob, bpy.types.Operator):
    """Add bones at joints that share their turn, so that the skin keeps its volume. They follow by constraints and take
    weights of all meshes that the armature deforms"""

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

    def prepare(self, context):
        """Take what the caller did not give from the armature's settings, as the panel shows them."""
        armature = armature_at(active_object(context))
        names = [name for name in joint_helper_settings.LINK_NAMES if name != "all_joints" or not self.joints]
        self.fill(names, armature.skinning_joint_helpers)

    def steps(self, context):
        dependencies.require_dependencies()
        armature = armature_at(active_object(context))
        given = bone_links.LinkSettings(**{name: getattr(self, name) for name in joint_helper_settings.LINK_NAMES})
        names = [] if given.all_joints else named_bones(armature, self.joints)
        return (yield from bone_links.add_links(context, armature, names, given))

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_remove_bone_links(_OnArmature, bpy.types.Operator):
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

    def execute(self, context):
        with reported(self):
            armature = armature_at(active_object(context))
            names = None if self.all_joints else named_bones(armature, self.joints)
            if names is not None and self.mirror:
                names = mirrored_names(armature, names)
            self.report({"INFO"}, bone_links.remove_links(context, armature, names).summary())
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [*joint_helper_settings.registry, SKINNING_OT_add_bone_links, SKINNING_OT_remove_bone_links]


def register() -> None:
    joint_helper_settings.register()


def unregister() -> None:
    joint_helper_settings.unregister()
