# SPDX-License-Identifier: GPL-3.0-or-later
"""Bulge bones: add and remove."""

import bpy
from bpy.props import BoolProperty, StringProperty

from ....blender import dependencies
from ....blender.job_checks import active_object
from ....ui.boundary import Checked, reported
from ....ui.jobs import SkinningJob
from .. import bulge_bones, joint_helper_settings
from ..bulge_presets import PRESETS
from ..joint_helper_rig import bones_to_clear, helped_armature

# What a preset decides where the caller does not.
_OF_PRESET = ("motion", "measure", "angle_start", "angle_end")


class SKINNING_OT_add_bulge_bone(Checked, SkinningJob, bpy.types.Operator):
    """Add a bone that makes the skin bulge as another bone bends, by a driver that needs no script"""

    bl_idname = "skinning.add_bulge_bone"
    bl_label = "Add Bulge Bone"

    __annotations__ = (
        {
            "bone": StringProperty(
                name="Bone",
                description="The bone that carries the bulge, such as the upper arm. Empty stands for the active one",
                options={"SKIP_SAVE"},
            )
        }
        | joint_helper_settings.bulge_annotations("soft_min")
        | joint_helper_settings.mirror_annotations()
    )

    require = staticmethod(helped_armature)

    def prepare(self, context):
        """Take what the caller did not give from the armature's settings, as the panel shows them."""
        names = joint_helper_settings.BULGE_NAMES
        if self.properties.is_property_set("preset"):
            # The panel's angles are those of its own preset.
            names = [name for name in names if name not in _OF_PRESET]
        self.fill(names, helped_armature(context, active_object(context)).skinning_joint_helpers)

    def steps(self, context):
        dependencies.require_dependencies()
        armature = helped_armature(context, active_object(context))
        given = {name: getattr(self, name) for name in joint_helper_settings.BULGE_NAMES}
        for name in _OF_PRESET:
            if not self.properties.is_property_set(name):
                given[name] = getattr(PRESETS[self.preset], name)
        carrier = self.bone or bulge_bones.active_bone(armature)
        return (yield from bulge_bones.add_bulges(context, armature, carrier, bulge_bones.BulgeSettings(**given)))

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_remove_bulge_bone(Checked, bpy.types.Operator):
    """Remove bulge bones with all that they added, and give their weights back"""

    bl_idname = "skinning.remove_bulge_bone"
    bl_label = "Remove Bulge Bone"
    bl_options = {"REGISTER", "UNDO"}

    bones: StringProperty(
        name="Bones",
        description="Bulge bones, or bones that carry them, separated by commas. Empty stands for the selected ones",
        options={"SKIP_SAVE"},
    )
    all_bones: BoolProperty(name="All Bones", description="Remove all that there are", options={"SKIP_SAVE"})
    mirror: BoolProperty(name="Mirror", description="Remove those of the other side, too", options={"SKIP_SAVE"})

    require = staticmethod(helped_armature)

    def execute(self, context):
        with reported(self):
            armature = helped_armature(context, active_object(context))
            names = bones_to_clear(armature, self.bones, self.all_bones, self.mirror)
            self.report({"INFO"}, bulge_bones.remove_bulges(context, armature, names).summary())
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [SKINNING_OT_add_bulge_bone, SKINNING_OT_remove_bulge_bone]
