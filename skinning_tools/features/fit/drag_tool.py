# SPDX-License-Identifier: GPL-3.0-or-later
"""Dragging vertices with the mouse: what happens at the pointer, at a press, a motion and a release, and its drawing.

Before an undo it puts back what is being dragged, and forgets all references to Blender's data but the session-wide
number of the mesh object. There is at most one tool, and while there is none, nothing is drawn.
"""

from typing import Any

import bpy
import numpy as np

from ...blender.areas import redraw_views
from ...blender.data_blocks import is_alive, object_again
from ...core.errors import BadScene
from ...ui.drawn_view import DrawnView
from ...ui.view_drawing import Pixel, View
from . import reachable_view
from .drag import Drag, Dragged, PosedMesh, check_draggable
from .picking import Picker
from .reachable_region import Region
from .settings import DragSettings

# By how much the mouse wheel changes the radius.
_WHEEL = 1.2


class DragTool:
    """settings: of the drags. region: of the vertex that is dragged, or would be by a press, in the world; None
    without one. ended: by another file, by an error in its drawing, or because the extension was disabled; failure: the
    error, "" without one."""

    region: Region | None = None
    ended = False
    failure = ""

    def __init__(self, context: bpy.types.Context, active: bpy.types.Object | None, settings: DragSettings):
        """Raises SkinningError if no vertex can be dragged."""
        mesh_object = check_draggable(context, active)
        self.settings = settings
        self._name, self._uid = mesh_object.name, mesh_object.session_uid
        self._posed: PosedMesh | None = None
        # Whether the mesh was edited since: its weights, its shape, or its mode.
        self._stale = False
        self._under: int | None = None
        self._drag: Drag | None = None
        posed = self._read(context)
        if settings.candidates == "SELECTED":
            posed.candidates(0, settings.candidates)

    @property
    def dragging(self) -> bool:
        return self._drag is not None

    @property
    def followers(self) -> np.ndarray:
        """(n, 3) the places of the vertices that follow the dragged one, in the world."""
        return np.zeros((0, 3)) if self._drag is None else self._drag.places[1:]

    def hover(
        self, context: bpy.types.Context, pixel: Pixel, view: View, size: tuple[float, float], scale: float = 1.0
    ) -> None:
        """Show the region of the vertex under the pointer. Raises SkinningError if the mesh cannot be read any more."""
        posed = self._read(context)
        under = self._picker.vertex_at(pixel, view, size, scale)
        if under != self._under:
            self._under = under
            try:
                self.region = None if under is None else posed.region(under, self.settings.candidates)
            except BadScene:
                # A press says why.
                self.region = None
            redraw_views()

    def press(
        self, context: bpy.types.Context, pixel: Pixel, view: View, size: tuple[float, float], scale: float = 1.0
    ) -> bool:
        """Begin to drag the vertex under the pointer, as the mesh is now; whether there is one. Raises BadScene if it
        has no room, or no vertex can be dragged any more."""
        self._target(context)
        # This also evaluates an edit that Blender has not reported yet.
        if not self._read(context).is_current(context):
            self.forget()
        self.hover(context, pixel, view, size, scale)
        if self._under is None:
            return False
        self._drag = Drag(self._read(context), self._under, self.settings)
        self._from, self._view, self._size = np.array(pixel, dtype=np.float64), view, size
        self._at = self._from
        self.region = self._drag.region
        redraw_views()
        return True

    def move(self, pixel: Pixel) -> None:
        """Let the vertex follow the pointer."""
        self._at = np.array(pixel, dtype=np.float64)
        drag = self._drag
        assert drag is not None
        start = drag.start
        target = self._view.moved(start, self._at - self._from, self._size)
        sight = self._view.line_of_sight(self._view.on_screen(start[None], self._size)[0], self._size)[1]
        drag.to(target, sight)
        self.region = drag.region
        redraw_views()

    def scale_radius(self, larger: bool) -> None:
        """Let more or fewer vertices follow."""
        drag = self._drag
        assert drag is not None
        radius = max(drag.radius * _WHEEL, drag.spacing) if larger else drag.radius / _WHEEL
        drag.set_radius(radius if radius >= drag.spacing else 0.0)
        self.move(self._at)

    def release(self) -> Dragged | None:
        """End the drag with the present weights; returns its Dragged, None if nothing has moved."""
        drag, self._drag = self._drag, None
        if drag is None or not drag.moved:
            # What was read still holds; the next motion of the pointer shows the region again.
            self._under, self.region = None, None
            return None
        self.forget()
        self.settings.radius = drag.radius
        return drag.result()

    def put_back(self) -> None:
        """End the drag, if any, with the weights as they were before it."""
        drag, self._drag = self._drag, None
        if drag is not None:
            drag.put_back()
            self.region = None
            self._under = None
            redraw_views()

    def forget(self) -> None:
        """Read the mesh again before the next use."""
        self._posed = None
        self._under, self.region = None, None

    def note_updates(self, depsgraph: bpy.types.Depsgraph) -> None:
        """After updates: remember if the mesh was among them, by others than the drag."""
        posed = self._posed
        if posed is None or self.dragging or self._stale or not is_alive(posed.mesh_object):
            return
        self._stale = any(update.id.original == posed.mesh_object.data for update in depsgraph.updates)

    def _target(self, context: bpy.types.Context) -> bpy.types.Object:
        """The mesh object, if its vertices can be dragged. Raises BadScene."""
        mesh_object = object_again(self._name, self._uid)
        if mesh_object is None:
            raise BadScene(f'The object "{self._name}" whose vertices were dragged is gone')
        return check_draggable(context, mesh_object)

    def _read(self, context: bpy.types.Context) -> PosedMesh:
        if self._posed is not None and (self._stale or not is_alive(self._posed.mesh_object)):
            self.forget()
        if self._posed is None:
            mesh_object = self._target(context)
            self._name = mesh_object.name
            self._posed = PosedMesh.read(context, mesh_object)
            self._picker = Picker(self._posed.places, self._posed.triangles)
            # Reading evaluates the mesh, which Blender may report as its update.
            self._stale = False
        return self._posed


def _end(tool: DragTool) -> None:
    tool.ended, tool.failure = True, display.failure
    tool.put_back()


def _draw(context: bpy.types.Context) -> None:
    tool = display.subject
    if tool is not None and tool.region is not None and context.space_data.overlay.show_overlays:
        reachable_view.draw(context, tool.region, tool.followers)


display = DrawnView("The dragged vertex could not be drawn", _end, POST_PIXEL=_draw)


@bpy.app.handlers.persistent
def _after_update(scene: bpy.types.Scene, depsgraph: bpy.types.Depsgraph) -> None:
    if display.subject is not None:
        display.subject.note_updates(depsgraph)


@bpy.app.handlers.persistent
def _before_undo(*_: Any) -> None:
    if display.subject is not None:
        display.subject.put_back()
        display.subject.forget()


handlers = {
    "depsgraph_update_post": _after_update,
    "undo_pre": _before_undo,
    "redo_pre": _before_undo,
    **display.handlers,
}
unregister = display.stop
