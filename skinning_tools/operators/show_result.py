# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a finished conversion: go to one of its objects, see its error in color."""

import bpy
from bpy.app.translations import pgettext_rpt as rpt_
from bpy.props import EnumProperty

from ..core.errors import BadScene
from ..scene import error_display
from ..scene.convert.result import result_of, worst_frame
from ..scene.look_ups import shares
from ..scene.visibility import make_active, set_hidden
from .boundary import reported

PARTS = (
    ("SOURCE", "Source", "The mesh that was converted"),
    ("MESH", "Skinned Mesh", "The mesh that the bones move"),
    ("RIG", "Rig", "The armature"),
)


class SKINNING_OT_select_result(bpy.types.Operator):
    """Select one of the objects of this conversion and make it active"""

    bl_idname = "skinning.select_result"
    bl_label = "Select Result"
    bl_options = {"REGISTER", "UNDO"}

    part: EnumProperty(name="Part", items=PARTS, default="RIG")

    @classmethod
    @shares
    def poll(cls, context):
        if context.mode != "OBJECT":
            cls.poll_message_set("Go to Object Mode first")
            return False
        if result_of(context.view_layer.objects.active) is None:
            cls.poll_message_set("The active object is not part of a conversion")
            return False
        return True

    def execute(self, context):
        with reported(self):
            result = result_of(context.view_layer.objects.active)
            part = {"SOURCE": result.source, "MESH": result.mesh, "RIG": result.rig}[self.part]
            label = self.part_label()
            if part is None or part.name not in context.view_layer.objects:
                raise BadScene(
                    f"The {label} of this conversion is not in the view layer: it was renamed, deleted or excluded"
                )
            if not part.visible_get():
                raise BadScene(f'The {label} of this conversion, object "{part.name}", is hidden. Show it first')
            make_active(context, part)
            return {"FINISHED"}
        return {"CANCELLED"}

    def part_label(self) -> str:
        return next(label for part, label, _ in PARTS if part == self.part).lower()


class SKINNING_OT_show_error(bpy.types.Operator):
    """Show the largest error of each vertex in color, blue for none and red for most. The source is hidden meanwhile"""

    bl_idname = "skinning.show_error"
    bl_label = "Show Error"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    @shares
    def poll(cls, context):
        result = result_of(context.view_layer.objects.active)
        if result is None or not _with_error(result):
            cls.poll_message_set("The active object is not part of a conversion that has its error stored")
            return False
        if any(mesh.data.is_editmode for mesh in _with_error(result)):
            cls.poll_message_set("Go to Object Mode first")
            return False
        return True

    def execute(self, context):
        with reported(self):
            result = result_of(context.view_layer.objects.active)
            if any(error_display.shows_error(mesh) for mesh in _with_error(result)):
                self._show_materials(context, result)
            else:
                self._show_colors(context, result)
            return {"FINISHED"}
        return {"CANCELLED"}

    def _show_colors(self, context, result) -> None:
        meshes = _with_error(result)
        # The same color is the same error on all.
        largest = max(float(error_display.read_errors(mesh.data).max(initial=0.0)) for mesh in meshes)
        for mesh in meshes:
            error_display.add_error_colors(mesh, largest=largest)
        # A source lies where its result is, so that one would shine through the other.
        active = context.view_layer.objects.active
        if active in result.sources and result.mesh is not None and result.mesh.visible_get():
            make_active(context, result.mesh)
        for source in result.sources:
            set_hidden(context, source, True)
        error_display.show_colors(context, True)
        distance = bpy.utils.units.to_string(context.scene.unit_settings.system, "LENGTH", largest, precision=3)
        names = ", ".join(mesh.name for mesh in meshes)
        text = rpt_("{names}: blue is no error, red the largest, {distance}")
        self.report({"INFO"}, text.format(names=names, distance=distance))

    def _show_materials(self, context, result) -> None:
        for mesh in _with_error(result):
            error_display.remove_error_colors(mesh)
        for source in result.sources:
            set_hidden(context, source, False)
        error_display.show_colors(context, False)


class SKINNING_OT_show_worst_frame(bpy.types.Operator):
    """Go to the frame in which a vertex is farthest from where it is in the source"""

    bl_idname = "skinning.show_worst_frame"
    bl_label = "Go to Worst Frame"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    @shares
    def poll(cls, context):
        result = result_of(context.view_layer.objects.active)
        if result is None or worst_frame(result.figures) is None:
            cls.poll_message_set("The active object is not part of a conversion that has its errors over time stored")
            return False
        return True

    def execute(self, context):
        context.scene.frame_set(round(worst_frame(result_of(context.view_layer.objects.active).figures)))
        return {"FINISHED"}


def _with_error(result) -> list:
    return [mesh for mesh in result.meshes if error_display.has_error(mesh)]


registry = [SKINNING_OT_select_result, SKINNING_OT_show_error, SKINNING_OT_show_worst_frame]
