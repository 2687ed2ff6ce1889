# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Animation to Skinning: the operator around the pipeline in scene.convert.conversion."""

import bpy

from ..scene import dependencies
from ..scene.common_settings import RANGE_NAMES
from ..scene.convert import conversion, settings
from ..scene.convert.conversion_settings import ConversionOptions
from ..scene.convert.several_sources import other_sources
from .boundary import SkinningJob


class SKINNING_OT_convert_animation(SkinningJob, bpy.types.Operator):
    """Turn the active mesh's animation into a skinned copy with an armature, weights and keyframes"""

    bl_idname = "skinning.convert_animation"
    bl_label = "Convert Animation to Skinning"

    __annotations__ = settings.setting_annotations("soft_min")

    @classmethod
    def poll(cls, context):
        reason = conversion.reason_not_to_convert(context)
        if reason:
            cls.poll_message_set(reason)
        return not reason

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        chosen = context.scene.skinning_conversion
        self.fill((*settings.SETTING_NAMES, *settings.RIG_OPTION_NAMES, "selected_objects", "frame_step"), chosen)
        # From here on the range is fixed, so that "Adjust Last Operation" shows and keeps it.
        self.fill(RANGE_NAMES, context.scene if chosen.use_scene_range else chosen)

    def steps(self, context):
        dependencies.require_dependencies()
        from ..core.decomposition import Settings

        active = context.active_object
        others = other_sources(context, active) if self.selected_objects else ()
        chosen = Settings(**{name: getattr(self, name) for name in settings.SETTING_NAMES})
        options = ConversionOptions(
            **self.given(RANGE_NAMES),
            frame_step=self.frame_step,
            **{name: getattr(self, name) for name in settings.RIG_OPTION_NAMES},
        )
        return (yield from conversion.convert(context, (active, *others), chosen, options))

    def finish(self, context, result):
        return result.summary()


registry = [SKINNING_OT_convert_animation]
