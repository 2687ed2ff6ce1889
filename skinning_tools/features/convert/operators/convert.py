# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert Animation to Skinning: the operator around the pipeline in features.convert.conversion."""

import bpy

from ....blender import dependencies
from ....blender.job_checks import active_object
from ....ui.common_settings import RANGE_NAMES
from ....ui.jobs import SkinningJob
from .. import settings
from ..chosen_sources import CONVERT, KEEP, REPLACE, check_chosen, chosen_sources, convert_chosen, reason_not_to_convert
from ..conversion_settings import ConversionOptions
from .results import told


class SKINNING_OT_convert_animation(SkinningJob, bpy.types.Operator):
    """Turn the active mesh's animation into a skinned copy with an armature, weights and keyframes. On the result of \
an earlier conversion: its source's animation"""

    bl_idname = "skinning.convert_animation"
    bl_label = "Convert Animation to Skinning"

    __annotations__ = settings.setting_annotations("soft_min")

    @classmethod
    def poll(cls, context):
        # Which of the two is meant, the caller's own settings say.
        reasons = [reason_not_to_convert(context, on_result=meant) for meant in (KEEP, CONVERT)]
        if all(reasons):
            cls.poll_message_set(reasons[0])
            return False
        return True

    def prepare(self, context):
        """Take what the caller did not give from the scene's settings, as the panel shows them."""
        chosen = context.scene.skinning_conversion
        names = *settings.SETTING_NAMES, *settings.RIG_OPTION_NAMES, *settings.CHOICE_NAMES, "frame_step"
        self.fill(names, chosen)
        # From here on the range is fixed, so that "Adjust Last Operation" shows and keeps it.
        self.fill(RANGE_NAMES, context.scene if chosen.use_scene_range else chosen)

    def steps(self, context):
        dependencies.require_dependencies()
        from ....core.decomposition import Settings

        sources = chosen_sources(context, active_object(context), self.selected_objects, self.on_result)
        check_chosen(context, sources)
        chosen = Settings(**{name: getattr(self, name) for name in settings.SETTING_NAMES})
        options = ConversionOptions(
            **self.given(RANGE_NAMES),
            frame_step=self.frame_step,
            **{name: getattr(self, name) for name in settings.RIG_OPTION_NAMES},
        )
        return (yield from convert_chosen(context, sources, chosen, options, self.on_result == REPLACE))

    def finish(self, context, result):
        return told(self, result)


registry = [SKINNING_OT_convert_animation]
