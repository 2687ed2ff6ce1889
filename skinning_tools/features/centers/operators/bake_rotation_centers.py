# SPDX-License-Identifier: GPL-3.0-or-later
"""Bake Centers of Rotation: the operator around features.centers.rotation_centers."""

import bpy

from ....blender import dependencies
from ....blender.character import on_mesh_meant, target_mesh
from ....blender.skin_reader import check_turning
from ....ui.boundary import Checked
from ....ui.jobs import SkinningJob
from .. import crs_modifier, rotation_center_settings, rotation_centers


class SKINNING_OT_bake_rotation_centers(Checked, SkinningJob, bpy.types.Operator):
    """Find the center that each vertex turns about where bones blend, and store it in the mesh"""

    bl_idname = "skinning.bake_rotation_centers"
    bl_label = "Bake Centers of Rotation"

    __annotations__ = rotation_center_settings.setting_annotations("soft_min")

    require = staticmethod(on_mesh_meant(check_turning))

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        self.fill(rotation_center_settings.SETTING_NAMES, context.scene.skinning_rotation_centers)

    def steps(self, context):
        dependencies.require_dependencies()
        given = {name: getattr(self, name) for name in rotation_center_settings.SETTING_NAMES}
        object = target_mesh(context)
        crs_modifier.check_updatable(context, object)
        result = yield from rotation_centers.bake(context, object, **given)
        # The modifier's own copy of the weights may be as old as the centers were.
        crs_modifier.update(context, object)
        return result

    def finish(self, context, result):
        return result.summary()


registry = [SKINNING_OT_bake_rotation_centers]
