# SPDX-License-Identifier: GPL-3.0-or-later
"""Drag Vertex in Pose: with the mouse in the window, or to a given position from a script."""

import bpy

from ...blender import dependencies
from ...blender.job_checks import active_object
from ...blender.translation import translated
from ...core.errors import BadScene
from ...ui.boundary import Checked, reported
from ...ui.events import at_pointer, navigates
from ...ui.jobs import AtOnce
from ...ui.view_drawing import View
from . import drag, drag_tool
from .settings import DragSettings

_MOTIONS = {"MOUSEMOVE", "INBETWEEN_MOUSEMOVE"}
_CONFIRM = {"RET", "NUMPAD_ENTER"}
_CANCEL = {"ESC", "RIGHTMOUSE"}
# As for Blender's proportional editing.
_LARGER, _SMALLER = {"WHEELDOWNMOUSE", "PAGE_UP"}, {"WHEELUPMOUSE", "PAGE_DOWN"}
_BETWEEN = "   |   "
_HELP = _BETWEEN.join(("Drag a vertex", "Esc, Right Click or Enter: End"))
_HELP_DRAGGING = _BETWEEN.join(("Release: Confirm", "Wheel: Radius", "Esc or Right Click: Put Back"))


class SKINNING_OT_drag_vertex(Checked, AtOnce, bpy.types.Operator):
    """Drag vertices of the posed mesh with the mouse. Their weights follow, as far as their bones can take them (Mohr \
et al. 2003)"""

    bl_idname = "skinning.drag_vertex"
    bl_label = "Drag Vertex in Pose"

    settings = DragSettings
    require = staticmethod(drag.check_draggable)
    work = staticmethod(drag.drag)

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        self.prepare(context)
        if bpy.app.background or context.window is None:
            return self.execute(context)
        with reported(self):
            dependencies.require_dependencies()
            if context.screen.is_animation_playing:
                bpy.ops.screen.animation_cancel(restore_frame=False)
            given = self.settings.of_operator(self)
            self._tool = drag_tool.DragTool(context, active_object(context), DragSettings(**given))
            drag_tool.display.start(self._tool)
            self._window, self._workspace = context.window, context.workspace
            self._window.cursor_modal_set("CROSSHAIR")
            self._say(_HELP)
            context.window_manager.modal_handler_add(self)
            return {"RUNNING_MODAL"}
        return {"CANCELLED"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        with reported(self):
            if self._tool.ended:
                if self._tool.failure:
                    self.report({"ERROR"}, translated(self._tool.failure))
                return self._end()
            if self._tool.dragging:
                self._while_dragging(context, event)
                return {"RUNNING_MODAL"}
            return self._between(context, event)
        return self._end()

    def cancel(self, context: bpy.types.Context) -> None:
        """End the tool: the window closes, another file is loaded, or Blender quits."""
        self._end()

    def _between(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        """An event while no vertex is held: only what moves a view, or undoes, passes."""
        pressed = event.value == "PRESS"
        if pressed and event.type in _CANCEL | _CONFIRM:
            return self._end()
        view = _view_at_pointer(context, event)
        if view is not None and event.type in _MOTIONS:
            self._tool.hover(context, *_pointer(context, view, event))
        elif view is not None and event.type == "LEFTMOUSE" and pressed:
            self._press(context, view, event)
            return {"RUNNING_MODAL"}
        undoes = event.type == "Z" and (event.ctrl or event.oskey)
        passes = undoes or event.type.startswith("TIMER") or navigates(context, event)
        return {"PASS_THROUGH"} if passes else {"RUNNING_MODAL"}

    def _press(self, context: bpy.types.Context, view: bpy.types.Region, event: bpy.types.Event) -> None:
        try:
            if self._tool.press(context, *_pointer(context, view, event)):
                self._view = view
                self._say(_HELP_DRAGGING)
        except BadScene as error:
            # About this vertex: another one may have room.
            self._say(str(error), _HELP)

    def _while_dragging(self, context: bpy.types.Context, event: bpy.types.Event) -> None:
        pressed = event.value == "PRESS"
        if event.type in _MOTIONS:
            self._tool.move((event.mouse_x - self._view.x, event.mouse_y - self._view.y))
        elif (event.type == "LEFTMOUSE" and event.value == "RELEASE") or (pressed and event.type in _CONFIRM):
            self._confirm(context)
        elif pressed and event.type in _CANCEL:
            self._tool.put_back()
            self._say(_HELP)
        elif pressed and event.type in _LARGER | _SMALLER:
            self._tool.scale_radius(event.type in _LARGER)

    def _confirm(self, context: bpy.types.Context) -> None:
        """Keep the weights, as an undo step of their own."""
        result = self._tool.release()
        if result is None:
            self._say(_HELP)
            return
        context.scene.skinning_weight_fit.radius = self._tool.settings.radius
        bpy.ops.ed.undo_push(message=self.bl_label)
        self._say(self.finish(context, result), _HELP)

    def _say(self, *texts: str) -> None:
        """In the status bar: Blender shows reports only when an operator ends."""
        self._workspace.status_text_set(_BETWEEN.join(map(translated, texts)))

    def _end(self) -> set[str]:
        """Each drag has been an undo step: the tool's own end is none."""
        if not self._tool.ended:
            drag_tool.display.stop()
        window, self._window = self._window, None
        if window is not None:
            window.cursor_modal_restore()
            self._workspace.status_text_set(None)
        return {"CANCELLED"}


def _view_at_pointer(context: bpy.types.Context, event: bpy.types.Event) -> bpy.types.Region | None:
    """The region of the 3D view under the pointer, None over its sidebar and the like, and elsewhere."""
    area = at_pointer(context.screen.areas, event)
    if area is None or area.type != "VIEW_3D":
        return None
    # Other regions overlap the view itself.
    inside = [region for region in area.regions if region.type == "WINDOW"]
    covering = [region for region in area.regions if region.type != "WINDOW" and region.width > 1 < region.height]
    return None if at_pointer(covering, event) is not None else at_pointer(inside, event)


def _pointer(context: bpy.types.Context, region: bpy.types.Region, event: bpy.types.Event) -> tuple:
    """The pointer's place in the region of a 3D view, the View, the region's size, and the interface's scale."""
    pixel = event.mouse_x - region.x, event.mouse_y - region.y
    return pixel, View.of(region.data), (region.width, region.height), context.preferences.system.ui_scale


registry = [SKINNING_OT_drag_vertex]
