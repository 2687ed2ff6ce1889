# SPDX-License-Identifier: GPL-3.0-or-later
"""Center-of-rotation skinning of a frame range as shape keys or a point cache, in every Blender version."""

import bpy
from bpy.props import IntProperty, StringProperty

from ..scene import crs_playback, dependencies
from ..scene.job_checks import active_object
from ..scene.rotation_centers import check_baked
from .boundary import Checked, SkinningJob

# Blender before 4.5 knows no such option, and takes such paths without it.
_RELATIVE = {"PATH_SUPPORTS_BLEND_RELATIVE"} if bpy.app.version >= (4, 5, 0) else set()

RANGE_NAMES = ("frame_start", "frame_end")


class _FrameRangeJob(Checked, SkinningJob):
    """What both operators share: the frame range, the scene's where it is not given."""

    __annotations__ = {
        "frame_start": IntProperty(name="Frame Start", description="First frame", default=1, options={"SKIP_SAVE"}),
        "frame_end": IntProperty(name="Frame End", description="Last frame", default=250, options={"SKIP_SAVE"}),
        "frame_step": IntProperty(
            name="Frame Step",
            description="Every frame (1), every second frame (2), and so on, linear in between",
            default=1,
            soft_min=1,
            soft_max=10,
            options={"SKIP_SAVE"},
        ),
    }

    check = staticmethod(check_baked)

    def prepare(self, context):
        """Fix the range, so that "Adjust Last Operation" shows and keeps it."""
        self.fill(RANGE_NAMES, context.scene)

    def frames(self) -> dict:
        given = {name: getattr(self, name) for name in RANGE_NAMES if self.properties.is_property_set(name)}
        return given | {"frame_step": self.frame_step}

    def finish(self, context, result):
        return result.summary()


class SKINNING_OT_crs_to_shape_keys(_FrameRangeJob, bpy.types.Operator):
    """Make a copy of the mesh with a shape key per frame, deformed about the baked centers of rotation"""

    bl_idname = "skinning.crs_to_shape_keys"
    bl_label = "Apply as Shape Keys"

    __annotations__ = dict(_FrameRangeJob.__annotations__)

    def steps(self, context):
        dependencies.require_dependencies()
        return (yield from crs_playback.to_shape_keys(context, active_object(context), **self.frames()))


class SKINNING_OT_crs_to_pc2(_FrameRangeJob, bpy.types.Operator):
    """Make a copy of the mesh that plays a PC2 point cache, deformed about the baked centers of rotation"""

    bl_idname = "skinning.crs_to_pc2"
    bl_label = "Bake to PC2"

    __annotations__ = _FrameRangeJob.__annotations__ | {
        "filepath": StringProperty(
            name="File",
            description="The point cache to write. Where empty, beside the .blend file and named after it and the mesh",
            subtype="FILE_PATH",
            default="",
            options={"SKIP_SAVE"} | _RELATIVE,
        ),
    }

    def steps(self, context):
        dependencies.require_dependencies()
        return (yield from crs_playback.to_point_cache(
            context, active_object(context), filepath=self.filepath, **self.frames()
        ))  # fmt: skip


registry = [SKINNING_OT_crs_to_shape_keys, SKINNING_OT_crs_to_pc2]
