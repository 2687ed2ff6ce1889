# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake Centers of Rotation: the operator around scene.rotation_centers."""

import bpy

from ..scene import crs_modifier, dependencies, rotation_center_settings, rotation_centers
from ..scene.job_checks import reason_not_to_work
from ..scene.skin_reader import check_skinned
from .boundary import SkinningJob


class SKINNING_OT_bake_rotation_centers(SkinningJob, bpy.types.Operator):
    """Find the center that each vertex turns about where bones blend, and store it in the mesh"""

    bl_idname = "skinning.bake_rotation_centers"
    bl_label = "Bake Centers of Rotation"

    __annotations__ = rotation_center_settings.setting_annotations("soft_min")

    @classmethod
    def poll(cls, context):
        reason = reason_not_to_work(context, check_skinned)
        if reason:
            cls.poll_message_set(reason)
        return not reason

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        chosen = context.scene.skinning_rotation_centers
        for name in rotation_center_settings.SETTING_NAMES:
            if not self.properties.is_property_set(name):
                setattr(self, name, getattr(chosen, name))

    def steps(self, context):
        dependencies.require_dependencies()
        given = {name: getattr(self, name) for name in rotation_center_settings.SETTING_NAMES}
        object = context.active_object
        crs_modifier.check_updatable(context, object)
        result = yield from rotation_centers.bake(context, object, **given)
        # Its own copy of the weights may be as old as the centers were.
        crs_modifier.update(context, object)
        return result

    def finish(self, context, result):
        return result.summary()


registry = [rotation_center_settings.SkinningRotationCenterSettings, SKINNING_OT_bake_rotation_centers]


def register() -> None:
    rotation_center_settings.register()
    rotation_centers.register()


def unregister() -> None:
    rotation_centers.unregister()
    rotation_center_settings.unregister()
