# SPDX-License-Identifier: GPL-3.0-or-later
"""What the list of conversions offers: convert again, compare with the source, take over the settings, delete."""

import bpy
from bpy.app.translations import pgettext_rpt as rpt_
from bpy.props import BoolProperty, EnumProperty

from ....blender import background, dependencies
from ....blender.conversions import result_of
from ....blender.look_ups import shares
from ....blender.visibility import leave_mode, make_active, set_hidden
from ....core.errors import BadScene
from ....ui.boundary import reported
from ....ui.jobs import SkinningJob
from ..chosen_sources import Chosen, check_chosen, convert_chosen
from ..conversion_settings import settings_of, take_settings
from ..result import delete_result, notes_on_deleting, objects_made, other_results, sources_to_convert

SHOWN = (
    ("OTHER", "Other", "The source where the result is shown, else the result"),
    ("SOURCE", "Source", "The source alone"),
    ("RESULT", "Result", "The result alone"),
    ("BOTH", "Both", "Source and result, one in the other"),
)


def told(operator, made) -> str:
    """The line to report of a conversion, once what was done otherwise than asked is said."""
    for note in made.notes:
        operator.report({"INFO"}, note)
    return made.summary()


class OnResult:
    """Mix-in of an operator that works on the conversion of the active object."""

    @classmethod
    @shares
    def poll(cls, context):
        reason = cls.reason(context)
        if reason:
            cls.poll_message_set(reason)
        return not reason

    @classmethod
    def reason(cls, context) -> str:
        """Why it cannot work now, or ""."""
        job = background.running_job()
        if job is not None:
            return f"{job.title} is still running. Wait for it to end, or press Esc to cancel it"
        if context.mode not in {"OBJECT", "POSE"}:
            return "Go to Object Mode first"
        if result_of(context.view_layer.objects.active) is None:
            return "The active object is not part of a conversion"
        return ""


class SKINNING_OT_convert_again(OnResult, SkinningJob, bpy.types.Operator):
    """Convert the source of this conversion again, as it moves now, with the same settings"""

    bl_idname = "skinning.convert_again"
    bl_label = "Convert Again"

    replace: BoolProperty(
        name="Replace",
        description="Delete the earlier result once the new one is there",
        default=False,
        options={"SKIP_SAVE"},
    )

    @classmethod
    def reason(cls, context) -> str:
        return dependencies.missing_dependency() or super().reason(context)

    def steps(self, context):
        dependencies.require_dependencies()
        earlier = result_of(context.view_layer.objects.active)
        if earlier is None:
            raise BadScene("The active object is not part of a conversion. Select one of its objects")
        # Also where the source is a result itself: that was asked for then.
        chosen = Chosen(tuple(sources_to_convert(earlier)), earlier=(earlier,))
        check_chosen(context, chosen)
        return (yield from convert_chosen(context, chosen, *settings_of(earlier.figures), self.replace))

    def finish(self, context, result):
        return told(self, result)


class SKINNING_OT_use_result_settings(OnResult, bpy.types.Operator):
    """Take the settings of this conversion over into the panel, to change them and convert anew"""

    bl_idname = "skinning.use_result_settings"
    bl_label = "Use Settings"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context):
        with reported(self):
            take_settings(context.scene, result_of(context.view_layer.objects.active).figures)
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_compare_result(OnResult, bpy.types.Operator):
    """Show the source or the result alone, in the same place, to see what differs; other results of the source are \
hidden. From a shortcut: one after the other"""

    bl_idname = "skinning.compare_result"
    bl_label = "Compare with Source"
    bl_options = {"REGISTER", "UNDO"}

    show: EnumProperty(name="Show", description="Which of the two is shown", items=SHOWN, default="OTHER")

    def execute(self, context):
        with reported(self):
            result = result_of(context.view_layer.objects.active)
            if not result.sources or not result.meshes:
                gone = "source" if not result.sources else "skinned mesh"
                raise BadScene(f"The {gone} of this conversion was renamed or deleted, so there is nothing to compare")
            show = self.show
            if show == "OTHER":
                show = "SOURCE" if any(mesh.visible_get() for mesh in result.meshes) else "RESULT"
            active = context.view_layer.objects.active
            if show == "SOURCE" and active in result.meshes:
                make_active(context, next(part.source for part in result.parts if part.mesh == active) or active)
            if show == "RESULT" and active in result.sources:
                make_active(context, next(part.mesh for part in result.parts if part.source == active) or active)
            for source in result.sources:
                set_hidden(context, source, show == "RESULT")
            for mesh in result.meshes:
                set_hidden(context, mesh, show == "SOURCE")
            for other in other_results(result):
                for mesh in other.meshes:
                    set_hidden(context, mesh, True)
            return {"FINISHED"}
        return {"CANCELLED"}


class SKINNING_OT_delete_result(OnResult, bpy.types.Operator):
    """Delete the skinned meshes, armature and action of this conversion. The source stays, and is shown again"""

    bl_idname = "skinning.delete_result"
    bl_label = "Delete Result"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context):
        with reported(self):
            objects = context.view_layer.objects
            active = objects.active
            result = result_of(active)
            stand_in = next((part.source for part in result.parts if part.mesh == active), None)
            goes, selected = active in objects_made(result), active.select_get()
            if goes:
                leave_mode(context)
            notes = notes_on_deleting([result])
            names = delete_result(context, result)
            for source in result.sources:
                set_hidden(context, source, False)
            # In the place of the one that is gone; what else is selected stays so.
            stand_in = stand_in or next(iter(result.sources), None)
            if goes and stand_in is not None and stand_in in objects.values():
                stand_in.select_set(selected or stand_in.select_get())
                objects.active = stand_in
            for note in notes:
                self.report({"INFO"}, note)
            self.report({"INFO"}, rpt_("Deleted {names}").format(names=", ".join(names)))
            return {"FINISHED"}
        return {"CANCELLED"}


registry = [
    SKINNING_OT_convert_again,
    SKINNING_OT_use_result_settings,
    SKINNING_OT_compare_result,
    SKINNING_OT_delete_result,
]
