# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone links, twist bones and bulge bones: add and remove."""

import bpy

from ...ui.boundary import Checked
from ...ui.jobs import AtOnce, SkinningJob
from . import bone_links, bulge_bones
from .joints import helped_armature
from .settings import OF_PRESET, BulgeRemovalSettings, BulgeSettings, LinkRemovalSettings, LinkSettings


class _OnArmature(Checked):
    """Mix-in for all operators in this module."""

    require = staticmethod(helped_armature)


class SKINNING_OT_add_bone_links(_OnArmature, SkinningJob, bpy.types.Operator):
    """Add bones at joints that share their turn, so that the skin keeps its volume. Constraints move them, \
and they get weights on all meshes that the armature deforms"""

    bl_idname = "skinning.add_bone_links"
    bl_label = "Add Bone Links"

    settings = LinkSettings
    work = staticmethod(bone_links.add_links)

    def prepare(self, context: bpy.types.Context) -> None:
        self.settings.fill(self, context, but=("all_joints",) if self.joints else ())


class SKINNING_OT_remove_bone_links(_OnArmature, AtOnce, bpy.types.Operator):
    """Remove links and twist bones with everything added for them, and restore the weights"""

    bl_idname = "skinning.remove_bone_links"
    bl_label = "Remove Bone Links"

    settings = LinkRemovalSettings
    work = staticmethod(bone_links.remove_links)


class SKINNING_OT_add_bulge_bone(_OnArmature, SkinningJob, bpy.types.Operator):
    """Add a bone that makes the skin bulge as another bone bends, by a driver that needs no script"""

    bl_idname = "skinning.add_bulge_bone"
    bl_label = "Add Bulge Bone"

    settings = BulgeSettings
    work = staticmethod(bulge_bones.add_bulges)

    def prepare(self, context: bpy.types.Context) -> None:
        self.settings.fill(self, context, but=OF_PRESET if self.properties.is_property_set("preset") else ())


class SKINNING_OT_remove_bulge_bone(_OnArmature, AtOnce, bpy.types.Operator):
    """Remove bulge bones with everything added for them, and restore the weights"""

    bl_idname = "skinning.remove_bulge_bone"
    bl_label = "Remove Bulge Bone"

    settings = BulgeRemovalSettings
    work = staticmethod(bulge_bones.remove_bulges)


registry = [
    SKINNING_OT_add_bone_links,
    SKINNING_OT_remove_bone_links,
    SKINNING_OT_add_bulge_bone,
    SKINNING_OT_remove_bulge_bone,
]
