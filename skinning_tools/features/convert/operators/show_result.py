# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a finished conversion: go to one of its objects, see its error in color."""

import bpy
import numpy as np
from bpy.app.translations import pgettext_rpt as rpt_
from bpy.props import EnumProperty
from bpy_extras.view3d_utils import location_3d_to_region_2d

from ....blender import error_display
from ....blender.areas import redraw_views
from ....blender.conversions import result_of
from ....blender.lengths import length_text
from ....blender.look_ups import shares
from ....blender.visibility import hide_for, make_active, set_hidden, show_again
from ....core.errors import BadScene
from ....ui.boundary import reported
from .. import worst_mark
from ..result import in_its_place, worst_frame

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
    """Show the largest error of each vertex in color, blue for none and red for the worst one in a hundred of the \
vertices that have any. What else lies in its place, the source and its other results, is hidden meanwhile"""

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
        scale = error_display.Scale.of(np.concatenate([error_display.read_errors(mesh.data) for mesh in meshes]))
        for mesh in meshes:
            error_display.add_error_colors(mesh, scale=scale)
        hide_for(context, meshes[0].data, error_display.HIDDEN, in_its_place(result), result.mesh or meshes[0])
        error_display.show_colors(context, True)
        self.report({"INFO"}, f"{', '.join(mesh.name for mesh in meshes)}: {scale.meaning(context)}")

    def _show_materials(self, context, result) -> None:
        meshes, others = _with_error(result), in_its_place(result)
        noted = [show_again(context, mesh.data, error_display.HIDDEN, others) for mesh in meshes]
        if not any(noted):
            # Earlier versions have hidden the sources without a note.
            for source in result.sources:
                set_hidden(context, source, False)
        for mesh in meshes:
            error_display.remove_error_colors(mesh)
        error_display.show_colors(context, False)


class SKINNING_OT_show_worst_frame(bpy.types.Operator):
    """Go to the frame with the largest error and mark the vertex that has it. Press again to remove the mark"""

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
        with reported(self):
            result = result_of(context.view_layer.objects.active)
            if worst_mark.marked(context, result):
                worst_mark.clear_mark()
                # Nothing of the scene changes, by which the views would be drawn anew.
                redraw_views()
                return {"FINISHED"}
            frame = round(worst_frame(result.figures))
            context.scene.frame_set(frame)
            mark = worst_mark.set_mark(result)
            self._show(context, result)
            if mark is None:
                text = rpt_("Frame {frame}. Which vertex it was is not known any more: Convert Again marks it")
                self.report({"INFO"}, text.format(frame=frame))
                return {"FINISHED"}
            distance = length_text(context.scene, result.figures["largest_distance"], 3)
            text = rpt_("Frame {frame}: vertex {vertex} of {name} is farthest off. Largest error: {distance}")
            self.report({"INFO"}, text.format(frame=frame, vertex=mark.vertex, name=mark.name, distance=distance))
            if not bpy.data.objects[mark.name].visible_get(view_layer=context.view_layer):
                text = rpt_("{name} is hidden: the vertex is marked once it is shown, as Result in Conversions does it")
                self.report({"INFO"}, text.format(name=mark.name))
            return {"FINISHED"}
        return {"CANCELLED"}

    def _show(self, context, result) -> None:
        """Turn the views that do not have the marked vertex in them to it; the view through a camera stays."""
        found = worst_mark.marked(context, result)
        if found is None:
            return
        place = worst_mark.place_of(context, *found)
        for area in context.screen.areas if context.screen is not None else ():
            if area.type == "VIEW_3D":
                bring_into_view(area, place)


def bring_into_view(area, place) -> None:
    """Move the area's view so that ``place`` is in its middle, where it does not show it."""
    region = next(region for region in area.regions if region.type == "WINDOW")
    view = area.spaces.active.region_3d
    if view.view_perspective == "CAMERA":
        return
    at = location_3d_to_region_2d(region, view, place)
    covered = sum(other.width for other in area.regions if other.type == "UI")
    if at is None or not (0 < at.x < region.width - covered and 0 < at.y < region.height):
        view.view_location = place


def _with_error(result) -> list:
    return [mesh for mesh in result.meshes if error_display.has_error(mesh)]


registry = [SKINNING_OT_select_result, SKINNING_OT_show_error, SKINNING_OT_show_worst_frame]
