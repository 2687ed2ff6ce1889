# SPDX-License-Identifier: GPL-3.0-or-later
"""Center-of-rotation skinning of a frame range as shape keys or a point cache, in every Blender version."""

import bpy

from ....blender import dependencies
from ....blender.character import on_mesh_meant, target_mesh
from ....ui.boundary import Checked
from ....ui.common_settings import RANGE_NAMES, frame_annotations
from ....ui.jobs import SkinningJob
from .. import crs_playback
from ..rotation_center_settings import path_property
from ..rotation_centers import check_baked


class _FrameRangeJob(Checked, SkinningJob):
    """What both operators share: the frame range, the scene's where it is not given."""

    __annotations__ = frame_annotations("play", "soft_min")

    require = staticmethod(on_mesh_meant(check_baked))

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them.

        The range is fixed with it, so that "Adjust Last Operation" shows and keeps it.
        """
        chosen = context.scene.skinning_rotation_centers
        self.fill(RANGE_NAMES, context.scene if chosen.use_scene_range else chosen)
        self.fill(["frame_step"], chosen)

    def frames(self) -> dict:
        return self.given(RANGE_NAMES) | {"frame_step": self.frame_step}

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_crs_to_shape_keys(_FrameRangeJob, bpy.types.Operator):
    """Make a copy of the mesh with a shape key per frame, deformed about the baked centers of rotation"""

    bl_idname = "skinning.crs_to_shape_keys"
    bl_label = "Apply as Shape Keys"

    __annotations__ = dict(_FrameRangeJob.__annotations__)

    def steps(self, context):
        dependencies.require_dependencies()
        return (yield from crs_playback.to_shape_keys(context, target_mesh(context), **self.frames()))


class SKINNING_OT_crs_to_pc2(_FrameRangeJob, bpy.types.Operator):
    """Make a copy of the mesh that plays a PC2 point cache, deformed about the baked centers of rotation"""

    bl_idname = "skinning.crs_to_pc2"
    bl_label = "Bake to PC2"

    __annotations__ = _FrameRangeJob.__annotations__ | {"filepath": path_property("File")}

    def prepare(self, context):
        super().prepare(context)
        if not self.properties.is_property_set("filepath"):
            self.filepath = context.scene.skinning_rotation_centers.cache_path

    def steps(self, context):
        dependencies.require_dependencies()
        return (yield from crs_playback.to_point_cache(
            context, target_mesh(context), filepath=self.filepath, **self.frames()
        ))  # fmt: skip


registry = [SKINNING_OT_crs_to_shape_keys, SKINNING_OT_crs_to_pc2]
